#!/usr/bin/env python3
"""Runs the real binary: what it prints, where it prints it, and the exit code a script would see."""
import json
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SLUICE = ROOT / "build" / "sluice"
OK, FAILED, USAGE = 0, 1, 2


def version_of_the_build():
    """As meson knows it: the binary must not have an opinion of its own."""
    info = json.loads((ROOT / "build/meson-info/intro-projectinfo.json").read_text())
    return info["version"]


def sluice(*words, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    return subprocess.run([SLUICE, *words], env={**clean, **environment}, capture_output=True, text=True, timeout=10)


class Help(unittest.TestCase):
    def test_every_way_to_ask_gives_the_same_answer(self):
        answers = [sluice("help"), sluice("--help"), sluice("-h")]
        for answer in answers:
            self.assertEqual((answer.returncode, answer.stderr), (OK, ""))
        self.assertEqual(len({answer.stdout for answer in answers}), 1)

    def test_lists_only_commands_that_run(self):
        section = sluice("help").stdout.split("commands:\n")[1].split("\n\n")[0]
        names = [line.split()[0] for line in section.splitlines()]
        self.assertIn("version", names)
        for name in names:
            answer = sluice(name, "--help")
            self.assertEqual((answer.returncode, answer.stderr), (OK, ""), name)
            self.assertTrue(answer.stdout.startswith(f"usage: sluice {name}"), name)
            self.assertEqual(answer.stdout, sluice("help", name).stdout)
            self.assertEqual(sluice(name).returncode, OK, name)

    def test_fits_on_a_screen(self):
        for line in sluice("help").stdout.splitlines():
            self.assertLessEqual(len(line), 100, line)


class Version(unittest.TestCase):
    def test_is_the_version_of_the_build(self):
        for words in (["version"], ["--version"], ["-V"]):
            answer = sluice(*words)
            self.assertEqual((answer.returncode, answer.stdout), (OK, f"sluice {version_of_the_build()}\n"))

    def test_as_json(self):
        self.assertEqual(json.loads(sluice("version", "--json").stdout), {"version": version_of_the_build()})
        self.assertEqual(json.loads(sluice("version", SLUICE_JSON="1").stdout), {"version": version_of_the_build()})


class Mistakes(unittest.TestCase):
    def assert_refused(self, answer, sentence):
        self.assertEqual((answer.returncode, answer.stdout), (USAGE, ""))
        self.assertIn(sentence, answer.stderr)
        self.assertEqual(answer.stderr.count("\n"), 1)

    def test_a_wrong_command(self):
        self.assert_refused(sluice("verison"), "there is no command 'verison'. Did you mean 'version'?")
        self.assert_refused(sluice("xyzzy"), "there is no command 'xyzzy'.")

    def test_a_wrong_option(self):
        self.assert_refused(sluice("version", "--jsson"), "there is no option '--jsson'. Did you mean '--json'?")
        self.assert_refused(sluice("--hepl"), "there is no option '--hepl'. Did you mean '--help'?")

    def test_a_wrong_value(self):
        self.assert_refused(sluice("budget", "--grace", "30"), "--grace needs a duration with its unit")
        self.assert_refused(sluice("budget", SLUICE_GRACE="soon"), "SLUICE_GRACE needs a duration with its unit")

    def test_no_command_at_all(self):
        answer = sluice()
        self.assertEqual((answer.returncode, answer.stdout), (USAGE, ""))
        self.assertIn("usage: sluice COMMAND", answer.stderr)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([SLUICE, "help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("cannot write the output", result.stderr)


class Budget(unittest.TestCase):
    def test_parts_fill_the_grace_S3_33(self):
        answer = json.loads(sluice("budget", "--grace", "45s", "--json").stdout)
        self.assertTrue(answer["fits"])
        self.assertEqual(answer["grace_ns"], 45 * 10**9)
        self.assertLessEqual(sum(answer["parts"].values()), answer["grace_ns"])

    def test_inner_limits_are_smaller_than_outer_ones_S2_13(self):
        answer = json.loads(sluice("budget", "--json").stdout)
        limits = [answer[f"{name}_ns"] for name in ("outer", "consumer", "workers", "handler")]
        self.assertEqual(limits, sorted(set(limits), reverse=True))

    def test_the_usual_grace_is_enough_by_default_S2_22(self):
        self.assertEqual(sluice("budget").stdout, sluice("budget", "--grace", "30s").stdout)
        self.assertEqual(sluice("budget").returncode, OK)

    def test_what_does_not_fit_is_refused_with_the_arithmetic_S3_32(self):
        answer = sluice("budget", "--grace", "30s", "--settle", "40s")
        self.assertEqual((answer.returncode, answer.stdout), (FAILED, ""))
        self.assertRegex(answer.stderr, r"settle 40s .* = 40\.4s does not fit into grace 30s")
        as_json = sluice("budget", "--grace", "30s", "--settle", "40s", "--json")
        self.assertEqual((as_json.returncode, as_json.stderr), (FAILED, ""))
        self.assertFalse(json.loads(as_json.stdout)["fits"])

    def test_the_environment_gives_the_grace_and_the_command_line_wins(self):
        seconds = 10**9
        from_environment = json.loads(sluice("budget", "--json", SLUICE_GRACE="50s").stdout)
        self.assertEqual(from_environment["grace_ns"], 50 * seconds)
        overruled = json.loads(sluice("budget", "--json", "-g", "40s", SLUICE_GRACE="50s").stdout)
        self.assertEqual(overruled["grace_ns"], 40 * seconds)


if __name__ == "__main__":
    unittest.main()
