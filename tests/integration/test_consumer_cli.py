#!/usr/bin/env python3
"""Runs `sluice consumer` against a real server: who is there, stop before a deploy with every way in which the waiting can end, go on.

Nothing sleeps: a test waits for an answer, for a line, or for the end of a process."""
import json
import os
import signal
import unittest

from client_case import FAILED, OK, USAGE, WAIT_S, Case, Server, free_port
from wire_consumer import DRAINED, EVENT, SETTLED, STOP_REQUESTED, STOPPED, Consumer

HELD = 4  # the exit code when somebody still holds messages


class ConsumerCase(Case):
    group = "billing"

    def setUp(self):
        super().setUp()
        self.out("group", "create", self.stream, self.group, "--start", "start")

    def consumer(self, name="", server=None, **more):
        consumer = Consumer(server or self.server.grpc, self.stream, self.group, name=name, **more)
        self.addCleanup(consumer.close)
        return consumer

    def holder(self, name, count=1, **more):
        """A consumer that holds so many messages, and their ids."""
        for _ in range(count):
            self.append()
        consumer = self.consumer(name, window=count, **more)
        return consumer, [consumer.event() for _ in range(count)]

    def listed(self, *words):
        return {row["name"]: row for row in self.json("consumer", "list", "--stream", self.stream, *words)}


class List(ConsumerCase):
    def test_who_is_there_and_what_they_hold(self):
        self.assertEqual(self.out("consumer", "list", "--stream", self.stream), "there are no such consumers\n")
        one, ids = self.holder("one", 2, labels={"version": "42", "zone": "a"})
        one.started(ids[0])
        self.consumer("two", labels={"version": "43"}, window=5)
        rows = self.listed()
        self.assertEqual({name: row["state"] for name, row in rows.items()}, {"one": "active", "two": "active"})
        self.assertEqual((rows["one"]["in_flight"], rows["one"]["window"], rows["one"]["deliveries"]), (2, 2, 2))
        self.assertEqual(rows["one"]["labels"], {"version": "42", "zone": "a"})
        self.assertFalse(rows["one"]["safe_to_terminate"])
        heads, *lines = self.out("consumer", "list", "--stream", self.stream).splitlines()
        self.assertTrue(heads.startswith("STREAM"))
        self.assertEqual(len(lines), 2)
        self.assertIn("version=42 zone=a", "".join(lines))
        self.consumer("")
        self.assertRegex(self.out("consumer", "list", "--stream", self.stream), r"billing +\? +active")

    def test_only_some(self):
        self.consumer("one", labels={"version": "42"})
        self.consumer("two", labels={"version": "43"})
        self.assertEqual(set(self.listed("--label", "version=42")), {"one"})
        self.assertEqual(set(self.listed("--name", "two")), {"two"})
        self.assertEqual(set(self.listed("--group", self.group)), {"one", "two"})
        self.assertEqual(set(self.listed("--label", "version=43", "--name", "one")), set())
        self.assertIn("--group needs --stream", self.complaint("consumer", "list", "--group", "g", code=USAGE))
        self.assertIn("--label needs a key", self.complaint("consumer", "list", "--label", "version", code=USAGE))

    def test_a_group_that_does_not_exist_is_said(self):
        said = self.complaint("consumer", "list", "--stream", self.stream, "--group", "nope")
        self.assertIn("nope", said)

    def test_names_that_a_terminal_would_obey(self):
        self.consumer("\x1b[2Jname", labels={"a": "\x1b[31m"})
        for words in (("list",), ("show", "\x1b[2Jname"), ("show", "\x1b[2J?"), ("drains",)):
            result = self.run_sluice("consumer", *words, code=HELD if words[-1].endswith("name") else FAILED if len(words) == 2 else OK)
            self.assertNotIn(b"\x1b", result.stdout + result.stderr)


