"""What the tests of commands that talk to a server share: a server for each class, and ways to run a command against it."""
import contextlib
import json
import os
import pathlib
import random
import re
import select
import signal
import socket
import subprocess
import tempfile
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", ROOT / "build"))
SLUICE = BUILD / "sluice"
OK, FAILED, USAGE = 0, 1, 2
WAIT_S = 60


def clean_environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    return {**kept, **more}


class StuckPipe:
    """A pipe for the error output of a process. It is full when a test wants it so, and read only when a test reads it."""

    def __init__(self, case):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        for end in (self.reader, self.writer):
            case.addCleanup(os.close, end)

    def fill(self):
        """With empty lines, until nothing more goes in."""
        own = os.open(f"/proc/self/fd/{self.writer}", os.O_WRONLY | os.O_NONBLOCK)  # the process shares the flags of the other one
        for piece in (b"\n" * 4096, b"\n"):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(own, piece)
        os.close(own)

    def take(self):
        """The lines that are in it."""
        text = b""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self.reader, 65536):
                text += piece
        return [line for line in text.decode().split("\n") if line]

    def take_until(self, mark):
        """The lines that come, as far as one with the mark."""
        lines = []
        while not any(mark in line for line in lines):
            if not select.select([self.reader], [], [], WAIT_S)[0]:
                raise AssertionError(f"no line with {mark!r} in {lines}")
            lines += self.take()
        return lines


def read_terminal(reader):
    """All that was shown, when nobody has the other end any more. It comes in pieces, however it was written."""
    shown = b""
    with contextlib.suppress(OSError):      # how Linux says that it is over
        while piece := os.read(reader, 65536):
            shown += piece
    os.close(reader)
    return shown.decode()


given_ports = set()


def free_port():
    """Never the same twice. Below those that the system gives to clients: whoever tries to reach a server that is down could be given its very port, be connected with
    itself, and keep the server from coming back."""
    while True:
        port = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            if port not in given_ports:
                given_ports.add(port)
                return port


@contextlib.contextmanager
def deaf_port():
    """Nobody listens there, and nobody else is given it meanwhile."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]


class Server:
    """A running `sluice serve`; its log goes to a file, which nobody has to read."""

    def __init__(self, folder, *words, port=0, program=SLUICE):
        self.folder = folder
        self.log = open(f"{folder}.log", "a", encoding="utf-8")
        self.process = subprocess.Popen([program, "serve", "--data", folder, "--port", str(port), "--admin-port", "0", *words],
                                        env=clean_environment(), stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        self.grpc = re.search(r"grpc=(\S+)", line)[1]
        self.port = int(self.grpc.rsplit(":", 1)[1])

    def end(self, number=signal.SIGTERM):
        """0 as the number: only waits for the end."""
        self.process.send_signal(number)
        code = self.process.wait(timeout=WAIT_S)
        self.process.stdout.close()
        self.log.close()
        return code


class Case(unittest.TestCase):
    """Has a server, and streams that no other test uses."""
    words = ()
    program = SLUICE  # which the server is

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.server = Server(os.path.join(cls.temporary.name, "data"), *cls.words, program=cls.program)

    @classmethod
    def tearDownClass(cls):
        cls.server.end()
        cls.temporary.cleanup()

    def setUp(self):
        self.stream = f"{self._testMethodName}-{uuid.uuid4().hex[:8]}"

    def run_sluice(self, *words, server=None, stdin="", code=OK, **environment):
        environment = {"SLUICE_SERVER": server or self.server.grpc, **environment}
        result = subprocess.run([SLUICE, *map(str, words)], env=clean_environment(**environment), capture_output=True,
                                input=stdin.encode() if isinstance(stdin, str) else stdin, timeout=WAIT_S)
        self.assertEqual(result.returncode, code, (words, result.stdout[-500:], result.stderr[-500:]))
        return result

    def out(self, *words, **options):
        return self.run_sluice(*words, **options).stdout.decode()

    def complaint(self, *words, code=FAILED, **options):
        return self.run_sluice(*words, code=code, **options).stderr.decode()

    def json(self, *words, **options):
        return [json.loads(line) for line in self.out(*words, "--json", **options).splitlines()]

    def append(self, data="{}", stream=None, **options):
        return self.json("append", stream or self.stream, "--type", "t", "--data", data, **options)[0]

    def start(self, *words, server=None, stdin=subprocess.DEVNULL, **environment):
        environment = {"SLUICE_SERVER": server or self.server.grpc, **environment}
        process = subprocess.Popen([SLUICE, *map(str, words)], env=clean_environment(**environment), stdin=stdin,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.kill()
        process.wait(timeout=WAIT_S)
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError, AttributeError):
                stream.close()
