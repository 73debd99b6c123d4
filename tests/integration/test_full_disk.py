#!/usr/bin/env python3
"""A disk that is full, for real: a small file system in memory. It can be mounted only by root, and is skipped for others."""
import os
import signal
import subprocess
import tempfile
import unittest

from client_case import FAILED, Case, Server

SIZE = "100m"       # a segment has 64 MB, so there is no room for a second one
LINE = '{"text": "' + "x" * 60_000 + '"}\n'


class FullDisk(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", cls.folder.name], capture_output=True)
        if mounted.returncode != 0:
            cls.folder.cleanup()
            raise unittest.SkipTest("no file system can be mounted here")
        cls.data = os.path.join(cls.folder.name, "data")
        cls.server = Server(cls.data)

    @classmethod
    def tearDownClass(cls):
        cls.server.end()
        subprocess.run(["umount", "--lazy", cls.folder.name], check=True)
        cls.folder.cleanup()

    def fill(self):
        result = self.run_sluice("append", self.stream, "--type", "t", "--lines", "-", stdin=LINE * 2000, code=FAILED)
        self.assertIn(b"The disk of the server is full", result.stderr)

    def test_a_server_whose_disk_is_full_starts_again_and_goes_on_settling(self):
        """Each time: the room that groups ask for while they are opened must not look like users that cannot be read."""
        self.run_sluice("group", "create", self.stream, "group", "--start", "start")
        self.fill()
        with tempfile.NamedTemporaryFile("r") as ledger:
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
                self.server.end(number)
                type(self).server = Server(self.data)
                self.run_sluice("work", "--from", f"sluice://{self.server.grpc}/{self.stream}/group", "--window", 1, "--slots", 1,
                                "--no-status", "--exec", f"echo $SLUICE_REVISION >> {ledger.name}; kill -TERM $PPID")
            done = [int(line) for line in ledger]
        self.assertGreaterEqual(len(done), 3)
        self.assertEqual(done, list(range(len(done))), "each one once, none left out")


if __name__ == "__main__":
    unittest.main()
