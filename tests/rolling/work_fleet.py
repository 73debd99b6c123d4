"""A server on a folder of its own, messages that are appended while it runs and while it does not, and seats with `sluice work` processes that come and go."""
import json
import pathlib
import signal
import subprocess
import sys
import threading

from fleet import GROUP, WAIT_S, now_ms, wait_until       # it says where the next two are
from client_case import SLUICE, Server, clean_environment, free_port
from work_case import UNCLEAN, Work
from work_ledger import Kill, judge, read_runs

HERE = pathlib.Path(__file__).resolve().parent
STREAM = "orders"
APPENDS = 20                # so many times the producer appends

# The clock of the shell has hundredths of a second only (CLOCK_STEP_MS): "done" can be too early by that, so whoever compares it with a kill needs a margin.
EXEC = ('read -r t _ < /proc/uptime; about="$SLUICE_ID $SLUICE_TOKEN $SLUICE_ATTEMPT $WORKER"; echo "${t%.*}${t#*.}0 begin $about" >> "$LEDGER"; '
        'sleep 0.02; read -r t _ < /proc/uptime; echo "${t%.*}${t#*.}0 done $about" >> "$LEDGER"')


class Seat:
    """A worker process that sits there, and how it was ended."""

    def __init__(self, name, work):
        self.name, self.work, self.is_killed = name, work, False

    def counts(self):
        worker = json.loads(self.work.page("/v1/state")[1])["workers"][0]
        return {**worker["held"], **worker["counts"]}

    def recalled(self):
        """How many ends of its predecessor it found in the ack file, as it said when it started."""
        lines = [json.loads(line) for line in self.work.log().splitlines()]
        return sum(line["count"] for line in lines if line["message"].startswith("finished work of an earlier process"))


