"""A consumer of RabbitMQ, Redis streams or beanstalkd for bench/rolling: as good a citizen as its system lets it be.

    worker.py KIND PORT NAME WINDOW SLOTS WORK_MS LEASE_MS

Holds up to WINDOW messages, works on SLOTS at the same time, in the order of each key. SIGTERM: takes nothing more, hands back what was not begun where
its system can do that, finishes the rest, leaves. Connections that break are made again, and what was finished meanwhile is confirmed then where the
system takes it. Its ledger, on stdout, has the words of tests/tools/consumer.c; `retry` is the counter of its system, whatever that counts."""
import json
import os
import signal
import socket
import sys
import time

try:
    import pika
except ImportError:
    pika = None

QUEUE, GROUP = "rolling", "g"
LOOK_MS = 10
CLAIM_EVERY_S = 1
is_stopping = False


def say(what, **more):
    line = json.dumps({"t": round(time.monotonic() * 1000, 3), "what": what, **more}, separators=(",", ":"))
    os.write(1, line.encode() + b"\n")


def parse_body(body):
    key, number, _ = bytes(body).decode().split(" ", 2)
    return key, int(number)


def make_body(key, number):
    return f"{key} {number} ".ljust(256, ".").encode()


class Item:
    def __init__(self, handle, body, retry):
        self.handle, self.due, self.is_done = handle, None, False
        self.key, self.number = parse_body(body)
        self.name = f"{self.key}/{self.number}"
        say("event", id=self.name, key=self.key, revision=self.number, token=time.monotonic_ns(), retry=retry)

    def close(self, outcome):
        say("settled", id=self.name, outcome=outcome)


