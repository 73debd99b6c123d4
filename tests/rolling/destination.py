#!/usr/bin/env python3
"""An HTTP destination as a process of its own: works on each request for a while, and writes what it does into a ledger (work_ledger.py).

    destination.py LEDGER WORK_MS_MIN WORK_MS_MAX

Prints its port. It goes on with a request whose sender is gone, as services do. Who sends names himself in the header Worker. Only what the HTTP
handler of `sluice work` sends is understood: a head, and a body of the length it tells. The header Work-Ms says how long the work takes."""
import asyncio
import os
import random
import sys
import time

HEAD_END = b"\r\n\r\n"
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


class Ledger:
    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, what, headers):
        line = f"{time.monotonic() * 1000:.1f} {what} {headers['sluice-id']} {headers['sluice-token']} {headers['sluice-attempt']} {headers['worker']}\n"
        os.write(self.file, line.encode())


class Connection(asyncio.Protocol):
    """One request at a time, as libcurl sends them."""

    def __init__(self, ledger, work_ms):
        self.ledger, self.work_ms, self.data, self.transport = ledger, work_ms, b"", None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.data += data
        end = self.data.find(HEAD_END)
        if end < 0:
            return
        lines = self.data[:end].decode().split("\r\n")[1:]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = end + len(HEAD_END) + int(headers.get("content-length", 0))
        if len(self.data) < length:
            return
        self.data = self.data[length:]
        self.begin(headers)

    def begin(self, headers):
        if headers["idempotency-key"] != headers["sluice-id"]:
            raise ValueError("the key is not the id")
        self.ledger.write("begin", headers)
        work_ms = float(headers.get("work-ms", random.uniform(*self.work_ms)))
        asyncio.get_running_loop().call_later(work_ms / 1000, self.finish, headers)

    def finish(self, headers):
        self.ledger.write("done", headers)
        self.transport.write(ANSWER)


async def serve(path, work_ms):
    ledger = Ledger(path)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(ledger, work_ms), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], (float(sys.argv[2]), float(sys.argv[3]))))
