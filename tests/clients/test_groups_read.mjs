/* Consumers of persistent subscriptions: what is delivered, to whom and how often, and what acks and nacks do. */
import { ALL, newGroup } from "./lib/groups.mjs";
import { connect, newStream, upTo } from "./lib/official.mjs";
import { Other } from "./lib/other.mjs";
import { assert, rig } from "./lib/rig.mjs";
import { startServer } from "./lib/server.mjs";
import { within } from "./lib/wait.mjs";

const { check, newer, server, end } = await rig();

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

/* --- one consumer --- */

check("a consumer is confirmed and gets old and new events in order", async (it) => {
    const group = await newGroup(it, await it.fill(10));
    const consumer = group.consume({ bufferSize: 20 });
    await consumer.untilCount(10);
    assert.equal(consumer.subscription.id, `${group.stream}::${group.name}`);
    assert.equal(consumer.confirmations.length, 1);
    await it.append(group.stream, it.numbered(10, { first: 10 }));
    await consumer.untilCount(20);
    assert.deepEqual(consumer.numbers, upTo(20));
    assert.deepEqual(consumer.retries, upTo(20).fill(0));
    const [{ event, link }] = consumer.events;
    const [{ event: read }] = await it.read(group.stream, { maxCount: 1 });
    assert.equal(link, undefined);
    for (const field of ["id", "streamId", "type", "isJson", "data", "revision"])
        assert.deepEqual(event[field], read[field], field);
    assert.ok(event.created instanceof Date || typeof event.created === "number");
    await consumer.stop();
});

check("a consumer can be read by a loop", async (it) => {
    const group = await newGroup(it, await it.fill(25));
    const { client } = it;
    const subscription = client.subscribeToPersistentSubscriptionToStream(group.stream, group.name);
    const seen = [];
    for await (const event of subscription) {
        seen.push(event.event.data.n);
        await subscription.ack(event);
        if (seen.length === 25) break;
    }
    assert.deepEqual(seen, upTo(25));
    await subscription.unsubscribe().catch(() => {});
    await group.until(({ stats }) => stats.outstandingMessagesCount === 0, "nothing outstanding");
});

check("no more is delivered than the consumer has room for", async (it) => {
    const group = await newGroup(it, await it.fill(40));
    for (const bufferSize of [1, 3, 10]) {
        const consumer = group.consume({ bufferSize });
        await consumer.untilCount(bufferSize);
        const info = await group.untilInFlight(bufferSize);
        assert.equal(consumer.events.length, bufferSize);
        assert.equal(info.connections[0].availableSlots, 0);
        await consumer.ack(0, 1);
        await consumer.untilCount(bufferSize + 1);
        await group.untilInFlight(bufferSize);
        assert.equal(consumer.events.length, bufferSize + 1);
        await consumer.stop();
        await group.untilConsumers(0);
    }
});

check("events of all kinds arrive as they were written", async (it) => {
    const stream = newStream();
    const big = Buffer.alloc(900_000, 7);
    const written = [
        it.sdk.jsonEvent({ type: "json", data: { a: ["ü", 1, null] }, metadata: { why: "so" } }),
        it.sdk.binaryEvent({ type: "binary", data: Buffer.from([0, 1, 255]), metadata: Buffer.from([9]) }),
        it.sdk.binaryEvent({ type: "empty", data: Buffer.alloc(0) }),
        it.sdk.binaryEvent({ type: "big", data: big }),
    ];
    const group = await newGroup(it, stream);
    const consumer = group.consume();
    await consumer.untilConfirmed();
    for (const event of written) await it.append(stream, event);
    await consumer.untilCount(4);
    const events = consumer.events.map(({ event }) => event);
    assert.deepEqual(
        events.map(({ id }) => id),
        written.map(({ id }) => id),
    );
    assert.deepEqual(events[0].data, { a: ["ü", 1, null] });
    assert.deepEqual(events[0].metadata, { why: "so" });
    assert.deepEqual([...events[1].data], [0, 1, 255]);
    assert.equal(events[1].isJson, false);
    assert.equal(events[2].data?.length ?? 0, 0);
    assert.ok(big.equals(events[3].data));
    await consumer.stop();
});

/* --- acks and nacks --- */

