#!/usr/bin/env python3
"""Groups and consumers over the admin port of a real server: lists, stop with a wait that ends in every way, users, browsers, the end of the server.

Nothing sleeps: a test waits for an answer or for the end of a process."""
import base64
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from client_case import SLUICE, Case, Server, clean_environment
from wire_consumer import DRAINED, STOP_REQUESTED, STOPPED, WAIT_S, Consumer


class AdminServer(Server):
    """With the address of its admin pages, which the line of the start has as well."""

    def __init__(self, folder, *words, port=0):
        super().__init__(folder, *words, port=port)
        with open(f"{folder}.log", encoding="utf-8") as log:
            self.admin = re.search(r'admin"?[=:]"?(127\.0\.0\.1:\d+)', log.read())[1]


def ask(server, path, method="GET", body=None, **headers):
    """Status and what the JSON says."""
    connection = http.client.HTTPConnection(server.admin, timeout=WAIT_S)
    connection.request(method, path, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, json.loads(text) if text.startswith("{") else text


class Asking(threading.Thread):
    """A question whose answer takes its time."""

    def __init__(self, *words, **more):
        super().__init__(daemon=True)
        self.words, self.more, self.answer = words, more, None
        self.start()

    def run(self):
        self.answer = ask(*self.words, **self.more)

    def result(self):
        self.join(timeout=WAIT_S)
        return self.answer


class AdminCase(Case):
    group = "billing"

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.server = AdminServer(os.path.join(cls.temporary.name, "data"), *cls.words)

    def setUp(self):
        super().setUp()
        self.name = f"pod-{self.stream[-8:]}"

    def holder(self, count=1):
        """A consumer that holds so many messages, and their ids."""
        self.out("group", "create", self.stream, self.group, "--start", "start")
        for _ in range(count):
            self.append()
        consumer = Consumer(self.server.grpc, self.stream, self.group, name=self.name, window=count, labels={"version": self.name})
        self.addCleanup(consumer.close)
        return consumer, [consumer.event() for _ in range(count)]

    def state(self):
        return ask(self.server, f"/v1/consumers/{self.name}")


class Pages(AdminCase):
    def test_a_consumer_is_stopped_waited_for_and_safe_B10_B17(self):
        consumer, ids = self.holder(2)
        self.assertFalse(self.state()[1]["safe_to_terminate"])
        asking = Asking(self.server, f"/v1/consumers/{self.name}/stop?wait=50s&reason=deploy%2043&deadline=9s", "POST")
        self.assertEqual(consumer.take(STOP_REQUESTED)[1], [b"deploy 43"])
        self.assertEqual(consumer.take(STOPPED)[1], [2])
        self.assertEqual(self.state()[1]["consumers"][0]["state"], "stopping")
        consumer.ack(*ids)
        consumer.take(DRAINED)
        status, said = asking.result()
        self.assertEqual((status, said["meant"], said["drained"], said["done"]), (200, 1, 1, True))
        self.assertTrue(self.state()[1]["safe_to_terminate"])
        status, said = ask(self.server, f"/v1/drains?name={self.name}")
        self.assertEqual([(row["outcome"], row["settled"], row["asked_by"]) for row in said["reports"]], [("drained", 2, "operator")])
        self.assertEqual(ask(self.server, f"/v1/consumers/{self.name}/resume", "POST")[0], 409)

    def test_504_with_the_state_when_the_wait_is_over_and_resume(self):
        consumer, ids = self.holder()
        status, said = ask(self.server, f"/v1/groups/{self.stream}/{self.group}/stop?wait=10ms", "POST")
        self.assertEqual((status, said["in_flight"], said["consumers"][0]["state"]), (504, 1, "stopping"))
        self.assertEqual(ask(self.server, f"/v1/groups/{self.stream}/{self.group}/resume", "POST"),
                         (200, {"resumed": 1, "too_late": 0, "rules": 1}))
        consumer.ack(*ids)
        self.append()
        consumer.event()

    def test_by_label_and_with_an_empty_body(self):
        consumer, ids = self.holder()
        asking = Asking(self.server, f"/v1/stop?label=version={self.name}&hand_back=true&wait=50s", "POST", body="")
        consumer.take(STOPPED)
        consumer.release(*ids)
        status, said = asking.result()
        self.assertEqual((status, said["done"]), (200, True))
        self.assertEqual(ask(self.server, f"/v1/resume?label=version={self.name}", "POST")[0], 409)

    def test_groups_and_metrics(self):
        self.holder()
        rows = {row["stream"]: row for row in ask(self.server, "/v1/groups")[1]["groups"]}
        self.assertEqual(rows[self.stream]["consumers"]["active"], 1)
        status, said = ask(self.server, f"/v1/groups/{self.stream}/{self.group}")
        self.assertEqual((status, said["in_flight"], said["consumers"][0]["name"]), (200, 1, self.name))
        self.assertEqual((said["stop_rules"], said["everyone_stopped"]), (0, False))
        ask(self.server, f"/v1/groups/{self.stream}/{self.group}/stop", "POST")
        status, said = ask(self.server, f"/v1/groups/{self.stream}/{self.group}")
        self.assertEqual((said["stop_rules"], said["everyone_stopped"]), (1, True))
        self.assertEqual(ask(self.server, f"/v1/groups/{self.stream}/none")[0], 404)
        self.assertIn(f'sluice_group_in_flight_messages{{stream="{self.stream}",group="billing"}} 1\n',
                      ask(self.server, "/metrics")[1])

    def test_a_client_that_does_not_wait_for_its_answer_does_no_harm(self):
        consumer, ids = self.holder()
        connection = http.client.HTTPConnection(self.server.admin, timeout=WAIT_S)
        connection.request("POST", f"/v1/consumers/{self.name}/stop?wait=50s")
        consumer.take(STOPPED)
        connection.close()
        consumer.ack(*ids)
        consumer.take(DRAINED)
        self.assertTrue(self.state()[1]["safe_to_terminate"])

    def test_many_that_wait_leave_room_for_the_others(self):
        consumer, _ = self.holder()
        address = self.server.admin.split(":")
        first_line = f"POST /v1/consumers/{self.name}/stop?wait=1h HTTP/1.1"
        waiting = []
        for _ in range(100):
            one = socket.create_connection((address[0], int(address[1])), timeout=WAIT_S)
            self.addCleanup(one.close)
            one.sendall(f"{first_line}\r\nHost: {self.server.admin}\r\nContent-Length: 0\r\n\r\n".encode())
            waiting.append(one)
        refused = 0
        while refused < 68:  # 32 may wait
            ready, _, _ = select.select(waiting, [], [], WAIT_S)
            self.assertTrue(ready, "nobody else is answered")
            for one in ready:
                if not one.recv(65536):  # answered, and closed by the server
                    refused += 1
                    waiting.remove(one)
        self.assertEqual(ask(self.server, "/livez")[0], 200)
        for one in waiting:
            one.close()

    def test_a_web_page_of_another_origin_stops_nobody(self):
        self.holder()
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
            self.assertEqual(ask(self.server, f"/v1/consumers/{self.name}/stop", "POST", **headers)[0], 403)
        self.assertEqual(ask(self.server, f"/v1/consumers/{self.name}/stop", "POST", body="a=b",
                             Origin="http://evil.example")[0], 403)
        self.assertEqual(self.state()[1]["consumers"][0]["state"], "active")


class Users(AdminCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([SLUICE, "user", "add", "boss", "--admin"], input=b"correct horse\n", check=True, capture_output=True,
                       env=clean_environment(SLUICE_SERVER=cls.server.grpc))

    def test_who_stops_must_be_an_operator_where_there_are_users(self):
        status, said = ask(self.server, "/v1/stop?label=version=42", "POST")
        self.assertEqual(status, 401)
        self.assertIn("Say who you are", said["error"])
        for password, wanted in (("wrong", 401), ("correct horse", 200)):
            credentials = base64.b64encode(f"boss:{password}".encode()).decode()
            status, said = ask(self.server, "/v1/stop?label=version=42", "POST", Authorization=f"Basic {credentials}")
            self.assertEqual(status, wanted)
            self.assertEqual(said.get("error"), None if wanted == 200 else "The server does not accept this user with this password.")

    def shut_out(self, user):
        """Wrong passwords until they are refused unseen for longer than a few commands take; each that is seen doubles that time."""
        refused = 0
        for _ in range(30):
            said = self.complaint("consumer", "list", SLUICE_USER=user, SLUICE_PASSWORD="wrong")
            refused = refused + 1 if "Too many failed log-ins" in said else 0
            if refused == 3:
                return
        self.fail(f"still looked at: {said}")

    def test_a_hook_waits_until_the_server_looks_at_its_password_again(self):
        self.run_sluice("user", "add", "hook", "--admin", stdin="correct horse\n", SLUICE_USER="boss", SLUICE_PASSWORD="correct horse")
        self.shut_out("hook")
        result = self.run_sluice("consumer", "stop", "nobody", "--wait", "50s", SLUICE_USER="hook", SLUICE_PASSWORD="correct horse")
        self.assertIn(b"trying again", result.stderr)


class End(AdminCase):
    def test_the_last_line_says_who_drained_and_what_is_left_B14_S3_27(self):
        folder = os.path.join(self.temporary.name, "end")
        server = AdminServer(folder, "--grace", "5s", "--log-format", "json")
        self.run_sluice("group", "create", self.stream, self.group, "--start", "start", server=server.grpc)
        for _ in range(3):
            self.append(server=server.grpc)
        one = Consumer(server.grpc, self.stream, self.group, name="one", window=1)
        two = Consumer(server.grpc, self.stream, self.group, name="two", window=2)
        self.addCleanup(one.close)
        self.addCleanup(two.close)
        held = one.event()
        two.event()
        two.event()
        asking = Asking(server, "/v1/consumers/two/stop?wait=1h", "POST")
        two.take(STOPPED)
        server.process.send_signal(signal.SIGTERM)
        one.take(STOP_REQUESTED)
        one.ack(held)
        one.take(DRAINED)
        self.assertEqual(asking.result()[0], 503)
        self.assertEqual(server.end(0), 0)  # no signal: a second one would cut it short, and any would disturb the search for leaks
        with open(f"{folder}.log", encoding="utf-8") as log:
            line = json.loads([line for line in log if line.startswith("{")][-1])
        self.assertEqual(line["message"], "server stopped")
        self.assertEqual((line["consumers_drained"], line["consumers_left"], line["messages_left_leased"]), (1, 1, 2))


if __name__ == "__main__":
    unittest.main()
