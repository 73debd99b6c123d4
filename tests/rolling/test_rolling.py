#!/usr/bin/env python3
"""Deploys, crashes and restarts with real processes: nothing is lost, nothing is done twice, keys keep their order.

    tests/rolling/test_rolling.py                      the short form, as in `make test`
    tests/rolling/test_rolling.py --messages 50000     the long form: 50,000 messages with 1 to 20 ms of work; some minutes
    tests/rolling/test_rolling.py --keep FOLDER        ledgers, data and logs stay there

Eight consumers with a window of 10 and four messages at a time work on a backlog of 100 keys in a group with the Pinned strategy. While they do, they are
replaced five times each (short: three times), and the server is restarted. When all is over the judge (ledger.py) reads what every process wrote. Nothing here depends on
how fast the machine is: what happens next waits for so many messages done, and times are printed, not judged; but for one, which is about keeping and not about speed:
what a killed consumer had not started must not wait as long as its reconnect window (a few milliseconds are usual, hundreds on a machine that is busy, and the window has more)."""
import argparse
import pathlib
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
import unittest

from fleet import GROUP, STREAM, Fleet, now_ms, wait_until
from ledger import ANSWERED_WELL, judge, waits

SEATS, KEYS, WINDOW, SLOTS = 8, 100, 10, 4
MESSAGES_SHORT, WORK_SHORT, ROUNDS_SHORT = 6000, "10-40", 3     # the work takes long enough for everything to happen meanwhile
WORK_LONG, ROUNDS_LONG = "1-20", 5
RECONNECT_MS = 1500
SERVER_RESTARTS = (9, 17)      # with the replacement of this number
SERVER_ENDS = 6                # in the test where consumers stay; the long form: one each second until the end
options = argparse.Namespace(messages=MESSAGES_SHORT, work=None, rounds=ROUNDS_SHORT, keep=None)


POISON_MESSAGES = 300
KILLS_MAX = 5                  # sessions that may die of a message before it is put aside


def figures(texts):
    return f"{len(texts)}, median {statistics.median(texts):.0f} ms, longest {max(texts):.0f} ms" if texts else "none"


