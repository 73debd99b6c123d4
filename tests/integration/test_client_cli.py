#!/usr/bin/env python3
"""Runs append, read and stream against a real server, as a shell would: words, pipes, signals.

Nothing sleeps: a test waits for a line, for an answer, or for the end of a process."""
import base64
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import tempfile
import termios
import threading
import time
import unittest
import uuid

from client_case import FAILED, OK, SLUICE, USAGE, WAIT_S, Case, Server, clean_environment, deaf_port, free_port, read_terminal


class Append(Case):
    def test_one_event_tells_where_it_is(self):
        first = self.out("append", self.stream, "--type", "placed", "--data", '{"id": 7}')
        match = re.fullmatch(rf'appended 1 event to "{self.stream}": revision 0, position (\d+)\n', first)
        second = self.append()
        self.assertEqual((second["stream"], second["revision"]), (self.stream, 1))
        self.assertGreater(second["position"], int(match[1]))

    def test_data_comes_from_an_option_a_file_or_a_pipe(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"\x00\xffbinary")
            file.flush()
            self.out("append", self.stream, "-t", "file", "--file", file.name)
        self.out("append", self.stream, "-t", "option", "--data", "[1, 2]")
        self.out("append", self.stream, "-t", "pipe", stdin="piped")
        self.out("append", self.stream, "-t", "dash", "--file", "-", stdin="\n")
        self.out("append", self.stream, "-t", "empty", "--data", "")
        events = self.json("read", self.stream)
        self.assertEqual([event["type"] for event in events], ["file", "option", "pipe", "dash", "empty"])
        self.assertEqual(base64.b64decode(events[0]["data"]), b"\x00\xffbinary")
        self.assertEqual((events[1]["data"], events[1]["content_type"]), ([1, 2], "application/json"))
        self.assertEqual((base64.b64decode(events[2]["data"]), events[2]["content_type"]), (b"piped", "application/octet-stream"))
        self.assertEqual(base64.b64decode(events[3]["data"]), b"\n")
        self.assertIsNone(events[4]["data"])

    def test_metadata_id_and_content_type(self):
        chosen = str(uuid.uuid4())
        self.out("append", self.stream, "-t", "t", "-d", "1", "--metadata", '{"by": "me"}', "--id", chosen)
        self.out("append", self.stream, "-t", "t", "-d", "1", "--content-type", "binary")
        first, second = self.json("read", self.stream)
        self.assertEqual((first["metadata"], first["id"], first["content_type"]), ({"by": "me"}, chosen, "application/json"))
        self.assertEqual(second["content_type"], "application/octet-stream")
        self.assertIn("not JSON", self.complaint("append", self.stream, "-t", "t", "-d", "x", "--content-type", "json"))

    def test_the_same_id_is_appended_once(self):
        words = ("append", self.stream, "-t", "t", "-d", "1", "--id", str(uuid.uuid4()))
        first, second = self.json(*words), self.json(*words)
        self.assertEqual(first, second)
        self.assertEqual(len(self.json("read", self.stream)), 1)

    def test_expectations(self):
        self.assertIn("not there", self.complaint("append", self.stream, "-t", "t", "-d", "1", "--expect", "0"))
        self.out("append", self.stream, "-t", "t", "-d", "1", "--expect", "none")
        self.out("append", self.stream, "-t", "t", "-d", "1", "--expect", "0")
        self.out("append", self.stream, "-t", "t", "-d", "1", "--expect", "exists")
        for wrong in ("none", "0", "7"):
            self.assertIn("at revision 2, which is not what --expect says",
                          self.complaint("append", self.stream, "-t", "t", "-d", "1", "--expect", wrong))
        self.assertEqual(len(self.json("read", self.stream)), 3)

    def test_what_is_not_understood_appends_nothing(self):
        for words, sentence in (((), "needs a type"), (("-t", "t", "-d", "1", "-f", "x"), "not from several"),
                                (("-t", "t", "-d", "1", "--id", "x"), "needs a UUID"),
                                (("-t", "t", "-d", "1", "--metadata", "{"), "needs JSON"),
                                (("-t", "t", "--lines", "-", "--id", str(uuid.uuid4())), "--id is for one event"),
                                (("-t", "t", "-d", "1", "--expect", "soon"), "--expect needs")):
            self.assertIn(sentence, self.complaint("append", self.stream, *words, code=USAGE))
        self.complaint("read", self.stream)

    def test_without_an_answer_nobody_knows(self):
        self.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.process.send_signal, signal.SIGCONT)
        said = self.complaint("append", self.stream, "-t", "t", "-d", "1", "--timeout", "1s")
        self.assertIn("did not answer within 1s", said)
        self.assertIn("Whether the event was appended is not known", said)

    def test_a_file_that_is_not_there(self):
        self.assertIn("cannot read /does/not/exist: No such file", self.complaint("append", self.stream, "-t", "t", "-f", "/does/not/exist"))
        self.assertIn("cannot read /does/not/exist: No such file", self.complaint("append", self.stream, "-t", "t", "-l", "/does/not/exist"))


