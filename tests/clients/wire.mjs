/* The wire itself: what the official Node clients never send but others do, and every message and trailer of an
 * answer. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";

import { newStream, upTo } from "./lib/official.mjs";
import { framed, identifier, proposal, Raw, readOptions, status, structured, trailersOf } from "./lib/raw.mjs";
import { assert, rig } from "./lib/rig.mjs";
import { within } from "./lib/wait.mjs";

const { check, server, it, end } = await rig();
const raw = new Raw(server);

function appendWith(stream, proposals, expected = { any: {} }) {
    const requests = [{ options: { stream_identifier: identifier(stream), ...expected } }];
    for (const message of proposals) requests.push({ proposed_message: message });
    return raw.clientStream("streams", "Append", requests);
}

function read(stream, changes, options) {
    return raw.serverStream("streams", "Read", readOptions(stream, changes), options);
}

const kinds = (responses) => responses.map(({ content }) => content);

/* --- ids --- */

const IDS = [
    "00010203-0405-0607-0809-0a0b0c0d0e0f",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "80000000-0000-0000-8000-000000000000",
    "7fffffff-ffff-ffff-7fff-ffffffffffff",
    "00000000-0000-0000-0000-000000000001",
];

check("ids go in as texts and as numbers, and come out as what was asked for", async () => {
    for (const form of [(id) => ({ string: id }), structured]) {
        const stream = newStream("ids");
        const { response, error } = await appendWith(
            stream,
            IDS.map((id) => proposal(form(id))),
        );
        assert.equal(error, null);
        assert.equal(response.result, "success");
        const texts = await read(stream);
        assert.deepEqual(
            texts.responses.map(({ event }) => event.event.id.string),
            IDS,
        );
        const numbers = await read(stream, { uuid_option: { structured: {} } });
        assert.deepEqual(
            numbers.responses.map(({ event }) => event.event.id.structured),
            IDS.map((id) => structured(id).structured),
        );
    }
});

check("an id in capital letters is the same id, and none at all is refused", async () => {
    const stream = newStream("ids");
    const id = randomUUID();
    await appendWith(stream, [proposal({ string: id })], { no_stream: {} });
    const again = await appendWith(stream, [proposal({ string: id.toUpperCase() })], { no_stream: {} });
    assert.equal(again.response.success.current_revision, "0");
    for (const bad of [
        null,
        { string: "" },
        { string: "not an id" },
        { string: "00000000-0000-0000-0000-000000000000" },
    ]) {
        const { error } = await appendWith(newStream(), [proposal(bad)]);
        assert.equal(error?.code, status.INVALID_ARGUMENT, JSON.stringify(bad));
    }
});

check("a batch append answers in the form of its correlation id, exactly once for each", async () => {
    const stream = newStream("batch");
    const ids = [{ string: randomUUID() }, structured(randomUUID())];
    const requests = [];
    for (const [n, correlation_id] of ids.entries()) {
        const options = {
            stream_identifier: identifier(stream),
            any: {},
            deadline: { seconds: "30", nanos: 0 },
        };
        requests.push({ correlation_id, options, proposed_messages: [proposal({ string: randomUUID() })] });
        requests.push({
            correlation_id,
            proposed_messages: [proposal(structured(randomUUID()))],
            is_final: n === 1,
        });
    }
    requests.push({ correlation_id: ids[0], is_final: true }); /* the first is finished behind the second */
    const { responses, status: last } = await raw.bidi("streams", "BatchAppend", requests);
    assert.equal(last.code, status.OK);
    assert.equal(responses.length, 2);
    const byForm = Object.fromEntries(responses.map((response) => [response.correlation_id.value, response]));
    assert.equal(byForm.string.correlation_id.string, ids[0].string);
    assert.deepEqual(byForm.structured.correlation_id.structured, ids[1].structured);
    for (const response of responses) {
        assert.equal(response.result, "success");
        assert.equal(response.stream_identifier.stream_name.toString(), stream);
    }
    assert.equal((await it.read(stream)).length, 4);
});

