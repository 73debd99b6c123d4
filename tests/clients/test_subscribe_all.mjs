/* Catch-up subscriptions to $all: positions, filters, and checkpoints on the way. */
import { newStream, upTo } from "./lib/official.mjs";
import { assert, rig } from "./lib/rig.mjs";
import { watch } from "./lib/watch.mjs";

const { check, end } = await rig();

const RAISING = (positions) => positions.every(({ commit }, i) => i === 0 || commit > positions[i - 1].commit);

function subscribe(it, options) {
    return watch(it.client.subscribeToAll(options));
}

/* The numbers of those events that went to the streams. */
function numbersOf(subscription, ...streams) {
    const ours = subscription.events.filter(({ event }) => streams.includes(event?.streamId));
    return ours.map(({ event }) => event.data.n);
}

async function untilNumber(subscription, stream, number) {
    await subscription.until(
        () => numbersOf(subscription, stream).at(-1) === number,
        `event ${number} of ${stream}`,
    );
}

check("a subscription to $all gets everything, old and new, in the order of positions", async (it) => {
    const stream = await it.fill(20);
    const subscription = subscribe(it);
    await subscription.untilCaughtUp();
    if (it.isKurrent) {
        const [info] = subscription.caughtUp;
        assert.deepEqual(info.position, subscription.events.at(-1).event.position);
        assert.equal(info.revision, undefined);
    }
    await it.client.setStreamMetadata(stream, { colour: "red" });
    await it.append(stream, it.numbered(20, { first: 20 }));
    await untilNumber(subscription, stream, 39);
    assert.deepEqual(numbersOf(subscription, stream), upTo(40));
    assert.ok(RAISING(subscription.events.map(({ event }) => event.position)));
    assert.ok(subscription.events.some(({ event }) => event.streamId === `$$${stream}`));
    await subscription.stop();
});

check("a position to begin with is the last one that is known already; the end is now", async (it) => {
    const stream = newStream("positions");
    const results = [];
    for (let n = 0; n < 6; n++) results.push(await it.append(stream, it.numbered(1, { first: n })));
    const rows = [
        ["start", 0],
        [{ commit: 0n, prepare: 0n }, 0],
        [results[2].position, 3],
        [results[5].position, 6],
        ["end", 6],
    ];
    const subscriptions = rows.map(([fromPosition]) => subscribe(it, { fromPosition }));
    await Promise.all(subscriptions.map((subscription) => subscription.untilCaughtUp()));
    await it.append(stream, it.numbered(2, { first: 6 }));
    for (const [i, subscription] of subscriptions.entries()) {
        const first = rows[i][1];
        await untilNumber(subscription, stream, 7);
        assert.deepEqual(numbersOf(subscription, stream), upTo(8 - first, first), `row ${i}`);
        await subscription.stop();
    }
});

/* --- filters --- */

/* Writes [stream, type] rows; the data is the number of the row. */
async function paint(it, mark, rows, first) {
    for (const [i, [stream, type]] of rows.entries()) {
        const event = it.sdk.jsonEvent({ type: `${mark}.${type}`, data: { n: first + i } });
        await it.append(`${mark}-${stream}`, event);
    }
}

const ROWS = [
    ["cat-1", "born"],
    ["dog-1", "born"],
    ["cat-2", "fed"],
    ["dog-1", "Fed"],
    ["bird", "flown"],
    ["cat-1", "gone"],
];

