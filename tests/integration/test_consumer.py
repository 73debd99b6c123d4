"""The C client of persistent subscriptions (sl_consumer_*), as a process against a real server, over connections that break."""
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import uuid

from client_case import BUILD, SLUICE, Case, Server, clean_environment, deaf_port, free_port

CONSUMER = BUILD / "tests/tools/consumer"
WAIT_S = 60


class Consumer:
    """A running consumer; its lines as they come."""

    def __init__(self, address, stream, group, *words):
        self.process = subprocess.Popen([CONSUMER, *map(str, words), address, stream, group], env=clean_environment(),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.is_over = False
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)  # a test that fails must not wait for it
        self.reader.start()

    def read(self):
        for text in self.process.stdout:
            with self.changed:
                self.lines.append(json.loads(text))
                self.changed.notify_all()
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    def say(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def all(self, what):
        with self.changed:
            return [line for line in self.lines if line["what"] == what]

    def wait(self, what, count=1):
        def found():
            return sum(line["what"] == what for line in self.lines) >= count
        with self.changed:
            self.changed.wait_for(lambda: found() or self.is_over, timeout=WAIT_S)
            if not found():
                raise AssertionError(f"never heard {count} times {what}: {self.lines[-5:]}")
        return self.all(what)[count - 1]

    def end(self, number=None):
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=WAIT_S)
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()
        return code


class Cutter:
    """Stands between consumer and server and cuts the nth connection after as many bytes as `plan` says: (to server, to client)."""

    def __init__(self, port, plan):
        self.port, self.plan, self.count = port, plan, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads = []
        self.accepter = threading.Thread(target=self.accept, daemon=True)
        self.accepter.start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            limits = list(self.plan(self.count))
            self.count += 1
            self.threads.append(threading.Thread(target=self.carry, args=(near, limits), daemon=True))
            self.threads[-1].start()

    def carry(self, near, limits):
        with near:
            try:
                far = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                return
            with far:
                pairs = {near: (far, 0), far: (near, 1)}
                while True:
                    for source in select.select(list(pairs), [], [])[0]:
                        target, index = pairs[source]
                        try:
                            data = source.recv(65536)[:limits[index]]
                            target.sendall(data)
                        except OSError:
                            return
                        limits[index] -= len(data)
                        if not data or limits[index] <= 0:
                            return

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.accepter.join()
        for thread in self.threads:
            thread.join()


class ConsumerCase(Case):
    def group(self, count, *words):
        lines = "".join(f'{{"n":{n}}}\n' for n in range(count))
        self.run_sluice("append", self.stream, "--type", "t", "--lines", "-", stdin=lines)
        self.run_sluice("group", "create", self.stream, "g", "--start", "start", *words)

    def consumer(self, *words, address=None):
        consumer = Consumer(address or self.server.grpc, self.stream, "g", *words)
        self.addCleanup(lambda: consumer.process.poll() is None and consumer.end(signal.SIGKILL))
        return consumer

    def expect_each_once(self, count, *consumers):
        done = sorted(line["revision"] for consumer in consumers for line in consumer.all("done"))
        self.assertEqual(done, list(range(count)))


class Delivery(ConsumerCase):
    def test_takes_everything_and_leaves_on_sigterm(self):
        self.group(200)
        consumer = self.consumer("--started", "--slots", 5, "--stop-on-term")
        consumer.wait("settled", 200)
        self.assertEqual(consumer.end(signal.SIGTERM), 0)
        self.expect_each_once(200, consumer)
        self.assertEqual([line["what"] for line in consumer.lines[-3:]], ["stopped", "drained", "ended"])
        self.assertEqual({line["outcome"] for line in consumer.all("settled")}, {"settled"})

    def test_a_stop_hands_back_what_was_not_begun_to_the_next_one(self):
        """S1.4, S1.19, S1.22, S1.23, S1.25"""
        self.group(30)
        first = self.consumer("--manual", "--window", 20)
        first.wait("event", 20)
        events = first.all("event")
        first.say("started", events[0]["id"])
        first.wait("begin")
        first.say("hand-back")
        stopped = first.wait("stopped")
        self.assertEqual(stopped["in_flight"], 1)
        first.wait("settled", 19)
        self.assertEqual({line["outcome"] for line in first.all("settled")}, {"released"})
        second = self.consumer("--started", "--window", 40)
        second.wait("done", 29)
        self.assertEqual([line["revision"] for line in second.all("done")], list(range(1, 30)))
        self.assertEqual({line["retry"] for line in second.all("event")}, {0})
        first.say("ack", events[0]["id"])
        self.assertEqual(first.wait("drained")["since_stop"], [1, 19, 0])
        first.say("leave")
        self.assertEqual(first.end(), 0)
        second.say("stop")
        self.assertEqual(second.end(), 0)
        self.expect_each_once(30, first, second)

    def test_an_operator_stops_it(self):
        self.group(10)
        name = f"c-{uuid.uuid4().hex[:8]}"
        consumer = self.consumer("--name", name, "--window", 4, "--manual")
        consumer.wait("event", 4)
        with subprocess.Popen([SLUICE, "consumer", "stop", name, "--wait", "30s"], stdout=subprocess.PIPE,
                              env=clean_environment(SLUICE_SERVER=self.server.grpc)) as command:
            consumer.wait("stop_requested")
            self.assertEqual(consumer.wait("stopped")["asked_by"], "operator")
            consumer.say("ack", "all")
            consumer.wait("drained")
            command.communicate(timeout=WAIT_S)
            self.assertEqual(command.returncode, 0)
        consumer.say("leave")
        self.assertEqual(consumer.end(), 0)
        self.assertEqual(len(consumer.all("event")), 4)

    def test_the_example_program_drains_on_sigterm(self):
        self.group(25)
        with subprocess.Popen([BUILD / "examples/example-consumer", self.server.grpc, self.stream, "g", "example"],
                              stdout=subprocess.PIPE, text=True, env=clean_environment()) as example:
            lines = [example.stdout.readline() for _ in range(26)]
            example.send_signal(signal.SIGTERM)
            rest = example.stdout.read()
            self.assertEqual(example.wait(timeout=WAIT_S), 0)
        self.assertTrue(lines[0].startswith("connected"))
        self.assertEqual(sum(line.startswith("got ") for line in lines), 25)
        self.assertIn("drained:", rest)
        self.assertIn("ended: left as it was asked to", rest)

    def test_refusals_end_it_with_a_sentence(self):
        consumer = Consumer(self.server.grpc, self.stream, "nobody")
        self.assertEqual(consumer.end(), 1)
        ended = consumer.all("ended")[0]
        self.assertEqual(ended["status"], "refused by the server")
        self.assertIn("does not exist", ended["why"])
        result = subprocess.run([CONSUMER, "sluice://[", "s", "g"], capture_output=True, text=True, timeout=WAIT_S)
        self.assertEqual(result.returncode, 2)

    def test_gives_up_when_it_is_told_to(self):
        with deaf_port() as port:
            consumer = Consumer(f"127.0.0.1:{port}", "s", "g", "--give-up-ms", 1000)
            self.assertEqual(consumer.end(), 1)
        self.assertEqual(consumer.all("ended")[0]["status"], "unreachable")
        self.assertGreater(len(consumer.all("disconnected")), 1)


