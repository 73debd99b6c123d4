"""The acceptance list (docs/REQUIREMENTS.md) as far as it is about a whole `sluice work`: each test names the numbers that it proves.

Tests wait for lines of a ledger, of a log, or of a status page; nothing is assumed to be over because time has passed."""
import json
import pathlib
import re
import signal
import socket
import unittest

from client_case import ROOT, USAGE, WAIT_S, Server, StuckPipe, free_port
from work_case import LATE_S, LOST, UNCLEAN, WorkCase, wait_until

BEGIN = 'echo "begin $SLUICE_ID" >> "$LEDGER"'
DONE = 'echo "done $SLUICE_ID $SLUICE_ATTEMPT" >> "$LEDGER"'
WAIT = 'while [ ! -e "$GO" ]; do sleep 0.02; done'
NOTHING = "memory:count=0,end=no"  # a source without messages
SECOND_NS = 10**9


class RulesCase(WorkCase):
    def go(self):
        (self.folder / "go").touch()

    def waiting(self, *words, **more):
        """A worker whose handlers begin, and end when go() was called."""
        return self.work("--from", self.source(), "--exec", f"{BEGIN}; {WAIT}; {DONE}", *words, GO=str(self.folder / "go"), **more)

    def lines(self, work, message):
        """Lines of its log with this message, as objects."""
        lines = [json.loads(line) for line in work.log().splitlines() if line.startswith("{")]
        return [line for line in lines if line["message"] == message]

    def last_line(self, work):
        """The log's, whatever the command says afterwards."""
        return json.loads([line for line in work.log().splitlines() if line.startswith("{")][-1])

    def assert_has(self, line, **wanted):
        self.assertEqual({name: line.get(name) for name in wanted}, wanted)

    def drain_of(self, work, number=0):
        return work.report()["workers"][number]["drain"]

    def state(self, work):
        return work.state()