/* name of the row: [what to filter on, how, numbers of ROWS that pass] */
function filters(sdk, mark) {
    const { eventTypeFilter: byType, streamNameFilter: byStream } = sdk;
    return {
        "one type": [byType({ prefixes: [`${mark}.born`] }), [0, 1]],
        "types": [byType({ prefixes: [`${mark}.f`, `${mark}.gone`] }), [2, 4, 5]],
        "type expression": [byType({ regex: `^${mark}\\.(born|Fed)$` }), [0, 1, 3]],
        "case counts": [byType({ regex: `${mark}.*fed$` }), [2]],
        "case does not": [byType({ regex: `(?i)${mark}.*fed$` }), [2, 3]],
        "look-ahead": [byType({ regex: `^(?!${mark}\\.(born|fed|Fed))${mark}` }), [4, 5]],
        "one stream": [byStream({ prefixes: [`${mark}-cat`] }), [0, 2, 5]],
        "streams": [byStream({ prefixes: [`${mark}-bird`, `${mark}-dog`] }), [1, 3, 4]],
        "stream expression": [byStream({ regex: `${mark}-.*-1$` }), [0, 1, 3, 5]],
        "small window": [byStream({ prefixes: [`${mark}-dog`], maxSearchWindow: 1 }), [1, 3]],
        "nothing": [byType({ prefixes: [`${mark}.nothing`] }), []],
    };
}

check("a filter lets through what it names, old and new", async (it) => {
    const mark = newStream("mark");
    await paint(it, mark, ROWS, 0);
    const rows = Object.entries(filters(it.sdk, mark)).map(([name, [filter, passing]]) => {
        const checkpoints = [];
        filter.checkpointReached = (_, position) => void checkpoints.push(position);
        return { name, passing, checkpoints, subscription: subscribe(it, { filter }) };
    });
    await Promise.all(rows.map(({ subscription }) => subscription.untilCaughtUp()));
    await paint(it, mark, ROWS, 6);
    const last = (await it.append(newStream("after"), it.numbered(1))).position;
    for (const { name, passing, checkpoints, subscription } of rows) {
        const expected = [...passing, ...passing.map((n) => n + 6)];
        await subscription.untilCount(expected.length);
        assert.deepEqual(subscription.numbers, expected, name);
        assert.ok(checkpoints.length > 0 && RAISING(checkpoints), name);
        assert.ok(checkpoints.at(-1).commit <= last.commit, name);
        await subscription.stop();
    }
});

check("system events can be left out", async (it) => {
    const stream = await it.fill(3);
    await it.client.setStreamMetadata(stream, { colour: "red" });
    const subscription = subscribe(it, { filter: it.sdk.excludeSystemEvents() });
    await subscription.untilCaughtUp();
    await it.client.setStreamMetadata(stream, { colour: "blue" });
    await it.append(stream, it.numbered(1, { first: 3 }));
    await untilNumber(subscription, stream, 3);
    assert.deepEqual(numbersOf(subscription, stream), [0, 1, 2, 3]);
    assert.ok(subscription.events.every(({ event }) => !event.type.startsWith("$")));
    await subscription.stop();
});

check("a filter looks at the link and not at what it points to", async (it) => {
    const target = await it.fill(1, "target");
    const links = newStream("links");
    await it.append(links, it.link(0, target));
    const filter = it.sdk.streamNameFilter({ prefixes: [links] });
    const subscription = subscribe(it, { filter, resolveLinkTos: true });
    await subscription.untilCaughtUp();
    assert.deepEqual(
        subscription.events.map(({ event }) => event.streamId),
        [target],
    );
    assert.deepEqual(
        subscription.events.map(({ link }) => link.streamId),
        [links],
    );
    await subscription.stop();
});

check("an expression that is none ends the subscription with an error", async (it) => {
    const error = await subscribe(it, {
        filter: it.sdk.eventTypeFilter({ regex: "(unfinished" }),
    }).untilError();
    assert.notEqual(error.type, "unavailable", error.message);
    await it.fill(1);
});

/* --- checkpoints --- */

/* A subscription, and the positions of its checkpoints. */
function withCheckpoints(it, filter, options = {}) {
    const checkpoints = [];
    let subscription = null;
    filter.checkpointReached = (_, position) => subscription.note(() => checkpoints.push(position));
    subscription = subscribe(it, { filter, ...options });
    return { checkpoints, subscription };
}

