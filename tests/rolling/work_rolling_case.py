"""What the rolling restarts of `sluice work` share: their options, a fleet, moments that are drawn, and what must be true when all is over.

Four workers, with each kind of handler that has side effects of its own. What happens next waits for so many messages done, and times are printed, not judged;
but for three, each of which has hundreds of times of what is usual: SURE_MS and NOTED_MS, after which what was finished counts as confirmed or noted when a
worker is killed, and the reconnect window of a dead one, for which nothing that was not begun may wait. The judge is in work_ledger.py."""
import argparse
import json
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time
import unittest

from work_fleet import GROUP, STREAM, WorkFleet

SEATS, SLOTS, WINDOW = 4, 4, 12
MESSAGES_SHORT, ROUNDS_SHORT, ROUNDS_LONG = 1200, 2, 10
SHARES = {"http": 1, "lines": 0.5, "exec": 0.25}     # of all messages: processes cost more than requests
SURE_MS, NOTED_MS = 3000, 1000   # finished so long before a kill: confirmed by the server, noted in the ack file
MOMENT_MS_MAX = 30
options = argparse.Namespace(messages=MESSAGES_SHORT, seed=None, keep=None)


def is_long():
    return options.messages > MESSAGES_SHORT


def round_count():
    return ROUNDS_LONG if is_long() else ROUNDS_SHORT


class WorkRollingCase(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(options.keep or tempfile.mkdtemp()) / self._testMethodName
        folder.mkdir(parents=True)
        if not options.keep:
            self.addCleanup(shutil.rmtree, folder.parent, ignore_errors=True)   # an orphan may still write there
        self.folder, self.began_at = folder, time.monotonic()
        self.random = random.Random(f"{options.seed} {self._testMethodName}")
        self.restarting, self.faults = None, []

    def make_fleet(self, handler="http", message_count=None, words=(), **more):
        count = message_count or int(options.messages * SHARES[handler])
        self.fleet = WorkFleet(self.folder, handler, count, SEATS, words=("--slots", SLOTS, "--window", WINDOW, "--grace", "60s", "--flush", "20s", *words), **more)
        self.addCleanup(self.fleet.close)
        self.addCleanup(self.join_background)       # before the fleet is closed: it may be starting a server

    def report(self, text):
        print(f"{self._testMethodName}: {text} (seed {options.seed}, {time.monotonic() - self.began_at:.1f} s)", file=sys.stderr, flush=True)

    # --- what all have in common ---

    def in_background(self, work):
        def guarded():
            try:
                work()
            except Exception as error:              # the thread that waits for it tells
                self.faults.append(error)
        self.join_background()
        self.restarting = threading.Thread(target=guarded, daemon=True)
        self.restarting.start()

    def join_background(self):
        if self.restarting:
            self.restarting.join()
            self.restarting = None
        if self.faults:
            raise self.faults.pop()

    def start_all(self, words_of=lambda seat: ()):
        """At the same time, so that nothing much is done when the last of them begins."""
        for seat in range(SEATS):
            self.fleet.start(seat, f"seat{seat}", *words_of(seat), is_ready=False)
        for seat in self.fleet.seats:
            seat.work.wait_ready()

    def progress(self, nth, count):
        """Waits for the share of all messages that is due before thing `nth` of `count`, from 0; some are left for what comes after the last."""
        self.fleet.wait_done(self.fleet.message_count * (nth + 1) // (count + 2))

    def at_some_moment(self):
        time.sleep(self.random.uniform(0, MOMENT_MS_MAX) / 1000)

    def end_clean(self, seat, seconds_max=30):
        """Everybody who is asked to leave does, and has nothing to hide."""
        code, seconds = seat.work.end()
        self.assertEqual(code, 0, f"{seat.name}: {seat.work.log()[-2000:]}")
        self.assertLess(seconds, seconds_max)

    def check_last_lines(self, reports):
        """The last line of each log says the same as the report: why it ended, how, and how many it had finished meanwhile (S3.27)."""
        for seat in self.fleet.started:
            if not seat.is_killed:
                line, report = json.loads(seat.work.log().splitlines()[-1]), reports[seat.name]
                self.assertEqual([line[name] for name in ("message", "reason", "end", "drained", "handed_back")],
                                 ["stopped", "SIGTERM", "clean", report["finished"], report["handed_back"]], seat.name)

    def finish(self):
        """When everything is settled and everybody has gone: the verdict, without what is never allowed, and the reports of who could write one."""
        self.join_background()
        self.fleet.wait_all_settled()
        codes = self.fleet.stop_all()
        verdict = self.fleet.verdict()
        self.assertEqual(verdict.faults(), [])
        self.assertEqual(codes, [0] * len(codes))
        self.assertEqual(self.fleet.rows("parked", "list", STREAM, GROUP), [])
        reports = [(seat.name, seat.work.report()) for seat in self.fleet.started if not seat.is_killed]
        self.assertEqual([name for name, report in reports if not report["clean"] or report["end"] != "clean"], [], "not clean, as they say")
        self.assertEqual([name for name, report in reports if report["interrupted"] + report["abandoned"] + report["acks_unconfirmed"]], [])
        self.check_last_lines(dict(reports))
        return verdict, [report for _, report in reports]


def main(description):
    """Of a script with such tests; what is no option here is for unittest."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=MESSAGES_SHORT)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--keep")
    _, rest = parser.parse_known_args(namespace=options)
    if options.seed is None:
        options.seed = random.randrange(10**9) if is_long() else 1
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])
