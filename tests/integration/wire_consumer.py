"""A consumer of a group for tests: HTTP/2, gRPC and protobuf by hand, because a test wants to hold messages back, to settle them in an order of
its own and to vanish without a word, which no client library offers.

Only what these tests need: one call on one connection, requests of a few hundred bytes, ids as text."""
import socket
import struct
import threading

WAIT_S = 60
PARK, RETRY, SKIP = 1, 2, 3
EVENT, CONFIRMATION, STOPPED, DRAINED, STOP_REQUESTED, SETTLED, END = 1, 2, 100, 101, 102, 103, "end"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
WINDOW = 1 << 30


# --- protobuf ---

def varint(number):
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes(parts + bytes([number]))


def field(number, value):
    """A number, a text, or a message that is bytes already."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def parse(message):
    """Field numbers to lists of numbers or bytes."""
    fields, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            shift += 7
            at += 1
            if message[at - 1] < 128:
                return value

    while at < len(message):
        tag = number()
        value = number()
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        fields.setdefault(tag >> 3, []).append(value)
    return fields


# --- HTTP/2 ---

def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def text(value):
    """A header text that is not compressed; the length has seven bits and more bytes when these are full."""
    value = value.encode()
    length = bytes([len(value)]) if len(value) < 127 else b"\x7f" + varint(len(value) - 127)
    return length + value


def request_headers(path, authority):
    return (b"\x83\x86"  # :method POST, :scheme http, both in the static table
            + b"\x04" + text(path) + b"\x01" + text(authority)
            + b"\x00" + text("content-type") + text("application/grpc") + b"\x00" + text("te") + text("trailers"))


class Consumer:
    """A call of Read. What comes is kept until somebody asks for it: `event()`, `take(kind)`."""

    def __init__(self, server, stream, group, name="", labels=None, window=10, extensions=True, resume=()):
        host, port = server.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=WAIT_S)
        self.answers, self.changed = [], threading.Condition()
        self.lock = threading.Lock()
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, WINDOW))
                            + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW - 65535))
                            + frame(HEADERS, 4, 1, request_headers(
                                "/event_store.client.persistent_subscriptions.PersistentSubscriptions/Read", server)))
        where = field(5, b"") if stream == "$all" else field(1, field(3, stream))
        options = where + field(2, group) + field(3, window) + field(4, field(2, b""))
        options += field(100, name) if name else b""
        options += b"".join(field(101, field(1, key) + field(2, value)) for key, value in (labels or {}).items())
        options += field(102, 1) if extensions else b""
        options += b"".join(field(104, field(2, one)) for one in resume)
        self.send(field(1, options))
        self.thread = threading.Thread(target=self.receive, daemon=True)
        self.thread.start()
        self.take(CONFIRMATION)

    # --- what is said ---

    def send(self, message):
        with self.lock:
            self.socket.sendall(frame(DATA, 0, 1, b"\x00" + struct.pack(">I", len(message)) + message))

    def settle(self, number, ids, more=b""):
        self.send(field(number, b"".join(field(2, field(2, one)) for one in ids) + more))

    def ack(self, *ids):
        self.settle(2, ids)

    def nack(self, action, *ids, reason=""):
        self.settle(3, ids, field(3, action) + field(4, reason))

    def started(self, *ids):
        self.settle(102, ids)

    def release(self, *ids):
        self.settle(100, ids)

    def leave(self):
        """Cancels the call, and waits until nothing comes any more."""
        with self.lock:
            self.socket.sendall(frame(RST_STREAM, 0, 1, struct.pack(">I", 8)))
        self.close()

    def close(self):
        """Vanishes."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(timeout=WAIT_S)
        self.socket.close()

    # --- what is heard ---

    def read(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise ConnectionError
            data += piece
        return data

    def receive(self):
        waiting = b""
        try:
            while True:
                head = self.read(9)
                kind, flags = head[3], head[4]
                payload = self.read(int.from_bytes(head[:3], "big"))
                if kind in (SETTINGS, PING) and not flags & 1:
                    with self.lock:
                        self.socket.sendall(frame(kind, 1, 0, payload if kind == PING else b""))
                if kind == DATA:
                    waiting += payload
                while len(waiting) >= 5 and len(waiting) >= 5 + struct.unpack(">I", waiting[1:5])[0]:
                    length = 5 + struct.unpack(">I", waiting[1:5])[0]
                    self.keep(waiting[5:length])
                    waiting = waiting[length:]
                if kind in (GOAWAY, RST_STREAM) or kind == HEADERS and flags & 1:
                    break
        except OSError:
            pass
        self.keep_one(END, None)

    def keep(self, message):
        for kind, values in parse(message).items():
            self.keep_one(kind, parse(values[-1]))

    def keep_one(self, kind, fields):
        with self.changed:
            self.answers.append((kind, fields))
            self.changed.notify_all()

    def find(self, *kinds):
        return next((i for i, (kind, _) in enumerate(self.answers) if kind in kinds), None)

    def take(self, kind):
        """The oldest answer of this kind that nobody has taken; waits for it while the call lives."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.find(kind, END) is not None, timeout=WAIT_S):
                raise AssertionError(f"waited in vain for {kind}, got {self.answers}")
            at = self.find(kind)
            if at is None:
                raise AssertionError(f"the call ended without {kind}, got {self.answers}")
            return self.answers.pop(at)[1]

    def event(self):
        """The id of the next message: that of the link it came by, where there is one."""
        event = self.take(EVENT)
        recorded = parse(event.get(2, event.get(1))[0])
        return parse(recorded[1][0])[2][0].decode()
