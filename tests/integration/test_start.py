#!/usr/bin/env python3
"""How long a start may wait for nothing. What a start says and refuses is in test_serve.py."""
import datetime
import json
import shutil
import subprocess
import tempfile
import unittest

from test_serve import OK, SLUICE, Server

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


if __name__ == "__main__":
    unittest.main()
