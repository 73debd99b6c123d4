#!/usr/bin/env python3
"""Runs commands against a real server as somebody in particular, at a terminal, with all kinds of addresses and with TLS.

Nothing sleeps: a test waits for a line, for an answer, or for the end of a process."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from client_case import FAILED, OK, SLUICE, USAGE, WAIT_S, Case, Server, clean_environment, deaf_port

PASSWORD = "correct horse"


class Users(Case):
    def sluice_as(self, user, *words, password=PASSWORD, **options):
        return self.run_sluice(*words, "--user", user, SLUICE_PASSWORD=password, **options)

    def test_from_the_first_user_to_the_last(self):
        self.assertIn("no users", self.out("user", "list"))
        self.assertEqual(self.json("user", "list"), [{"users": []}])
        self.assertIn("$admins", self.complaint("user", "add", "anna", stdin=PASSWORD))
        self.assertEqual(self.out("user", "add", "anna", "--admin", "--full-name", "Anna A.", stdin=PASSWORD + "\n"), 'added user "anna"\n')
        self.assertIn("--user NAME", self.complaint("user", "list"))
        self.assertIn("--user NAME", self.complaint("append", self.stream, "-t", "t", "-d", "1"))
        self.assertIn("does not accept", self.sluice_as("anna", "user", "list", password="wrong", code=FAILED).stderr.decode())
        self.sluice_as("anna", "user", "add", "shop", "--group", "a", "--group", "b", "--ops", stdin="first password")
        users = json.loads(self.sluice_as("anna", "user", "list", "--json").stdout)["users"]
        self.assertEqual([(user["name"], user["groups"]) for user in users], [("anna", ["$admins"]), ("shop", ["$ops", "a", "b"])])
        self.assertEqual(users[0]["full_name"], "Anna A.")

        self.sluice_as("shop", "append", self.stream, "-t", "t", "-d", "1", password="first password")
        self.assertIn("may not do that", self.sluice_as("shop", "user", "list", password="first password", code=FAILED).stderr.decode())
        self.sluice_as("anna", "user", "passwd", "shop", stdin="second password")
        self.sluice_as("shop", "read", self.stream, password="first password", code=FAILED)
        self.sluice_as("shop", "user", "passwd", "shop", password="second password", stdin="third password")
        self.sluice_as("shop", "read", self.stream, password="third password")
        self.check_ways_to_give_a_password()
        self.assertIn('there is no user "nobody"', self.sluice_as("anna", "user", "remove", "nobody", code=FAILED).stderr.decode())
        self.sluice_as("anna", "user", "add", "shop", stdin="another password", code=FAILED)
        self.assertIn("last administrator", self.sluice_as("anna", "user", "remove", "anna", code=FAILED).stderr.decode())
        self.sluice_as("anna", "user", "remove", "shop")
        self.sluice_as("shop", "read", self.stream, password="third password", code=FAILED)

    def check_ways_to_give_a_password(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(PASSWORD + "\nmore\n")
            file.flush()
            self.out("user", "list", "--user", "anna", "--password-file", file.name)
        address = f"sluice://anna:{PASSWORD.replace(' ', '%20')}@{self.server.grpc}"
        self.assertEqual(self.run_sluice("user", "list", server=address).stderr, b"")
        seen = self.run_sluice("user", "list", "--server", address).stderr.decode()
        self.assertIn("can see the password", seen)
        self.assertNotIn(PASSWORD, seen)
        self.assertIn("a user needs a password", self.complaint("user", "list", "--user", "anna", code=USAGE))
        self.assertIn("cannot read the password", self.complaint("user", "list", "--user", "anna", "--password-file", "/does/not/exist"))
        self.assertIn("needs --user", self.complaint("user", "list", "--password-file", "/dev/null", code=USAGE))


class UsersWithoutServer(unittest.TestCase):
    def sluice(self, *words, stdin="", code=OK):
        result = subprocess.run([SLUICE, *words], env=clean_environment(), capture_output=True, text=True, input=stdin, timeout=WAIT_S)
        self.assertEqual(result.returncode, code, result)
        return result

    def test_in_a_folder(self):
        with tempfile.TemporaryDirectory() as top:
            folder = os.path.join(top, "data")
            self.assertIn("no folder", self.sluice("user", "list", "--data", folder, code=FAILED).stderr)
            made = self.sluice("user", "add", "anna", "--admin", "--data", folder, stdin=PASSWORD)
            self.assertIn(f"There was no journal in {folder}: a new one was made", made.stderr)
            self.assertEqual(self.sluice("user", "add", "shop", "--data", folder, stdin=PASSWORD).stderr, "")
            again = self.sluice("user", "add", "shop", "--data", folder, stdin=PASSWORD, code=FAILED)
            self.assertEqual(again.stderr, "sluice: There is a user with that login name.\n")
            self.sluice("user", "passwd", "shop", "--data", folder, stdin="another one")
            users = json.loads(self.sluice("user", "list", "--data", folder, "--json").stdout)["users"]
            self.assertEqual([user["name"] for user in users], ["anna", "shop"])
            self.assertEqual([user["full_name"] for user in users], ["anna", "shop"])
            server = Server(folder)
            said = self.sluice("user", "list", "--data", folder, code=FAILED).stderr
            self.assertIn(str(server.process.pid), said)
            self.assertIn("--server", said)
            for password, code in (("another one", OK), (PASSWORD, FAILED)):
                result = subprocess.run([SLUICE, "append", "s", "-t", "t", "-d", "1", "--user", "shop", "--server", server.grpc],
                                        env=clean_environment(SLUICE_PASSWORD=password), capture_output=True, timeout=WAIT_S)
                self.assertEqual(result.returncode, code, result)
            server.end()
            self.sluice("user", "remove", "shop", "--data", folder)
            self.assertIn("last administrator", self.sluice("user", "remove", "anna", "--data", folder, code=FAILED).stderr)
            self.sluice("user", "list", "--data", folder, "--server", "x", code=USAGE)


    def test_a_folder_with_other_files_is_no_place_for_users(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "letter.txt"), "w", encoding="utf-8") as file:
                file.write("dear")
            said = self.sluice("user", "add", "anna", "--admin", "--data", folder, stdin=PASSWORD, code=FAILED).stderr
            self.assertIn('other files, such as "letter.txt"', said)
            self.assertEqual(os.listdir(folder), ["letter.txt"])


class Refused(Case):
    def test_what_a_refused_user_is_told(self):
        self.run_sluice("user", "add", "anna", "--admin", stdin=PASSWORD)
        again = self.complaint("user", "add", "anna", "--user", "anna", stdin=PASSWORD, SLUICE_PASSWORD=PASSWORD)
        self.assertEqual(again, "sluice: There is a user with that login name.\n")
        said = []
        while len(said) < 20 and not (said and "Too many" in said[-1]):  # more than six where a command takes longer than the pause after the fifth
            said.append(self.complaint("append", self.stream, "-t", "t", "--lines", "-", "--user", "anna", stdin="1\n", SLUICE_PASSWORD="wrong"))
        self.assertEqual(said[0], "sluice: the server does not accept this user with this password. Nothing was appended.\n")
        self.assertGreater(len(said), 5)
        self.assertRegex(said[-1], "^sluice: Too many failed log-ins. Wait a moment and try again. .*Nothing was appended")


class Terminal(Case):
    """A password that is typed."""

    def talk(self, words, answers):
        """Runs it on a terminal of its own; types each answer when its question has come. Exit code and all that was shown."""
        child, terminal = pty.fork()
        if child == 0:
            os.execve(SLUICE, [str(SLUICE), *words], clean_environment(SLUICE_SERVER=self.server.grpc))
        shown = ""
        for question, answer in answers:
            shown += self.read_until(terminal, question)
            os.write(terminal, answer.encode())
        shown += self.read_until(terminal, None)
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown

    def read_until(self, terminal, text):
        shown = ""
        while text is None or text not in shown:
            if not select.select([terminal], [], [], WAIT_S)[0]:
                raise AssertionError(f"waited for {text!r}, saw {shown!r}")
            try:
                piece = os.read(terminal, 65536).decode()
            except OSError:     # the other side is closed
                piece = ""
            if piece == "" and text is None:
                return shown
            if piece == "":
                raise AssertionError(f"it ended before {text!r}: {shown!r}")
            shown += piece
        return shown

    def test_is_asked_for_twice_and_never_shown(self):
        code, shown = self.talk(["user", "add", "anna", "--admin"], [("new password of anna: ", "one password\n"), ("again: ", "another\n")])
        self.assertEqual(code, FAILED)
        self.assertIn("not the same", shown)
        code, shown = self.talk(["user", "add", "anna", "--admin"], [("new password of anna: ", PASSWORD + "\n"), ("again: ", PASSWORD + "\n")])
        self.assertEqual(code, OK, shown)
        self.assertNotIn(PASSWORD, shown)
        code, shown = self.talk(["user", "list", "--user", "anna"], [(f"password of anna at {self.server.grpc}: ", PASSWORD + "\n")])
        self.assertEqual(code, OK, shown)
        self.assertIn("$admins", shown)
        self.assertNotIn(PASSWORD, shown)
        code, shown = self.talk(["user", "list", "--user", "anna"], [("password of anna", "\x03")])     # Ctrl-C
        self.assertEqual(code, -signal.SIGINT)

    def test_without_data_on_a_terminal_somebody_is_told(self):
        code, shown = self.talk(["append", "s", "--type", "t"], [])
        self.assertEqual(code, USAGE)
        self.assertIn("There is no data", shown)


def answer_half(listener):
    """A server that shows one user of many, and then fails."""
    def frame(kind, flags, stream, payload):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    def headers(**names):
        return b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
                        for name, value in ((name.replace("_", "-"), value) for name, value in names.items()))
    user = b"\x0a\x06\x0a\x04anna"
    with listener.accept()[0] as client:
        client.recv(24, socket.MSG_WAITALL)     # the greeting
        client.sendall(frame(4, 0, 0, b""))
        kind = flags = 0
        while kind > 1 or not flags & 1:        # until the request is complete
            head = client.recv(9, socket.MSG_WAITALL)
            client.recv(int.from_bytes(head[:3], "big"), socket.MSG_WAITALL)
            kind, flags = head[3:5]
        client.sendall(frame(1, 4, 1, b"\x88" + headers(content_type="application/grpc"))
                       + frame(0, 0, 1, b"\0" + len(user).to_bytes(4, "big") + user)
                       + frame(1, 5, 1, headers(grpc_status="13", grpc_message="broken")))
        while client.recv(4096):
            pass


class Addresses(Case):
    def test_a_list_that_breaks_off_is_no_answer(self):
        for words in ((), ("--json",)):
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                listener.listen()
                server = threading.Thread(target=answer_half, args=(listener,))
                server.start()
                shown = self.out("user", "list", *words, server=f"127.0.0.1:{listener.getsockname()[1]}", code=FAILED)
                server.join()
            if words:
                self.assertIn("broken", json.loads(shown)["error"])
            else:
                self.assertEqual(shown, "")

    def test_a_server_that_is_not_there(self):
        with deaf_port() as port:
            for words in (("append", "s", "-t", "t", "-d", "1"), ("append", "s", "-t", "t", "--lines", "-"), ("read", "s"), ("stream", "info", "s"),
                          ("user", "list")):
                said = self.complaint(*words, server=f"127.0.0.1:{port}", stdin="1\n")
                self.assertIn(f"cannot reach 127.0.0.1:{port}: connection refused. Is the server running? Start it with: sluice serve", said)
            answer = json.loads(self.out("read", "s", "--json", server=f"127.0.0.1:{port}", code=FAILED))
        self.assertIn("connection refused", answer["error"])

    def test_a_server_that_says_nothing(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            said = self.complaint("append", "s", "-t", "t", "-d", "1", "--timeout", "1s", server=f"127.0.0.1:{silent.getsockname()[1]}")
        self.assertIn("did not answer within 1s. More time can be given with --timeout", said)

    def test_the_port_of_something_else(self):
        admin = re.search(r"admin\W+127\.0\.0\.1:(\d+)", pathlib.Path(f"{self.server.folder}.log").read_text(encoding="utf-8"))
        said = self.complaint("append", "s", "-t", "t", "-d", "1", server=f"127.0.0.1:{admin[1]}")
        self.assertIn("Is this the port for clients?", said)

    def test_what_is_no_address(self):
        for address, sentence in (("http://x", "begins with sluice://"), ("x:0", "1 to 65535"), ("sluice://x?tls=perhaps", "true or false"),
                                  ("sluice://u:p%zz@x", "%25")):
            self.assertIn(sentence, self.complaint("read", "s", server=address, code=USAGE))
        self.assertIn("could not be resolved", self.complaint("read", "s", server="no-such-host.invalid"))

    def test_connection_strings_of_kurrentdb(self):
        address = f"kurrentdb://admin:changeit@{self.server.grpc}?tls=false&nodePreference=leader"
        self.out("append", self.stream, "-t", "t", "-d", "1", server=address)
        self.out("read", self.stream, server=f"esdb+discover://{self.server.grpc},127.0.0.2:1?tls=false")
        said = self.complaint("read", self.stream, server=f"kurrentdb://{self.server.grpc}")
        self.assertIn("?tls=false", said)


class Tls(Case):
    @classmethod
    def setUpClass(cls):
        cls.papers = tempfile.TemporaryDirectory()
        cls.certificate, key = (os.path.join(cls.papers.name, name) for name in ("certificate.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", "/CN=sluice", "-addext", "subjectAltName=IP:127.0.0.1", "-out", cls.certificate, "-keyout", key],
                       check=True, capture_output=True)
        cls.words = ("--tls-certificate", cls.certificate, "--tls-key", key)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.papers.cleanup()

    def test_is_trusted_when_its_authority_is_named(self):
        self.out("append", self.stream, "-t", "t", "-d", "1", "--ca", self.certificate)
        self.out("read", self.stream, server=f"kurrentdb://{self.server.grpc}?tlsCAFile={self.certificate}")
        loose = self.run_sluice("read", self.stream, server=f"sluice://{self.server.grpc}?tls=true&tlsVerifyCert=false")
        self.assertIn(b"not checked", loose.stderr)
        self.assertIn("--ca FILE", self.complaint("read", self.stream, server=f"sluice://{self.server.grpc}?tls=true"))
        self.assertIn("tls=true", self.complaint("read", self.stream))
        other_name = self.complaint("read", self.stream, "--ca", self.certificate, server=f"sluice://localhost:{self.server.port}?tls=true")
        self.assertIn("the peer's certificate is not for this name", other_name)
        self.assertIn("Use a name in --server that is in the certificate", other_name)
        self.assertNotIn("--ca", other_name)
        self.assertIn("/does/not/exist", self.complaint("read", self.stream, "--ca", "/does/not/exist"))


if __name__ == "__main__":
    unittest.main()