check("there is a checkpoint at the end of the old, before the news that it has caught up", async (it) => {
    const stream = await it.fill(5);
    const { position } = await it.append(newStream("other"), it.numbered(1));
    const filter = it.sdk.streamNameFilter({
        prefixes: [stream],
        maxSearchWindow: 1000,
        checkpointInterval: 1000,
    });
    const { checkpoints, subscription } = withCheckpoints(it, filter);
    await subscription.untilCaughtUp();
    assert.equal(checkpoints.length, 1);
    assert.ok(checkpoints[0].commit >= position.commit);
    assert.equal(subscription.events.length, 5);
    await subscription.stop();
});

check(
    "live, a checkpoint comes after as many events as were asked for, whether they pass or not",
    async (it) => {
        const [wanted, other] = [newStream("wanted"), newStream("other")];
        const filter = it.sdk.streamNameFilter({
            prefixes: [wanted],
            maxSearchWindow: 5,
            checkpointInterval: 2,
        });
        const { checkpoints, subscription } = withCheckpoints(it, filter, { fromPosition: "end" });
        await subscription.untilCaughtUp();
        const before = checkpoints.length;
        const written = [];
        for (let n = 0; n < 40; n++)
            written.push(
                (await it.append(n % 4 === 0 ? wanted : other, it.numbered(1, { first: n }))).position.commit,
            );
        await subscription.until(() => checkpoints.length >= before + 3, "three checkpoints for forty events");
        await subscription.untilCount(10);
        assert.ok(checkpoints.length <= before + 5, `${checkpoints.length - before} checkpoints`);
        assert.ok(RAISING(checkpoints));
        for (const { commit } of checkpoints.slice(before)) assert.ok(written.includes(commit));
        await subscription.stop();
    },
);

check("who goes on from a checkpoint misses nothing and gets nothing twice", async (it) => {
    const [wanted, other] = [newStream("wanted"), newStream("other")];
    const filter = () =>
        it.sdk.streamNameFilter({ prefixes: [wanted], maxSearchWindow: 10, checkpointInterval: 1 });
    for (let n = 0; n < 30; n++) {
        await it.append(wanted, it.numbered(1, { first: n }));
        await it.append(other, it.numbered(3));
    }
    const { checkpoints, subscription } = withCheckpoints(it, filter());
    await subscription.untilCaughtUp();
    assert.deepEqual(subscription.numbers, upTo(30));
    assert.ok(checkpoints.length >= 2, `${checkpoints.length} checkpoints`);
    await subscription.stop();
    for (const checkpoint of checkpoints) {
        const resumed = subscribe(it, { filter: filter(), fromPosition: checkpoint });
        await resumed.untilCaughtUp();
        const before = subscription.events.filter(
            ({ event }) => event.position.commit <= checkpoint.commit,
        ).length;
        assert.deepEqual(resumed.numbers, upTo(30 - before, before));
        await resumed.stop();
    }
});

check("a checkpoint that takes its time holds the events back", async (it) => {
    const stream = await it.fill(3);
    const filter = it.sdk.streamNameFilter({ prefixes: [stream], checkpointInterval: 1, maxSearchWindow: 1 });
    let [inside, atMost] = [0, 0];
    filter.checkpointReached = async () => {
        atMost = Math.max(atMost, ++inside);
        await new Promise((resolve) => setImmediate(resolve));
        inside--;
    };
    const subscription = subscribe(it, { filter });
    await subscription.untilCaughtUp();
    assert.deepEqual(subscription.numbers, [0, 1, 2]);
    assert.equal(atMost, 1);
    await subscription.stop();
});

check("a position in the middle of nowhere is no hang", async (it) => {
    const { position } = await it.append(newStream(), it.numbered(1));
    const beyond = { commit: position.commit + 1_000_000n, prepare: position.prepare + 1_000_000n };
    const subscription = subscribe(it, { fromPosition: beyond });
    await subscription.until(() => subscription.error || subscription.caughtUp.length > 0, "an answer");
    await subscription.stop();
    await it.fill(1);
});

end();
