#!/usr/bin/env python3
"""How long a start may wait for nothing, and starts on a full disk. What a start says and refuses is in test_serve.py."""
import datetime
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import client_case
from test_journal_cli import events, flip
from test_serve import DAMAGE, OK, SLUICE, Server

IDLE_S_MAX = 5      # the next turn that comes by itself is one of the group, ten seconds later


class Start(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self):
        server = Server("--data", self.folder, "--port", 0, "--admin-port", 0, "--log-format", "json")
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server.ready()

    @staticmethod
    def time_of(server, message):
        line = json.loads(server.wait_for(f'"message":"{message}"'))
        return datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S.%fZ")

    def test_a_server_whose_users_are_read_is_ready_without_waiting_for_anything_else(self):
        """With a group on the disk and nobody there, no other event brings the turn in which the server would notice. Both times are the server's own, so
        that a machine which starts processes slowly is not measured."""
        server = self.start()
        subprocess.run([SLUICE, "group", "create", "stream", "group", "--server", server.grpc], check=True, capture_output=True)
        self.assertEqual(server.end(), OK)
        server = self.start()
        waited = self.time_of(server, "ready") - self.time_of(server, "users read")
        self.assertLess(waited.total_seconds(), IDLE_S_MAX)
        self.assertEqual(server.end(), OK)


class FullDisk(client_case.Case):
    """For real: a small file system in memory, with room for one segment of 64 MB and no second one. Only root can mount it."""
    LINE = '{"text": "' + "x" * 60_000 + '"}\n'

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, self.folder)
        words = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", self.folder]
        if shutil.which("mount") is None or subprocess.run(words, capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "--lazy", self.folder], check=True)
        self.data = os.path.join(self.folder, "data")
        self.server = client_case.Server(self.data)
        self.addCleanup(lambda: self.server.process.poll() is None and self.server.end())

    def fill(self, lines=2000):
        result = self.run_sluice("append", self.stream, "--type", "t", "--lines", "-", stdin=self.LINE * lines, code=client_case.FAILED)
        self.assertIn(b"The disk of the server is full", result.stderr)

    def restart(self, *words):
        self.assertEqual(self.server.end(), OK)
        self.server = client_case.Server(self.data, *words)

    def test_a_server_whose_disk_is_full_starts_again_and_goes_on_settling(self):
        """The room that groups ask for while they are opened must not look like users that cannot be read."""
        self.run_sluice("group", "create", self.stream, "group", "--start", "start")
        self.fill()
        with tempfile.NamedTemporaryFile("r") as ledger:
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
                self.server.end(number)
                self.server = client_case.Server(self.data)
                self.run_sluice("work", "--from", f"sluice://{self.server.grpc}/{self.stream}/group", "--window", 1, "--slots", 1,
                                "--no-status", "--exec", f"echo $SLUICE_REVISION >> {ledger.name}; kill -TERM $PPID")
            done = [int(line) for line in ledger]
        self.assertGreaterEqual(len(done), 3)
        self.assertEqual(done, list(range(len(done))), "each one once, none left out")

    def test_users_that_cannot_be_read_end_a_start_on_a_full_disk_too(self):
        """In the first of three segments: the last two are looked at while the store is opened, and the first one by who reads users."""
        subprocess.run(["mount", "-o", "remount,size=225m", self.folder], check=True)
        self.restart("--insecure")
        self.run_sluice("user", "add", "anna", "--admin", stdin="a long password\n")
        self.run_sluice("append", self.stream, "--type", "t", "--lines", "-", stdin=self.LINE * 1200)
        self.run_sluice("group", "create", self.stream, "group")
        self.fill(4000)
        self.restart("--insecure")      # what was in the making when it was closed before is made
        self.assertEqual(self.server.end(), OK)
        users = events(self.data, "--stream", "$users")[0]
        flip(os.path.join(self.data, f"{users['segment']:016x}.seg"), users["offset"] + 40, 0)
        server = Server("--data", self.data, "--port", 0, "--admin-port", 0)
        self.addCleanup(lambda: server.process.poll() is None and server.end(signal.SIGKILL))
        self.assertEqual(server.wait(), DAMAGE)
        self.assertIn("The users cannot be read: Damage", server.log[-1])


if __name__ == "__main__":
    unittest.main()