check("what is acked is never delivered again, one by one or many at once", async (it) => {
    const group = await newGroup(it, await it.fill(20));
    const first = group.consume({ bufferSize: 20 });
    await first.untilCount(20);
    await first.ack(0, 1);
    await first.ack(5, 15);
    await first.ack(5, 15); /* again: nothing happens */
    await group.untilInFlight(9);
    await first.stop();
    const second = group.consume({ bufferSize: 20 });
    await second.untilCount(9);
    assert.deepEqual(second.numbers, [1, 2, 3, 4, 15, 16, 17, 18, 19]);
    assert.deepEqual(second.retries, upTo(9).fill(1)); /* the first one had them, and left */
    await second.stop();
});

check("each kind of nack does what it says", async (it) => {
    const group = await newGroup(it, await it.fill(4));
    const consumer = group.consume();
    await consumer.untilCount(4);
    await consumer.nack("skip", "not mine", 0, 1);
    await consumer.nack("stop", "as skip", 1, 2);
    await consumer.nack("park", "later", 2, 3);
    await consumer.nack("retry", "again", 3, 4);
    await consumer.untilCount(5);
    assert.deepEqual(consumer.numbers, [0, 1, 2, 3, 3]);
    assert.equal(consumer.events[4].retryCount, 1);
    assert.equal(consumer.error, null); /* "stop" is no end of the subscription */
    await consumer.ack(4, 5);
    await group.untilParked(1);
    const { stats } = await group.untilInFlight(0);
    assert.equal(stats.totalItems, 5n);
    await consumer.stop();
});

check("a message is retried as often as allowed and then parked", async (it) => {
    for (const maxRetryCount of [0, 2]) {
        const group = await newGroup(it, await it.fill(1), { maxRetryCount });
        const consumer = group.consume();
        for (let i = 0; i <= maxRetryCount; i++) {
            await consumer.untilCount(i + 1);
            assert.equal(consumer.events[i].retryCount, i);
            await consumer.nack("retry", "no", i, i + 1);
        }
        await group.untilParked(1);
        assert.equal(consumer.events.length, maxRetryCount + 1);
        const [{ event, link }] = await it.read(group.parkedStream, { resolveLinkTos: true });
        assert.equal(event.streamId, group.stream);
        assert.equal(link.streamId, group.parkedStream);
        await consumer.stop();
    }
});

check("acks of what was never delivered change nothing", async (it) => {
    const group = await newGroup(it, await it.fill(3));
    const consumer = group.consume({ bufferSize: 1 });
    await consumer.untilCount(1);
    const strangers = it.numbered(5).map((event) => ({ event }));
    await consumer.subscription.ack(...strangers);
    await consumer.subscription.nack("park", "who?", ...strangers);
    await consumer.ack(0, 1);
    await consumer.untilCount(2);
    assert.equal((await group.info()).stats.parkedMessageCount, 0n);
    await consumer.stop();
});

check("many acks in one request, and many requests", async (it) => {
    const count = 2_000;
    const stream = newStream();
    for (let n = 0; n < count; n += 500) await it.append(stream, it.numbered(500, { first: n }));
    const group = await newGroup(it, stream, { historyBufferSize: 3_000 });
    const consumer = group.consume({ bufferSize: count });
    await consumer.untilCount(count);
    assert.deepEqual(consumer.numbers, upTo(count));
    await consumer.ack(0, 1_000);
    await Promise.all(consumer.events.slice(1_000).map((event) => consumer.subscription.ack(event)));
    await group.untilInFlight(0);
    await consumer.stop();
});

/* Time itself is the matter: the timeout is a second. */
check("what is not acked in time is delivered again", async (it) => {
    const group = await newGroup(it, await it.fill(2), { messageTimeout: 1_000 });
    const consumer = group.consume();
    await consumer.untilCount(4);
    assert.deepEqual(sorted(consumer.numbers), [0, 0, 1, 1]);
    assert.deepEqual(sorted(consumer.retries), [0, 0, 1, 1]);
    await consumer.ack(2, 4);
    await group.untilInFlight(0);
    await consumer.stop();
});

/* --- links --- */

