"""What the source checks share: where the tree is, which files count, and how to report.

A check is a program tools/check_NAME. It takes the root of a tree as its only argument (default: this
repository), so that tools/check_selftest can run it on a tree with a planted violation. It prints one line
"path:line: what is wrong" for each finding and exits with 1, or says in one line that all is well.
"""
import os
import pathlib
import sys

SOURCE_FOLDERS = ("include", "src", "tests", "bench")
SKIPPED_FOLDERS = {"build", ".git", "__pycache__", "node_modules"}


def root():
    if len(sys.argv) > 2:
        sys.exit(f"usage: {pathlib.Path(sys.argv[0]).name} [ROOT]")
    here = pathlib.Path(__file__).resolve().parent.parent
    return pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else here


def walk(top):
    """Every file below `top`, sorted, without what is built or belongs to git."""
    for folder, names, files in os.walk(top):
        names[:] = sorted(name for name in names if name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            yield pathlib.Path(folder) / name


def c_files(top, folders=SOURCE_FOLDERS, suffixes=(".c", ".h")):
    """The C files in these folders of the tree."""
    for folder in folders:
        if (top / folder).is_dir():
            yield from (path for path in walk(top / folder) if path.suffix in suffixes)


def finish(findings, what_is_well, examined_count, hint=""):
    """Reports and ends the program. A check that examined nothing has proved nothing, so that is a failure."""
    name = pathlib.Path(sys.argv[0]).name
    if examined_count == 0:
        findings = [*findings, f"{name}: found nothing to examine"]
    for finding in findings:
        print(finding)
    if findings:
        print(f"{name}: {len(findings)} found{'; ' if hint else ''}{hint}")
        sys.exit(1)
    print(f"{name}: {what_is_well}")
    sys.exit(0)
