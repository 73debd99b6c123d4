#!/usr/bin/env python3
"""Installs into a temporary folder and builds programs against what is there, as a stranger would."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PREFIX = "/usr/local"

PROGRAM = """
#include <stdio.h>
#include <string.h>

#include <sluice.h>

int main(void)
{
    printf("%s\\n", sl_version());
    return strcmp(sl_version(), SL_VERSION_TEXT) == 0 ? 0 : 1;
}
"""


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command} ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.stage = pathlib.Path(cls.folder.name) / "stage"
        # A make above us would hand down its own variables.
        environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
        run("make", "install", f"DESTDIR={cls.stage}", f"PREFIX={PREFIX}", cwd=ROOT, env=environment)
        package = next(cls.stage.rglob("sluice.pc"))
        # The package file names the final place; a staged tree is found by putting the stage in front of it.
        cls.environment = {**os.environ, "PKG_CONFIG_PATH": str(package.parent), "PKG_CONFIG_SYSROOT_DIR": str(cls.stage)}
        cls.library_folder = package.parent.parent

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build_and_run(self, compiler, suffix, *flags):
        source = pathlib.Path(self.folder.name) / f"program{suffix}"
        source.write_text(PROGRAM)
        program = source.with_suffix(".out")
        package_flags = run("pkg-config", "--cflags", "--libs", "sluice", env=self.environment).split()
        run(compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags, source, *package_flags, "-o", program)
        return run(program, env={**os.environ, "LD_LIBRARY_PATH": str(self.library_folder)}).strip()

    def version(self):
        return run("pkg-config", "--modversion", "sluice", env=self.environment).strip()

    def test_everything_is_below_the_prefix(self):
        names = {path.name for path in (self.stage / PREFIX.lstrip("/")).rglob("*")}
        for name in ("sluice", "sluice.h", "sluice.pc", "libsluice.so", "libsluice.a"):
            self.assertIn(name, names)
        outside = [path for path in self.stage.rglob("*") if path.is_file() and PREFIX not in str(path)]
        self.assertEqual(outside, [])

    def test_the_installed_program_runs_and_agrees_with_the_package(self):
        self.assertEqual(run(self.stage / PREFIX.lstrip("/") / "bin/sluice", "version").strip(), f"sluice {self.version()}")

    def test_a_c_program_links_and_runs(self):
        self.assertEqual(self.build_and_run("gcc", ".c", "-std=c17"), self.version())

    def test_an_old_c_program_links_and_runs(self):
        self.assertEqual(self.build_and_run("gcc", ".c", "-std=c99"), self.version())

    def test_a_cxx_program_links_and_runs(self):
        self.assertEqual(self.build_and_run("g++", ".cc", "-std=c++11"), self.version())

    def test_the_shared_library_exports_exactly_what_the_header_declares(self):
        header = (ROOT / "include/sluice.h").read_text()
        declared = set(re.findall(r"^SL_EXPORT [^(]*?(\w+)\(", header, re.M))
        listing = run("nm", "--dynamic", "--defined-only", "--format=posix", self.library_folder / "libsluice.so")
        self.assertEqual({line.split()[0] for line in listing.splitlines()}, declared)


if __name__ == "__main__":
    unittest.main()
