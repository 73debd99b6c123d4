#!/usr/bin/env python3
"""The judge of the workers must be able to find: each fault once, planted in ledgers that are right otherwise."""
import unittest

from work_ledger import CLOCK_STEP_MS, Kill, judge, read_runs

MESSAGES = ("a", "b")
KINDS = ("lost", "unknown", "twice", "stale", "excused", "charged", "overcharged")


class Judge(unittest.TestCase):
    def setUp(self):
        self.now, self.lines, self.killed = 0, [], {}

    # --- a story: each thing at the next millisecond ---

    def line(self, what, worker, name, token, attempt):
        self.now += 1
        self.lines.append(f"{self.now}.0 {what} {name} {token} {attempt} {worker}")

    def begin(self, worker, name, token, attempt=1):
        self.line("begin", worker, name, token, attempt)

    def done(self, worker, name, token, attempt=1):
        self.line("done", worker, name, token, attempt)

    def whole(self, worker, name, token, attempt=1):
        self.begin(worker, name, token, attempt)
        self.done(worker, name, token, attempt)

    def kill(self, worker, sure_before_ms=0):
        """sure_before_ms: what was finished less than that before is not sure."""
        self.now += 1
        self.killed[worker] = Kill(self.now, self.now - sure_before_ms)

    def expect(self, **counts):
        verdict = judge(read_runs(self.lines), MESSAGES, self.killed)
        self.assertEqual({kind: len(getattr(verdict, kind)) for kind in KINDS}, {**dict.fromkeys(KINDS, 0), **counts})
        return verdict

    # --- what is right ---

    def test_all_is_well(self):
        self.begin("x", "a", 1)
        self.whole("y", "b", 2)
        self.done("x", "a", 1)
        self.assertEqual(self.expect().faults(), [])

    def test_work_that_a_kill_cut_off_may_be_done_again_and_charged(self):
        self.begin("x", "a", 1)
        self.whole("x", "b", 2)
        self.kill("x")
        self.whole("y", "a", 3, attempt=2)
        self.assertEqual(self.expect(excused=1, charged=1).faults(), [])

    def test_work_that_ended_after_its_worker_may_be_done_again(self):
        self.begin("x", "a", 1)
        self.whole("x", "b", 2)
        self.kill("x")
        self.done("x", "a", 1)
        self.whole("y", "a", 3, attempt=2)
        self.expect(excused=1, charged=1)

    def test_work_that_ended_a_moment_before_the_kill_may_be_done_again(self):
        self.whole("x", "b", 1)
        self.whole("x", "a", 2)
        self.kill("x", sure_before_ms=2)
        self.whole("y", "a", 3, attempt=2)
        self.expect(excused=1, charged=1)

    def test_an_orphan_may_begin_when_somebody_else_has_finished_its_message(self):
        self.whole("x", "b", 1)
        self.kill("x")
        self.whole("y", "a", 3, attempt=2)
        self.whole("x", "a", 2)
        self.assertEqual(self.expect(excused=1, charged=1).faults(), [])

    # --- what is not ---

    def test_a_message_that_nobody_had_is_lost(self):
        self.whole("x", "a", 1)
        self.assertEqual(self.expect(lost=1).faults(), ["lost: 1, such as b"])

    def test_a_message_that_nobody_finished_is_lost(self):
        self.whole("x", "a", 1)
        self.begin("x", "b", 2)
        self.kill("x")
        self.begin("y", "b", 3, attempt=2)
        self.expect(lost=1, excused=1, charged=1)

    def test_a_run_of_what_nobody_appended_is_found(self):
        self.whole("x", "a", 1)
        self.whole("x", "b", 2)
        self.whole("x", "c", 3)
        self.expect(unknown=1)

    def test_work_that_is_done_again_is_found(self):
        self.whole("x", "a", 1)
        self.whole("x", "b", 2)
        self.whole("y", "a", 3)
        self.assertTrue(self.expect(twice=1).faults()[0].startswith("twice: 1, such as a at y"))

    def test_work_that_begins_elsewhere_while_it_runs_is_found(self):
        self.begin("x", "a", 1)
        self.whole("y", "a", 2)
        self.done("x", "a", 1)
        self.whole("x", "b", 3)
        self.expect(twice=1)

    def test_work_that_the_same_worker_does_again_is_found(self):
        self.whole("x", "a", 1)
        self.whole("x", "a", 2)
        self.whole("x", "b", 3)
        self.expect(twice=1)

    def test_a_kill_is_no_excuse_for_what_was_finished_long_before(self):
        self.whole("x", "a", 1)
        self.whole("x", "b", 2)
        self.kill("x", sure_before_ms=2)
        self.whole("y", "a", 3, attempt=2)
        self.expect(twice=1, charged=1)

    def test_a_kill_is_no_excuse_for_what_another_worker_has(self):
        self.whole("x", "a", 1)
        self.begin("y", "b", 2)
        self.kill("x")
        self.whole("z", "b", 3)
        self.expect(twice=1)

    def test_the_third_run_needs_an_excuse_for_both_before(self):
        self.whole("x", "b", 1)
        self.whole("x", "a", 2)
        self.begin("y", "a", 3)
        self.kill("y")
        self.whole("z", "a", 4)
        self.expect(twice=2)

    def test_a_charge_for_what_was_never_begun_is_found(self):
        self.whole("x", "a", 1)
        self.whole("x", "b", 2, attempt=2)
        self.expect(charged=1, overcharged=1)

    def test_a_token_that_does_not_grow_is_found(self):
        self.whole("x", "b", 1)
        self.begin("x", "a", 3)
        self.kill("x")
        self.whole("y", "a", 2)
        self.assertIn("stale: 1, such as a at y: token 2, attempt 1, begun 5.0, done 6.0", self.expect(stale=1, twice=1).faults())

    def test_a_token_that_two_have_is_found(self):
        self.whole("x", "b", 1)
        self.begin("x", "a", 2)
        self.kill("x")
        self.whole("y", "a", 2)
        self.expect(stale=1, excused=1)

    def test_who_lives_is_no_orphan(self):
        self.whole("y", "b", 1)
        self.whole("y", "a", 3)
        self.whole("x", "a", 2)
        self.expect(stale=1, twice=1)

    def test_who_began_long_before_the_kill_is_no_orphan(self):
        self.whole("y", "b", 1)
        self.whole("y", "a", 3)
        self.begin("x", "a", 2)
        self.now += CLOCK_STEP_MS
        self.kill("x")
        self.expect(stale=1, excused=1)

    def test_a_ledger_with_an_end_too_many_is_refused(self):
        self.whole("x", "a", 1)
        self.done("x", "a", 1)
        with self.assertRaises(ValueError):
            read_runs(self.lines)

    def test_a_ledger_with_an_end_without_a_beginning_is_refused(self):
        self.done("x", "a", 1)
        with self.assertRaises(KeyError):
            read_runs(self.lines)


if __name__ == "__main__":
    unittest.main()
