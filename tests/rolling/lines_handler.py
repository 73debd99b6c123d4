#!/usr/bin/env python3
"""A handler for `sluice work --lines` that works for a while on each message and writes what it does into a ledger (work_ledger.py).

    lines_handler.py LEDGER WORK_MS_MIN WORK_MS_MAX WORKER"""
import json
import os
import random
import sys
import time


def main(path, work_ms, worker):
    ledger = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] != "message":
            continue
        about = f"{message['id']} {message['token']} {message['attempt']} {worker}\n"
        os.write(ledger, f"{time.monotonic() * 1000:.1f} begin {about}".encode())
        time.sleep(random.uniform(*work_ms) / 1000)
        os.write(ledger, f"{time.monotonic() * 1000:.1f} done {about}".encode())
        print(json.dumps({"id": message["id"], "result": "ack"}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], (float(sys.argv[2]), float(sys.argv[3])), sys.argv[4])