check("links are resolved when the group says so", async (it) => {
    const target = await it.fill(3, "target");
    const gone = await it.fill(1, "gone");
    const links = newStream("links");
    await it.append(links, [it.link(1, target), it.link(0, gone), it.numbered(1, { first: 9 })[0]]);
    await it.client.deleteStream(gone);
    const resolving = await newGroup(it, links, { resolveLinkTos: true });
    const plain = await newGroup(it, links);
    const consumer = resolving.consume({ bufferSize: 3 });
    await consumer.untilCount(3);
    const [found, lost, own] = consumer.events;
    assert.equal(found.event.streamId, target);
    assert.equal(found.event.data.n, 1);
    assert.equal(found.link.streamId, links);
    assert.equal(found.link.revision, 0n);
    assert.equal(lost.event, undefined);
    assert.equal(lost.link.revision, 1n);
    assert.equal(own.event.data.n, 9);
    assert.equal(own.link, undefined);
    await consumer.ack(); /* a link by its own id */
    await resolving.untilInFlight(0);
    await consumer.stop();
    const second = plain.consume();
    await second.untilCount(3);
    assert.deepEqual(
        second.events.map(({ event, link }) => [event.type, link]),
        [
            ["$>", undefined],
            ["$>", undefined],
            ["numbered", undefined],
        ],
    );
    await second.stop();
});

/* --- $all --- */

check("a group of $all delivers what its filter names, old and new", async (it) => {
    const mark = newStream("mark");
    const paint = async (first) => {
        for (const [i, [stream, type]] of [
            ["cat", "born"],
            ["dog", "born"],
            ["cat", "fed"],
        ].entries())
            await it.append(
                `${mark}-${stream}`,
                it.sdk.jsonEvent({ type: `${mark}.${type}`, data: { n: first + i } }),
            );
    };
    const { eventTypeFilter: byType, streamNameFilter: byStream } = it.sdk;
    const rows = [
        [byType({ prefixes: [`${mark}.born`] }), [0, 1]],
        [byType({ regex: `^${mark}\\.(fed|gone)$` }), [2]],
        [byType({ prefixes: [`${mark}.fed`, `${mark}.born`], maxSearchWindow: 1 }), [0, 1, 2]],
        [byStream({ prefixes: [`${mark}-cat`] }), [0, 2]],
        [byStream({ regex: `${mark}-(dog|bird)$`, checkpointInterval: 2 }), [1]],
    ];
    await paint(0);
    const consumers = [];
    for (const [filter] of rows) consumers.push((await newGroup(it, ALL, {}, { filter })).consume());
    await Promise.all(consumers.map((consumer) => consumer.untilConfirmed()));
    await paint(3);
    for (const [i, consumer] of consumers.entries()) {
        const expected = [...rows[i][1], ...rows[i][1].map((n) => n + 3)];
        await consumer.untilCount(expected.length);
        assert.deepEqual(consumer.numbers, expected);
        const positions = consumer.events.map(({ event }) => event.position.commit);
        assert.deepEqual(positions, sorted(positions.map(Number)).map(BigInt));
        await consumer.stop();
    }
});

check("a group of $all without a filter gets events of every stream, and acks count", async (it) => {
    const group = await newGroup(it, ALL, { startFrom: "end" });
    const [one, two] = [await it.fill(3), await it.fill(2)];
    const consumer = group.consume({ bufferSize: 100 }).ackAll();
    const ours = () => consumer.events.filter(({ event }) => [one, two].includes(event?.streamId));
    await consumer.until(() => ours().length === 5, "five events");
    assert.equal(consumer.subscription.id, `$all::${group.name}`);
    assert.deepEqual(
        ours().map(({ event }) => event.data.n),
        [0, 1, 2, 0, 1],
    );
    await group.untilInFlight(0);
    await consumer.stop();
    await group.delete();
});

/* --- several consumers --- */

/* A consumer for each of the sessions; all events are acked. finish() waits for that and gives the consumers. */
async function share(group, sessions, count, bufferSize = 10) {
    const consumers = sessions.map((session) => group.consume({ bufferSize }, session));
    await Promise.all(consumers.map((consumer) => consumer.untilConfirmed()));
    await group.untilConsumers(consumers.length);
    let acked = 0;
    const done = new Promise((resolve) => {
        for (const consumer of consumers)
            consumer.ackAll(() => {
                if (++acked === count) resolve();
            });
    });
    const finish = async () => {
        await within(done, 30_000, `${count} acks, ${acked} so far`);
        await group.untilInFlight(0);
        await Promise.all(consumers.map((consumer) => consumer.stop()));
        return consumers;
    };
    return { consumers, finish };
}

