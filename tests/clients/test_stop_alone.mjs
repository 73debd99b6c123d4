/* clients/node against a server that answers as it is told: what goes over the wire, and the stop of a consumer whose
 * server has no Stop (S1.20, S1.28). test_stop.mjs has the same package against Sluice. */
import { createRequire } from "node:module";
import test from "node:test";

import {
    resubscribe,
    subscribeToPersistentSubscriptionToAll,
    withStop,
} from "../../clients/node/index.mjs";
import wire from "../../clients/node/wire.js";
import { name, upTo } from "./lib/official.mjs";
import { SUPPORTED, check, idOf, numberOf, subscribe, textIds, told } from "./lib/old_rig.mjs";
import { eventOf } from "./lib/old_server.mjs";
import { assert, failure } from "./lib/rig.mjs";
import { structured } from "./lib/raw.mjs";
import { watch } from "./lib/watch.mjs";

/* --- what goes over the wire --- */

check("the first request has the extensions behind what the client says", SUPPORTED, async (server, it) => {
    const resume = ["11111111-2222-4333-8444-555555555555"];
    const labels = { version: "42", zone: "süd" };
    subscribe(it, { bufferSize: 7, consumerName: "worker-1", labels, reconnectMs: 3_000, resume });
    await server.until(() => server.kinds.includes("options"), "options");
    const { options } = server.requests.find(({ content }) => content === "options");
    assert.equal(options.stream_identifier.stream_name.toString(), "old");
    assert.equal(options.group_name, "group");
    assert.equal(options.buffer_size, 7);
    assert.equal(options.uuid_option.content, "string");
    assert.equal(options.consumer_name, "worker-1");
    assert.deepEqual({ ...options.labels }, labels);
    assert.equal(options.extensions, true);
    assert.equal(options.reconnect_ms, 3_000);
    assert.deepEqual(
        options.resume.map(({ string }) => string),
        resume,
    );
});

check("a subscription to $all has them too", SUPPORTED, async (server, it) => {
    subscribeToPersistentSubscriptionToAll(it.client, "group", { consumerName: "worker-2" });
    await server.until(() => server.kinds.includes("options"), "options");
    const { options } = server.requests.find(({ content }) => content === "options");
    assert.equal(options.stream_option, "all");
    assert.equal(options.consumer_name, "worker-2");
    assert.equal(options.extensions, true);
});

check("a server without Stop is sent nothing that it does not know", {}, async (server, it) => {
    const subscription = subscribe(it, { consumerName: "worker-1", bufferSize: 3 });
    const seen = watch(subscription);
    await seen.untilCount(3);
    assert.equal(await subscription.supported, false);
    assert.equal(await subscription.started(seen.events[0]), false);
    assert.equal(await subscription.extend(1_000, seen.events[0]), false);
    assert.equal(await subscription.release(seen.events[0]), false);
    await subscription.ack(...seen.events.slice(0, 3));
    await seen.untilCount(6);
    assert.deepEqual(server.kinds, ["features", "options", "ack"]);
    const { options } = server.requests[1];
    assert.deepEqual([options.consumer_name, options.extensions], ["", false]);
});

check("what was acked is forgotten, also without a confirmation", { leaseMs: 60_000 }, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 2 });
    const seen = watch(subscription);
    await seen.untilCount(2);
    await subscription.ack(seen.events[0]);
    await seen.untilCount(3);
    assert.equal(subscription.lease(seen.events[0]), undefined);
    assert.equal(subscription.lease(seen.events[1]).leaseMs, 60_000);
});

check(
    "what is handed to the program is started, and said so before its ack",
    SUPPORTED,
    async (server, it) => {
        const subscription = subscribe(it, { bufferSize: 4 });
        subscription.on("data", (event) => subscription.ack(event));
        await server.until(() => server.kinds.filter((kind) => kind === "ack").length === 30, "30 acks");
        const started = new Set();
        for (const request of server.requests) {
            if (request.content === "started") for (const id of textIds(request)) started.add(id);
            if (request.content === "ack") for (const id of textIds(request)) assert.ok(started.has(id), id);
        }
        assert.equal(started.size, 30);
    },
);

