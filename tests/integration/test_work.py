"""`sluice work` as a process: what handlers get, what their ends mean, and how it leaves."""
import json
import os
import signal
import time
import unittest

from client_case import USAGE, Server, deaf_port, free_port
from work_case import LATE_S, LOST, UNCLEAN, Watch, WorkCase, processes_with, reset, wait_until

DONE = 'echo "done $SLUICE_ID" >> "$LEDGER"'
WAIT = 'while [ ! -e "$GO" ]; do sleep 0.02; done'
BEGIN = 'echo "begin ${SLUICE_ID:-?}" >> "$LEDGER"'  # who reads lines has no such variable


class Handlers(WorkCase):
    def test_a_process_for_each_message_gets_body_and_environment_and_its_exit_code_decides(self):
        self.fill(4, group_words=("--max-retry-count", 100))
        script = (f'{BEGIN}; body=$(cat); n=$(echo "$body" | tr -dc 0-9); '
                  'echo "$n $SLUICE_STREAM $SLUICE_TYPE $SLUICE_REVISION $SLUICE_ATTEMPT $SLUICE_GROUP" >> "$LEDGER"; '
                  'case $n in 1) echo "no such customer" >&2; exit 65;; 2) [ "$SLUICE_ATTEMPT" -ge 3 ] || exit 75;; '
                  f'3) [ "$SLUICE_ATTEMPT" -ge 2 ] || exit 1;; esac; {DONE}')
        work = self.work("--from", self.source(), "--exec", script, "--slots", 2, "--retry-first", "10ms", "--grace", "5s")
        self.ledger.wait("done", 3)
        wait_until(lambda: self.info()["parked"] == 1, "the parked one")
        code, _ = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertIn(f"0 {self.stream} t 0 1 g", self.ledger.lines())
        self.assertEqual(len([line for line in self.ledger.lines() if line.startswith("2 ")]), 3)
        self.assertEqual(len([line for line in self.ledger.lines() if line.startswith("3 ")]), 2)
        parked = self.json("parked", "list", self.stream, "g")[0]
        self.assertIn("no such customer", json.dumps(parked))
        self.assertEqual(work.report()["workers"][0]["drain"]["reason"], "SIGTERM")

    def test_a_long_lived_process_answers_line_by_line_and_dies_without_harming_the_others(self):
        self.fill(6)
        program = self.folder / "handler.py"
        program.write_text(
            "import json, os, sys\n"
            "for line in sys.stdin:\n"
            "    message = json.loads(line)\n"
            "    if message['type'] != 'message': continue\n"
            "    n = message['data']['n']\n"
            "    with open(os.environ['LEDGER'], 'a') as ledger: ledger.write(f'begin {n}\\n')\n"
            "    if n == 2 and message['attempt'] == 1: os._exit(9)\n"
            "    with open(os.environ['LEDGER'], 'a') as ledger: ledger.write(f'done {n} {os.getpid()}\\n')\n"
            "    print(json.dumps({'id': message['id'], 'result': 'ack'}), flush=True)\n")
        work = self.work("--from", self.source(), "--lines", f"python3 {program}", "--slots", 1, "--retry-first", "1ms", "--grace", "5s")
        self.ledger.wait("done", 6)
        code, _ = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertEqual(sorted(self.ledger.of("done")), ["0", "1", "2", "3", "4", "5"])
        self.assertEqual(self.ledger.of("begin").count("2"), 2)
        self.assertEqual(len(self.ledger.of("begin")), 7)
        self.assertEqual(len({line.split()[2] for line in self.ledger.lines() if line.startswith("done")}), 2)

    def test_a_process_that_stays_after_the_end_of_its_input_is_ended_within_a_short_grace_S3_28(self):
        self.fill(1)
        script = ('while read -r line; do case $line in *\'"message"\'*) id=${line#*\'"id":"\'}; id=${id%%\'"\'*}; echo "done $id" >> "$LEDGER"; '
                  'printf \'{"id":"%s","result":"ack"}\\n\' "$id";; esac; done; exec sleep 1000')
        work = self.work("--from", self.source(), "--lines", script, "--slots", 1, "--grace", "10s")
        self.ledger.wait("done")
        code, _ = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertTrue(work.report()["clean"], work.report())

    def test_an_http_destination_gets_key_and_token_and_its_status_decides(self):
        self.fill(3)
        statuses = {}

        def answer(number, request):
            n = request.headers["Sluice-Revision"]
            statuses[n] = statuses.get(n, 0) + 1
            return {"0": 200, "1": 422, "2": 503 if statuses[n] == 1 else 204}[n]
        destination = self.destination(answer)
        work = self.work("--from", self.source(), "--http", destination.url, "--slots", 1, "--retry-first", "1ms", "--grace", "5s")
        wait_until(lambda: self.info()["parked"] == 1 and statuses.get("2") == 2, "all three")
        code, _ = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertEqual(statuses, {"0": 1, "1": 1, "2": 2})
        headers = destination.headers[0]
        self.assertEqual(headers["Idempotency-Key"], headers["Sluice-Id"])
        self.assertGreater(int(headers["Sluice-Token"]), 0)
        self.assertEqual(json.loads(destination.bodies[0]), {"n": 0})

    def test_a_message_can_be_appended_to_another_stream_once(self):
        self.fill(3)
        target = f"{self.stream}-copy"
        work = self.work("--from", self.source(), "--append", f"sluice://{self.server.grpc}/{target}", "--grace", "5s")
        wait_until(lambda: "2" in self.out("read", target, code=0) if self.has(target) else False, "the copies")
        code, _ = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertEqual(len(self.json("read", target)), 3)

    def has(self, stream):
        return len(self.json("read", "--all", "--filter-stream", stream)) == 3

    def test_a_schedule_calls_its_destination(self):
        destination = self.destination()
        work = self.work("--from", "schedule:every=20ms", "--http", destination.url, "--grace", "5s")
        destination.wait(3)
        code, _ = work.end()
        self.assertEqual(code, 0, work.log())