class Budget(RulesCase):
    MEMORY = ("--from", NOTHING, "--exec", "true")

    def test_the_limits_of_a_worker_lie_inside_each_other_and_fit_into_30_seconds_S2_13_S2_22(self):
        work = self.work(*self.MEMORY)
        line, = self.lines(work, "worker")
        self.assert_has(line, grace="30s", fence="2s", settle="20s", abort="3s", flush="2s", close="2s", reserve="1s")
        limits = json.loads(self.out("budget", "--grace", "30s", "--json"))
        nested = [limits[f"{name}_ns"] // SECOND_NS for name in ("outer", "consumer", "workers", "handler")]
        self.assertEqual(nested, [30, 29, 23, 20])
        parts = json.loads(self.out("work", *self.MEMORY, "--explain", "--json"))["budget"]["parts"]
        self.assertEqual(parts, limits["parts"])
        self.assertLessEqual(sum(parts.values()), 30 * SECOND_NS)
        self.assertEqual(work.end()[0], 0)

    def test_25_seconds_and_5_and_a_close_do_not_fit_into_30_and_the_start_says_so_S2_22(self):
        sentence = self.complaint("work", *self.MEMORY, "--settle", "25s", "--abort", "5s", code=USAGE)
        self.assertRegex(sentence, r"settle 25s \+ abort 5s .* does not fit into grace 30s: raise grace to at least 30\.3s")

    def test_limits_take_fractions_and_have_a_lower_bound_S3_29(self):
        work = self.work(*self.MEMORY, "--grace", "4.5s", "--settle", "1.5s", "--close", "0.25s")
        self.assert_has(self.lines(work, "worker")[0], grace="4.5s", settle="1.5s", close="250ms")
        self.assertEqual(work.end()[0], 0)
        self.assertIn("--settle must be 100ms to", self.complaint("work", *self.MEMORY, "--settle", "0.099s", code=USAGE))
        self.assertIn("--close must be 50ms to", self.complaint("work", *self.MEMORY, "--close", "0.049s", code=USAGE))

    def test_the_documents_have_the_rule_and_the_numbers_that_the_program_has_S3_29_S3_30_S3_31(self):
        text = (ROOT / "docs" / "DRAIN.md").read_text(encoding="utf-8")
        self.assertIn("the container's grace must be longer than the drain and all joins together", text)
        rows = dict(re.findall(r"^\| (\w+) \| [^|]+ \| (\d+ ms \| \d+ s) \|$", text, re.MULTILINE))
        usual = json.loads(self.out("budget", "--grace", "30s", "--json"))["parts"]
        for name, row in rows.items():
            least_ms, usual_s = map(int, re.findall(r"\d+", row))
            self.assertEqual(usual[f"{name}_ns"], usual_s * SECOND_NS)
            self.run_sluice("budget", f"--{name}", f"{least_ms}ms")
            self.run_sluice("budget", f"--{name}", f"{least_ms - 1}ms", code=USAGE)
        self.assertEqual(len(rows), 6)
        order = [text.index(f"| {name} |") for name in ("settle", "close")]
        self.assertLess(order[1] - order[0], 500)  # the limit of draining and that of joining stand next to each other
        example = re.search(r"sluice (budget --grace 45s --settle 30s --close 10s)", text)[1].split()
        self.run_sluice(*example)
        self.run_sluice(*[word.replace("45s", "40s") for word in example], code=1)


class Signals(RulesCase):
    def test_signals_are_heard_whatever_the_process_inherited_S3_1_S3_3(self):
        def block_and_ignore():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what runs in the background
        for number in (signal.SIGTERM, signal.SIGINT):
            work = self.work("--from", NOTHING, "--exec", "true", "--grace", "5s", before=block_and_ignore)
            self.assertEqual(work.end(number)[0], 0, work.log())
            self.assert_has(self.last_line(work), message="stopped", reason=number.name, end="clean")

    def test_who_cannot_send_signals_asks_over_http_and_it_is_the_same_drain_S3_3_S3_40_B17(self):
        self.fill(3)
        work = self.waiting("--slots", 1, "--window", 3, "--grace", "20s")
        self.ledger.wait("begin", 1)
        work.wait_offered(3)
        self.assertEqual(work.page("/v1/drain", "POST")[0], 202)
        wait_until(lambda: self.state(work)["held"] == 1, "the hand-back")
        self.assertEqual((work.page("/livez")[0], work.page("/readyz")[0]), (200, 503))
        self.assertIn("draining", work.page("/livez")[1])
        self.assertFalse(self.state(work)["safe_to_terminate"])
        self.go()
        self.assertEqual(work.wait()[0], 0, work.log())
        self.assertEqual((self.drain_of(work)["reason"], self.drain_of(work)["handed_back"]), ("operator", 2))


class Schedules(RulesCase):
    def schedule(self, every, script, *words):
        return self.work("--from", f"schedule:every={every},at-start=yes", "--exec", script, *words, GO=str(self.folder / "go"))

    def test_the_pause_between_two_polls_ends_at_once_S3_4(self):
        work = self.schedule("1h", DONE, "--grace", "60s")
        self.ledger.wait("done", 1)
        wait_until(lambda: self.state(work)["held"] == 0, "the end of the poll")
        code, seconds = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertLess(seconds, 10)
        self.assertEqual(len(self.ledger.of("done")), 1)

    def test_a_poll_that_runs_is_cancelled_promptly_and_that_is_a_clean_end_S3_5_S3_28(self):
        work = self.schedule("1h", f"{BEGIN}; exec sleep 1000", "--grace", "60s")
        self.ledger.wait("begin", 1)
        code, seconds = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertLess(seconds, 10)
        self.assertEqual((self.drain_of(work)["clean"], self.drain_of(work)["handed_back"]), (True, 1))
        self.assertEqual((len(self.lines(work, "the poll was cancelled")), "interrupted," in work.log()), (1, False))
        self.assert_no_process_left()

    def test_a_poll_that_is_given_up_is_kept_by_nobody_and_fails_the_worker_S3_38(self):
        work = self.work("--from", "schedule:every=1h", "--exec", "exit 65", "--restarts", 0, is_ready=False)
        self.assertEqual(work.wait()[0], LOST, work.log())
        self.assertEqual(len(self.lines(work, "scheduled work was given up: nobody keeps it")), 1, work.log())
        self.assertNotIn("dead letters", work.log())

    def test_a_request_that_is_never_answered_is_cancelled_after_the_abort_part_and_cleanly_S3_5(self):
        def never(number, request):
            request.rfile.read(1)
        destination = self.destination(never)
        work = self.work("--from", "schedule:every=1h,at-start=yes", "--http", destination.url, "--grace", "60s", "--abort", "100ms")
        destination.wait(1)
        code, seconds = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertLess(seconds, 10)

    def test_a_poll_that_somebody_else_cancels_is_a_failure_that_is_told_and_tried_again_S3_6(self):
        work = self.schedule("1h", f'{BEGIN}; [ -e "$GO" ] || {{ touch "$GO"; kill -TERM $$; }}; {DONE}', "--retry-first", "1ms",
                             "--grace", "10s")
        self.ledger.wait("done", 1)
        self.assertEqual(len(self.ledger.of("begin")), 2)
        self.assertEqual(len(set(self.ledger.of("begin"))), 1)  # the same tick
        self.assert_has(self.lines(work, "message failed, and is tried again")[0], reason="killed by signal 15", attempt=1)
        self.assertEqual(work.end()[0], 0, work.log())

    def test_polls_go_on_as_long_as_nobody_stops_them_S3_7(self):
        work = self.schedule("20ms", DONE, "--grace", "10s")
        ids = self.ledger.wait("done", 5)
        self.assertEqual(len(set(ids)), len(ids))
        self.assertEqual(work.end()[0], 0, work.log())


class Handlers(RulesCase):
    """A handler can learn that the end has begun, and how long it has."""

    def test_a_process_reads_it_from_descriptor_3_S2_20_B7(self):
        self.fill(1)
        script = f'{BEGIN}; read -r ms <&3; echo "told $ms" >> "$LEDGER"; {DONE}'
        work = self.work("--from", self.source(), "--exec", script, "--grace", "30s")
        self.ledger.wait("begin", 1)
        self.assertEqual(work.end()[0], 0, work.log())
        told, = map(int, self.ledger.of("told"))
        self.assertTrue(15_000 < told <= 22_000, told)  # fence and settle of 30 s

    def test_a_process_that_stays_gets_a_line_S2_20_B7(self):
        self.fill(1)
        program = self.folder / "handler.py"
        program.write_text(
            "import json, os, sys\n"
            "def note(line):\n"
            "    with open(os.environ['LEDGER'], 'a') as ledger: ledger.write(line + '\\n')\n"
            "for line in sys.stdin:\n"
            "    message = json.loads(line)\n"
            "    if message['type'] == 'message': held = message['id']; note(f'begin {held}')\n"
            "    if message['type'] == 'draining':\n"
            "        note(f\"told {message['remaining_ms']}\")\n"
            "        print(json.dumps({'id': held, 'result': 'ack'}), flush=True)\n")
        work = self.work("--from", self.source(), "--lines", f"python3 {program}", "--slots", 1, "--grace", "30s")
        self.ledger.wait("begin", 1)
        self.assertEqual(work.end()[0], 0, work.log())
        told, = map(int, self.ledger.of("told"))
        self.assertTrue(15_000 < told <= 22_000, told)

    def test_a_request_has_it_in_a_header_also_one_that_begins_in_the_drain_S2_20_B7(self):
        self.fill(2)
        work = None

        def answer(number, request):
            if number == 0:
                wait_until(lambda: work is not None, "the worker to be known here")
                work.send(signal.SIGTERM)
                wait_until(lambda: "draining" in work.log(), "the drain")
            return 204
        destination = self.destination(answer)
        work = self.work("--from", self.source(), "--http", destination.url, "--slots", 1, "--timeout", "10m", "--finish-unstarted",
                         "--grace", "30s", is_ready=False)
        work.wait_ready()
        code, _ = work.wait()
        self.assertEqual(code, 0, work.log())
        before, inside = (int(headers["Sluice-Deadline-Ms"]) for headers in destination.headers)
        self.assertTrue(500_000 < before <= 600_000, before)
        self.assertTrue(15_000 < inside <= 22_000, inside)


class Leaving(RulesCase):
    def test_whatever_ran_or_waited_nothing_is_unanswered_at_the_server_S2_14_S2_7_S2_10(self):
        """One finishes, one does not end, one fails in its last moment, the rest never began; no lease has to run out for them."""
        self.fill(9, group_words=("--message-timeout", "10m"))
        script = f'{BEGIN}; n=$(tr -dc 0-9); case $n in 0) {WAIT}; {DONE};; 1) exec sleep 1000;; 2) {WAIT}; exit 1;; esac'
        work = self.work("--from", self.source(), "--exec", script, "--slots", 3, "--window", 6, "--grace", "3s",
                         GO=str(self.folder / "go"))
        self.ledger.wait("begin", 3)
        work.wait_offered(6)
        work.send(signal.SIGTERM)
        wait_until(lambda: "draining" in work.log(), "the drain")
        self.go()
        self.assertEqual(work.wait()[0], UNCLEAN, work.log())
        info = self.info()
        self.assertEqual(info["in_flight"], 0, info)
        drain = self.drain_of(work)
        self.assertEqual((drain["finished"], drain["interrupted"], drain["handed_back"]), (2, 1, 3), drain)
        self.assertEqual((drain["abandoned"], drain["acks_unconfirmed"]), (0, 0), drain)

    def test_the_end_of_each_worker_is_a_line_with_its_name_S2_21_S3_27(self):
        file = self.folder / "workers.ini"
        file.write_text(f"[work]\ngrace = 5s\nfrom = {NOTHING}\nexec = true\n[work mail]\n[work billing]\n")
        work = self.work("-c", file)
        self.assertEqual(work.end()[0], 0, work.log())
        ended = self.lines(work, "a worker has ended")
        self.assertEqual([(line["name"], line["reason"]) for line in ended], [("mail", "SIGTERM"), ("billing", "SIGTERM")])
        self.assert_has(self.last_line(work), message="stopped", reason="SIGTERM", end="clean", drained=0)
        self.fill(1)
        work = self.work("--from", self.source(), "--exec", DONE, "--name", "pod-7", "--grace", "5s")
        self.ledger.wait("done", 1)
        self.assertEqual(work.end()[0], 0, work.log())
        self.assert_has(self.lines(work, "a worker has ended")[0], name="pod-7", reason="SIGTERM", end="as asked")

    def test_a_server_that_does_not_answer_costs_its_parts_and_all_steps_are_taken_S2_16_S3_22_S3_23_S3_24_S3_36_B12(self):
        server = Server(str(self.folder / "data"), port=free_port())
        self.addCleanup(lambda: server.end(signal.SIGKILL))
        self.fill(3, server=server.grpc)
        work = self.work("--from", self.source(server.grpc), "--exec", f"{BEGIN}; {WAIT}; {DONE}", "--slots", 1, "--window", 3,
                         "--grace", "3s", GO=str(self.folder / "go"))
        first, = self.ledger.wait("begin", 1)
        work.wait_offered(3)
        server.process.send_signal(signal.SIGSTOP)
        work.send(signal.SIGTERM)
        wait_until(lambda: "draining" in work.log(), "the drain")
        self.go()
        code, seconds = work.wait()
        self.assertEqual(code, UNCLEAN, work.log())
        self.assertLessEqual(seconds, 3 + LATE_S, work.log())
        told = self.lines(work, "a part of the shutdown took all of its time")
        self.assertEqual([(line["level"], line["worker"], line["part"]) for line in told],
                         [("warn", "worker", part) for part in ("fencing", "flushing", "closing")])
        self.assertEqual(self.ledger.of("done"), [first])
        drain = self.drain_of(work)
        self.assertEqual((drain["finished"], drain["handed_back"], drain["acks_unconfirmed"]), (1, 2, 3), drain)
        left = self.lines(work, "a message is left behind")
        self.assertEqual(sorted(line["said"] for line in left), ["ack", "release", "release"])
        self.assertIn((first, "ack"), [(line["id"], line["said"]) for line in left])
        self.assert_has(self.last_line(work), message="stopped", reason="SIGTERM", end="unclean", drained=1, acks_unconfirmed=3)

    def test_a_start_that_fails_takes_the_same_way_out_S3_25(self):
        self.fill(1)
        wrong = self.folder / "no-ack-file"
        wrong.write_text("this is something else, and not ours to overwrite\n" * 10)
        file = self.folder / "workers.ini"
        file.write_text(f"[work]\ngrace = 5s\nexec = {DONE}\n[work one]\nfrom = {self.source()}\n"
                        f"[work two]\nfrom = {self.source()}\nack-file = {wrong}\n"
                        f"[work three]\nfrom = {self.source()}\n")
        work = self.work("-c", file, is_ready=False)
        self.assertEqual(work.wait()[0], USAGE, work.log())
        report = work.report()
        self.assertEqual((report["end"], report["reason"]), ("bad configuration", "start failed"))
        self.assertEqual([row["end"] for row in report["workers"]], ["as asked", "never started", "never started"])
        self.assert_has(self.lines(work, "a worker has ended")[0], name="one", reason="start failed")
        self.assert_has(self.last_line(work), message="stopped", reason="start failed")
        self.assertEqual(self.info()["in_flight"], 0)
        self.assertIn("sluice: Worker two cannot be started", work.log())

    def test_whoever_holds_on_to_the_status_pages_does_not_hold_up_the_end_S3_26_S3_21(self):
        work = self.work("--from", NOTHING, "--exec", "true", "--grace", "20s")
        host, port = work.status.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as idle, \
                socket.create_connection((host, int(port)), timeout=WAIT_S) as half:
            half.sendall(b"GET /livez HTTP/1.1\r\nHost: ")
            idle.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b"200", idle.recv(100))
            code, seconds = work.end()
        self.assertEqual(code, 0, work.log())
        self.assertLess(seconds, 10)

    def test_a_log_whose_reader_stands_still_does_not_stop_a_worker_and_its_drain(self):
        """Nobody reads until it has ended, or somebody reads again before the signal; the handlers print all the time."""
        self.fill(0)
        for is_read_again in (False, True):
            pipe = StuckPipe(self)
            work = self.work("--from", self.source(), "--exec", f"cat >&2; {DONE}", "--grace", "20s", stderr=pipe.writer)
            pipe.fill()
            before = len(self.ledger.of("done"))
            for _ in range(5):
                self.append()
            self.ledger.wait("done", before + 5)
            wait_until(lambda: self.info()["in_flight"] == 0, "the acknowledgements")
            self.assertEqual(work.page("/livez")[0], 200)
            if is_read_again:
                pipe.take()
            self.assertEqual(work.end()[0], 0)
            self.assertEqual(work.report()["end"], "clean")
            lines = [json.loads(line) for line in pipe.take()]
            notes = [line for line in lines if line["message"] == "lines were left out: nobody read the log"]
            self.assertEqual(len(notes), 1 if is_read_again else 0)
            if is_read_again:
                self.assertEqual(lines[0], notes[0])
                self.assertEqual(notes[0]["level"], "warn")
                self.assertGreaterEqual(notes[0]["count"], 5)
                self.assert_has(lines[-1], message="stopped", end="clean")

    def test_without_any_limit_of_its_own_work_ends_with_the_grace_and_nothing_new_is_taken_S4_15(self):
        self.fill(2)
        work = self.work("--from", self.source(), "--exec", f"{BEGIN}; exec sleep 1000", "--timeout", "0", "--slots", 2, "--grace", "1.5s")
        self.ledger.wait("begin", 2)
        work.send(signal.SIGTERM)
        wait_until(lambda: "draining" in work.log(), "the drain")
        self.append()
        code, seconds = work.wait()
        self.assertEqual(code, UNCLEAN, work.log())
        self.assertLessEqual(seconds, 1.5 + LATE_S)
        self.assertEqual(len(self.ledger.of("begin")), 2)