class WorkFleet:
    def __init__(self, folder, handler, message_count, seat_count=4, work_ms=(10, 40), words=(), filled=0.8, group_words=(),
                 is_named=False):
        """filled: the share of the messages that is there before anybody works; the producer appends the rest meanwhile. is_named: consumers have
        the names that are in the ledger."""
        self.folder = pathlib.Path(folder)
        self.handler, self.message_count, self.words, self.work_ms, self.is_named = handler, message_count, words, work_ms, is_named
        self.ledger = self.folder / "ledger"
        self.ledger.touch()
        self.port = free_port()
        self.seats, self.started, self.killed, self.position, self.done = [None] * seat_count, [], {}, 0, 0
        self.destination = self.producer = self.fault = None
        self.is_closing, self.looking, self.start_count = False, threading.Lock(), 0
        self.start_server()
        if handler == "http":
            self.start_destination()
        self.append(range(int(message_count * filled)))
        self.sluice("group", "create", STREAM, GROUP, "--start", "start", *group_words)
        self.start_producer(range(int(message_count * filled), message_count))

    # --- the server, and commands ---

    def start_server(self):
        self.server = Server(str(self.folder / "data"), port=self.port)

    def restart_server(self, number=signal.SIGTERM):
        code = self.server.end(number)
        self.start_server()
        return code

    def run_sluice(self, *words, stdin=""):
        return subprocess.run([SLUICE, *map(str, words)], env=clean_environment(SLUICE_SERVER=f"127.0.0.1:{self.port}"), capture_output=True, text=True,
                              input=stdin, timeout=WAIT_S)

    def sluice(self, *words, stdin=""):
        result = self.run_sluice(*words, stdin=stdin)
        if result.returncode != 0:
            raise AssertionError(f"sluice {' '.join(map(str, words))} ended with {result.returncode}: {result.stdout[-300:]} {result.stderr[-300:]}")
        return result.stdout

    def rows(self, *words):
        return [json.loads(line) for line in self.sluice(*words, "--json").splitlines()]

    def info(self):
        return self.rows("group", "info", STREAM, GROUP)[0]

    # --- messages ---

    def append(self, numbers):
        self.sluice("append", STREAM, "--type", "placed", "--lines", "-", stdin="".join(f'{{"n":{n}}}\n' for n in numbers))

    def start_producer(self, numbers):
        """Appends in small parts, again if the server is away; should one be there twice then, it is two messages."""
        step = len(numbers) // APPENDS + 1

        def produce():
            for first in range(0, len(numbers), step):
                while not self.is_closing:
                    try:
                        self.append(numbers[first:first + step])
                        break
                    except AssertionError as error:
                        if not any(text in str(error) for text in ("cannot reach", "lost the connection", "shutting down")):
                            self.fault = error
                            return
        self.producer = threading.Thread(target=produce, daemon=True)
        self.producer.start()

    def start_destination(self):
        self.destination = subprocess.Popen([sys.executable, HERE / "destination.py", self.ledger, *map(str, self.work_ms)], stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.destination.stdout.readline())}/"

    # --- workers ---

    def handler_words(self, name):
        if self.handler == "http":
            return ("--http", self.url, "--header", f"Worker: {name}")
        if self.handler == "exec":
            return ("--exec", EXEC)
        return ("--lines", f"exec {sys.executable} -S -E {HERE / 'lines_handler.py'} {self.ledger} {self.work_ms[0]} {self.work_ms[1]} {name}")

    def start(self, seat, name, *words, is_ready=True):
        """name: in the ledger; the name of the consumer is among the words, or is random. Names in a ledger are never used again."""
        self.start_count += 1
        name = f"{name}-{self.start_count}"
        words = (*words, *(("--name", name) if self.is_named else ()))
        work = Work(self.folder, "--from", f"sluice://127.0.0.1:{self.port}/{STREAM}/{GROUP}", *self.handler_words(name), *self.words, *words,
                    is_ready=False, WORKER=name, LEDGER=str(self.ledger))
        self.seats[seat] = Seat(name, work)
        self.started.append(self.seats[seat])
        if is_ready:
            work.wait_ready()
        return self.seats[seat]

    def kill(self, seat, sure_before_ms, frozen_at=None):
        """sure_before_ms: what was finished so long before the kill is sure, or before it was frozen. False: it had gone by itself before, as it
        should."""
        killed_at = frozen_at or now_ms()
        code, _ = seat.work.end(signal.SIGKILL)
        seat.is_killed = code != 0
        if seat.is_killed:
            self.killed[seat.name] = Kill(killed_at, killed_at - sure_before_ms)
        return seat.is_killed

    # --- progress ---

    def done_count(self):
        with self.looking, open(self.ledger, "rb") as ledger:
            ledger.seek(self.position)
            data = ledger.read()
            whole = data.rfind(b"\n") + 1
            self.position += whole
            self.done += data[:whole].count(b" done ")
            return self.done

    def wait_done(self, count):
        wait_until(lambda: self.done_count() >= count or self.fault, lambda: f"{count} done; there are {self.done_count()}: {self.info()}")

    def wait_all_settled(self):
        """Until the group has nothing left, as the server sees it: what is done and not settled would come again."""
        self.producer.join()
        if self.fault:
            raise self.fault
        self.wait_done(self.message_count)
        messages = set(self.message_ids())

        def is_over():
            info = self.info()
            return info["in_flight"] + info["buffered"] + info["waiting_for_retry"] == 0
        wait_until(lambda: messages <= {run.id for run in self.runs() if run.done_at} and is_over(),
                   lambda: f"the end of {self.done_count()} of {len(messages)}: {self.info()}")

    def stop_all(self):
        """Everybody who is still there, together."""
        seats = [seat for seat in self.seats if seat is not None and not seat.is_killed]
        for seat in seats:
            seat.work.send(signal.SIGTERM)
        return [seat.work.wait()[0] for seat in seats]

    def message_ids(self):
        return [row["id"] for row in self.rows("read", STREAM)]

    def runs(self):
        return read_runs(line for line in self.ledger.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n"))

    def verdict(self):
        return judge(self.runs(), self.message_ids(), self.killed)

    def close(self):
        self.is_closing = True
        for seat in self.started:
            seat.work.stop()
        if self.producer:
            self.producer.join()
        if self.destination:
            self.destination.kill()
            self.destination.wait()
            self.destination.stdout.close()
        if self.server.process.poll() is None:
            self.server.process.send_signal(signal.SIGCONT)
            self.server.end(signal.SIGKILL)


__all__ = ["UNCLEAN", "GROUP", "STREAM", "WorkFleet", "now_ms", "wait_until"]
