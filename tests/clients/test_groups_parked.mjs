/* Parked messages: a stream beside the group that can be read, replayed and given up. */
import { ALL, newGroup } from "./lib/groups.mjs";
import { connect, newStream, upTo } from "./lib/official.mjs";
import { identifier, Raw, status, trailersOf } from "./lib/raw.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";

const { check, server, end } = await rig();

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

/* A group with so many parked messages, and its only consumer, which holds nothing. */
async function withParked(it, count, changes = {}, source = null, ...options) {
    const stream = source ?? (await it.fill(count));
    const group = await newGroup(it, stream, changes, ...options);
    const consumer = group.consume({ bufferSize: Math.max(10, count) });
    await consumer.untilCount(count);
    for (let n = 0; n < count; n++) await consumer.nack("park", `reason ${n}`, n, n + 1);
    await group.untilParked(count);
    return { group, consumer };
}

check("a parked message is a link in a stream that can be read", async (it) => {
    const { group, consumer } = await withParked(it, 3);
    const links = await it.read(group.parkedStream);
    assert.deepEqual(
        links.map(({ event }) => [event.type, Buffer.from(event.data).toString(), event.revision]),
        upTo(3).map((n) => ["$>", `${n}@${group.stream}`, BigInt(n)]),
    );
    const resolved = await it.read(group.parkedStream, { resolveLinkTos: true });
    assert.deepEqual(
        resolved.map(({ event }) => event.data.n),
        [0, 1, 2],
    );
    const metadata = links.map(({ event }) => {
        const { metadata: given } = event;
        return given instanceof Uint8Array ? JSON.parse(Buffer.from(given).toString()) : given;
    });
    assert.equal(metadata[1].reason, "Client explicitly NAK'ed message.\nreason 1");
    assert.ok(Math.abs(Date.parse(metadata[1].added) - Date.now()) < 3_600_000, metadata[1].added);
    await consumer.stop();
});

check("a replay delivers what is parked again, by its links, and it is gone when acked", async (it) => {
    const { group, consumer } = await withParked(it, 4);
    await group.replay();
    await consumer.untilCount(8);
    const again = consumer.events.slice(4);
    assert.deepEqual(
        again.map(({ event }) => event.data.n),
        [0, 1, 2, 3],
    );
    assert.deepEqual(
        again.map(({ link }) => [link.streamId, link.revision]),
        upTo(4).map((n) => [group.parkedStream, BigInt(n)]),
    );
    assert.deepEqual(consumer.retries.slice(4), [0, 0, 0, 0]);
    await consumer.ack(4, 8);
    await group.untilParked(0);
    await failure(it.read(group.parkedStream).then((events) => assert.ok(events.length > 0)));
    await group.replay(); /* of nothing */
    await it.append(group.stream, it.numbered(1, { first: 4 }));
    await consumer.untilCount(9);
    assert.equal(consumer.numbers[8], 4);
    await consumer.stop();
});

check("a replay stops where it is told to", async (it) => {
    const { group, consumer } = await withParked(it, 5);
    await group.replay({ stopAt: 2 });
    await consumer.untilCount(7);
    await consumer.ack(5, 7);
    await group.untilParked(3);
    await group.replay({ stopAt: 4 }); /* a number of the parked stream and no count */
    await consumer.untilCount(9);
    assert.deepEqual(consumer.numbers.slice(5), [0, 1, 2, 3]);
    await consumer.ack(7, 9);
    await group.untilParked(1);
    await group.replay({ stopAt: 1_000 });
    await consumer.untilCount(10);
    assert.equal(consumer.numbers[9], 4);
    await consumer.ack(9);
    await group.untilParked(0);
    await consumer.stop();
});

