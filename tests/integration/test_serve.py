#!/usr/bin/env python3
"""Runs `sluice serve` as a user and an orchestrator would: start, ready, pages, signals, end.

Nothing sleeps: a test waits for a line of the log, for an answer, or for the end of the process. Calls are made with curl, so that
what is tested here does not depend on a client of our own."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest
import uuid

from client_case import StuckPipe, free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", ROOT / "build"))
SLUICE = BUILD / "sluice"
OK, FAILED, USAGE, DAMAGE = 0, 1, 2, 3
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
WAIT_S = 60         # for what comes at once, on a machine that has other things to do
UNIMPLEMENTED, UNAVAILABLE = 12, 14


class Server:
    """A running `sluice serve`. Its log is read line by line while it runs."""

    def __init__(self, *words, environment=None, setup=None, program=SLUICE):
        self.process = subprocess.Popen([program, "serve", *map(str, words)], env={**CLEAN, **(environment or {})},
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=setup)
        self.log, self.out = [], []
        self.changed = threading.Condition()
        self.readers = [threading.Thread(target=self.read, args=(stream, kept), daemon=True)
                        for stream, kept in ((self.process.stdout, self.out), (self.process.stderr, self.log))]
        for reader in self.readers:
            reader.start()

    def read(self, stream, kept):
        for line in stream:
            with self.changed:
                kept.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, pattern, lines=None):
        """The first line of the log that the pattern is found in, as soon as it is there."""
        lines = self.log if lines is None else lines

        def found():
            return [line for line in lines if re.search(pattern, line)]
        with self.changed:
            self.changed.wait_for(lambda: found() or not any(reader.is_alive() for reader in self.readers), WAIT_S)
            if not found():
                raise AssertionError(f"no line with {pattern!r} in {self.out} {self.log}")
            return found()[0]

    def ready(self):
        """Waits for it; sets both addresses."""
        line = self.wait_for("ready", self.out)
        self.grpc, self.admin = re.fullmatch(r"ready grpc=(\S+) admin=(\S+)", line).groups()
        return self

    def tell(self, number):
        self.process.send_signal(number)

    def wait(self):
        """The exit code; everything is read then."""
        code = self.process.wait(timeout=WAIT_S)
        for reader in self.readers:
            reader.join(timeout=WAIT_S)
        return code

    def end(self, number=signal.SIGTERM):
        self.tell(number)
        return self.wait()

    def get(self, path, method="GET", host=None, body=None):
        """Status, headers and text of an admin page."""
        connection = http.client.HTTPConnection(self.admin, timeout=WAIT_S)
        connection.request(method, path, body=body, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text

    def page(self, path):
        return json.loads(self.get(path)[2])

    def metric(self, name):
        return int(re.search(rf"^{name} (\d+)$", self.get("/metrics")[2], re.M)[1])


# --- calls -------------------------------------------------------------------------------------------------------

def field(number, content):
    """A protobuf field of bytes; everything needed here is short."""
    content = content.encode() if isinstance(content, str) else content
    assert len(content) < 128 and number < 16
    return bytes([number << 3 | 2, len(content)]) + content


def append_messages(stream, data):
    options = field(1, field(1, field(3, stream)) + field(4, b""))
    metadata = b"".join(field(2, field(1, key) + field(2, value))
                        for key, value in (("type", "t"), ("content-type", "application/json")))
    event = field(1, field(2, str(uuid.uuid4()))) + metadata + field(4, data)
    return [options, field(2, event)]


def subscribe_messages():
    return [field(1, field(2, field(2, b"")) + field(6, b"") + field(8, b"") + field(9, field(2, b"")))]


def frames(messages):
    return b"".join(b"\0" + len(message).to_bytes(4, "big") + message for message in messages)


def curl_words(address, method, *more):
    return ["curl", "-sS", "-N", "-D", "-", "-o", "-", "--http2-prior-knowledge", "-X", "POST", "--data-binary", "@-",
            "-H", "content-type: application/grpc", "-H", "te: trailers", *more, f"http://{address}/{method}"]


STREAMS = "event_store.client.streams.Streams"


def call(address, method, messages):
    """Status and text of a call."""
    answer = subprocess.run(curl_words(address, method), input=frames(messages), capture_output=True, timeout=WAIT_S)
    return status_of(answer.stdout)


def status_of(output):
    status = re.search(rb"grpc-status: (\d+)", output)
    text = re.search(rb"grpc-message: ([^\r\n]*)", output)
    return int(status[1]) if status else None, text[1].decode() if text else ""


@contextlib.contextmanager
def silent_client(address):
    """Speaks HTTP/2 as far as the greeting, then says and hears nothing more."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        connection.recv(9)      # its settings: the greeting was taken
        yield connection