check("a batch append has its errors inside, and goes on", async () => {
    const [stream, dead] = [await it.fill(1), await it.fill(1)];
    await it.client.tombstoneStream(dead);
    const rows = [
        [
            { stream_identifier: identifier(stream), stream_position: "7" },
            "ALREADY_EXISTS",
            "WrongExpectedVersion",
        ],
        [{ stream_identifier: identifier(dead), any: {} }, "NOT_FOUND", "StreamDeleted"],
        [{ any: {} }, "INVALID_ARGUMENT", "BadRequest"],
        [
            { stream_identifier: identifier(stream), any: {}, deadline: { seconds: "-5", nanos: 0 } },
            "DEADLINE_EXCEEDED",
            "Timeout",
        ],
        [
            { stream_identifier: identifier(stream), any: {}, deadline_21_10_0: { seconds: "1000", nanos: 0 } },
            "DEADLINE_EXCEEDED",
            "Timeout",
        ],
        [{ stream_identifier: identifier(stream), any: {}, deadline: { seconds: "315576000000", nanos: 0 } }],
        [
            {
                stream_identifier: identifier(stream),
                any: {},
                deadline_21_10_0: { seconds: "253402300799", nanos: 0 },
            },
        ],
    ];
    const requests = rows.map(([options]) => ({
        correlation_id: { string: randomUUID() },
        options,
        proposed_messages: [proposal({ string: randomUUID() })],
        is_final: true,
    }));
    const { responses, status: last } = await raw.bidi("streams", "BatchAppend", requests);
    assert.equal(last.code, status.OK, last.details);
    assert.equal(responses.length, rows.length);
    for (const [n, [, code, message]] of rows.entries()) {
        const mine = responses.find(
            ({ correlation_id: id }) => id.string === requests[n].correlation_id.string,
        );
        assert.equal(mine.result, code ? "error" : "success", `row ${n}: ${JSON.stringify(mine.error)}`);
        if (!code) continue;
        assert.equal(mine.error.code, code, `row ${n}`);
        assert.equal(mine.error.message, message, `row ${n}`);
        assert.ok(
            JSON.stringify(mine.error.details).includes(`type.googleapis.com/event_store.client.${message}`),
        );
    }
    assert.equal((await it.read(stream)).length, 3);
});

/* --- reads --- */

check("a plain read has events and nothing else; with compatibility 1 also the borders", async () => {
    const stream = await it.fill(3);
    assert.deepEqual(kinds((await read(stream)).responses), ["event", "event", "event"]);
    const compatible = { control_option: { compatibility: 1 } };
    const forwards = (await read(stream, compatible)).responses;
    assert.deepEqual(kinds(forwards), ["event", "event", "event", "last_stream_position"]);
    assert.equal(forwards.at(-1).last_stream_position, "2");
    const back = {
        ...compatible,
        read_direction: "Backwards",
        stream: { stream_identifier: identifier(stream), end: {} },
    };
    assert.deepEqual(kinds((await read(stream, back)).responses), [
        "event",
        "event",
        "event",
        "last_stream_position",
    ]);
    const beyond = { ...compatible, stream: { stream_identifier: identifier(stream), revision: "9" } };
    assert.equal((await read(stream, beyond)).responses.at(-1).content, "last_stream_position");
});

check("an event carries what every client needs", async () => {
    const stream = await it.fill(1);
    const [{ event: resolved }] = (await read(stream)).responses;
    const { event } = resolved;
    assert.equal(event.stream_identifier.stream_name.toString(), stream);
    assert.equal(event.stream_revision, "0");
    assert.equal(event.metadata.type, "numbered");
    assert.equal(event.metadata["content-type"], "application/json");
    assert.match(event.metadata.created, /^\d{16,18}$/); /* hundreds of nanoseconds since 1970 */
    assert.ok(Math.abs(Number(event.metadata.created) / 10_000 - Date.now()) < 60_000);
    assert.equal(event.commit_position, event.prepare_position);
    assert.equal(resolved.position, "commit_position");
    assert.equal(resolved.commit_position, event.commit_position);
    assert.equal(resolved.link, null);
});

check("a stream that is not there is a message and no error", async () => {
    const { responses, status: last } = await read(newStream("missing"));
    assert.deepEqual(kinds(responses), ["stream_not_found"]);
    assert.equal(last.code, status.OK);
});

check("a subscription is confirmed first, and caught up between the old and the new", async () => {
    const stream = await it.fill(2);
    const options = { until: (responses) => responses.length === 6 };
    const reading = read(
        stream,
        { count: undefined, subscription: {} },
        {
            until: (responses) => {
                if (responses.length === 4) void it.append(stream, it.numbered(2, { first: 2 }));
                return options.until(responses);
            },
        },
    );
    const { responses } = await reading;
    assert.deepEqual(kinds(responses), ["confirmation", "event", "event", "caught_up", "event", "event"]);
});

