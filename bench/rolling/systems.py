"""The systems that are compared: how each is started, filled, restarted and ended, and what its consumers are called."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests/rolling"))
import worker  # noqa: E402 (the path comes first)
from fleet import CONSUMER, FILL, GROUP, SLUICE, STREAM, free_port  # noqa: E402

START_S_MAX = 90        # RabbitMQ needs ten, and more on a busy machine
PLACES = ("/usr/lib/rabbitmq/bin", "/usr/bin", "/usr/sbin", "/usr/local/bin")


def program(name):
    return next((path for place in PLACES if os.access(path := f"{place}/{name}", os.X_OK)), None) or shutil.which(name)


class System:
    """One of them, on a folder and a port that stay the same over its restarts."""
    name, program_name, worker_kind = "", "", ""
    charges = "the attempt counter of the system"

    def __init__(self, folder, workload):
        self.folder, self.workload, self.port, self.process = pathlib.Path(folder), workload, free_port(), None

    @classmethod
    def is_there(cls):
        return program(cls.program_name) is not None

    def words(self):
        raise NotImplementedError

    def environment(self):
        return {}

    def start(self):
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen([str(word) for word in self.words()], cwd=self.folder, env={**os.environ, **self.environment()},
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + START_S_MAX
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} did not start: {(self.folder / 'server.log').read_text(errors='replace')[-500:]}")
            time.sleep(0.02)

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def restart(self):
        self.stop()
        self.start()

    def consumer(self, name):
        load = self.workload
        return [sys.executable, HERE / "worker.py", self.worker_kind, self.port, name, load.window, load.slots, load.work_ms, load.lease_ms]


class Sluice(System):
    """The messages are in the folder before the server starts; keys are streams, the strategy is Pinned."""
    name, program_name = "sluice", "sluice"

    @classmethod
    def is_there(cls):
        return SLUICE.exists() and CONSUMER.exists() and FILL.exists()

    def words(self):
        return [SLUICE, "serve", "--data", self.folder / "data", "--port", self.port, "--admin-port", 0]

    def environment(self):
        return {"SLUICE_SERVER": f"127.0.0.1:{self.port}"}

    def fill(self):
        load = self.workload
        self.stop()
        subprocess.run([FILL, self.folder / "data", f"events={load.messages}", f"streams={load.keys}", "bytes=256", "batch=1000",
                        f"segment={64 << 20}"], check=True)
        self.start()
        words = ["--filter-stream", "stream-", "--start", "start", "--strategy", "Pinned", "--message-timeout", f"{load.lease_ms}ms"]
        subprocess.run([SLUICE, "group", "create", STREAM, GROUP, *words], check=True, stdout=subprocess.DEVNULL, env={**os.environ, **self.environment()})

    def start(self):
        if (self.folder / "data").exists():     # an empty one is filled first
            super().start()

    def consumer(self, name):
        load = self.workload
        return [CONSUMER, "--name", name, "--started", "--in-order", "--stop-on-term", "--hand-back", "--window", load.window, "--slots", load.slots,
                "--work-ms", load.work_ms, "--retry-ms-max", 100, f"127.0.0.1:{self.port}", STREAM, GROUP]


class Rabbit(System):
    """Everything that it writes stays in the folder."""
    program_name, worker_kind, queue_type = "rabbitmq-server", "rabbitmq", ""

    @classmethod
    def is_there(cls):
        return worker.pika is not None and super().is_there()

    def __init__(self, folder, workload):
        super().__init__(folder, workload)
        self.distribution = free_port()

    def words(self):
        return [program("rabbitmq-server")]

    def environment(self):
        return {"RABBITMQ_NODE_PORT": str(self.port), "RABBITMQ_DIST_PORT": str(self.distribution), "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
                "RABBITMQ_NODENAME": f"rolling{self.port}@localhost", "RABBITMQ_MNESIA_BASE": str(self.folder), "RABBITMQ_LOG_BASE": str(self.folder),
                "RABBITMQ_PID_FILE": "pid", "RABBITMQ_CONF_ENV_FILE": "/dev/null", "RABBITMQ_ENABLED_PLUGINS_FILE": "plugins", "HOME": str(self.folder)}

    def answers(self):
        try:
            worker.pika.BlockingConnection(worker.pika.ConnectionParameters("127.0.0.1", self.port, socket_timeout=5)).close()
            return True
        except worker.BREAKS:
            return False

    def fill(self):
        connection = worker.pika.BlockingConnection(worker.pika.ConnectionParameters("127.0.0.1", self.port, heartbeat=0))
        channel = connection.channel()
        channel.queue_declare(worker.QUEUE, durable=True, arguments={"x-queue-type": self.queue_type})
        for key, number in self.workload.in_turns():
            channel.basic_publish("", worker.QUEUE, worker.make_body(key, number), worker.pika.BasicProperties(delivery_mode=2))
        while channel.queue_declare(worker.QUEUE, passive=True).method.message_count < self.workload.messages:
            connection.process_data_events(time_limit=0.05)
        connection.close()


class RabbitClassic(Rabbit):
    name, queue_type = "rabbitmq-classic", "classic"
    charges = "its flag `redelivered`"


class RabbitQuorum(Rabbit):
    name, queue_type = "rabbitmq-quorum", "quorum"
    charges = "x-delivery-count"


class Redis(System):
    name, program_name, worker_kind = "redis", "redis-server", "redis"
    charges = "the delivery count of XPENDING"

    def words(self):
        return [program("redis-server"), "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "always"]

    def fill(self):
        client = worker.Redis(self.port, "fill", 0, 0)
        client.connect()
        client.ask("XGROUP", "CREATE", worker.QUEUE, worker.GROUP, "0", "MKSTREAM")
        for key, number in self.workload.in_turns():
            client.ask("XADD", worker.QUEUE, "*", "b", worker.make_body(key, number))

    def answers(self):
        try:
            client = worker.Redis(self.port, "look", 0, 0)
            client.connect()
            return client.ask("PING") == b"PONG"
        except OSError:
            return False


class Beanstalkd(System):
    name, program_name, worker_kind = "beanstalkd", "beanstalkd", "beanstalkd"
    charges = "`reserves` of stats-job"

    def words(self):
        (self.folder / "log").mkdir(exist_ok=True)
        return [program("beanstalkd"), "-l", "127.0.0.1", "-p", self.port, "-b", self.folder / "log"]

    def fill(self):
        line = worker.Line(self.port)
        line.send(f"use {worker.QUEUE}\r\n".encode())
        line.line()
        for key, number in self.workload.in_turns():
            body = worker.make_body(key, number)
            line.send(f"put 0 0 {max(1, self.workload.lease_ms // 1000)} {len(body)}\r\n".encode() + body + b"\r\n")
            line.line()


SYSTEMS = (Sluice, RabbitClassic, RabbitQuorum, Redis, Beanstalkd)