class Show(ConsumerCase):
    """B17: is it safe to terminate?"""

    def test_from_active_over_stopping_to_drained(self):
        name = f"pod-{self.stream}"
        consumer, ids = self.holder(name)
        shown = self.out("consumer", "show", name, code=HELD)
        self.assertIn(f'consumer "{name}" of group "billing" on "{self.stream}": active for ', shown)
        self.assertIn("safe to terminate: no, it gets messages; stop it first\n", shown)
        self.out("consumer", "stop", name)
        self.assertIn("safe to terminate: no, it holds 1 message\n", self.out("consumer", "show", name, code=HELD))
        self.assertEqual(self.json("consumer", "show", name, code=HELD)[0]["asked_by"], "operator")
        consumer.take(STOPPED)
        consumer.ack(*ids)
        consumer.take(DRAINED)
        self.assertIn("safe to terminate: yes", self.out("consumer", "show", name))
        row, = self.json("consumer", "show", name)
        self.assertEqual((row["state"], row["safe_to_terminate"], row["in_flight"]), ("drained", True, 0))

    def test_nobody(self):
        self.assertIn('there is no consumer "nobody"', self.complaint("consumer", "show", "nobody"))
        self.assertIn("needs NAME behind it", self.complaint("consumer", "show", code=USAGE))


