#!/usr/bin/env python3
"""The numbers in examples/deploy are those that `sluice work --explain` makes from the options in the same file (S3.33)."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SLUICE = ROOT / "build" / "sluice"
DEPLOY = ROOT / "examples" / "deploy"


def sluice(*words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    return subprocess.run([SLUICE, *words], env=clean, capture_output=True, text=True, timeout=60)


def explained(words):
    answer = sluice("work", *words, "--explain", "--json")
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == "", answer.stderr                  # an example should need no warning
    return json.loads(answer.stdout)


def only(pattern, text):
    """What the pattern finds: exactly one, so that a second number cannot hide."""
    found = re.findall(pattern, text, re.MULTILINE)
    assert len(found) == 1, (pattern, found)
    return found[0]


def words_of_list(text):
    """[a, "b", c] as YAML has it on one line."""
    return [word.strip().strip('"') for word in text.strip("[]").split(", ")]


class Examples(unittest.TestCase):
    def setUp(self):
        self.texts = {path.name: path.read_text() for path in DEPLOY.iterdir()}

    def kubernetes(self, name="kubernetes.yaml"):
        text = self.texts[name]
        return text, re.findall(r"^ +- (--\S+)$", text, re.MULTILINE)

    def prestop(self):
        return self.kubernetes("kubernetes-prestop.yaml")

    def systemd(self):
        text = self.texts["sluice-worker.service"]
        words = shlex.split(only(r"^ExecStart=(.*)$", text))
        self.assertEqual(words[1], "work")
        return text, words[2:]

    def compose(self):
        text = self.texts["compose.yaml"].split("\n  worker:\n")[1]
        words = words_of_list(only(r"^    command: (\[.*\])$", text))
        self.assertEqual(words[:2], ["sluice", "work"])
        return text, words[2:]

    def test_every_example_is_looked_at(self):
        self.assertEqual(sorted(self.texts), ["compose.yaml", "kubernetes-prestop.yaml", "kubernetes.yaml", "sluice-worker.service"])

    def test_the_grace_of_kubernetes_is_derived_S3_33(self):
        text, words = self.kubernetes()
        answer = explained(words)
        wanted = answer["deployment"]["kubernetes"]["terminationGracePeriodSeconds"]
        self.assertEqual(int(only(r"^ +terminationGracePeriodSeconds: (\d+)$", text)), wanted)
        for path in ("/readyz", "/livez"):
            probe = only(r"httpGet: (\{path: %s, port: \d+\})" % path, text)
            self.assertIn(probe, answer["deployment"]["kubernetes"]["snippet"])

    def test_the_time_of_a_prestop_hook_comes_on_top_of_the_grace_S3_33_B7(self):
        text, words = self.prestop()
        answer = explained(words)["deployment"]
        prestop = answer["kubernetes_prestop"]
        self.assertEqual(prestop["terminationGracePeriodSeconds"], answer["grace_seconds"] + prestop["hook_seconds"])
        self.assertEqual(int(only(r"^ +terminationGracePeriodSeconds: (\d+)$", text)), prestop["terminationGracePeriodSeconds"])
        self.assertEqual(int(only(r" --wait (\d+)s", text)), prestop["hook_seconds"])
        for snippet in (prestop["snippet"], sluice("work", *words, "--explain").stdout):
            self.assertIn(only(r"^ +(command: \[sh, .*\])$", text) + "\n", snippet)
            self.assertIn(f": {answer['grace_seconds']}s of --grace + {prestop['hook_seconds']}s of the hook.\n", snippet)
            self.assertIn(f"terminationGracePeriodSeconds: {prestop['terminationGracePeriodSeconds']}\n", snippet)

    def test_the_grace_of_systemd_is_derived_S3_33(self):
        text, words = self.systemd()
        answer = explained(words)["deployment"]
        self.assertEqual(int(only(r"^TimeoutStopSec=(\d+)$", text)), answer["systemd"]["TimeoutStopSec"])
        self.assertEqual(int(only(r"^WatchdogSec=(\d+)$", text)), answer["watchdog_seconds"])
        for line in ("Type=notify", "KillMode=mixed", "RestartPreventExitStatus=2"):
            self.assertIn(line + "\n", text)
            self.assertIn(line + "\n", answer["systemd"]["snippet"])
        self.assertIn("--notify", words)

    def test_the_grace_of_compose_is_derived_S3_33(self):
        text, words = self.compose()
        answer = explained(words)["deployment"]["compose"]
        self.assertEqual(only(r"^    stop_grace_period: (\S+)$", text), answer["stop_grace_period"])

    def test_no_example_gives_less_than_all_parts_together_S3_30(self):
        for _, words in (self.kubernetes(), self.prestop(), self.systemd(), self.compose()):
            answer = explained(words)
            parts = sum(answer["budget"]["parts"].values())
            self.assertLessEqual(parts, answer["budget"]["grace_ns"])
            self.assertLessEqual(answer["budget"]["grace_ns"], answer["deployment"]["grace_seconds"] * 10**9)


class Explain(unittest.TestCase):
    LINE = ("--from", "schedule:every=30m", "--exec", "true")

    def test_the_parts_for_people_and_for_programs_are_the_same_S3_32(self):
        text = sluice("work", *self.LINE, "--grace", "45s", "--explain").stdout
        parts = explained((*self.LINE, "--grace", "45s"))["budget"]["parts"]
        for name, length_ns in parts.items():
            self.assertRegex(text, rf"(?m)^  {name.removesuffix('_ns')} +{length_ns // 10**9}s ")

    def test_the_budget_is_that_of_the_budget_command_S3_32(self):
        times = ("--grace", "1m", "--settle", "30s", "--fence", "1.5s")
        budget = json.loads(sluice("budget", *times, "--json").stdout)
        self.assertEqual(explained((*self.LINE, *times))["budget"]["parts"], budget["parts"])

    def test_nothing_is_started(self):
        answer = sluice("work", "--from", "sluice://127.0.0.1:1/none/none", "--exec", "touch /nonexistent/x", "--ack-file",
                        "/nonexistent/folder/acks", "--report", "/nonexistent/folder/report", "--explain")
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
