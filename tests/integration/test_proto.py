#!/usr/bin/env python3
"""The .proto files under proto/, as the reference compiler sees them."""
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROTO = ROOT / "proto"
FILES = sorted(PROTO.glob("*.proto"))

# The calls that official clients make; a name that changes here breaks them.
SERVICES = {
    "streams.proto": ("event_store.client.streams", "Streams", "Read Append Delete Tombstone BatchAppend"),
    "persistent.proto": ("event_store.client.persistent_subscriptions", "PersistentSubscriptions",
                         "Create Update Delete Read GetInfo ReplayParked TruncateParked List RestartSubsystem"),
    "serverfeatures.proto": ("event_store.client.server_features", "ServerFeatures", "GetSupportedMethods"),
    "gossip.proto": ("event_store.client.gossip", "Gossip", "Read"),
    "operations.proto": ("event_store.client.operations", "Operations",
                         "StartScavenge StopScavenge Shutdown MergeIndexes ResignNode SetNodePriority "
                         "RestartPersistentSubscriptions"),
    "users.proto": ("event_store.client.users", "Users",
                    "Create Update Delete Disable Enable Details ChangePassword ResetPassword"),
    "monitoring.proto": ("event_store.client.monitoring", "Monitoring", "Stats"),
    "streams_v2.proto": ("kurrentdb.protocol.v2.streams", "StreamsService", "AppendSession AppendRecords"),
}


def protoc(*words, **more):
    return subprocess.run(["protoc", f"--proto_path={PROTO}", *words], capture_output=True, timeout=60, **more)


class Proto(unittest.TestCase):
    def test_each_file_compiles_alone_and_without_a_warning(self):
        self.assertGreater(len(FILES), 0)
        for path in FILES:
            with tempfile.NamedTemporaryFile() as out:
                answer = protoc(f"--descriptor_set_out={out.name}", path.name)
                self.assertEqual((answer.returncode, answer.stderr), (0, b""), path.name)
                self.assertGreater(pathlib.Path(out.name).stat().st_size, 0)

    def test_all_files_are_built(self):
        build = (ROOT / "src/wire/codec/meson.build").read_text()
        names = re.search(r"proto_names = \[(.*?)\]", build, re.S)[1]
        self.assertEqual(sorted(re.findall(r"'(\w+)'", names)), [path.stem for path in FILES])

    def test_services_have_the_names_that_clients_call(self):
        for name, (package, service, methods) in SERVICES.items():
            text = (PROTO / name).read_text()
            self.assertIn(f"package {package};", text)
            body = re.search(r"service %s \{(.*?)\n\}" % service, text, re.S)[1]
            self.assertEqual(re.findall(r"rpc (\w+)\(", body), methods.split(), name)

    def test_our_own_fields_have_the_numbers_that_were_promised(self):
        cases = {
            "stop { hand_back_unstarted: true }": "22020801",
            "release { ids { structured {} } }": "a2060412020a00",
            "extend { ids { structured {} } lease_ms: 5 }": "aa060612020a001805",
            "started { ids { structured {} } }": "b2060412020a00",
            'options { consumer_name: "c" }': "0a04a2060163",
            'options { labels { key: "k" value: "v" } }': "0a09aa06060a016b120176",
            "options { extensions: true reconnect_ms: 1 resume { structured {} } }": "0a0bb00601b80601c206020a00",
        }
        for text, wanted in cases.items():
            self.assertEqual(self.encode("ReadReq", text), wanted, text)

    def test_our_own_answers_have_the_numbers_that_were_promised(self):
        cases = {
            "stopped { in_flight: 1 already_stopped: true asked_by: Server outstanding { structured {} } }":
                "a2060a08011001180222020a00",
            "drained { settled: 1 released: 2 lost: 3 }": "aa0606080110021803",
            'stop_requested { reason: "r" deadline_ms: 1 }': "b206050a01721001",
            "settled { ids { structured {} } lost { structured {} } }": "ba06080a020a0012020a00",
            "event { lease_token: 1 lease_ms: 2 }": "0a06a00601a80602",
        }
        for text, wanted in cases.items():
            self.assertEqual(self.encode("ReadResp", text), wanted, text)

    def test_our_own_settings_have_the_numbers_that_were_promised(self):
        for message in ("CreateReq", "UpdateReq"):
            self.assertEqual(self.encode(message, "options { settings { max_interrupts: 0 max_kills: 1 } }"), "0a081a06a00600a80601")
        self.assertEqual(self.encode("SubscriptionInfo", "max_interrupts: 1 max_kills: 2"), "b00601b80602")

    def encode(self, message, text):
        package = "event_store.client.persistent_subscriptions"
        answer = protoc(f"--encode={package}.{message}", "persistent.proto", input=text.encode())
        self.assertEqual((answer.returncode, answer.stderr), (0, b""), text)
        return answer.stdout.hex()


if __name__ == "__main__":
    unittest.main()