check("two consumers share the events in turn", async (it) => {
    const group = await newGroup(it);
    const { finish } = await share(group, [it, it], 100);
    for (let n = 0; n < 100; n++) await it.append(group.stream, it.numbered(1, { first: n }));
    const consumers = await finish();
    assert.deepEqual(sorted(consumers.flatMap(({ numbers }) => numbers)), upTo(100));
    for (const { events } of consumers) assert.ok(events.length >= 40, `${events.length} of 100`);
});

check("with DispatchToSingle one consumer gets everything until it is full", async (it) => {
    const group = await newGroup(it, newStream(), { consumerStrategyName: it.sdk.DISPATCH_TO_SINGLE });
    const consumers = [group.consume({ bufferSize: 5 }), group.consume({ bufferSize: 5 })];
    await group.untilConsumers(2);
    await it.append(group.stream, it.numbered(7));
    await Promise.all(consumers.map((consumer) => consumer.until(() => consumer.events.length >= 2, "its share")));
    await group.untilInFlight(7);
    const counts = consumers.map(({ events }) => events.length);
    assert.deepEqual(sorted(counts), [2, 5]);
    const full = consumers.find(({ events }) => events.length === 5);
    assert.deepEqual(full.numbers, upTo(5));
    for (const consumer of consumers) await consumer.stop();
});

check("with Pinned all events of a stream go to one consumer, in order", async (it) => {
    const mark = newStream("pinned");
    const filter = it.sdk.streamNameFilter({ prefixes: [mark] });
    const group = await newGroup(it, ALL, { consumerStrategyName: it.sdk.PINNED }, { filter });
    const { finish } = await share(group, [it, it, it], 200);
    for (let n = 0; n < 20; n++)
        await Promise.all(
            upTo(10).map((key) => it.append(`${mark}-${key}`, it.numbered(1, { first: n }))),
        );
    const consumers = await finish();
    const owner = new Map();
    for (const consumer of consumers)
        for (const { event } of consumer.events) {
            assert.equal(owner.get(event.streamId) ?? consumer, consumer, event.streamId);
            owner.set(event.streamId, consumer);
        }
    assert.equal(owner.size, 10);
    for (const [stream, { events }] of owner) {
        const numbers = events.filter(({ event }) => event.streamId === stream).map(({ event }) => event.data.n);
        assert.deepEqual(numbers, upTo(20), stream);
    }
    assert.ok(new Set(owner.values()).size > 1, "one has everything");
});

newer("with PinnedByCorrelation all events of a correlation go to one consumer", async (it) => {
    const group = await newGroup(it, newStream(), { consumerStrategyName: it.sdk.PINNED_BY_CORRELATION });
    const { finish } = await share(group, [it, it, it], 100);
    for (let n = 0; n < 100; n++)
        await it.append(
            group.stream,
            it.sdk.jsonEvent({
                type: "numbered",
                data: { n },
                metadata: { $correlationId: `key-${n % 10}` },
            }),
        );
    const owner = new Map();
    for (const consumer of await finish())
        for (const { event } of consumer.events) {
            const key = event.metadata.$correlationId;
            assert.equal(owner.get(key) ?? consumer, consumer, key);
            owner.set(key, consumer);
        }
    assert.equal(owner.size, 10);
    assert.ok(new Set(owner.values()).size > 1, "one has everything");
});

check("fifty consumers of ten clients get each event once", async (it) => {
    const count = 1_000;
    const sessions = upTo(10).map(() => connect(server));
    const group = await newGroup(it);
    const { finish } = await share(group, upTo(50).map((i) => sessions[i % 10]), count, 5);
    for (let n = 0; n < count; n += 100) await it.append(group.stream, it.numbered(100, { first: n }));
    const consumers = await finish();
    assert.deepEqual(sorted(consumers.flatMap(({ numbers }) => numbers)), upTo(count));
    assert.ok(consumers.every(({ events }) => events.length > 0), "somebody got nothing");
    await Promise.all(sessions.map((session) => session.close()));
});