check("a filtered subscription has its checkpoint before it is caught up", async () => {
    const type = newStream("type");
    await it.append(newStream(), it.sdk.jsonEvent({ type, data: {} }));
    const filter = { event_type: { prefix: [type] }, max: 32, checkpointIntervalMultiplier: 1000 };
    const changes = {
        stream: undefined,
        all: { start: {} },
        count: undefined,
        subscription: {},
        no_filter: undefined,
        filter,
    };
    const until = (responses) => responses.at(-1).content === "caught_up";
    const { responses } = await read("", changes, { until });
    assert.deepEqual(kinds(responses), ["confirmation", "event", "checkpoint", "caught_up"]);
    const { checkpoint } = responses[2];
    assert.ok(BigInt(checkpoint.commit_position) >= BigInt(responses[1].event.commit_position));
    assert.ok(Math.abs(Number(checkpoint.timestamp.seconds) * 1000 - Date.now()) < 60_000);
});

check("the first and the last position as numbers, as some clients send them", async () => {
    const everything = await it.readAll();
    const end64 = "18446744073709551615";
    const all = (position) => ({ stream: undefined, all: { position } });
    const first = await read("", all({ commit_position: "0", prepare_position: "0" }));
    assert.equal(first.responses.length, Math.min(everything.length, 1000));
    const last = await read("", {
        ...all({ commit_position: end64, prepare_position: end64 }),
        read_direction: "Backwards",
        count: "1",
    });
    assert.equal(last.responses[0].event.event.id.string, everything.at(-1).event.id);
});

/* name: [what is different about the options, status] */
const BAD_READS = {
    "no form of ids": [{ uuid_option: undefined }, status.INVALID_ARGUMENT],
    "no stream": [{ stream: undefined }, status.INVALID_ARGUMENT],
    "no name": [{ stream: { stream_identifier: identifier(""), start: {} } }, status.INVALID_ARGUMENT],
    "no count": [{ count: undefined }, status.INVALID_ARGUMENT],
    "a filter on one stream": [
        {
            no_filter: undefined,
            filter: { event_type: { prefix: ["a"] }, max: 1, checkpointIntervalMultiplier: 1 },
        },
        status.INVALID_ARGUMENT,
    ],
    "a subscription backwards": [
        { count: undefined, subscription: {}, read_direction: "Backwards" },
        status.INVALID_ARGUMENT,
    ],
    "a filter without a window": [
        {
            stream: undefined,
            all: { start: {} },
            no_filter: undefined,
            filter: { event_type: { prefix: ["a"] } },
        },
        status.INVALID_ARGUMENT,
    ],
};

check("a read that makes no sense is refused with a sentence", async () => {
    const stream = await it.fill(1);
    for (const [name, [changes, code]] of Object.entries(BAD_READS)) {
        const { error } = await read(stream, changes);
        assert.equal(error?.code, code, `${name}: ${error?.message}`);
        assert.ok(error.details.length > 10, name);
    }
});

/* --- appends and deletes --- */

check("an append without a type or content type names the property", async () => {
    for (const [metadata, missing] of [
        [{ type: "a" }, "content-type"],
        [{ "content-type": "application/json" }, "type"],
    ]) {
        const message = { ...proposal({ string: randomUUID() }), metadata };
        const answer = await appendWith(newStream(), [message]);
        assert.equal(answer.error.code, status.INVALID_ARGUMENT);
        assert.equal(trailersOf(answer).exception, "missing-required-metadata-property");
        assert.ok(answer.error.details.includes(`'${missing}'`), answer.error.details);
    }
});

check("a wrong state of Append is an answer, with the old and the new fields", async () => {
    const stream = await it.fill(2);
    const { response, status: last } = await appendWith(stream, [proposal({ string: randomUUID() })], {
        no_stream: {},
    });
    assert.equal(last.code, status.OK);
    assert.equal(response.result, "wrong_expected_version");
    const wrong = response.wrong_expected_version;
    assert.equal(wrong.current_revision, "1");
    assert.equal(wrong.current_revision_20_6_0, "1");
    assert.equal(wrong.expected_revision_option, "expected_no_stream");
    assert.equal(wrong.expected_revision_20_6_0, "18446744073709551615");
});

