/* Appends: what is written, in which state of the stream, and what happens when the same is written twice.
 *
 * Both clients append by BatchAppend, one long call for everything; with credentials of a call's own they use
 * Append. The server has to decide the same on both ways, so most tests walk both. */
import { randomUUID } from "node:crypto";

import { connect, newStream, upTo, versionsOf } from "./lib/official.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";

const { check, server, end } = await rig();

/* Without TLS no credentials leave the client; that they are there is what chooses the call. */
const BY_BATCH = {};
const BY_APPEND = { credentials: { username: "nobody", password: "nothing" } };
const WAYS = [
    ["BatchAppend", BY_BATCH],
    ["Append", BY_APPEND],
];

function bothWays(sentence, body) {
    for (const [name, options] of WAYS) check(`${sentence}, by ${name}`, (it) => body(it, options));
}

bothWays("a JSON event comes back as it was written", async (it, options) => {
    const stream = newStream("json");
    const event = it.sdk.jsonEvent({
        type: "order-placed",
        data: { id: 17, lines: [{ sku: "a", count: 2 }, null], paid: false, text: 'quote " and \\ and \n' },
        metadata: { $correlationId: "c-1", tries: 3 },
    });
    const before = Date.now();
    const result = await it.append(stream, event, "any", options);
    const after = Date.now();

    assert.equal(result.success, true);
    assert.equal(result.nextExpectedRevision, 0n);
    assert.equal(result.position.commit, result.position.prepare);
    const [{ event: read, link, commitPosition }] = await it.read(stream);
    assert.equal(link, undefined);
    assert.equal(read.streamId, stream);
    assert.equal(read.id, event.id);
    assert.equal(read.type, "order-placed");
    assert.equal(read.revision, 0n);
    assert.equal(read.isJson, true);
    assert.deepEqual(read.data, event.data);
    assert.deepEqual(read.metadata, event.metadata);
    assert.deepEqual(read.position, result.position);
    assert.equal(commitPosition, result.position.commit);
    /* The bridge knows whole seconds. */
    assert.ok(read.created >= before - 1000 && read.created <= after + 1000, `${read.created}`);
});

bothWays("a binary event comes back byte by byte, and so does binary metadata", async (it, options) => {
    const stream = newStream("binary");
    const every = Uint8Array.from(upTo(256));
    await it.append(
        stream,
        it.sdk.binaryEvent({ type: "bytes", data: every, metadata: every.slice(128) }),
        "any",
        options,
    );
    const [{ event }] = await it.read(stream);
    assert.equal(event.isJson, false);
    assert.deepEqual(Buffer.from(event.data), Buffer.from(every));
    assert.deepEqual(Buffer.from(event.metadata), Buffer.from(every.slice(128)));
});

bothWays("data may be empty, an array, a text; metadata may be left out", async (it, options) => {
    const stream = newStream("shapes");
    await it.append(
        stream,
        [
            it.sdk.binaryEvent({ type: "empty", data: new Uint8Array(0) }),
            it.sdk.jsonEvent({ type: "array", data: [1, [2, 3], {}] }),
            it.sdk.jsonEvent({ type: "text", data: "only a text" }),
            it.sdk.jsonEvent({ type: "object", data: {} }),
        ],
        "any",
        options,
    );
    const events = (await it.read(stream)).map(({ event }) => event);
    assert.deepEqual(
        events.map(({ type }) => type),
        ["empty", "array", "text", "object"],
    );
    assert.equal(events[0].data.length, 0);
    assert.deepEqual(
        events.slice(1).map(({ data }) => data),
        [[1, [2, 3], {}], "only a text", {}],
    );
    assert.deepEqual(
        events.map(({ metadata }) => metadata),
        [undefined, undefined, undefined, undefined],
    );
});

bothWays("an array is written in order, and the answer is about its last event", async (it, options) => {
    const stream = newStream("array");
    const result = await it.append(stream, it.numbered(500), "no_stream", options);
    const events = (await it.read(stream)).map(({ event }) => event);
    assert.equal(result.nextExpectedRevision, 499n);
    assert.deepEqual(
        events.map(({ data }) => data.n),
        upTo(500),
    );
    assert.deepEqual(
        events.map(({ revision }) => Number(revision)),
        upTo(500),
    );
    assert.deepEqual(events.at(-1).position, result.position);
    for (let i = 1; i < events.length; i++)
        assert.ok(events[i].position.commit > events[i - 1].position.commit, `position of event ${i}`);
});