class Lines(Case):
    def test_every_line_becomes_an_event_in_order(self):
        count = 30000
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("".join(f'{{"n": {i}}}\n' for i in range(count)))
            file.flush()
            shown = self.out("append", self.stream, "-t", "t", "--lines", file.name)
        self.assertRegex(shown, rf'appended {count} events to "{self.stream}": revision {count - 1}, position \d+, \d+ events/s\n')
        events = self.json("read", self.stream)
        self.assertEqual([event["data"]["n"] for event in events], list(range(count)))
        self.assertEqual([event["revision"] for event in events], list(range(count)))

    def test_empty_lines_are_left_out_and_the_last_needs_no_end(self):
        result, = self.json("append", self.stream, "-t", "t", "--lines", "-", stdin="a\n\n\r\n\nb")
        self.assertEqual((result["events"], result["empty_lines"], result["last_line"], result["complete"]), (3, 2, 5, True))
        self.assertEqual([base64.b64decode(event["data"]) for event in self.json("read", self.stream)], [b"a", b"\r", b"b"])
        nothing, = self.json("append", self.stream, "-t", "t", "--lines", "-", stdin="")
        self.assertEqual((nothing["events"], nothing["complete"]), (0, True))

    def test_an_expectation_holds_for_all_of_them(self):
        many = "".join(f"{i}\n" for i in range(3000))
        self.out("append", self.stream, "-t", "t", "--lines", "-", "--expect", "none", stdin=many)
        self.out("append", self.stream, "-t", "t", "--lines", "-", "--expect", "2999", stdin=many)
        said = self.complaint("append", self.stream, "-t", "t", "--lines", "-", "--expect", "none", stdin=many)
        self.assertIn("at revision 5999, which is not what --expect says", said)
        self.assertIn("Nothing was appended", said)

    def test_a_line_that_is_refused_tells_which(self):
        said = self.complaint("append", self.stream, "-t", "t", "--lines", "-", "--content-type", "json", stdin='1\n2\n{"x"\n4\n')
        self.assertIn("line 3 is not JSON", said)
        self.assertIn("Confirmed: 2 events, up to line 2", said)
        self.assertEqual([event["data"] for event in self.json("read", self.stream)], [1, 2])

    def test_a_line_that_is_too_long(self):
        said = self.complaint("append", self.stream, "-t", "t", "--lines", "-", stdin=b"ok\n" + b"x" * (16 * 1024 * 1024 + 1))
        self.assertIn("line 2 is too long", said)

    def test_a_line_of_a_slow_pipe_is_not_kept_back(self):
        process = self.start("append", self.stream, "-t", "t", "--lines", "-", "--json", stdin=subprocess.PIPE)
        reader = self.start("read", self.stream, "--follow", "--json")
        for i in range(5):
            process.stdin.write(f"{i}\n")
            process.stdin.flush()
            self.assertEqual(json.loads(reader.stdout.readline())["data"], i)
        process.stdin.close()
        self.assertEqual(json.loads(process.stdout.readline())["events"], 5)
        self.assertEqual(process.wait(timeout=WAIT_S), OK)

    def test_ctrl_c_waits_for_what_is_on_its_way_and_tells_how_much_it_was(self):
        process = self.start("append", self.stream, "-t", "t", "--lines", "-", "--json", stdin=subprocess.PIPE)
        reader = self.start("read", self.stream, "--follow", "--json")
        for i in range(1000):
            process.stdin.write(f"{i}\n")
        process.stdin.flush()
        for i in range(1000):
            self.assertEqual(json.loads(reader.stdout.readline())["data"], i)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=WAIT_S), FAILED)
        result = json.loads(process.stdout.readline())
        self.assertEqual((result["events"], result["complete"], result["last_line"]), (1000, False, 1000))
        self.assertIn("interrupted. Confirmed: 1000 events, up to line 1000", process.stderr.read())

    def test_everything_confirmed_is_there_when_it_is_interrupted_in_the_middle(self):
        process = self.start("append", self.stream, "-t", "t", "--lines", "/dev/stdin", "--json", stdin=subprocess.PIPE)
        ended = threading.Event()

        def feed():
            with contextlib.suppress(BrokenPipeError):
                i = 0
                while not ended.is_set():
                    process.stdin.write(f"{i}\n")
                    i += 1
        feeder = threading.Thread(target=feed)
        feeder.start()
        reader = self.start("read", self.stream, "--follow", "--count", 5000)
        self.assertEqual(len(reader.stdout.readlines()), 5000)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=WAIT_S), FAILED)
        ended.set()
        feeder.join(timeout=WAIT_S)
        result = json.loads(process.stdout.readline())
        events = self.json("read", self.stream)
        self.assertGreaterEqual(result["events"], 5000)
        self.assertEqual(len(events), result["events"])
        self.assertEqual([event["data"] for event in events], list(range(len(events))))

    def test_a_server_that_dies_in_the_middle(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Server(os.path.join(folder, "data"))
            process = self.start("append", self.stream, "-t", "t", "--lines", "-", server=server.grpc, stdin=subprocess.PIPE)
            reader = self.start("read", self.stream, "--follow", "--count", 1, server=server.grpc)
            process.stdin.write("1\n")
            process.stdin.flush()
            self.assertEqual(reader.wait(timeout=WAIT_S), OK)
            server.end(signal.SIGKILL)
            self.assertEqual(process.wait(timeout=WAIT_S), FAILED)
            said = process.stderr.read()
            self.assertIn(f"lost the connection to {server.grpc}", said)
            self.assertIn("Confirmed: 1 event, up to line 1", said)


    def test_as_many_may_be_on_their_way_as_come_while_the_server_is_busy(self):
        process = self.start("append", self.stream, "-t", "t", "--lines", "-", "--json", stdin=subprocess.PIPE)
        reader = self.start("read", self.stream, "--follow", "--count", 1)
        process.stdin.write("0\n")
        process.stdin.flush()
        self.assertEqual(reader.wait(timeout=WAIT_S), OK)   # it is connected: nobody waits long for that
        self.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.process.send_signal, signal.SIGCONT)
        for i in range(1, 300):    # a batch for each, as long as the client takes them
            process.stdin.write(f"{i}\n")
            process.stdin.flush()
            until = time.monotonic() + 0.01     # in all less than anybody waits for a server
            while int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4), "little") > 0 and time.monotonic() < until:
                os.sched_yield()
        self.server.process.send_signal(signal.SIGCONT)
        process.stdin.close()
        self.assertEqual(json.loads(process.stdout.readline())["events"], 300)
        self.assertEqual([event["data"] for event in self.json("read", self.stream)], list(range(300)))

    def test_who_does_not_want_to_wait_is_told_what_is_not_known(self):
        process = self.start("append", self.stream, "-t", "t", "--lines", "-", stdin=subprocess.PIPE)
        reader = self.start("read", self.stream, "--follow")
        process.stdin.write("1\n")
        process.stdin.flush()
        reader.stdout.readline()
        self.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.process.send_signal, signal.SIGCONT)
        process.stdin.write("2\n3\n")
        process.stdin.flush()
        while int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4), "little") > 0:
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=WAIT_S), FAILED)
        self.assertRegex(process.stderr.read(), r"interrupted\. Confirmed: 1 event, up to line 1; not known: (1 event that was on its|2 events that were on their) way")


    def test_two_at_the_same_time_share_a_stream(self):
        count = 3000
        writers = [self.start("append", self.stream, "-t", kind, "--lines", "/dev/stdin", stdin=subprocess.PIPE) for kind in ("a", "b")]
        feeders = [threading.Thread(target=self.feed, args=(writer, count)) for writer in writers]
        for feeder in feeders:
            feeder.start()
        for writer, feeder in zip(writers, feeders):
            feeder.join(timeout=WAIT_S)
            self.assertEqual(writer.wait(timeout=WAIT_S), OK, writer.stderr.read())
        events = self.json("read", self.stream)
        for kind in ("a", "b"):
            self.assertEqual([event["data"] for event in events if event["type"] == kind], list(range(count)))

    @staticmethod
    def feed(process, count):
        with process.stdin as pipe:
            for i in range(count):
                pipe.write(f"{i}\n")

    def test_a_server_that_is_frozen_is_given_up_after_the_timeout(self):
        self.append()
        self.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.process.send_signal, signal.SIGCONT)
        for words, stdin in ((("append", self.stream, "-t", "t", "--lines", "-"), "1\n"), (("read", self.stream), ""),
                             (("read", "--all"), ""), (("read", self.stream, "--follow"), "")):
            said = self.complaint(*words, "--timeout", "1s", stdin=stdin)
            self.assertIn("did not answer within 1s", said)
            self.assertNotIn("tls", said.lower())

    def test_appended_and_not_to_be_reported_is_not_called_a_failure_to_append(self):
        with open("/dev/full", "wb") as full:
            for words in (("-d", "1"), ("--lines", "-")):
                result = subprocess.run([SLUICE, "append", self.stream, "-t", "t", *words], input=b"2\n", stdout=full,
                                        stderr=subprocess.PIPE, env=clean_environment(SLUICE_SERVER=self.server.grpc), timeout=WAIT_S)
                self.assertEqual(result.returncode, FAILED)
                self.assertRegex(result.stderr.decode(), r"^sluice: 1 event was appended, up to revision [01], but that cannot be written to "
                                                         r"the output: No space left on device\.\n$")
        self.assertEqual(len(self.json("read", self.stream)), 2)

    def test_an_empty_pipe_is_no_event(self):
        said = self.complaint("append", self.stream, "-t", "t", stdin="", code=USAGE)
        self.assertIn("--data ''", said)
        self.complaint("read", self.stream)


