#!/usr/bin/env python3
"""Completion scripts and man pages, judged by the shells and by man themselves; what is not installed is skipped."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SLUICE = ROOT / "build" / "sluice"


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, **options)


def script(shell):
    answer = run(SLUICE, "completion", shell)
    if answer.returncode != 0 or answer.stderr:
        raise AssertionError(answer.stderr)
    return answer.stdout


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


class WithFolder(unittest.TestCase):
    """A folder with a file and a folder whose names have blanks, to complete paths in."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.top = pathlib.Path(self.folder.name)
        (self.top / "my file.ini").touch()
        (self.top / "my folder").mkdir()

    def tearDown(self):
        self.folder.cleanup()


class Bash(WithFolder):
    def complete(self, *words):
        """What bash would offer for the last word; "=" is a word of its own for it."""
        (self.top / "script").write_text(script("bash"))
        call = ('source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; '
                'printf "%s\\n" "${COMPREPLY[@]}"')
        answer = run("bash", "--norc", "-u", "-c", call, "bash", "sluice", *words, cwd=self.top)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        return [line for line in answer.stdout.splitlines() if line]

    def test_the_script_is_bash(self):
        self.assertEqual(run("bash", "-n", input=script("bash")).stderr, "")

    def test_commands(self):
        self.assertIn("serve", self.complete(""))
        self.assertEqual(self.complete("journ"), ["journal"])
        self.assertEqual(self.complete("journal", "v"), ["verify"])
        self.assertEqual(self.complete("help", "journ"), ["journal"])
        self.assertEqual(self.complete("help", "journal", "du"), ["dump"])
        self.assertEqual(self.complete("nonsense", ""), [])
        self.assertEqual(self.complete("journal", "nonsense", "--"), [])

    def test_options_are_those_of_the_command(self):
        self.assertEqual(self.complete("budget", "--gr"), ["--grace"])
        self.assertEqual(self.complete("version", "--gr"), [])
        self.assertIn("--count", self.complete("journal", "dump", "folder", "--"))
        self.assertEqual(self.complete("journal", "verify", "--cou"), [])

    def test_values(self):
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.complete("serve", "--durability", ""), ["sync", "os"])
        self.assertEqual(self.complete("serve", "--durability", "=", "o"), ["os"])
        self.assertEqual(self.complete("serve", "--durability", "="), ["sync", "os"])
        self.assertEqual(self.complete("budget", "--grace", ""), [])

    def test_paths(self):
        self.assertEqual(self.complete("budget", "--config", "my f"), ["my file.ini", "my folder"])
        self.assertEqual(self.complete("journal", "verify", "my"), ["my folder"])
        self.assertEqual(self.complete("backup", "my folder", "m"), ["my folder"])

    def test_bash_itself_calls_it(self):
        (self.top / "script").write_text(script("bash"))
        answer = run("bash", "--norc", "-c", "source ./script; complete -p sluice", cwd=self.top)
        self.assertEqual(answer.stdout, "complete -F _sluice sluice\n")


@needs("fish")
class Fish(WithFolder):
    def complete(self, line):
        (self.top / "script").write_text(script("fish"))
        answer = run("fish", "--no-config", "-c", "source ./script; complete -C $argv[1]", line, cwd=self.top,
                     env={**os.environ, "HOME": self.folder.name})
        self.assertEqual(answer.stderr, "")
        return [shown.split("\t")[0] for shown in answer.stdout.splitlines()]

    def test_the_script_is_fish(self):
        (self.top / "script").write_text(script("fish"))
        self.assertEqual(run("fish", "--no-execute", self.top / "script").stderr, "")

    def test_commands_options_and_values(self):
        self.assertIn("serve", self.complete("sluice "))
        self.assertEqual(self.complete("sluice journal v"), ["verify"])
        self.assertEqual(self.complete("sluice help journal du"), ["dump"])
        self.assertEqual(self.complete("sluice budget --gr"), ["--grace"])
        self.assertEqual(self.complete("sluice version --gr"), [])
        self.assertEqual(sorted(self.complete("sluice completion ")), ["bash", "fish", "zsh"])
        self.assertEqual(sorted(self.complete("sluice serve --durability ")), ["os", "sync"])
        self.assertEqual(self.complete("sluice budget --grace "), [])

    def test_paths(self):
        self.assertIn("my file.ini", self.complete("sluice budget --config my"))
        self.assertNotIn("my file.ini", self.complete("sluice journal verify my"))


@needs("zsh")
class Zsh(WithFolder):
    def test_the_script_is_zsh(self):
        (self.top / "script").write_text(script("zsh"))
        self.assertEqual(run("zsh", "-f", "-n", self.top / "script").stderr, "")

    def test_zsh_takes_it_as_a_completion(self):
        (self.top / "_sluice").write_text(script("zsh"))
        call = ("fpath=($PWD $fpath); autoload -U compinit; compinit -u -D; print $_comps[sluice]; "
                "source ./_sluice; print $_comps[sluice]")
        answer = run("zsh", "-f", "-c", call, cwd=self.top)
        self.assertEqual((answer.stdout, answer.stderr), ("_sluice\n_sluice\n", ""))


class Manual(WithFolder):
    def pages(self):
        answer = run(SLUICE, "manual", "--into", self.top)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        return answer.stdout.split()

    def test_there_is_a_page_for_each_command(self):
        section = run(SLUICE, "help").stdout.split("commands:\n")[1].split("\n\n")[0]
        rows = [line.strip().split("  ")[0] for line in section.splitlines() if line[2] != " "]
        names = {"sluice.1", *(f"sluice-{row.replace(' ', '-')}.1" for row in rows)}
        self.assertEqual(set(self.pages()), names)
        for name in names:
            words = name.removesuffix(".1").split("-")[1:]
            self.assertEqual(run(SLUICE, "manual", *words).stdout, (self.top / name).read_text())

    def test_a_folder_that_can_not_be_made_is_a_failure(self):
        answer = run(SLUICE, "manual", "--into", self.top / "nowhere" / "man1")
        self.assertEqual((answer.returncode, answer.stdout), (1, ""))
        self.assertIn("nowhere/man1 cannot be written: No such file or directory.", answer.stderr)

    @needs("man")
    def test_man_reads_them_without_a_warning(self):
        for name in self.pages():
            answer = run("man", "--warnings", "-l", self.top / name,
                         env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANPAGER": "cat"})
            self.assertEqual((answer.returncode, answer.stderr), (0, ""), name)
            self.assertIn("EXIT STATUS", answer.stdout, name)

    @needs("man")
    def test_what_man_shows_is_what_help_says(self):
        shown = run("man", "-l", "-", input=run(SLUICE, "manual", "budget").stdout,
                    env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "1000", "MANPAGER": "cat"}).stdout
        for text in ("-g, --grace TIME", "From SIGTERM to SIGKILL, as the orchestrator has it.", "Allowed: 500ms to 720h.",
                     "Default: 30s.", "SLUICE_GRACE", "sluice budget --grace 45s --settle 30s"):
            self.assertIn(text, " ".join(shown.split()))


if __name__ == "__main__":
    unittest.main()
