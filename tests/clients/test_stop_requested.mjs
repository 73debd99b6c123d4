/* clients/node against a server that answers as it is told: an operator's wish that work is handed back, the end of a
 * call, and the next call in place of one that was lost. test_stop_alone.mjs has the rest of the wire. */
import { resubscribe } from "../../clients/node/index.mjs";
import { upTo } from "./lib/official.mjs";
import { SUPPORTED, check, idOf, numberOf, subscribe, textIds, told } from "./lib/old_rig.mjs";
import { eventOf } from "./lib/old_server.mjs";
import { assert, failure } from "./lib/rig.mjs";
import { watch } from "./lib/watch.mjs";

const WISH = { stop_requested: { reason: "version 43", hand_back_unstarted: true } };

const idOfNumber = (n) => eventOf(n).event.event.id.string;
const outstandingOf = (numbers) => numbers.map((n) => ({ string: idOfNumber(n) }));
const only = (server, kind) => server.requests.filter(({ content }) => content === kind);
const until = (server, kind, count = 1) =>
    server.until(() => only(server, kind).length >= count, `${count} of ${kind}`);

/* Everything that was sent before has been understood when it is told. */
async function untilHeard(server, subscription) {
    const heard = told(subscription, "settled");
    server.say({ settled: { ids: [{ string: "11111111-2222-4333-8444-555555555555" }] } });
    await heard;
}

/* The numbers that were said to be started. */
const startedIds = (server) => only(server, "started").flatMap(textIds);

/* --- what an operator asks for --- */

check("what was not begun is released when an operator wishes it", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 10 });
    const events = subscription[Symbol.asyncIterator]();
    await events.next();
    await untilHeard(server, subscription);
    const [asked, stopped] = [told(subscription, "stopRequested"), told(subscription, "stopped")];
    server.say(WISH);
    server.say({ stopped: { in_flight: 10, asked_by: 1, outstanding: outstandingOf(upTo(10)) } });
    assert.deepEqual(await asked, { reason: "version 43", handBackUnstarted: true });
    await until(server, "release");
    const begun = startedIds(server);
    const back = textIds(only(server, "release")[0]);
    assert.ok(begun.length >= 1 && begun.length <= 2, `${begun}`); /* a stream of Node may look one ahead */
    assert.deepEqual([...begun, ...back], upTo(10).map(idOfNumber));
    const { inFlight, outstanding, handedBack, askedBy } = await stopped;
    assert.deepEqual([inFlight, outstanding, askedBy], [begun.length, begun, "operator"]);
    assert.deepEqual(handedBack.map(idOf), back);
    assert.equal(only(server, "stop").length, 0);
});

check("an operator who takes his stop back gets events worked on again", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 3, starting: "said" });
    const seen = watch(subscription);
    await seen.untilCount(3);
    server.eventCount = 3; /* what is released is not followed by others */
    const stopped = told(subscription, "stopped");
    server.say(WISH);
    server.say({ stopped: { in_flight: 3, asked_by: 1, outstanding: outstandingOf(upTo(3)) } });
    await stopped;
    server.say({ settled: { ids: outstandingOf(upTo(3)) } });
    server.say(eventOf(1));
    await seen.untilCount(4);
    assert.deepEqual(seen.numbers, [0, 1, 2, 1]);
    assert.deepEqual(subscription.held(), [seen.events[3]]);
});

check("what the program has and has not begun is released too, and named", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 4, starting: "said" });
    const seen = watch(subscription);
    await seen.untilCount(4);
    await subscription.started(seen.events[1]);
    server.eventCount = 4;
    const [asked, stopped] = [told(subscription, "stopRequested"), told(subscription, "stopped")];
    server.say(WISH);
    await asked;
    assert.deepEqual(subscription.held(), [seen.events[1]]);
    assert.equal(await subscription.started(seen.events[2]), false);
    await until(server, "release");
    assert.deepEqual(textIds(only(server, "release")[0]), [0, 2, 3].map(idOfNumber));
    server.say({ stopped: { in_flight: 4, asked_by: 1, outstanding: outstandingOf(upTo(4)) } });
    const { handedBack, inFlight } = await stopped;
    assert.deepEqual([handedBack.map(numberOf), inFlight], [[0, 2, 3], 1]);
    assert.deepEqual(startedIds(server), [idOfNumber(1)]);
});

