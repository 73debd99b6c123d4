#!/usr/bin/env python3
"""Runs `sluice group` and `sluice parked` against a real server: groups made, changed, looked at, watched; parked messages.

Nothing sleeps: a test waits for an answer, for a line, or for the end of a process."""
import json
import os
import pty
import signal
import subprocess
import unittest

from client_case import FAILED, OK, SLUICE, USAGE, WAIT_S, Case, Server, clean_environment, free_port
from wire_consumer import PARK, SETTLED, Consumer

DEFAULTS = {"start": "-1", "strategy": "RoundRobin", "message_timeout_ms": 30000, "max_retry_count": 10, "max_interrupts": 20, "max_kills": 5,
            "max_subscriber_count": 0,
            "resolve_links": False, "history_buffer_size": 500, "live_buffer_size": 500, "read_batch_size": 20,
            "checkpoint_after_ms": 2000, "min_checkpoint_count": 10, "max_checkpoint_count": 1000, "extra_statistics": False}


class GroupCase(Case):
    group = "billing"

    def create(self, *words, stream=None, group=None):
        return self.out("group", "create", stream or self.stream, group or self.group, *words)

    def info(self, stream=None, group=None):
        return self.json("group", "info", stream or self.stream, group or self.group)[0]

    def settings(self):
        return self.info()["settings"]

    def consumer(self, **more):
        consumer = Consumer(self.server.grpc, self.stream, self.group, **more)
        self.addCleanup(consumer.close)
        return consumer

    def park(self, count, reason="no such customer"):
        """Appends and parks so many; the consumer is gone afterwards."""
        for i in range(count):
            self.append(json.dumps({"n": i}))
        consumer = self.consumer(window=count)
        for _ in range(count):
            one = consumer.event()
            consumer.nack(PARK, one, reason=reason)
            consumer.take(SETTLED)
        consumer.leave()


class Create(GroupCase):
    def test_the_defaults_are_those_that_help_shows(self):
        self.assertEqual(self.create(), f'created group "billing" on stream "{self.stream}": it begins with events that are appended '
                                        "from now on\n")
        self.assertEqual(self.settings(), DEFAULTS)
        shown = self.out("help", "group", "create")
        for words in ("[end]", "[RoundRobin]", "[30s]", "[10]", "[0]", "[500]", "[20]", "[2s]", "[1000]"):
            self.assertIn(words, shown)

    def test_every_setting_arrives(self):
        self.create("--start", "5", "--strategy", "PinnedByCorrelation", "--message-timeout", "45s", "--max-retry-count", 1,
                    "--max-subscriber-count", 2, "--resolve-links", "--history-buffer-size", 300, "--live-buffer-size", 400,
                    "--read-batch-size", 30, "--checkpoint-after", "5s", "--min-checkpoint-count", 6, "--max-checkpoint-count", 7,
                    "--extra-statistics", "--max-interrupts", 8, "--max-kills", 0)
        self.assertEqual(self.settings(), {
            "start": "5", "strategy": "PinnedByCorrelation", "message_timeout_ms": 45000, "max_retry_count": 1, "max_subscriber_count": 2,
            "max_interrupts": 8, "max_kills": 0,
            "resolve_links": True, "history_buffer_size": 300, "live_buffer_size": 400, "read_batch_size": 30,
            "checkpoint_after_ms": 5000, "min_checkpoint_count": 6, "max_checkpoint_count": 7, "extra_statistics": True})

    def test_where_it_begins_is_what_consumers_get(self):
        for _ in range(3):
            self.append()
        for start, first in (("start", 0), ("1", 1)):
            self.create("--start", start, group=start)
            consumer = Consumer(self.server.grpc, self.stream, start)
            self.addCleanup(consumer.close)
            events = self.json("read", self.stream)
            self.assertEqual(consumer.event(), events[first]["id"])

    def test_a_group_on_all_streams_with_a_filter(self):
        group = self.stream
        self.assertIn(f'created group "{group}" on all streams', self.create("--filter-stream", self.stream, stream="$all", group=group))
        consumer = Consumer(self.server.grpc, "$all", group)
        self.addCleanup(consumer.close)
        self.append(stream="other-" + self.stream)
        self.append()
        self.assertEqual(consumer.event(), self.json("read", self.stream)[0]["id"])
        self.assertEqual(self.info(stream="$all", group=group)["stream"], "$all")
        self.assertIn(group, self.out("group", "list", "$all"))
        self.out("group", "delete", "$all", group)

    def test_a_second_one_is_refused_and_told_what_to_do(self):
        self.create("--max-retry-count", 3)
        said = self.complaint("group", "create", self.stream, self.group)
        self.assertIn(f'group "billing" on stream "{self.stream}" is there already, and was not changed. \'sluice group update\'', said)
        self.assertEqual(self.settings()["max_retry_count"], 3)

    def test_what_the_server_refuses_is_shown_with_its_reason(self):
        said = self.complaint("group", "create", self.stream, self.group, "--read-batch-size", 500, "--history-buffer-size", 500)
        self.assertIn("the server refused that for group", said)
        self.complaint("group", "info", self.stream, self.group)

    def test_what_is_not_understood_creates_nothing(self):
        for words, sentence in ((("--start", "later"), "--start needs"), (("--strategy", "Random"), "--strategy"),
                                (("--filter-type", "x"), "name $all as the STREAM"), (("--max-retry-count", "-1"), "--max-retry-count"),
                                (("--max-kills", "-1"), "--max-kills"), (("--max-interrupts", "few"), "--max-interrupts"),
                                (("--message-timeout", "5"), "--message-timeout needs a duration")):
            self.assertIn(sentence, self.complaint("group", "create", self.stream, self.group, *words, code=USAGE))
        self.assertIn("needs STREAM GROUP behind it", self.complaint("group", "create", self.stream, code=USAGE))
        self.complaint("group", "info", self.stream, self.group)

    def test_json(self):
        self.assertEqual(self.json("group", "create", self.stream, self.group),
                         [{"stream": self.stream, "group": self.group, "created": True}])
        self.assertIn("is there already", self.json("group", "create", self.stream, self.group, code=FAILED)[0]["error"])