check("delete and tombstone fail with the trailers that clients read", async () => {
    const stream = await it.fill(2);
    for (const method of ["Delete", "Tombstone"]) {
        const request = { options: { stream_identifier: identifier(stream), revision: "7" } };
        const answer = await raw.unary("streams", method, request);
        assert.equal(answer.error.code, status.FAILED_PRECONDITION);
        assert.match(answer.error.details, /WrongExpectedVersion.*Expected version: 7, Actual version: 1/);
        const trailers = trailersOf(answer);
        assert.equal(trailers.exception, "wrong-expected-version");
        assert.equal(trailers["stream-name"], stream);
        assert.equal(trailers["expected-version"], "7");
        assert.equal(trailers["actual-version"], "1");
    }
    const exists = { options: { stream_identifier: identifier(stream), stream_exists: {} } };
    assert.equal((await raw.unary("streams", "Delete", exists)).response.position_option, "position");
});

check("messages in the wrong order end the call, and nothing is written", async () => {
    const stream = newStream("order");
    const options = { options: { stream_identifier: identifier(stream), any: {} } };
    const message = { proposed_message: proposal({ string: randomUUID() }) };
    for (const requests of [[message], [options, message, options], []]) {
        const { error } = await raw.clientStream("streams", "Append", requests);
        assert.ok(error, JSON.stringify(requests));
        assert.notEqual(error.code, status.UNAVAILABLE);
        assert.notEqual(error.code, status.INTERNAL);
    }
    assert.deepEqual(kinds((await read(stream)).responses), ["stream_not_found"]);
});

/* --- what is not right, or not there --- */

check("bytes that are no message are an invalid argument", async () => {
    for (const bytes of [
        Buffer.from([0xff, 0xff, 0xff]),
        Buffer.from([0x0a, 0x7f]),
        Buffer.alloc(1000, 0x0a),
    ]) {
        const { error } = await raw.bytes("/event_store.client.streams.Streams/Delete", bytes);
        assert.equal(error?.code, status.INVALID_ARGUMENT, error?.message);
    }
});

check("what is not offered says so in a sentence", async () => {
    const paths = [
        "/event_store.client.streams.Streams/NoSuchMethod",
        "/event_store.client.streams.streams/Read",
        "/event_store.client.projections.Projections/Create",
        "/no.such.Service/Method",
        "/",
    ];
    for (const path of paths) {
        const { error } = await raw.bytes(path, Buffer.alloc(0));
        assert.equal(error?.code, status.UNIMPLEMENTED, `${path}: ${error?.message}`);
        assert.ok(error.details.length > 20, `${path}: ${error.details}`);
    }
});

check("compressed requests are understood, and answers are not compressed unasked", async () => {
    const zipped = new Raw(server, { options: { "grpc.default_compression_algorithm": 2 } });
    const stream = newStream("gzip");
    const requests = [
        { options: { stream_identifier: identifier(stream), any: {} } },
        ...upTo(10).map(() => ({
            proposed_message: proposal({ string: randomUUID() }, { data: `"${"x".repeat(5000)}"` }),
        })),
    ];
    const { error, response } = await zipped.clientStream("streams", "Append", requests);
    assert.equal(error, null);
    assert.equal(response.success.current_revision, "9");
    const events = await zipped.serverStream("streams", "Read", readOptions(stream));
    assert.equal(events.responses.length, 10);
    zipped.close();
});

/* Rust clients write headers, message and the end of the request separately, and lose the status of a call that
 * is reset before they have read it; even if the reset says that there was no error. */
check("a call whose request has not ended yet is answered or waited for, and not reset", async () => {
    const stream = await it.fill(2);
    const session = connectHttp2(`http://${server.address}`);
    await once(session, "connect");
    const path = "/event_store.client.streams.Streams/Read";
    const call = session.request({
        ":method": "POST",
        ":path": path,
        "content-type": "application/grpc",
        te: "trailers",
    });
    let grpcStatus = null;
    let answered = 0;
    call.on("trailers", (trailers) => (grpcStatus = trailers["grpc-status"]));
    call.on("data", (bytes) => (answered += bytes.length));
    call.write(framed("streams", "Read", readOptions(stream)));
    for (let n = 0; n < 20; n++)
        /* the server has had every chance to answer */
        await new Promise((resolve, reject) => session.ping((error) => (error ? reject(error) : resolve())));
    assert.equal(call.aborted, false, "the server has reset the call");
    call.end();
    await within(new Promise((resolve) => call.once("close", resolve)), 10_000, "the end of the call");
    assert.equal(call.rstCode, 0);
    assert.equal(grpcStatus, "0");
    assert.ok(answered > 0);
    session.close();
});

check("the raw connection is closed", async () => raw.close());

end();