class SmallAppends(Case):
    words = ("--append-bytes-max", "100000", "--event-bytes-max", "100000")

    def test_behind_a_refused_batch_nothing_is_appended_though_it_would_fit(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(("x" * 399 + "\n") * 700)   # the last batch is what is left of it, and small enough
            file.flush()
            for expect in ("any", "none"):
                said = self.complaint("append", self.stream, "-t", "t", "--lines", file.name, "--expect", expect)
                self.assertIn("larger than the server allows for an append. Nothing was appended.", said)
                self.assertIn("no stream", self.complaint("read", self.stream))


class SmallEvents(Case):
    words = ("--event-bytes-max", "1000")

    def test_what_was_confirmed_before_a_refusal_counts_and_the_rest_does_not(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("1\n" * 5000 + "2" * 2000 + "\n" + "3\n" * 600)
            file.flush()
            said = self.complaint("append", self.stream, "-t", "t", "--lines", file.name)
        confirmed = re.search(r"a line is larger than the server allows for an event\. Confirmed: (\d+) events, up to line (\d+)", said)
        events = self.json("read", self.stream)
        self.assertEqual(len(events), int(confirmed[1]))
        self.assertEqual({event["data"] for event in events[:int(confirmed[2])]}, {1})
        self.assertEqual(confirmed[1], confirmed[2])
        self.assertLessEqual(int(confirmed[1]), 5000)

    def test_one_that_is_too_large(self):
        self.assertIn("the server refused", self.complaint("append", self.stream, "-t", "t", "-d", "x" * 2000))


class Read(Case):
    def fill(self, count=5, stream=None, kind="t"):
        self.out("append", stream or self.stream, "-t", kind, "--lines", "-", stdin="".join(f"{i}\n" for i in range(count)))

    def data(self, *words):
        return [event["data"] for event in self.json("read", *words)]

    def test_a_line_for_each_event(self):
        self.out("append", self.stream, "-t", "placed", "-d", '{"a": "b c",\n "d": 1}')
        self.assertRegex(self.out("read", self.stream), r'^0  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  placed  \{"a":"b c","d":1\}\n$')

    def test_from_count_and_backwards(self):
        self.fill()
        for words, wanted in (((), [0, 1, 2, 3, 4]), (("--count", 2), [0, 1]), (("--from", 3), [3, 4]), (("--from", "start", "-n", 1), [0]),
                              (("-b", "--from", "end", "-n", 2), [4, 3]), (("-b",), [4, 3, 2, 1, 0]), (("-b", "-n", 1), [4]), (("-b", "--from", 1), [1, 0]),
                              (("-b", "--from", "start"), [0]), (("--from", 9), [])):
            self.assertEqual(self.data(self.stream, *words), wanted, words)

    def test_a_stream_that_is_not_there(self):
        self.assertEqual(self.complaint("read", self.stream), f'sluice: there is no stream "{self.stream}".\n')

    def test_all_streams_and_filters(self):
        self.fill(2, f"{self.stream}-a", "red")
        self.fill(2, f"{self.stream}-b", "blue")
        self.fill(2, f"{self.stream}-c", "green")

        def found(*words):
            return [(event["stream"][-1], event["type"], event["data"]) for event in self.json("read", "--all", *words)]
        everything = [(letter, kind, i) for letter, kind in (("a", "red"), ("b", "blue"), ("c", "green")) for i in range(2)]
        self.assertEqual(found("--filter-stream", f"{self.stream}-"), everything)
        self.assertEqual(found("--filter-stream", f"{self.stream}-a", "--filter-stream", f"{self.stream}-c"), everything[:2] + everything[4:])
        self.assertEqual(found("--filter-stream", f"^{self.stream}-[bc]$", "--regex"), everything[2:])
        self.assertEqual(found("--filter-stream", f"{self.stream}-", "--backwards", "--count", 3), everything[:2:-1])
        types = [event["type"] for event in self.json("read", "--all", "--filter-type", "re", "--filter-type", "blu")]
        self.assertEqual(set(types), {"red", "blue"})
        position = [event["position"] for event in self.json("read", "--all", "--filter-stream", f"{self.stream}-")][3]
        self.assertEqual(found("--filter-stream", f"{self.stream}-", "--from", position), everything[3:])
        line = self.out("read", "--all", "--filter-stream", f"{self.stream}-a", "--count", 1)
        self.assertRegex(line, rf"^\d+  0@{self.stream}-a  \S+  red  0\n$")

    def test_links_are_resolved_when_asked_for(self):
        self.fill(2)
        self.out("append", f"{self.stream}-links", "-t", "$>", "-d", f"1@{self.stream}", "--content-type", "binary")
        self.out("append", f"{self.stream}-links", "-t", "$>", "-d", f"9@{self.stream}", "--content-type", "binary")
        plain = self.json("read", f"{self.stream}-links")
        self.assertEqual([event["type"] for event in plain], ["$>", "$>"])
        found, lost = self.json("read", f"{self.stream}-links", "--resolve-links")
        self.assertEqual((found["stream"], found["data"], found["resolved"], found["link"]["revision"]), (self.stream, 1, True, 0))
        self.assertEqual((lost["resolved"], lost["type"], lost["revision"]), (False, "$>", 1))

    def test_what_does_not_fit_together(self):
        for words, sentence in ((("read",), "either the name of a STREAM or --all"), (("read", "x", "--all"), "either the name"),
                                (("read", "x", "--follow", "--backwards"), "cannot be combined"), (("read", "x", "--filter-type", "a"), "--all"),
                                (("read", "--all", "--filter-type", "a", "--filter-stream", "b"), "not both"),
                                (("read", "x", "--from", "end"), "Behind the end"), (("read", "--all", "--regex"), "needs --filter-stream"), (("read", "x", "--from", "-1"), "--from needs"),
                                (("read", "--all", "--regex", "--filter-type", "a", "--filter-type", "b"), "one regular expression")):
            self.assertIn(sentence, self.complaint(*words, code=USAGE))

    def test_nothing_in_an_event_is_obeyed_by_a_terminal(self):
        self.out("append", self.stream, "-t", "a\x1b[2Jb", "-f", "-", stdin=b"\x1b]0;title\x07\nsecond line\xff")
        shown = self.out("read", self.stream)
        self.assertEqual(shown.count("\n"), 1)
        self.assertIn(r"a\x1b[2Jb  \x1b]0;title\x07\x0asecond line\xff", shown)
        self.assertEqual(self.json("read", self.stream)[0]["type"], "a\x1b[2Jb")

    def test_a_reader_that_goes_away_ends_it(self):
        self.fill(20000)
        process = self.start("read", self.stream)
        process.stdout.readline()
        process.stdout.close()
        self.assertNotEqual(process.wait(timeout=WAIT_S), None)
        process.stdout = None

    def test_on_a_terminal_lines_are_cut(self):
        self.out("append", self.stream, "-t", "t", "-d", "x" * 500)
        reader, writer = pty.openpty()
        subprocess.run([SLUICE, "read", self.stream, "--server", self.server.grpc], env=clean_environment(), stdout=writer, timeout=WAIT_S)
        os.close(writer)
        shown = read_terminal(reader)
        self.assertTrue(shown.endswith("...\r\n"), shown)
        self.assertLessEqual(len(shown), 122)


class Follow(Case):
    def test_shows_what_is_there_and_what_comes_and_ends_with_ctrl_c(self):
        self.append("0")
        process = self.start("read", self.stream, "--follow", "--json")
        self.assertEqual(json.loads(process.stdout.readline())["data"], 0)
        for i in range(1, 4):
            self.append(str(i))
            self.assertEqual(json.loads(process.stdout.readline())["data"], i)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=WAIT_S), OK)
        self.assertEqual(process.stderr.read(), "")

    def test_from_a_revision_the_event_itself_comes_first(self):
        for i in range(4):
            self.append(str(i))
        for first in range(4):
            shown = self.json("read", self.stream, "--follow", "--from", first, "--count", 4 - first)
            self.assertEqual([event["data"] for event in shown], list(range(first, 4)))
        position = self.json("read", self.stream)[2]["position"]
        shown = self.json("read", "--all", "--follow", "--from", position, "--count", 2, "--filter-stream", self.stream)
        self.assertEqual([event["data"] for event in shown], [2, 3])

    def test_a_stream_that_does_not_exist_yet_is_waited_for(self):
        process = self.start("read", self.stream, "--follow", "--count", "1", "--json")
        other = self.start("read", "--all", "--follow", "--filter-stream", self.stream, "--count", "1", "--json")
        self.append("5")
        self.assertEqual([json.loads(p.stdout.readline())["data"] for p in (process, other)], [5, 5])
        self.assertEqual([p.wait(timeout=WAIT_S) for p in (process, other)], [OK, OK])

    def test_a_restarted_server_costs_no_event_and_repeats_none(self):
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "data")
            server = Server(data, port=free_port())
            self.append("0", server=server.grpc)
            followers = [self.start("read", self.stream, "--follow", "--json", server=server.grpc),
                         self.start("read", "--all", "--follow", "--filter-stream", self.stream, "--json", server=server.grpc)]
            for follower in followers:
                self.assertEqual(json.loads(follower.stdout.readline())["data"], 0)
            for i, number in enumerate((signal.SIGTERM, signal.SIGKILL), 1):
                server.end(number)
                server = Server(data, port=server.port)
                self.append(str(i), server=server.grpc)
                for follower in followers:
                    self.assertEqual(json.loads(follower.stdout.readline())["data"], i)
            for follower in followers:
                follower.send_signal(signal.SIGTERM)
                self.assertEqual(follower.wait(timeout=WAIT_S), OK)
                self.assertEqual(follower.stdout.read(), "")
                self.assertEqual(follower.stderr.read().count("trying again"), 2)
            server.end()

    def test_a_server_that_was_never_there_is_not_waited_for(self):
        with deaf_port() as port:
            self.assertIn("connection refused", self.complaint("read", self.stream, "--follow", server=f"127.0.0.1:{port}"))


