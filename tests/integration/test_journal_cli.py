#!/usr/bin/env python3
"""Runs the real binary on real folders: verify, dump, stats, backup and scavenge, beside a process that writes.

Folders are made by tests/tools/fill, in which everything about an event follows from its number."""
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", ROOT / "build"))
SLUICE = BUILD / "sluice"
FILL = BUILD / "fill" if (BUILD / "fill").is_file() else BUILD / "tests/tools/fill"
OK, FAILED, USAGE, DAMAGE = 0, 1, 2, 3
HEADER_BYTES = 4096


def sluice(*words, **options):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    return subprocess.run([SLUICE, *map(str, words)], env=clean, capture_output=True, text=True, timeout=120, **options)


def fill(folder, **settings):
    words = [f"{name}={value}" for name, value in settings.items()]
    subprocess.run([FILL, folder, *words], check=True, timeout=120)


def make_caches(folder):
    """Opens and closes it: what was in the making when it was closed before is made."""
    fill(folder, events=0)


def verify(folder):
    """Exit code and answer."""
    answer = sluice("journal", "verify", folder, "--json")
    return answer.returncode, json.loads(answer.stdout)


def records(folder, *words):
    return [json.loads(line) for line in sluice("journal", "dump", folder, "--json", *words).stdout.splitlines()]


def events(folder, *words):
    return [record for record in records(folder, *words) if record.get("kind") == "event"]


def flip(path, offset, bit):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ (1 << bit)]))


LAST_FRAME_BYTES = 48 + 24     # "closed": nobody confirms it, so damage there can not be told from a torn end


def used_bytes(folder):
    """By segment: up to which byte frames stand in it."""
    used = {}
    for record in records(folder):
        used[record["segment"]] = record["offset"] + record["bytes"]
    return used


@contextlib.contextmanager
def writer(folder, **settings):
    """A process that appends until it is ended; gives a function that returns the last (events, position) it confirmed."""
    words = [f"{name}={value}" for name, value in {"events": 10**9, "acks": 1, **settings}.items()]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen([FILL, folder, *words], stdout=log)
        fd = log.fileno()

        def acknowledged():
            size = os.fstat(fd).st_size
            lines = os.pread(fd, 4096, max(0, size - 4096)).decode().split("\n")[:-1]
            return tuple(map(int, lines[-1].split())) if lines else (0, 1)
        try:
            deadline = time.monotonic() + 30
            while acknowledged()[0] < 200:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise RuntimeError("the writer does not write")
                time.sleep(0.01)
            yield acknowledged
            if process.poll() is not None:
                raise RuntimeError("the writer has ended")
        finally:
            process.kill()
            process.wait()


class Folders(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="sluice-journal-"))
        self.addCleanup(shutil.rmtree, self.top)
        self.folder = self.top / "data"


