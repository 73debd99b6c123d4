#!/usr/bin/env python3
"""Proves the simulator: every planted bug must make it fail, and for the right reason.

A mutant is a file NN-name.mutant beside this one:

    invariant: 2                  the number that must be named by the failure (tests/sim/fail.h)
    also: 7, 12                   others that may be named first; 18 (an assertion or a crash) only if it is said here
    requirement: S1.11            one or more
    file: src/core/some.c
    One sentence or more: what the bug is.
    --- old
    whole lines of that source file, exactly once in it
    +++ new
    the lines that stand there instead

More pairs of old and new may follow, also of another file after another `file:` line: a bug of the rule book itself is
planted in the core and in the model, and only the end of the run can see it (invariant 10).

For each mutant the source files are copied into the build folder with both versions between #ifdef SL_MUTANT and
#endif, compiled as the build compiles them but with -DSL_MUTANT, linked with the simulator, and run seed by seed until
one fails. Core and base are compiled without their assertions for this: it is the judge that is to be proved. The last
line is "N killed, N survived". What proves nothing counts as a survivor: a text that is not found exactly once, a
mutant that does not compile, a kill for another reason than the ones it names. The same holds when an invariant 1 to 10
or a requirement of the list below has no mutant at all.
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

INVARIANTS = set(range(1, 11))
REQUIREMENTS = {"S1.9", "S1.10", "S1.11", "S1.14", "S1.25"}
CRASH = 18

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent


class Stale(Exception):
    """The mutant does not fit to the source, or is not written as it should be."""


class Mutant:
    """One planted bug: what it breaks, and for each file the pairs of old and new text."""

    def __init__(self, path):
        self.name = path.stem
        text = path.read_text(encoding="utf-8")
        fields = dict(re.findall(r"^(invariant|also|requirement): (.+)$", text, re.MULTILINE))
        if not {"invariant", "requirement"} <= fields.keys():
            raise Stale("needs an invariant and a requirement")
        self.invariant = int(fields["invariant"])
        self.may_name = {self.invariant, *map(int, re.findall(r"\d+", fields.get("also", "")))}
        self.requirements = re.findall(r"[SB]\d+(?:\.\d+)?", fields["requirement"])
        self.files = {}
        for part in re.split(r"^file: ", text, flags=re.MULTILINE)[1:]:
            name, *pairs = re.split(r"^--- old\n", part, flags=re.MULTILINE)
            self.files[name.splitlines()[0]] = [pair.partition("+++ new\n")[::2] for pair in pairs]
        if not self.files or not all(self.files.values()):
            raise Stale("needs a file, an old and a new block")

    def sources(self):
        """For each file its path and its text with both versions in it."""
        for name, pairs in self.files.items():
            text = (ROOT / name).read_text(encoding="utf-8")
            for old, new in pairs:
                count = text.count("\n" + old)
                if count != 1:
                    raise Stale(f"an old text is found {count} times in {name}: {old.strip().splitlines()[0]}")
                text = text.replace("\n" + old, f"\n#ifdef SL_MUTANT\n{new}#else\n{old}#endif\n")
            yield (ROOT / name).resolve(), text


class Build:
    def __init__(self, folder, args):
        self.folder, self.args = folder, args
        self.entries = {}
        for entry in json.loads((folder / "compile_commands.json").read_text(encoding="utf-8")):
            path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
            self.entries.setdefault(path, entry)
        self.objects = sorted((folder / "tests/sim/sim.p").glob("*.c.o"))
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

    def compile_plain(self, pool):
        """Core and base once, without a mutant: what all mutants are linked with."""
        folders = (ROOT / "src/core", ROOT / "src/base")
        paths = sorted(path for path in self.entries if path.parent in folders and path.name != "version.c")
        make = lambda path: self.compile((path, path.read_text(encoding="utf-8")),
                                         self.folder / "mutants/plain" / f"{path.parent.name}_{path.stem}.o")
        self.plain = dict(zip(paths, pool.map(make, paths)))

    def link(self, program, changed):
        """`changed`: objects that stand in for those of the same source file."""
        stems = {path.name + ".o" for path in changed}
        tests = [object_ for object_ in self.objects if object_.name not in stems]
        parts = [*tests, *(plain for path, plain in self.plain.items() if path not in changed), *changed.values()]
        compiler = shlex.split(next(iter(self.entries.values()))["command"])[0]
        run_quietly([compiler, "-o", str(program), *map(str, parts)], self.folder)
        return program

    def plant(self, mutant):
        """The simulator with the bug in it."""
        work = self.folder / "mutants" / mutant.name
        changed = {source[0]: self.compile(source, work / f"{source[0].stem}.o", ["-DSL_MUTANT"])
                   for source in mutant.sources()}
        return self.link(work / "sim", changed)

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
        if done.returncode == 0:
            return False, f"SURVIVED {seeds} seeds"
        named = int(found[2]) if found else CRASH
        where = f"seed {found[1]} after {int(found[1]) - first + 1} seeds" if found else f"exit code {done.returncode}"
        if named not in mutant.may_name:
            return False, f"SURVIVED: it failed for another reason, invariant {named}, {where}"
        return True, f"killed by {where} (invariant {named})"


def run_quietly(words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise Stale("does not compile: " + " | ".join(done.stderr.splitlines()[:3]))


def judge(build, path):
    """(mutant or None, killed?, line) for one mutant file."""
    mutant = None
    try:
        mutant = Mutant(path)
        killed, text = build.kill(mutant)
    except (Stale, KeyError, OSError) as err:
        killed, text = False, f"STALE: {err}"
    label = f" [invariant {mutant.invariant}, {' '.join(mutant.requirements)}]" if mutant else ""
    return mutant, killed, f"{path.stem}{label}: {text}"


def gaps(mutants):
    """What no mutant is about."""
    invariants = INVARIANTS - {mutant.invariant for mutant in mutants}
    requirements = REQUIREMENTS - {name for mutant in mutants for name in mutant.requirements}
    return [f"invariant {number}" for number in sorted(invariants)] + sorted(requirements)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"), help="folder of a finished release build")
    parser.add_argument("--seeds", type=int, default=6000, help="seeds for each mutant")
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
    with concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool:
        build.compile_plain(pool)
        control = build.run(build.link(build.folder / "mutants/sim", {}))
        if control.returncode != 0:
            sys.exit("the simulator fails without any mutant, so a kill would prove nothing:\n" + control.stdout)
        results = []
        for result in pool.map(lambda path: judge(build, path), paths):
            results.append(result)
            print(result[2], flush=True)
    missing = [] if args.names else gaps([mutant for mutant, _, _ in results if mutant])
    for what in missing:
        print(f"no mutant is about {what}")
    killed_count = sum(killed for _, killed, _ in results)
    print(f"{killed_count} killed, {len(paths) - killed_count + len(missing)} survived")
    return killed_count != len(paths) or bool(missing) or not paths


if __name__ == "__main__":
    sys.exit(main())