class Leaving(WorkCase):
    def test_sigterm_closes_finishes_what_runs_hands_back_the_rest_and_says_so_S2_1_S3_27_S3_28_S3_35(self):
        self.fill(8)
        work = self.work("--from", self.source(), "--exec", f"{BEGIN}; {WAIT}; {DONE}", "--slots", 2, "--window", 6, "--grace", "20s",
                         GO=str(self.folder / "go"))
        begun = self.ledger.wait("begin", 2)
        work.wait_offered(6)
        work.send(signal.SIGTERM)
        wait_until(lambda: work.page("/readyz")[0] == 503, "not ready any more")
        self.assertEqual(work.page("/livez")[0], 200)
        (self.folder / "go").touch()
        code, seconds = work.wait()
        self.assertEqual((code, seconds < 15), (0, True), work.log())
        self.assertEqual(sorted(self.ledger.of("done")), sorted(begun))
        report = work.report()["workers"][0]["drain"]
        self.assertEqual((report["reason"], report["clean"], report["finished"], report["interrupted"]), ("SIGTERM", True, 2, 0))
        self.assertEqual(report["handed_back"], 4)
        self.assertIn("stopped", work.log().splitlines()[-1])
        self.assertEqual(self.info()["in_flight"], 0)
        other = self.work("--from", self.source(), "--exec", DONE, "--grace", "5s")
        self.ledger.wait("done", 8)
        self.assertEqual(other.end()[0], 0)
        self.assertEqual(len(set(self.ledger.of("done"))), 8)

    def test_a_signal_that_comes_before_a_worker_listens_begins_its_drain_S3_27(self):
        self.fill(1)
        secret = self.folder / "secret"
        os.mkfifo(secret)
        work = self.work("--from", self.source(), "--exec", DONE, "--user", "anna", "--password-file", secret, is_ready=False)
        with open(secret, "w", encoding="utf-8") as pipe:  # which it looks at before there is a loop; now it waits for us
            work.send(signal.SIGTERM)
            secret.unlink()
            secret.write_text("secret\n")  # for the next look
            pipe.write("secret\n")
        self.assertEqual(work.wait()[0], 0, work.log())
        self.assertEqual(work.report()["workers"][0]["drain"]["reason"], "SIGTERM")

    def test_an_operator_drains_a_worker_and_it_ends_cleanly_B10(self):
        self.fill(1)
        work = self.work("--from", self.source(), "--exec", DONE, "--name", "seven", "--grace", "10s")
        self.ledger.wait("done", 1)
        self.run_sluice("consumer", "stop", "seven", "--stream", self.stream, "--group", "g", "--wait", "30s")
        code, _ = work.wait()
        self.assertEqual(code, 0, work.log())
        self.assertEqual(work.report()["workers"][0]["drain"]["reason"], "operator")

    def test_the_deadline_of_an_operator_is_kept_when_it_is_shorter_than_the_grace_B10(self):
        self.fill(1)
        work = self.work("--from", self.source(), "--exec", f"{BEGIN}; exec sleep 1000", "--name", "seven", "--grace", "1h")
        self.ledger.wait("begin", 1)
        self.run_sluice("consumer", "stop", "seven", "--stream", self.stream, "--group", "g", "--deadline", "1s")
        self.assertEqual(work.wait()[0], UNCLEAN, work.log())
        report = work.report()["workers"][0]["drain"]
        self.assertEqual((report["reason"], report["grace_seconds"], report["interrupted"]), ("operator", 1, 1))
        self.assertEqual(self.info()["in_flight"], 0)

    def test_a_second_signal_does_not_wait_S3_2(self):
        self.fill(1)
        work = self.work("--from", self.source(), "--exec", f"{BEGIN}; exec sleep 1000", "--grace", "60s")
        self.ledger.wait("begin", 1)
        work.send(signal.SIGTERM)
        wait_until(lambda: "draining" in work.log(), "the drain")
        code, seconds = work.end(signal.SIGINT)
        self.assertEqual(code, UNCLEAN, work.log())
        self.assertLess(seconds, 10)
        report = work.report()["workers"][0]["drain"]
        self.assertEqual((report["reason"], report["escalated"], report["interrupted"]), ("SIGTERM", True, 1))
        self.assert_no_process_left()

    def test_several_workers_of_one_process_drain_side_by_side_S2_4_S2_17_S4_16(self):
        """Each handler waits until all three have heard of the drain: one after the other they would wait for ever."""
        self.fill(2)
        other = f"{self.stream}-two"
        self.run_sluice("append", other, "--type", "t", "--data", "{}")
        self.run_sluice("group", "create", other, "g", "--start", "start")
        script = (f'{BEGIN}; read left <&3; echo "draining $SLUICE_ID" >> "$LEDGER"; '
                  f'until [ "$(grep -c ^draining "$LEDGER")" = 3 ]; do sleep 0.02; done; {DONE}')
        file = self.folder / "workers.ini"
        file.write_text("[work]\ngrace = 20s\n"
                        f"[work one]\nfrom = {self.source()}\nexec = {script}\nslots = 2\n"
                        f"[work two]\nfrom = sluice://{self.server.grpc}/{other}/g\nexec = {script}\n")
        work = self.work("-c", file)
        self.ledger.wait("begin", 3)
        code, _ = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertEqual(len(self.ledger.of("done")), 3)
        self.assertEqual([row["name"] for row in work.report()["workers"]], ["one", "two"])

    def test_no_such_group_is_told_and_has_its_own_exit_code(self):
        work = self.work("--from", f"sluice://{self.server.grpc}/none/none", "--exec", "true", "--restarts", 0, is_ready=False)
        code, _ = work.wait()
        self.assertEqual(code, LOST, work.log())
        self.assertIn("none", work.log())

    def test_a_budget_that_does_not_fit_is_refused_with_the_arithmetic_S3_32_B7(self):
        sentence = self.complaint("work", "--from", "memory:count=1", "--exec", "true", "--grace", "2s", "--settle", "30s", code=USAGE)
        self.assertIn("30s", sentence)
        self.assertIn("does not fit", sentence)


