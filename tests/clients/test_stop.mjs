/* Stop, Stopped, Drained: the package clients/node on the official clients, against Sluice. Among them the three cases
 * that the maintainers of KurrentDB named, each without Stop and with it. */
import { setImmediate as turn } from "node:timers/promises";

import { resubscribe } from "../../clients/node/index.mjs";
import { ALL, newGroup } from "./lib/groups.mjs";
import { connect, newStream, upTo } from "./lib/official.mjs";
import { Raw } from "./lib/raw.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";
import { startServer } from "./lib/server.mjs";
import { Stoppable, join, joinPlain, newWork } from "./lib/stoppable.mjs";

const { server, it, check, end } = await rig();

const numberOf = ({ event }) => event.data.n;

/* Nothing is left for anybody: what a new consumer gets first is the mark that is appended now. */
async function assertNothingLeft(group) {
    const mark = 1_000_000;
    await it.append(group.stream, it.numbered(1, { first: mark }));
    const last = join(it, group);
    await last.untilCount(1);
    assert.deepEqual(last.numbers, [mark]);
    await last.stop();
}

/* --- a stop --- */

check(
    "S1.16: with nothing in flight it is drained at once, and the next consumer gets what comes",
    async () => {
        const group = await newWork(it, 0);
        const consumer = await join(it, group).confirmed();
        assert.equal(await consumer.subscription.supported, true);
        const counts = { supported: true, settled: 0, released: 0, lost: 0 };
        assert.deepEqual(await consumer.subscription.stop(), counts);
        assert.deepEqual(consumer.kinds, ["stopped", "drained"]);
        const { inFlight, outstanding, alreadyStopped, askedBy } = consumer.all("stopped")[0];
        assert.deepEqual([inFlight, outstanding, alreadyStopped, askedBy], [0, [], false, "consumer"]);
        await consumer.untilEnded();
        await it.append(group.stream, it.numbered(2));
        const next = join(it, group);
        await next.untilCount(2); /* S1.14 */
        assert.deepEqual(next.numbers, [0, 1]);
        assert.deepEqual(consumer.numbers, []);
        await next.stop();
    },
);

check(
    "S1.4 S1.5 S1.11: work in flight is finished, acks and nacks count, and bring nothing new",
    async () => {
        const group = await newWork(it, 12);
        const consumer = join(it, group, { bufferSize: 6 });
        await consumer.untilCount(6);
        const stopping = consumer.subscription.stop();
        const { inFlight, outstanding } = await consumer.first("stopped");
        assert.equal(inFlight, 6);
        assert.deepEqual(new Set(outstanding), new Set(consumer.events.map(({ event }) => event.id)));
        await consumer.subscription.ack(...consumer.events.slice(0, 3));
        await consumer.subscription.nack("skip", "not wanted", consumer.events[3]);
        await consumer.subscription.nack("park", "not now", consumer.events[4]);
        await consumer.subscription.ack(consumer.events[5]);
        assert.deepEqual(await stopping, { supported: true, settled: 6, released: 0, lost: 0 });
        assert.deepEqual(consumer.numbers, upTo(6));
        const settled = consumer.all("settled").flatMap(({ ids }) => ids);
        assert.deepEqual(new Set(settled), new Set(outstanding));
        assert.equal(consumer.kinds.at(-1), "drained");
        const next = join(it, group);
        await next.untilCount(6);
        assert.deepEqual(next.numbers, upTo(6, 6));
        await next.subscription.ack(...next.events);
        await next.subscription.stop();
        await assertNothingLeft(group);
    },
);

