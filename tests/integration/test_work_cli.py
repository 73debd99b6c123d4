"""What `sluice work` says to people: mistakes are told at once, with what to do, and with the right exit code."""
import json
import os
import pathlib
import re
import socket
import subprocess
import unittest

from client_case import FAILED, OK, SLUICE, USAGE, WAIT_S, Server, deaf_port
from work_case import LOST, WorkCase, wait_until

DONE = 'echo "done $SLUICE_ID" >> "$LEDGER"'


class Mistakes(WorkCase):
    """Each of them ends before anything was tried a second time, which would take a second at least."""

    def refused(self, *words, code=FAILED, **environment):
        sentence = self.complaint("work", "--from", self.source(), "--exec", "true", "--status-port", 0, *words, code=code, **environment)
        self.assertNotIn("started again", sentence)
        return sentence

    def test_an_ack_file_that_cannot_be_made_is_told_at_once(self):
        self.assertIn(f"--ack-file {self.folder} cannot be used: Is a directory. Name a file in it.", self.refused("--ack-file", self.folder))
        self.assertIn("cannot be used: No such file or directory. Name a file in a folder that is there",
                      self.refused("--ack-file", self.folder / "none" / "acks"))
        self.assertEqual(list(self.folder.glob("acks*")), [])

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_that_may_not_be_written_to_is_told_at_once(self):
        folder = self.folder / "closed"
        folder.mkdir(mode=0o500)
        self.assertIn("Permission denied", self.refused("--ack-file", folder / "acks"))
        self.assertIn("Permission denied", self.refused("--report", folder / "report"))

    def test_a_report_that_could_not_be_written_is_told_before_there_is_something_to_report(self):
        self.assertIn("--report /none/report cannot be used: No such file or directory. Name a file in a folder that is there",
                      self.refused("--report", "/none/report"))
        self.assertIn("Is a directory. Name a file in it.", self.refused("--report", self.folder))

    def test_a_report_may_be_a_file_that_is_mounted_by_itself(self):
        """As the termination log of a pod is: it can be written, and nothing can take its place."""
        report = self.folder / "mounted"
        report.touch()
        command = 'mount --bind "$1" "$1" || exit 77; shift; exec "$@"'
        words = [SLUICE, "work", "--from", "memory:count=1", "--exec", "true", "--status-port", "0", "--report", report]
        ran = subprocess.run(["unshare", "--mount", "sh", "-c", command, "sh", report, *words], capture_output=True, text=True, timeout=WAIT_S)
        if ran.returncode == 77 or "unshare" in ran.stderr:
            self.skipTest("nothing may be mounted here")
        self.assertEqual(ran.returncode, OK, ran.stderr)
        self.assertEqual(json.loads(report.read_text())["end"], "clean")
        self.assertEqual([path.name for path in self.folder.glob("mounted*")], ["mounted"])

    def test_files_that_are_read_are_looked_for_at_the_start(self):
        self.assertIn("cannot read the password from /none: No such file or directory. Name a file that is there and may be read.",
                      self.refused("--user", "anna", "--password-file", "/none"))
        self.assertIn("--ca /none cannot be used: No such file or directory.", self.refused("--ca", "/none"))

    def test_a_printed_configuration_is_read_again_without_a_note(self):
        path = self.folder / "printed.ini"
        path.write_text(self.out("work", "--from", "memory:count=1", "--exec", "true", "--print-config"))
        self.assertEqual(self.run_sluice("work", "-c", path, "--explain").stderr, b"")
        path.write_text(path.read_text().replace("retry-step = 1s", "retry-step = 2s"))
        self.assertIn(b"--retry-step has no effect without --retry linear.", self.run_sluice("work", "-c", path, "--explain").stderr)

    def test_authorities_of_an_address_are_looked_for_before_anything_starts(self):
        for words in ((f"--from={self.source()}?tls=true&tlsCAFile=/none", "--exec=true"),
                      ("--from=memory:count=1", "--append=sluice://127.0.0.1:1/s?tls=true&tlsCAFile=/none")):
            sentence = self.complaint("work", *words, "--status-port", 0)
            self.assertIn("tlsCAFile /none cannot be used: No such file or directory.", sentence)
            self.assertNotIn("starting", sentence)

    def test_authorities_without_a_certificate_are_told_before_a_message_is_charged_for_them(self):
        path = self.folder / "no certificate"
        path.write_text("hello\n")
        for words in ((f"--from={self.source()}", "--exec=true", f"--ca={path}"), ("--from=memory:count=1", "--http=https://127.0.0.1:1/", f"--ca={path}"),
                      (f"--from={self.source()}?tls=true&tlsCAFile={path}", "--exec=true"),
                      ("--from=memory:count=1", f"--append=sluice://127.0.0.1:1/s?tls=true&tlsCAFile={path}")):
            sentence = self.complaint("work", *words, "--status-port", 0)
            self.assertIn(f"{path} cannot be used: no certificate could be read from it. Name a PEM file", sentence)
            self.assertNotIn("starting", sentence)

    def test_a_user_without_a_password_is_refused_before_anything_starts(self):
        sentence = self.refused("--user", "anna", code=USAGE)
        self.assertIn("--user needs a password: put it into the environment as SLUICE_PASSWORD", sentence)
        self.assertNotIn("starting", sentence)
        self.out("work", "--from", "memory:count=1", "--exec", "true", "--no-status", "--user", "anna")  # nobody would be told it

    def test_explain_needs_none_of_the_files(self):
        text = self.out("work", "--from", self.source(), "--exec", "true", "--ack-file", "/none/acks", "--report", "/none/report", "--explain")
        self.assertIn("terminationGracePeriodSeconds", text)

    def test_a_port_that_is_taken_is_told_with_the_ways_out(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            sentence = self.refused("--status-port", port).splitlines()[-1]
        self.assertIn(f"port {port} of 127.0.0.1: Address already in use. Another process listens there: --status-port N takes another", sentence)

    def test_a_status_host_that_is_not_of_this_machine_is_told_so(self):
        sentence = self.refused("--status-host", "203.0.113.7").splitlines()[-1]
        self.assertIn("--status-host must be an address of this machine, as 127.0.0.1 and 0.0.0.0 are", sentence)
        self.assertNotIn("--status-port", sentence)

    def test_an_ack_file_that_is_locked_is_no_matter_of_groups(self):
        self.fill(0)
        path = self.folder / "acks"
        self.work("--from", self.source(), "--exec", "true", "--ack-file", path)
        sentence = self.refused("--ack-file", path, "--restarts", 0).splitlines()[-1]
        self.assertIn("is in use by another process", sentence)
        self.assertNotIn("sluice group", sentence)

    def test_a_server_that_cannot_be_reached_is_no_matter_of_groups(self):
        words = ("--exec", "true", "--status-port", 0, "--give-up", "1s", "--restarts", 0)
        with deaf_port() as port:
            sentence = self.complaint("work", "--from", f"sluice://127.0.0.1:{port}/s/g", *words, code=LOST).splitlines()[-1]
        self.assertIn("connection refused. Is the server running? --give-up 0 waits for the server.", sentence)
        self.assertNotIn("sluice group", sentence)

    def no_connection(self, address):
        """What the log says of a source that cannot be used."""
        work = self.work("--from", address, "--exec", "true", is_ready=False)
        wait_until(lambda: "no connection to the source" in work.log(), "a connection that fails")
        lines = [json.loads(line) for line in work.log().splitlines() if line.startswith("{")]
        work.end()
        return next(line["reason"] for line in lines if line["message"] == "no connection to the source")

    def test_the_log_says_what_can_be_done_about_a_source_that_cannot_be_used(self):
        admin = re.search(r"admin\W+127\.0\.0\.1:(\d+)", pathlib.Path(f"{self.server.folder}.log").read_text(encoding="utf-8"))
        self.assertIn("Is this the port for clients? The admin pages have another one", self.no_connection(f"sluice://127.0.0.1:{admin[1]}/s/g"))
        self.assertIn("Perhaps the server does not use TLS: then add ?tls=false to --from",
                      self.no_connection(self.source().replace("sluice://", "kurrentdb://")))
        with deaf_port() as port:
            self.assertTrue(self.no_connection(f"sluice://127.0.0.1:{port}/s/g").endswith("connection refused. Is the server running?"))

    def test_a_worker_without_status_pages_says_none_twice(self):
        ran = self.run_sluice("work", "--from", "memory:count=1", "--exec", "true", "--no-status")
        self.assertIn(b"status=none", ran.stdout)
        self.assertEqual(json.loads(ran.stderr.splitlines()[0])["status"], "none")

    def test_a_worker_that_was_started_without_descriptors_ends_as_any_other_S3_28(self):
        """What is closed at the start must not become the number of a socket, a pipe or a file."""
        self.fill(1)
        for count, closed in enumerate(((0,), (1,), (2,), (0, 1, 2)), start=1):
            work = self.work("--from", self.source(), "--exec", DONE, is_ready=False, before=lambda closed=closed: [os.close(fd) for fd in closed])
            self.ledger.wait("done", count)
            wait_until(lambda: self.info()["in_flight"] == 0, "the last acks")
            self.assertEqual(work.end()[0], OK, (closed, work.log()))
            self.assertEqual(work.report()["end"], "clean")
            self.append()

    def test_an_address_that_is_none_is_refused_before_anything_starts(self):
        sentence = self.complaint("work", "--from", self.source(), "--http", "localhost:8080", code=USAGE)
        self.assertEqual(sentence, "sluice: --http needs an address such as http://localhost:8080/charge or https://HOST/PATH, not "
                                   "'localhost:8080'.\n")

    def test_a_group_that_is_not_there_is_told_with_the_ways_out(self):
        sentence = self.refused("--restarts", 0, code=LOST).splitlines()[-1]
        self.assertIn(f"Subscription group g on stream {self.stream} does not exist. 'sluice group list' shows", sentence)
        self.assertIn("'sluice group create' makes one", sentence)


class Certificates(WorkCase):
    """A server that speaks TLS with a certificate that nobody knows."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = pathlib.Path(cls.temporary.name)
        cls.certificate = folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-keyout", folder / "key.pem", "-out", cls.certificate, "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
        cls.closed = Server(str(folder / "closed"), "--tls-certificate", str(cls.certificate), "--tls-key", str(folder / "key.pem"))

    @classmethod
    def tearDownClass(cls):
        cls.closed.end()
        super().tearDownClass()

    def test_naming_authorities_means_tls_also_for_the_source(self):
        address = self.closed.grpc
        ca = ("--ca", self.certificate)
        self.run_sluice("append", self.stream, "--type", "t", "--data", "{}", *ca, server=address)
        self.run_sluice("group", "create", self.stream, "g", "--start", "start", *ca, server=address)
        work = self.work("--from", f"sluice://{address}/{self.stream}/g", "--exec", DONE, "--grace", "5s", *ca)
        self.ledger.wait("done", 1)
        self.assertEqual(work.end()[0], OK, work.log())

    def test_a_server_without_tls_is_not_spoken_to_when_authorities_are_named(self):
        self.fill(1)
        work = self.work("--from", self.source(), "--exec", DONE, "--ca", self.certificate, "--grace", "5s", is_ready=False)
        wait_until(lambda: "no connection to the source" in work.log(), "a refusal")
        self.assertEqual((work.end()[0], self.ledger.of("done")), (OK, []))


if __name__ == "__main__":
    unittest.main(verbosity=2)