check("no more consumers than the group allows", async (it) => {
    for (const stream of [newStream(), ALL]) {
        const group = await newGroup(it, stream, { maxSubscriberCount: 2, startFrom: "end" });
        const consumers = [group.consume(), group.consume()];
        await Promise.all(consumers.map((consumer) => consumer.untilConfirmed()));
        const error = await group.consume().untilError();
        assert.ok(error instanceof it.sdk.PersistentSubscriptionMaximumSubscribersReachedError, error.stack);
        assert.equal(error.streamName, stream);
        assert.equal(error.groupName, group.name);
        await consumers[0].stop();
        await group.untilConsumers(1);
        const third = group.consume();
        await third.untilConfirmed();
        for (const consumer of [consumers[1], third]) await consumer.stop();
        await group.delete();
    }
});

/* --- consumers that go --- */

check("what a consumer had is delivered to another when it unsubscribes or its client goes", async (it) => {
    const ways = {
        unsubscribe: (_, consumer) => consumer.stop(),
        dispose: (session) => session.close(),
    };
    for (const [name, way] of Object.entries(ways)) {
        const group = await newGroup(it, await it.fill(12));
        const session = connect(server);
        const first = group.consume({ bufferSize: 6 }, session);
        await first.untilCount(6);
        const second = group.consume({ bufferSize: 12 });
        await second.untilCount(6);
        await first.ack(0, 2);
        await group.untilInFlight(10);
        await way(session, first);
        await second.untilCount(10);
        assert.deepEqual(sorted(second.numbers), upTo(10, 2), name);
        assert.deepEqual(second.retries.slice(6), [1, 1, 1, 1], name);
        await second.ack();
        await group.untilInFlight(0);
        await second.stop();
        await session.close();
    }
});

/* Its thread is ended with everything it has, so nothing is cancelled: connections just break. */
check("what a consumer had is delivered to another when it dies", async (it) => {
    const group = await newGroup(it, await it.fill(8));
    const other = new Other(server);
    assert.deepEqual(await other.do("consume", group.stream, group.name, 5, 0), upTo(5));
    const consumer = group.consume({ bufferSize: 20 });
    await consumer.untilCount(3);
    await group.untilInFlight(8);
    await other.close();
    await consumer.untilCount(8);
    assert.deepEqual(consumer.numbers, [5, 6, 7, 0, 1, 2, 3, 4]);
    await consumer.ack();
    await group.untilInFlight(0);
    await group.untilConsumers(1);
    await consumer.stop();
});

check("both official clients are consumers of one group", async (it) => {
    const group = await newGroup(it);
    const consumer = group.consume({ bufferSize: 10 });
    const other = new Other(server);
    const theirs = other.do("consume", group.stream, group.name, 10, 10);
    await group.untilConsumers(2);
    await it.append(group.stream, it.numbered(20));
    await consumer.untilCount(10);
    assert.deepEqual(sorted([...consumer.numbers, ...(await theirs)]), upTo(20));
    await consumer.ack();
    await group.untilInFlight(0);
    await other.close();
    await consumer.stop();
});

check("consumers come and go in the middle of it, and nothing is lost", async (it) => {
    const count = 500;
    const group = await newGroup(it, newStream(), { maxRetryCount: 100 });
    const seen = new Set();
    let wake = () => {};
    const join = () => {
        const session = connect(server);
        const consumer = group.consume({ bufferSize: 5 }, session);
        consumer.ackAll(({ event }) => {
            seen.add(event.data.n);
            wake();
        });
        return { session, consumer };
    };
    const members = [join(), join(), join()];
    const writing = (async () => {
        for (let n = 0; n < count; n += 10) await it.append(group.stream, it.numbered(10, { first: n }));
    })();
    for (let round = 0; round < 12; round++) {
        const goal = Math.min(count, seen.size + 20);
        const enough = new Promise((resolve) => {
            wake = () => seen.size >= goal && resolve();
            wake();
        });
        await within(enough, 30_000, `${goal} events`);
        const { session, consumer } = members.shift();
        if (round % 2 === 0) await consumer.stop();
        await session.close();
        members.push(join());
    }
    await writing;
    const all = new Promise((resolve) => {
        wake = () => seen.size === count && resolve();
        wake();
    });
    await within(all, 30_000, `all ${count} events, not ${seen.size}`);
    await group.untilInFlight(0);
    assert.equal((await group.info()).stats.parkedMessageCount, 0n);
    for (const { session, consumer } of members) {
        await consumer.stop();
        await session.close();
    }
});

/* --- statistics --- */