bothWays("an append of nothing succeeds and tells where the stream ends", async (it, options) => {
    const stream = await it.fill(3);
    const result = await it.append(stream, [], "any", options);
    assert.equal(result.success, true);
    assert.equal(result.nextExpectedRevision, 2n);
    assert.equal((await it.read(stream)).length, 3);
    await failure(it.append(stream, [], 7n, options), it.sdk.WrongExpectedVersionError);
    assert.equal((await it.append(newStream(), [], "any", options)).success, true);
});

/* [events there, expected state, what is wrong about it: undefined when it is right] */
const EXPECTATIONS = [
    [0, "any"],
    [0, "no_stream"],
    [0, "stream_exists", { expected: "stream_exists", actual: "no_stream" }],
    [0, 0n, { expected: 0n, actual: "no_stream" }],
    [0, 5n, { expected: 5n, actual: "no_stream" }],
    [3, "any"],
    [3, "stream_exists"],
    [3, "no_stream", { expected: "no_stream", actual: 2n }],
    [3, 1n, { expected: 1n, actual: 2n }],
    [3, 2n],
    [3, 3n, { expected: 3n, actual: 2n }],
];

bothWays("an append happens only in the state that it expects", async (it, options) => {
    for (const [count, state, wrong] of EXPECTATIONS) {
        const stream = await it.fill(count);
        const what = `${state} on ${count} events`;
        const appending = it.append(stream, it.numbered(2, { first: 100 }), state, options);
        if (!wrong) {
            assert.equal((await appending).nextExpectedRevision, BigInt(count + 1), what);
            assert.deepEqual(await it.numbers(stream), [...upTo(count), 100, 101], what);
            continue;
        }
        const error = await failure(appending, it.sdk.WrongExpectedVersionError, what);
        assert.deepEqual(versionsOf(error), { stream, ...wrong }, what);
        if (count > 0) assert.deepEqual(await it.numbers(stream), upTo(count), what);
        else await failure(it.read(stream), it.sdk.StreamNotFoundError, what);
    }
});

check("throwOnAppendFailure=false turns a wrong state into a result", async () => {
    const it = connect(server, { throwOnAppendFailure: false });
    const stream = await it.fill(3);
    for (const [name, options] of WAYS) {
        const { success, nextExpectedRevision, position } = await it.append(
            stream,
            it.numbered(1),
            7n,
            options,
        );
        assert.equal(success, false, name);
        assert.equal(position, undefined, name);
        /* By BatchAppend both clients give 1 here whatever the revision is: they ask whether there is one, not
         * which. */
        if (options === BY_APPEND) assert.equal(nextExpectedRevision, 2n, name);
        const missing = await it.append(newStream(), it.numbered(1), 7n, options);
        assert.equal(missing.success, false, name);
        assert.equal(missing.nextExpectedRevision, -1n, name);
    }
    await it.close();
});

/* [state of the first append, state of its repetition] */
const REPETITIONS = [
    ["any", "any"],
    ["no_stream", "no_stream"],
    ["no_stream", "any"],
    ["no_stream", "stream_exists"],
];

bothWays(
    "the same append again is answered as the first, and nothing is written twice",
    async (it, options) => {
        for (const [first, again] of REPETITIONS) {
            const stream = newStream("twice");
            const events = it.numbered(3);
            const result = await it.append(stream, events, first, options);
            assert.deepEqual(
                await it.append(stream, events, again, options),
                result,
                `${first}, then ${again}`,
            );
            assert.deepEqual(await it.numbers(stream), [0, 1, 2], `${first}, then ${again}`);
        }
    },
);

bothWays("a repetition at an exact revision is found however much came behind it", async (it, options) => {
    const stream = await it.fill(2);
    const events = it.numbered(2, { first: 2 });
    const result = await it.append(stream, events, 1n, options);
    await it.append(stream, it.numbered(5, { first: 4 }), "any", options);
    assert.deepEqual(await it.append(stream, events, 1n, options), result);
    assert.deepEqual(await it.numbers(stream), upTo(9));
});

bothWays("an append that repeats only a part of another is refused", async (it, options) => {
    const stream = newStream("part");
    const events = it.numbered(3);
    await it.append(stream, events, "no_stream", options);
    const longer = [...events, ...it.numbered(1, { first: 3 })];
    await failure(it.append(stream, longer, "no_stream", options), it.sdk.WrongExpectedVersionError);
    await failure(it.append(stream, longer, "any", options), it.sdk.WrongExpectedVersionError);
    assert.deepEqual(await it.numbers(stream), [0, 1, 2]);
});

