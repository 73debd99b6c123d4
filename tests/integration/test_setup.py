#!/usr/bin/env python3
"""tools/setup on machines that we do not have: without apt, without rights, with everything there."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SETUP = ROOT / "tools" / "setup"

# What the script itself uses, and a compiler: the least that a machine has.
LEAST = ("sh", "sed", "sort", "awk", "id", "env", "uname", "gcc", "cc", "as", "make", "nm")


class Machine:
    """A PATH that holds only chosen programs, some of them made up."""

    def __init__(self, *programs, **fakes):
        self.folder = tempfile.TemporaryDirectory()
        for name in (*LEAST, *programs):
            found = shutil.which(name)
            if found and name not in fakes:      # writing through the link would hit the real program
                os.symlink(found, pathlib.Path(self.folder.name) / name)
        for name, script in fakes.items():
            path = pathlib.Path(self.folder.name) / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)

    def setup(self, *groups):
        result = subprocess.run([SETUP, *groups], env={"PATH": self.folder.name}, capture_output=True, text=True, timeout=60)
        self.folder.cleanup()
        return result


BUILD_PROGRAMS = {name: "exit 0" for name in ("meson", "ninja", "pkg_config", "python3", "protoc_c")}


class Setup(unittest.TestCase):
    def test_is_fast_when_nothing_is_missing(self):
        """The fastest of some: a machine that is busy is not all the time."""
        took = []
        while len(took) < 5 and min(took, default=1.0) >= 1.0:
            started_at = time.monotonic()
            result = subprocess.run([SETUP, "build", "test"], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
            took.append(time.monotonic() - started_at)
        self.assertLess(min(took), 1.0, took)

    def test_without_apt_it_names_what_is_missing_and_fails(self):
        result = Machine().setup("build")
        self.assertEqual(result.returncode, 1)
        for name in ("meson", "ninja-build", "pkg-config", "python3"):
            self.assertIn(name, result.stderr)
        self.assertNotIn("gcc ", result.stderr)

    def test_without_apt_it_is_content_when_the_programs_are_there(self):
        result = Machine(**BUILD_PROGRAMS).setup("build")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_with_apt_it_installs_only_what_is_missing_without_questions(self):
        fakes = {**BUILD_PROGRAMS, "apt_get": 'echo "apt $DEBIAN_FRONTEND $*" >&2', "sudo": 'exec "$@"'}
        del fakes["meson"]
        result = Machine(**fakes).setup("build")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"(?m)^apt noninteractive .* update$")
        self.assertRegex(result.stderr, r"(?m)^apt noninteractive .* install .* meson$")

    def test_without_root_it_installs_with_sudo(self):
        fakes = {**BUILD_PROGRAMS, "id": "echo 1000", "apt_get": "exit 0", "sudo": 'echo "sudo $*" >&2; exec "$@"'}
        del fakes["meson"]
        result = Machine(**fakes).setup("build")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"(?m)^sudo env DEBIAN_FRONTEND=noninteractive apt-get .* install .* meson$")

    def test_without_root_and_sudo_it_says_what_is_needed(self):
        fakes = {**BUILD_PROGRAMS, "id": "echo 1000", "apt_get": "echo must not run >&2"}
        del fakes["meson"]
        result = Machine(**fakes).setup("build")
        self.assertEqual(result.returncode, 1)
        self.assertIn("    meson ", result.stderr)
        self.assertNotIn("must not run", result.stderr)

    def test_an_installation_that_fails_is_a_failure(self):
        fakes = {**BUILD_PROGRAMS, "apt_get": "exit 100", "sudo": 'exec "$@"'}
        del fakes["ninja"]
        result = Machine(**fakes).setup("build")
        self.assertEqual(result.returncode, 1)
        self.assertIn("ninja-build", result.stderr)

    def test_an_unknown_group_is_a_mistake_of_the_caller(self):
        self.assertEqual(Machine().setup("nonsense").returncode, 2)


if __name__ == "__main__":
    unittest.main()