def make_certificate(folder, name):
    """Both files: NAME.pem and NAME.key."""
    files = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0],
                    "-keyout", files[1]], check=True, capture_output=True)
    return files


def sluice(*words, environment=None, **options):
    return subprocess.run([SLUICE, *map(str, words)], env={**CLEAN, **(environment or {})}, capture_output=True, text=True,
                          timeout=WAIT_S, **options)


class Serve(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="sluice-serve-"))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.folder = self.top / "data"

    def start(self, *words, **options):
        server = Server("--data", self.folder, "--port", 0, "--admin-port", 0, *words, **options)
        self.addCleanup(self.stop, server)
        return server

    @staticmethod
    def stop(server):
        if server.process.poll() is None:
            server.process.kill()
        server.wait()
        for stream in (server.process.stdout, server.process.stderr):
            stream.close()

    def running(self, *words, **options):
        return self.start(*words, **options).ready()

    def refused(self, *words, **options):
        """A start that fails: what it said on the error output besides the log."""
        server = self.start(*words, **options)
        self.assertEqual(server.wait(), FAILED, server.log)
        self.assertEqual(server.out, [])
        return "\n".join(line for line in server.log if line.startswith("sluice: ")), server

    def last_line(self, server):
        line = json.loads(server.log[-1])
        self.assertEqual(line["message"], "server stopped")
        return line