class Hostile(WorkCase):
    """Budget kept, no process left, nothing lost, whatever the handler does: as a process for each message, and as one that stays."""

    GRACE_S = 1.5
    GROUPS = {"--exec": "g", "--lines": "lines"}

    def start(self, kind, script):
        return self.work("--from", self.source(group=self.GROUPS[kind]), kind, "read -r message; " * (kind == "--lines") + script,
                         "--slots", 1, "--window", 1, "--grace", f"{self.GRACE_S}s")

    def end_all(self, works):
        """At the same time; exit code, and how long it took, of each."""
        with Watch() as watch:
            for work in works:
                work.send(signal.SIGTERM)
            return [(work.wait()[0], watch.seconds()) for work in works]

    def check(self, script):
        """Both kinds side by side, each with a group of its own on the same message."""
        self.fill(1)
        self.run_sluice("group", "create", self.stream, "lines", "--start", "start")
        works = [self.start(kind, script) for kind in self.GROUPS]
        self.ledger.wait("begin", 2)
        for work, (code, seconds) in zip(works, self.end_all(works)):
            self.assertLessEqual(seconds, self.GRACE_S + LATE_S, work.log())
            self.assertEqual(code, UNCLEAN, work.log())
            report = work.report()["workers"][0]["drain"]
            self.assertEqual((report["interrupted"], report["abandoned"], report["acks_unconfirmed"]), (1, 0, 0), report)
        self.assert_no_process_left()
        self.assertEqual([self.info(group=group)["in_flight"] for group in self.GROUPS.values()], [0, 0])
        others = [self.work("--from", self.source(group=group), "--exec", f'[ "$SLUICE_ATTEMPT" = 1 ] && {DONE}', "--grace", "5s")
                  for group in self.GROUPS.values()]
        self.ledger.wait("done", 2)
        self.assertEqual([code for code, _ in self.end_all(others)], [0, 0])

    def test_a_handler_that_is_frozen_S2_6_B6(self):
        self.check(f"{BEGIN}; kill -STOP $$; sleep 1000")

    def test_a_handler_that_waits_for_a_frozen_child_is_ended_at_the_maximum_where_there_are_no_leases_B8(self):
        work = self.work("--from", "schedule:every=1h,at-start=yes", "--exec", f"{BEGIN}; sh -c 'kill -STOP $$'; {DONE}",
                         "--timeout", 0, "--hold-max", "1s", "--retry-first", "1h", "--retry-max", "1h", "--grace", "2s")
        wait_until(lambda: "it was held for longer than the maximum and was ended" in work.log(), "the end of the handler")
        self.assertIn('sluice_worker_wedged_handlers_total{worker="worker"} 1\n', work.page("/metrics")[1])
        self.assertEqual(work.end()[0], 0, work.log())
        self.assertEqual(self.ledger.of("done"), [])
        self.assert_no_process_left()

    def test_a_handler_that_ignores_sigterm_S2_6_B6(self):
        self.check(f"trap '' TERM; {BEGIN}; while :; do sleep 100; done")

    def test_a_handler_that_forks_and_whose_child_keeps_its_pipes_S2_6_B6(self):
        self.check(f"(trap '' TERM; sleep 1000) & {BEGIN}; wait")

    def test_a_handler_whose_child_leaves_the_session_S2_6_B6(self):
        self.check(f"setsid sleep 1000 & {BEGIN}; sleep 1000")

    def test_a_handler_that_prints_forever_S2_6_B6(self):
        """What stays may print to its error output only: more than an answer on the other one is the end of it, and no matter of a drain."""
        self.check(f'{BEGIN}; while :; do [ -z "$SLUICE_ID" ] || echo spam; echo spam >&2; done')

    def test_a_handler_that_ends_but_leaves_a_process_behind(self):
        self.fill(1)
        work = self.work("--from", self.source(), "--exec", f"setsid sleep 1000 & {DONE}", "--grace", "5s")
        self.ledger.wait("done", 1)
        self.assertEqual(work.end()[0], 0, work.log())
        self.assert_no_process_left()


