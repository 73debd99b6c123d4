#!/usr/bin/env python3
"""Installs into a temporary folder and builds programs against what is there, as a stranger would."""
import os
import pathlib
import re
import shutil
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

# A queue and a worker together: each message that the worker gets is sent by the queue.
WORKER_PROGRAM = """
#include <stdio.h>

#include <sluice.h>

static sl_queue_outcome send_one(void *user, const sl_queue_item *item, sl_queue_answer *answer)
{
    (void)answer;
    *(size_t *)user += item->bytes;
    return SL_QUEUE_SENT;
}

static sl_worker_result work(void *user, sl_ctx *ctx)
{
    const sl_consumer_bytes data = sl_ctx_data(ctx);

    return sl_queue_put((sl_queue *)user, data.data, data.bytes, NULL) == SL_QUEUE_OK ? SL_WORKER_DONE : SL_WORKER_FAILED;
}

int main(void)
{
    sl_queue_options queue_options = { 0 };
    sl_worker_options options = { 0 };
    char problem[SL_WORKER_PROBLEM_BYTES];
    sl_worker *worker;
    size_t bytes = 0;
    sl_queue *queue;

    queue_options.callbacks.send = send_one;
    queue_options.user = &bytes;
    if (sl_queue_new(&queue_options, &queue) != SL_QUEUE_OK || sl_queue_start(queue) != SL_QUEUE_OK)
        return 1;
    options.from = "memory:count=100,bytes=10,end=yes";
    options.work = work;
    options.user = queue;
    options.threads = 2;
    if (sl_worker_new(&options, problem, sizeof problem, &worker) != SL_WORKER_OK || sl_worker_run(worker) != SL_WORKER_OK)
        return 2;
    sl_worker_free(worker);
    sl_queue_drain(queue, 10000);
    sl_queue_free(queue);
    printf("%u\\n", (unsigned)bytes);
    return 0;
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
        cls.make_environment = environment
        run("make", "install", f"DESTDIR={cls.stage}", f"PREFIX={PREFIX}", cwd=ROOT, env=environment)
        package = next(cls.stage.rglob("sluice.pc"))
        # The package file names the final place; a staged tree is found by putting the stage in front of it.
        cls.environment = {**os.environ, "PKG_CONFIG_PATH": str(package.parent), "PKG_CONFIG_SYSROOT_DIR": str(cls.stage)}
        cls.library_folder = package.parent.parent

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build_and_run(self, compiler, suffix, *flags, program_text=PROGRAM):
        source = pathlib.Path(self.folder.name) / f"program{suffix}"
        source.write_text(program_text)
        program = source.with_suffix(".out")
        package_flags = run("pkg-config", "--cflags", "--libs", "sluice", env=self.environment).split()
        run(compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags, source, *package_flags, "-o", program)
        return run(program, env={**os.environ, "LD_LIBRARY_PATH": str(self.library_folder)}).strip()

    def version(self):
        return run("pkg-config", "--modversion", "sluice", env=self.environment).strip()

    def test_everything_is_below_the_prefix(self):
        names = {path.name for path in (self.stage / PREFIX.lstrip("/")).rglob("*")}
        for name in ("sluice", "sluice.h", "sluice.pc", "libsluice.so", "libsluice.a", "sluice.1", "sluice-serve.1",
                     "_sluice", "sluice.fish"):
            self.assertIn(name, names)
        outside = [path for path in self.stage.rglob("*") if path.is_file() and PREFIX not in str(path)]
        self.assertEqual(outside, [])

    def test_the_installed_program_runs_and_agrees_with_the_package(self):
        self.assertEqual(run(self.stage / PREFIX.lstrip("/") / "bin/sluice", "version").strip(), f"sluice {self.version()}")

    def test_manual_and_completions_are_where_they_are_looked_for_and_of_this_version(self):
        share = self.stage / PREFIX.lstrip("/") / "share"
        program = self.stage / PREFIX.lstrip("/") / "bin/sluice"
        for words, place in ((("manual", "serve"), "man/man1/sluice-serve.1"),
                             (("completion", "bash"), "bash-completion/completions/sluice"),
                             (("completion", "zsh"), "zsh/site-functions/_sluice"),
                             (("completion", "fish"), "fish/vendor_completions.d/sluice.fish")):
            self.assertEqual((share / place).read_text(), run(program, *words))
            self.assertEqual((share / place).stat().st_mode & 0o777, 0o644)

    def test_a_c_program_links_and_runs(self):
        self.assertEqual(self.build_and_run("gcc", ".c", "-std=c17"), self.version())

    def test_an_old_c_program_links_and_runs(self):
        self.assertEqual(self.build_and_run("gcc", ".c", "-std=c99"), self.version())

    def test_a_cxx_program_links_and_runs(self):
        self.assertEqual(self.build_and_run("g++", ".cc", "-std=c++11"), self.version())

    def test_a_program_with_a_worker_and_a_queue_links_and_runs(self):
        self.assertEqual(self.build_and_run("gcc", ".c", "-std=c99", program_text=WORKER_PROGRAM), "1000")

    def test_the_shared_library_exports_exactly_what_the_header_declares(self):
        header = (ROOT / "include/sluice.h").read_text()
        declared = set(re.findall(r"^SL_EXPORT [^(]*?(\w+)\(", header, re.M))
        listing = run("nm", "--dynamic", "--defined-only", "--format=posix", self.library_folder / "libsluice.so")
        self.assertEqual({line.split()[0] for line in listing.splitlines()}, declared)

    def test_uninstall_leaves_nothing_behind_and_says_when_there_was_nothing(self):
        words = ["make", "uninstall", f"DESTDIR={self.folder.name}/other", f"PREFIX={PREFIX}"]
        run("make", "install", *words[2:], cwd=ROOT, env=self.make_environment)
        stranger = pathlib.Path(f"{self.folder.name}/other{PREFIX}/bin/stranger")
        stranger.touch()
        pages = len(list(pathlib.Path(f"{self.folder.name}/other{PREFIX}/share/man/man1").iterdir()))
        self.assertIn(f"removed {7 + pages + 3} files", run(*words, cwd=ROOT, env=self.make_environment))
        left = [path for path in pathlib.Path(f"{self.folder.name}/other").rglob("*") if not path.is_dir()]
        self.assertEqual(left, [stranger])
        self.assertIn("nothing of sluice", run(*words, cwd=ROOT, env=self.make_environment))


class Refusals(unittest.TestCase):
    """What is refused before anything is built or written."""

    def refuse(self, *words):
        result = subprocess.run([str(ROOT / "tools/install"), *words], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("tools/install: "), result.stderr)
        return result

    def test_a_prefix_that_is_no_folder(self):
        for prefix in ("", "here", "./here"):
            result = self.refuse(prefix)
            self.assertEqual(result.returncode, 2)
            self.assertIn("PREFIX must be a folder with its whole path", result.stderr)

    def test_too_many_words(self):
        self.assertEqual(self.refuse("/a", "/b", "/c").returncode, 2)
        self.assertEqual(self.refuse().returncode, 2)


class OtherPrefix(unittest.TestCase):
    """In a tree of its own, because the build folder of this one keeps its prefix."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.top = pathlib.Path(self.folder.name) / "tree"
        shutil.copytree(ROOT / "tools", self.top / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "meson_options.txt", self.top)
        # A small project stands for ours: this is about prefixes, not about compiling.
        (self.top / "meson.build").write_text(
            "project('small', 'c', version: '0.1.0', default_options: ['c_std=c17'])\n"
            "both_libraries('sluice', 'small.c', version: '0.1.0', install: true)\n"
            "import('pkgconfig').generate(name: 'sluice', description: 'small', version: '0.1.0')\n")
        (self.top / "small.c").write_text("int small(void);\nint small(void)\n{\n    return 1;\n}\n")

    def tearDown(self):
        self.folder.cleanup()

    def install(self, prefix, **options):
        return subprocess.run([self.top / "tools/install", prefix], capture_output=True, text=True, timeout=120, **options)

    def test_a_prefix_with_a_blank_works_and_says_how_to_be_found(self):
        result = self.install(f"{self.folder.name}/a b")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        package = next(pathlib.Path(f"{self.folder.name}/a b").rglob("sluice.pc"))
        self.assertIn(f"PKG_CONFIG_PATH='{package.parent}'", result.stdout)
        self.assertIn(f"LD_LIBRARY_PATH='{package.parent.parent}'", result.stdout)
        again = subprocess.run([self.top / "tools/build", "release"], capture_output=True, text=True)
        self.assertEqual(again.stdout, "building release in build/ ...\n")    # the prefix is remembered

    def test_a_prefix_without_the_right_to_write_is_one_sentence(self):
        closed = pathlib.Path(self.folder.name) / "closed"
        closed.touch()      # a file in the way: also root cannot write below it
        result = self.install(f"{closed}/prefix")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertNotIn("Traceback", result.stderr)
        self.assertIn(f"no right to write below {closed}", result.stderr)


if __name__ == "__main__":
    unittest.main()
