/* lib/other_thread.mjs — what lib/other.mjs runs: a client that does what it is told by messages. */
import { parentPort, workerData } from "node:worker_threads";

import { connect } from "./official.mjs";

const it = connect(workerData);

/* Only what can be sent between threads goes in and comes out. */
const DEEDS = {
    append: (stream, count, first = 0, state = "any") =>
        it.append(stream, it.numbered(count, { first }), state),
    numbers: (stream) => it.numbers(stream),
    read: async (stream) => (await it.read(stream)).map(({ event }) => event),
    /* Only the newer client has these two. */
    multi: (stream, count, state) =>
        it.client.multiStreamAppend([{ streamName: stream, events: it.numbered(count), expectedState: state }]),
    records: (stream, count) =>
        it.client.appendRecords(it.numbered(count).map((record) => ({ streamName: stream, record }))),
};

parentPort.on("message", async ({ what, values }) => {
    try {
        parentPort.postMessage({ result: await DEEDS[what](...values) });
    } catch (error) {
        parentPort.postMessage({ error: error.stack });
    }
});
