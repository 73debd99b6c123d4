/* Appends to several streams at once: multiStreamAppend and appendRecords of the newer client (version 2 of the
 * protocol), and what the older one sees of them. */
import { newStream, sdk, upTo, versionsOf } from "./lib/official.mjs";
import { Other } from "./lib/other.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";

const { newer, older, server, end } = await rig();

const MB = 1024 * 1024;
const { jsonEvent, binaryEvent } = sdk;

function request(streamName, events, expectedState = "any") {
    return { streamName, events, expectedState };
}

async function nothingIn(it, ...streams) {
    for (const stream of streams) await failure(it.read(stream), it.sdk.StreamNotFoundError, stream);
}

/* --- multiStreamAppend --- */

newer("several streams are appended to at once, and each answer says where it ends", async (it) => {
    const [fresh, old, bytes] = [newStream("a"), await it.fill(3), newStream("c")];
    const result = await it.client.multiStreamAppend([
        request(fresh, it.numbered(2), "no_stream"),
        request(old, it.numbered(4, { first: 3 }), 2n),
        request(bytes, [binaryEvent({ type: "bytes", data: Uint8Array.from(upTo(256)) })]),
    ]);
    assert.deepEqual(result.responses, [
        { streamName: fresh, revision: 1n },
        { streamName: old, revision: 6n },
        { streamName: bytes, revision: 0n },
    ]);
    assert.deepEqual(await it.numbers(fresh), [0, 1]);
    assert.deepEqual(await it.numbers(old), upTo(7));
    const [{ event }] = await it.read(bytes);
    assert.deepEqual([...event.data], upTo(256));
    assert.equal(event.isJson, false);
    assert.equal(event.position.commit, result.position);
});

newer("what version 2 wrote is read by version 1 with its properties as metadata", async (it) => {
    const stream = newStream("properties");
    const event = jsonEvent({ type: "grüße", data: { a: [1, 2] }, metadata: { colour: "röd", empty: "" } });
    await it.client.multiStreamAppend([
        request(stream, [event, binaryEvent({ type: "b", data: new Uint8Array(0) })]),
    ]);
    const other = new Other(server);
    for (const events of [
        (await it.read(stream)).map((resolved) => resolved.event),
        await other.do("read", stream),
    ]) {
        const [first, second] = events;
        assert.equal(first.id, event.id);
        assert.equal(first.type, "grüße");
        assert.equal(first.isJson, true);
        assert.deepEqual(first.data, { a: [1, 2] });
        const described = { "$schema.name": "grüße", "$schema.format": "Json" };
        assert.deepEqual(first.metadata, { colour: "röd", empty: "", ...described });
        assert.deepEqual(second.metadata, { "$schema.name": "b", "$schema.format": "Bytes" });
    }
    await other.close();
});

/* [state, error's view of it], for a stream of 3 events that expects something else */
const WRONG_STATES = [
    ["no_stream", 3, { expected: "no_stream", actual: 2n }],
    [1n, 3, { expected: 1n, actual: 2n }],
    [9n, 3, { expected: 9n, actual: 2n }],
    [0n, 0, { expected: 0n, actual: "no_stream" }],
    ["stream_exists", 0, { expected: "stream_exists", actual: "no_stream" }],
];

newer("one wrong state, and nothing is written anywhere", async (it) => {
    for (const [state, count, wrong] of WRONG_STATES) {
        const [before, guilty, behind] = [newStream("before"), await it.fill(count), newStream("behind")];
        const requests = [
            request(before, it.numbered(1)),
            request(guilty, it.numbered(1), state),
            request(behind, it.numbered(1)),
        ];
        const error = await failure(
            it.client.multiStreamAppend(requests),
            it.sdk.WrongExpectedVersionError,
            `${state}`,
        );
        assert.deepEqual(versionsOf(error), { stream: guilty, ...wrong });
        await nothingIn(it, before, behind);
        if (count > 0) assert.deepEqual(await it.numbers(guilty), upTo(count));
    }
});

newer("a tombstone refuses all of it", async (it) => {
    const [dead, other] = [await it.fill(1), newStream("other")];
    await it.client.tombstoneStream(dead);
    const requests = [request(other, it.numbered(1)), request(dead, it.numbered(1))];
    const error = await failure(it.client.multiStreamAppend(requests), it.sdk.StreamTombstonedError);
    assert.equal(error.stream, dead);
    assert.equal(error.type, it.sdk.ErrorType.STREAM_TOMBSTONED);
    await nothingIn(it, other);
});

