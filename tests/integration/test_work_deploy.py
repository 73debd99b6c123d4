#!/usr/bin/env python3
"""What an orchestrator does with workers, and what it is told: what the server knows of a drain (B12), which replica is cheapest to remove
(B17), and the preStop hook of examples/deploy/kubernetes-prestop.yaml, run against a worker with the options of the same file (B7)."""
import json
import pathlib
import re
import shlex
import subprocess
import unittest

from client_case import ROOT, SLUICE, WAIT_S, clean_environment
from test_consumer_cli import HELD
from test_work_rules import BEGIN, DONE, WAIT, RulesCase
from work_case import UNCLEAN, signal, wait_until

EXAMPLE = ROOT / "examples" / "deploy" / "kubernetes-prestop.yaml"
THEIR_OWN = ("--from=", "--exec=", "--status-")  # what the test has to have its own way


class Reports(RulesCase):
    def test_the_server_knows_what_a_drain_interrupted_and_how_long_it_took_B12_B2(self):
        self.fill(3)
        work = self.waiting("--slots", 1, "--window", 3, "--grace", "20s", "--name", "pod")
        self.ledger.wait("begin", 1)
        work.wait_offered(3)
        work.send(signal.SIGTERM)
        wait_until(lambda: "draining" in work.log(), "the drain")
        self.assertEqual(work.end(signal.SIGINT)[0], UNCLEAN, work.log())
        kept, = self.json("consumer", "drains", "--stream", self.stream)
        self.assertEqual((kept["settled"], kept["released"], kept["interrupted"], kept["lost"]), (0, 3, 1, 0))
        self.assertEqual(kept["interrupted"], self.drain_of(work)["interrupted"])
        self.assertLessEqual(kept["took_ms"], self.drain_of(work)["used_seconds"] * 1000 + 1)
        heads, line = self.out("consumer", "drains", "--stream", self.stream).splitlines()
        self.assertRegex(heads, r"TOOK  SETTLED  RELEASED  INTERRUPTED  LOST$")
        self.assertEqual(line.split()[-4:], ["0", "3", "1", "0"])


class Removal(RulesCase):
    def pod(self, name, *words):
        return self.waiting("--slots", 1, "--window", 3, "--grace", "20s", "--name", name, *words)

    def costs(self):
        rows = self.json("consumer", "list", "--stream", self.stream)
        return {row["name"]: row["removal_cost"] for row in rows}, [row["name"] for row in rows if row["cheapest_to_remove"]]

    def wait_for(self, *wanted):
        wait_until(lambda: self.costs() == wanted, f"{wanted}, not {self.costs()}")

    def test_worker_and_server_say_what_it_costs_to_remove_each_and_who_is_the_cheapest_B17(self):
        self.fill(4)
        full = self.pod("full")
        self.wait_for({"full": 1002}, ["full"])
        one = self.pod("one")
        self.wait_for({"full": 1002, "one": 1000}, ["one"])
        idle = self.pod("idle")
        self.wait_for({"full": 1002, "one": 1000, "idle": 0}, ["idle"])
        for work, cost in ((full, 1002), (one, 1000), (idle, 0)):
            self.assertEqual(self.state(work)["removal_cost"], cost)
            self.assertIn(f"\nsluice_worker_removal_cost {cost}\n", work.page("/metrics")[1])
        heads, *lines = self.out("consumer", "list", "--stream", self.stream).splitlines()
        at = heads.index("CHEAPEST")
        self.assertEqual([line[at:].split()[:1] for line in lines], [[], [], ["yes"]])
        shown = self.out("consumer", "show", "idle", "--stream", self.stream, code=HELD)
        self.assertTrue(shown.endswith("removal cost: 0, the cheapest of its group\n"), shown)
        self.go()
        self.wait_for({"full": 0, "one": 0, "idle": 0}, ["idle"])