check(
    "S1.23 S1.24 S1.25: what was not started goes to another one at once, in order and uncounted",
    async () => {
        const group = await newWork(it, 10);
        const consumer = join(it, group, { bufferSize: 10, starting: "said" });
        const { subscription } = consumer;
        await consumer.untilCount(10);
        await subscription.started(consumer.events[2], consumer.events[5]);
        const other = await join(it, group, { bufferSize: 10 }).confirmed();
        const stopping = subscription.stop({ handBackUnstarted: true });
        const { handedBack, inFlight } = await consumer.first("stopped");
        assert.deepEqual(handedBack.map(numberOf), [0, 1, 3, 4, 6, 7, 8, 9]);
        assert.equal(inFlight, 2);
        await other.untilCount(8);
        assert.deepEqual(other.numbers, [0, 1, 3, 4, 6, 7, 8, 9]);
        assert.deepEqual(new Set(other.events.map(({ retryCount }) => retryCount)), new Set([0]));
        await subscription.ack(consumer.events[2], consumer.events[5]);
        assert.deepEqual(await stopping, { supported: true, settled: 2, released: 8, lost: 0 });
        await other.subscription.ack(...other.events);
        await other.subscription.stop();
        await assertNothingLeft(group);
    },
);

check("a loop over the events ends by itself when its consumer is drained", async () => {
    const group = await newWork(it, 50);
    const { subscription } = join(it, group, { bufferSize: 20 });
    subscription.removeAllListeners("data");
    let stopping = null;
    const done = [];
    for await (const event of subscription) {
        done.push(event.event.data.n);
        if (done.length === 5) stopping = subscription.stop({ handBackUnstarted: true });
        await subscription.ack(event);
    }
    const { settled, released, lost } = await stopping;
    assert.ok(settled >= 1 && lost === 0);
    assert.equal(released, 20 - settled); /* of those it had when it stopped */
    const next = join(it, group, { bufferSize: 50 });
    await next.untilCount(50 - done.length);
    assert.deepEqual([...done, ...next.numbers], upTo(50));
    assert.ok(next.events.every(({ retryCount }) => retryCount === 0));
    await next.stop();
});

check("S1.9 S1.26: a second stop is answered, and may still hand back", async () => {
    const group = await newWork(it, 5);
    const consumer = join(it, group, { bufferSize: 5, starting: "said" });
    await consumer.untilCount(5);
    await consumer.subscription.started(consumer.events[0]);
    const first = consumer.subscription.stop();
    assert.equal((await consumer.first("stopped")).inFlight, 5);
    const second = consumer.subscription.stop({ handBackUnstarted: true });
    const { alreadyStopped, inFlight, handedBack } = await consumer.first("stopped", 1);
    assert.deepEqual([alreadyStopped, inFlight, handedBack.map(numberOf)], [true, 1, [1, 2, 3, 4]]);
    await consumer.subscription.ack(consumer.events[0]);
    const counts = { supported: true, settled: 1, released: 4, lost: 0 };
    assert.deepEqual(await Promise.all([first, second]), [counts, counts]);
    assert.equal(consumer.all("drained").length, 1);
    assert.deepEqual(await consumer.subscription.stop(), counts);
});

check("S1.3 S1.7: with leave: false the call stays, and ends with unsubscribe", async () => {
    const group = await newWork(it, 1);
    const consumer = join(it, group);
    await consumer.untilCount(1);
    await consumer.subscription.ack(consumer.events[0]);
    await consumer.subscription.stop({ leave: false });
    await it.append(group.stream, it.numbered(1, { first: 1 }));
    const again = consumer.subscription.stop({ leave: false }); /* a round trip: nothing came with it */
    await again;
    assert.deepEqual(consumer.numbers, [0]);
    assert.equal(consumer.ended, false);
    await consumer.subscription.unsubscribe();
    await consumer.untilEnded();
});

check("S1.8: who unsubscribes with work in flight after a stop gives it to others", async () => {
    const group = await newWork(it, 3);
    const consumer = join(it, group);
    await consumer.untilCount(3);
    const stopping = failure(consumer.subscription.stop());
    await consumer.first("stopped");
    await consumer.subscription.unsubscribe();
    assert.match((await stopping).message, /ended before it was drained/);
    const next = join(it, group);
    await next.untilCount(3);
    assert.deepEqual(next.numbers, [0, 1, 2]);
    await next.stop();
});

