#!/usr/bin/env python3
"""Proves the simulator: every planted bug must make it fail.

A mutant is a file NN-name.mutant beside this one:

    invariant: 2
    requirement: S1.11
    file: src/core/some.c
    One sentence or more: what the bug is.
    --- old
    whole lines of that source file, exactly once in it
    +++ new
    the lines that stand there instead

More pairs of old and new may follow. For each mutant the source file is copied into the build folder with both
versions between #ifdef SL_MUTANT and #endif, compiled as the build compiles it but with -DSL_MUTANT, linked with the
simulator, and run seed by seed until one fails. The core is compiled without its assertions for this: it is the judge
that is to be proved, not the core's own checks. The last line is "N killed, N survived". A mutant whose old text is
not found exactly once, or that does not compile, proves nothing: it is named and counts as a survivor.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent


class Stale(Exception):
    """The mutant does not fit to the source, or is not written as it should be."""


class Mutant:
    def __init__(self, path):
        self.name = path.stem
        head, *pairs = re.split(r"^--- old\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        self.pairs = [pair.partition("+++ new\n")[::2] for pair in pairs]
        fields = dict(re.findall(r"^(invariant|requirement|file): (.+)$", head, re.MULTILINE))
        if not self.pairs or not {"invariant", "requirement", "file"} <= fields.keys():
            raise Stale("needs invariant, requirement, file, an old and a new block")
        self.invariant, self.requirement, self.file = (fields[key] for key in ("invariant", "requirement", "file"))

    def source(self):
        """The text of the source file with both versions in it."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        for old, new in self.pairs:
            count = text.count("\n" + old)
            if count != 1:
                raise Stale(f"an old text is found {count} times in {self.file}: {old.strip().splitlines()[0]}")
            text = text.replace("\n" + old, f"\n#ifdef SL_MUTANT\n{new}#else\n{old}#endif\n")
        return text


class Build:
    def __init__(self, folder, args):
        self.folder, self.args = folder, args
        self.entries = {}
        for entry in json.loads((folder / "compile_commands.json").read_text(encoding="utf-8")):
            path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
            self.entries.setdefault(path, entry)
        self.objects = sorted((folder / "tests/sim/sim.p").glob("*.o"))
        if not self.objects:
            raise FileNotFoundError(folder / "tests/sim/sim.p")
        self.plain = {}

    def compile(self, source, target, options=()):
        """Compiles as the build does, without assertions. `source` is a file of the tree or a changed copy of one."""
        path, text = source
        target.parent.mkdir(parents=True, exist_ok=True)
        changed = target.with_suffix(".c")
        changed.write_text(text, encoding="utf-8")
        entry = self.entries[path]
        words = shlex.split(entry["command"])
        for option in ("-MD", "-MQ", "-MF", "-o", "-c"):
            while option in words:
                at = words.index(option)
                del words[at : at + (1 if option == "-MD" else 2)]
        run_quietly([*words, "-DNDEBUG", *options, "-w", "-c", str(changed), "-o", str(target)], entry["directory"])
        return target

    def compile_core(self, pool):
        """Every file of the core once, without a mutant: what all mutants are linked with."""
        paths = sorted(path for path in self.entries if path.parent == ROOT / "src/core")
        make = lambda path: self.compile((path, path.read_text(encoding="utf-8")),
                                         self.folder / "mutants/plain" / (path.stem + ".o"))
        self.plain = dict(zip(paths, pool.map(make, paths)))

    def link(self, program, swap=None, target=None):
        parts = [target if path == swap else plain for path, plain in self.plain.items()]
        if swap is not None and swap not in self.plain:
            parts.insert(0, target)
        compiler = shlex.split(next(iter(self.entries.values()))["command"])[0]
        words = [*self.objects, *parts, self.folder / "src/base/libbase.a"]
        run_quietly([compiler, "-o", str(program), *map(str, words)], self.folder)
        return program

    def plant(self, mutant):
        """The simulator with the bug in it."""
        path = (ROOT / mutant.file).resolve()
        work = self.folder / "mutants" / mutant.name
        target = self.compile((path, mutant.source()), work / "mutant.o", ["-DSL_MUTANT"])
        return self.link(work / "sim", path, target)

    def run(self, program):
        command = [program, "--seeds", str(self.args.seeds), "--first", str(self.args.first), "--stop", "--quiet"]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=self.args.timeout)

    def kill(self, mutant):
        """What the simulator says of the mutant: (killed?, a text about it)."""
        first, seeds = self.args.first, self.args.seeds
        program = self.plant(mutant)
        try:
            done = self.run(program)
        except subprocess.TimeoutExpired:
            return False, f"no verdict within {self.args.timeout} s"
        found = re.search(r"^seed (\d+) step \d+: invariant (\d+)", done.stdout, re.MULTILINE)
        if found:
            seed = int(found[1])
            return True, f"killed by seed {seed} after {seed - first + 1} seeds (invariant {found[2]})"
        if done.returncode != 0:
            return True, f"killed: the simulator ended with {done.returncode}"
        return False, f"SURVIVED {seeds} seeds"


def run_quietly(words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise Stale("does not compile: " + " | ".join(done.stderr.splitlines()[:3]))


def judge(build, path):
    """(killed?, line) for one mutant file."""
    try:
        mutant = Mutant(path)
        killed, text = build.kill(mutant)
        return killed, f"{mutant.name} [invariant {mutant.invariant}, {mutant.requirement}]: {text}"
    except (Stale, KeyError, OSError) as err:
        return False, f"{path.stem}: STALE: {err}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"), help="folder of a finished release build")
    parser.add_argument("--seeds", type=int, default=3000, help="seeds for each mutant")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--timeout", type=int, default=240, help="seconds for each mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    parser.add_argument("names", nargs="*", help="only mutants whose name contains one of these")
    args = parser.parse_args()
    try:
        build = Build(pathlib.Path(args.build).resolve(), args)
    except OSError as err:
        sys.exit(f"no finished build: {err}")
    paths = [path for path in sorted(HERE.glob("*.mutant"))
             if not args.names or any(name in path.stem for name in args.names)]
    killed_count = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool:
        build.compile_core(pool)
        control = build.run(build.link(build.folder / "mutants/sim"))
        if control.returncode != 0:
            sys.exit("the simulator fails without any mutant, so a kill would prove nothing:\n" + control.stdout)
        for killed, line in pool.map(lambda path: judge(build, path), paths):
            killed_count += killed
            print(line, flush=True)
    print(f"{killed_count} killed, {len(paths) - killed_count} survived")
    return killed_count != len(paths) or not paths


if __name__ == "__main__":
    sys.exit(main())