class Change(GroupCase):
    def test_an_update_changes_what_is_named(self):
        self.create("--start", "7", "--strategy", "Pinned", "--max-retry-count", 3, "--resolve-links", "--message-timeout", "1s",
                    "--max-interrupts", 0, "--max-kills", 2)
        self.assertEqual(self.out("group", "update", self.stream, self.group, "--max-retry-count", 4),
                         f'updated group "billing" on stream "{self.stream}"\n')
        self.assertEqual(self.settings(), {**DEFAULTS, "start": "7", "strategy": "Pinned", "max_retry_count": 4, "resolve_links": True,
                                           "message_timeout_ms": 1000, "max_interrupts": 0, "max_kills": 2})
        self.out("group", "update", self.stream, self.group, "--resolve-links", "no", "--extra-statistics", "yes", "--start", "end",
                 "--strategy", "DispatchToSingle", "--max-interrupts", 7, "--max-kills", 0)
        self.assertEqual(self.settings(), {**DEFAULTS, "strategy": "DispatchToSingle", "max_retry_count": 4, "extra_statistics": True,
                                           "message_timeout_ms": 1000, "max_interrupts": 7, "max_kills": 0})

    def test_an_update_says_what_it_means_for_consumers_and_the_start(self):
        self.create("--start", "start", "--min-checkpoint-count", 1, "--max-checkpoint-count", 1)
        self.append()
        consumer = self.consumer()
        consumer.ack(consumer.event())
        consumer.take(SETTLED)
        said = self.out("group", "update", self.stream, self.group, "--start", "end")
        self.assertEqual(said.splitlines()[0], f'updated group "billing" on stream "{self.stream}": 1 consumer has to connect again')
        self.assertIn("--start has no effect: the group has begun", said)

    def test_an_update_of_a_group_on_all_streams_keeps_its_start(self):
        group = self.stream
        self.create("--start", "0", stream="$all", group=group)
        before = self.info("$all", group)["settings"]
        self.out("group", "update", "$all", group, "--max-subscriber-count", 9)
        self.assertEqual(self.info("$all", group)["settings"], {**before, "max_subscriber_count": 9})
        self.out("group", "delete", "$all", group)

    def test_a_strategy_that_an_update_cannot_say(self):
        self.create("--strategy", "PinnedByCorrelation")
        said = self.complaint("group", "update", self.stream, self.group, "--max-retry-count", 4)
        self.assertIn("an update cannot say the strategy PinnedByCorrelation", said)
        self.assertEqual(self.settings()["max_retry_count"], 10)

    def test_an_update_of_nothing_or_nobody(self):
        self.assertIn("Name at least one setting", self.complaint("group", "update", self.stream, self.group, code=USAGE))
        said = self.complaint("group", "update", self.stream, self.group, "--max-retry-count", 4)
        self.assertIn(f'there is no group "billing" on stream "{self.stream}". \'sluice group list\'', said)

    def test_a_deleted_group_is_gone(self):
        self.create()
        self.assertEqual(self.out("group", "delete", self.stream, self.group),
                         f'deleted group "billing" on stream "{self.stream}", with its parked messages\n')
        for words in (("group", "delete"), ("group", "info"), ("group", "watch"), ("parked", "list"), ("parked", "show"),
                      ("parked", "replay"), ("parked", "truncate")):
            self.assertIn("there is no group", self.complaint(*words, self.stream, self.group))

    def test_groups_outlive_the_server(self):
        folder = os.path.join(self.temporary.name, "outlive")
        server = Server(folder)
        self.out("group", "create", "orders", "billing", "--max-retry-count", 3, server=server.grpc)
        self.assertEqual(server.end(), OK)
        server = Server(folder)
        self.addCleanup(server.end)
        self.assertEqual(self.json("group", "info", "orders", "billing", server=server.grpc)[0]["settings"]["max_retry_count"], 3)


