#!/usr/bin/env python3
"""The programs in tools/, the Makefile and the unit test program, as somebody meets them who types the wrong thing."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOLS = ("setup", "build", "test", "bench", "fuzz", "coverage", "install")
UNIT = ROOT / "build/tests/unit/unit"


def run(*words, cwd=ROOT):
    # A make above us would hand down its own variables.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    environment["CMOCKA_MESSAGE_OUTPUT"] = "TAP"
    return subprocess.run([str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60)


def copy_of_the_tools(folder):
    """A tree with nothing in it but the tools, in which nothing was ever built."""
    shutil.copytree(ROOT / "tools", pathlib.Path(folder) / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    return pathlib.Path(folder)


class Tools(unittest.TestCase):
    def test_each_explains_itself(self):
        for name in TOOLS:
            for option in ("--help", "-h"):
                answer = run(ROOT / "tools" / name, option)
                self.assertEqual((answer.returncode, answer.stderr), (0, ""), name)
                self.assertIn(f"tools/{name} ", answer.stdout)

    def test_each_refuses_a_wrong_word_with_its_name_and_exit_code_2(self):
        for name in TOOLS:
            answer = run(ROOT / "tools" / name, "nonsense")
            self.assertEqual((answer.returncode, answer.stdout), (2, ""), name)
            self.assertTrue(answer.stderr.startswith(f"tools/{name}: "), answer.stderr)
            self.assertEqual(answer.stderr.count("\n"), 1)

    def test_fuzz_runs_for_a_whole_number_of_seconds_from_1_on(self):
        for seconds in ("0", "-1", "abc", "1.5", "00", "99999999999"):
            answer = run(ROOT / "tools/fuzz", seconds)
            self.assertEqual(answer.returncode, 2)
            self.assertIn(f"SECONDS must be a whole number from 1 on, not '{seconds}'", answer.stderr)

    def test_what_was_not_built_is_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            top = copy_of_the_tools(folder)
            for name in ("bench", "fuzz", "coverage"):
                answer = run(top / "tools" / name)
                self.assertEqual(answer.returncode, 1)
                self.assertEqual(answer.stderr.count("\n"), 1, answer.stderr)
                self.assertIn("run `make", answer.stderr)

    def test_a_checkout_that_cannot_be_written_is_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            top = copy_of_the_tools(folder)
            (top / "build").touch()     # in the way also for root, whom a missing right would not stop
            for words in (["test"], ["test", "unit"], ["build", "release"]):
                answer = run(top / "tools" / words[0], *words[1:])
                self.assertEqual((answer.returncode, answer.stdout), (1, ""))
                self.assertIn("cannot write to build/", answer.stderr)
                self.assertEqual(answer.stderr.count("\n"), 1, answer.stderr)


class Make(unittest.TestCase):
    def test_help_fits_on_a_screen_and_shows_the_defaults(self):
        answer = run("make", "help")
        self.assertEqual(answer.returncode, 0)
        for line in answer.stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)
        for text in ("make asan ", "make tsan ", "make uninstall", "PREFIX=/usr/local", "SEEDS=100000", "SEED=1", "SECONDS=60",
                     "PARTS="):
            self.assertIn(text, answer.stdout)

    def test_a_number_that_is_none_is_refused_before_anything_is_built(self):
        for target, variable, bad in (("fuzz", "SECONDS", "0"), ("fuzz", "SECONDS", "-1"), ("fuzz", "SECONDS", "a'b"),
                                      ("sim", "SEEDS", "abc"), ("sim", "SEEDS", ""), ("sim", "SEED", "1e3"),
                                      ("sim", "SEEDS", "9" * 30)):
            answer = run("make", target, f"{variable}={bad}")
            self.assertEqual((answer.returncode, answer.stdout), (2, ""))
            self.assertIn(f'make {target}: {variable} must be a whole number from', answer.stderr)
            self.assertIn(f'not "{bad}"', answer.stderr)


class Unit(unittest.TestCase):
    def test_a_pattern_without_a_test_is_a_failure(self):
        answer = run(UNIT, "nope*")
        self.assertEqual((answer.returncode, answer.stdout), (1, ""))
        self.assertIn("no test matches 'nope*'", answer.stderr)

    def test_a_pattern_runs_what_it_matches(self):
        answer = run(UNIT, "a_lease_*")
        self.assertEqual(answer.returncode, 0)
        names = [line.split()[1] for line in run(UNIT, "--list").stdout.splitlines()]
        matching = sum(name.startswith("a_lease_") for name in names)
        self.assertGreater(matching, 0)         # the example in tests/unit/test.h
        self.assertIn(f"1..{matching}\n", answer.stdout)

    def test_the_list_says_where_each_test_stands(self):
        for line in run(UNIT, "--list").stdout.splitlines():
            file, name = line.split()
            self.assertIn(f"TEST({name})", (ROOT / file).read_text(), line)

    def test_an_unknown_option_is_a_mistake_of_the_caller(self):
        self.assertEqual(run(UNIT, "--lsit").returncode, 2)


if __name__ == "__main__":
    unittest.main()
