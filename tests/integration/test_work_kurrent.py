"""`sluice work --from kurrentdb://...`: a server without tokens, confirmations and Stop, so that the worker has to keep the rules alone.

The server is `plain`, sluice without its extensions (tests/tools/plain.h), which refuses whoever uses them. Its groups have ten minutes for a
message: what comes again within a test was given back, and did not run out."""
import signal
import unittest

from client_case import BUILD, Server, free_port
from test_work_rules import BEGIN, DONE, WAIT, RulesCase
from work_case import LATE_S, LOST, UNCLEAN, wait_until

PLAIN = BUILD / "tests/tools/plain"
PATIENT = ("--message-timeout", "10m", "--max-retry-count", 100)
SOON = ("--message-timeout", "3s", "--max-retry-count", 100)  # unlike KurrentDB, `plain` remembers over its death who had a message


class KurrentCase(RulesCase):
    program = PLAIN

    def source(self, server=None):
        return f"kurrentdb://{server or self.server.grpc}/{self.stream}/g?tls=false"

    def fill(self, count, server=None, group_words=PATIENT):
        super().fill(count, server, group_words)

    def counts(self, work):
        return self.state(work)["workers"][0]["counts"]

    def held(self, work):
        return self.state(work)["workers"][0]["held"]

    def unsure(self, work):
        return work.report()["workers"][0]["unsure"]

    def own_server(self, port=None):
        server = Server(str(self.folder / "data"), port=port or free_port(), program=PLAIN)
        self.addCleanup(lambda: server.process.poll() is None and server.end(signal.SIGKILL))
        return server

    def assert_rest_is_done_by_successor(self, total, server=None):
        """Each message was finished by exactly one of all workers, and nothing is left."""
        other = self.work("--from", self.source(server), "--exec", DONE, "--grace", "5s")
        self.ledger.wait("done", total)
        self.assertEqual(other.end()[0], 0, other.log())
        self.assertEqual(len(set(self.ledger.of("done"))), total)
        self.assertEqual(len(self.ledger.of("done")), total)
        info = self.info(server)
        self.assertEqual((info["in_flight"], info["waiting_for_retry"], info["parked"]), (0, 0, 0), info)


class Plain(KurrentCase):
    def test_the_server_decides_what_can_be_done_and_the_state_says_so_S1_28(self):
        self.fill(1)
        for address, kind in ((self.source(), "kurrentdb"), (f"sluice://{self.server.grpc}/{self.stream}/g", "sluice")):
            work = self.work("--from", address, "--exec", DONE, "--grace", "5s")
            shown = self.state(work)["workers"][0]["source"]
            self.assert_has(shown, kind=kind, connected=True, extensions=False, keeps_delays=False)
            self.assertEqual(work.end()[0], 0, work.log())
        self.ledger.wait("done", 1)


