#!/usr/bin/env python3
"""Deploys with real `sluice work` processes, while the server is restarted: nothing is lost, nothing is done twice, nothing is charged.

    tests/rolling/test_work_rolling.py                      the short form, as in `make test`
    tests/rolling/test_work_rolling.py --messages 10000     the long form: more of everything
    tests/rolling/test_work_rolling.py --keep FOLDER        ledgers, data, logs and reports stay there"""
import signal

from work_fleet import UNCLEAN, now_ms, wait_until
from work_rolling_case import SEATS, SLOTS, WINDOW, WorkRollingCase, is_long, main, round_count


class Deploys(WorkRollingCase):
    def words_of(self, seat):
        """Those with a name of their own follow each other, the others overlap; one finishes what it holds instead of handing it back."""
        return (*(("--name", f"seat{seat}") if seat % 2 == 0 else ()), *(("--finish-unstarted",) if seat == 3 else ()))

    def replace(self, seat):
        old = self.fleet.seats[seat]
        if seat % 2 == 0:
            self.end_clean(old)
            self.fleet.start(seat, f"seat{seat}", *self.words_of(seat))
        else:
            self.fleet.start(seat, f"seat{seat}", *self.words_of(seat))
            self.end_clean(old)

    def deploy(self, handler):
        self.make_fleet(handler)
        self.start_all(self.words_of)
        count = round_count() * SEATS
        for nth in range(count):
            self.progress(nth, count)
            if nth in (count // 3, count * 2 // 3):
                self.in_background(self.fleet.restart_server)
            if nth == count // 2 and is_long():
                self.in_background(lambda: self.fleet.restart_server(signal.SIGKILL))
            self.replace(nth % SEATS)
        verdict, reports = self.finish()
        self.assertEqual([str(run) for run in verdict.charged[:3]], [], "B2: a deploy charges nobody")
        self.assertEqual([str(run) for run in verdict.excused[:3]], [])
        finished, back = (sum(report[what] for report in reports) for what in ("finished", "handed_back"))
        self.assertGreater(finished, 0, "nobody finished anything after SIGTERM, so nothing was tried")
        self.assertGreater(back, 0, "nobody handed anything back, so nothing was tried")
        longest = max(report["used_seconds"] for report in reports)
        self.report(f"{len(reports) - SEATS} replaced, server restarted twice{' and killed once' * is_long()}, {len(self.fleet.runs())} messages, lost 0, twice 0, charged 0; finished after SIGTERM "
                    f"{finished}, handed back {back}, longest drain {longest * 1000:.0f} ms")

    def test_a_deploy_of_http_workers_loses_nothing_and_repeats_nothing_S3_27_B2_B4(self):
        self.deploy("http")

    def test_a_deploy_of_workers_with_a_process_for_each_message_loses_and_repeats_nothing_S3_27_B2_B4(self):
        self.deploy("exec")

    def test_a_deploy_of_workers_with_processes_that_stay_loses_and_repeats_nothing_S3_27_B2_B4(self):
        self.deploy("lines")


class DeadServer(WorkRollingCase):
    """Workers that are asked to leave when there is nobody to leave from."""

    def leave_a_dead_server(self, *words):
        """All messages are at one worker, some of them begun, when the server dies and the worker is asked to leave; these end before anything else."""
        self.make_fleet(message_count=WINDOW, filled=1.0)
        leaver = self.fleet.start(0, "leaver", "--header", "Work-Ms: 200", *words)
        wait_until(lambda: (leaver.counts()["running"], leaver.counts()["waiting"]) == (SLOTS, WINDOW - SLOTS), "all messages at one worker", 30)
        self.fleet.server.end(signal.SIGKILL)
        leaver.work.send(signal.SIGTERM)
        self.fleet.wait_done(SLOTS)
        return leaver

    def test_a_worker_that_had_to_leave_a_dead_server_tells_its_successor_by_the_ack_file_B3(self):
        words = ("--ack-file", self.folder / "acks", "--reconnect", "60s")
        leaver = self.leave_a_dead_server(*words, "--flush", "100ms")
        self.assertEqual(leaver.work.wait()[0], UNCLEAN)
        self.assertEqual(leaver.work.report()["acks_unconfirmed"], SLOTS)
        self.fleet.started.remove(leaver)       # who is not clean, as it says: this is what was to be tried
        self.fleet.seats[0] = None
        self.fleet.start_server()
        heir = self.fleet.start(1, "heir", *words)
        verdict, _ = self.finish()
        self.assertEqual(heir.recalled(), SLOTS)
        self.assertEqual((len(self.fleet.runs()), verdict.charged), (WINDOW, []))
        self.report(f"{SLOTS} finished and not confirmed, all of them told by the next worker and not done again")

    def test_a_worker_that_is_asked_to_leave_while_the_server_is_dead_settles_everything_when_it_is_back_S3_27_B4(self):
        leaver = self.leave_a_dead_server()
        self.fleet.start_server()
        self.assertEqual(leaver.work.wait()[0], 0, leaver.work.log()[-2000:])
        back_at = now_ms()
        self.fleet.seats[0] = None
        self.fleet.start(1, "heir")
        verdict, reports = self.finish()
        self.assertEqual(reports[0]["finished"], SLOTS)
        self.assertEqual({run.worker for run in self.fleet.runs()[:SLOTS]}, {leaver.name})
        self.assertEqual({run.worker for run in self.fleet.runs()[SLOTS:]}, {self.fleet.seats[1].name})
        self.assertEqual((verdict.charged, verdict.excused), ([], []))
        last = max(run.begun_at for run in self.fleet.runs())
        self.report(f"{SLOTS} finished, the last of {WINDOW - SLOTS} others at another worker {last - back_at:.0f} ms after the end of the first")


if __name__ == "__main__":
    main(__doc__)
