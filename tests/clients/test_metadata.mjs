/* Metadata of streams: what is kept, and what a read shows because of it. */
import { expecting, newStream, upTo, versionsOf } from "./lib/official.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";
import { eventually } from "./lib/wait.mjs";

const { check, end } = await rig();

const BACKWARDS = { direction: "backwards", fromRevision: "end" };

check("a stream without metadata has none, whether it exists or not", async (it) => {
    for (const stream of [newStream("missing"), await it.fill(1)])
        assert.deepEqual(await it.client.getStreamMetadata(stream), { streamName: stream });
});

check("metadata comes back as it was written, with keys that only its owner knows", async (it) => {
    const stream = await it.fill(1);
    const metadata = {
        maxCount: 1000,
        maxAge: 86_400,
        truncateBefore: 0,
        cacheControl: 60,
        acl: {
            readRoles: ["alice", "$admins"],
            writeRoles: ["$all"],
            deleteRoles: [],
            metaReadRoles: ["$all"],
            metaWriteRoles: ["$all"],
        },
        owner: { name: "grüße", tags: [1, "two", null] },
    };
    const first = await it.client.setStreamMetadata(stream, metadata);
    assert.equal(first.success, true);
    assert.equal(first.nextExpectedRevision, 0n);
    const read = await it.client.getStreamMetadata(stream);
    assert.deepEqual(read.metadata, metadata);
    assert.equal(read.streamName, stream);
    assert.equal(read.metastreamRevision, first.position.commit); /* both clients give the position here */
    assert.deepEqual(await it.numbers(stream), [0]);
});

check("the last metadata counts, and a stream of metadata shows only that", async (it) => {
    const stream = await it.fill(1);
    for (let n = 0; n < 4; n++) {
        const { nextExpectedRevision } = await it.client.setStreamMetadata(stream, { round: n });
        assert.equal(nextExpectedRevision, BigInt(n));
    }
    assert.deepEqual((await it.client.getStreamMetadata(stream)).metadata, { round: 3 });
    const events = await it.read(`$$${stream}`);
    assert.deepEqual(
        events.map(({ event }) => event.data),
        [{ round: 3 }],
    );
    assert.deepEqual(
        events.map(({ event }) => event.revision),
        [3n],
    );
    assert.deepEqual(
        events.map(({ event }) => event.type),
        ["$metadata"],
    );
});

check("metadata is written only in the state that is expected", async (it) => {
    const stream = await it.fill(1);
    const set = (round, state) => it.client.setStreamMetadata(stream, { round }, expecting(state));
    await failure(set(0, "stream_exists"), it.sdk.WrongExpectedVersionError);
    await set(1, "no_stream");
    await set(2, 0n);
    await set(3, "stream_exists");
    const error = await failure(set(4, 0n), it.sdk.WrongExpectedVersionError);
    assert.deepEqual(versionsOf(error), { stream: `$$${stream}`, expected: 0n, actual: 2n });
    assert.deepEqual((await it.client.getStreamMetadata(stream)).metadata, { round: 3 });
});

check("metadata may come before the stream, which then counts as existing", async (it) => {
    const stream = newStream("later");
    await it.client.setStreamMetadata(stream, { colour: "red" });
    assert.deepEqual((await it.client.getStreamMetadata(stream)).metadata, { colour: "red" });
    assert.equal((await it.append(stream, it.numbered(1), "stream_exists")).nextExpectedRevision, 0n);
});

check("maxCount shows the newest, and follows what is appended", async (it) => {
    const stream = await it.fill(10);
    await it.client.setStreamMetadata(stream, { maxCount: 3 });
    assert.deepEqual(await it.numbers(stream), [7, 8, 9]);
    assert.deepEqual(await it.numbers(stream, BACKWARDS), [9, 8, 7]);
    assert.deepEqual(await it.numbers(stream, { fromRevision: 2n }), [7, 8, 9]);
    assert.deepEqual(await it.numbers(stream, { fromRevision: 8n }), [8, 9]);
    assert.deepEqual(await it.numbers(stream, { maxCount: 2 }), [7, 8]);
    await it.append(stream, it.numbered(2, { first: 10 }));
    assert.deepEqual(await it.numbers(stream), [9, 10, 11]);
    await it.client.setStreamMetadata(stream, { maxCount: 1 });
    assert.deepEqual(await it.numbers(stream), [11]);
});

