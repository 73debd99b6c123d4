#!/usr/bin/env python3
"""Runs the real binary: what it prints, where it prints it, and the exit code a script would see."""
import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import tempfile
import termios
import unittest

from client_case import read_terminal

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SLUICE = ROOT / "build" / "sluice"
OK, FAILED, USAGE = 0, 1, 2
HARMLESS = ("help", "budget", "manual", "version")      # of those that need no word: what may be run to see that it runs


def version_of_the_build():
    """As meson knows it: the binary must not have an opinion of its own."""
    info = json.loads((ROOT / "build/meson-info/intro-projectinfo.json").read_text())
    return info["version"]


def sluice(*words, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    return subprocess.run([SLUICE, *words], env={**clean, **environment}, capture_output=True, text=True, timeout=60)


def listed_commands():
    section = sluice("help").stdout.split("commands:\n")[1].split("\n\n")[0]
    return [re.split("  +", line.strip())[0] for line in section.splitlines() if line[2] != " "]


def on_terminal(columns, *words):
    """What a terminal of that width shows."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([SLUICE, *words], stdout=writer, stderr=writer)
    os.close(writer)
    shown = read_terminal(reader)
    return process.wait(), shown.replace("\r\n", "\n")


class Help(unittest.TestCase):
    def test_every_way_to_ask_gives_the_same_answer(self):
        answers = [sluice("help"), sluice("--help"), sluice("-h")]
        for answer in answers:
            self.assertEqual((answer.returncode, answer.stderr), (OK, ""))
        self.assertEqual(len({answer.stdout for answer in answers}), 1)

    def test_lists_only_commands_that_run(self):
        names = listed_commands()
        self.assertIn("version", names)
        self.assertIn("journal verify", names)
        for name in names:
            answer = sluice(*name.split(), "--help")
            self.assertEqual((answer.returncode, answer.stderr), (OK, ""), name)
            self.assertTrue(answer.stdout.startswith(f"usage: sluice {name}"), name)
            self.assertEqual(answer.stdout, sluice("help", *name.split()).stdout)
            first_word = answer.stdout.splitlines()[0].removeprefix(f"usage: sluice {name} ").split()[0]
            if not first_word.startswith("["):
                self.assertEqual(sluice(*name.split()).returncode, USAGE, name)
            elif name in HARMLESS:
                self.assertEqual(sluice(*name.split()).returncode, OK, name)

    def test_of_a_word_that_several_commands_begin_with(self):
        for words in (("help", "journal"), ("journal", "--help"), ("journal", "-h")):
            answer = sluice(*words)
            self.assertEqual((answer.returncode, answer.stderr), (OK, ""))
            self.assertTrue(answer.stdout.startswith("usage: sluice journal WORD"))
            self.assertEqual(answer.stdout.count("  journal "), 3)

    def test_fits_on_a_screen(self):
        answers = [sluice("help"), *(sluice("help", *name.split()) for name in listed_commands()), sluice("budget")]
        for line in "".join(answer.stdout for answer in answers).splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_is_as_wide_as_the_terminal_within_reason(self):
        prose = {}
        for columns, widest in ((30, 40), (50, 50), (80, 80), (100, 100), (300, 120)):
            code, shown = on_terminal(columns, "help", "budget")
            self.assertEqual(code, OK)
            prose[columns] = [line for line in shown.splitlines() if not line.startswith("    ")]
            self.assertLessEqual(max(map(len, prose[columns])), widest)
        self.assertGreater(len(prose[50]), len(prose[80]))
        self.assertGreater(len(prose[80]), len(prose[300]))
        self.assertEqual(on_terminal(80, "help", "budget")[1], sluice("help", "budget").stdout)

    def test_is_not_kept_back_by_a_mistake_elsewhere(self):
        for answer in (sluice("budget", "--help", SLUICE_GRACE="30"), sluice("budget", "--nonsense", "--help")):
            self.assertEqual((answer.returncode, answer.stderr), (OK, ""))
            self.assertTrue(answer.stdout.startswith("usage: sluice budget"))


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
        self.assert_refused(sluice("journal", "verfy"), "there is no command 'journal verfy'. Did you mean 'journal verify'?")
        self.assert_refused(sluice("journal"), "'journal' needs one of these words behind it: verify, dump, stats.")
        self.assert_refused(sluice("journal", "--json-"), "'journal' needs one of these words behind it")

    def test_a_word_too_few_or_too_many(self):
        self.assert_refused(sluice("backup", "here"), "'backup' needs FOLDER TARGET behind it.")
        self.assert_refused(sluice("journal", "stats"), "'journal stats' needs FOLDER behind it.")
        self.assert_refused(sluice("journal", "stats", "a", "b"), "'b' is one word too many.")
        self.assert_refused(sluice("help", "version", "more"), "'more' is one word too many.")

    def test_a_wrong_option(self):
        self.assert_refused(sluice("version", "--jsson"), "there is no option '--jsson'. Did you mean '--json'?")
        self.assert_refused(sluice("--hepl"), "there is no option '--hepl'. Did you mean '--help'?")

    def test_an_option_before_the_command(self):
        for words in (("--server", "127.0.0.1:2113", "group", "list"), ("--server=127.0.0.1:2113", "group", "list")):
            self.assert_refused(sluice(*words), "stands before the command: options stand behind it, as in 'sluice COMMAND --server ...'.")
        self.assert_refused(sluice("-c", "x.ini", "serve"), "'-c' stands before the command: options stand behind it")

    def test_a_wrong_value(self):
        self.assert_refused(sluice("budget", "--grace", "30"), "--grace needs a duration with its unit")
        self.assert_refused(sluice("budget", SLUICE_GRACE="soon"), "SLUICE_GRACE needs a duration with its unit")

    def test_a_value_that_begins_with_a_dash(self):
        self.assert_refused(sluice("budget", "--grace", "-5s"), "not '-5s'.")

    def test_a_value_out_of_bounds_is_refused_with_the_bounds_that_help_shows(self):
        self.assert_refused(sluice("budget", "--settle", "1ns"), "--settle must be 100ms to 720h, not '1ns'.")
        self.assert_refused(sluice("budget", "--grace", "499ms"), "--grace must be 500ms to 720h, not '499ms'.")

    def test_a_command_of_a_later_version(self):
        for name in ("outbox",):
            self.assert_refused(sluice(name), f"'{name}' is not in this version yet.")

    def test_control_characters_and_long_words_are_made_harmless(self):
        self.assert_refused(sluice("\x1b[31mred\n"), r"there is no command '\x1b[31mred\x0a'.")
        self.assert_refused(sluice("budget", "--grace", "9" * 5000), "...'.")
        for answer in (sluice("\x1b"), sluice("version", "\x1b"), sluice("budget", SLUICE_GRACE="\x1b")):
            self.assertNotIn("\x1b", answer.stderr)

    def test_programs_that_asked_for_json_get_the_mistake_as_json_too(self):
        for words, environment in ((["budget", "--json", "--grace", "1"], {}), (["budget", "-g1"], {"SLUICE_JSON": "yes"})):
            answer = sluice(*words, **environment)
            self.assertEqual(answer.returncode, USAGE)
            self.assertIn("--grace needs a duration", json.loads(answer.stdout)["error"])
            self.assertIn("--grace needs a duration", answer.stderr)

    def test_on_a_terminal_a_complaint_is_broken_into_lines(self):
        reader, writer = pty.openpty()
        result = subprocess.run([SLUICE, "budget", "--settle", "40s"], stdout=subprocess.PIPE, stderr=writer)
        os.close(writer)
        shown = read_terminal(reader)
        self.assertEqual(result.returncode, FAILED)
        self.assertGreater(shown.count("\n"), 1)
        self.assertLessEqual(max(map(len, shown.splitlines())), 80)

    def test_no_command_at_all(self):
        answer = sluice()
        self.assertEqual((answer.returncode, answer.stdout), (USAGE, ""))
        self.assertIn("usage: sluice COMMAND", answer.stderr)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([SLUICE, "help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("cannot write the output: No space left on device.", result.stderr)

    def test_an_output_that_failed_long_ago_is_told_without_a_reason_of_something_else(self):
        words = ("work", "--from", "memory:count=1,end=yes", "--exec", "true", "--no-status")
        with open("/dev/full", "w") as full:
            result = subprocess.run([SLUICE, *words], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, FAILED)
        self.assertTrue(result.stderr.endswith("sluice: cannot write the output.\n"), result.stderr[-200:])


class Environment(unittest.TestCase):
    def test_a_variable_that_is_nearly_one_of_ours_is_warned_about(self):
        self.assertEqual(sluice("version", SLUICE_PROT="1").stderr, "sluice: The variable SLUICE_PROT means nothing. Did you mean SLUICE_PORT?\n")
        for name in ("SLUICE_PORT", "SLUICE_PASSWORD", "SLUICE_SERVICE_HOST", "SLUICE_PORT_2113_TCP_ADDR"):
            self.assertEqual(sluice("version", **{name: "1"}).stderr, "")

    def test_a_password_in_an_address_is_not_shown(self):
        for address, shown in (("kurrentdb://a:hunter2@h:1", "kurrentdb://a:***@h:1"), ("sluice://a:b@hunter2@h", "sluice://a:***@h"),
                               ("a:hunter2@h:1", "a:***@h:1"), ("sluice://a@h:1", "sluice://a@h:1"), ("h:1", "h:1")):
            text = sluice("read", "s", "--print-config", SLUICE_SERVER=address).stdout
            self.assertIn(f"{shown} ", text.replace('"', " "))
            self.assertNotIn("hunter2", text)
            answer = json.loads(sluice("read", "s", "--print-config", "--json", SLUICE_SERVER=address).stdout)
            self.assertEqual(answer["settings"]["server"]["value"], shown)

    def test_a_question_ends_with_its_mark(self):
        said = sluice("read", "s", "--server", "no.such.host.invalid", "--timeout", "5s").stderr
        self.assertTrue(said.endswith("?\n") or "firewall" in said, said)

    def test_the_manual_makes_its_folder(self):
        with tempfile.TemporaryDirectory() as top:
            folder = pathlib.Path(top) / "man1"
            self.assertEqual(sluice("manual", "--into", str(folder)).returncode, 0)
            self.assertTrue((folder / "sluice.1").exists())


class Budget(unittest.TestCase):
    def test_parts_fill_the_grace_S3_33(self):
        answer = json.loads(sluice("budget", "--grace", "45s", "--json").stdout)
        self.assertTrue(answer["fits"])
        self.assertEqual(answer["grace_ns"], 45 * 10**9)
        self.assertEqual(sum(answer["parts"].values()) + answer["unused_ns"], answer["grace_ns"])

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
        refusal = json.loads(as_json.stdout)
        self.assertFalse(refusal["fits"])
        self.assertEqual((refusal["minimum_grace_ns"], refusal["comfortable_grace_ns"]), (40_400_000_000, 50_000_000_000))

    def test_the_graces_that_a_refusal_names_are_accepted(self):
        refusal = json.loads(sluice("budget", "--settle", "40s", "--json").stdout)
        for name in ("minimum_grace_ns", "comfortable_grace_ns"):
            self.assertEqual(sluice("budget", "--settle", "40s", "-g", f"{refusal[name]}ns").returncode, OK)
        self.assertEqual(sluice("budget", "--settle", "40s", "-g", f"{refusal['minimum_grace_ns'] - 1}ns").returncode, FAILED)

    def test_a_budget_beyond_the_longest_grace_has_no_grace_to_advise(self):
        words = ("budget", "--grace", "720h", "--settle", "720h")
        self.assertIn("no grace may be longer than 720h: lower settle", sluice(*words).stderr)
        self.assertIsNone(json.loads(sluice(*words, "--json").stdout)["minimum_grace_ns"])

    def test_the_environment_gives_the_grace_and_the_command_line_wins(self):
        seconds = 10**9
        from_environment = json.loads(sluice("budget", "--json", SLUICE_GRACE="50s").stdout)
        self.assertEqual(from_environment["grace_ns"], 50 * seconds)
        overruled = json.loads(sluice("budget", "--json", "-g", "40s", SLUICE_GRACE="50s").stdout)
        self.assertEqual(overruled["grace_ns"], 40 * seconds)


class Configuration(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(pathlib.Path(self.folder.name) / "sluice.ini")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, text):
        pathlib.Path(self.path).write_text(text)
        return self.path

    def grace_s(self, *words, **environment):
        return json.loads(sluice("budget", "--json", *words, **environment).stdout)["grace_ns"] / 10**9

    def test_command_line_environment_file_default_the_first_wins(self):
        path = self.write("[budget]\ngrace = 40s\n")
        self.assertEqual(self.grace_s(), 30)
        self.assertEqual(self.grace_s("--config", path), 40)
        self.assertEqual(self.grace_s(SLUICE_CONFIG=path), 40)
        self.assertEqual(self.grace_s(SLUICE_CONFIG=path, SLUICE_GRACE="50s"), 50)
        self.assertEqual(self.grace_s("-g", "60s", SLUICE_CONFIG=path, SLUICE_GRACE="50s"), 60)

    def test_no_file_is_read_that_was_not_named(self):
        self.write("[budget]\ngrace = 40s\n")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
        answer = subprocess.run([SLUICE, "budget", "--json"], cwd=self.folder.name, env=clean, capture_output=True, text=True)
        self.assertEqual(json.loads(answer.stdout)["grace_ns"], 30 * 10**9)

    def test_a_mistake_is_told_with_file_and_line_and_nothing_is_done(self):
        answer = sluice("budget", "--config", self.write("# mine\n[budget]\ngarce = 1s\n"))
        self.assertEqual((answer.returncode, answer.stdout), (USAGE, ""))
        self.assertTrue(answer.stderr.endswith(
            "sluice.ini, line 3: there is no option 'garce' in [budget]. Did you mean 'grace'?\n"), answer.stderr)

    def test_a_file_that_is_not_there_is_a_failure(self):
        answer = sluice("budget", "--config", self.path)
        self.assertEqual((answer.returncode, answer.stdout), (FAILED, ""))
        self.assertIn("the file cannot be read: No such file or directory.", answer.stderr)

    def test_a_file_may_come_from_a_pipe(self):
        answer = subprocess.run([SLUICE, "budget", "--json", "--config", "/dev/stdin"], input="[budget]\ngrace = 41s\n",
                                capture_output=True, text=True)
        self.assertEqual(json.loads(answer.stdout)["grace_ns"], 41 * 10**9)

    def test_what_is_printed_can_be_read_and_gives_the_same(self):
        words = ("serve", "--port", "0", "--data", " a \t#;\"\\\x1b b", "--log-level", "warn", "--insecure")
        printed = sluice(*words, "--print-config")
        self.assertEqual((printed.returncode, printed.stderr), (OK, ""))
        self.assertNotIn("\x1b", printed.stdout)
        self.assertRegex(printed.stdout, r"(?m)^port = 0 +# command line$")
        self.assertRegex(printed.stdout, r"(?m)^log-format = auto +# default$")
        path = self.write(printed.stdout)
        settings = [json.loads(sluice(*line, "--print-config", "--json").stdout)["settings"]
                    for line in (words, ("serve", "--config", path))]
        del settings[0]["json"], settings[1]["json"]        # asked for on both lines, to see the rest
        self.assertEqual(*({name: row["value"] for name, row in part.items()} for part in settings))
        line = printed.stdout[:printed.stdout.index("\nport =")].count("\n") + 2
        self.assertEqual(settings[1]["port"], {"value": 0, "source": "file", "line": line})

    def test_printing_does_nothing_else(self):
        answer = sluice("serve", "--data", f"{self.folder.name}/data", "--print-config")
        self.assertEqual(answer.returncode, OK)
        self.assertFalse((pathlib.Path(self.folder.name) / "data").exists())

    def test_every_option_that_has_a_variable_can_be_set_by_it(self):
        settings = json.loads(sluice("serve", "--print-config", "--json").stdout)["settings"]
        for name, row in settings.items():
            if row["value"] is None or name == "json":
                continue
            text = str(row["value"]).lower()        # True is "true" here
            variable = "SLUICE_" + name.upper().replace("-", "_")
            answer = json.loads(sluice("serve", "--print-config", "--json", **{variable: text}).stdout)["settings"][name]
            self.assertEqual(answer, {"value": row["value"], "source": "environment", "variable": variable})


if __name__ == "__main__":
    unittest.main()
