/* A server with small limits: what is just allowed, what is not any more, and that clients hear which limit it
 * was. */
import { randomUUID } from "node:crypto";

import { connect, newStream, sdk, upTo } from "./lib/official.mjs";
import { identifier, proposal, Raw, status, trailersOf } from "./lib/raw.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";

const EVENT_BYTES_MAX = 10_000;
const APPEND_BYTES_MAX = 50_000;
const CONNECTIONS_MAX = 12;
const BY_APPEND = { credentials: { username: "nobody", password: "nothing" } };

const { check, newer, server, end } = await rig({
    words: [
        "--event-bytes-max",
        EVENT_BYTES_MAX,
        "--append-bytes-max",
        APPEND_BYTES_MAX,
        "--connections-max",
        CONNECTIONS_MAX,
    ],
});

function sized(it, bytes) {
    return it.sdk.binaryEvent({ type: "sized", data: new Uint8Array(bytes) });
}

check("an event up to the limit is taken, a larger one is not", async (it) => {
    for (const options of [{}, BY_APPEND]) {
        const stream = newStream("event");
        await it.append(stream, sized(it, EVENT_BYTES_MAX - 100), "any", options);
        const error = await failure(
            it.append(stream, sized(it, EVENT_BYTES_MAX + 1), "any", options),
            it.sdk.UnknownError,
        );
        assert.match(`${error.message} ${error._raw?.details}`, /MaximumAppendEventSizeExceeded|Event with Id/);
        assert.equal((await it.read(stream)).length, 1);
    }
});

check("metadata counts too", async (it) => {
    const half = new Uint8Array(EVENT_BYTES_MAX / 2 + 100);
    const event = it.sdk.binaryEvent({ type: "sized", data: half, metadata: half });
    await failure(it.append(newStream(), event), it.sdk.UnknownError);
});

check("an event that is too large is named in the trailers, with its size and the limit", async () => {
    const raw = new Raw(server);
    const id = randomUUID();
    const answer = await raw.clientStream("streams", "Append", [
        { options: { stream_identifier: identifier(newStream()), any: {} } },
        { proposed_message: proposal({ string: id }, { data: "x".repeat(EVENT_BYTES_MAX + 1) }) },
    ]);
    assert.equal(answer.error.code, status.INVALID_ARGUMENT);
    const trailers = trailersOf(answer);
    assert.equal(trailers.exception, "maximum-append-event-size-exceeded");
    assert.equal(trailers["maximum-append-event-size"], String(EVENT_BYTES_MAX));
    assert.equal(trailers["event-id"], id);
    assert.ok(Number(trailers["proposed-append-event-size"]) > EVENT_BYTES_MAX);
    raw.close();
});

check("an append up to the limit is taken, a larger one is told the limit", async (it) => {
    for (const options of [{}, BY_APPEND, { batchAppendSize: 1000 }]) {
        const stream = newStream("append");
        const events = (count) => upTo(count).map(() => sized(it, 9_000));
        await it.append(stream, events(5), "any", options);
        const error = await failure(
            it.append(stream, events(6), "any", options),
            it.sdk.MaxAppendSizeExceededError,
        );
        assert.equal(error.maxAppendSize, APPEND_BYTES_MAX);
        assert.equal((await it.read(stream)).length, 5);
    }
});

newer("multiStreamAppend and appendRecords have the same limits", async (it) => {
    const [stream, other] = [newStream("multi"), newStream("other")];
    const large = sized(it, EVENT_BYTES_MAX + 1);
    const request = (events) => [
        { streamName: other, events: [sized(it, 10)], expectedState: "any" },
        { streamName: stream, events, expectedState: "any" },
    ];
    const records = (events) => events.map((record) => ({ streamName: stream, record }));
    const many = upTo(6).map(() => sized(it, 9_000));
    const ways = [
        (events) => it.client.multiStreamAppend(request(events)),
        (events) => it.client.appendRecords(records(events)),
    ];
    for (const append of ways) {
        const error = await failure(append([large]), it.sdk.AppendRecordSizeExceededError);
        assert.equal(error.recordId, large.id);
        assert.equal(error.stream, stream);
        assert.equal(error.maxSize, EVENT_BYTES_MAX);
        assert.ok(error.size > EVENT_BYTES_MAX);
    }
    for (const append of ways) {
        const error = await failure(append(many), it.sdk.TransactionMaxSizeExceededError);
        assert.equal(error.maxSize, APPEND_BYTES_MAX);
        assert.ok(error.size > APPEND_BYTES_MAX);
    }
    await failure(it.read(stream), it.sdk.StreamNotFoundError);
    await failure(it.read(other), it.sdk.StreamNotFoundError);
});

check("connections over the limit are refused, and those inside of it do not notice", async () => {
    const settled = connect(server);
    const stream = await settled.fill(1);
    const crowd = upTo(CONNECTIONS_MAX + 5).map(() => connect(server, { defaultDeadline: 3000 }));
    const ends = await Promise.allSettled(crowd.map((it) => it.client.deleteStream(newStream("none"))));
    const refused = ends.filter(
        ({ reason }) => reason instanceof sdk.UnavailableError || reason instanceof sdk.DeadlineExceededError,
    ).length;
    const served = ends.filter(({ reason }) => reason instanceof sdk.WrongExpectedVersionError).length;
    assert.equal(refused + served, crowd.length);
    assert.ok(refused >= 5, `${refused} refused`);
    assert.equal((await settled.append(stream, settled.numbered(1), 0n)).nextExpectedRevision, 1n);
    /* Their connections stay until this process ends: dispose() of the clients ends calls only. So this is the
     * last test. */
    await Promise.all([...crowd, settled].map((it) => it.close()));
});

end();
