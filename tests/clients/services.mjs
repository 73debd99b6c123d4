/* The services around the streams: what clients ask when they connect, statistics, and what an operator's script
 * calls. With @grpc/grpc-js and our own .proto files, because the official clients show little of it. */
import { connect as connectTcp } from "node:net";

import { newStream } from "./lib/official.mjs";
import { Raw, status, trailersOf } from "./lib/raw.mjs";
import { assert, rig } from "./lib/rig.mjs";
import { startServer } from "./lib/server.mjs";
import { within } from "./lib/wait.mjs";

const { check, server, it, end } = await rig();
const raw = new Raw(server);

/* --- what clients ask when they connect --- */

const NEEDED_METHODS = [
    ["event_store.client.streams.streams", "read append delete tombstone batchappend"],
    ["event_store.client.server_features.serverfeatures", "getsupportedmethods"],
    ["event_store.client.gossip.gossip", "read"],
    [
        "event_store.client.users.users",
        "create update delete disable enable details changepassword resetpassword",
    ],
    [
        "event_store.client.persistent_subscriptions.persistentsubscriptions",
        "create update delete read getinfo replayparked truncateparked list restartsubsystem",
    ],
    ["event_store.client.monitoring.monitoring", "stats"],
    ["kurrentdb.protocol.v2.streams.streamsservice", "appendsession appendrecords"],
];

check(
    "the features list what is there, in small letters, with a version that all clients can read",
    async () => {
        const { response } = await raw.unary("features", "GetSupportedMethods", {});
        assert.match(response.event_store_server_version, /^\d+\.\d+\.\d+(-\S+)?$/);
        assert.ok(Number(response.event_store_server_version.split(".")[0]) >= 22);
        const listed = new Set(
            response.methods.map(({ service_name: service, method_name: method }) => `${service}/${method}`),
        );
        for (const [service, methods] of NEEDED_METHODS)
            for (const method of methods.split(" "))
                assert.ok(listed.has(`${service}/${method}`), `${service}/${method}`);
        for (const name of listed) assert.equal(name, name.toLowerCase());
    },
);

check("what the features list is there, and what they do not list is not", async () => {
    const { response } = await raw.unary("features", "GetSupportedMethods", {});
    assert.ok(!response.methods.some(({ service_name: service }) => service.includes("projections")));
    const batch = response.methods.find(({ method_name: method }) => method === "batchappend");
    assert.deepEqual(batch.features, ["deadline_duration"]);
});

check("gossip tells of one leader, at an address that a client can reach", async () => {
    const { response } = await raw.unary("gossip", "Read", {});
    assert.equal(response.members.length, 1);
    const [member] = response.members;
    assert.equal(member.state, "Leader");
    assert.equal(member.is_alive, true);
    assert.equal(`${member.http_end_point.address}:${member.http_end_point.port}`, server.address);
    assert.equal(member.instance_id.value, "structured");
    assert.ok(Math.abs(Number(member.time_stamp) / 10_000 - Date.now()) < 60_000);
});

check("statistics come at once", async () => {
    const request = { use_metadata: false, refresh_time_period_in_ms: "100" };
    const options = { until: (responses) => responses.length === 2 };
    const { responses } = await raw.serverStream("monitoring", "Stats", request, options);
    assert.ok(Object.keys(responses[0].stats).length > 0);
});

/* --- operations --- */

check("a scavenge has a name, and one that nobody knows is not found", async () => {
    await it.client.deleteStream(await it.fill(10));
    const request = { options: { thread_count: 1, start_from_chunk: 0 } };
    const started = await raw.unary("operations", "StartScavenge", request);
    assert.equal(started.error, null);
    assert.match(started.response.scavenge_id, /^[0-9a-f-]{36}$/);
    assert.ok(["Started", "InProgress"].includes(started.response.scavenge_result));
    const id = "00000000-0000-0000-0000-00000000dead";
    const unknown = await raw.unary("operations", "StopScavenge", { options: { scavenge_id: id } });
    assert.equal(unknown.error.code, status.NOT_FOUND);
    assert.equal(trailersOf(unknown).exception, "scavenge-not-found");
    assert.equal(trailersOf(unknown)["scavenge-id"], id);
});

check("calls that are about clusters succeed and change nothing", async () => {
    for (const method of ["MergeIndexes", "ResignNode", "RestartPersistentSubscriptions"])
        assert.equal((await raw.unary("operations", method, {})).error, null, method);
    assert.equal((await raw.unary("operations", "SetNodePriority", { priority: 5 })).error, null);
    assert.equal((await it.append(newStream(), it.numbered(1))).success, true);
});

check("an operator can end the server", async () => {
    const other = await startServer();
    const operator = new Raw(other);
    assert.equal((await operator.unary("operations", "Shutdown", {})).error, null);
    const end = await within(other.ended, 20_000, "the end of the server");
    assert.deepEqual(end, { code: 0, signal: null }, other.log);
    operator.close();
    other.remove();
});

/* --- what is no client at all --- */

check("a connection that speaks no HTTP/2 is answered or closed, and never left open", async () => {
    for (const text of [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01",
        "nonsense\r\n".repeat(100),
    ]) {
        const socket = connectTcp({ host: server.host, port: server.port });
        socket.on("error", () => {});
        socket.resume();
        socket.write(text, "latin1");
        await within(
            new Promise((resolve) => socket.once("close", resolve)),
            30_000,
            `the end of ${JSON.stringify(text.slice(0, 10))}`,
        );
    }
    await it.fill(1);
});

check("the raw connection is closed", async () => raw.close());

end();