check("a group on $all can be left the same way", async () => {
    const stream = await it.fill(6, "everything");
    const filter = it.sdk.streamNameFilter({ prefixes: [stream] });
    const group = await newGroup(it, ALL, {}, { filter });
    const consumer = join(it, group, { bufferSize: 4 });
    await consumer.untilCount(4);
    const stopping = consumer.subscription.stop();
    await consumer.subscription.ack(...consumer.events);
    assert.equal((await stopping).settled, 4);
    const next = join(it, group);
    await next.untilCount(2);
    assert.deepEqual(next.numbers, [4, 5]);
    await next.stop();
});

check("events behind links are held, settled and handed back by the ids of the links", async () => {
    const target = await it.fill(4);
    const group = await newWork(it, 0, { resolveLinkTos: true });
    await it.append(
        group.stream,
        upTo(4).map((n) => it.link(n, target)),
    );
    const consumer = join(it, group, { starting: "said" });
    await consumer.untilCount(4);
    const [first, second] = consumer.events;
    assert.ok(consumer.subscription.lease(first).token > 0n);
    await consumer.subscription.started(first, second);
    const stopping = consumer.subscription.stop({ handBackUnstarted: true });
    const { outstanding, handedBack } = await consumer.first("stopped");
    assert.deepEqual(new Set(outstanding), new Set([first.link.id, second.link.id]));
    assert.deepEqual(handedBack, consumer.events.slice(2));
    await consumer.subscription.ack(first);
    await consumer.subscription.release(second);
    assert.deepEqual(await stopping, { supported: true, settled: 1, released: 3, lost: 0 });
    assert.deepEqual(consumer.subscription.held(), []);
});

/* --- the three cases of the maintainers --- */

const ACK_COUNT = 300;

/* A program that acks as it should and then ends the call; gives what another one is sent again. */
async function sentAgain(joinIt, leave) {
    const group = await newWork(it, ACK_COUNT, { historyBufferSize: 2 * ACK_COUNT });
    const consumer = joinIt(it, group, { bufferSize: ACK_COUNT });
    await consumer.untilCount(ACK_COUNT);
    for (const event of consumer.events) consumer.subscription.ack(event).catch(() => {});
    await leave(consumer.subscription);
    const mark = ACK_COUNT;
    await it.append(group.stream, it.numbered(1, { first: mark }));
    const next = join(it, group, { bufferSize: ACK_COUNT + 1 });
    await next.until(() => next.numbers.includes(mark), "the mark");
    await next.stop();
    return next.numbers.filter((n) => n !== mark);
}

check("case 1 without Stop: acks are lost when the call ends, and finished work is sent again", async () => {
    const again = await sentAgain(joinPlain, (subscription) => subscription.unsubscribe());
    assert.ok(again.length > 0, "every ack arrived; then this test shows nothing");
});

check("S1.21, case 1 with Stop: every ack arrives before the call ends", async () => {
    assert.deepEqual(await sentAgain(join, (subscription) => subscription.stop()), []);
});

/* Work that is done after the decision to leave; gives how often it is done. */
async function timesDone(joinIt, decide) {
    const group = await newWork(it, 1);
    const consumer = joinIt(it, group);
    await consumer.untilCount(1);
    const decided = decide(consumer.subscription);
    const other = await join(it, group).confirmed();
    await consumer.subscription.ack(consumer.events[0]).catch(() => {}); /* the work is done now */
    await decided.catch(() => {});
    await it.append(group.stream, it.numbered(1, { first: 1 }));
    await other.until(() => other.numbers.includes(1), "the mark");
    await other.stop();
    return 1 + other.numbers.filter((n) => n === 0).length;
}

check("case 2 without Stop: work that ends after the decision to leave is done twice", async () => {
    assert.equal(await timesDone(joinPlain, (subscription) => subscription.unsubscribe()), 2);
});

check("S1.22, case 2 with Stop: it is acked and done once", async () => {
    assert.equal(await timesDone(join, (subscription) => subscription.stop()), 1);
});

/* Ten are delivered, one is worked on. Gives what another consumer has before that work is done, and how often each
 * counts as tried in the end. The one that leaves has a connection of its own: consumers without a name are known by
 * that of their connection, and are charged alike. */
