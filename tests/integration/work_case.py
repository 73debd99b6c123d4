"""A running `sluice work`, the ledger that its handlers write, and HTTP destinations that behave as a test wants."""
import contextlib
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.request

from client_case import SLUICE, WAIT_S, Case, clean_environment

UNCLEAN, LOST = 5, 6
LATE_S = 0.25  # how much later than its grace a worker may end


def wait_until(condition, what, seconds=WAIT_S):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what() if callable(what) else what}")
        time.sleep(0.005)


class Watch:
    """Measures how long something takes, without the time in which the machine kept a thread waiting that had to run: whoever is measured was kept
    waiting, too. On a machine that is not overloaded that is nothing."""
    NAP_S = 0.005
    LATE_MIN_S = 0.02  # shorter ones are what a limit has room for

    def __enter__(self):
        self.began_at, self.stalled_s, self.is_over = time.monotonic(), 0, False
        self.thread = threading.Thread(target=self.nap, daemon=True)
        self.thread.start()
        return self

    def nap(self):
        while not self.is_over:
            lay_down_at = time.monotonic()
            time.sleep(self.NAP_S)
            late_s = time.monotonic() - lay_down_at - self.NAP_S
            self.stalled_s += late_s if late_s > self.LATE_MIN_S else 0

    def seconds(self):
        return time.monotonic() - self.began_at - self.stalled_s

    def __exit__(self, *error):
        self.is_over = True
        self.thread.join()


class Ledger:
    """Handlers add lines such as "begin ID"; one line is one write."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.touch()

    def lines(self):
        return self.path.read_text(encoding="utf-8").splitlines()

    def of(self, word):
        return [line.split()[1] for line in self.lines() if line.startswith(word + " ")]

    def wait(self, word, count=1, seconds=WAIT_S):
        wait_until(lambda: len(self.of(word)) >= count, lambda: f"{count} times {word} in {self.lines()[-5:]}", seconds)
        return self.of(word)


class Work:
    """A worker process. Its log goes to a file, or where `stderr` leads to, its report to another."""
    count = 0

    def __init__(self, folder, *words, is_ready=True, before=None, stderr=None, **environment):
        """before: called in the process before the program begins."""
        Work.count += 1
        self.log_path = pathlib.Path(folder) / f"work-{Work.count}.log"
        self.report_path = pathlib.Path(folder) / f"work-{Work.count}.report"
        with open(self.log_path, "w", encoding="utf-8") as log:
            command = [SLUICE, "work", *map(str, words), "--status-port", "0", "--report", self.report_path]
            self.process = subprocess.Popen(command, env=clean_environment(**environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=log if stderr is None else stderr, text=True, preexec_fn=before)
        self.status = None
        if is_ready:
            self.wait_ready()

    def wait_ready(self):
        line = self.process.stdout.readline()
        found = re.match(r"ready workers=\d+ status=(\S+)", line)
        if found is None:
            raise AssertionError(f"not ready but {line!r}: {self.log()[-2000:]}")
        self.status = found[1]

    def log(self):
        return self.log_path.read_text(encoding="utf-8")

    def page(self, path, method="GET"):
        request = urllib.request.Request(f"http://{self.status}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.read().decode()

    def state(self):
        return json.loads(self.page("/v1/state")[1])

    def counts(self):
        return self.state()["workers"][0]["counts"]

    def wait_offered(self, count):
        """Until so many messages are here. The first of them may begin before the last has come."""
        wait_until(lambda: self.counts()["offered"] >= count, f"{count} messages")

    def send(self, number):
        self.process.send_signal(number)

    def wait(self):
        """The exit code, and how long it took. Who does not end is killed."""
        patience = threading.Timer(WAIT_S, self.process.kill)
        patience.start()
        with Watch() as watch:
            code = self.process.wait()  # with a time limit it would look twenty times a second
            seconds = watch.seconds()
        patience.cancel()
        self.process.stdout.close()
        return code, seconds

    def end(self, number=signal.SIGTERM):
        self.send(number)
        return self.wait()

    def children(self):
        """Its children as the system sees them, the dead ones too: (number, state, name)."""
        numbers, found = [], []
        for thread in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                numbers += (thread / "children").read_text().split()
        for number in numbers:
            with contextlib.suppress(OSError):  # it has gone meanwhile
                name, rest = re.match(r"\d+ \((.*)\) (\S)", pathlib.Path(f"/proc/{number}/stat").read_text(), re.DOTALL).groups()
                found.append((int(number), rest, name))
        return found

    def report(self):
        return json.loads(self.report_path.read_text(encoding="utf-8"))

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=WAIT_S)
        if not self.process.stdout.closed:
            self.process.stdout.close()


class Destination:
    """An HTTP server. Each request is noted; `answer(number, request)` says what is done with it and returns a status."""

    def __init__(self, answer=lambda number, request: 204):
        self.ids, self.headers, self.bodies, self.lock = [], [], [], threading.Lock()
        destination = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # noqa: N802 (the name is the library's)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with destination.lock:
                    number = len(destination.ids)
                    destination.ids.append(self.headers["Sluice-Id"])
                    destination.headers.append(dict(self.headers))
                    destination.bodies.append(body)
                status = answer(number, self)
                if status is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words):
                pass

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request, client_address):
                pass

        self.server = Threads(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def wait(self, count=1):
        wait_until(lambda: len(self.ids) >= count, lambda: f"{count} requests, have {len(self.ids)}")

    def end(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def reset(request):
    """Ends the connection of a request with RST. Closing it would not: the server says goodbye first."""
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(request.connection.detach())


def processes_with(mark):
    """Processes whose environment has the mark: handlers, and whatever they have started."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class WorkCase(Case):
    """Has a stream with a group named `g`, and a ledger."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.temporary.name) / self.stream
        self.folder.mkdir()
        self.ledger = Ledger(self.folder / "ledger")
        self.mark = f"WORK_TEST_MARK={self.stream}"

    def source(self, server=None, group="g"):
        return f"sluice://{server or self.server.grpc}/{self.stream}/{group}"

    def fill(self, count, server=None, group_words=()):
        lines = "".join(json.dumps({"n": i}) + "\n" for i in range(count))
        self.run_sluice("append", self.stream, "--type", "t", "--lines", "-", stdin=lines, server=server)
        self.run_sluice("group", "create", self.stream, "g", "--start", "start", *group_words, server=server)

    def work(self, *words, **options):
        environment = {"LEDGER": str(self.ledger.path), "WORK_TEST_MARK": self.stream}
        work = Work(self.folder, *words, **{**environment, **options})
        self.addCleanup(work.stop)
        return work

    def destination(self, *answers):
        destination = Destination(*answers)
        self.addCleanup(destination.end)
        return destination

    def info(self, server=None, group="g"):
        return self.json("group", "info", self.stream, group, server=server)[0]

    def assert_no_process_left(self):
        wait_until(lambda: processes_with(self.mark) == [], lambda: f"the end of {processes_with(self.mark)}")


__all__ = ["UNCLEAN", "LOST", "LATE_S", "Watch", "Destination", "Ledger", "Work", "WorkCase", "os", "processes_with", "reset", "signal", "threading", "wait_until"]