class Corpses(WorkCase):
    """A worker that lives for long meets many handlers that end badly: it reaps all of them, and what they leave behind, while it works."""

    HOSTILE = ("kill -STOP $$", "trap '' TERM; while :; do sleep 100; done", "(trap '' TERM; sleep 1000) & wait", "setsid sleep 1000 & sleep 1000",
               "setsid sleep 1000 & exit 1", "(setsid sh -c 'sleep 1000 & sleep 1000' &) ; exit 0", "exec 0<&- 1>&- 2>&-; sleep 1000", "kill -KILL $$",
               "while :; do echo spam; echo spam >&2; done", "sleep 0 & sleep 0 & exec sleep 1000")
    ROUNDS = 3

    def hostile(self, number):
        """A script that does the next of these; `number` is the number of the message, in its words."""
        rows = " ".join(f"{i}) {script};;" for i, script in enumerate(self.HOSTILE))
        return f"echo \"begin {number}\" >> \"$LEDGER\"; case $(({number} % {len(self.HOSTILE)})) in {rows} esac"

    def check(self, kind, script):
        count = self.ROUNDS * len(self.HOSTILE)
        self.fill(count, group_words=("--message-timeout", "10m"))
        work = self.work("--from", self.source(), kind, script, "--slots", 5, "--timeout", "100ms", "--retry", "none", "--breaker-failures", 0,
                         "--grace", "1s", "--abort", "100ms")
        wait_until(lambda: work.counts()["finished"] == count and work.state()["held"] == 0, lambda: f"the end of all handlers: {work.counts()}")
        self.assertGreater(len(self.ledger.of("begin")), 0)  # not all, where a shell needs longer to start than it is given
        wait_until(lambda: work.children() == [] and processes_with(self.mark) == [work.process.pid], lambda: f"the end of {work.children()}")
        self.assertEqual(work.end()[0], 0, work.log())
        self.assert_no_process_left()

    def test_no_dead_child_is_left_while_a_worker_with_a_process_for_each_message_lives(self):
        self.check("--exec", 'n=$(tr -dc 0-9); ' + self.hostile("$n"))

    def test_no_dead_child_is_left_while_a_worker_with_processes_that_stay_lives(self):
        number = 'n=${line##*\'"n": \'}; n=${n%%[!0-9]*}; '
        self.check("--lines", f"read -r line; {number}" + self.hostile("$n"))