class Stop(ConsumerCase):
    """B10: an operator's stop, with wait, timeout and undo."""

    def test_it_returns_when_drained(self):
        consumer, ids = self.holder("pod", 2)
        stop = self.start("consumer", "stop", "pod", "--stream", self.stream, "--wait", "50s", "--reason", "deploy", "--deadline", "30s")
        self.assertEqual(stop.stderr.readline(), "sluice: 0 of 1 drained, 2 messages in flight\n")
        asked = consumer.take(STOP_REQUESTED)
        self.assertEqual((asked[1][0], asked[2][0]), (b"deploy", 30000))
        consumer.take(STOPPED)
        consumer.ack(ids[0])
        self.assertEqual(stop.stderr.readline(), "sluice: 0 of 1 drained, 1 message in flight\n")
        consumer.ack(ids[1])
        consumer.take(DRAINED)
        self.assertEqual(stop.wait(timeout=WAIT_S), OK)
        self.assertEqual(stop.stdout.read(), "drained: 1 consumer, safe to terminate\n")

    def test_nobody_is_there_so_there_is_nothing_to_wait_for(self):
        self.assertEqual(self.out("consumer", "stop", "nobody", "--wait", "50s"), "no such consumer is there: nothing to wait for\n")
        self.assertEqual(self.json("consumer", "stop", "nobody", "--wait", "50s")[0]["meant"], 0)

    def test_the_wait_ends_before(self):
        self.holder("pod", 1)
        words = ("consumer", "stop", "pod", "--stream", self.stream, "--wait", "1s")
        result = self.run_sluice(*words, code=HELD)
        self.assertIn(b"after 1s 1 of 1 consumers is not drained", result.stderr)
        self.assertEqual(self.json(*words, code=HELD), [{"meant": 1, "drained": 0, "in_flight": 1, "went_away": 0, "lost": 0, "unlabelled": 0, "rules": 0, "done": False}])
        self.assertIn("4  asked, but somebody was not drained when the wait ended", self.out("help", "consumer", "stop"))

    def test_without_wait_it_asks_and_returns(self):
        consumer, ids = self.holder("pod", 1)
        self.assertEqual(self.out("consumer", "stop", "pod", "--stream", self.stream),
                         "asked 1 consumer to stop: 0 drained, 1 message in flight\n")
        consumer.take(STOPPED)
        self.append()
        other = self.consumer("other")
        other.event()  # and not the one that is stopped
        consumer.ack(*ids)
        consumer.take(DRAINED)

    def test_who_goes_away_with_its_work_is_not_called_drained(self):
        consumer, ids = self.holder("pod", 2)
        consumer.started(*ids)
        stop = self.start("consumer", "stop", "pod", "--stream", self.stream, "--wait", "50s")
        consumer.take(STOPPED)
        consumer.close()
        self.assertEqual(stop.wait(timeout=WAIT_S), HELD)
        self.assertEqual(stop.stdout.read(), "gone: 0 drained, 1 went away with 2 messages in flight\n")
        self.assertEqual(stop.stderr.read().splitlines()[-1], "sluice: 0 of 1 drained, 1 gone with 2 messages in flight")

    def test_a_group_that_is_deleted_meanwhile_is_not_drained(self):
        consumer, _ = self.holder("pod", 1)
        stop = self.start("consumer", "stop", "pod", "--wait", "50s")
        consumer.take(STOPPED)
        self.out("group", "delete", self.stream, self.group)
        self.assertEqual(stop.wait(timeout=WAIT_S), FAILED)
        self.assertIn("The group was deleted", stop.stderr.read())

    def test_what_may_be_running_is_not_handed_back(self):
        consumer, ids = self.holder("pod", 2)
        self.assertIn("2 messages in flight", self.out("consumer", "stop", "pod", "--stream", self.stream, "--hand-back"))
        consumer.ack(*ids)
        consumer.take(DRAINED)

    def test_what_was_not_started_goes_to_others(self):
        consumer, ids = self.holder("pod", 2)
        consumer.started(ids[0])
        other = self.consumer("other")
        self.out("consumer", "stop", "pod", "--stream", self.stream, "--hand-back")
        consumer.take(STOP_REQUESTED)
        consumer.release(ids[1])
        self.assertEqual(other.event(), ids[1])
        consumer.ack(ids[0])
        consumer.take(DRAINED)

    def test_a_label_stops_all_that_have_it(self):
        label = {"version": self.stream}
        held = [self.holder(f"pod-{i}", labels=label) for i in range(3)]
        bystander = self.consumer("new", labels={"version": "43"})
        stop = self.start("consumer", "stop", "--label", f"version={self.stream}", "--wait", "50s", "--json")
        for consumer, ids in held:
            consumer.take(STOPPED)
            consumer.ack(*ids)
        self.assertEqual(json.loads(stop.stdout.readline()), {"meant": 3, "drained": 3, "in_flight": 0, "went_away": 0, "lost": 0, "unlabelled": 0, "rules": 1, "done": True})
        self.assertEqual(stop.wait(timeout=WAIT_S), OK)
        self.append()
        bystander.event()

    def test_whoever_joins_later(self):
        """By NAME only those that are there, so that the next process of that name works; by group everybody, until resume."""
        pod = self.consumer("pod")
        self.out("consumer", "stop", "pod", "--stream", self.stream, "--wait", "50s")
        pod.leave()
        again = self.consumer("pod")
        self.assertEqual(self.listed()["pod"]["state"], "active")
        again.leave()
        self.out("consumer", "stop", "--stream", self.stream, "--group", self.group, "--wait", "50s")
        late = self.consumer("late")
        late.take(STOPPED)
        self.out("consumer", "resume", "--stream", self.stream, "--group", self.group)
        self.append()
        self.consumer("last").event()

    def test_a_rule_is_told_by_stop_resume_info_and_the_log(self):
        own = Server(os.path.join(self.temporary.name, "told"))  # whose log nobody else writes to
        self.addCleanup(own.end)
        there = {"server": own.grpc}
        self.out("group", "create", self.stream, self.group, **there)
        words = ("--stream", self.stream, "--group", self.group)
        told = f'whoever joins group "billing" later is stopped too, until:\n  sluice consumer resume --stream {self.stream} --group billing\n'
        self.assertEqual(self.out("consumer", "resume", *words, **there), "there was no such rule; resumed 0 consumers\n")
        self.assertNotIn("stopped", self.out("group", "info", self.stream, self.group, **there))
        self.assertTrue(self.out("consumer", "stop", *words, "--reason", "deploy 43", **there).endswith(told))
        self.assertIn(f"stopped: whoever joins is stopped by a rule of an operator, until:\n  sluice consumer resume --stream {self.stream} --group billing\n",
                      self.out("group", "info", self.stream, self.group, **there))
        info, = self.json("group", "info", self.stream, self.group, **there)
        self.assertEqual((info["stop_rules"], info["everyone_stopped"]), (1, True))
        self.assertEqual(self.json("consumer", "stop", *words, **there)[0]["rules"], 1)
        self.assertEqual(self.out("consumer", "resume", *words, **there), "took back the rule; resumed 0 consumers\n")
        with open(own.log.name, encoding="utf-8") as log:
            lines = [json.loads(line) for line in log]
        asked = [(line["message"], line["reason"], line["consumers"], line["rules"]) for line in lines if line.get("group") == self.group
                 and line.get("stream") == self.stream and line["message"].startswith("operator ")]
        self.assertEqual(asked, [("operator resumes consumers", "", 0, 0), ("operator stops consumers", "deploy 43", 0, 1),
                                 ("operator stops consumers", "", 0, 1), ("operator resumes consumers", "", 0, 1)])

    def test_a_rule_that_could_not_be_made_is_said(self):
        self.assertEqual(self.out("consumer", "stop", "nobody", "--newcomers", "stop"),
                         "no such consumer is there: nothing to wait for\n"
                         "no rule for newcomers was made, because no group has such a consumer: name the group with --stream and --group\n")
        self.out("consumer", "stop", "pod", "--newcomers", "stop", "--label", "version=42", "--stream", self.stream)
        said = self.out("consumer", "stop", "--label", "version=it's", "--stream", self.stream)
        self.assertIn("whoever joins 1 group later with version='it's' is stopped too", said)
        info = self.out("group", "info", self.stream, self.group)
        self.assertIn("rules: 1 name or label is stopped on joining, until 'sluice consumer resume'\n", info)

    def test_a_stream_without_groups_is_said(self):
        for command in ("stop", "resume"):
            self.assertIn('there is no group on stream "nope"', self.complaint("consumer", command, "--stream", "nope"))

    def test_newcomers_can_be_said_otherwise(self):
        self.out("consumer", "stop", "pod", "--stream", self.stream, "--group", self.group, "--newcomers", "stop")
        self.consumer("pod").take(STOPPED)
        self.out("consumer", "resume", "pod", "--stream", self.stream, "--group", self.group)
        self.out("consumer", "stop", "--stream", self.stream, "--group", self.group, "--newcomers", "join")
        self.append()
        self.consumer("new").event()

    def test_it_can_be_taken_back(self):
        consumer, ids = self.holder("pod")
        self.out("consumer", "stop", "pod", "--stream", self.stream)
        consumer.take(STOPPED)
        self.assertEqual(self.json("consumer", "resume", "pod", "--stream", self.stream), [{"resumed": 1, "too_late": 0, "rules": 0}])
        consumer.ack(*ids)
        consumer.take(SETTLED)
        self.append()
        consumer.event()
        self.assertEqual(self.listed()["pod"]["state"], "active")

    def test_a_drained_one_has_to_connect_again(self):
        consumer = self.consumer("pod")
        self.out("consumer", "stop", "pod", "--stream", self.stream, "--wait", "50s")
        consumer.take(DRAINED)
        self.assertEqual(self.out("consumer", "resume", "pod", "--stream", self.stream, code=HELD),
                         "resumed 0 consumers; 1 was drained or leaving already: restart it\n")

    def test_whoever_is_meant_has_to_be_said(self):
        for command in ("stop", "resume"):
            self.assertIn("Who is meant?", self.complaint("consumer", command, code=USAGE))

    def test_interrupted_it_says_that_the_stop_stays(self):
        consumer, _ = self.holder("pod")
        stop = self.start("consumer", "stop", "pod", "--stream", self.stream, "--wait", "50s")
        stop.stderr.readline()
        stop.send_signal(signal.SIGINT)
        self.assertEqual(stop.wait(timeout=WAIT_S), FAILED)
        self.assertIn("The consumers are asked to stop all the same", stop.stderr.read())
        consumer.take(STOPPED)

    def test_a_server_that_is_killed_while_it_waits(self):
        """The command comes back to the next server and asks again, with the time that is left."""
        folder = os.path.join(self.temporary.name, "killed")
        server = Server(folder, port=free_port())
        self.out("group", "create", self.stream, self.group, "--start", "start", server=server.grpc)
        self.append(server=server.grpc)
        consumer = self.consumer("pod", server=server.grpc)
        consumer.event()
        stop = self.start("consumer", "stop", "pod", "--wait", "50s", server=server.grpc)
        stop.stderr.readline()
        server.end(signal.SIGKILL)
        self.assertIn("trying again", stop.stderr.readline())
        server = Server(folder, port=server.port)
        self.addCleanup(server.end)
        again = self.consumer("pod", server=server.grpc)
        again.take(STOPPED)
        while again.find(EVENT) is not None:
            again.ack(again.event())
        again.take(DRAINED)
        self.assertEqual(stop.wait(timeout=WAIT_S), OK)
        self.assertIn("drained: 1 consumer", stop.stdout.read())

    def test_who_does_not_come_back_to_the_next_server_is_not_drained(self):
        folder = os.path.join(self.temporary.name, "restarted")
        server = Server(folder, port=free_port())
        self.out("group", "create", self.stream, self.group, "--start", "start", server=server.grpc)
        self.append(server=server.grpc)
        consumer = self.consumer("pod", server=server.grpc)
        consumer.event()
        stop = self.start("consumer", "stop", "pod", "--wait", "8s", "--json", server=server.grpc)
        stop.stderr.readline()
        server.end(signal.SIGKILL)
        server = Server(folder, port=server.port)
        self.addCleanup(server.end)
        self.assertEqual(stop.wait(timeout=WAIT_S), HELD)
        self.assertFalse(json.loads(stop.stdout.read())["done"])
        self.assertIn("after 8s 1 of 1 consumers is not drained", stop.stderr.read())

    def test_without_a_server(self):
        self.assertIn("connection refused", self.complaint("consumer", "stop", "pod", server="127.0.0.1:1"))
        said = self.complaint("consumer", "stop", "pod", "--wait", "3s", server="127.0.0.1:1")
        self.assertEqual(said.count("trying again"), 1)
        self.assertIn("connection refused", said)