check("a replay with a negative end is refused, one of nothing is not; others can follow", async (it) => {
    const { group, consumer } = await withParked(it, 1);
    const error = await failure(group.replay({ stopAt: -1 }), it.sdk.PersistentSubscriptionFailedError);
    assert.match(error.reason, /negative/);
    assert.equal(error.streamName, group.stream);
    assert.equal(error.groupName, group.name);
    await group.replay({ stopAt: 0 });
    await group.replay();
    await consumer.untilCount(2);
    await consumer.stop();
});

check("what fails again after a replay is parked again", async (it) => {
    const { group, consumer } = await withParked(it, 1, { maxRetryCount: 1 });
    await group.replay();
    await consumer.untilCount(2);
    await consumer.nack("retry", "no", 1, 2);
    await consumer.untilCount(3);
    assert.equal(consumer.events[2].retryCount, 1);
    await consumer.nack("retry", "no", 2, 3);
    const [{ event, link }] = await group
        .until(({ stats }) => stats.totalInFlightMessages === 0 && stats.parkedMessageCount === 1n, "parked again")
        .then(() => it.read(group.parkedStream, { resolveLinkTos: true }));
    assert.equal(event.data.n, 0);
    assert.equal(link.revision, 1n);
    await group.replay();
    await consumer.untilCount(4);
    await consumer.nack("skip", "enough", 3, 4);
    await group.untilParked(0);
    await consumer.stop();
});

check("replayed messages come before new ones and are shared", async (it) => {
    const { group, consumer } = await withParked(it, 6);
    await consumer.stop();
    await group.untilConsumers(0);
    await it.append(group.stream, it.numbered(6, { first: 6 }));
    await group.replay();
    const first = group.consume({ bufferSize: 3 });
    await first.untilCount(3);
    assert.deepEqual(first.numbers, [0, 1, 2]);
    const second = group.consume({ bufferSize: 10 });
    await second.untilCount(9);
    assert.deepEqual(sorted(second.numbers), upTo(9, 3));
    await first.ack();
    await second.ack();
    await group.untilParked(0);
    await first.stop();
    await second.stop();
});

check("messages of $all are parked and replayed, each by its own stream", async (it) => {
    const mark = newStream("parked-of-all");
    for (let n = 0; n < 4; n++) await it.append(`${mark}-${n % 2}`, it.numbered(1, { first: n }));
    const filter = it.sdk.streamNameFilter({ prefixes: [mark] });
    const { group, consumer } = await withParked(it, 4, {}, ALL, { filter });
    const links = await it.read(group.parkedStream, { resolveLinkTos: true });
    assert.deepEqual(
        links.map(({ event }) => [event.streamId, event.data.n]),
        upTo(4).map((n) => [`${mark}-${n % 2}`, n]),
    );
    await group.replay({ stopAt: 1 });
    await consumer.untilCount(5);
    await group.replay();
    await consumer.untilCount(8);
    assert.deepEqual(consumer.numbers.slice(4), [0, 1, 2, 3]);
    await consumer.ack(4);
    await group.untilParked(0);
    await consumer.stop();
    await group.delete();
});

check("a parked link is parked as a link to its target", async (it) => {
    const target = await it.fill(2, "target");
    const links = newStream("links");
    await it.append(links, [it.link(1, target)]);
    const { group, consumer } = await withParked(it, 1, { resolveLinkTos: true }, links);
    const [{ event }] = await it.read(group.parkedStream);
    assert.equal(Buffer.from(event.data).toString(), `1@${target}`);
    await group.replay();
    await consumer.untilCount(2);
    assert.equal(consumer.events[1].event.streamId, target);
    assert.equal(consumer.events[1].link.streamId, group.parkedStream);
    await consumer.ack(1);
    await group.untilParked(0);
    await consumer.stop();
});

check("a target that is gone by the time of the replay stops nobody", async (it) => {
    const { group, consumer } = await withParked(it, 3);
    await it.client.setStreamMetadata(group.stream, { truncateBefore: 2 });
    await group.replay();
    await consumer.until(() => consumer.events.slice(3).some(({ event }) => event?.data.n === 2), "the last one");
    await consumer.ack(3);
    await group.untilParked(0);
    await consumer.stop();
});