class Breaks(ConsumerCase):
    def through(self, plan, count, *words):
        # Until its first Started has arrived a consumer is charged for everything it was sent, also for what it never got.
        self.group(count, "--max-retry-count", 1000)
        cutter = Cutter(self.server.port, plan)
        self.addCleanup(cutter.close)
        consumer = self.consumer(*words, "--name", "one", "--reconnect-ms", 30000, "--retry-ms-max", 10, address=cutter.address)
        consumer.wait("done", count)
        return cutter, consumer

    def finish(self, consumer, count):
        consumer.say("stop")
        self.assertEqual(consumer.end(), 0)
        self.expect_each_once(count, consumer)
        self.assertEqual([line for line in consumer.all("settled") if line["outcome"] == "lost" and line["was"] != "waiting"], [])

    def test_a_connection_that_is_cut_at_every_byte_to_the_consumer_repeats_nothing(self):
        cuts = range(60, 3000, 23)
        cutter, consumer = self.through(lambda n: (1 << 40, cuts[n] if n < len(cuts) else 1 << 40), 400, "--started",
                                        "--window", 8, "--work-ms", "0-2", "--slots", 4)
        self.assertGreater(cutter.count, 20)
        self.finish(consumer, 400)

    def test_a_connection_that_is_cut_at_every_byte_to_the_server_repeats_nothing(self):
        cuts = range(60, 2000, 17)
        cutter, consumer = self.through(lambda n: (cuts[n] if n < len(cuts) else 1 << 40, 1 << 40), 400,
                                        "--window", 8, "--work-ms", "0-2", "--slots", 4)
        self.assertGreater(cutter.count, 20)
        self.finish(consumer, 400)


class Restarts(unittest.TestCase):
    """The server goes and comes; the consumers stay."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = os.path.join(temporary.name, "data")
        self.port = free_port()
        self.server = Server(self.folder, port=self.port)
        self.addCleanup(lambda: self.server.end())
        environment = clean_environment(SLUICE_SERVER=self.server.grpc)
        lines = "".join(f'{{"n":{n}}}\n' for n in range(600))
        subprocess.run([SLUICE, "append", "s", "--type", "t", "--lines", "-"], input=lines, text=True, check=True, env=environment,
                       timeout=WAIT_S, stdout=subprocess.DEVNULL)
        subprocess.run([SLUICE, "group", "create", "s", "g", "--start", "start"], check=True, env=environment, timeout=WAIT_S,
                       stdout=subprocess.DEVNULL)

    def wait_done(self, count, consumers):
        """By all together: one that waits to connect again leaves the work to the others."""
        deadline = time.monotonic() + WAIT_S
        while sum(len(consumer.all("done")) for consumer in consumers) < count:
            self.assertLess(time.monotonic(), deadline, [consumer.lines[-3:] for consumer in consumers])
            with consumers[0].changed:
                consumers[0].changed.wait(timeout=0.1)

    def run_under(self, number, times):
        consumers = [Consumer(self.server.grpc, "s", "g", "--name", f"c{i}", "--started", "--slots", 2, "--work-ms", "5-20",
                              "--window", 10) for i in range(3)]
        for consumer in consumers:
            self.addCleanup(consumer.process.kill)
        for nth in range(times):
            self.wait_done(120 * (nth + 1), consumers)
            self.server.end(number)
            self.server = Server(self.folder, port=self.port)
        self.wait_done(600, consumers)
        for consumer in consumers:
            consumer.say("stop")
            self.assertEqual(consumer.end(), 0)
        done = sorted(line["revision"] for consumer in consumers for line in consumer.all("done"))
        self.assertEqual(done, list(range(600)))

    def test_a_server_that_is_stopped_and_started_repeats_nothing(self):
        self.run_under(signal.SIGTERM, 3)

    def test_a_server_that_is_killed_and_started_repeats_nothing(self):
        self.run_under(signal.SIGKILL, 3)


if __name__ == "__main__":
    unittest.main()