check("what comes between the wish and Stopped goes back as well", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 1 });
    const seen = watch(subscription);
    await seen.untilCount(1);
    const stopped = told(subscription, "stopped");
    server.say(WISH);
    server.say(eventOf(20));
    server.say({ stopped: { in_flight: 2, asked_by: 1, outstanding: outstandingOf([0, 20]) } });
    const { handedBack, outstanding } = await stopped;
    assert.deepEqual([handedBack.map(numberOf), outstanding], [[20], [idOfNumber(0)]]);
    await until(server, "release");
    assert.deepEqual(seen.numbers.slice(0, 1), [0]);
    assert.ok(!seen.numbers.includes(20));
});

check("a request without the wish releases nothing, and no deadline is none", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 3, starting: "said" });
    const seen = watch(subscription);
    await seen.untilCount(3);
    const asked = told(subscription, "stopRequested");
    server.say({ stop_requested: { reason: "version 43" } });
    const request = await asked;
    assert.deepEqual(request, { reason: "version 43", handBackUnstarted: false });
    assert.ok(!("deadlineMs" in request));
    assert.equal(await subscription.extend(0, seen.events[0]), true);
    await until(server, "extend");
    assert.equal(only(server, "release").length, 0);
});

check("behind an own stop that hands back the wish asks for nothing more", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 3, starting: "said" });
    const seen = watch(subscription);
    await seen.untilCount(3);
    void subscription.stop({ handBackUnstarted: true }).catch(() => {});
    await until(server, "stop");
    const [asked, stopped] = [told(subscription, "stopRequested"), told(subscription, "stopped")];
    server.say(WISH);
    await asked;
    server.say({ stopped: {} });
    assert.deepEqual((await stopped).handedBack.map(numberOf), [0, 1, 2]);
    await subscription.extend(0, seen.events[0]);
    await until(server, "extend");
    assert.equal(only(server, "release").length, 0);
});

/* --- an own stop --- */

check("what an own stop hands back is named, also if it was never handed out", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 10 });
    const events = subscription[Symbol.asyncIterator]();
    await events.next();
    await untilHeard(server, subscription);
    const stopped = told(subscription, "stopped");
    void subscription.stop({ handBackUnstarted: true }).catch(() => {});
    await until(server, "stop");
    const begun = startedIds(server);
    server.say(eventOf(20)); /* was on its way */
    server.say({ stopped: { in_flight: begun.length, outstanding: begun.map((string) => ({ string })) } });
    const { handedBack } = await stopped;
    assert.deepEqual(handedBack.map(numberOf), [...upTo(10 - begun.length, begun.length), 20]);
});

check("a stop that crosses one of an operator releases nothing twice", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 5 });
    await told(subscription, "confirmation");
    await untilHeard(server, subscription);
    const answers = [];
    subscription.on("stopped", (info) => answers.push(info));
    subscription.on("stopRequested", () => {
        void subscription.stop({ handBackUnstarted: true }).catch(() => {});
    });
    server.say({ stop_requested: {} });
    await until(server, "stop");
    server.say({ stopped: { in_flight: 5, asked_by: 1, outstanding: outstandingOf(upTo(5)) } });
    server.say({ stopped: { already_stopped: true } });
    await untilHeard(server, subscription);
    assert.deepEqual(
        answers.map(({ inFlight, handedBack }) => [inFlight, handedBack.map(numberOf)]),
        [
            [5, []],
            [0, upTo(5)],
        ],
    );
    assert.equal(await subscription.extend(0, answers[1].handedBack[0]), true);
    await until(server, "extend");
    assert.equal(only(server, "release").length, 0);
});

/* --- how a call ends --- */