class Messages(RulesCase):
    def stop_process(self, work):
        """Behind this nothing of it runs until SIGCONT."""
        work.send(signal.SIGSTOP)
        stat = pathlib.Path(f"/proc/{work.process.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "a process that stands")

    def test_what_came_while_a_worker_stood_still_and_is_done_elsewhere_is_not_begun_B5(self):
        self.run_sluice("group", "create", self.stream, "g", "--start", "start", "--message-timeout", "1s")
        handler = ("--from", self.source(), "--exec", f"{BEGIN}; {DONE}")
        slow = self.work(*handler)
        self.stop_process(slow)
        for _ in range(8):
            self.append()
        wait_until(lambda: self.info()["in_flight"] == 8, "eight messages on their way")
        self.work(*handler)
        self.ledger.wait("done", 8)
        wait_until(lambda: self.info()["in_flight"] == 0, "their ends")
        slow.send(signal.SIGCONT)
        slow.wait_offered(8)
        wait_until(lambda: slow.state()["held"] == 0, "their return")
        self.assertEqual(len(self.ledger.of("begin")), 8)

    def interrupt(self):
        """A worker begins the message and is ended by two signals; which attempt it was."""
        count = len(self.ledger.of("begin"))
        work = self.work("--from", self.source(), "--exec", 'echo "begin $SLUICE_ATTEMPT" >> "$LEDGER"; exec sleep 1000', "--grace", "20s")
        attempt = self.ledger.wait("begin", count + 1)[-1]
        work.send(signal.SIGTERM)
        self.assertEqual(work.end(signal.SIGINT)[0], UNCLEAN, work.log())
        self.assertEqual(self.drain_of(work)["interrupted"], 1)
        return int(attempt)

    def test_an_interruption_costs_no_attempt_until_there_were_too_many_B6(self):
        self.fill(1)
        interrupts_max = 20  # of the server, for each message
        self.assertEqual([self.interrupt() for _ in range(interrupts_max + 2)], [1] * (interrupts_max + 1) + [2])

    def test_how_many_interruptions_cost_nothing_is_a_setting_of_the_group_B6(self):
        self.fill(1, group_words=("--max-interrupts", 1))
        self.assertEqual([self.interrupt() for _ in range(3)], [1, 1, 2])
        self.run_sluice("group", "update", self.stream, "g", "--max-interrupts", 0)
        self.assertEqual([self.interrupt() for _ in range(2)], [3, 3])  # the third before was charged, these are not

    def test_how_many_workers_may_die_of_a_message_is_a_setting_of_the_group_B6_B15(self):
        self.fill(1, group_words=("--max-kills", 1))
        work = self.waiting("--reconnect", "100ms")
        self.ledger.wait("begin", 1)
        wait_until(lambda: self.json("consumer", "list", "--stream", self.stream)[0]["started"] == 1, "that it was begun")
        work.send(signal.SIGKILL)
        work.wait()
        self.go()  # for the handler, which goes on without its worker
        wait_until(lambda: self.info()["parked"] == 1, "a dead letter")
        letter, = self.json("parked", "list", self.stream, "g")
        self.assertEqual(letter["reason"], "Consumers died while they worked on it: 1")
        self.assert_has(letter, attempts=1, deliveries=1, interrupts=0, kills=1)
        self.assertEqual([failure["reason"] for failure in letter["history"]],
                         ["Its consumer was lost and did not come back for it in time."])
        self.assert_no_process_left()

    def dead_letter(self, *words, **options):
        """A worker whose handler fails with the number of the attempt, until its message is parked; the message as a program sees it."""
        work = self.work("--from", self.source(), "--exec", 'echo "no part $SLUICE_ATTEMPT" >&2; exit 1', "--retry", "constant",
                         "--retry-first", "1ms", "--breaker-failures", 0, *words, **options)
        wait_until(lambda: self.info()["parked"] == 1, "a dead letter")
        self.assertEqual(work.end()[0], 0, work.log())
        letter, = self.json("parked", "list", self.stream, "g")
        self.assertTrue(all(re.fullmatch(r"20\S+Z", failure["time"]) for failure in letter["history"]), letter)
        return letter

    def test_a_dead_letter_has_cause_and_history_when_the_worker_gives_up_S3_38_B15(self):
        self.fill(1)
        letter = self.dead_letter("--attempts", 3)
        self.assertEqual([(failure["attempt"], failure["reason"]) for failure in letter["history"]],
                         [(1, "exit code 1: no part 1"), (2, "exit code 1: no part 2"),
                          (3, "given up after the last attempt: exit code 1: no part 3")])
        self.assertEqual(letter["reason"], "Client explicitly NAK'ed message. given up after the last attempt: exit code 1: no part 3")
        self.assert_has(letter, attempts=3, deliveries=3, interrupts=0, kills=0)
        shown = self.out("parked", "show", self.stream, "g")
        self.assertRegex(shown, r"\n  attempts  3\n  failed    1  20\S+Z  exit code 1: no part 1\n  failed    2  ")

    def test_a_dead_letter_has_cause_and_history_when_the_group_gives_up_S3_38_B15(self):
        self.fill(1, group_words=("--max-retry-count", 6))
        letter = self.dead_letter("--attempts", 1000)
        self.assertEqual([(failure["attempt"], failure["reason"]) for failure in letter["history"]],
                         [(attempt, f"exit code 1: no part {attempt}") for attempt in range(3, 8)])
        self.assertEqual(letter["reason"], "Reached retry count of 6 exit code 1: no part 7")
        self.assert_has(letter, attempts=7, deliveries=7, interrupts=0, kills=0)

    def test_the_report_is_a_file_and_the_server_has_its_own_B12(self):
        self.fill(4)
        work = self.waiting("--slots", 1, "--window", 3, "--name", "pod-9", "--grace", "20s")
        self.ledger.wait("begin", 1)
        work.wait_offered(3)
        work.send(signal.SIGTERM)
        wait_until(lambda: "draining" in work.log(), "the drain")
        self.go()
        self.assertEqual(work.wait()[0], 0, work.log())
        report = work.report()
        self.assertEqual((report["end"], report["reason"], report["clean"], report["finished"], report["handed_back"]),
                         ("clean", "SIGTERM", True, 1, 2))
        drain = self.drain_of(work)
        self.assertEqual((drain["grace_seconds"], drain["interrupted"], drain["abandoned"], drain["acks_unconfirmed"]), (20, 0, 0, 0))
        self.assertLess(drain["used_seconds"], 20)
        self.assertEqual(set(drain["phases"]), {"fencing", "settling", "aborting", "flushing", "closing"})
        kept, = self.json("consumer", "drains", "--stream", self.stream)
        self.assertEqual((kept["name"], kept["settled"], kept["released"], kept["lost"]), ("pod-9", 1, 2, 0))

    def test_a_destination_that_is_down_stops_the_intake_and_buries_nothing_B18_S3_19(self):
        self.fill(12)
        is_down = [True]
        destination = self.destination(lambda number, request: 500 if is_down[0] else 204)
        work = self.work("--from", self.source(), "--http", destination.url, "--slots", 1, "--window", 4, "--breaker-failures", 2,
                         "--cool-down", "100ms", "--retry-first", "1ms", "--retry-max", "1ms", "--attempts", 1000, "--grace", "5s")
        destination.wait(3)  # two opened it, one was the probe
        wait_until(lambda: self.state(work)["workers"][0]["destinations_open"] == 1, "an open breaker")
        self.assertLessEqual(self.info()["in_flight"], 4)
        self.assertEqual(self.info()["parked"], 0)
        is_down[0] = False
        wait_until(lambda: len(set(destination.ids)) == 12 and self.state(work)["held"] == 0, "all of them")
        self.assertEqual(self.info()["parked"], 0)
        self.assertEqual(work.end()[0], 0, work.log())

    def test_a_frozen_handler_loses_its_lease_to_another_worker_and_its_answer_does_not_count_B5_B8(self):
        self.fill(1, group_words=("--message-timeout", "2s"))
        frozen = self.work("--from", self.source(), "--exec", f"{BEGIN}; kill -STOP $$; {DONE}", "--grace", "2s")
        self.ledger.wait("begin", 1)
        other = self.work("--from", self.source(), "--exec", DONE, "--grace", "5s")
        self.ledger.wait("done", 1)
        wait_until(lambda: self.state(frozen)["held"] == 0, "the end of the frozen one")
        self.assertEqual(len(self.lines(frozen, "the lease of work that hangs is over: it is ended")), 1)
        self.assertEqual(other.end()[0], 0, other.log())
        self.assert_has(self.state(frozen)["workers"][0]["counts"], wedged=1, acked=0)
        self.assertEqual(frozen.end()[0], 0, frozen.log())
        self.assertEqual(len(self.ledger.of("done")), 1)
        self.assertEqual(self.info()["in_flight"], 0)
        self.assert_no_process_left()

    def test_a_lease_shorter_than_the_work_is_renewed_and_nobody_else_gets_the_message_B8_S4_24(self):
        self.fill(1, group_words=("--message-timeout", "3s"))
        script = f'{BEGIN}; sleep 7; {DONE}'
        works = [self.work("--from", self.source(), "--exec", script, "--slots", 1, "--grace", "10s") for _ in range(2)]
        self.ledger.wait("done", 1)
        wait_until(lambda: sum(self.state(work)["held"] for work in works) == 0, "the answer")
        counts = [self.state(work)["workers"][0]["counts"] for work in works]
        self.assertEqual(sorted(one["offered"] for one in counts), [0, 1], counts)
        self.assertEqual([work.end()[0] for work in works], [0, 0])
        self.assertEqual([line.split()[0::2] for line in self.ledger.lines()], [["begin"], ["done", "1"]])
        info = self.info()
        self.assertEqual((info["in_flight"], info["waiting_for_retry"], info["parked"]), (0, 0, 0))


class Systemd(RulesCase):
    def hear(self, manager, *wanted):
        """Waits for each of these, in this order; whatever comes between them does not matter."""
        for words in wanted:
            while words not in manager.recv(4096).decode().splitlines():
                pass

    def test_systemd_hears_of_the_start_of_life_and_of_the_end_also_from_within_a_drain(self):
        self.fill(1)
        watchdog = ("WATCHDOG=1",) * 3
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(f"\0{self.stream}")
            manager.settimeout(WAIT_S)
            work = self.waiting("--notify", "--grace", "20s", NOTIFY_SOCKET=f"@{self.stream}", WATCHDOG_USEC="40000")
            self.ledger.wait("begin", 1)
            self.hear(manager, "READY=1", *watchdog)
            work.send(signal.SIGTERM)
            self.hear(manager, "STOPPING=1", *watchdog)
            self.go()
            self.assertEqual(work.wait()[0], 0, work.log())


class Tests(unittest.TestCase):
    def test_no_unit_test_of_a_shutdown_sleeps_S3_34(self):
        sleeps = re.compile(r"\b(?:u|nano|clock_nano|thrd_)?sleep\s*\((?!\))|\b(?:poll|select|ppoll)\s*\((?:NULL|0),")
        self.assertRegex("    usleep(1000);", sleeps)
        self.assertRegex("    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);", sleeps)
        files = [path for folder in ("worker", "core") for path in pathlib.Path(ROOT, "tests", "unit", folder).glob("*.[ch]")]
        self.assertGreater(len(files), 40)
        found = [f"{path.name}: {line.strip()}" for path in files for line in path.read_text(encoding="utf-8").splitlines()
                 if sleeps.search(line)]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