newer("a stream may come once in it", async (it) => {
    const stream = newStream("twice");
    const requests = [request(stream, it.numbered(1)), request(stream, it.numbered(1))];
    const error = await failure(it.client.multiStreamAppend(requests), Error);
    assert.equal(error.code, 10, error.message); /* ABORTED */
    await nothingIn(it, stream);
});

newer("an append of no streams is refused, and does not hang", async (it) => {
    const error = await failure(it.client.multiStreamAppend([]), Error);
    assert.equal(error.code, 9, error.message); /* FAILED_PRECONDITION */
});

newer("a record that is too large names itself", async (it) => {
    const [small, large] = [newStream("small"), newStream("large")];
    const event = binaryEvent({ type: "large", data: new Uint8Array(17 * MB) });
    const requests = [request(small, it.numbered(1)), request(large, [event])];
    const error = await failure(it.client.multiStreamAppend(requests), it.sdk.AppendRecordSizeExceededError);
    assert.equal(error.stream, large);
    assert.equal(error.recordId, event.id);
    assert.ok(error.size >= 17 * MB && error.maxSize < 17 * MB, `${error.size} ${error.maxSize}`);
    await nothingIn(it, small, large);
});

newer("records that are too large in all say what the limit is", async (it) => {
    const streams = upTo(8).map(() => newStream("part"));
    const requests = streams.map((stream) =>
        request(
            stream,
            upTo(5).map(() => binaryEvent({ type: "part", data: new Uint8Array(MB) })),
        ),
    );
    const error = await failure(it.client.multiStreamAppend(requests), it.sdk.TransactionMaxSizeExceededError);
    assert.ok(error.size > error.maxSize && error.maxSize >= 16 * MB, `${error.size} ${error.maxSize}`);
    await nothingIn(it, ...streams);
});

newer("a hundred streams at once are one commit", async (it) => {
    const streams = upTo(100).map(() => newStream("hundred"));
    const { responses, position } = await it.client.multiStreamAppend(
        streams.map((stream, n) => request(stream, it.numbered(3, { first: n * 3 }), "no_stream")),
    );
    assert.deepEqual(
        responses.map(({ revision }) => revision),
        streams.map(() => 2n),
    );
    const all = (await it.readAll()).filter(({ event }) => streams.includes(event.streamId));
    assert.deepEqual(
        all.map(({ event }) => event.data.n),
        upTo(300),
    );
    assert.equal(all.at(-1).event.position.commit, position);
});

newer("of many that want the same two streams, in whatever order, exactly one wins", async (it) => {
    const [left, right] = [newStream("left"), newStream("right")];
    const ends = await Promise.allSettled(
        upTo(30).map((n) => {
            const pair = [
                request(left, it.numbered(1), "no_stream"),
                request(right, it.numbered(1), "no_stream"),
            ];
            return it.client.multiStreamAppend(n % 2 ? pair : pair.reverse());
        }),
    );
    assert.equal(ends.filter(({ status }) => status === "fulfilled").length, 1);
    for (const { reason } of ends.filter(({ status }) => status === "rejected"))
        assert.ok(reason instanceof it.sdk.WrongExpectedVersionError, reason.stack);
    assert.deepEqual([await it.numbers(left), await it.numbers(right)], [[0], [0]]);
});

/* --- appendRecords --- */

function record(streamName, n, type = "numbered") {
    return { streamName, record: jsonEvent({ type, data: { n } }) };
}

function condition(streamName, expectedState) {
    return { type: sdk.STREAM_STATE, streamName, expectedState };
}

newer("records of several streams are written in the order of the request", async (it) => {
    const [left, right] = [newStream("left"), newStream("right")];
    const turns = [left, right, right, left, right];
    const { responses, position } = await it.client.appendRecords(turns.map((stream, n) => record(stream, n)));
    const ends = new Map(responses.map(({ streamName, revision }) => [streamName, revision]));
    assert.deepEqual(
        ends,
        new Map([
            [left, 1n],
            [right, 2n],
        ]),
    );
    const all = (await it.readAll()).filter(({ event }) => turns.includes(event.streamId));
    assert.deepEqual(
        all.map(({ event }) => [event.streamId, event.data.n]),
        turns.map((stream, n) => [stream, n]),
    );
    assert.equal(all.at(-1).event.position.commit, position);
    assert.deepEqual(await it.numbers(right), [1, 2, 4]);
});