class Peers(WorkCase):
    """HTTP destinations that do not behave."""

    GRACE_S = 1.5

    def start(self, answer, *words):
        self.fill(1)
        destination = self.destination(answer)
        work = self.work("--from", self.source(), "--http", destination.url, "--window", 1, "--slots", 1, "--grace", f"{self.GRACE_S}s",
                         "--retry-first", "1ms", *words, is_ready=False)
        self.worker.append(work)
        work.wait_ready()
        destination.wait(1)
        return work

    def setUp(self):
        super().setUp()
        self.worker = []  # for answers, which may be asked for before it is known here

    def check(self, work, ended, attempt, **drain):
        """ended: exit code and seconds. The message is somebody else's next, as this attempt."""
        code, seconds = ended
        self.assertLessEqual(seconds, self.GRACE_S + LATE_S, work.log())
        report = work.report()["workers"][0]["drain"]
        self.assertEqual({name: report[name] for name in drain}, drain, work.log())
        self.assertEqual((report["abandoned"], report["acks_unconfirmed"], self.info()["in_flight"]), (0, 0, 0), work.log())
        other = self.work("--from", self.source(), "--exec", 'echo "done $SLUICE_ATTEMPT" >> "$LEDGER"', "--grace", "5s")
        self.assertEqual(self.ledger.wait("done", 1), [str(attempt)])
        self.assertEqual(other.end()[0], 0)
        return code

    def test_a_peer_that_never_answers_S2_6_B6(self):
        def never(number, request):
            request.rfile.read(1)
            return None
        work = self.start(never)
        self.assertEqual(self.check(work, work.end(), 1, interrupted=1, finished=0, handed_back=0), UNCLEAN)

    def test_a_peer_that_answers_after_the_deadline_S2_6_B6(self):
        def late(number, request):
            time.sleep(self.GRACE_S + 1)
            return 204
        work = self.start(late)
        self.assertEqual(self.check(work, work.end(), 1, interrupted=1, finished=0, handed_back=0), UNCLEAN)

    def test_a_peer_that_resets_before_the_end_costs_an_attempt_and_what_waits_again_goes_back_S2_10(self):
        """The breaker keeps the second attempt from being begun."""
        work = self.start(lambda number, request: reset(request), "--breaker-failures", 1, "--cool-down", "1h")
        wait_until(lambda: work.state()["workers"][0]["held"]["waiting"] == 1, "the message to be here again")
        self.assertIn("eset", work.log())
        self.assertEqual(self.check(work, work.end(), 2, interrupted=0, finished=0, handed_back=1), 0)

    def test_a_peer_that_resets_in_the_drain_costs_an_attempt_and_the_end_is_clean_S2_9(self):
        def reset_in_drain(number, request):
            wait_until(lambda: self.worker, "the worker to be known here")
            work = self.worker[0]
            work.send(signal.SIGTERM)
            wait_until(lambda: '"draining"' in work.log(), "the drain")
            reset(request)
        work = self.start(reset_in_drain)
        self.assertEqual(self.check(work, work.wait(), 2, interrupted=0, finished=1, handed_back=0), 0)
        self.assertIn("eset", work.log())


