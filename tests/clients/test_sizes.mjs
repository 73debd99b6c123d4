/* Large events, long and foreign names, many streams, and the errors at the limits. */
import { randomBytes } from "node:crypto";

import { newStream, upTo } from "./lib/official.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";
import { inParallel } from "./lib/wait.mjs";
import { watch } from "./lib/watch.mjs";

const MB = 1024 * 1024;
const BY_APPEND = { credentials: { username: "nobody", password: "nothing" } };

const { check, end } = await rig();

/* Not all of one value, so that a byte in the wrong place is seen; the same for the same size. */
function pattern(bytes) {
    const data = Buffer.alloc(bytes);
    for (let i = 0; i + 4 <= bytes; i += 4) data.writeUInt32LE(Math.imul(i, 2654435761) >>> 0, i);
    return data;
}

function sameBytes(actual, expected, what) {
    assert.ok(Buffer.from(actual.buffer, actual.byteOffset, actual.length).equals(expected), what);
}

check("events of many megabytes come back whole, by read and by subscription", async (it) => {
    const stream = newStream("large");
    const sizes = [MB - 1, MB, MB + 1, 3 * MB, 8 * MB, 15 * MB];
    const subscription = watch(it.client.subscribeToStream(stream));
    for (const [i, bytes] of sizes.entries()) {
        const event = it.sdk.binaryEvent({ type: "large", data: pattern(bytes) });
        await it.append(stream, event, "any", i % 2 ? BY_APPEND : {});
    }
    const read = await it.read(stream);
    await subscription.untilCount(sizes.length);
    for (const [i, bytes] of sizes.entries()) {
        sameBytes(read[i].event.data, pattern(bytes), `read of ${bytes}`);
        sameBytes(subscription.events[i].event.data, pattern(bytes), `delivery of ${bytes}`);
    }
    await subscription.stop();
});

/* While a reader takes nothing, the server lets go of what is large and comes back to it later: at the right
 * place. */
check("a slow reader of large events gets each of them once, in any direction", async (it) => {
    const stream = newStream("slow");
    const data = (n) => pattern(65_537 + (n % 7) * 50_000);
    const events = (first) => upTo(20, first).map((n) => it.sdk.binaryEvent({ type: `${n}`, data: data(n) }));
    const { position } = await it.append(stream, events(0));
    for (const first of [20, 40, 60]) await it.append(stream, events(first));
    const slowly = async (reading) => {
        const types = [];
        for await (const { event } of reading) {
            if (event.streamId === stream) types.push(Number(event.type));
            for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
        }
        return types;
    };
    const back = { direction: "backwards" };
    const reads = [
        [it.client.readStream(stream), upTo(80)],
        [it.client.readStream(stream, { ...back, fromRevision: "end" }), upTo(80).reverse()],
        [it.client.readAll({ fromPosition: position }), upTo(61, 19)],
        [it.client.readAll({ ...back, fromPosition: "end", maxCount: 80 }), upTo(80).reverse()],
    ];
    const found = await Promise.all(reads.map(([reading]) => slowly(reading)));
    for (const [n, [, expected]] of reads.entries()) assert.deepEqual(found[n], expected, `read ${n}`);
});

check("JSON of more than a megabyte, and metadata as large, come back whole", async (it) => {
    const stream = newStream("large");
    const data = { text: "grüße ".repeat(300_000), numbers: upTo(100_000) };
    const metadata = { text: "🚀".repeat(300_000) };
    await it.append(stream, it.sdk.jsonEvent({ type: "large", data, metadata }));
    const [{ event }] = await it.read(stream);
    assert.deepEqual(event.data, data);
    assert.deepEqual(event.metadata, metadata);
});

check("an append of many megabytes in all is one append", async (it) => {
    const stream = newStream("sum");
    const events = upTo(20).map(() => it.sdk.binaryEvent({ type: "part", data: pattern(MB) }));
    const { nextExpectedRevision } = await it.append(stream, events, "no_stream");
    assert.equal(nextExpectedRevision, 19n);
    const read = await it.read(stream);
    assert.deepEqual(
        read.map(({ event }) => event.data.length),
        upTo(20).map(() => MB),
    );
});

check("an append of ten thousand events is one append", async (it) => {
    const stream = newStream("many");
    for (const [options, last] of [
        [{}, 9_999n],
        [BY_APPEND, 19_999n],
    ]) {
        const { nextExpectedRevision } = await it.append(stream, it.numbered(10_000), "any", options);
        assert.equal(nextExpectedRevision, last);
    }
    assert.deepEqual(await it.numbers(stream), [...upTo(10_000), ...upTo(10_000)]);
});

check("an event that is too large is refused, and the next append works", async (it) => {
    const stream = newStream("too-large");
    const event = it.sdk.binaryEvent({ type: "large", data: randomBytes(17 * MB) });
    for (const options of [{}, BY_APPEND]) {
        await failure(it.append(stream, event, "any", options), Error);
        assert.equal((await it.append(newStream(), it.numbered(1), "any", options)).nextExpectedRevision, 0n);
    }
    await failure(it.read(stream), it.sdk.StreamNotFoundError);
});