check("a call that the server ends behind Drained is a clean end", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 1 });
    const order = [];
    subscription.unsubscribe = () => new Promise(() => {}); /* slower than the server, as in a busy program */
    subscription.on("stopRequested", () => subscription.stop().then(() => order.push("stop() resolves")));
    for await (const event of subscription) {
        server.eventCount = 1;
        await subscription.ack(event);
        server.say({ stop_requested: { reason: "shutdown" } });
        server.say({ stopped: { asked_by: 2 } });
        await until(server, "stop");
        server.say({ drained: { settled: 1 } });
        server.shutDown();
    }
    order.push("the loop ends");
    assert.deepEqual(order, ["stop() resolves", "the loop ends"]);
});

check("it is one for a program that never called stop() too", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 1 });
    for await (const event of subscription) {
        server.eventCount = 1;
        await subscription.ack(event);
        const drained = told(subscription, "drained");
        server.say({ drained: { settled: 1 } });
        await drained;
        server.shutDown();
    }
    assert.equal((await subscription.stop()).settled, 1);
});

check("a call that the server ends before Drained is an error as ever", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 1 });
    const loop = async () => {
        for await (const event of subscription) {
            server.shutDown();
            void event;
        }
    };
    assert.match((await failure(loop())).message, /shutting down/);
});

/* --- a new call --- */

for (const starting of ["handed", "said"])
    check(
        `that starts are said is said right behind the options of each call (${starting})`,
        SUPPORTED,
        async (server, it) => {
            const subscription = subscribe(it, { bufferSize: 4, consumerName: "worker", starting });
            const seen = watch(subscription);
            await seen.untilCount(4);
            await subscription.started(seen.events[0]);
            await until(server, "started", 2);
            assert.deepEqual(server.kinds.slice(0, 3), ["features", "options", "started"]);
            assert.deepEqual(textIds(server.requests[2]), []);
            await subscription.ack(seen.events[3]);
            await until(server, "ack");
            server.fail();
            await seen.untilError();

            const before = server.requests.length;
            resubscribe(subscription).on("error", () => {});
            await until(server, "ack", 2);
            const sent = server.requests.slice(before).filter(({ content }) => content);
            const kinds = sent.map(({ content }) => content);
            assert.deepEqual(kinds.slice(0, 4), ["options", "started", "started", "ack"]);
            assert.deepEqual(textIds(sent[1]), []);
            assert.ok(textIds(sent[2]).includes(idOfNumber(0)));
        },
    );

const FULL_COUNT = 60; /* more than a call of grpc-js takes before it says that it is full */

check(
    "acks for a call that is over fail, and are sent with the next one",
    { ...SUPPORTED, eventCount: FULL_COUNT },
    async (server, it) => {
        const subscription = subscribe(it, { bufferSize: FULL_COUNT, consumerName: "worker" });
        const seen = watch(subscription);
        await seen.untilCount(FULL_COUNT);
        server.fail();
        await seen.untilError();
        const acks = seen.events.slice(1).map((event) => failure(subscription.ack(event)));
        const nack = failure(subscription.nack("park", "no good", seen.events[0]));
        for (const error of await Promise.all([...acks, nack]))
            assert.match(error.message, /the call has ended: .*the group is gone/);
        resubscribe(subscription).on("error", () => {});
        await until(server, "ack", FULL_COUNT - 1);
        const acked = new Set(only(server, "ack").flatMap(textIds));
        assert.deepEqual(acked, new Set(upTo(FULL_COUNT - 1, 1).map(idOfNumber)));
        const [{ nack: again }] = only(server, "nack");
        assert.deepEqual([again.action, again.reason], ["Park", "no good"]);
    },
);

check("what was never taken out of a stream that broke is handed back", SUPPORTED, async (server, it) => {
    const subscription = subscribe(it, { bufferSize: 10, consumerName: "worker" });
    subscription.on("readable", () => {}); /* so the stream has one, and nobody reads it */
    await until(server, "started", 2);
    const unread = subscription.held();
    assert.deepEqual(unread.map(idOf), startedIds(server));
    const ended = told(subscription, "error");
    server.fail();
    await ended;
    const back = resubscribe(subscription);
    await until(server, "release");
    assert.deepEqual(back.held().filter((event) => unread.includes(event)), []);
    assert.deepEqual(only(server, "release").flatMap(textIds), unread.map(idOf));
});