class Leaving(KurrentCase):
    def test_sigterm_begins_nothing_finishes_what_runs_and_the_rest_is_somebody_elses_at_once_S1_20_S1_21_S1_22_S1_23(self):
        self.fill(9)
        work = self.waiting("--slots", 2, "--window", 6, "--grace", "20s")
        begun = self.ledger.wait("begin", 2)
        wait_until(lambda: self.counts(work)["offered"] == 6, "a full window")
        work.send(signal.SIGTERM)
        wait_until(lambda: self.state(work)["held"] == 2, "the hand-back")
        self.assertEqual(self.ledger.of("done"), [])
        self.go()
        self.assertEqual(work.wait()[0], 0, work.log())
        self.assertEqual(self.ledger.of("begin"), begun)
        self.assertEqual(sorted(self.ledger.of("done")), sorted(begun))
        drain = self.drain_of(work)
        self.assert_has(drain, reason="SIGTERM", clean=True, finished=2, handed_back=4, interrupted=0, abandoned=0, acks_unconfirmed=0)
        self.assertEqual(self.unsure(work), 6)
        self.assert_rest_is_done_by_successor(9)

    def test_unstarted_work_can_be_finished_too_and_nothing_new_is_taken_S1_20_S1_22(self):
        self.fill(9)
        work = self.waiting("--slots", 2, "--window", 6, "--grace", "20s", "--finish-unstarted")
        self.ledger.wait("begin", 2)
        wait_until(lambda: self.counts(work)["offered"] == 6, "a full window")
        work.send(signal.SIGTERM)
        wait_until(lambda: "draining" in work.log(), "the drain")
        self.go()
        self.assertEqual(work.wait()[0], 0, work.log())
        self.assertEqual(len(set(self.ledger.of("done"))), 6)
        self.assert_has(self.drain_of(work), clean=True, finished=6, handed_back=0)
        self.assertEqual(self.unsure(work), 6)
        self.assert_rest_is_done_by_successor(9)

    def test_a_handler_that_does_not_finish_in_time_is_ended_and_its_message_goes_back_S1_23_S2_6_S2_7(self):
        self.fill(3)
        grace_s = 1.5
        work = self.work("--from", self.source(), "--exec", f"trap '' TERM; {BEGIN}; while :; do sleep 100; done", "--slots", 1,
                         "--window", 2, "--grace", f"{grace_s}s")
        self.ledger.wait("begin", 1)
        wait_until(lambda: self.counts(work)["offered"] == 2, "a full window")
        code, seconds = work.end()
        self.assertEqual(code, UNCLEAN, work.log())
        self.assertLessEqual(seconds, grace_s + LATE_S, work.log())
        self.assert_has(self.drain_of(work), clean=False, finished=0, handed_back=1, interrupted=1, abandoned=0)
        self.assertEqual(self.unsure(work), 2)
        self.assert_no_process_left()
        self.assert_rest_is_done_by_successor(3)

    def leave_frozen(self, server, *words):
        """A worker whose only work ends in a drain, while the server reads nothing any more."""
        work = self.work("--from", self.source(server.grpc), "--exec", f"{BEGIN}; {WAIT}; {DONE}", "--slots", 1, "--window", 1, "--grace", "6s",
                         "--flush", "200ms", "--close", "3s", *words, GO=str(self.folder / "go"))
        self.ledger.wait("begin", 1)
        server.process.send_signal(signal.SIGSTOP)
        work.send(signal.SIGTERM)
        wait_until(lambda: "draining" in work.log(), "the drain")
        self.go()
        code, seconds = work.wait()
        self.assertEqual(code, UNCLEAN, work.log())
        self.assertLessEqual(seconds, 6 + LATE_S, work.log())
        return work

    def test_a_server_that_reads_nothing_any_more_is_no_clean_end_S1_21_S3_36(self):
        server = self.own_server()
        self.fill(2, server=server.grpc)
        work = self.leave_frozen(server)
        self.assertEqual([line["part"] for line in self.lines(work, "a part of the shutdown took all of its time")], ["flushing"])
        self.assertEqual([line["said"] for line in self.lines(work, "a message is left behind")], ["ack"])
        self.assertEqual(self.drain_of(work)["acks_unconfirmed"], 1)
        server.process.send_signal(signal.SIGCONT)
        self.assert_rest_is_done_by_successor(2, server=server.grpc)

    def test_finished_work_that_the_server_never_read_of_is_not_done_again_by_the_next_process_B3(self):
        server = self.own_server()
        self.fill(2, server=server.grpc, group_words=SOON)
        words = ("--ack-file", self.folder / "acks")
        self.leave_frozen(server, *words)
        server.end(signal.SIGKILL)
        server = self.own_server(server.port)
        again = self.work("--from", self.source(server.grpc), "--exec", DONE, "--grace", "5s", *words)
        wait_until(lambda: self.counts(again)["acks_replayed"] == 1, "the word about the first")
        self.ledger.wait("done", 2)
        wait_until(lambda: self.info(server.grpc)["in_flight"] == 0, "the last acks")
        self.assertEqual(again.end()[0], 0, again.log())
        self.assertEqual((len(self.ledger.of("done")), len(set(self.ledger.of("done")))), (2, 2))


