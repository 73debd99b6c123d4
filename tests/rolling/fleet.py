"""A server on a folder of its own, and a fleet of consumer processes that come and go, each with a ledger file."""
import collections
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from client_case import BUILD, SLUICE, Server, clean_environment, free_port  # noqa: E402 (the path comes first)
from ledger import read_ledger  # noqa: E402

CONSUMER = BUILD / "tests/tools/consumer"
FILL = BUILD / "tests/tools/fill"
STREAM, GROUP = "$all", "deploys"
WAIT_S = 300
LOOK_S = 0.01


def now_ms():
    """The clock of the ledgers."""
    return time.monotonic() * 1000


def wait_until(condition, what, seconds=WAIT_S):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what()}" if callable(what) else f"waited {seconds} s in vain for {what}")
        time.sleep(LOOK_S)


class Member:
    """A consumer process. Its lines are counted as they come; the judge reads them all at the end."""

    def __init__(self, command, path, name):
        self.name, self.path, self.ended_by, self.end_asked_at, self.code = name, path, "", None, None
        self.counts, self.position, self.rest = collections.Counter(), 0, b""
        self.lock = threading.Lock()
        with open(path, "ab") as ledger:
            self.process = subprocess.Popen([str(word) for word in command], env=clean_environment(), stdin=subprocess.DEVNULL, stdout=ledger,
                                            stderr=subprocess.STDOUT)

    def count(self, what):
        with self.lock, open(self.path, "rb") as ledger:
            ledger.seek(self.position)
            data = self.rest + ledger.read()
            self.position = ledger.tell()
            *lines, self.rest = data.split(b"\n")
            for line in lines:
                found = line.find(b'"what":"')
                self.counts[line[found + 8:line.find(b'"', found + 8)].decode()] += 1
            return self.counts[what]

    def wait(self, what, count=1):
        wait_until(lambda: self.count(what) >= count or self.process.poll() is not None, f"{what} of {self.name}")
        if self.count(what) < count:
            raise AssertionError(f"{self.name} ended with exit code {self.process.poll()} before {what}: {self.path.read_text()[-500:]}")

    def end(self, number, how):
        self.ended_by, self.end_asked_at = how, self.end_asked_at or now_ms()
        self.process.send_signal(number)
        self.code = self.process.wait(timeout=WAIT_S)

    def ledger(self):
        return read_ledger(self.path, self.name, self.ended_by, self.end_asked_at)


class Fleet:
    """Seats, each with a process that can be replaced; the server can be replaced, too."""

    def __init__(self, folder, message_count, key_count, consumer_words=(), seat_count=8, group_words=()):
        self.folder = pathlib.Path(folder)
        self.message_count, self.consumer_words = message_count, consumer_words
        self.keys = {f"stream-{i}": len(range(i, message_count, key_count)) for i in range(key_count)}
        self.members, self.seats = [], [None] * seat_count
        self.port = free_port()
        # Messages take turns among the keys, which one `sluice append` for each key would not give.
        subprocess.run([FILL, self.folder / "data", f"events={message_count}", f"streams={key_count}", "bytes=256", "batch=1000",
                        f"segment={64 << 20}"], check=True)
        self.server = None
        self.start_server()
        self.sluice("group", "create", STREAM, GROUP, "--filter-stream", "stream-", "--start", "start", "--strategy", "Pinned", *group_words)

    # --- the server ---

    def start_server(self):
        self.server = Server(str(self.folder / "data"), port=self.port)

    def restart_server(self, number=signal.SIGTERM):
        code = self.server.end(number)
        self.start_server()
        return code

    def sluice(self, *words, again_if=()):
        """again_if: what it complains of when it is worth another try, as the script around it would do."""
        result = subprocess.run([SLUICE, *map(str, words)], env=clean_environment(SLUICE_SERVER=f"127.0.0.1:{self.port}"), capture_output=True,
                                text=True, timeout=WAIT_S)
        if result.returncode == 1 and any(text in result.stderr for text in again_if):
            return self.sluice(*words, again_if=again_if)
        if result.returncode != 0:
            raise AssertionError(f"sluice {' '.join(map(str, words))} ended with {result.returncode}: {result.stdout[-300:]} {result.stderr[-300:]}")
        return result.stdout

    def rows(self, *words):
        return [json.loads(line) for line in self.sluice(*words, "--json").splitlines()]

    # --- consumers ---

    def start(self, seat, name, *words):
        path = self.folder / f"{len(self.members):03}-{name}.ledger"
        command = [CONSUMER, "--name", name, *self.consumer_words, *words, f"127.0.0.1:{self.port}", STREAM, GROUP]
        member = Member(command, path, name)
        self.members.append(member)
        self.seats[seat] = member
        return member

    def done_count(self):
        return sum(member.count("done") for member in self.members)

    def wait_done(self, count):
        def sentence():
            return f"{count} messages done; there are {self.done_count()}: {self.sluice('group', 'info', STREAM, GROUP)[:800]}"
        wait_until(lambda: self.done_count() >= count, sentence)

    def wait_all_settled(self):
        """Until the group has nothing left, as the server sees it: what is done and not settled would come again."""
        def is_over():
            info = self.rows("group", "info", STREAM, GROUP)[0]
            return info["in_flight"] + info["buffered"] + info["waiting_for_retry"] == 0 and self.done_count() >= self.message_count
        wait_until(is_over, lambda: f"the end of {self.done_count()} of {self.message_count}: {self.sluice('group', 'info', STREAM, GROUP)[:800]}")

    def stop_all(self):
        """Everybody who is still there, together; exit codes in the order of the seats."""
        members = [member for member in self.seats if member.process.poll() is None]
        for member in members:
            member.ended_by, member.end_asked_at = "term", now_ms()
            member.process.send_signal(signal.SIGTERM)
        for member in members:
            member.code = member.process.wait(timeout=WAIT_S)
        return [member.code for member in members]

    def ledgers(self):
        return [member.ledger() for member in self.members]

    def close(self):
        for member in self.members:
            if member.process.poll() is None:
                os.kill(member.process.pid, signal.SIGKILL)
                member.process.wait()
        if self.server.process.poll() is None:
            self.server.end(signal.SIGKILL)