async function deliveredNotStarted(joinIt, decide, finish) {
    const group = await newWork(it, 10);
    const own = connect(server);
    const consumer = joinIt(own, group, { bufferSize: 10, starting: "said" });
    await consumer.untilCount(10);
    await consumer.subscription.started?.(consumer.events[0]);
    const other = await join(it, group, { bufferSize: 20 }).confirmed();
    const decided = await decide(consumer);
    await it.append(group.stream, it.numbered(1, { first: 10 }));
    await other.until(() => other.numbers.includes(10) || consumer.numbers.includes(10), "the mark");
    const before = other.numbers.filter((n) => n < 10);
    await consumer.subscription.ack(consumer.events[0]);
    await finish(consumer.subscription, decided);
    await other.until(() => other.numbers.filter((n) => n < 10).length >= 9, "the rest");
    const retries = other.events.filter(({ event }) => event.data.n < 10).map(({ retryCount }) => retryCount);
    await other.stop();
    await own.close();
    return { before, retries };
}

check("case 3 without Stop: what was not started waits for the one that leaves, and is charged", async () => {
    const { before, retries } = await deliveredNotStarted(
        joinPlain,
        () => {},
        (subscription) => subscription.unsubscribe(),
    );
    assert.deepEqual(before, []);
    assert.ok(
        retries.every((count) => count > 0),
        `${retries}`,
    );
});

check("S1.23, case 3 with Stop: others have it while the last work is still done, uncounted", async () => {
    const { before, retries } = await deliveredNotStarted(
        join,
        async (consumer) => {
            const stopping = consumer.subscription.stop({ handBackUnstarted: true });
            await consumer.first("stopped");
            return { stopping };
        },
        (_, { stopping }) => stopping,
    );
    assert.deepEqual(before, upTo(9, 1));
    assert.deepEqual(retries, new Array(9).fill(0));
});

/* --- release, extend, started, lost --- */

check("what is released comes again, uncounted and with a larger token", async () => {
    const group = await newWork(it, 3);
    const consumer = join(it, group, { bufferSize: 3 });
    await consumer.untilCount(3);
    const { subscription } = consumer;
    const tokens = [subscription.lease(consumer.events[1]).token];
    assert.equal(await subscription.release(consumer.events[1]), true);
    await consumer.untilCount(4);
    assert.deepEqual(consumer.numbers, [0, 1, 2, 1]);
    assert.equal(consumer.events[3].retryCount, 0);
    tokens.push(subscription.lease(consumer.events[3]).token);
    assert.ok(tokens[1] > tokens[0], `${tokens}`);
    const { ids } = await consumer.first("settled");
    assert.deepEqual(ids, [consumer.events[1].event.id]);
    await subscription.ack(consumer.events[0], consumer.events[2], consumer.events[3]);
    assert.deepEqual(await subscription.stop(), { supported: true, settled: 0, released: 0, lost: 0 });
    assert.deepEqual(consumer.all("lost"), []);
    await assertNothingLeft(group);
});

check("B5 S1.31: an ack for what another one has by now is lost, and changes nothing", async () => {
    const group = await newWork(it, 1, { messageTimeout: 100 });
    const slow = join(it, group);
    await slow.untilCount(1);
    const quick = await join(it, group).confirmed();
    const stopping = slow.subscription.stop(); /* so that it comes to the other one */
    await quick.untilCount(1); /* when the lease has run out: the time of it is the matter */
    assert.equal((await stopping).lost, 1);
    const late = join(it, group);
    await late.confirmed();
    await late.subscription.ack(quick.events[0]);
    const { ids, events } = await late.first("lost");
    assert.deepEqual([ids, events], [[quick.events[0].event.id], []]);
    await quick.subscription.extend(60_000, quick.events[0]);
    await quick.subscription.ack(quick.events[0]);
    assert.deepEqual((await quick.first("settled")).ids, ids);
    await Promise.all([late.stop(), quick.stop()]);
});

