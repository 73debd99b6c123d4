#!/usr/bin/env python3
"""Workers that are killed and leave handlers behind, which are processes: they go on to their end, and nobody hears of it. What is promised all the same (docs/WORKER.md):
nothing is lost, only what was begun and not answered is done again, and with an ack file nothing of that was finished before.

    tests/rolling/test_work_orphans.py                      the short form, as in `make test`
    tests/rolling/test_work_orphans.py --messages 10000     the long form: more of everything, and moments that are new each time
    tests/rolling/test_work_orphans.py --seed N             the moments of the run that printed it
    tests/rolling/test_work_orphans.py --keep FOLDER        ledgers, data, logs and reports stay there"""
from work_fleet import wait_until
from work_kills_case import AckFileCase, KillCase
from work_rolling_case import main

EXEC_NOTED_MS = 60_000  # a process says that it is done, and then has to end and be reaped: only what its worker said to have finished is sure


class Orphans(KillCase):
    def unfinished(self):
        return [str(run) for run in self.fleet.runs() if run.done_at is None]

    def test_processes_of_killed_workers_go_on_to_their_end_and_only_begun_work_is_repeated_B2_B6(self):
        self.kill_again_and_again("exec")
        wait_until(lambda: self.unfinished() == [], lambda: f"the end of orphans: {self.unfinished()}", 10)

    def test_killed_workers_with_processes_that_stay_repeat_only_begun_work_B2_B6(self):
        self.kill_again_and_again("lines")


class AckFiles(AckFileCase):
    def test_with_an_ack_file_nothing_that_a_process_has_finished_is_done_again_after_a_kill_B3(self):
        self.kill_with_ack_files("exec", EXEC_NOTED_MS)

    def test_with_an_ack_file_nothing_that_a_process_that_stays_has_finished_is_done_again_after_a_kill_B3(self):
        self.kill_with_ack_files("lines")


if __name__ == "__main__":
    main(__doc__)