class Start(Serve):
    def test_one_ready_line_with_both_addresses(self):
        server = self.running()
        self.assertNotEqual(server.grpc, server.admin)
        for address in (server.grpc, server.admin):
            self.assertRegex(address, r"^127\.0\.0\.1:[1-9]\d*$")
        self.assertEqual(call(server.grpc, f"{STREAMS}/Nothing", [])[0], UNIMPLEMENTED)
        self.assertEqual(server.end(), OK)
        self.assertEqual(len(server.out), 1)

    def test_the_ready_line_as_json(self):
        server = self.start("--json")
        answer = json.loads(server.wait_for("ready", server.out))
        self.assertEqual(sorted(answer), ["admin", "grpc", "ready"])
        self.assertIs(answer["ready"], True)
        self.assertEqual(server.end(), OK)

    def test_ports_that_were_chosen_are_taken(self):
        ports = free_port(), free_port()
        server = Server("--data", self.folder, environment={"SLUICE_PORT": str(ports[0]), "SLUICE_ADMIN_PORT": str(ports[1])})
        self.addCleanup(self.stop, server)
        server.ready()
        self.assertEqual((server.grpc, server.admin), tuple(f"127.0.0.1:{port}" for port in ports))

    def test_what_is_written_is_there_after_a_restart(self):
        server = self.running()
        self.assertEqual(call(server.grpc, f"{STREAMS}/Append", append_messages("orders", "{}"))[0], OK)
        end = server.page("/v1/info")["store"]["end_position"]
        self.assertGreater(end, 1)
        self.assertEqual(server.end(), OK)
        self.assertGreaterEqual(self.running().page("/v1/info")["store"]["end_position"], end)

    def test_a_second_server_on_the_same_folder_is_refused(self):
        first = self.running()
        sentence, second = self.refused()
        self.assertIn(f"The data folder {self.folder} cannot be used", sentence)
        self.assertIn(str(first.process.pid), sentence)
        self.assertIn("start failed", self.last_reason(second))
        self.assertEqual(first.get("/readyz")[0], 200)

    def test_a_second_server_with_the_same_ports_is_told_of_the_first(self):
        first = self.running()
        second = Server("--data", self.folder, "--port", first.grpc.split(":")[1], "--admin-port", first.admin.split(":")[1])
        self.addCleanup(self.stop, second)
        self.assertEqual(second.wait(), FAILED)
        self.assertIn(f"A server runs on the data folder {self.folder} already: process {first.process.pid}", second.log[-1])
        self.assertNotIn("choose another port", second.log[-1])

    def test_a_start_that_failed_is_told_in_whole_words_and_ends_nothing(self):
        long_name = self.top / ("x" * 200)
        long_name.write_text("")
        self.folder = long_name / "data"
        sentence, server = self.refused()
        lines = [json.loads(line) for line in server.log if line.startswith("{")]
        self.assertEqual([line["message"] for line in lines if line["message"] == "shutdown phase ended"], [])
        for line in lines:
            if line["message"] in ("shutting down", "server stopped"):
                self.assertEqual(line["reason"], "start failed: " + sentence.removeprefix("sluice: ").removesuffix("."))

    def test_a_folder_with_other_files_is_refused_and_stays_as_it_is(self):
        for name in ("letter.txt", "lock"):
            self.folder = self.top / f"with-{name}"
            self.folder.mkdir()
            (self.folder / name).write_text("not ours\n")
            sentence, _ = self.refused()
            self.assertIn(f'"{name}"', sentence)
            self.assertEqual([path.name for path in self.folder.iterdir()], [name])
            self.assertEqual((self.folder / name).read_text(), "not ours\n")
        left_by_a_crash = [("lock", ""), ("lock", "47"), ("lock", "\0\0\0")]
        for name, text in [("lost+found", None), (".hidden", ""), ("lock", "4711\n"), *left_by_a_crash]:
            self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.top))
            (self.folder / name).mkdir() if text is None else (self.folder / name).write_text(text)
            self.assertEqual(self.running().end(), OK)

    def last_reason(self, server):
        return json.loads([line for line in server.log if line.startswith("{")][-1])["reason"]

    def test_a_port_that_is_taken_is_named_with_the_option(self):
        first = self.running()
        for option, address in (("--port", first.grpc), ("--admin-port", first.admin)):
            words = {"--port": 0, "--admin-port": 0, option: address.split(":")[1]}
            server = Server("--data", self.top / "other", *[word for pair in words.items() for word in pair])
            self.addCleanup(self.stop, server)
            self.assertEqual(server.wait(), FAILED)
            self.assertIn(f"choose another port with {option}", server.log[-1])
            self.assertIn(address.split(":")[1], server.log[-1])

    def test_a_certificate_that_cannot_be_used_is_told_before_the_store_is_opened(self):
        one, other = make_certificate(self.top, "one"), make_certificate(self.top, "other")
        for certificate, key in ((self.top / "missing", one[1]), (one[1], one[1]), (one[0], other[1])):
            sentence, server = self.refused("--tls-certificate", certificate, "--tls-key", key)
            self.assertIn("The certificate for TLS cannot be used", sentence)
            self.assertIn("Nothing was started", sentence)
        self.assertFalse(self.folder.exists())

    def test_an_address_that_others_can_reach_needs_tls_and_users(self):
        sentence, _ = self.refused("--host", "0.0.0.0")
        self.assertIn("--tls-certificate", sentence)
        certificate, key = make_certificate(self.top, "one")
        sentence, _ = self.refused("--host", "0.0.0.0", "--tls-certificate", certificate, "--tls-key", key)
        self.assertIn("no users exist", sentence)
        self.assertIn(f"sluice user add NAME --admin --data {self.folder}", sentence)
        sentence, _ = self.refused("--admin-host", "0.0.0.0")
        self.assertIn("admin pages ask nobody for a password", sentence)

    def test_with_a_user_and_tls_other_machines_are_let_in(self):
        certificate, key = make_certificate(self.top, "one")
        added = sluice("user", "add", "anna", "--admin", "--data", self.folder, input="a password of hers\n")
        self.assertEqual(added.returncode, OK, added.stderr)
        server = self.running("--host", "0.0.0.0", "--tls-certificate", certificate, "--tls-key", key)
        self.assertEqual(json.loads(server.wait_for("only users can read and write"))["users"], 1)
        self.assertEqual(server.page("/v1/info")["users"], 1)

    def test_the_command_that_the_log_names_closes_the_server(self):
        server = self.running()
        command = json.loads(server.wait_for("No users exist"))["close_it_with"].split()
        self.assertEqual(command[:4], ["sluice", "user", "add", "NAME"])
        added = sluice("user", "add", "anna", *command[4:], input="a password of hers\n")
        self.assertEqual(added.returncode, OK, added.stderr)
        words = "append", "orders", "--type", "t", "--data", "{}", "--server", server.grpc
        self.assertEqual(sluice(*words).returncode, FAILED)
        self.assertEqual(sluice(*words, "--user", "anna", environment={"SLUICE_PASSWORD": "a password of hers"}).returncode, OK)
        self.assertEqual(server.page("/v1/info")["users"], 1)

    def test_insecure_is_warned_about_at_each_start(self):
        for _ in range(2):
            server = self.running("--insecure", "--host", "0.0.0.0")
            self.assertRegex(server.grpc, r"^127\.0\.0\.1:")
            self.assertEqual(server.end(), OK)
            self.assertTrue([line for line in map(json.loads, server.log)
                             if line["level"] == "warn" and "--insecure: nobody is asked" in line["message"]])

    def test_the_log_says_what_is_open_and_how_to_close_it(self):
        server = self.running()
        line = json.loads(server.wait_for("No users exist"))
        self.assertEqual((line["level"], line["message"]),
                         ("warn", "No users exist: everybody on this machine can do everything"))
        self.assertEqual(line["close_it_with"], f"sluice user add NAME --admin --server {server.grpc}")

    def test_a_folder_that_cannot_be_made_is_named(self):
        (self.top / "file").write_text("")
        self.folder = self.top / "file" / "data"
        sentence, _ = self.refused()
        self.assertIn(f"{self.folder} can not be opened or made: Not a directory", sentence)
        self.folder = self.top / "missing" / "data"
        sentence, _ = self.refused()
        self.assertIn("No such file or directory. The folder above it does not exist: make that first", sentence)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_that_may_not_be_made_is_told_with_the_reason(self):
        (self.top / "closed").mkdir(mode=0o500)
        self.folder = self.top / "closed" / "data"
        sentence, _ = self.refused()
        self.assertIn("Permission denied. This user may not do that", sentence)

    def test_a_grace_that_is_too_short_is_refused_with_the_bounds(self):
        server = self.start("--grace", "200ms")
        self.assertEqual(server.wait(), USAGE)
        self.assertIn("--grace must be 500ms to", server.log[-1])


