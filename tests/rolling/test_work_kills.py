#!/usr/bin/env python3
"""Workers and servers that are killed, as real processes: nothing is lost, and only what was begun and not finished for sure is done again.

    tests/rolling/test_work_kills.py                      the short form, as in `make test`
    tests/rolling/test_work_kills.py --messages 10000     the long form: more of everything, and moments that are new each time
    tests/rolling/test_work_kills.py --seed N             the moments of the run that printed it
    tests/rolling/test_work_kills.py --keep FOLDER        ledgers, data, logs and reports stay there"""
import signal

from work_fleet import now_ms, wait_until
from work_kills_case import AckFileCase, KillCase
from work_rolling_case import SEATS, SLOTS, SURE_MS, WINDOW, WorkRollingCase, main, round_count

UNSTARTED_RECONNECT_MS = 3000   # of one that is killed and does not come back, where something else has to happen before it is over
LEASE_MS = 2000                 # long enough for all the work that one worker was given
SERVER_ENDS = 3                 # in two rounds


class Workers(KillCase):
    def test_killed_workers_lose_nothing_and_only_begun_work_is_repeated_and_charged_B2_B6(self):
        self.kill_again_and_again("http")

    def test_what_a_killed_worker_had_not_begun_goes_to_others_at_once_and_uncharged_B2_B6(self):
        self.make_fleet(message_count=WINDOW, filled=1.0, words=("--reconnect", f"{UNSTARTED_RECONNECT_MS}ms"))
        victim = self.fleet.start(0, "victim", "--header", "Work-Ms: 600000")
        wait_until(lambda: (victim.counts()["running"], victim.counts()["waiting"]) == (SLOTS, WINDOW - SLOTS), "all messages at the victim")
        wait_until(lambda: self.fleet.rows("consumer", "list")[0]["started"] >= SLOTS, "the server to know what was begun", 30)
        wait_until(lambda: len(self.fleet.runs()) == SLOTS, "the destination to see it")
        begun = {run.id for run in self.fleet.runs()}
        self.fleet.start(1, "heir")
        killed_at = now_ms()
        self.fleet.kill(victim, SURE_MS)
        self.fleet.seats[0] = None
        verdict, _ = self.finish()
        later = [run for run in self.fleet.runs() if run.worker != victim.name]
        others, again = ([run for run in later if (run.id in begun) == is_begun] for is_begun in (False, True))
        self.assertEqual((len(others), {run.attempt for run in others}), (WINDOW - SLOTS, {1}))
        self.assertEqual([str(run) for run in others if run.begun_at >= killed_at + UNSTARTED_RECONNECT_MS], [], "waited for the reconnect window of the dead")
        self.assertEqual((len(again), {run.attempt for run in again}), (SLOTS, {2}))
        self.assertEqual([str(run) for run in again if run.begun_at < killed_at + UNSTARTED_RECONNECT_MS], [], "taken from one who might have come back")
        self.assertEqual(verdict.overcharged, [])
        self.report(f"{len(others)} not begun, the last of them at another worker {max(run.begun_at for run in others) - killed_at:.0f} ms after the kill; "
                    f"{len(again)} begun, the first of them after {min(run.begun_at for run in again) - killed_at:.0f} ms")


class AckFiles(AckFileCase):
    def test_with_an_ack_file_nothing_that_was_finished_is_done_again_after_a_kill_B3(self):
        self.kill_with_ack_files("http")

    def test_with_an_ack_file_finished_work_whose_leases_are_over_is_not_done_again_by_the_successor_B3(self):
        """It comes late, when the server counts its messages as failed and waits for somebody to give them to."""
        self.make_fleet(message_count=WINDOW, filled=1.0, group_words=("--message-timeout", f"{LEASE_MS}ms"))
        self.sit_down(0, "--header", "Work-Ms: 100")
        wait_until(lambda: len(self.fleet.runs()) > 0, "work", 30)
        unconfirmed = self.kill_with_server_frozen((0,), server_dies=True)[0]
        wait_until(lambda: self.fleet.info()["in_flight"] == 0, "the end of the leases", 30)
        self.sit_down(0)
        verdict, _ = self.finish()
        self.assertEqual(self.fleet.seats[0].recalled(), unconfirmed)
        self.assertGreater(unconfirmed, 0, "everything was confirmed before the kill, so nothing was tried")
        self.assertEqual((len(self.fleet.runs()), verdict.excused), (WINDOW, []))
        self.report(f"{unconfirmed} ends unconfirmed, their leases over, none done again")


class Servers(WorkRollingCase):
    def test_a_server_that_is_killed_again_and_again_repeats_nothing_under_workers_that_stay_B4(self):
        self.make_fleet()
        self.start_all()
        count = SERVER_ENDS * round_count() // 2
        for nth in range(count):
            self.progress(nth, count)
            self.at_some_moment()
            self.fleet.restart_server(signal.SIGKILL)
        verdict, reports = self.finish()
        self.assertEqual(len(reports), SEATS)
        self.assertEqual([str(run) for run in verdict.charged[:3]], [])
        self.report(f"server killed {count} times, {len(self.fleet.runs())} messages, lost 0, twice 0, charged 0")


if __name__ == "__main__":
    main(__doc__)