check("an extended lease is kept beyond the time of the group", async () => {
    const group = await newWork(it, 2, { messageTimeout: 150 });
    const consumer = join(it, group, { bufferSize: 2 });
    await consumer.untilCount(2);
    await consumer.subscription.extend(60_000, consumer.events[0]);
    const stopping = consumer.subscription.stop();
    const other = join(it, group);
    await other.untilCount(1); /* the one that was not extended; the time of a lease is the matter */
    assert.deepEqual(other.numbers, [1]);
    await consumer.subscription.ack(consumer.events[0]);
    assert.deepEqual(await stopping, { supported: true, settled: 1, released: 0, lost: 1 });
    await other.stop();
});

check("B2: who dies is charged for what he had started, and for nothing else", async () => {
    const group = await newWork(it, 10);
    const { subscription } = join(it, group, { bufferSize: 10 });
    subscription.removeAllListeners("data");
    const events = subscription[Symbol.asyncIterator]();
    const { value: first } = await events.next();
    await events.next();
    const settled = new Promise((resolve) => subscription.once("settled", resolve));
    await subscription.ack(first);
    await settled; /* so the server knows what was started, too */
    const started = subscription.held().map(numberOf); /* two when the stream of Node looked ahead */
    await subscription.unsubscribe();
    const next = join(it, group, { bufferSize: 10 });
    await next.untilCount(9);
    const charged = next.events.filter(({ retryCount }) => retryCount > 0).map(numberOf);
    assert.deepEqual(charged, started);
    assert.ok(started.length <= 2);
    await next.stop();
});

/* --- by an operator --- */

check("B10: an operator stops a consumer by its label, and waits until it is drained", async () => {
    const group = await newWork(it, 4);
    const version = newStream("version");
    const old = join(it, group, { bufferSize: 2, consumerName: "old", labels: { version } });
    await old.untilCount(2);
    const raw = new Raw(server);
    const who = { stream: group.stream, group: group.name, label_key: "version", label_value: version };
    const request = { who, reason: "a new version", deadline_ms: 25_000, wait_ms: 20_000 };
    const waiting = raw.serverStream("operators", "Stop", request);
    const { reason, deadlineMs } = await old.first("stopRequested");
    assert.equal(reason, "a new version");
    assert.ok(deadlineMs > 0 && deadlineMs <= 25_000); /* what is left of it when the record of the stop is written */
    const { askedBy, inFlight } = await old.first("stopped");
    assert.deepEqual([askedBy, inFlight], ["operator", 2]);
    await old.subscription.ack(...old.events);
    const drained = await old.first("drained");
    assert.deepEqual(drained, { supported: true, settled: 2, released: 0, lost: 0 });
    const { responses, error } = await waiting;
    assert.equal(error, null);
    const { meant, drained: count, done } = responses.at(-1);
    assert.deepEqual([meant, count, done], [1, 1, true]);
    assert.deepEqual(await old.subscription.stop(), drained);
    const next = join(it, group, { consumerName: "new" });
    await next.untilCount(2);
    assert.deepEqual(next.numbers, [2, 3]);
    await next.stop();
    raw.close();
});

/* --- a server that goes away --- */

check(
    "B4: a consumer comes back to a restarted server with what it holds, and nobody else gets it",
    async () => {
        const own = await startServer();
        const session = connect(own);
        const group = await newWork(session, 4);
        const consumer = join(session, group, { bufferSize: 4, consumerName: "stays" });
        await consumer.untilCount(4);
        await consumer.subscription.ack(consumer.events[0]);
        await consumer.first("settled");
        await own.kill();
        await consumer.untilError();
        await own.start();
        const other = connect(own);
        const stranger = await join(other, group, { consumerName: "other" }).confirmed();
        const back = new Stoppable(resubscribe(consumer.subscription));
        await back.confirmed();
        await back.subscription.ack(...consumer.events.slice(1));
        const stopping = back.subscription.stop();
        const { settled, lost } = await stopping;
        assert.equal(lost, 0);
        assert.deepEqual(back.all("lost"), []);
        assert.ok(settled <= 3);
        await session.append(group.stream, session.numbered(1, { first: 4 }));
        await stranger.untilCount(1);
        assert.deepEqual(stranger.numbers, [4]);
        await stranger.stop();
        await Promise.all([session.close(), other.close()]);
        await own.stop();
        own.remove();
    },
);

