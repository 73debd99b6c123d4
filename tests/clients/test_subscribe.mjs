/* Catch-up subscriptions to one stream: what is old, then what is new, in order, and how they end. */
import { newStream, upTo } from "./lib/official.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";
import { watch } from "./lib/watch.mjs";

const { check, end } = await rig();

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function subscribe(it, stream, options, readable) {
    return watch(it.client.subscribeToStream(stream, options, readable));
}

/* The newer client hands on what the server says about the moment; the older one only that it has come. */
function aboutRevision(it, info, revision) {
    if (!it.isKurrent) return;
    assert.equal(info.revision, revision);
    assert.equal(info.position, undefined);
    assert.ok(Math.abs(Date.now() - info.date) < 60_000, `${info.date}`);
}

check(
    "a subscription from the start gets the old, is told that it has caught up, and gets the new",
    async (it) => {
        const stream = await it.fill(300);
        const subscription = subscribe(it, stream);
        await subscription.untilCaughtUp();
        assert.deepEqual(subscription.numbers, upTo(300));
        aboutRevision(it, subscription.caughtUp[0], 299n);
        assert.equal(subscription.confirmations.length, 1);
        assert.match(subscription.confirmations[0], UUID);
        for (let n = 300; n < 320; n += 2) await it.append(stream, it.numbered(2, { first: n }));
        await subscription.untilCount(320);
        assert.deepEqual(subscription.numbers, upTo(320));
        assert.deepEqual(
            subscription.events.map(({ event }) => Number(event.revision)),
            upTo(320),
        );
        await subscription.stop();
    },
);

/* [from, first number that comes], of a stream with 10 events before and 5 after the beginning */
const BEGINNINGS = [
    [undefined, 0],
    ["start", 0],
    [0n, 1],
    [4n, 5],
    [8n, 9],
    [9n, 10],
    ["end", 10],
    [12n, 13],
];

check("a revision to begin with is the last one that is known already", async (it) => {
    for (const [fromRevision, first] of BEGINNINGS) {
        const stream = await it.fill(10);
        const subscription = subscribe(it, stream, { fromRevision });
        await subscription.untilCaughtUp();
        await it.append(stream, it.numbered(5, { first: 10 }));
        await subscription.until(
            () => subscription.numbers.at(-1) === 14,
            `the last event, from ${fromRevision}`,
        );
        assert.deepEqual(subscription.numbers, upTo(15 - first, first), `from ${fromRevision}`);
        await subscription.stop();
    }
});

check("a subscription to a stream that is not there waits for it", async (it) => {
    for (const fromRevision of ["start", "end"]) {
        const stream = newStream("later");
        const subscription = subscribe(it, stream, { fromRevision });
        await subscription.untilCaughtUp();
        aboutRevision(it, subscription.caughtUp[0], undefined);
        await it.append(stream, it.numbered(3));
        await subscription.untilCount(3);
        assert.deepEqual(subscription.numbers, [0, 1, 2], fromRevision);
        await subscription.stop();
    }
});

check("nothing is lost or doubled between the old and the new", async (it) => {
    const stream = await it.fill(50);
    let writing = true;
    const writer = (async () => {
        for (let n = 50; writing && n < 5000; n += 5) await it.append(stream, it.numbered(5, { first: n }));
    })();
    const subscriptions = upTo(8).map((n) =>
        subscribe(it, stream, { fromRevision: n ? BigInt(n * 5 - 1) : "start" }),
    );
    await Promise.all(subscriptions.map((subscription) => subscription.untilCount(400)));
    writing = false;
    await writer;
    const count = (await it.read(stream)).length;
    for (const [n, subscription] of subscriptions.entries()) {
        await subscription.untilCount(count - n * 5);
        assert.deepEqual(subscription.numbers, upTo(count - n * 5, n * 5));
        await subscription.stop();
    }
});

check("a subscription that was ended gets nothing any more, and the others go on", async (it) => {
    const stream = await it.fill(1);
    const [leaving, staying] = [subscribe(it, stream), subscribe(it, stream)];
    await Promise.all([leaving.untilCaughtUp(), staying.untilCaughtUp()]);
    await leaving.stop();
    await it.append(stream, it.numbered(5, { first: 1 }));
    await staying.untilCount(6);
    assert.deepEqual(leaving.numbers, [0]);
    assert.equal(leaving.error, null);
    await staying.stop();
});

check("a subscription can be iterated", async (it) => {
    const stream = await it.fill(5);
    const subscription = it.client.subscribeToStream(stream);
    const seen = [];
    for await (const { event } of subscription) {
        seen.push(event.data.n);
        if (seen.length === 5) await it.append(stream, it.numbered(1, { first: 5 }));
        if (seen.length === 6) break;
    }
    assert.deepEqual(seen, upTo(6));
    await subscription.unsubscribe();
});