newer("checks that hold let the records through, also checks of other streams", async (it) => {
    const [target, other, missing] = [await it.fill(2), await it.fill(3), newStream("missing")];
    const checks = [condition(target, 1n), condition(other, "stream_exists"), condition(missing, "no_stream")];
    const { responses } = await it.client.appendRecords([record(target, 2)], checks);
    assert.deepEqual(responses, [{ streamName: target, revision: 2n }]);
    await nothingIn(it, missing);
});

newer("every check that does not hold is told, and nothing is written", async (it) => {
    const [target, old, missing] = [newStream("target"), await it.fill(3), newStream("missing")];
    const [deleted, dead] = [await it.fill(1), await it.fill(1)];
    await it.client.deleteStream(deleted);
    await it.client.tombstoneStream(dead);
    const checks = [
        condition(target, "no_stream") /* holds */,
        condition(old, 1n),
        condition(missing, "stream_exists"),
        condition(deleted, "stream_exists"),
        condition(dead, 0n),
    ];
    const error = await failure(
        it.client.appendRecords([record(target, 0), record(old, 0)], checks),
        it.sdk.AppendConsistencyViolationError,
    );
    assert.equal(error.type, it.sdk.ErrorType.APPEND_CONSISTENCY_VIOLATION);
    assert.deepEqual(error.violations, [
        { checkIndex: 1, streamName: old, expectedState: 1n, actualState: 2n },
        { checkIndex: 2, streamName: missing, expectedState: "stream_exists", actualState: "no_stream" },
        { checkIndex: 3, streamName: deleted, expectedState: "stream_exists", actualState: -5n },
        { checkIndex: 4, streamName: dead, expectedState: 0n, actualState: -6n },
    ]);
    await nothingIn(it, target);
    assert.equal((await it.read(old)).length, 3);
});

newer("what cannot be checked is refused: any state, and a stream twice", async (it) => {
    const stream = newStream("odd");
    for (const checks of [
        [condition(stream, "any")],
        [condition(stream, "no_stream"), condition(stream, "no_stream")],
    ]) {
        const error = await failure(it.client.appendRecords([record(stream, 0)], checks), Error);
        assert.equal(error.code, 3, error.message); /* INVALID_ARGUMENT */
    }
    const error = await failure(it.client.appendRecords([]), Error);
    assert.notEqual(error.type, "unavailable", error.message);
    await nothingIn(it, stream);
});

newer("records to a stream with a tombstone are refused", async (it) => {
    const [dead, other] = [await it.fill(1), newStream("other")];
    await it.client.tombstoneStream(dead);
    const error = await failure(
        it.client.appendRecords([record(other, 0), record(dead, 0)]),
        it.sdk.StreamTombstonedError,
    );
    assert.equal(error.stream, dead);
    await nothingIn(it, other);
});

newer("a record of appendRecords that is too large names itself", async (it) => {
    const stream = newStream("large");
    const large = { streamName: stream, record: binaryEvent({ type: "large", data: new Uint8Array(17 * MB) }) };
    const error = await failure(it.client.appendRecords([large]), it.sdk.AppendRecordSizeExceededError);
    assert.equal(error.recordId, large.record.id);
    await nothingIn(it, stream);
});

newer("of many records under the same check exactly one is written", async (it) => {
    const [guard, target] = [await it.fill(1), newStream("target")];
    const tries = upTo(30).map((n) =>
        it.client.appendRecords([record(guard, n), record(target, n)], [condition(guard, 0n)]),
    );
    const ends = await Promise.allSettled(tries);
    assert.equal(ends.filter(({ status }) => status === "fulfilled").length, 1);
    assert.equal((await it.read(target)).length, 1);
    assert.equal((await it.read(guard)).length, 2);
});

older("the records of the newer client are events like any other for the older", async (it) => {
    const other = new Other(server);
    const stream = newStream("shared");
    await other.do("records", stream, 2);
    await it.append(stream, it.numbered(1, { first: 2 }), 1n);
    await failure(other.do("multi", stream, 1, "no_stream"));
    await other.do("multi", stream, 1, 2n);
    assert.deepEqual(await it.numbers(stream), [0, 1, 2, 0]);
    await other.close();
});

end();