class Retries(KurrentCase):
    FAIL_ONCE = f'{BEGIN}; [ "$SLUICE_ATTEMPT" -ge 2 ] || exit 75; {DONE}'

    def test_a_pause_is_kept_by_the_worker_and_the_message_comes_again_charged(self):
        self.fill(2)
        work = self.work("--from", self.source(), "--exec", self.FAIL_ONCE, "--slots", 2, "--retry-first", "2s", "--grace", "5s")
        wait_until(lambda: self.held(work)["delayed"] == 2, "the pauses")
        self.ledger.wait("done", 2)
        self.assertEqual(work.end()[0], 0, work.log())
        self.assertEqual(sorted(self.ledger.of("begin")), sorted(2 * self.ledger.of("done")))
        self.assertEqual({line.split()[2] for line in self.ledger.lines() if line.startswith("done")}, {"2"})
        self.assertEqual(self.unsure(work), 4)

    def test_a_drain_does_not_wait_for_a_pause_and_the_message_is_somebody_elses_at_once_S1_20_S1_23_S3_4(self):
        self.fill(3)
        work = self.work("--from", self.source(), "--exec", self.FAIL_ONCE, "--slots", 1, "--window", 3, "--retry-first", "1h",
                         "--retry-max", "1h", "--grace", "60s")
        wait_until(lambda: self.held(work)["delayed"] == 3, "the pauses")
        code, seconds = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertLess(seconds, 10)
        self.assertEqual(self.ledger.of("done"), [])
        self.assertEqual(self.unsure(work), 3)
        self.assert_rest_is_done_by_successor(3)


class Restarts(KurrentCase):
    def test_a_server_that_is_killed_is_found_again_and_nothing_is_lost_S1_27(self):
        """What runs when the connection breaks may be somebody else's from then on, so it is ended, and comes again."""
        server = self.own_server()
        self.fill(6, server=server.grpc, group_words=SOON)
        work = self.work("--from", self.source(server.grpc), "--exec", f"{BEGIN}; {WAIT}; {DONE}", "--slots", 2, "--window", 4,
                         "--grace", "10s", GO=str(self.folder / "go"))
        begun = self.ledger.wait("begin", 2)
        server.end(signal.SIGKILL)
        wait_until(lambda: work.page("/readyz")[0] == 503, "not ready any more")
        wait_until(lambda: self.state(work)["held"] == 0, "the end of what ran")
        self.assertEqual(self.ledger.of("done"), [])
        self.go()
        server = self.own_server(server.port)
        wait_until(lambda: work.page("/readyz")[0] == 200, "the way back")
        self.ledger.wait("done", 6)
        wait_until(lambda: self.info(server.grpc)["in_flight"] == 0, "the last acks")
        self.assertEqual(work.end()[0], 0, work.log())
        self.assertEqual(len(set(self.ledger.of("done"))), 6)
        self.assertEqual(len(self.ledger.of("done")), 6)
        again = [message for message in self.ledger.of("begin") if self.ledger.of("begin").count(message) > 1]
        self.assertEqual(sorted(again), sorted(2 * begun))
        self.assertEqual(self.unsure(work), 6)

    def test_a_server_that_is_restarted_in_order_repeats_nothing_S1_27(self):
        server = self.own_server()
        self.fill(40, server=server.grpc)
        work = self.work("--from", self.source(server.grpc), "--exec", DONE, "--slots", 4, "--grace", "10s")
        self.ledger.wait("done", 5)
        self.assertEqual(server.end(), 0)
        server = self.own_server(server.port)
        self.ledger.wait("done", 40)
        wait_until(lambda: self.info(server.grpc)["in_flight"] == 0, "the last acks")
        self.assertEqual(work.end()[0], 0, work.log())
        self.assertEqual(len(set(self.ledger.of("done"))), 40)
        self.assertEqual(len(self.ledger.of("done")), 40)

    def test_a_server_that_stays_away_ends_the_worker_with_its_own_exit_code_B12_B19(self):
        server = self.own_server()
        self.fill(1, server=server.grpc)
        work = self.work("--from", self.source(server.grpc), "--exec", DONE, "--give-up", "1s", "--restarts", 0, "--grace", "5s")
        self.ledger.wait("done", 1)
        server.end(signal.SIGKILL)
        self.assertEqual(work.wait()[0], LOST, work.log())
        self.assertEqual((work.report()["end"], work.report()["workers"][0]["end"]), ("lost", "lost"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