class Verify(Folders):
    def test_a_folder_that_is_whole(self):
        fill(self.folder, events=3000, groups=2, deletes=1, tombstones=1)
        self.assertEqual(verify(self.folder)[0], OK)
        make_caches(self.folder)
        code, answer = verify(self.folder)
        self.assertEqual((code, answer["clean"], answer["findings"]), (OK, True, []))
        self.assertGreater(answer["segments"], 2)
        self.assertEqual(answer["indexes"], answer["segments"] - 1)
        self.assertEqual(answer["records"], answer["end_position"] - 1)
        self.assertIn("no damage", sluice("journal", "verify", self.folder).stdout)

    def test_a_flipped_bit_anywhere_is_found_in_the_right_file_B13(self):
        fill(self.folder, events=2000, groups=1)
        used = used_bytes(self.folder)
        dice = random.Random(7)
        for name in sorted(path.name for path in self.folder.iterdir() if path.suffix in (".seg", ".idx", ".roll")):
            path = self.folder / name
            size = path.stat().st_size
            if path.suffix == ".seg":
                number = int(path.stem, 16)
                size = used.get(number, HEADER_BYTES)   # of a spare one only the header counts
                size -= LAST_FRAME_BYTES if number == max(used) else 0
            for _ in range(6):
                offset, bit = dice.randrange(size), dice.randrange(8)
                flip(path, offset, bit)
                code, answer = verify(self.folder)
                damaged = {finding["file"] for finding in answer["findings"] if finding["damage"]}
                self.assertEqual((code, damaged), (DAMAGE, {name}), f"{name} byte {offset} bit {bit}: {answer}")
                nearest = [finding["offset"] for finding in answer["findings"] if finding["damage"]][0]
                self.assertLessEqual(nearest, offset)
                flip(path, offset, bit)
        self.assertEqual(verify(self.folder)[0], OK)

    def test_all_damage_is_listed_and_what_is_lost_adds_up(self):
        fill(self.folder, events=3000, batch=5)
        make_caches(self.folder)
        whole = records(self.folder)
        for segment, share in ((1, 0.3), (1, 0.7), (3, 0.5)):
            inside = [record for record in whole if record["segment"] == segment]
            hit = inside[int(len(inside) * share)]
            flip(self.folder / f"{segment:016x}.seg", hit["offset"] + 30, 3)
        code, answer = verify(self.folder)
        self.assertEqual((code, answer["damages"]), (DAMAGE, 3))
        lost = [position for finding in answer["findings"]
                for position in range(finding["lost_first"], finding["lost_last"] + 1)]
        self.assertEqual(len(lost), answer["positions_lost"])
        left = [record["position"] for record in records(self.folder) if "position" in record]
        self.assertEqual(sorted(left + lost), [record["position"] for record in whole])
        self.assertEqual({finding["file"] for finding in answer["findings"]},
                         {"0000000000000001.seg", "0000000000000003.seg"})
        for finding in answer["findings"]:
            self.assertIn("Restore", finding["advice"])
        said = sluice("journal", "verify", self.folder).stdout   # one record of each batch was hit
        self.assertEqual(len(re.findall(r"At least one of the positions \d+ to \d+ is lost\.", said)), 3, said)
        self.assertIn(f"positions lost at most {len(lost)}", said)

    def test_what_a_crash_leaves_is_told_and_is_no_damage(self):
        fill(self.folder, events=300, crash=1)
        last = max(self.folder.glob("*.seg"), key=lambda path: (used_bytes(self.folder).get(int(path.stem, 16), 0) > 0, path))
        end = used_bytes(self.folder)[int(last.stem, 16)]
        self.assertEqual(verify(self.folder)[1]["findings"], [])
        with open(last, "r+b") as file:
            file.seek(end)
            file.write(b"SLRM" + os.urandom(200))
        code, answer = verify(self.folder)
        self.assertEqual((code, answer["damages"], answer["notes"]), (OK, 0, 1))
        self.assertEqual((answer["findings"][0]["file"], answer["findings"][0]["offset"]), (last.name, end))
        fill(self.folder, events=1)      # opening cuts it
        self.assertEqual(verify(self.folder)[0], OK)

    def test_a_missing_segment_and_a_short_one(self):
        fill(self.folder, events=3000)
        make_caches(self.folder)
        whole = records(self.folder)
        (self.folder / "0000000000000002.seg").rename(self.top / "kept")
        code, answer = verify(self.folder)
        missing = [record["position"] for record in whole if record["segment"] == 2]
        self.assertEqual((code, answer["damages"], answer["positions_lost"]), (DAMAGE, 1, len(missing)))
        self.assertEqual(answer["findings"][0]["file"], "0000000000000002.seg")
        (self.top / "kept").rename(self.folder / "0000000000000002.seg")
        os.truncate(self.folder / "0000000000000002.seg", 100_000)
        code, answer = verify(self.folder)
        self.assertEqual((code, {finding["file"] for finding in answer["findings"]}), (DAMAGE, {"0000000000000002.seg"}))

    def test_a_missing_index_is_a_note(self):
        fill(self.folder, events=2000)
        make_caches(self.folder)
        (self.folder / "0000000000000001.idx").unlink()
        code, answer = verify(self.folder)
        self.assertEqual((code, answer["damages"], answer["notes"]), (OK, 0, 1))

    def test_a_folder_in_use_is_never_called_damaged(self):
        with writer(self.folder, batch=7, max_count=20, scavenge=1, groups=1) as acknowledged:
            until = time.monotonic() + 4
            rounds = 0
            while time.monotonic() < until:
                before = acknowledged()
                code, answer = verify(self.folder)
                self.assertEqual((code, answer["damages"]), (OK, 0), answer)
                self.assertGreaterEqual(answer["end_position"], before[1])
                rounds += 1
            self.assertGreater(rounds, 3)

    def test_nothing_is_changed_or_locked(self):
        fill(self.folder, events=500)
        for path in self.folder.iterdir():
            path.chmod(0o400)
        before = {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in self.folder.iterdir()}
        for word in ("verify", "dump", "stats"):
            self.assertEqual(sluice("journal", word, self.folder).returncode, OK)
        self.assertEqual({path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in self.folder.iterdir()}, before)

    def test_what_is_no_journal(self):
        (self.top / "empty").mkdir()
        for folder, sentence in ((self.top / "nothing", "There is no folder"), (self.top / "empty", "There is no journal in")):
            for word in ("verify", "dump", "stats"):
                answer = sluice("journal", word, folder)
                self.assertEqual((answer.returncode, answer.stdout), (FAILED, ""))
                self.assertIn(sentence, answer.stderr)
                self.assertIn("error", json.loads(sluice("journal", word, folder, "--json").stdout))
            self.assertEqual(sluice("scavenge", folder).returncode, FAILED)
        self.assertFalse((self.top / "nothing").exists())

    def test_a_name_that_a_terminal_would_obey(self):
        answer = sluice("journal", "verify", self.top / "\x1b[2J")
        self.assertNotIn("\x1b", answer.stderr)


    def test_one_of_a_kind_is_not_called_many(self):
        fill(self.folder, events=10)
        self.assertRegex(sluice("journal", "verify", self.folder).stdout, r"(?m)^1 segment, .* 0 indexes, 0 rolls; ")


