/* lib/old_rig.mjs — tests of the package clients/node against a server that answers as it is told (old_server.mjs).
 *
 *      check("a stop is ...", SUPPORTED, async (server, it) => { ... });      each has a server and a client of its own */
import test from "node:test";

import { subscribeToPersistentSubscriptionToStream } from "../../../clients/node/index.mjs";
import { connect, name } from "./official.mjs";
import { OldServer } from "./old_server.mjs";
import { within } from "./wait.mjs";

const TEST_MS_MAX = 30_000;

/* A server of today, as far as a client can tell. */
export const SUPPORTED = { features: ["stream", "all", "stop", "nack_delay"] };

/* body(server, it): `it` is connected to a server of its own that has `eventCount` events. */
export function check(sentence, { eventCount = 30, ...options }, body) {
    test(`${sentence} (${name})`, { timeout: TEST_MS_MAX }, async () => {
        const server = Object.assign(await new OldServer(eventCount).start(), options);
        const it = connect(server);
        try {
            await body(server, it);
        } finally {
            await it.close();
            server.close();
        }
    });
}

export function subscribe(it, options = {}) {
    return subscribeToPersistentSubscriptionToStream(it.client, "old", "group", options);
}

/* The next of these events, with what is told. */
export function told(subscription, event) {
    const heard = new Promise((resolve) => subscription.once(event, resolve));
    return within(heard, TEST_MS_MAX, event);
}

export const idOf = ({ event }) => event.id;
export const numberOf = ({ event }) => event.data.n;
export const textIds = (request) => request[request.content].ids.map(({ string }) => string);