class Look(GroupCase):
    def test_info_for_people(self):
        self.create("--start", "start")
        for _ in range(3):
            self.append()
        consumer = self.consumer(name="worker-1", window=2)
        consumer.event(), consumer.event()
        shown = self.out("group", "info", self.stream, self.group)
        self.assertIn(f'group "billing" on "{self.stream}": ', shown)
        self.assertIn("messages: 2 in flight, ", shown)
        self.assertIn("settings: start 0, strategy RoundRobin, message-timeout 30s, max-retry-count 10", shown)
        self.assertIn("consumers: 1\n", shown)
        self.assertLess(max(map(len, shown.splitlines())), 110)

    def test_info_for_programs(self):
        self.create("--start", "start")
        self.append()
        consumer = self.consumer(name="worker-1")
        one = consumer.event()
        info = self.info()
        self.assertEqual((info["in_flight"], info["total"], len(info["consumers"]), info["parked"]), (1, 1, 1, 0))
        self.assertEqual((info["consumers"][0]["in_flight"], info["consumers"][0]["available_slots"]), (1, 9))
        consumer.ack(one)
        consumer.take(SETTLED)
        self.assertEqual(self.info()["in_flight"], 0)

    def test_lists(self):
        self.assertEqual(self.out("group", "list", self.stream), "there are no groups\n")
        self.assertEqual(self.json("group", "list", self.stream), [])
        for group in ("b", "a"):
            self.create(group=group)
        rows = self.out("group", "list", self.stream).splitlines()
        self.assertEqual([row.split()[:2] for row in rows], [["STREAM", "GROUP"], [self.stream, "a"], [self.stream, "b"]])
        self.assertEqual([row["group"] for row in self.json("group", "list", self.stream)], ["a", "b"])
        every = self.json("group", "list")
        self.assertEqual([row["group"] for row in every if row["stream"] == self.stream], ["a", "b"])
        self.out("group", "delete", self.stream, "a")
        self.out("group", "delete", self.stream, "b")
        self.assertEqual(self.json("group", "list", self.stream), [])

    def test_names_that_a_terminal_would_obey(self):
        self.create(group="\x1b[2Jg")
        for words in (("group", "list"), ("group", "info", self.stream, "\x1b[2Jg"), ("group", "delete", self.stream, "\x1b[2Jg")):
            result = self.run_sluice(*words)
            self.assertNotIn(b"\x1b", result.stdout + result.stderr)

    def test_without_a_server(self):
        said = self.complaint("group", "list", server="127.0.0.1:1")
        self.assertIn("connection refused. Is the server running?", said)


