/* The two ways to delete a stream: softly, so that it can go on, and with a tombstone, for ever. */
import { expecting, newStream, upTo, versionsOf } from "./lib/official.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";

const { check, end } = await rig();

const REVISION_OF_A_TOMBSTONE = 2n ** 63n - 1n;
const BY_APPEND = { credentials: { username: "nobody", password: "nothing" } };

/* Every event of $all that belongs to the stream. */
async function inAll(it, stream) {
    return (await it.readAll()).filter(({ event }) => event?.streamId === stream).map(({ event }) => event);
}

check("a deleted stream is not found, and its events are still in $all", async (it) => {
    const stream = await it.fill(3);
    const { position } = await it.client.deleteStream(stream);
    assert.equal(typeof position.commit, "bigint");
    const error = await failure(it.read(stream), it.sdk.StreamNotFoundError);
    assert.equal(error.streamName, stream);
    assert.deepEqual(
        (await inAll(it, stream)).map(({ data }) => data.n),
        [0, 1, 2],
    );
});

check("a deleted stream goes on with the next revision", async (it) => {
    for (const state of ["any", "no_stream", 2n]) {
        const stream = await it.fill(3);
        await it.client.deleteStream(stream);
        const { nextExpectedRevision } = await it.append(stream, it.numbered(2, { first: 3 }), state);
        assert.equal(nextExpectedRevision, 4n, `${state}`);
        const events = (await it.read(stream)).map(({ event }) => event);
        assert.deepEqual(
            events.map(({ data }) => data.n),
            [3, 4],
            `${state}`,
        );
        assert.deepEqual(
            events.map(({ revision }) => revision),
            [3n, 4n],
            `${state}`,
        );
        assert.deepEqual(await it.numbers(stream, { direction: "backwards", fromRevision: "end" }), [4, 3]);
    }
});

check("a deleted stream does not exist for those who expect that it does", async (it) => {
    const stream = await it.fill(1);
    await it.client.deleteStream(stream);
    for (const options of [{}, BY_APPEND]) {
        const error = await failure(
            it.append(stream, it.numbered(1), "stream_exists", options),
            it.sdk.StreamDeletedError,
        );
        assert.equal(error.streamName, stream);
    }
    await failure(it.append(stream, it.numbered(1), 7n), it.sdk.WrongExpectedVersionError);
});

/* [expected state, is it right for a stream of 3 events, as the error tells it] */
const EXPECTATIONS = [
    ["any", true],
    [2n, true],
    [1n, false, 1n],
    [3n, false, 3n],
    ["no_stream", false, -1n],
];

/* "deleteStream" or "tombstoneStream" */
function onlyInTheExpectedState(call) {
    check(`${call} happens only in the state that it expects`, async (it) => {
        for (const [state, right, told] of EXPECTATIONS) {
            const stream = await it.fill(3);
            const deleting = it.client[call](stream, expecting(state));
            if (right) {
                await deleting;
                continue;
            }
            const error = await failure(deleting, it.sdk.WrongExpectedVersionError, `${state}`);
            assert.deepEqual(versionsOf(error), { stream, expected: told, actual: 2n }, `${state}`);
            assert.deepEqual(await it.numbers(stream), [0, 1, 2], `${state}`);
        }
    });
}
onlyInTheExpectedState("deleteStream");
onlyInTheExpectedState("tombstoneStream");

check("what never was cannot be deleted, whatever is expected", async (it) => {
    for (const state of ["any", "no_stream", 0n]) {
        const stream = newStream("missing");
        const error = await failure(
            it.client.deleteStream(stream, expecting(state)),
            it.sdk.WrongExpectedVersionError,
        );
        assert.equal(versionsOf(error).actual, -1n, `${state}`);
    }
});

check("a stream can be deleted again, and again after it went on", async (it) => {
    const stream = await it.fill(1);
    await it.client.deleteStream(stream);
    await it.client.deleteStream(stream);
    await it.append(stream, it.numbered(1, { first: 1 }));
    await it.client.deleteStream(stream, expecting(1n));
    await failure(it.read(stream), it.sdk.StreamNotFoundError);
});

check("a delete takes the other metadata along", async (it) => {
    const stream = await it.fill(1);
    await it.client.setStreamMetadata(stream, { maxCount: 10, colour: "red" });
    await it.client.deleteStream(stream);
    const { metadata } = await it.client.getStreamMetadata(stream);
    assert.deepEqual(Object.keys(metadata), ["truncateBefore"]);
    assert.equal(metadata.truncateBefore, Number(REVISION_OF_A_TOMBSTONE));
});

check("metadata brings a deleted stream back, from where it ended", async (it) => {
    const stream = await it.fill(2);
    await it.client.deleteStream(stream);
    await it.client.setStreamMetadata(stream, { colour: "red" });
    assert.deepEqual(await it.read(stream), []);
    await it.append(stream, it.numbered(1, { first: 2 }), "stream_exists");
    assert.deepEqual(await it.numbers(stream), [2]);
    assert.equal((await it.client.getStreamMetadata(stream)).metadata.colour, "red");
});

/* --- tombstones --- */

check("a tombstone is for ever: every call on the stream says so", async (it) => {
    const stream = await it.fill(2);
    const { position } = await it.client.tombstoneStream(stream);
    assert.equal(typeof position.commit, "bigint");
    const calls = {
        "read": () => it.read(stream),
        "read backwards": () => it.read(stream, { direction: "backwards", fromRevision: "end" }),
        "append": () => it.append(stream, it.numbered(1)),
        "append no_stream": () => it.append(stream, it.numbered(1), "no_stream"),
        "append stream_exists": () => it.append(stream, it.numbered(1), "stream_exists"),
        "append by Append": () => it.append(stream, it.numbered(1), "any", BY_APPEND),
        "delete": () => it.client.deleteStream(stream),
        "tombstone": () => it.client.tombstoneStream(stream),
        "metadata": () => it.client.setStreamMetadata(stream, { maxCount: 1 }),
    };
    for (const [what, call] of Object.entries(calls)) {
        const error = await failure(call(), it.sdk.StreamDeletedError, what);
        assert.equal(error.type, it.sdk.ErrorType.STREAM_DELETED, what);
        assert.ok([stream, `$$${stream}`].includes(error.streamName), what);
    }
});

check("a tombstone is an event in $all, and needs no stream before it", async (it) => {
    for (const [count, state] of [
        [2, "any"],
        [2, 1n],
        [0, "any"],
        [0, "no_stream"],
    ]) {
        const stream = await it.fill(count);
        const { position } = await it.client.tombstoneStream(stream, expecting(state));
        const events = await inAll(it, stream);
        assert.equal(events.length, count + 1, `${state} on ${count} events`);
        assert.equal(events.at(-1).type, "$streamDeleted");
        assert.equal(events.at(-1).revision, REVISION_OF_A_TOMBSTONE);
        assert.deepEqual(events.at(-1).position, position);
    }
});

check("a deleted stream can still get a tombstone", async (it) => {
    const stream = await it.fill(1);
    await it.client.deleteStream(stream);
    await it.client.tombstoneStream(stream);
    await failure(it.read(stream), it.sdk.StreamDeletedError);
});

check("of many tombstones at once exactly one is written", async (it) => {
    const stream = await it.fill(1);
    const ends = await Promise.allSettled(upTo(20).map(() => it.client.tombstoneStream(stream)));
    const lost = ends.filter(({ status }) => status === "rejected");
    assert.equal(lost.length, 19);
    for (const { reason } of lost) assert.ok(reason instanceof it.sdk.StreamDeletedError, reason.stack);
});

end();