class Restarts(ConsumerCase):
    """The hook of a process that works on, while its server goes and comes: what it says is never "nobody"."""

    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.temporary.name, self.stream)
        self.own = Server(self.folder, "--grace", "2s", port=free_port())
        self.addCleanup(lambda: self.own.end())
        self.out("group", "create", self.stream, self.group, "--start", "start", server=self.own.grpc)
        self.append(server=self.own.grpc)
        self.pod = self.consumer("pod", server=self.own.grpc)
        self.id = self.pod.event()

    def hook(self):
        return self.start("consumer", "stop", "pod", "--wait", "55s", server=self.own.grpc)

    def come_back_and_drain(self):
        again = self.consumer("pod", server=self.own.grpc, resume=[self.id])
        again.take(STOPPED)
        again.ack(self.id)
        again.take(DRAINED)

    def read_until(self, hook, text):
        line = hook.stderr.readline()
        while line and text not in line:
            line = hook.stderr.readline()
        self.assertIn(text, line)

    def check(self, *hooks):
        for hook in hooks:
            self.assertEqual(hook.wait(timeout=WAIT_S), OK, hook.stderr.read())
            self.assertIn("safe to terminate", hook.stdout.read())

    def test_the_server_is_down_when_the_hook_starts(self):
        self.own.end(signal.SIGKILL)
        hook = self.hook()
        self.assertIn("trying again", hook.stderr.readline())
        self.own = Server(self.folder, port=self.own.port)
        self.assertEqual(hook.stderr.readline(), "sluice: 0 of 1 drained, 1 message in flight\n")
        self.come_back_and_drain()
        self.check(hook)

    def restart(self, number):
        before = self.hook()
        self.read_until(before, "1 message in flight")
        self.own.process.send_signal(number)
        ending = self.hook()
        self.read_until(ending, "trying again")
        self.assertEqual(self.own.end(0), 0 if number == signal.SIGTERM else -number)
        down = self.hook()
        self.read_until(down, "trying again")
        self.own = Server(self.folder, port=self.own.port)
        started = self.hook()
        self.read_until(before, "trying again")  # the rest is no news to it
        for hook in (started, ending, down):
            self.read_until(hook, "1 message in flight")
        self.come_back_and_drain()
        self.check(before, ending, down, started)

    def test_at_every_moment_of_a_restart(self):
        self.restart(signal.SIGTERM)

    def test_at_every_moment_of_a_kill(self):
        self.restart(signal.SIGKILL)


class Drains(ConsumerCase):
    """B12: the report of each drain is kept and listed."""

    def test_reports(self):
        self.assertEqual(self.json("consumer", "drains", "--stream", self.stream), [])
        self.assertEqual(self.out("consumer", "drains", "--stream", self.stream), "no such consumer has stopped since this server was started\n")
        consumer, ids = self.holder("pod", 2)
        self.out("consumer", "stop", "pod", "--stream", self.stream)
        consumer.take(STOPPED)
        consumer.ack(*ids)
        consumer.take(DRAINED)
        report, = self.json("consumer", "drains", "--stream", self.stream)
        self.assertEqual((report["name"], report["asked_by"], report["outcome"]), ("pod", "operator", "drained"))
        self.assertEqual((report["settled"], report["released"], report["lost"]), (2, 0, 0))
        self.assertRegex(report["stopped_at"], r"^20\d\d-")
        heads, line = self.out("consumer", "drains", "--stream", self.stream).splitlines()
        self.assertTrue(heads.startswith("STOPPED"))
        self.assertIn("drained", line)
        self.assertEqual(self.json("consumer", "drains", "--name", "other", "--stream", self.stream), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