class Streams(Case):
    def test_info(self):
        for i in range(3):
            self.append(str(i))
        info, = self.json("stream", "info", self.stream)
        self.assertEqual((info["events"], info["first_revision"], info["last_revision"], info["last_type"]), (3, 0, 2, "t"))
        self.assertIsNone(info["metadata"])
        self.assertIn("3 events, revisions 0 to 2", self.out("stream", "info", self.stream))
        self.assertIn("there is no stream", self.complaint("stream", "info", f"{self.stream}-x"))

    def test_metadata_is_set_shown_and_has_its_effect(self):
        for i in range(5):
            self.append(str(i))
        self.assertEqual(self.out("stream", "metadata", self.stream), f'stream "{self.stream}" has no metadata\n')
        done, = self.json("stream", "metadata", self.stream, "--set", '{"$maxCount": 2, "mine": [1]}', "--expect", "none")
        self.assertEqual(done["metadata_revision"], 0)
        self.assertEqual(self.json("stream", "metadata", self.stream)[0]["metadata"], {"$maxCount": 2, "mine": [1]})
        self.assertEqual(json.loads(self.out("stream", "metadata", self.stream)), {"$maxCount": 2, "mine": [1]})
        info, = self.json("stream", "info", self.stream)
        self.assertEqual((info["events"], info["first_revision"], info["metadata_revision"]), (2, 3, 0))
        self.assertIn("JSON object", self.complaint("stream", "metadata", self.stream, "--set", "[1]", code=USAGE))
        self.assertIn("which is not what --expect says", self.complaint("stream", "metadata", self.stream, "--set", "{}", "--expect", "none"))

    def test_metadata_without_effect_is_noted(self):
        for text, note in (('{"$maxCount": "x"}', "$maxCount has no effect as it is: it needs a whole number from 1 on"),
                           ('{"maxCount": 5}', "'maxCount' means nothing to the server. Did you mean '$maxCount'?"),
                           ('{"$tb": -1}', "$tb has no effect"), ('{"$acl": 7}', "$acl has no effect")):
            result = self.run_sluice("stream", "metadata", self.stream, "--set", text)
            self.assertIn(note, result.stderr.decode())
        for text in ('{"$maxCount": 5, "$maxAge": 60, "$tb": 0, "$acl": {}, "mine": 1}', "{}"):
            self.assertEqual(self.run_sluice("stream", "metadata", self.stream, "--set", text).stderr, b"")

    def test_only_the_mark_of_a_deletion_means_that_it_was_deleted(self):
        other = {"deep": {"$tb": 9223372036854775807}, "text": '"$tb":9223372036854775807'}
        self.out("stream", "metadata", self.stream, "--set", json.dumps(other))
        info, = self.json("stream", "info", self.stream)
        self.assertEqual((info["events"], info["metadata"]), (0, other))
        self.out("stream", "metadata", self.stream, "--set", '{"$tb" : 9223372036854775807}')
        self.assertIn("was deleted", self.complaint("stream", "info", self.stream))

    def test_delete_hides_and_the_next_event_brings_back(self):
        self.append("0")
        self.assertIn("at revision 0, which is not what --expect says", self.complaint("stream", "delete", self.stream, "--expect", "4"))
        self.assertRegex(self.out("stream", "delete", self.stream, "--expect", "0"), rf'^deleted stream "{self.stream}": position \d+\n$')
        self.complaint("read", self.stream)
        self.assertIn("was deleted; a new event would bring it back", self.complaint("stream", "info", self.stream))
        self.assertEqual(self.append("1")["revision"], 1)
        self.assertEqual([event["data"] for event in self.json("read", self.stream)], [1])

    def test_a_tombstone_needs_a_yes_and_is_for_ever(self):
        self.append("0")
        self.assertIn("add --yes", self.complaint("stream", "delete", self.stream, "--tombstone", code=USAGE))
        self.assertEqual(len(self.json("read", self.stream)), 1)
        self.assertTrue(self.json("stream", "delete", self.stream, "--tombstone", "--yes")[0]["tombstone"])
        for words in (("read", self.stream), ("stream", "info", self.stream), ("append", self.stream, "-t", "t", "-d", "1")):
            self.assertIn(f'stream "{self.stream}" was deleted for ever', self.complaint(*words))
        self.assertIn("was deleted for ever", self.complaint("append", self.stream, "-t", "t", "--lines", "-", stdin="1\n"))

    def test_names_of_all_kinds(self):
        for name in ("schön ☕", "100%", "a/b?c", '"quoted"', "-", "x" * 900):
            stream = f"{self.stream} {name}"
            self.assertEqual(self.append("1", stream=stream)["stream"], stream)
            self.assertEqual(self.json("stream", "info", stream)[0]["events"], 1)
            self.json("stream", "delete", stream, "--tombstone", "--yes")
            said = self.complaint("read", stream)
            self.assertIn(stream[:200], said)


if __name__ == "__main__":
    unittest.main()
