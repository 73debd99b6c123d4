#!/usr/bin/env python3
"""The end of `sluice serve` while its disk, or a hash, takes as long as the test wants: what is counted, what is left, what fails.

`held` is the whole of sluice with two slow places that wait for a word of the test (tests/tools/held.c). So the numbers below
are exact: the batches are inside when the signal comes, and whether and how they end is decided afterwards. Calls are made by hand,
frame by frame, because they have to come at a certain moment on a connection that is already there."""
import base64
import json
import os
import signal
import socket
import unittest
import uuid

import test_serve as serve

HELD = serve.BUILD / "tests/tools/held"
BATCHES = 40        # more than are synced in the thread of the loop, which would hold the loop as well
DATA, HEADERS, END_STREAM, END_HEADERS = 0, 1, 1, 4
STREAMS = serve.STREAMS


def batch_message(stream, number):
    event = (serve.field(1, serve.field(2, str(uuid.UUID(int=number + 1))))
             + b"".join(serve.field(2, serve.field(1, key) + serve.field(2, value))
                        for key, value in (("type", "t"), ("content-type", "x")))
             + serve.field(4, "{}"))
    options = serve.field(1, serve.field(3, stream)) + serve.field(4, b"")
    return (serve.field(1, serve.field(2, str(uuid.UUID(int=number + 1)))) + serve.field(2, options)
            + serve.field(3, event) + b"\x20\x01")


def delete_message(stream):
    return serve.field(1, serve.field(1, serve.field(3, stream)) + serve.field(4, b""))


class Client:
    """A connection that sends what it is told to. What comes back is not read: the counts of the server are looked at."""

    def __init__(self, address):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=serve.WAIT_S)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0, b""))
        self.last = -1

    @staticmethod
    def frame(kind, flags, stream, payload):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    def call(self, method, messages=None, end=False, **headers):
        """Opens one; its number."""
        def text(value):
            return bytes([len(value)]) + value.encode()
        names = {":method": "POST", ":scheme": "http", ":path": f"/{method}", ":authority": "localhost",
                 "content-type": "application/grpc", "te": "trailers", **headers}
        block = b"".join(b"\0" + text(name) + text(value) for name, value in names.items())
        self.last += 2
        self.socket.sendall(self.frame(HEADERS, END_HEADERS, self.last, block))
        if messages is not None:
            self.send(self.last, messages, end)
        return self.last

    def send(self, number, messages, end):
        self.socket.sendall(self.frame(DATA, END_STREAM if end else 0, number, serve.frames(messages)))

    def close(self):
        self.socket.close()