bothWays("it is the id that makes a repetition: other data under it is not written", async (it, options) => {
    const stream = newStream("id");
    const id = randomUUID();
    await it.append(stream, it.sdk.jsonEvent({ id, type: "first", data: { n: 1 } }), "any", options);
    const again = await it.append(
        stream,
        it.sdk.jsonEvent({ id, type: "second", data: { n: 2 } }),
        "any",
        options,
    );
    assert.equal(again.nextExpectedRevision, 0n);
    assert.deepEqual(await it.numbers(stream), [1]);
});

bothWays("an id may occur twice in one append, and in another stream", async (it, options) => {
    const [here, there] = [newStream("here"), newStream("there")];
    const id = randomUUID();
    const twins = [1, 2].map((n) => it.sdk.jsonEvent({ id, type: "twin", data: { n } }));
    await it.append(here, twins, "any", options);
    await it.append(there, twins[0], "any", options);
    assert.deepEqual(await it.numbers(here), [1, 2]);
    assert.deepEqual(await it.numbers(there), [1]);
});

bothWays("of many appends that expect the same revision exactly one wins", async (it, options) => {
    const stream = await it.fill(1);
    const tries = upTo(50).map((n) => it.append(stream, it.numbered(1, { first: 100 + n }), 0n, options));
    const ends = await Promise.allSettled(tries);
    const lost = ends.filter(({ status }) => status === "rejected").map(({ reason }) => reason);
    assert.equal(lost.length, 49);
    for (const error of lost) assert.deepEqual(versionsOf(error), { stream, expected: 0n, actual: 1n });
    assert.equal((await it.read(stream)).length, 2);
});

bothWays("what is appended at once stays together", async (it, options) => {
    const stream = newStream("together");
    const size = 7;
    const results = await Promise.all(
        upTo(40).map((n) => it.append(stream, it.numbered(size, { first: n * size }), "any", options)),
    );
    const numbers = await it.numbers(stream);
    const revisions = results
        .map(({ nextExpectedRevision }) => Number(nextExpectedRevision))
        .sort((a, b) => a - b);
    assert.deepEqual(
        revisions,
        upTo(40).map((n) => n * size + size - 1),
    );
    for (let start = 0; start < numbers.length; start += size)
        assert.deepEqual(numbers.slice(start, start + size), upTo(size, numbers[start]));
    assert.equal(new Set(numbers).size, 40 * size);
});

check("a batch that is cut into many messages is still one append", async (it) => {
    const stream = newStream("cut");
    const small = { batchAppendSize: 64 }; /* bytes: an event or less in each message */
    const results = await Promise.all(
        upTo(10).map((n) => it.append(stream, it.numbered(30, { first: n * 30 }), "any", small)),
    );
    const numbers = await it.numbers(stream);
    assert.equal(numbers.length, 300);
    for (let start = 0; start < 300; start += 30)
        assert.deepEqual(numbers.slice(start, start + 30), upTo(30, numbers[start]));
    assert.equal(Math.max(...results.map(({ nextExpectedRevision }) => Number(nextExpectedRevision))), 299);
    await failure(it.append(stream, it.numbered(30), 7n, small), it.sdk.WrongExpectedVersionError);
});

/* [stream, event type] */
const BAD_NAMES = [
    ["", "fine"],
    ["$all", "fine"],
    ["$$", "fine"],
    ["fine", ""],
];

bothWays("a name that cannot be is refused, and the next append works", async (it, options) => {
    for (const [stream, type] of BAD_NAMES) {
        const event = it.sdk.jsonEvent({ type, data: {} });
        const error = await failure(it.append(stream, event, "any", options), Error, `${stream} ${type}`);
        assert.notEqual(error.type, "unavailable", `${stream} ${type}: ${error.message}`);
    }
    const stream = await it.fill(1);
    assert.equal((await it.append(stream, it.numbered(1), 0n, options)).nextExpectedRevision, 1n);
});

check("an append after those of another connection sees them", async (it) => {
    const other = connect(server);
    const stream = await it.fill(1);
    await other.append(stream, other.numbered(1, { first: 1 }), 0n);
    await failure(it.append(stream, it.numbered(1), 0n), it.sdk.WrongExpectedVersionError);
    await it.append(stream, it.numbered(1, { first: 2 }), 1n);
    assert.deepEqual(await other.numbers(stream), [0, 1, 2]);
    await other.close();
});

end();