class Log(Serve):
    def test_every_line_is_json_when_it_goes_to_a_file(self):
        server = self.running()
        self.assertEqual(server.end(), OK)
        lines = list(map(json.loads, server.log))
        for line in lines:
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertIn(line["level"], ("debug", "info", "warn", "error"))
        messages = [line["message"] for line in lines]
        for message in ("sluice starts", "store opened", "ready", "signal", "shutting down", "server stopped"):
            self.assertIn(message, messages)
        self.assertEqual(messages[-1], "server stopped")

    def test_text_for_people_when_it_is_asked_for(self):
        server = self.running("--log-format", "text")
        self.assertEqual(server.end(), OK)
        self.assertRegex(server.log[0], r"^\S+Z INFO  sluice starts version=")

    def test_the_budget_is_logged_with_its_parts_S3_32(self):
        server = self.running("--grace", "20s")
        parts = json.loads(server.wait_for("will spend its grace"))["parts"]
        self.assertIn("grace 20s = fence", parts)

    def test_the_document_shows_the_budget_that_the_server_has(self):
        text = (ROOT / "docs" / "DRAIN.md").read_text(encoding="utf-8")
        words = re.search(r"^    sluice (budget --grace 10s --fence .*)$", text, re.M)[1].split()
        parts = json.loads(sluice(*words, "--json").stdout)["parts"]
        server = self.running("--grace", "10s")
        said = json.loads(server.wait_for("a shutdown will spend its grace"))["parts"]
        for name, length in re.findall(r"(\w+) ([\d.]+m?s)", said.split("=")[1]):
            nanoseconds = float(length.rstrip("ms")) * (1e6 if length.endswith("ms") else 1e9)
            self.assertEqual(parts[f"{name}_ns"], nanoseconds, said)

    def test_strangers_are_told_of_in_one_line_with_a_count(self):
        server = self.running()
        for _ in range(5):
            with socket.create_connection(server.grpc.split(":"), timeout=WAIT_S) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                self.assertTrue(stranger.recv(1000).startswith(b"HTTP/1.1 400"))
        self.assertEqual(server.end(), OK)
        told = [line for line in map(json.loads, server.log) if line.get("cause") == "NOT_HTTP2"]
        self.assertEqual(sum(line["times"] for line in told), 5)
        self.assertLessEqual(len(told), 2)


