#!/usr/bin/env python3
"""The judge must be able to find: each fault once, planted in ledgers that are right otherwise."""
import unittest

from ledger import Ledger, judge, waits

KEYS = {"a": 2, "b": 1}


class Story:
    """Ledgers, written by hand: what(consumer, message, ...) at the next millisecond."""

    def __init__(self):
        self.now, self.ledgers = 0, {}

    def line(self, consumer, what, **more):
        self.now += 1
        self.ledgers.setdefault(consumer, Ledger(consumer)).take({"t": self.now, "what": what, **more})

    def event(self, consumer, key, number, token, retry=0):
        self.line(consumer, "event", id=f"{key}{number}", key=key, revision=number, token=token, retry=retry)

    def begin(self, consumer, key, number):
        self.line(consumer, "begin", id=f"{key}{number}")

    def done(self, consumer, key, number):
        self.line(consumer, "done", id=f"{key}{number}")

    def settled(self, consumer, key, number, outcome="settled"):
        self.line(consumer, "settled", id=f"{key}{number}", outcome=outcome)

    def whole(self, consumer, key, number, token, retry=0):
        self.event(consumer, key, number, token, retry)
        self.begin(consumer, key, number)
        self.done(consumer, key, number)
        self.settled(consumer, key, number)

    def kill(self, consumer):
        self.now += 1
        self.ledgers[consumer].ended_by, self.ledgers[consumer].end_asked_at = "kill", self.now

    def verdict(self):
        return judge(list(self.ledgers.values()), KEYS)


class Judge(unittest.TestCase):
    def setUp(self):
        self.story = Story()

    def expect(self, **counts):
        verdict = self.story.verdict()
        kinds = ("lost", "twice", "ahead", "overcharged", "unasked", "excused", "charged")
        self.assertEqual({kind: len(getattr(verdict, kind)) for kind in kinds}, {**dict.fromkeys(kinds, 0), **counts})

    def test_all_is_well(self):
        self.story.whole("x", "a", 0, 1)
        self.story.whole("y", "b", 0, 2)
        self.story.whole("y", "a", 1, 3)
        self.expect()

    def test_a_message_that_nobody_finished_is_lost(self):
        self.story.whole("x", "a", 0, 1)
        self.story.event("x", "a", 1, 2)
        self.story.begin("x", "a", 1)
        self.expect(lost=2)

    def test_work_that_is_begun_again_after_it_was_finished_is_found(self):
        self.story.whole("x", "a", 0, 1)
        self.story.whole("y", "a", 0, 2)
        self.story.whole("y", "a", 1, 3)
        self.story.whole("y", "b", 0, 4)
        self.expect(twice=1)

    def test_work_that_is_begun_elsewhere_while_it_runs_is_found(self):
        self.story.event("x", "a", 0, 1)
        self.story.begin("x", "a", 0)
        self.story.whole("y", "a", 0, 2)
        self.story.whole("y", "a", 1, 3)
        self.story.whole("y", "b", 0, 4)
        self.expect(twice=1)

    def test_work_that_a_kill_cut_off_may_be_done_again_and_is_charged(self):
        self.story.event("x", "a", 0, 1)
        self.story.begin("x", "a", 0)
        self.story.kill("x")
        self.story.whole("y", "a", 0, 2, retry=1)
        self.story.whole("y", "a", 1, 3)
        self.story.whole("y", "b", 0, 4)
        self.expect(excused=1, charged=1)

    def test_a_kill_is_no_excuse_for_what_was_answered(self):
        self.story.whole("x", "a", 0, 1)
        self.story.kill("x")
        self.story.whole("y", "a", 0, 2)
        self.story.whole("y", "a", 1, 3)
        self.story.whole("y", "b", 0, 4)
        self.expect(twice=1)

    def test_a_charge_for_what_was_never_begun_is_found(self):
        self.story.event("x", "a", 0, 1)
        self.story.kill("x")
        self.story.whole("y", "a", 0, 2, retry=1)
        self.story.whole("y", "a", 1, 3)
        self.story.whole("y", "b", 0, 4)
        self.expect(overcharged=1, charged=1)

    def test_running_ahead_in_a_key_is_found_and_other_keys_do_not_matter(self):
        self.story.event("x", "a", 0, 1)
        self.story.begin("x", "a", 0)
        self.story.whole("y", "b", 0, 2)
        self.story.event("y", "a", 1, 3)
        self.story.begin("y", "a", 1)
        self.story.done("x", "a", 0)
        self.story.done("y", "a", 1)
        self.expect(ahead=1)

    def test_a_delivery_after_stopped_is_found_unless_a_new_call_was_made(self):
        self.story.whole("x", "a", 0, 1)
        self.story.line("x", "stopped", asked_by="consumer")
        self.story.whole("x", "b", 0, 2)
        self.story.line("x", "connected")
        self.story.whole("x", "a", 1, 3)
        self.expect(unasked=1)

    def test_waits_are_sorted_by_what_they_wait_behind(self):
        self.story.event("x", "a", 0, 1)
        self.story.begin("x", "a", 0)
        self.story.event("x", "a", 1, 2)
        self.story.event("x", "b", 0, 3)
        self.story.kill("x")
        killed_at = self.story.now
        self.story.event("y", "b", 0, 4)
        self.story.event("y", "a", 0, 5)
        self.story.event("y", "a", 1, 6)
        found = waits(list(self.story.ledgers.values()), ("kill",))
        self.assertEqual((found.unstarted, found.started, found.unstarted_behind), ([1], [2], [3]))
        self.assertEqual(killed_at, 5)


if __name__ == "__main__":
    unittest.main()
