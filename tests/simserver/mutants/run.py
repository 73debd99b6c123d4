#!/usr/bin/env python3
"""Proves the judge of simserver: every bug that is planted in the server must be seen, by a rule that the mutant names.

A mutant is a file NN-name.mutant beside this one, in the format of tests/sim/mutants with `rule:` instead of `invariant:`. Its source
file is compiled once more with the bug in it and linked before the server's library. The last line is "N killed, N survived"; a
mutant whose old text is not found exactly once, or that does not compile, has survived.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
LIBRARIES = ("src/server/libserver.a", "src/pages/libpages.a", "src/net/libnet.a", "src/wire/libwire.a", "src/wire/codec/libwirecodec.a",
             "src/wire/codec/libwirehot.a", "src/wire/codec/libproto.a", "src/store/libstore.a", "src/core/libcore.a",
             "src/base/libbase.a", "libsluice.a")
SYSTEM = "-lmicrohttpd -lcjson -lsodium -lnghttp2 -lprotobuf-c -lz -lpcre2-8 -luv -lssl -lcrypto -lpthread -lm".split()


class Stale(Exception):
    """The mutant does not fit to the source."""


def read(path):
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition("--- old\n")
    fields = dict(re.findall(r"^(rule|also|file): (.+)$", head, re.MULTILINE))
    old, _, new = rest.partition("+++ new\n")
    rules = {int(fields["rule"]), *map(int, re.findall(r"\d+", fields.get("also", "")))}
    return rules, fields["file"], old, new


def run_quietly(words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise Stale("does not compile: " + " | ".join(done.stderr.splitlines()[:3]))


def plant(path, build, entries):
    rules, name, old, new = read(path)
    source = (ROOT / name).read_text(encoding="utf-8")
    if source.count(old) != 1:
        raise Stale(f"the old text is found {source.count(old)} times in {name}")
    work = build / "mutants-simserver" / path.stem
    work.mkdir(parents=True, exist_ok=True)
    (work / "changed.c").write_text(source.replace(old, new), encoding="utf-8")
    entry = entries[(ROOT / name).resolve()]
    words = shlex.split(entry["command"])
    for option in ("-MD", "-MQ", "-MF", "-o", "-c"):
        while option in words:
            at = words.index(option)
            del words[at : at + (1 if option == "-MD" else 2)]
    run_quietly([*words, "-w", "-c", str(work / "changed.c"), "-o", str(work / "changed.o")], entry["directory"])
    objects = sorted(str(path) for path in (build / "tests/simserver/simserver.p").glob("*.o"))
    libraries = [str(build / library) for library in LIBRARIES]
    run_quietly([words[0], "-o", str(work / "simserver"), str(work / "changed.o"), *objects, "-Wl,--start-group",
                 *libraries, "-Wl,--end-group", *SYSTEM], build)
    return rules, work / "simserver"


def kill(path, build, entries, args):
    try:
        rules, program = plant(path, build, entries)
        done = subprocess.run([program, "--seeds", str(args.seeds), "--first", str(args.first), "--stop", "--quiet"],
                              capture_output=True, text=True, errors="replace", timeout=args.timeout)
    except (Stale, KeyError, OSError) as err:
        return False, f"STALE: {err}"
    except subprocess.TimeoutExpired:
        return False, f"no verdict within {args.timeout} s"
    found = re.search(r"^seed (\d+) turn \d+: rule (\d+)", done.stdout, re.MULTILINE)
    if done.returncode == 0:
        return False, f"SURVIVED {args.seeds} seeds"
    if not found:
        return False, f"SURVIVED: ended with exit code {done.returncode} and named no rule"
    seeds = int(found[1]) - args.first + 1
    if int(found[2]) not in rules:
        return False, f"SURVIVED: it failed for another reason, rule {found[2]}, seed {found[1]}"
    return True, f"killed by seed {found[1]} after {seeds} seeds (rule {found[2]})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"), help="folder of a finished release build")
    parser.add_argument("--seeds", type=int, default=6000, help="seeds for each mutant")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--timeout", type=int, default=240, help="seconds for each mutant")
    parser.add_argument("names", nargs="*", help="only mutants whose name contains one of these")
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()
    # Mutants are compiled against the headers of now: a library from before would crash and prove nothing.
    if subprocess.run(["ninja", "-C", build, "tests/simserver/simserver"], stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit("the build is not finished, so a kill would prove nothing")
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        entries.setdefault((pathlib.Path(entry["directory"]) / entry["file"]).resolve(), entry)
    paths = [path for path in sorted(HERE.glob("*.mutant"))
             if not args.names or any(name in path.stem for name in args.names)]
    killed_count = 0
    for path in paths:
        killed, text = kill(path, build, entries, args)
        killed_count += killed
        print(f"{path.stem}: {text}", flush=True)
    print(f"{killed_count} killed, {len(paths) - killed_count} survived")
    return killed_count != len(paths) or not paths


if __name__ == "__main__":
    sys.exit(main())