check("information tells who is there and what he has", async (it) => {
    const session = connect(server, { connectionName: "worker-7" });
    const group = await newGroup(it, await it.fill(8), { extraStatistics: true, checkPointUpperBound: 1 });
    const consumer = group.consume({ bufferSize: 5 }, session);
    await consumer.untilCount(5);
    await consumer.ack(0, 2);
    await consumer.untilCount(7);
    const info = await group.untilInFlight(5);
    const [connection] = info.connections;
    assert.equal(info.connections.length, 1);
    assert.equal(connection.connectionName, "worker-7");
    assert.equal(connection.username, "anonymous");
    assert.equal(connection.totalItems, 7n);
    assert.equal(connection.inFlightMessages, 5);
    assert.equal(connection.availableSlots, 0);
    const keys = ["mean", "median", "fastest", ...upTo(5, 1).map((n) => `quintile ${n}`)];
    keys.push("90%", "95%", "99%", "99.5%", "99.9%", "highest");
    assert.deepEqual([...connection.extraStatistics.keys()], keys);
    assert.equal(info.stats.totalItems, 7n);
    assert.equal(info.stats.outstandingMessagesCount, 5);
    assert.equal(info.stats.lastKnownEventRevision, 7n);
    assert.equal(info.stats.parkedMessageCount, 0n);
    await consumer.ack(2);
    await consumer.untilCount(8);
    await consumer.ack(7);
    await group.until(({ stats }) => stats.lastCheckpointedEventRevision === 7n, "the checkpoint of the last");
    await consumer.stop();
    await session.close();
});

check("calls take the options that all calls have", async (it) => {
    const options = { requiresLeader: true, deadline: 20_000, credentials: { username: "u", password: "p" } };
    for (const stream of [await it.fill(1), ALL]) {
        const group = await newGroup(it, stream, {}, options);
        const { deadline: _, ...lasting } = options; /* of a subscription it would be the end */
        const consumer = group.consume({ bufferSize: 1, ...lasting });
        await consumer.untilCount(1);
        await group.info(options);
        await group.replay(options);
        await group.update({ startFrom: "start" }, options);
        assert.ok((await consumer.untilError()) instanceof it.sdk.PersistentSubscriptionDroppedError);
        await group.delete(options);
    }
    await it.client.listAllPersistentSubscriptions(options);
    await it.client.restartPersistentSubscriptionSubsystem(options);
});

/* --- the end of the stream, of the server --- */

check("a group goes on when its stream is deleted and written to again", async (it) => {
    const group = await newGroup(it, await it.fill(2));
    const consumer = group.consume().ackAll();
    await consumer.untilCount(2);
    await it.client.deleteStream(group.stream);
    await it.append(group.stream, it.numbered(2, { first: 2 }));
    await consumer.untilCount(4);
    assert.deepEqual(consumer.numbers, upTo(4));
    await consumer.stop();
});

/* The timeout is what the rest waits for after the second end, so it is short. */
check("what was acked stays acked over the end of the server, however it ends", async (it) => {
    const own = await startServer();
    const session = connect(own);
    const group = await newGroup(session, await session.fill(30), { messageTimeout: 2_000 });
    const expected = new Set(upTo(30));
    for (const signal of ["SIGTERM", "SIGKILL"]) {
        const consumer = group.consume({ bufferSize: 10 });
        await consumer.untilCount(10);
        await consumer.ack(0, 5);
        for (const n of consumer.numbers.slice(0, 5)) expected.delete(n);
        await consumer.untilCount(15);
        const gone = consumer.untilError();
        await own.restart(signal);
        await gone;
    }
    const last = group.consume({ bufferSize: 30 }).ackAll();
    await last.until(() => new Set(last.numbers).size === expected.size, `${expected.size} events`);
    assert.deepEqual(sorted(new Set(last.numbers)), sorted(expected));
    await last.stop();
    await session.close();
    await own.stop();
    own.remove();
});

check("a server that stops tells its consumers, and does not wait for those that hold things", async (it) => {
    const own = await startServer({ words: ["--grace", "1s"] });
    const session = connect(own);
    const group = await newGroup(session, await session.fill(3));
    const consumer = group.consume();
    await consumer.untilCount(3);
    const gone = consumer.untilError();
    assert.deepEqual(await own.stop(), { code: 0, signal: null });
    await gone;
    await session.close();
    own.remove();
});

end();