class Prestop(RulesCase):
    def setUp(self):
        super().setUp()
        self.text = EXAMPLE.read_text(encoding="utf-8")
        self.name = f"pod-{self.stream[-8:]}"  # as long as the names of pods, not of tests

    def pod(self):
        """A worker with a message that runs until go(), and two that wait."""
        options = [word for word in re.findall(r"^ +- (--\S+)$", self.text, re.MULTILINE) if not word.startswith(THEIR_OWN)]
        self.assertIn("--grace=45s", options)
        self.fill(3)
        work = self.work("--from", self.source(), "--exec", f"{BEGIN}; {WAIT}; {DONE}", *options, "--slots", 1, "--window", 3,
                         SLUICE_NAME=self.name, SLUICE_SERVER=f"sluice://{self.server.grpc}", GO=str(self.folder / "go"))
        self.ledger.wait("begin", 1)
        work.wait_offered(3)
        return work

    def hook(self, wait=None):
        """As kubelet does: the command, in the environment of the container."""
        words = shlex.split(re.search(r"^ +command: \[(sh, .*)\]$", self.text, re.MULTILINE)[1].replace(", ", " "))
        self.assertEqual(words[:2], ["sh", "-c"])
        environment = clean_environment(SLUICE_NAME=self.name, SLUICE_SERVER=f"sluice://{self.server.grpc}")
        environment["PATH"] = f"{pathlib.Path(SLUICE).parent}:{environment['PATH']}"
        hook = subprocess.Popen([*words[:2], re.sub(r"\d+s$", wait, words[2]) if wait else words[2]], env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(hook.stdout.close)
        self.addCleanup(hook.kill)
        return hook

    def test_the_hook_ends_when_the_worker_has_drained_and_SIGTERM_finds_nothing_to_do_B7_B10(self):
        work = self.pod()
        hook = self.hook()
        wait_until(lambda: "draining" in work.log(), "the drain")
        while "0 of 1 drained, 1 message in flight" not in (line := hook.stdout.readline()):
            self.assertNotEqual(line, "", "the hook does not wait for the message that runs")
        self.go()
        self.assertEqual(hook.wait(timeout=WAIT_S), 0, hook.stdout.read())
        work.send(signal.SIGTERM)
        self.assertEqual(work.wait()[0], 0, work.log())
        drain = self.drain_of(work)
        self.assertEqual((drain["reason"], drain["escalated"], drain["finished"], drain["handed_back"], drain["interrupted"]),
                         ("operator", False, 1, 2, 0))

    def test_when_the_hook_gives_up_SIGTERM_cuts_nothing_short_B7(self):
        work = self.pod()
        hook = self.hook(wait="1s")
        self.assertEqual(hook.wait(timeout=WAIT_S), HELD, hook.stdout.read())
        work.send(signal.SIGTERM)
        wait_until(lambda: self.lines(work, "shutting down"), "SIGTERM")
        self.assertEqual(self.ledger.of("done"), [])
        self.go()
        self.assertEqual(work.wait()[0], 0, work.log())
        drain = self.drain_of(work)
        self.assertEqual((drain["reason"], drain["escalated"], drain["finished"], drain["interrupted"]), ("operator", False, 1, 0))

    def test_the_hook_that_explain_prints_for_several_workers_drains_all_of_them_B7(self):
        file = self.folder / "workers.ini"
        file.write_text("[work]\nexec = true\ngrace = 20s\n[work poll]\nfrom = schedule:every=1h\n[work other]\nfrom = schedule:every=2h\n")
        snippet = json.loads(self.out("work", "-c", file, "--explain", "--json"))["deployment"]["kubernetes_prestop"]["snippet"]
        command = re.search(r'command: \[sh, -c, "(.*)"\]\n', snippet)[1]
        work = self.work("-c", file)
        ran = subprocess.run(["sh", "-c", command.replace("localhost:2115", work.status)], capture_output=True, text=True, timeout=WAIT_S)
        self.assertTrue(json.loads(ran.stdout)["done"], ran.stdout + ran.stderr)
        self.assertEqual(work.wait()[0], 0, work.log())
        self.assertEqual([self.drain_of(work, number)["reason"] for number in (0, 1)], ["operator", "operator"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