check("S1.23: work that was begun just before the server died is not handed back by a stop", async () => {
    const own = await startServer();
    const session = connect(own);
    const group = await newWork(session, 2);
    const options = { bufferSize: 2, consumerName: "stays", starting: "said" };
    const consumer = join(session, group, options);
    await consumer.untilCount(2);
    own.freeze(); /* what is said now waits in the kernel, and dies with the server */
    await consumer.subscription.started(consumer.events[0]);
    await own.kill();
    await consumer.untilError();
    await own.start();
    const back = new Stoppable(resubscribe(consumer.subscription));
    await back.confirmed();
    const stopping = back.subscription.stop({ handBackUnstarted: true });
    const { inFlight, handedBack } = await back.first("stopped");
    assert.equal(inFlight, 1);
    assert.deepEqual(handedBack.map(numberOf), [1]);
    await back.subscription.ack(consumer.events[0]);
    assert.deepEqual(await stopping, { supported: true, settled: 1, released: 1, lost: 0 });
    assert.deepEqual(back.all("lost"), []);
    await session.close();
    await own.stop();
    own.remove();
});

/* Four that the program has and has begun none of; gives what its stop says. */
async function stopUnstarted(consumer) {
    const stopping = consumer.subscription.stop({ handBackUnstarted: true });
    const { handedBack } = await consumer.first("stopped");
    assert.deepEqual(handedBack.map(numberOf), upTo(4));
    assert.deepEqual(await stopping, { supported: true, settled: 0, released: 4, lost: 0 });
}

check("S1.23: who has begun nothing hands everything back, on a first call and on the next", async () => {
    const own = await startServer();
    const session = connect(own);
    const options = { bufferSize: 4, consumerName: "stays", starting: "said" };
    const first = join(session, await newWork(session, 4), options);
    await first.untilCount(4);
    await stopUnstarted(first);

    const lost = join(session, await newWork(session, 4), options);
    await lost.untilCount(4);
    await own.kill();
    await lost.untilError();
    await own.start();
    await stopUnstarted(new Stoppable(resubscribe(lost.subscription)));
    await session.close();
    await own.stop();
    own.remove();
});

/* --- many --- */

const MANY_COUNT = 2_000;
const LANE_COUNT = 8;

/* One consumer: works on what it is given until it has had its share, and then stops. */
async function workShift(subscription, share, handBackUnstarted, done) {
    let stopping = null;
    let count = 0;
    for await (const event of subscription) {
        await turn();
        done(numberOf(event));
        await subscription.ack(event);
        if (++count === share) stopping = subscription.stop({ handBackUnstarted });
    }
    return stopping;
}

check("eight consumers, each of which stops and is replaced again and again: lost 0, twice 0", async () => {
    const group = await newWork(it, MANY_COUNT);
    const times = new Map();
    const active = new Set();
    const isDone = () => times.size === MANY_COUNT;
    const done = (n) => {
        times.set(n, (times.get(n) ?? 0) + 1);
        if (isDone()) for (const subscription of active) void subscription.stop().catch(() => {});
    };
    const reports = [];
    const lane = async (number) => {
        const session = connect(server);
        while (!isDone()) {
            const { subscription } = join(session, group, { bufferSize: 10 + number });
            subscription.removeAllListeners("data");
            active.add(subscription);
            reports.push(await workShift(subscription, 40 + 10 * number, number % 2 === 0, done));
            active.delete(subscription);
        }
        await session.close();
    };
    await Promise.all(upTo(LANE_COUNT).map(lane));
    assert.equal(times.size, MANY_COUNT);
    const twice = [...times].filter(([, count]) => count > 1);
    assert.deepEqual(twice, []);
    const stopped = reports.filter(Boolean);
    assert.ok(stopped.length > 2 * LANE_COUNT, `${stopped.length} stops`);
    assert.ok(stopped.some(({ released }) => released > 0));
    assert.ok(stopped.every(({ lost, supported }) => lost === 0 && supported));
});

end();