check("a hundred subscriptions of one client all get everything", async (it) => {
    const stream = await it.fill(10);
    const subscriptions = upTo(100).map(() => subscribe(it, stream));
    await Promise.all(subscriptions.map((subscription) => subscription.untilCaughtUp()));
    await it.append(stream, it.numbered(10, { first: 10 }));
    await Promise.all(subscriptions.map((subscription) => subscription.untilCount(20)));
    for (const subscription of subscriptions) {
        assert.deepEqual(subscription.numbers, upTo(20));
        await subscription.stop();
    }
});

check("a slow reader gets everything in the end, and does not hold up the others", async (it) => {
    const stream = newStream("slow");
    const text = "x".repeat(2000);
    const events = (first) =>
        upTo(500, first).map((n) => it.sdk.jsonEvent({ type: "wide", data: { n, text } }));
    const slow = subscribe(it, stream, {}, { highWaterMark: 1 });
    const quick = subscribe(it, stream);
    await Promise.all([slow.untilCaughtUp(), quick.untilCaughtUp()]);
    slow.subscription.pause();
    for (let first = 0; first < 10_000; first += 500) await it.append(stream, events(first)); /* 20 MB */
    await quick.untilCount(10_000);
    assert.ok(slow.events.length < 10_000);
    slow.subscription.resume();
    await slow.untilCount(10_000);
    assert.deepEqual(slow.numbers, upTo(10_000));
    assert.deepEqual(quick.numbers, upTo(10_000));
    await Promise.all([slow.stop(), quick.stop()]);
});

check("links are followed when asked for, old ones and new ones", async (it) => {
    const target = await it.fill(3);
    const links = newStream("links");
    await it.append(links, [it.link(2, target), it.link(77, target)]);
    const [resolving, plain] = [subscribe(it, links, { resolveLinkTos: true }), subscribe(it, links)];
    await Promise.all([resolving.untilCaughtUp(), plain.untilCaughtUp()]);
    await it.append(links, it.link(1, target));
    await Promise.all([resolving.untilCount(3), plain.untilCount(3)]);
    assert.deepEqual(
        resolving.events.map(({ event }) => event?.data.n),
        [2, undefined, 1],
    );
    assert.deepEqual(
        resolving.events.map(({ link }) => Number(link.revision)),
        [0, 1, 2],
    );
    assert.deepEqual(
        plain.events.map(({ event }) => event.type),
        ["$>", "$>", "$>"],
    );
    await Promise.all([resolving.stop(), plain.stop()]);
});

check("what metadata hides is not delivered", async (it) => {
    const stream = await it.fill(10);
    await it.client.setStreamMetadata(stream, { truncateBefore: 7 });
    const subscription = subscribe(it, stream);
    await subscription.untilCaughtUp();
    assert.deepEqual(subscription.numbers, [7, 8, 9]);
    await subscription.stop();
});

check("a subscription survives that its stream is deleted, and gets what comes behind", async (it) => {
    const stream = await it.fill(2);
    const subscription = subscribe(it, stream);
    await subscription.untilCaughtUp();
    await it.client.deleteStream(stream);
    await it.append(stream, it.numbered(2, { first: 2 }));
    await subscription.untilCount(4);
    assert.deepEqual(subscription.numbers, [0, 1, 2, 3]);
    await subscription.stop();
});

check("a subscription to a deleted stream waits for what comes behind", async (it) => {
    const stream = await it.fill(2);
    await it.client.deleteStream(stream);
    const subscription = subscribe(it, stream);
    await subscription.untilCaughtUp();
    await it.append(stream, it.numbered(1, { first: 2 }));
    await subscription.untilCount(1);
    assert.deepEqual(subscription.numbers, [2]);
    await subscription.stop();
});

check("a tombstone ends the subscription, after its own event", async (it) => {
    const stream = await it.fill(2);
    const subscription = subscribe(it, stream);
    await subscription.untilCaughtUp();
    await it.client.tombstoneStream(stream);
    const error = await subscription.untilError();
    assert.ok(error instanceof it.sdk.StreamDeletedError, error.stack);
    assert.equal(error.streamName, stream);
    assert.deepEqual(
        subscription.events.map(({ event }) => event.type),
        ["numbered", "numbered", "$streamDeleted"],
    );
});

check("there is no subscription to a stream with a tombstone", async (it) => {
    const stream = await it.fill(1);
    await it.client.tombstoneStream(stream);
    for (const fromRevision of ["start", "end", 0n]) {
        const error = await subscribe(it, stream, { fromRevision }).untilError();
        assert.ok(error instanceof it.sdk.StreamDeletedError, error.stack);
    }
    await failure(it.read(stream), it.sdk.StreamDeletedError);
});

end();
