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
    /* Joins a group, takes `count` events, acks the first `acks` of them and stays. */
    consume: (stream, group, count, acks) =>
        new Promise((resolve, reject) => {
            const events = [];
            const subscription = it.client
                .subscribeToPersistentSubscriptionToStream(stream, group, { bufferSize: count })
                .on("error", reject)
                .on("data", async (event) => {
                    if (events.push(event) !== count) return;
                    if (acks > 0) await subscription.ack(...events.slice(0, acks));
                    resolve(events.map(({ event: { data } }) => data.n));
                });
        }),
};

parentPort.on("message", async ({ what, values }) => {
    try {
        parentPort.postMessage({ result: await DEEDS[what](...values) });
    } catch (error) {
        parentPort.postMessage({ error: error.stack });
    }
});