check("parked messages are there after a restart of the server, and can be replayed", async (it) => {
    const { group, consumer } = await withParked(it, 3);
    const gone = consumer.untilError();
    await server.restart("SIGKILL");
    await gone;
    const next = connect(server);
    group.it = next;
    await group.untilParked(3);
    const second = group.consume();
    await second.untilConfirmed();
    await group.replay();
    await second.untilCount(3);
    assert.deepEqual(second.numbers, [0, 1, 2]);
    await second.ack(0, 1);
    await group.untilInFlight(2);
    await second.stop();
    await next.close();
});

/* On the real server they are forgotten: its replay is over as soon as everything was read. */
check("what was replayed and not settled is still there after the consumer has gone", async (it) => {
    const { group, consumer } = await withParked(it, 3);
    await group.replay();
    await consumer.untilCount(6);
    await consumer.ack(3, 4);
    await group.untilInFlight(2);
    await consumer.stop();
    await group.untilConsumers(0);
    const second = group.consume();
    await second.untilCount(2);
    assert.deepEqual(second.numbers, [1, 2]);
    await second.ack();
    await group.untilParked(0);
    await second.stop();
});

check("a group that is deleted takes its parked messages along", async (it) => {
    const { group, consumer } = await withParked(it, 2);
    await group.delete();
    await consumer.untilError();
    await failure(it.read(group.parkedStream), it.sdk.StreamNotFoundError);
    await group.create({ startFrom: "start" });
    assert.equal((await group.info()).stats.parkedMessageCount, 0n);
    const second = group.consume();
    await second.untilCount(2);
    assert.deepEqual(second.numbers, [0, 1]);
    await second.nack("park", "once more", 0, 1);
    await group.untilParked(1);
    await group.replay();
    await second.untilCount(3);
    await second.stop();
});

check("many are parked and many are replayed", async (it) => {
    const count = 1_000;
    const stream = newStream();
    for (let n = 0; n < count; n += 500) await it.append(stream, it.numbered(500, { first: n }));
    const group = await newGroup(it, stream, { historyBufferSize: 2_000 });
    const consumer = group.consume({ bufferSize: 200 });
    consumer.subscription.on("data", (event) => {
        const again = event.link !== undefined;
        const sent = again ? consumer.subscription.ack(event) : consumer.subscription.nack("park", "no", event);
        sent.catch(() => {});
    });
    await consumer.untilCount(count);
    await group.untilParked(count);
    await group.replay();
    await consumer.untilCount(2 * count);
    await group.untilParked(0);
    assert.deepEqual(consumer.numbers.slice(count), upTo(count));
    await consumer.stop();
});

/* No official client has this call yet. */
check("parked messages can be given up", async (it) => {
    const { group, consumer } = await withParked(it, 4);
    const raw = new Raw(server);
    const truncate = (limit, name = group.name) =>
        raw.unary("persistent", "TruncateParked", {
            options: { group_name: name, stream_identifier: identifier(group.stream), ...limit },
        });
    assert.equal((await truncate({ stop_at: "3" })).error, null);
    await group.untilParked(1);
    await group.replay();
    await consumer.untilCount(5);
    assert.equal(consumer.numbers[4], 3);
    await consumer.nack("park", "again", 4, 5);
    await group.untilInFlight(0);
    assert.equal((await truncate({ no_limit: {} })).error, null);
    await group.untilParked(0);
    const failed = await truncate({ stop_at: "-1" });
    assert.equal(failed.status.code, status.INTERNAL);
    assert.equal(trailersOf(failed).exception, "persistent-subscription-failed");
    const missing = await truncate({ no_limit: {} }, "nobody");
    assert.equal(missing.status.code, status.NOT_FOUND);
    assert.equal(trailersOf(missing).exception, "persistent-subscription-does-not-exist");
    raw.close();
    await consumer.stop();
});

end();