class Watch(GroupCase):
    def test_a_line_whenever_figures_change(self):
        self.create("--start", "start")
        watch = self.start("group", "watch", self.stream, self.group, "--json", "--interval", "10ms")
        first = json.loads(watch.stdout.readline())
        self.assertEqual((first["in_flight"], first["total"]), (0, 0))
        self.assertRegex(first["time"], r"^\d{4}-\d\d-\d\dT.*Z$")
        self.append()
        consumer = self.consumer()
        one = consumer.event()
        while json.loads(watch.stdout.readline())["in_flight"] != 1:
            pass
        consumer.ack(one)
        while json.loads(watch.stdout.readline())["in_flight"] != 0:
            pass
        watch.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(timeout=WAIT_S), OK)

    def test_nothing_is_said_twice(self):
        self.create("--start", "start")
        watch = self.start("group", "watch", self.stream, self.group, "--interval", "10ms")
        lines = [watch.stdout.readline()]
        self.park(1)  # ends with figures that stay
        while "parked 1" not in lines[-1] or " 0/s" not in lines[-1] or "consumers 0" not in lines[-1]:
            lines.append(watch.stdout.readline())
        self.out("group", "delete", self.stream, self.group)
        self.assertEqual(watch.wait(timeout=WAIT_S), FAILED)
        self.assertIn("there is no group", watch.stderr.read())
        lines += watch.stdout.readlines()  # of the checkpoint, which may have come meanwhile
        figures = [line.split("  ", 1)[1] for line in lines]
        self.assertTrue(all(one != other for one, other in zip(figures, figures[1:])), lines)

    def test_on_a_terminal_the_line_is_written_over(self):
        self.create()
        own, theirs = pty.openpty()
        watch = self.start_on_terminal(theirs, "group", "watch", self.stream, self.group, "--interval", "10ms")
        os.close(theirs)
        seen = b""
        while b"Live" not in seen:
            seen += os.read(own, 4096)
        self.assertTrue(seen.startswith(b"\r\x1b[K20"), seen)
        self.assertNotIn(b"\n", seen)
        watch.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(timeout=WAIT_S), OK)
        os.close(own)

    def start_on_terminal(self, terminal, *words):
        process = subprocess.Popen([SLUICE, *words], env=clean_environment(SLUICE_SERVER=self.server.grpc), stdout=terminal,
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def test_a_server_that_restarts_is_waited_for(self):
        folder = os.path.join(self.temporary.name, "restart")
        server = Server(folder, port=free_port())
        self.out("group", "create", "orders", "billing", server=server.grpc)
        watch = self.start("group", "watch", "orders", "billing", "--json", "--interval", "10ms", server=server.grpc)
        watch.stdout.readline()
        self.assertEqual(server.end(), OK)
        self.assertIn("trying again", watch.stderr.readline())
        server = Server(folder, port=server.port)
        self.addCleanup(server.end)
        self.out("group", "update", "orders", "billing", "--max-retry-count", 77, server=server.grpc)
        while json.loads(watch.stdout.readline())["settings"]["max_retry_count"] != 77:
            pass


class Parked(GroupCase):
    def test_nothing_is_parked(self):
        self.create()
        self.assertEqual(self.out("parked", "list", self.stream, self.group),
                         f'group "billing" on stream "{self.stream}" has no parked messages\n')
        self.assertEqual(self.json("parked", "list", self.stream, self.group), [])
        self.assertIn("has no parked message 0", self.complaint("parked", "show", self.stream, self.group, "0"))

    def test_list_and_show_say_which_event_and_why(self):
        self.create("--start", "start")
        self.park(2)
        lines = self.out("parked", "list", self.stream, self.group).splitlines()
        self.assertEqual(len(lines), 2)
        for i, line in enumerate(lines):
            self.assertRegex(line, rf"^{i}  20\S+Z  {i}@{self.stream}  t  Client explicitly NAK'ed message. no such customer$")
        self.assertEqual(self.out("parked", "list", self.stream, self.group, "--count", 1), lines[0] + "\n")
        shown = self.out("parked", "show", self.stream, self.group, "1")
        self.assertIn("parked message 1\n", shown)
        self.assertIn("  reason    Client explicitly NAK'ed message. no such customer\n", shown)
        self.assertIn('  data      {"n": 1}\n', shown)
        one, two = self.json("parked", "show", self.stream, self.group)
        event = self.json("read", self.stream)[0]
        self.assertEqual((one["number"], one["event"]["data"], one["event"]["id"]), (0, {"n": 0}, event["id"]))
        self.assertIn("added", one["link_metadata"])
        self.assertEqual([row["number"] for row in self.json("parked", "list", self.stream, self.group)], [0, 1])
        self.assertNotIn("data", self.json("parked", "list", self.stream, self.group)[0]["event"])
        self.assertIn("NUMBER", self.complaint("parked", "show", self.stream, self.group, "x", code=USAGE))

    def test_replay_gives_them_to_consumers_again(self):
        self.create("--start", "start")
        self.park(3)
        self.assertEqual(self.out("parked", "replay", self.stream, self.group, "--stop-at", 2),
                         f'replaying parked messages below 2 of group "billing" on stream "{self.stream}"\n')
        links = [row["id"] for row in self.json("parked", "list", self.stream, self.group)]
        consumer = self.consumer()
        replayed = [consumer.event(), consumer.event()]
        self.assertEqual(replayed, links[:2])
        consumer.ack(*replayed)
        consumer.take(SETTLED)
        self.assertEqual(self.info()["parked"], 1)
        self.assertEqual(self.json("parked", "replay", self.stream, self.group),
                         [{"stream": self.stream, "group": self.group, "count": 1, "replaying": True}])
        self.assertEqual(consumer.event(), links[2])

    def test_how_many_are_replayed_or_dropped(self):
        self.create("--start", "start")
        name = f'group "billing" on stream "{self.stream}"'
        for command in ("replay", "truncate"):
            self.assertEqual(self.out("parked", command, self.stream, self.group), f"{name} has no parked messages\n")
        self.assertEqual(self.json("parked", "truncate", self.stream, self.group)[0]["count"], 0)
        self.park(2)
        self.assertEqual(self.out("parked", "replay", self.stream, self.group), f"replaying 2 parked messages of {name}\n")

    def test_truncate_takes_nothing_from_who_works_on_a_replayed_one(self):
        """It is a message of its own by then: acked it is gone, and when it fails it is parked again."""
        self.create("--start", "start")
        self.park(2)
        self.out("parked", "replay", self.stream, self.group)
        consumer = self.consumer()
        links = [consumer.event(), consumer.event()]
        self.assertEqual(self.out("parked", "truncate", self.stream, self.group),
                         f'dropped 2 parked messages of group "billing" on stream "{self.stream}"\n')
        self.assertEqual(self.json("parked", "list", self.stream, self.group), [])
        consumer.ack(links[0])
        consumer.take(SETTLED)  # one by one: one Settled may be for both
        consumer.nack(PARK, links[1])
        consumer.take(SETTLED)
        self.assertEqual(len(self.json("parked", "list", self.stream, self.group)), 1)

    def test_truncate_drops_them(self):
        self.create("--start", "start")
        self.park(3)
        self.assertEqual(self.json("parked", "truncate", self.stream, self.group, "--stop-at", 1),
                         [{"stream": self.stream, "group": self.group, "stop_at": 1, "dropped": True}])
        self.assertEqual([row["number"] for row in self.json("parked", "list", self.stream, self.group)], [1, 2])
        self.assertIn("has no parked message 0", self.complaint("parked", "show", self.stream, self.group, "0"))
        self.assertIn("dropped 2 parked messages of group", self.out("parked", "truncate", self.stream, self.group))
        self.assertEqual(self.json("parked", "list", self.stream, self.group), [])
        self.assertEqual(len(self.json("read", self.stream)), 3)

    def test_an_event_that_is_gone_is_listed_all_the_same(self):
        self.create("--start", "start")
        self.park(1)
        self.out("stream", "delete", self.stream)
        row, = self.json("parked", "list", self.stream, self.group)
        self.assertEqual((row["event"], row["link"]), (None, f"0@{self.stream}"))
        self.assertIn("(gone)", self.out("parked", "list", self.stream, self.group))
        self.assertIn("the event itself is gone", self.out("parked", "show", self.stream, self.group, "0"))


class Users(GroupCase):
    """With users: not everybody may change groups."""

    def test_who_may_do_what_is_said(self):
        folder = os.path.join(self.temporary.name, "users")
        secret = os.path.join(self.temporary.name, "secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("correct horse\n")
        for name, words in (("boss", ("--admin",)), ("guest", ())):
            self.out("user", "add", name, "--data", folder, "--new-password-file", secret, *words)
        server = Server(folder)
        self.addCleanup(server.end)
        boss = {"server": server.grpc, "SLUICE_USER": "boss", "SLUICE_PASSWORD_FILE": secret}
        guest = {**boss, "SLUICE_USER": "guest"}
        self.assertIn("access denied", self.complaint("group", "create", "s", "g", **guest))
        self.out("group", "create", "s", "g", **boss)
        self.out("group", "info", "s", "g", **guest)
        for words in (("group", "delete", "s", "g"), ("parked", "list", "s", "g"), ("parked", "replay", "s", "g"), ("consumer", "list"),
                      ("consumer", "stop", "x")):
            self.assertIn("access denied", self.complaint(*words, **guest))
        self.assertIn("has no parked messages", self.out("parked", "list", "s", "g", **boss))
        self.out("consumer", "list", **boss)
        self.assertIn("Say who you are with --user NAME", self.complaint("group", "list", server=server.grpc))


if __name__ == "__main__":
    unittest.main(verbosity=2)