check("truncateBefore hides what is before it", async (it) => {
    const stream = await it.fill(10);
    await it.client.setStreamMetadata(stream, { truncateBefore: 6 });
    assert.deepEqual(await it.numbers(stream), [6, 7, 8, 9]);
    assert.deepEqual(await it.numbers(stream, BACKWARDS), [9, 8, 7, 6]);
    assert.deepEqual(await it.numbers(stream, { fromRevision: 0n, maxCount: 1 }), [6]);
    assert.deepEqual(await it.numbers(stream, { direction: "backwards", fromRevision: 3n }), []);
    assert.equal((await it.append(stream, it.numbered(1, { first: 10 }), 9n)).nextExpectedRevision, 10n);
});

check("of maxCount and truncateBefore the narrower wins", async (it) => {
    const stream = await it.fill(10);
    await it.client.setStreamMetadata(stream, { truncateBefore: 6, maxCount: 2 });
    assert.deepEqual(await it.numbers(stream), [8, 9]);
    await it.client.setStreamMetadata(stream, { truncateBefore: 9, maxCount: 5 });
    assert.deepEqual(await it.numbers(stream), [9]);
});

check("a stream whose events are all hidden is empty, and not missing", async (it) => {
    const stream = await it.fill(3);
    await it.client.setStreamMetadata(stream, { truncateBefore: 100 });
    assert.deepEqual(await it.read(stream), []);
    assert.deepEqual(await it.read(stream, BACKWARDS), []);
});

check("maxAge hides what is older", async (it) => {
    const stream = await it.fill(3);
    await it.client.setStreamMetadata(stream, { maxAge: 3600 });
    assert.deepEqual(await it.numbers(stream), [0, 1, 2]);
    await it.client.setStreamMetadata(stream, { maxAge: 1 });
    await eventually(async () => assert.deepEqual(await it.read(stream), []), {
        what: "the events to be too old",
    });
    await it.append(stream, it.numbered(1, { first: 3 }), 2n);
    await it.client.setStreamMetadata(stream, { maxAge: 3600 });
    assert.equal((await it.numbers(stream)).at(-1), 3);
});

check("$all shows what streams hide", async (it) => {
    const stream = await it.fill(5);
    await it.client.setStreamMetadata(stream, { maxCount: 1 });
    const ours = (await it.readAll()).filter(({ event }) => event.streamId === stream);
    assert.deepEqual(
        ours.map(({ event }) => event.data.n),
        upTo(5),
    );
});

check("$all shows changes of metadata as events", async (it) => {
    const stream = await it.fill(0);
    const { position } = await it.client.setStreamMetadata(stream, { colour: "red" });
    const [{ event }] = await it.readAll({ fromPosition: position, maxCount: 1 });
    assert.equal(event.streamId, `$$${stream}`);
    assert.equal(event.type, "$metadata");
    assert.deepEqual(event.data, { colour: "red" });
});

check("metadata that is no JSON, or no object, hides nothing", async (it) => {
    for (const text of ["{ not JSON", "[1, 2]", "17", ""]) {
        const stream = await it.fill(4);
        await it.client.setStreamMetadata(stream, { maxCount: 1 });
        const data = Buffer.from(text);
        await it.append(`$$${stream}`, it.sdk.binaryEvent({ type: "$metadata", data }));
        assert.deepEqual(await it.numbers(stream), [0, 1, 2, 3], text);
    }
});

check("numbers that make no sense have no effect", async (it) => {
    for (const odd of [
        { $maxCount: 0 },
        { $maxCount: -1 },
        { $maxAge: -5 },
        { $tb: -1 },
        { $maxCount: "2" },
        { $tb: null },
    ]) {
        const stream = await it.fill(4);
        await it.append(`$$${stream}`, it.sdk.jsonEvent({ type: "$metadata", data: odd }));
        assert.deepEqual(await it.numbers(stream), [0, 1, 2, 3], JSON.stringify(odd));
    }
});

end();