class Rolling(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(options.keep or tempfile.mkdtemp()) / self._testMethodName
        folder.mkdir(parents=True)
        if not options.keep:
            self.addCleanup(shutil.rmtree, folder.parent)
        words = ("--started", "--in-order", "--stop-on-term", "--window", WINDOW, "--slots", SLOTS, "--work-ms", options.work, "--retry-ms-max", 100)
        self.fleet = Fleet(folder, POISON_MESSAGES if "poison" in self._testMethodName else options.messages, KEYS, words, SEATS)
        self.addCleanup(self.fleet.close)
        self.began_at = time.monotonic()
        self.faults, self.restarting = [], None
        self.addCleanup(lambda: self.restarting and self.restarting.join())     # before the fleet is closed: it may be starting a server

    def report(self, text):
        print(f"{self._testMethodName}: {text} ({time.monotonic() - self.began_at:.1f} s)", file=sys.stderr, flush=True)

    # --- what happens ---

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
            raise self.faults[0]

    def start_all(self, *words):
        for seat in range(SEATS):
            self.fleet.start(seat, f"seat{seat}", *words)

    def progress(self, nth, count):
        """Waits for the share of all messages that is due before replacement `nth` of `count`."""
        self.fleet.wait_done(self.fleet.message_count * nth // (count + 4))

    def finish(self):
        self.join_background()
        self.fleet.wait_all_settled()
        self.assertEqual(self.fleet.stop_all(), [0] * SEATS)
        self.assertEqual(self.fleet.rows("parked", "list", STREAM, GROUP), [])
        ledgers = self.fleet.ledgers()
        verdict = judge(ledgers, self.fleet.keys)
        self.assertEqual(verdict.faults(), [])
        return ledgers, verdict

    # --- the three proofs ---

    def leave(self, member, way, name_is_used_again):
        """Three ways in which a process is ended by those who mean well."""
        if way == "hook":
            member.end_asked_at = now_ms()
            self.hook(member, name_is_used_again)
        else:
            member.end(signal.SIGTERM, way)
            self.assertEqual(member.code, 0, f"{member.name} left with something unsettled")

    def hook(self, member, name_is_used_again):
        """What an orchestrator runs before it kills, and then it does kill. A name that never comes again is stopped for good, so that its process gets
        nothing from a server that is restarted meanwhile, either. Where the next process has the same name, only who is there can be stopped: "nobody
        of that name" then means that a process which is alive has not come back yet."""
        stop = ("consumer", "stop", member.name, "--wait", "120s")
        where = ("--stream", STREAM, "--group", GROUP)      # a rule for a name that is nowhere needs a place
        again_if = ("cannot reach", "lost the connection", "shutting down")
        if name_is_used_again:
            self.join_background()
            wait_until(lambda: self.fleet.rows(*stop)[0]["meant"] > 0, f"{member.name} to be there")
        else:
            self.fleet.sluice(*stop, *where, "--newcomers", "stop", again_if=again_if)
        member.end(signal.SIGKILL, "hook")
        if not name_is_used_again:
            self.fleet.sluice("consumer", "resume", member.name, *where, again_if=again_if)

    def replace(self, seat, nth):
        """Those with a name of their own overlap, as pods of a deployment; those that keep theirs follow each other."""
        old, way = self.fleet.seats[seat], ("term", "hand-back", "hook")[(seat + nth) % 3]
        next_words = ("--hand-back",) if (seat + nth + 1) % 3 == 1 else ()
        if seat % 2 == 0:
            self.leave(old, way, name_is_used_again=True)
            self.fleet.start(seat, f"seat{seat}", *next_words)
        else:
            self.fleet.start(seat, f"seat{seat}-{nth}", *next_words)
            self.leave(old, way, name_is_used_again=False)

    def test_a_rolling_deploy_loses_nothing_and_repeats_nothing_S1_21_S1_22_S1_23_B2_B4(self):
        """Each of 8 consumers is stopped and replaced several times, and the server is restarted twice meanwhile."""
        self.start_all()
        for nth in range(options.rounds * SEATS):
            self.progress(nth + 1, options.rounds * SEATS)
            if nth in SERVER_RESTARTS:
                self.in_background(self.fleet.restart_server)
            self.replace(nth % SEATS, nth // SEATS)
        ledgers, verdict = self.finish()
        self.check_maintainers_cases(ledgers)
        self.assertEqual([str(one) for one in verdict.charged[:3]], [], "B2: a deploy charges nobody")
        self.assertEqual([str(one) for one in verdict.excused[:3]], [])
        found = waits(ledgers, ("hand-back",))
        self.report(f"{len(ledgers) - SEATS} replaced, lost 0, twice 0, ahead 0, charged 0; handed back: {figures(found.unstarted + found.unstarted_behind)}")

    def check_maintainers_cases(self, ledgers):
        gone = [ledger for ledger in ledgers if ledger.ended_by in ("term", "hand-back")]
        for ledger in gone:
            unanswered = [str(one) for one in ledger.deliveries if one.done_at is not None and one.outcome not in ANSWERED_WELL]
            self.assertEqual(unanswered[:3], [], "S1.21: acks that were sent arrive before the call ends")
        late = [one for ledger in gone for one in ledger.deliveries if one.done_at is not None and ledger.first("stopped")
                and one.done_at > ledger.first("stopped")["t"]]
        self.assertGreater(len(late), 0, "S1.22: nothing was finished after a stop, so nothing was tried")
        back = [one for ledger in gone if ledger.ended_by == "hand-back" for one in ledger.deliveries if one.outcome == "released"]
        self.assertGreater(len(back), 0, "S1.23: nothing was handed back, so nothing was tried")
        self.assertEqual({one.begun_at for one in back}, {None})

    def kill(self, seat, nth):
        """Who is killed has been at work, so that the server knows it as one that tells what it starts."""
        old = self.fleet.seats[seat]
        wait_until(lambda: old.count("settled") >= 3 or self.fleet.done_count() >= self.fleet.message_count, f"work of {old.name}")
        self.assertGreaterEqual(old.count("settled"), 3, "nothing is left to do, long before the end; take more messages or longer work")
        old.end(signal.SIGKILL, "kill")
        self.fleet.start(seat, f"seat{seat}" if seat % 2 == 0 else f"seat{seat}-{nth}", "--reconnect-ms", RECONNECT_MS)

    def nobody_is_away(self):
        return all(row["state"] != "away" for row in self.fleet.rows("consumer", "list"))

    def test_killed_consumers_lose_nothing_and_only_started_work_is_repeated_and_charged_B2_B6(self):
        """The same with SIGKILL. What was not started goes on at once and free of charge, what was started after the reconnect window."""
        self.start_all("--reconnect-ms", RECONNECT_MS)
        for nth in range(options.rounds * SEATS):
            self.progress(nth + 1, options.rounds * SEATS)
            if nth in SERVER_RESTARTS:      # what the dead hold over a restart is theirs until the lease ends, 30 s: another test
                wait_until(self.nobody_is_away, "the end of all reconnect windows")
                self.in_background(self.fleet.restart_server)
                self.join_background()
            self.kill(nth % SEATS, nth // SEATS)
        ledgers, verdict = self.finish()
        self.assertGreater(len(verdict.excused), 0, "nobody was killed in the middle of work, so nothing was tried")
        self.assertGreater(len(verdict.charged), 0, "B2: work that was started and died is charged")
        self.check_waits(ledgers, verdict)

    def check_waits(self, ledgers, verdict):
        found = waits(ledgers, ("kill",))
        self.assertGreater(len(found.unstarted), 0)
        self.assertEqual([ms for ms in found.unstarted if ms >= RECONNECT_MS], [], "what was not started waited for the reconnect window of the dead")
        # An order of things, not a time: nobody gets started work of the dead before their window ends, unless they come back under their name.
        self.assertEqual([ms for ms in self.started_waits_of_strangers(ledgers) if ms < RECONNECT_MS], [])
        self.report(f"{options.rounds * SEATS} killed, lost 0, twice 0 but for {len(verdict.excused)} in the middle of work, ahead 0, charged {len({one.message for one in verdict.charged})}, all of them started; "
                    f"from kill to the next consumer: unstarted {figures(found.unstarted)}; behind a started one of the key {figures(found.unstarted_behind)}; "
                    f"started {figures(found.started)}")

    def started_waits_of_strangers(self, ledgers):
        """Of those whose successor has another name."""
        for ledger in ledgers:
            if ledger.ended_by == "kill" and int(ledger.name[4]) % 2 == 0:
                ledger.ended_by = "kill, but the next one had its name"
        return waits(ledgers, ("kill",)).started

    def everybody_is_hit(self, nth):
        """The first end comes with the first messages, when nobody has told of a start yet; each other one when all have settled some more."""
        before = [member.count("settled") for member in self.fleet.seats]
        for member, count in zip(self.fleet.seats, before):
            member.wait(*(("settled", count + SLOTS + 1) if nth > 0 else ("event",)))

    def test_a_server_that_ends_again_and_again_repeats_nothing_under_consumers_that_stay_B4(self):
        """Restarted and killed in turns. In the long form every second, in the short one as soon as everybody works again."""
        self.start_all()
        ended, is_long = 0, options.messages > MESSAGES_SHORT
        while self.fleet.done_count() < self.fleet.message_count * 8 // 10 and (ended < SERVER_ENDS or is_long):
            self.everybody_is_hit(ended)
            self.fleet.restart_server(signal.SIGKILL if ended % 2 == 0 else signal.SIGTERM)
            ended, began_at = ended + 1, time.monotonic()
            if is_long:
                wait_until(lambda: time.monotonic() > began_at + 1, "a second")
        ledgers, verdict = self.finish()
        self.assertEqual(len(ledgers), SEATS)
        self.assertEqual([str(one) for one in verdict.charged[:3]], [])
        lost = sum(one.outcome == "lost" and one.begun_at is not None for ledger in ledgers for one in ledger.deliveries)
        self.assertEqual(lost, 0, "work that was started was taken away")
        self.report(f"server ended {ended} times, lost 0, twice 0, ahead 0, charged 0")


    def test_poison_that_kills_its_consumers_is_put_aside_and_nobody_else_pays_B2_B6(self):
        """A message after whose start the process dies, each time; its neighbours in the window are innocent."""
        for _ in range(KILLS_MAX):
            member = self.fleet.start(0, "victim", "--slots", 1, "--work-ms", 600_000)
            member.wait("begin")
            member.wait("event", WINDOW)
            wait_until(lambda: self.fleet.rows("consumer", "list")[0]["started"] == 1, "the server to know of it")
            member.end(signal.SIGKILL, "kill")
        self.start_all()
        self.fleet.message_count -= 1
        self.fleet.wait_all_settled()
        self.assertEqual(self.fleet.stop_all(), [0] * SEATS)
        ledgers = self.fleet.ledgers()
        verdict = judge(ledgers, self.fleet.keys)
        parked, = self.fleet.rows("parked", "list", STREAM, GROUP)
        self.assertEqual([(key, number) for key, number in verdict.lost], [("stream-0", 0)], "the first one is the one that kills")
        self.assertEqual({ledger.deliveries[0].message for ledger in ledgers[:KILLS_MAX]}, {("stream-0", 0)})
        self.assertEqual((verdict.twice, verdict.overcharged), ([], []))
        self.assertEqual({one.message for one in verdict.charged}, {("stream-0", 0)}, "B2: the neighbours were charged")
        self.report(f"parked after {KILLS_MAX} kills: {parked['reason']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=MESSAGES_SHORT)
    parser.add_argument("--work", help="milliseconds of work: A or A-B")
    parser.add_argument("--keep")
    _, rest = parser.parse_known_args(namespace=options)
    is_long = options.messages > MESSAGES_SHORT
    options.work = options.work or (WORK_LONG if is_long else WORK_SHORT)
    options.rounds = ROUNDS_LONG if is_long else ROUNDS_SHORT
    unittest.main(module=sys.modules[Rolling.__module__], argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