class Drain(serve.Serve):
    def setUp(self):
        super().setUp()
        self.held = self.top / "held"
        self.held.mkdir()
        for name in ("entered", "go"):
            os.mkfifo(self.held / name)
        self.pipes = {name: os.open(self.held / name, os.O_RDWR) for name in ("entered", "go")}
        for pipe in self.pipes.values():
            self.addCleanup(os.close, pipe)

    def hold(self):
        (self.held / "hold").touch()

    def entered(self):
        """Waits until somebody is held, and tells where."""
        return os.read(self.pipes["entered"], 1)

    def let_go(self, letter):
        """Nobody else is held from now on."""
        (self.held / "hold").unlink()
        os.write(self.pipes["go"], letter)

    def running(self, *words):
        return super().running(*words, program=HELD, environment={"HELD": str(self.held)})

    def connect(self, server):
        client = Client(server.grpc)
        self.addCleanup(client.close)
        return client

    def busy(self, *words):
        """A server with batches inside that the disk does not answer, and their client."""
        server = self.running(*words)
        client = self.connect(server)
        self.hold()
        client.call(f"{STREAMS}/BatchAppend", [batch_message("orders", number) for number in range(BATCHES)])
        self.assertEqual(self.entered(), b"s")
        return server, client

    def begin_end(self, server):
        server.tell(signal.SIGTERM)
        line = json.loads(server.wait_for('"shutting down"'))
        self.assertEqual(line["batches_inside"], BATCHES)
        server.wait_for('"phase":"fencing"')

    def wait_for_calls(self, server, name, count):
        while server.metric(name) != count:
            self.assertIsNone(server.process.poll(), server.log)

    def report(self, server):
        """The line of the end; behind it there is only the sentence of a failure."""
        lines = [line for line in server.log if line.startswith("{")]
        line = json.loads(lines[-1])
        self.assertEqual(line["message"], "server stopped")
        return line

    def expect_report(self, server, **wanted):
        counts = dict.fromkeys(("batches_finished", "batches_failed", "batches_left", "batches_refused", "calls_refused",
                                "calls_cut"), 0) | {"forced": False, "reason": "SIGTERM"} | wanted
        line = self.report(server)
        self.assertEqual({name: line[name] for name in counts}, counts)

    def stored(self):
        """How many of the batches are there after the next start."""
        server = serve.Serve.running(self)
        seen = serve.sluice("stream", "info", "orders", "--json", "--server", server.grpc)
        return json.loads(seen.stdout).get("events", 0) if seen.returncode == 0 else 0

    def test_what_was_inside_is_finished_and_counted_and_the_rest_is_refused_and_counted_S3_13_S3_27(self):
        server, client = self.busy()
        delete = client.call(f"{STREAMS}/Delete")       # known before the end, and asks for something after it
        self.wait_for_calls(server, "sluice_open_calls", 2)
        self.begin_end(server)
        client.send(delete, [delete_message("orders")], end=True)
        for _ in range(3):
            client.call(f"{STREAMS}/Append", serve.append_messages("orders", "{}"), end=True)
        self.wait_for_calls(server, r'sluice_ended_calls_total\{status="UNAVAILABLE"\}', 4)
        self.let_go(b"g")
        client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(server.wait(), serve.OK)
        self.expect_report(server, batches_finished=BATCHES, batches_refused=1, calls_refused=3)
        self.assertEqual(self.stored(), BATCHES)

    def test_a_store_that_fails_in_the_drain_is_told_and_the_next_steps_still_run_S3_22_S3_23(self):
        server, client = self.busy()
        self.begin_end(server)
        self.let_go(b"f")
        client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(server.wait(), serve.FAILED)
        self.expect_report(server, batches_failed=BATCHES)
        self.assertIn("the store failed", server.log[-1])
        lines = [json.loads(line) for line in server.log if line.startswith("{")]
        self.assertEqual(len([line for line in lines if line["message"] == "cannot go on"]), 1)
        self.assertEqual([(line["phase"], line["end"]) for line in lines if "phase" in line],
                         [(phase, "done") for phase in ("fencing", "settling", "flushing", "closing")])
        self.assertIn(self.stored(), range(BATCHES + 1))        # nobody knows, but it can be opened

    def test_a_disk_that_never_answers_is_left_to_itself_within_the_grace_S3_24_S3_36(self):
        server, _ = self.busy("--grace", "1s")
        self.begin_end(server)
        self.assertEqual(server.wait(), serve.OK)
        self.expect_report(server, batches_left=BATCHES, forced=True, calls_cut=1)
        late = [line for line in map(json.loads, server.log) if line["level"] == "warn"]
        self.assertIn(("settling", "timed out", BATCHES), [(line.get("phase"), line.get("end"), line.get("left")) for line in late])
        self.assertTrue([line for line in late if "the store is not closed yet and is left to itself" in line["message"]])

    def test_a_hash_is_not_waited_for_longer_than_its_limit_S3_24(self):
        added = serve.sluice("user", "add", "anna", "--admin", "--data", self.folder, input="a password of hers\n")
        self.assertEqual(added.returncode, serve.OK, added.stderr)
        server = self.running("--grace", "1s")
        self.hold()
        self.connect(server).call(f"{STREAMS}/Append", serve.append_messages("orders", "{}"), end=True,
                                  authorization="Basic " + base64.b64encode(b"anna:a password of hers").decode())
        self.assertEqual(self.entered(), b"h")
        (self.held / "hold").unlink()        # the disk is free, the hash is held for ever
        self.assertEqual(server.end(), serve.OK)
        self.expect_report(server, calls_refused=1)
        left = [line for line in map(json.loads, server.log) if line.get("thread") == "passwords"]
        self.assertEqual([(line["level"], line["limit"]) for line in left], [("warn", "200ms")])


if __name__ == "__main__":
    unittest.main()