check("what the program does not ask for is not started", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 20 });
    for await (const event of subscription) {
        await server.until(() => server.kinds.includes("started"), "started");
        await subscription.extend(0, event); /* behind everything that was written before */
        await server.until(() => server.kinds.includes("extend"), "extend");
        break;
    }
    const started = server.requests.filter(({ content }) => content === "started").flatMap(textIds);
    assert.ok(started.length <= 2, `${started.length} of 20`); /* a stream of Node may look one ahead */
});

check("the program can say itself what it has started", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 5, starting: "said" });
    const seen = watch(subscription);
    await seen.untilCount(5);
    assert.equal(await subscription.started(seen.events[3]), true);
    assert.equal(await subscription.release(seen.events[1], seen.events[2]), true);
    assert.equal(await subscription.extend(250, seen.events[3]), true);
    await server.until(() => server.kinds.includes("extend"), "extend");
    assert.deepEqual(server.kinds.slice(2), ["started", "started", "release", "extend"]);
    const [, , , started, release, extend] = server.requests;
    assert.deepEqual(textIds(started), [idOf(seen.events[3])]);
    assert.deepEqual(textIds(release), [idOf(seen.events[1]), idOf(seen.events[2])]);
    assert.equal(extend.extend.lease_ms, 250);
    assert.deepEqual(
        subscription.held().map(({ event }) => event.data.n),
        [0, 3, 4],
    );
});

/* --- what the server says --- */

check(
    "answers of the server are events, and stop() gives the counts of Drained",
    SUPPORTED,
    async (server, it) => {
        const subscription = subscribe(it, { bufferSize: 3 });
        const seen = watch(subscription);
        await seen.untilCount(3);
        const ids = seen.events.map(idOf);
        const stopping = subscription.stop({ handBackUnstarted: true });
        await server.until(() => server.kinds.includes("stop"), "stop");
        assert.equal(server.requests.at(-1).stop.hand_back_unstarted, true);

        const stopped = told(subscription, "stopped");
        server.say({ stopped: { in_flight: 3, outstanding: ids.map((string) => ({ string })) } });
        const expected = { supported: true, inFlight: 3, outstanding: ids, alreadyStopped: false };
        assert.deepEqual(await stopped, { ...expected, askedBy: "consumer", handedBack: [] });

        const [settled, lost] = [told(subscription, "settled"), told(subscription, "lost")];
        await subscription.ack(...seen.events);
        server.say({
            settled: { ids: [structured(ids[0]), { string: ids[1] }], lost: [{ string: ids[2] }] },
        });
        assert.deepEqual(await settled, { ids: ids.slice(0, 2) });
        assert.deepEqual(await lost, { ids: ids.slice(2), events: seen.events.slice(2) });

        const drained = told(subscription, "drained");
        server.say({ drained: { settled: 2, released: 700, lost: 1 } });
        const counts = { supported: true, settled: 2, released: 700, lost: 1 };
        assert.deepEqual(await drained, counts);
        assert.deepEqual(await stopping, counts);
        await server.until(() => server.kinds.at(-1) === "left", "the end of the call");
        assert.deepEqual(await subscription.stop(), counts);
    },
);

check("the request of an operator is told with its reason and deadline", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 1 });
    const seen = watch(subscription);
    await seen.untilCount(1);
    const [asked, stopped] = [told(subscription, "stopRequested"), told(subscription, "stopped")];
    server.say({ stop_requested: { reason: "version 43", deadline_ms: 25_000 } });
    server.say({ stopped: { in_flight: 1, asked_by: 1, outstanding: [{ string: idOf(seen.events[0]) }] } });
    assert.deepEqual(await asked, { reason: "version 43", deadlineMs: 25_000, handBackUnstarted: false });
    assert.equal((await stopped).askedBy, "operator");
});