class Restarts(WorkCase):
    """The server goes, or the worker is killed."""

    def own_server(self):
        server = Server(str(self.folder / "data"), port=free_port())
        self.addCleanup(lambda: server.process.poll() is None and server.end(signal.SIGKILL))
        return server

    def test_a_restart_of_the_server_repeats_nothing(self):
        server = self.own_server()
        self.fill(60, server=server.grpc)
        destination = self.destination(lambda number, request: time.sleep(0.02) or 204)
        work = self.work("--from", self.source(server.grpc), "--http", destination.url, "--slots", 4, "--grace", "5s")
        destination.wait(20)
        server.end()
        server = Server(str(self.folder / "data"), port=server.port)
        self.addCleanup(lambda: server.end(signal.SIGKILL))
        destination.wait(60)
        code, _ = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertEqual(len(destination.ids), 60)
        self.assertEqual(len(set(destination.ids)), 60)

    def test_a_server_that_stays_away_is_lost_and_has_its_own_exit_code_B12_B19(self):
        server = self.own_server()
        self.fill(3, server=server.grpc)
        work = self.work("--from", self.source(server.grpc), "--exec", f"{BEGIN}; {WAIT}; {DONE}", "--slots", 1, "--window", 3,
                         "--give-up", "1s", "--restarts", 0, "--grace", "20s", GO=str(self.folder / "go"))
        begun = self.ledger.wait("begin", 1)
        server.end(signal.SIGKILL)
        wait_until(lambda: "the source has failed" in work.log(), "the end of patience")
        (self.folder / "go").touch()
        self.assertEqual(work.wait()[0], LOST, work.log())
        self.assertEqual((self.ledger.of("begin"), self.ledger.of("done")), (begun, begun))
        report = work.report()
        self.assertEqual((report["end"], report["reason"], report["workers"][0]["end"]), ("lost", "failed", "lost"))
        self.assertIn(str(server.port), report["problem"])
        self.assert_no_process_left()

    def test_patience_of_less_than_a_millisecond_is_not_endless(self):
        with deaf_port() as port:
            work = self.work("--from", self.source(f"127.0.0.1:{port}"), "--exec", DONE, "--give-up", "500us", "--restarts", 0, is_ready=False)
            self.assertEqual(work.wait()[0], LOST, work.log())

    def test_finished_work_whose_ack_was_not_confirmed_is_not_done_again_after_a_kill_B3(self):
        server = self.own_server()
        self.fill(10, server=server.grpc)
        words = ["--from", self.source(server.grpc), "--slots", 1, "--window", 10, "--reconnect", "30s", "--grace", "5s",
                 "--ack-file", self.folder / "acks"]
        work = self.work(*words, "--exec", f"{BEGIN}; {WAIT}; {DONE}", GO=str(self.folder / "go"))
        self.ledger.wait("begin", 1)
        work.wait_offered(9)
        server.process.send_signal(signal.SIGSTOP)
        (self.folder / "go").touch()
        done = self.ledger.wait("done", 9)
        wait_until(lambda: work.counts()["finished"] >= 9, "nine results")
        work.send(signal.SIGKILL)
        work.wait()
        server.process.send_signal(signal.SIGCONT)
        again = self.work(*words, "--exec", f"{BEGIN}; {DONE}")
        wait_until(lambda: len(set(self.ledger.of("done"))) == 10 and self.info(server.grpc)["in_flight"] == 0, "the end")
        self.assertEqual(again.end()[0], 0, again.log())
        repeated = [message for message in done[:9] if self.ledger.of("done").count(message) > 1]
        self.assertEqual(repeated, [])
        server.end()

    def test_a_park_that_was_not_confirmed_before_a_kill_has_its_reason_in_the_dead_letters_B3_S3_38(self):
        server = self.own_server()
        self.fill(1, server=server.grpc)
        words = ["--from", self.source(server.grpc), "--slots", 1, "--reconnect", "30s", "--grace", "5s", "--ack-file", self.folder / "acks"]
        work = self.work(*words, "--exec", f"{BEGIN}; {WAIT}; echo no such item >&2; exit 65", GO=str(self.folder / "go"))
        self.ledger.wait("begin", 1)
        server.process.send_signal(signal.SIGSTOP)
        (self.folder / "go").touch()
        wait_until(lambda: work.counts()["finished"] == 1, "the result")
        work.send(signal.SIGKILL)
        work.wait()
        server.process.send_signal(signal.SIGCONT)
        again = self.work(*words, "--exec", "true")
        wait_until(lambda: self.info(server.grpc)["parked"] == 1, "the dead letter")
        self.assertEqual(again.end()[0], 0, again.log())
        self.assertIn("exit code 65: no such item", json.dumps(self.json("parked", "list", self.stream, "g", server=server.grpc)))
        server.end()


if __name__ == "__main__":
    unittest.main(verbosity=2)