class Line:
    """A connection with lines that end with CRLF, as Redis and beanstalkd have them."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def line(self):
        text = self.file.readline()
        if not text.endswith(b"\r\n"):
            raise ConnectionError("the connection ended")
        return text[:-2]

    def bytes(self, count):
        data = self.file.read(count + 2)
        if len(data) < count + 2:
            raise ConnectionError("the connection ended")
        return data[:-2]


class Rabbit:
    """Prefetch is the window. Tags belong to the channel: after a break nothing of before can be confirmed."""
    can_hand_back, confirms_after_break = True, False

    def __init__(self, port, _name, window, _lease_ms):
        self.port, self.window, self.arrived, self.tag = port, window, [], None

    def connect(self):
        where = pika.ConnectionParameters("127.0.0.1", self.port, heartbeat=0, socket_timeout=5, blocked_connection_timeout=30)
        self.arrived.clear()
        self.connection = pika.BlockingConnection(where)
        self.channel = self.connection.channel()
        self.channel.basic_qos(prefetch_count=self.window)
        self.tag = self.channel.basic_consume(QUEUE, self.on_message)

    def on_message(self, _channel, method, properties, body):
        counted = (properties.headers or {}).get("x-delivery-count")
        self.arrived.append(Item(method.delivery_tag, body, int(method.redelivered) if counted is None else int(counted)))

    def take(self, _want, wait_ms):
        self.connection.process_data_events(time_limit=wait_ms / 1000)
        arrived, self.arrived = self.arrived, []
        return arrived

    def confirm(self, item):
        self.channel.basic_ack(item.handle)

    def stop_taking(self):
        """What arrives before the answer was not begun either, and goes back."""
        self.channel.basic_cancel(self.tag)
        for item in self.arrived:
            self.hand_back(item)
        self.arrived = []

    def hand_back(self, item):
        self.channel.basic_nack(item.handle, requeue=True)
        item.close("released")

    def close(self):
        self.connection.close()


class Redis:
    """Nothing can be handed back: others claim what was idle for the lease. Confirmations are by name and can be said again."""
    can_hand_back, confirms_after_break = False, True

    def __init__(self, port, name, _window, lease_ms):
        self.port, self.name, self.lease_ms, self.claimed_at = port, name, lease_ms, time.monotonic()

    def connect(self):
        self.line = Line(self.port)

    def ask(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.line.send(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.answer()

    def answer(self):
        text = self.line.line()
        kind, rest = text[:1], text[1:]
        if kind == b"-":
            raise ConnectionError(rest.decode())          # LOADING, while it starts
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))] if rest != b"-1" else None
        if kind == b"$":
            return self.line.bytes(int(rest)) if rest != b"-1" else None
        return rest

    def claim(self, want):
        self.claimed_at = time.monotonic()
        entries = self.ask("XAUTOCLAIM", QUEUE, GROUP, self.name, self.lease_ms, "0", "COUNT", want)[1]
        return [self.item(name, fields, self.deliveries(name) - 1) for name, fields in entries if fields]

    def deliveries(self, name):
        return int(self.ask("XPENDING", QUEUE, GROUP, name, name, 1)[0][3])

    def item(self, name, fields, retry):
        return Item(name, fields[1], retry)

    def take(self, want, wait_ms):
        if want == 0:
            time.sleep(wait_ms / 1000)
            return []
        if time.monotonic() > self.claimed_at + CLAIM_EVERY_S:
            return self.claim(want)
        answer = self.ask("XREADGROUP", "GROUP", GROUP, self.name, "COUNT", want, "BLOCK", max(1, int(wait_ms)), "STREAMS", QUEUE, ">")
        return [self.item(name, fields, 0) for name, fields in (answer[0][1] if answer else [])]

    def confirm(self, item):
        self.ask("XACK", QUEUE, GROUP, item.handle)

    def stop_taking(self):
        pass

    def close(self):
        pass


class Beanstalk:
    """A reservation belongs to the connection. A job that is ready again can be deleted by anybody, so a confirmation is tried again."""
    can_hand_back, confirms_after_break = True, True

    def __init__(self, port, _name, _window, _lease_ms):
        self.port = port

    def connect(self):
        self.line = Line(self.port)
        self.ask(f"watch {QUEUE}")
        self.ask("ignore default")

    def ask(self, text):
        self.line.send(text.encode() + b"\r\n")
        return self.line.line().split()

    def take(self, want, wait_ms):
        taken = []
        while len(taken) < want:
            answer = self.ask("reserve-with-timeout 0")
            if answer[0] != b"RESERVED":
                break
            taken.append(Item(int(answer[1]), self.line.bytes(int(answer[2])), self.reserves(int(answer[1])) - 1))
        if not taken:
            time.sleep(wait_ms / 1000)
        return taken

    def reserves(self, job):
        answer = self.ask(f"stats-job {job}")
        text = self.line.bytes(int(answer[1])).decode()
        return int(text.split("\nreserves: ")[1].split("\n")[0])

    def confirm(self, item):
        if self.ask(f"delete {item.handle}")[0] != b"DELETED":
            raise LookupError("somebody else has it")

    def stop_taking(self):
        pass

    def hand_back(self, item):
        self.ask(f"release {item.handle} 0 0")
        item.close("released")

    def close(self):
        pass


KINDS = {"rabbitmq": Rabbit, "redis": Redis, "beanstalkd": Beanstalk}
BREAKS = (OSError, EOFError) + ((pika.exceptions.AMQPError,) if pika else ())


class Worker:
    def __init__(self, system, window, slots, work_s):
        self.system, self.window, self.slots, self.work_s = system, window, slots, work_s
        self.items, self.is_connected, self.is_shut = [], False, False

    def begin(self):
        running, keys = sum(item.due is not None and not item.is_done for item in self.items), set()
        for item in self.items:
            if item.due is None and running < self.slots and item.key not in keys and self.is_connected:
                item.due, running = time.monotonic() + self.work_s, running + 1
                say("begin", id=item.name)
            if not item.is_done:
                keys.add(item.key)

    def finish(self):
        for item in list(self.items):
            if item.due is not None and not item.is_done and item.due <= time.monotonic():
                item.is_done = True
                say("done", id=item.name)
            if item.is_done and self.is_connected:
                self.confirm(item)

    def confirm(self, item):
        try:
            self.system.confirm(item)
            item.close("settled")
        except LookupError:
            item.close("lost")
        self.items.remove(item)

    def wait_ms(self):
        dues = [item.due - time.monotonic() for item in self.items if item.due is not None and not item.is_done]
        return max(0.0, min([LOOK_MS, *(due * 1000 for due in dues)]))

    def connect(self):
        try:
            self.system.connect()
            self.is_connected = True
            say("connected")
        except BREAKS:
            time.sleep(self.wait_ms() / 1000)

    def on_break(self):
        """What was not begun is somebody else's now; what runs, runs on."""
        self.is_connected = False
        for item in self.items:
            if item.due is None:
                item.close("lost")
        self.items = [item for item in self.items if item.due is not None]
        if not self.system.confirms_after_break:
            self.run_out()

    def run_out(self):
        """Work whose confirmation nobody will take is finished all the same: it is going on."""
        while any(not item.is_done for item in self.items):
            self.finish()
            time.sleep(self.wait_ms() / 1000)
        for item in self.items:
            item.close("lost")
        self.items = []

    def shut(self):
        self.is_shut = True
        self.system.stop_taking()
        for item in [item for item in self.items if item.due is None]:
            if self.system.can_hand_back:
                self.system.hand_back(item)
            self.items.remove(item)

    def turn(self):
        if is_stopping and not self.is_shut:
            self.shut()
        self.finish()
        self.begin()
        if self.is_shut:
            time.sleep(self.wait_ms() / 1000)
        else:
            self.items += self.system.take(self.window - len(self.items), self.wait_ms())
            self.begin()

    def run(self):
        while not (self.is_shut and not self.items):
            if not self.is_connected:
                self.connect()
                continue
            try:
                self.turn()
            except BREAKS:
                self.on_break()
        self.system.close()
        say("ended", status="left")


def on_term(_number, _frame):
    global is_stopping
    is_stopping = True


def main(kind, port, name, window, slots, work_ms, lease_ms):
    signal.signal(signal.SIGTERM, on_term)
    Worker(KINDS[kind](int(port), name, int(window), int(lease_ms)), int(window), int(slots), float(work_ms) / 1000).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