check("an append that is too large in all says what the limit is, and writes nothing", async (it) => {
    const stream = newStream("too-large");
    const part = pattern(MB);
    const events = upTo(40).map(() => it.sdk.binaryEvent({ type: "part", data: part }));
    for (const options of [{}, BY_APPEND]) {
        const error = await failure(
            it.append(stream, events, "any", options),
            it.sdk.MaxAppendSizeExceededError,
        );
        assert.equal(error.type, it.sdk.ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED);
        assert.ok(error.maxAppendSize >= 16 * MB && error.maxAppendSize < 40 * MB, `${error.maxAppendSize}`);
        assert.equal((await it.append(newStream(), it.numbered(1), "any", options)).nextExpectedRevision, 0n);
    }
    await failure(it.read(stream), it.sdk.StreamNotFoundError);
});

/* --- names --- */

const NAMES = [
    "grüße-Straße",
    "日本語のストリーム",
    "имя потока",
    "🚀🚀-emoji-👩‍👩‍👧",
    "e\u0301 is not \u00e9",
    "\u200freversed",
    "with blanks and\ttabs",
    "slashes/and\\back",
    "percent%20sign%",
    "quote\"and'quote",
    "a::b",
    "x@y",
    "new\nline",
    "CaseMatters",
    "casematters",
    "-",
];

check("names are any text: streams, types, data and metadata", async (it) => {
    const mark = newStream();
    for (const name of NAMES) {
        const stream = `${name}${mark}`;
        await it.append(
            stream,
            it.sdk.jsonEvent({ type: name, data: { [name]: name }, metadata: { [name]: name } }),
        );
        const [{ event }] = await it.read(stream);
        assert.equal(event.streamId, stream);
        assert.equal(event.type, name);
        assert.deepEqual(event.data, { [name]: name });
        assert.deepEqual(event.metadata, { [name]: name });
    }
    const all = await it.readAll();
    const found = all.map(({ event }) => event.streamId).filter((name) => name.endsWith(mark));
    assert.deepEqual(
        found,
        NAMES.map((name) => `${name}${mark}`),
    );
});

check("errors name streams with foreign names", async (it) => {
    for (const name of NAMES) {
        const stream = `${name}${newStream()}`;
        const missing = await failure(it.read(stream), it.sdk.StreamNotFoundError, name);
        assert.equal(missing.streamName, stream);
        await it.append(stream, it.numbered(1));
        const wrong = await failure(
            it.append(stream, it.numbered(1), 5n),
            it.sdk.WrongExpectedVersionError,
            name,
        );
        assert.equal(wrong.streamName, stream);
        await failure(
            it.client.deleteStream(stream, { expectedRevision: 5n }),
            it.sdk.WrongExpectedVersionError,
            name,
        );
        await it.client.tombstoneStream(stream);
        await failure(it.read(stream), it.sdk.StreamDeletedError, name);
        await failure(it.append(stream, it.numbered(1)), it.sdk.StreamDeletedError, name);
        await failure(it.append(stream, it.numbered(1), "any", BY_APPEND), it.sdk.StreamDeletedError, name);
    }
});

const STREAM_NAME_BYTES_MAX = 1024; /* with the $$ of its metadata */

check("the longest name works, one byte more does not", async (it) => {
    const longest = newStream().padEnd(STREAM_NAME_BYTES_MAX - 2, "x");
    await it.append(longest, it.numbered(1));
    await it.client.setStreamMetadata(longest, { maxCount: 5 });
    assert.deepEqual(await it.numbers(longest), [0]);
    assert.equal((await it.client.getStreamMetadata(longest)).metadata.maxCount, 5);
    for (const options of [{}, BY_APPEND]) {
        const longer = "y".repeat(STREAM_NAME_BYTES_MAX + 1);
        await failure(it.append(longer, it.numbered(1), "any", options), Error);
        const type = "z".repeat(STREAM_NAME_BYTES_MAX + 1);
        await failure(it.append(newStream(), it.sdk.jsonEvent({ type, data: {} }), "any", options), Error);
    }
    assert.equal((await it.append(longest, it.numbered(1), 0n)).nextExpectedRevision, 1n);
});

/* --- many streams --- */

check("ten thousand streams are ten thousand streams", async (it) => {
    const prefix = newStream("ten-thousand");
    const names = upTo(10_000).map((n) => `${prefix}/${n}`);
    const results = await inParallel(
        names.map((name, n) => () => it.append(name, it.numbered(1, { first: n }), "no_stream")),
        500,
    );
    assert.ok(results.every(({ success, nextExpectedRevision }) => success && nextExpectedRevision === 0n));
    const all = (await it.readAll()).filter(({ event }) => event.streamId.startsWith(`${prefix}/`));
    assert.deepEqual(
        all.map(({ event }) => event.data.n).sort((a, b) => a - b),
        upTo(10_000),
    );
    assert.ok(
        all.every(({ event }) => event.streamId === `${prefix}/${event.data.n}` && event.revision === 0n),
    );
    const sample = upTo(200).map((n) => n * 50);
    const reads = await inParallel(
        sample.map((n) => () => it.numbers(names[n])),
        50,
    );
    assert.deepEqual(
        reads,
        sample.map((n) => [n]),
    );
});

end();