class Dump(Folders):
    def test_every_record_in_order_with_what_it_says(self):
        fill(self.folder, events=500, streams=7, groups=1)
        found = records(self.folder)
        self.assertEqual([record["position"] for record in found], list(range(1, len(found) + 1)))
        self.assertEqual((found[0]["kind"], found[-1]["kind"]), ("open", "close"))
        numbers = [int(record["id"].split("-")[-1], 16) - 1 for record in events(self.folder)]
        self.assertEqual(numbers, list(range(500)))
        for record, number in zip(events(self.folder, "--data"), numbers):
            self.assertEqual((record["stream"], record["revision"]), (f"stream-{number % 7}", number // 7))
            self.assertEqual(record["type"], f"type-{number % 3}")
            self.assertTrue(record["data"].startswith(f'{{"event": {number}}} '))
            self.assertEqual(record["created_ns"], (1_700_000_000 + number) * 10**9)
        group = [record for record in found if record["kind"] == "group record"]
        self.assertEqual([(record["record"], record["below"]) for record in group],
                         [("CHECKPOINT", count) for count in range(1, 51)])

    def test_states_of_groups_are_decoded(self):
        fill(self.folder, events=3000, groups=2)
        states = [record for record in records(self.folder, "--data") if record["kind"] == "group state"]
        self.assertTrue(states)
        self.assertEqual(states[0]["state"][0]["record"], "CHECKPOINT")
        self.assertEqual(states[0]["definition"], '{"group": 1}')
        self.assertIn("record=CHECKPOINT", sluice("journal", "dump", self.folder, "--data").stdout)

    def test_updates_of_groups_are_shown_with_their_definitions(self):
        fill(self.folder, events=100, groups=2, updates=3)
        updates = [record for record in records(self.folder) if record["kind"] == "group update"]
        self.assertEqual([(record["group"], record["definition"]) for record in updates],
                         [(group, f'{{"group": {group}, "update": {update}}}') for update in (1, 2, 3) for group in (1, 2)])
        self.assertRegex(sluice("journal", "dump", self.folder).stdout, r"(?m)^\d+ group update group=1 definition=")
        stats = json.loads(sluice("journal", "stats", self.folder, "--json").stdout)
        self.assertEqual((stats["records"]["group update"]["count"], stats["groups"]), (6, 2))
        self.assertEqual(sluice("journal", "verify", self.folder).returncode, 0)

    def test_ranges(self):
        fill(self.folder, events=3000, streams=10)
        self.assertEqual([record["position"] for record in records(self.folder, "--from", 2000, "--count", 3)],
                         [2000, 2001, 2002])
        second = records(self.folder, "--segment", 2)
        self.assertEqual({record["segment"] for record in second}, {2})
        self.assertGreater(len(second), 100)
        self.assertEqual(len(events(self.folder, "--stream", "stream-3")), 300)
        self.assertEqual(records(self.folder, "--stream", "stream"), [])
        self.assertEqual(sluice("journal", "dump", self.folder, "--count", 0).returncode, USAGE)

    def test_for_people_one_line_for_each_record(self):
        fill(self.folder, events=100)
        lines = sluice("journal", "dump", self.folder).stdout.splitlines()
        plain = [line for line in lines if not line.startswith("#")]
        self.assertEqual(len(plain), 102)
        self.assertTrue(all(re.match(r"\d+ \w+", line) for line in plain))
        self.assertRegex(plain[1], r'^2 event stream="stream-0" revision=0 type="type-0" id=\S+ created=2023-11-14T\S+ ')

    def test_damaged_places_are_shown_and_passed(self):
        fill(self.folder, events=1000, batch=4)
        whole = events(self.folder)
        hit = whole[400]
        flip(self.folder / f"{hit['segment']:016x}.seg", hit["offset"] + 40, 0)
        answer = sluice("journal", "dump", self.folder)
        self.assertEqual(answer.returncode, DAMAGE)
        damage = [line for line in answer.stdout.splitlines() if line.startswith("# DAMAGE")]
        self.assertEqual(len(damage), 1)
        self.assertIn(f"byte {hit['offset']}", damage[0])
        left = events(self.folder)
        self.assertEqual(len(left), 996)
        self.assertNotIn(hit["position"], {record["position"] for record in left})
        self.assertEqual(left[-1]["position"], whole[-1]["position"])


class Stats(Folders):
    def test_counts_what_is_there(self):
        fill(self.folder, events=3000, streams=12, groups=3, deletes=2, tombstones=1)
        make_caches(self.folder)
        answer = sluice("journal", "stats", self.folder, "--json")
        self.assertEqual(answer.returncode, OK)
        stats = json.loads(answer.stdout)
        self.assertEqual((stats["events"], stats["groups"]), (3003, 3))
        self.assertEqual((stats["streams"], stats["soft_deleted_streams"], stats["tombstoned_streams"]), (14, 2, 1))
        self.assertEqual(stats["hidden_events"], 3 * 250)
        self.assertEqual(sum(kind["count"] for kind in stats["records"].values()), stats["end_position"] - 1)
        self.assertEqual(len(stats["largest_streams"]), 10)
        self.assertEqual(stats["largest_streams"][0]["events"], 251)     # the tombstone is one
        self.assertEqual((stats["opened"], stats["closed"], stats["epoch"]), (2, 2, 2))
        self.assertEqual(stats["indexes"], stats["segments"] - 1)
        text = sluice("journal", "stats", self.folder).stdout
        self.assertIn("3003; on average", text)

    def test_damage_is_said(self):
        fill(self.folder, events=500)
        flip(self.folder / "0000000000000001.seg", 20_000, 1)
        answer = sluice("journal", "stats", self.folder)
        self.assertEqual(answer.returncode, DAMAGE)
        self.assertIn("DAMAGE: places 1;", answer.stdout)


class Backup(Folders):
    def setUp(self):
        super().setUp()
        self.target = self.top / "copy"

    def assert_complete_up_to(self, folder, event_count):
        """A prefix of all events with at least so many, and a store that opens and goes on."""
        numbers = [int(record["id"].split("-")[-1], 16) - 1 for record in events(folder) if record["stream"].startswith("stream-")]
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertGreaterEqual(len(numbers), event_count)

    def test_of_a_folder_at_rest_it_is_the_same(self):
        fill(self.folder, events=3000, groups=1)
        make_caches(self.folder)
        answer = sluice("backup", self.folder, self.target)
        self.assertEqual((answer.returncode, answer.stderr), (OK, ""))
        self.assertEqual(records(self.target), records(self.folder))
        self.assertEqual(verify(self.target)[1]["findings"], [])
        fill(self.target, events=3)      # it opens, and the log goes on in its last segment
        self.assertEqual(verify(self.target)[0], OK)

    def test_while_a_server_writes_everything_acknowledged_before_is_in_it(self):
        with writer(self.folder, batch=10, pause_us=300) as acknowledged:
            for round_number in range(6):
                target = self.top / f"copy-{round_number}"
                before = acknowledged()
                answer = sluice("backup", self.folder, target, "--json")
                self.assertEqual(answer.returncode, OK, answer.stderr)
                self.assertGreaterEqual(json.loads(answer.stdout)["end_position"], before[1])
                self.assert_complete_up_to(target, before[0])
                code, found = verify(target)
                self.assertEqual((code, found["damages"]), (OK, 0), found)
                fill(target, events=1, streams=1)      # the copy opens
                time.sleep(0.1)

    def test_while_segments_are_rewritten_nothing_that_is_shown_is_missing(self):
        """$maxCount hides what is older; a rewritten segment without it is only right together with what is newer."""
        with writer(self.folder, batch=10, max_count=15, scavenge=1, groups=1, streams=10, bytes=300) as acknowledged:
            for round_number in range(10):
                target = self.top / f"copy-{round_number}"
                before = acknowledged()
                answer = sluice("backup", self.folder, target)
                self.assertEqual(answer.returncode, OK, answer.stderr)
                code, found = verify(target)
                self.assertEqual((code, found["damages"]), (OK, 0), found)
                by_stream = {}
                for record in events(target):
                    by_stream.setdefault(record["stream"], []).append(record["revision"])
                shown = [revisions for name, revisions in by_stream.items() if name.startswith("stream-")]
                self.assertEqual(len(shown), 10)
                for revisions in shown:
                    last = revisions[-1]
                    self.assertGreaterEqual(last, before[0] // 10 - 1)
                    self.assertEqual([r for r in revisions if r > last - 15], list(range(max(0, last - 14), last + 1)))
                fill(target, events=1, streams=1)      # the copy opens
                time.sleep(0.1)

    def test_a_target_that_has_something_is_refused(self):
        fill(self.folder, events=100)
        self.target.mkdir()
        (self.target / "mine").write_text("keep")
        answer = sluice("backup", self.folder, self.target)
        self.assertEqual(answer.returncode, FAILED)
        self.assertIn("a backup never overwrites", answer.stderr)
        self.assertEqual([path.name for path in self.target.iterdir()], ["mine"])

    def test_an_empty_target_is_taken(self):
        fill(self.folder, events=100)
        self.target.mkdir()
        self.assertEqual(sluice("backup", self.folder, f"{self.target}/").returncode, OK)
        self.assertEqual(records(self.target), records(self.folder))
        self.assertEqual(sorted(path.name for path in self.top.iterdir()), ["copy", "data"])

    def test_what_an_ended_backup_left_is_in_the_way_and_named(self):
        fill(self.folder, events=100)
        (self.top / "copy.partial").mkdir()
        answer = sluice("backup", self.folder, self.target)
        self.assertEqual(answer.returncode, FAILED)
        self.assertIn("copy.partial exists", answer.stderr)

    def test_a_damaged_journal_is_refused_with_the_finding(self):
        fill(self.folder, events=3000)
        for segment in (2, max(used_bytes(self.folder))):
            path = self.folder / f"{segment:016x}.seg"
            flip(path, 6000, 4)
            answer = sluice("backup", self.folder, self.target)
            self.assertEqual(answer.returncode, DAMAGE)
            self.assertIn(f"DAMAGE {path.name} at byte", answer.stderr)
            self.assertIn("is damaged, and a copy of it would be as well", answer.stderr)
            self.assertEqual([path.name for path in self.top.iterdir()], ["data"])
            flip(path, 6000, 4)
        make_caches(self.folder)
        flip(self.folder / "0000000000000001.idx", 5000, 1)      # an index is made anew: no reason to refuse
        self.assertEqual(sluice("backup", self.folder, self.target).returncode, OK)
        self.assertEqual(verify(self.target)[1]["damages"], 0)

    def test_a_target_that_can_not_be_written_leaves_nothing(self):
        fill(self.folder, events=1000)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        answer = sluice("backup", self.folder, self.target, preexec_fn=limit)
        self.assertEqual(answer.returncode, FAILED)
        self.assertIn("There is no room for the copy beside", answer.stderr)
        self.assertEqual([path.name for path in self.top.iterdir()], ["data"])

    def test_progress_when_asked_for(self):
        fill(self.folder, events=100)
        self.assertEqual(sluice("backup", self.folder, self.target, "--progress").returncode, OK)


class Scavenge(Folders):
    def test_gives_space_back_and_loses_nothing_that_is_shown(self):
        fill(self.folder, events=5000, deletes=3, max_count=50, groups=1)
        before = sum(path.stat().st_size for path in self.folder.glob("*.seg"))
        answer = sluice("scavenge", self.folder, "--json")
        self.assertEqual(answer.returncode, OK, answer.stderr)
        result = json.loads(answer.stdout)
        after = sum(path.stat().st_size for path in self.folder.glob("*.seg"))
        self.assertEqual(before - after, result["bytes_freed"])
        self.assertLess(len(events(self.folder)), 1600)      # 50 for each of 7 streams, and what is in the last segment
        code, found = verify(self.folder)
        self.assertEqual((code, found["damages"]), (OK, 0), found)
        shown = [record["revision"] for record in events(self.folder, "--stream", "stream-9")]
        self.assertEqual(shown[-50:], list(range(450, 500)))
        again = json.loads(sluice("scavenge", self.folder, "--json").stdout)
        self.assertEqual(again["events_dropped"], 0)

    def test_flips_in_rewritten_segments_are_found(self):
        fill(self.folder, events=5000, max_count=50)
        self.assertEqual(sluice("scavenge", self.folder).returncode, OK)
        dice = random.Random(11)
        for path in sorted(self.folder.glob("*.seg"))[:-2]:
            offset, bit = dice.randrange(path.stat().st_size), dice.randrange(8)
            flip(path, offset, bit)
            code, answer = verify(self.folder)
            self.assertEqual((code, {f["file"] for f in answer["findings"] if f["damage"]}), (DAMAGE, {path.name}), answer)
            flip(path, offset, bit)

    def test_is_refused_while_a_server_runs(self):
        with writer(self.folder):
            answer = sluice("scavenge", self.folder)
            self.assertEqual(answer.returncode, FAILED)
            self.assertRegex(answer.stderr, r"Another process uses this folder: number \d+")
            self.assertIn("leave it to that server", answer.stderr)

    def test_damage_is_said(self):
        fill(self.folder, events=2000, deletes=5)
        flip(self.folder / "0000000000000001.seg", 30_000, 1)
        answer = sluice("scavenge", self.folder)
        self.assertEqual(answer.returncode, DAMAGE)
        self.assertIn("0000000000000001.seg at byte", answer.stderr)


if __name__ == "__main__":
    unittest.main()