class Admin(Serve):
    def test_health_and_readiness(self):
        server = self.running()
        for path, wanted in (("/livez", {"alive": True}), ("/readyz", {"ready": True})):
            status, headers, text = server.get(path)
            self.assertEqual((status, headers["Content-Type"], json.loads(text)), (200, "application/json", wanted))

    def test_info_tells_all_but_secrets(self):
        certificate, key = make_certificate(self.top, "one")
        server = self.running("--tls-certificate", certificate, "--tls-key", key)
        info = server.page("/v1/info")
        self.assertEqual(info["addresses"], {"grpc": server.grpc, "admin": server.admin})
        self.assertEqual((info["ready"], info["shutting_down"], info["tls"], info["users"]), (True, None, True, 0))
        self.assertEqual(info["settings"]["data"], str(self.folder))
        self.assertEqual((info["open_calls"], info["open_connections"], info["open_subscriptions"]), (0, 0, 0))
        self.assertEqual(info["settings"]["grace_seconds"], 10)
        self.assertEqual(str(uuid.UUID(info["instance"])), info["instance"])
        self.assertGreaterEqual(info["uptime_seconds"], 0)
        self.assertNotIn("tls_key", info["settings"])
        self.assertNotIn(str(key), json.dumps(info))

    def test_metrics_are_those_of_the_document(self):
        server = self.running()
        call(server.grpc, f"{STREAMS}/Append", append_messages("orders", "{}"))
        status, headers, text = server.get("/metrics")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        documented = re.findall(r"^\| `(\w+)` \| (\w+) \|", (ROOT / "docs/METRICS.md").read_text(), re.M)
        documented = [row for row in documented if not row[0].startswith("sluice_worker_")]
        self.assertEqual(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M), documented)
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"\\]*"\})? \d+(\.\d+)?)$')
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        self.assertEqual(values["sluice_appended_events_total"], "1")
        self.assertEqual(values['sluice_ended_calls_total{status="OK"}'], "1")
        self.assertEqual((values["sluice_ready"], values["sluice_open_calls"]), ("1", "0"))
        self.assertGreater(int(values["sluice_received_bytes_total"]), 0)

    def test_what_is_not_there_or_not_allowed(self):
        server = self.running()
        status, _, text = server.get("/")
        self.assertEqual(status, 404)
        for path in ("/livez", "/readyz", "/metrics", "/v1/info"):
            self.assertIn(path, json.loads(text)["error"])
        for method, body in (("POST", "x" * 100_000), ("DELETE", None), ("PUT", "")):
            status, headers, text = server.get("/livez", method, body=body)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
            self.assertIn("error", json.loads(text))
        status, headers, text = server.get("/metrics", "HEAD")
        self.assertEqual((status, text), (200, ""))
        self.assertGreater(int(headers["Content-Length"]), 1000)

    def test_a_page_that_was_asked_for_under_a_foreign_name_is_refused(self):
        server = self.running()
        port = server.admin.split(":")[1]
        for host in ("attacker.example", f"attacker.example:{port}", "127.0.0.1.attacker.example"):
            self.assertEqual(server.get("/v1/info", host=host)[0], 421)
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", "[::1]"):
            self.assertEqual(server.get("/v1/info", host=host)[0], 200)

    def test_connections_may_be_kept_and_are_limited(self):
        server = self.running()
        kept = http.client.HTTPConnection(server.admin, timeout=WAIT_S)
        for _ in range(3):
            kept.request("GET", "/livez")
            self.assertEqual(kept.getresponse().read(), b'{"alive":true}\n')
            own = kept.sock
            self.assertIsNotNone(own)       # http.client forgets it when the server closes
        with contextlib.ExitStack() as stack:
            crowd = [stack.enter_context(socket.create_connection(server.admin.split(":"), timeout=WAIT_S))
                     for _ in range(200)]
            self.assertIn(b"", [self.end_of(one) for one in crowd[-20:]])    # those beyond the limit are closed
            kept.request("GET", "/livez")
            self.assertEqual(kept.getresponse().status, 200)
        kept.close()

    @staticmethod
    def end_of(connection):
        with contextlib.suppress(ConnectionError):
            return connection.recv(1)
        return b""

    def test_headers_without_end_are_refused(self):
        server = self.running()
        with socket.create_connection(server.admin.split(":"), timeout=WAIT_S) as connection:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n")
            with contextlib.suppress(ConnectionError):
                for number in range(10_000):
                    connection.sendall(b"X-%d: %s\r\n" % (number, b"y" * 90))
            answer = self.end_of(connection)
            self.assertIn(answer, (b"", b"H"))
        self.assertEqual(server.get("/livez")[0], 200)