check("stopped is told behind the last event that came before it", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 20 });
    const order = [];
    subscription.on("stopped", () => order.push("stopped"));
    const ids = upTo(20).map((n) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`);
    void subscription.stop().catch(() => {});
    await server.until(() => server.kinds.includes("stop"), "stop");
    server.say({ stopped: { in_flight: 20, outstanding: ids.map((string) => ({ string })) } });
    server.say({ settled: { ids: [{ string: "11111111-2222-4333-8444-555555555555" }] } });
    await told(subscription, "settled"); /* so the answer has come, and nobody has read yet */
    assert.deepEqual(order, []);
    subscription.on("data", ({ event }) => order.push(event.data.n));
    await told(subscription, "stopped");
    assert.deepEqual(order, [...upTo(20), "stopped"]);
});

check(
    "stopped does not wait for the program to ask for more than there is",
    SUPPORTED,
    async (server, it) => {
        const subscription = subscribe(it, { bufferSize: 5 });
        const events = subscription[Symbol.asyncIterator]();
        await events.next();
        let isTold = false;
        const stopped = told(subscription, "stopped").then(() => (isTold = true));
        const outstanding = upTo(5).map((n) => eventOf(n).event.event.id);
        server.say({ stopped: { in_flight: 5, outstanding } });
        server.say({ stop_requested: {} });
        await told(subscription, "stopRequested");
        assert.equal(isTold, false);
        for (let n = 1; n < 5; n++) await events.next();
        await stopped;
    },
);

check(
    "a subscription that was destroyed is handed nothing more, and can still be stopped",
    {
        ...SUPPORTED,
        eventCount: 1,
    },
    async (server, it) => {
        const subscription = subscribe(it, { bufferSize: 2 });
        const seen = watch(subscription);
        await seen.untilCount(1);
        const [first] = seen.events;
        server.say({ stop_requested: {} });
        await told(subscription, "stopRequested"); /* time enough for the stream to ask for the next event */
        subscription.destroy(); /* as a loop over it does that is left with break */
        server.say(eventOf(1));
        server.say({ stop_requested: {} });
        await told(subscription, "stopRequested"); /* behind the event */
        assert.deepEqual(subscription.held(), [first]);
        const stopping = subscription.stop();
        await server.until(() => server.kinds.includes("stop"), "stop");
        assert.equal(server.requests.at(-1).stop.hand_back_unstarted, true);
        await subscription.ack(first);
        server.say({ drained: { settled: 1, released: 1 } });
        assert.equal((await stopping).released, 1);
    },
);

check("what comes again before its release is confirmed is held", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 1 });
    const seen = watch(subscription);
    await seen.untilCount(1);
    await subscription.release(seen.events[0]);
    assert.deepEqual(subscription.held(), []);
    server.say(eventOf(0));
    const settled = told(subscription, "settled");
    server.say({ settled: { ids: [{ string: idOf(seen.events[0]) }] } });
    await settled;
    assert.ok(subscription.held().includes(seen.events.findLast((event) => numberOf(event) === 0)));
});

check(
    "a program can wait for its stop inside its loop over many events",
    { ...SUPPORTED, eventCount: 500 },
    async (server, it) => {
        const subscription = subscribe(it, { bufferSize: 500 });
        const counts = { supported: true, settled: 1, released: 499, lost: 0 };
        const given = [];
        for await (const event of subscription) {
            given.push(event);
            await subscription.ack(event);
            if (given.length > 1) continue;
            const stopping = subscription.stop({ handBackUnstarted: true });
            await server.until(() => server.kinds.includes("stop"), "stop");
            server.say({ stopped: {} });
            server.say({ drained: { settled: 1, released: 499 } });
            assert.deepEqual(await stopping, counts);
        }
        assert.ok(given.length <= 2, `${given.length} events`); /* a stream of Node may look one ahead */
    },
);

check("events that an operator handed back are not handed to the program", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 20 });
    const events = subscription[Symbol.asyncIterator]();
    const { value: first } = await events.next();
    const stopped = told(subscription, "stopped");
    server.say({ stopped: { in_flight: 1, asked_by: 1, outstanding: [{ string: idOf(first) }] } });
    await stopped;
    server.say({ drained: { settled: 1, released: 19 } });
    await told(subscription, "drained");
    await subscription.unsubscribe();
    const rest = [];
    for (let next = await events.next(); !next.done; next = await events.next()) rest.push(next.value);
    assert.ok(rest.length <= 1, `${rest.length} events`); /* a stream of Node may look one ahead */
});

check("what is handed back from the hands of the program is named", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 4, starting: "said" });
    const seen = watch(subscription);
    await seen.untilCount(4);
    await subscription.started(seen.events[2]);
    void subscription.stop({ handBackUnstarted: true }).catch(() => {});
    await server.until(() => server.kinds.includes("stop"), "stop");
    assert.deepEqual(server.kinds.slice(-2), ["started", "stop"]);
    const stopped = told(subscription, "stopped");
    server.say({ stopped: { in_flight: 1, outstanding: [{ string: idOf(seen.events[2]) }] } });
    const { handedBack } = await stopped;
    assert.deepEqual(handedBack, [seen.events[0], seen.events[1], seen.events[3]]);
    assert.deepEqual(subscription.held(), [seen.events[2]]);
});

check(
    "an event carries its token, and is not handed out once its lease has run out",
    {
        ...SUPPORTED,
        leaseMs: 30,
    },
    async (server, it) => {
        const subscription = subscribe(it, { bufferSize: 2 });
        const confirmed = told(subscription, "confirmation");
        await confirmed;
        server.say({ settled: { ids: [{ string: "11111111-2222-4333-8444-555555555555" }] } });
        await told(subscription, "settled"); /* behind the events */
        await new Promise((resolve) => setTimeout(resolve, 40)); /* the time of a lease is the matter */
        const lost = [];
        subscription.on("lost", ({ ids }) => lost.push(...ids));
        const seen = watch(subscription);
        server.leaseMs = 20_000;
        server.grow(1);
        await seen.untilCount(1);
        assert.deepEqual(seen.numbers, [2]);
        assert.equal(lost.length, 2);
        assert.deepEqual(subscription.lease(seen.events[0]), { token: 3n, leaseMs: 20_000 });
    },
);

check(
    "a call that ends before it is drained fails the stop, and its events are not started",
    SUPPORTED,
    async (server, it) => {
        const subscription = subscribe(it, { bufferSize: 20 });
        const errors = [];
        subscription.on("error", (error) => errors.push(error));
        const events = subscription[Symbol.asyncIterator]();
        await events.next();
        const stopping = failure(subscription.stop());
        await server.until(() => server.kinds.includes("stop"), "stop");
        server.fail();
        const error = await stopping;
        assert.match(error.message, /ended before it was drained/);
        assert.match((await failure(subscription.stop())).message, /ended before it was drained/);
        assert.equal(errors.length, 1);
        const rest = [];
        for (let event = subscription.read(); event !== null; event = subscription.read()) rest.push(event);
        assert.ok(rest.length <= 1, `${rest.length} events`); /* a stream of Node may look one ahead */
        assert.ok(subscription.held().length <= 2);
    },
);

check(
    "who comes back holds what he held, and settles again what was not confirmed",
    SUPPORTED,
    async (server, it) => {
        const subscription = subscribe(it, { bufferSize: 4, consumerName: "worker-3" });
        const seen = watch(subscription);
        await seen.untilCount(4);
        const [a, b, c, d] = seen.events;
        await subscription.ack(a);
        await subscription.nack("park", "no good", b);
        await subscription.ack(c);
        await server.until(() => server.kinds.filter((kind) => kind === "ack").length === 2, "acks");
        const settled = told(subscription, "settled");
        server.say({ settled: { ids: [{ string: idOf(a) }] } });
        await settled;
        server.fail();
        await seen.untilError();

        const back = resubscribe(subscription);
        const before = server.requests.length;
        await server.until(() => server.kinds.slice(before).includes("ack"), "the ack again");
        const [{ options }, nack, ack] = server.requests
            .slice(before)
            .filter((request) => ["options", "nack", "ack"].includes(request.content));
        assert.equal(options.consumer_name, "worker-3");
        const resumed = options.resume.map(({ string }) => string);
        assert.deepEqual(resumed.slice(0, 3), [b, c, d].map(idOf)); /* and what came after the acks */
        assert.deepEqual(textIds(nack), [idOf(b)]);
        assert.deepEqual([nack.nack.action, nack.nack.reason], ["Park", "no good"]);
        assert.deepEqual(textIds(ack), [idOf(c)]);
        assert.ok(back.held().includes(d));
        await back.unsubscribe();
    },
);

/* --- without help of the server --- */

check(
    "S1.20 S1.21: nothing more is started, all work is waited for, acks arrive before the end",
    {},
    async (server, it) => {
        const subscription = subscribe(it, { bufferSize: 4 });
        const events = subscription[Symbol.asyncIterator]();
        const working = [(await events.next()).value, (await events.next()).value];
        const stopped = told(subscription, "stopped");
        let result = null;
        const stopping = subscription.stop().then((counts) => (result = counts));
        const { supported, inFlight } = await stopped;
        assert.equal(supported, false);
        assert.ok(inFlight >= 2 && inFlight <= 3, `${inFlight}`); /* a stream of Node may look one ahead */
        for (const event of working) await subscription.ack(event);
        for (let next = await events.next(); !next.done; next = await events.next()) {
            assert.equal(result, null);
            working.push(next.value);
            await subscription.nack("retry", "leaving", next.value);
        }
        await stopping;
        assert.equal(working.length, inFlight);
        assert.deepEqual([result.supported, result.settled, result.lost], [false, inFlight, 0]);
        await server.until(() => server.kinds.includes("left"), "the end of the call");
        const settles = inFlight === 3 ? ["ack", "ack", "nack"] : ["ack", "ack"];
        assert.deepEqual(server.kinds, ["features", "options", ...settles, "features", "left"]);
        assert.equal(result.released, 4); /* each settle made room for one that was never started */
    },
);

check(
    "S1.9: a second stop gives the same, and one with nothing in flight is at once",
    {},
    async (server, it) => {
        const subscription = subscribe(it);
        await told(subscription, "confirmation");
        const told2 = [];
        subscription.on("stopped", ({ alreadyStopped }) => told2.push(alreadyStopped));
        const results = await Promise.all([
            subscription.stop(),
            subscription.stop({ handBackUnstarted: true }),
        ]);
        assert.deepEqual(results[0], results[1]);
        assert.deepEqual(told2, [false, true]);
        assert.deepEqual([results[0].supported, results[0].settled], [false, 0]);
    },
);

check("without Stop too, what the program has not started is not waited for", {}, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 3, starting: "said" });
    const seen = watch(subscription);
    await seen.untilCount(3);
    await subscription.started(seen.events[1]);
    const stopped = told(subscription, "stopped");
    const stopping = subscription.stop();
    assert.deepEqual((await stopped).handedBack, [seen.events[0], seen.events[2]]);
    await subscription.ack(seen.events[1]);
    const { settled, released } = await stopping;
    assert.deepEqual([settled, released], [1, 3]);
});

/* --- mistakes --- */

check("wrong options and foreign objects are refused with a sentence", {}, async (server, it) => {
    assert.throws(() => subscribe({ client: {} }), /is not known here: it has no GRPCStreamCreator/);
    assert.throws(() => subscribe({ client: null }), TypeError);
    for (const options of [
        { consumerName: 7 },
        { labels: "a" },
        { labels: null },
        { reconnectMs: -1 },
        { reconnectMs: 1.5 },
        { reconnectMs: 2 ** 31 },
        { resume: "a" },
        { starting: "now" },
    ])
        assert.throws(() => subscribe(it, options), Error, JSON.stringify(options));
    const subscription = subscribe(it);
    await failure(subscription.extend(-1), RangeError);
    await failure(subscription.release({}), TypeError);
    await failure(subscription.started(undefined), TypeError);
    assert.throws(() => resubscribe(subscription), /consumerName/);
    assert.throws(() => resubscribe({}), /not made here/);
    assert.deepEqual(server.kinds.includes("stop"), false);
    await told(subscription, "confirmation");
    await subscription.unsubscribe();
});

check(
    "a server that is not there is an error of the subscription and of its stop",
    {},
    async (server, it) => {
        server.close();
        const subscription = subscribe(it);
        const seen = watch(subscription);
        await seen.untilError();
        await failure(subscription.stop(), Error);
    },
);

check("a client with Stop is otherwise the same, and one without is left alone", {}, async (server, it) => {
    const before = Object.getOwnPropertyNames(it.client);
    const plain = it.client.subscribeToPersistentSubscriptionToStream("old", "group", { bufferSize: 2 });
    const seen = watch(plain);
    await seen.untilCount(2);
    assert.equal(plain.stop, undefined);
    await plain.unsubscribe();
    const client = withStop(it.client);
    assert.ok(client instanceof it.client.constructor);
    const ours = client.subscribeToPersistentSubscriptionToStream("old", "group", { bufferSize: 2 });
    assert.ok(ours instanceof plain.constructor);
    assert.equal(typeof ours.stop, "function");
    await watch(ours).untilCount(1);
    assert.equal(ours.id, "old::group");
    await ours.unsubscribe();
    assert.deepEqual(Object.getOwnPropertyNames(it.client), before);
});

test(`bytes that are no message are refused, wherever they are cut (${name})`, () => {
    const whole = Buffer.concat([wire.nackRequest([idOf({ event: { id: "a".repeat(36) } })], 1, "reason")]);
    assert.deepEqual(wire.readSettle(whole), {
        kind: "nack",
        ids: ["a".repeat(36)],
        action: 1,
        reason: "reason",
    });
    for (let length = 1; length < whole.length; length++)
        assert.throws(() => wire.readSettle(whole.subarray(0, length)), RangeError, `${length} bytes`);
    assert.throws(() => wire.readResponse(Buffer.alloc(20, 0xff)), RangeError);
    assert.throws(() => wire.readResponse(Buffer.from([0x0b])), RangeError); /* a group: unknown form */
    assert.deepEqual(wire.readResponse(Buffer.alloc(0)), { kind: "other" });
    assert.throws(() => wire.withExtensions(Buffer.alloc(0), {}), /no options/);
});

test(`import and require give the same (${name})`, () => {
    const required = createRequire(import.meta.url)("../../clients/node/index.js");
    assert.equal(required.withStop, withStop);
    assert.equal(required.resubscribe, resubscribe);
});

test(`an event is known by its link, wherever that stands (${name})`, () => {
    const field = (number, ...parts) => {
        const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
        return Buffer.from([number * 8 + 2, body.length, ...body]);
    };
    const record = (number, id) => field(number, field(1, field(2, id)));
    for (const parts of [
        [record(1, "event"), record(2, "link")],
        [record(2, "link"), record(1, "event")],
    ])
        assert.equal(wire.readResponse(field(1, ...parts)).id, "link");
    assert.equal(wire.readResponse(field(1, record(1, "event"))).id, "event");
});