class End(Serve):
    def test_a_signal_ends_it_with_its_name_and_counts_S3_27(self):
        for number, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")):
            server = self.running()
            self.assertEqual(server.end(number), OK)
            line = self.last_line(server)
            self.assertEqual((line["reason"], line["forced"]), (name, False))
            self.assertEqual((line["batches_finished"], line["batches_left"], line["calls_cut"]), (0, 0, 0))
            self.assertIn("uptime", line)

    def test_a_signal_while_it_starts_ends_it_too(self):
        server = self.start()
        server.wait_for("sluice starts")
        self.assertEqual(server.end(), OK)
        self.assertEqual(self.last_line(server)["reason"], "SIGTERM")

    def test_subscriptions_are_told_why_they_end(self):
        server = self.running()
        with subprocess.Popen(curl_words(server.grpc, f"{STREAMS}/Read"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as client:
            client.stdin.write(frames(subscribe_messages()))
            client.stdin.close()
            seen = [b"x"]
            while seen[-1] and b"".join(seen).count(b"\0\0\0\0") < 2:     # confirmation, caught up
                seen.append(os.read(client.stdout.fileno(), 4096))
            self.assertEqual(server.end(), OK)
            status, text = status_of(client.stdout.read())
        self.assertEqual(status, UNAVAILABLE)
        self.assertIn("SIGTERM", text)
        self.assertEqual(self.last_line(server)["calls_cut"], 0)

    def test_readiness_goes_first_and_liveness_last_S3_40(self):
        server = self.running("--grace", "30s")
        with silent_client(server.grpc):
            server.tell(signal.SIGTERM)
            server.wait_for("phase.:.flushing")
            status, _, text = server.get("/readyz")
            self.assertEqual(status, 503)
            self.assertEqual(json.loads(text), {"ready": False, "why": "The server is shutting down: SIGTERM"})
            self.assertEqual(server.get("/livez")[0], 200)
            self.assertEqual(server.page("/v1/info")["shutting_down"], "SIGTERM")
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(server.grpc.split(":"), timeout=WAIT_S)
        self.assertEqual(server.wait(), OK)
        self.assertIs(self.last_line(server)["forced"], False)

    def test_a_client_that_does_not_hear_cannot_hold_up_the_end_S3_24(self):
        server = self.running("--grace", "1s")
        with silent_client(server.grpc):
            self.assertEqual(server.end(), OK)
        closing = [line for line in map(json.loads, server.log) if line.get("phase") == "closing"]
        self.assertEqual((closing[0]["end"], closing[0]["left"]), ("timed out", 1))

    def test_a_connection_without_calls_is_closed_after_its_time(self):
        server = self.running("--idle-timeout", "200ms")
        with silent_client(server.grpc) as client:
            while client.recv(1000):
                pass        # GOAWAY, then the end
        self.assertEqual(server.end(), OK)

    def test_a_second_signal_ends_all_waiting(self):
        server = self.running("--grace", "1h")
        with silent_client(server.grpc):
            server.tell(signal.SIGTERM)
            server.wait_for("phase.:.flushing")
            server.tell(signal.SIGINT)
            self.assertEqual(server.wait(), OK)
        messages = [json.loads(line)["message"] for line in server.log]
        self.assertEqual(len([message for message in messages if message.startswith("second signal")]), 1)
        line = self.last_line(server)
        self.assertEqual((line["reason"], line["forced"]), ("SIGTERM", True))

    def test_under_load_exactly_what_was_confirmed_is_there_S3_13(self):
        server = self.running()
        writers = [subprocess.Popen([SLUICE, "append", f"load-{number}", "--type", "t", "--lines", "-", "--expect", "none",
                                     "--server", server.grpc],   # a chain: many batches are on their way
                                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                   for number in range(3)]
        feeders = [threading.Thread(target=self.feed, args=(writer.stdin,)) for writer in writers]
        for feeder in feeders:
            feeder.start()
        while server.metric("sluice_appended_events_total") < 5000 or server.metric("sluice_open_calls") < len(writers):
            self.assertIsNone(server.process.poll())
        self.assertEqual(server.end(), OK)
        self.assertIs(self.last_line(server)["forced"], False)
        self.assertEqual({line["end"] for line in map(json.loads, server.log) if "phase" in line}, {"done"})
        confirmed = []
        for feeder, writer in zip(feeders, writers):
            said = writer.stderr.read().decode()
            writer.stderr.close()
            self.assertEqual(writer.wait(timeout=WAIT_S), FAILED)
            feeder.join()
            self.assertIn("shutting down: SIGTERM", said)
            confirmed.append(int(re.search(r"Confirmed: (\d+) events", said)[1]))
        server = self.running()
        there = [json.loads(sluice("stream", "info", f"load-{number}", "--json", "--server", server.grpc).stdout)
                 for number in range(3)]
        self.assertEqual([stream["last_revision"] + 1 for stream in there], confirmed)

    @staticmethod
    def feed(pipe):
        """Lines until the other end has had enough."""
        with contextlib.suppress(BrokenPipeError):
            with pipe:
                while True:
                    pipe.write(b"{}\n" * 1000)

    def test_a_store_that_fails_ends_the_server_with_a_sentence(self):
        server = self.running()
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, 4096))    # the next write is refused
        status, _ = call(server.grpc, f"{STREAMS}/Append", append_messages("orders", "{}"))
        self.assertEqual(status, UNAVAILABLE)
        self.assertEqual(server.wait(), FAILED)
        self.assertIn("the store failed", server.log[-1])
        self.assertIn("start the server again", server.log[-1])
        self.assertEqual(self.running().get("/readyz")[0], 200)      # what is there is good

    def test_a_log_that_nobody_reads_any_more_does_not_end_the_server(self):
        read_end, write_end = os.pipe()
        process = subprocess.Popen([SLUICE, "serve", "--data", self.folder, "--port", "0", "--admin-port", "0"],
                                   env=CLEAN, stdout=subprocess.PIPE, stderr=write_end, text=True)
        os.close(write_end)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        address = re.match(r"ready grpc=(\S+)", process.stdout.readline())[1]
        os.close(read_end)
        process.send_signal(signal.SIGHUP)      # makes it write a line
        self.assertEqual(call(address, f"{STREAMS}/Append", append_messages("orders", "{}"))[0], OK)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=WAIT_S), OK)

    def test_a_log_whose_reader_stands_still_does_not_stop_the_server(self):
        pipe = StuckPipe(self)
        pipe.fill()
        process = subprocess.Popen([SLUICE, "serve", "--data", self.folder, "--port", "0", "--admin-port", "0"],
                                   env=CLEAN, stdout=subprocess.PIPE, stderr=pipe.writer, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        patience = threading.Timer(WAIT_S, process.kill)
        patience.start()
        self.addCleanup(patience.cancel)
        found = re.match(r"ready grpc=(\S+) admin=(\S+)", process.stdout.readline())
        self.assertIsNotNone(found, "not ready")
        self.assertEqual(call(found[1], f"{STREAMS}/Append", append_messages("orders", "{}"))[0], OK)
        self.assertEqual(sluice("read", "orders", "--server", found[1]).returncode, OK)
        self.assertEqual(pipe.take(), [])
        process.send_signal(signal.SIGHUP)      # makes it write a line
        note, line = map(json.loads, pipe.take_until("SIGHUP"))
        self.assertEqual((note["level"], note["message"]), ("warn", "lines were left out: nobody read the log"))
        self.assertGreater(note["count"], 5)    # those of the start
        self.assertIn("SIGHUP", line["message"])
        pipe.fill()
        connection = http.client.HTTPConnection(found[2], timeout=WAIT_S)
        connection.request("GET", "/livez")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=WAIT_S), OK)

    def test_a_start_that_fails_is_told_to_nobody_when_nobody_reads(self):
        pipe = StuckPipe(self)
        pipe.fill()
        process = subprocess.Popen([SLUICE, "serve", "--data", "/dev/null/data", "--port", "0", "--admin-port", "0"],
                                   env=CLEAN, stdout=subprocess.DEVNULL, stderr=pipe.writer)
        self.addCleanup(process.kill)
        self.assertEqual(process.wait(timeout=WAIT_S), FAILED)
        self.assertEqual(pipe.take(), [])


class Tls(Serve):
    def test_the_certificate_of_the_document_is_no_authority(self):
        text = (ROOT / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
        command = re.search(r"^    (openssl req .*?)#", text, re.M | re.S)[1].replace("\\\n", " ")
        subprocess.run(command.split(), cwd=self.top, check=True, capture_output=True)
        shown = subprocess.run(["openssl", "x509", "-in", self.top / "server.pem", "-noout", "-ext", "basicConstraints"], check=True,
                               capture_output=True, text=True).stdout
        self.assertIn("critical", shown)
        self.assertIn("CA:FALSE", shown)
        self.running("--tls-certificate", self.top / "server.pem", "--tls-key", self.top / "server.key")

    def shown(self, server):
        return ssl.get_server_certificate(server.grpc.split(":"), timeout=WAIT_S).strip()

    def test_sighup_shows_the_new_certificate_and_keeps_the_old_one_when_it_is_bad(self):
        certificate, key = make_certificate(self.top, "served")
        first = certificate.read_text().strip()
        server = self.running("--tls-certificate", certificate, "--tls-key", key)
        self.assertEqual(self.shown(server), first)
        second = make_certificate(self.top, "second")
        shutil.copy(second[1], key)
        shutil.copy(second[0], certificate)
        self.assertEqual(self.shown(server), first)     # nobody has asked for it
        server.tell(signal.SIGHUP)
        server.wait_for("SIGHUP: new connections get the certificate as it is now")
        self.assertEqual(self.shown(server), second[0].read_text().strip())
        certificate.write_text("no certificate")
        server.tell(signal.SIGHUP)
        self.assertEqual(json.loads(server.wait_for("SIGHUP: the certificate stays as it was"))["level"], "error")
        self.assertEqual(self.shown(server), second[0].read_text().strip())
        self.assertEqual(server.end(), OK)      # SIGHUP was no first signal

    def test_sighup_without_tls_is_said_to_do_nothing(self):
        server = self.running()
        server.tell(signal.SIGHUP)
        server.wait_for("SIGHUP: there is no certificate to read again")
        self.assertEqual(server.get("/readyz")[0], 200)

    def test_http2_is_agreed_on(self):
        certificate, key = make_certificate(self.top, "one")
        server = self.running("--tls-certificate", certificate, "--tls-key", key)
        context = ssl.create_default_context(cafile=certificate)
        context.set_alpn_protocols(["h2"])
        with socket.create_connection(server.grpc.split(":"), timeout=WAIT_S) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
                self.assertEqual(connection.selected_alpn_protocol(), "h2")


if __name__ == "__main__":
    unittest.main()
