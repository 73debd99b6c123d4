/* Reads of one stream and of everything: directions, borders, links, and what is not there. */
import { isKurrent, newStream, upTo } from "./lib/official.mjs";
import { Other } from "./lib/other.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";

const { check, newer, server, end } = await rig();

const START = "start";
const END = "end";
const FORWARDS = "forwards";
const BACKWARDS = "backwards";

/* The bridge of the newer client reads forwards from the start and backwards from the end, whatever it is told. */
const BRIDGE = isKurrent;

/* Of a stream with the events 0 to 19. */
const STREAM_READS = [
    [{}, upTo(20)],
    [{ maxCount: 5 }, upTo(5)],
    [{ maxCount: 5n }, upTo(5)],
    [{ maxCount: 20 }, upTo(20)],
    [{ maxCount: 21 }, upTo(20)],
    [{ fromRevision: START }, upTo(20)],
    [{ fromRevision: 0n }, upTo(20)],
    [{ fromRevision: 7n }, upTo(13, 7)],
    [{ fromRevision: 7n, maxCount: 2 }, [7, 8]],
    [{ fromRevision: 19n }, [19]],
    [{ fromRevision: 20n }, []],
    [{ fromRevision: 1000n }, []],
    [{ direction: BACKWARDS, fromRevision: END }, upTo(20).reverse()],
    [{ direction: BACKWARDS, fromRevision: END, maxCount: 1 }, [19]],
    [{ direction: BACKWARDS, fromRevision: 7n }, upTo(8).reverse()],
    [{ direction: BACKWARDS, fromRevision: 7n, maxCount: 3 }, [7, 6, 5]],
    [{ direction: BACKWARDS, fromRevision: 0n }, [0]],
    [{ direction: BACKWARDS, fromRevision: 1000n }, upTo(20).reverse()],
    [{ direction: FORWARDS, fromRevision: 3n, maxCount: 1, requiresLeader: true }, [3]],
];

check("a read of a stream begins, goes and ends where it was told to", async (it) => {
    const stream = await it.fill(20);
    for (const [options, expected] of STREAM_READS) {
        const text = JSON.stringify(options, (_, value) => (typeof value === "bigint" ? `${value}` : value));
        assert.deepEqual(await it.numbers(stream, options), expected, text);
    }
    const first = await it.numbers(stream, { direction: BACKWARDS, fromRevision: START });
    assert.deepEqual(first, BRIDGE ? upTo(20) : [0]);
});

check("a read forwards from the end, or of no event at all, is refused and does not hang", async (it) => {
    const stream = await it.fill(3);
    if (!BRIDGE) await failure(it.read(stream, { fromRevision: END }), Error);
    await failure(it.read(stream, { maxCount: 0 }), Error);
    assert.deepEqual(await it.numbers(stream), [0, 1, 2]);
});

check("a stream that never was is not found, in either direction", async (it) => {
    const stream = newStream("missing");
    for (const options of [
        {},
        { direction: BACKWARDS, fromRevision: END },
        { fromRevision: 5n, maxCount: 1 },
    ]) {
        const error = await failure(it.read(stream, options), it.sdk.StreamNotFoundError);
        assert.equal(error.streamName, stream);
        assert.equal(error.type, it.sdk.ErrorType.STREAM_NOT_FOUND);
    }
});

check("a read that is left early leaves the client as it was", async (it) => {
    const stream = await it.fill(2000);
    for (let round = 0; round < 10; round++) {
        const seen = [];
        for await (const { event } of it.client.readStream(stream)) {
            seen.push(event.data.n);
            if (seen.length === 3) break;
        }
        assert.deepEqual(seen, [0, 1, 2]);
    }
    assert.equal((await it.read(stream)).length, 2000);
});

check("many reads at once do not mix", async (it) => {
    const streams = await Promise.all(upTo(30).map((n) => it.fill(n + 1)));
    const reads = await Promise.all(streams.map((stream) => it.numbers(stream)));
    assert.deepEqual(
        reads,
        upTo(30).map((n) => upTo(n + 1)),
    );
});

check("a read sees what was appended before it began", async (it) => {
    const stream = newStream("fresh");
    for (let n = 0; n < 50; n++) {
        await it.append(stream, it.numbered(1, { first: n }));
        assert.deepEqual(await it.numbers(stream, { direction: BACKWARDS, fromRevision: END, maxCount: 1 }), [
            n,
        ]);
    }
});

/* --- everything --- */

/* Some appends to three streams in turn; gives what $all must have of them, in order. */
async function weave(it) {
    const streams = [newStream("weave"), newStream("weave"), newStream("weave")];
    const woven = [];
    for (let n = 0; n < 12; n++) {
        const stream = streams[n % 3];
        const { position } = await it.append(stream, it.numbered(1, { first: n }));
        woven.push({ stream, n, position });
    }
    return woven;
}

function sketch(events) {
    return events.map(({ event }) => ({ stream: event.streamId, n: event.data.n, position: event.position }));
}

check("$all has everything in the order in which it was written", async (it) => {
    const woven = await weave(it);
    const all = await it.readAll();
    const ours = all.filter(({ event }) => woven.some(({ stream }) => stream === event.streamId));
    assert.deepEqual(sketch(ours), woven);
    for (let i = 1; i < all.length; i++)
        assert.ok(all[i].event.position.commit > all[i - 1].event.position.commit, `event ${i}`);
    const backwards = await it.readAll({ direction: BACKWARDS, fromPosition: END });
    assert.deepEqual(
        backwards.map(({ event }) => event.id),
        all.map(({ event }) => event.id).reverse(),
    );
});

check("a position is inclusive forwards and exclusive backwards", async (it) => {
    const woven = await weave(it);
    const at = woven[4].position;
    const count = woven.length;
    assert.deepEqual(sketch(await it.readAll({ fromPosition: at, maxCount: 3 })), woven.slice(4, 7));
    assert.deepEqual(sketch(await it.readAll({ fromPosition: at, maxCount: count })), woven.slice(4));
    const back = await it.readAll({ direction: BACKWARDS, fromPosition: at, maxCount: 4 });
    assert.deepEqual(sketch(back), woven.slice(0, 4).reverse());
});

check("$all from its ends: all of it, its last event, or nothing", async (it) => {
    const woven = await weave(it);
    const last = await it.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1 });
    assert.deepEqual(sketch(last), woven.slice(-1));
    if (!BRIDGE) {
        assert.deepEqual(await it.readAll({ fromPosition: END }), []);
        assert.deepEqual(await it.readAll({ direction: BACKWARDS, fromPosition: START }), []);
    }
    const first = await it.readAll({ fromPosition: START, maxCount: 1 });
    const zero = await it.readAll({ fromPosition: { commit: 0n, prepare: 0n }, maxCount: 1 });
    assert.equal(first.length, 1);
    assert.equal(zero[0].event.id, first[0].event.id);
});

check("an event has the same position wherever it is read", async (it) => {
    const [{ stream, position }] = await weave(it);
    const [fromStream] = await it.read(stream);
    const [fromAll] = await it.readAll({ fromPosition: position, maxCount: 1 });
    assert.deepEqual(fromStream.event.position, position);
    assert.deepEqual(fromAll.event.position, position);
    assert.equal(fromStream.commitPosition, position.commit);
    assert.equal(fromAll.commitPosition, position.commit);
});

newer("readAll takes filters", async (it) => {
    const mark = newStream("filter");
    const write = (stream, type) => it.append(stream, it.sdk.jsonEvent({ type, data: { n: 0 } }));
    const { position } = await write(`${mark}-a`, `${mark}-red`);
    await write(`${mark}-b`, `${mark}-green`);
    await write(`${mark}-a`, `${mark}-green`);
    const { eventTypeFilter, streamNameFilter, excludeSystemEvents } = it.sdk;
    const rows = [
        [eventTypeFilter({ prefixes: [`${mark}-g`] }), ["b green", "a green"]],
        [
            eventTypeFilter({ prefixes: [`${mark}-r`, "nothing", `${mark}-green`] }),
            ["a red", "b green", "a green"],
        ],
        [eventTypeFilter({ regex: `^${mark}-.*n$` }), ["b green", "a green"]],
        [streamNameFilter({ prefixes: [`${mark}-b`] }), ["b green"]],
        [streamNameFilter({ regex: `${mark}-[ac]$` }), ["a red", "a green"]],
        [excludeSystemEvents(), ["a red", "b green", "a green"]],
        [eventTypeFilter({ prefixes: [`${mark}-blue`] }), []],
    ];
    for (const [filter, expected] of rows) {
        const events = await it.readAll({ fromPosition: position, filter });
        const found = events.map(
            ({ event }) => `${event.streamId.at(-1)} ${event.type.slice(mark.length + 1)}`,
        );
        assert.deepEqual(found, expected, JSON.stringify(filter));
        const reversed = await it.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 2, filter });
        assert.deepEqual(
            reversed.map(({ event }) => event.id),
            events
                .map(({ event }) => event.id)
                .reverse()
                .slice(0, 2),
        );
    }
});

newer("a filtered read looks on until it has its count", async (it) => {
    const type = newStream("rare");
    const rare = (n) => it.sdk.jsonEvent({ type, data: { n } });
    const stream = await it.fill(0);
    for (let n = 0; n < 3; n++) await it.append(stream, [rare(n), ...it.numbered(700)]);
    const filter = it.sdk.eventTypeFilter({ prefixes: [type] });
    const numbers = async (options) =>
        (await it.readAll({ filter, ...options })).map(({ event }) => event.data.n);
    assert.deepEqual(await numbers({ maxCount: 2 }), [0, 1]);
    assert.deepEqual(await numbers({ maxCount: 10 }), [0, 1, 2]);
    assert.deepEqual(await numbers({ maxCount: 2, direction: BACKWARDS, fromPosition: END }), [2, 1]);
});

/* --- links --- */

check("a link is itself, or with resolveLinkTos what it points to", async (it) => {
    const target = await it.fill(3);
    const links = newStream("links");
    await it.append(links, [it.link(2, target), it.link(0, target), ...it.numbered(1, { first: 9 })]);

    const plain = await it.read(links);
    assert.deepEqual(
        plain.map(({ event }) => event.type),
        ["$>", "$>", "numbered"],
    );
    assert.deepEqual(
        plain.map(({ link }) => link),
        [undefined, undefined, undefined],
    );
    assert.equal(Buffer.from(plain[0].event.data).toString(), `2@${target}`);

    const resolved = await it.read(links, { resolveLinkTos: true });
    assert.deepEqual(
        resolved.map(({ event }) => event.data.n),
        [2, 0, 9],
    );
    assert.deepEqual(
        resolved.map(({ event }) => event.streamId),
        [target, target, links],
    );
    assert.deepEqual(
        resolved.map(({ link }) => link?.revision),
        [0n, 1n, undefined],
    );
    assert.equal(resolved[0].link.streamId, links);
    assert.equal(resolved[0].event.revision, 2n);
    assert.equal(resolved[0].commitPosition, resolved[0].link.position.commit);
    assert.notEqual(resolved[0].event.position.commit, resolved[0].link.position.commit);

    const backwards = await it.read(links, { resolveLinkTos: true, direction: BACKWARDS, fromRevision: END });
    assert.deepEqual(
        backwards.map(({ event }) => event.data.n),
        [9, 0, 2],
    );
});

check("$all resolves links too", async (it) => {
    const target = await it.fill(1);
    const { position } = await it.append(newStream("links"), it.link(0, target));
    const [resolved] = await it.readAll({ fromPosition: position, maxCount: 1, resolveLinkTos: true });
    assert.equal(resolved.event.streamId, target);
    assert.equal(resolved.link.type, "$>");
    const [plain] = await it.readAll({ fromPosition: position, maxCount: 1 });
    assert.equal(plain.event.type, "$>");
});

check("a link whose target is gone comes without it", async (it) => {
    const [deleted, tombstoned, truncated] = [await it.fill(1), await it.fill(1), await it.fill(3)];
    await it.client.deleteStream(deleted);
    await it.client.tombstoneStream(tombstoned);
    await it.client.setStreamMetadata(truncated, { truncateBefore: 2 });
    const links = newStream("links");
    await it.append(links, [
        it.link(0, newStream("never")),
        it.link(0, deleted),
        it.link(0, tombstoned),
        it.link(1, truncated),
        it.link(99, truncated),
        it.link(2, truncated),
    ]);
    const resolved = await it.read(links, { resolveLinkTos: true });
    assert.deepEqual(
        resolved.map(({ link }) => Number(link.revision)),
        upTo(6),
    );
    assert.deepEqual(
        resolved.map(({ event }) => event?.data.n),
        [undefined, undefined, undefined, undefined, undefined, 2],
    );
});

check("a link resolves once; one that says nothing is an event like any other", async (it) => {
    const target = await it.fill(1);
    const [links, outer] = [newStream("links"), newStream("outer")];
    const odd = it.sdk.binaryEvent({ type: "$>", data: Buffer.from("no number@anywhere") });
    await it.append(links, [it.link(0, target), odd]);
    await it.append(outer, it.link(0, links));
    const [inner] = await it.read(outer, { resolveLinkTos: true });
    assert.equal(inner.event.type, "$>");
    assert.equal(inner.event.streamId, links);
    assert.equal(inner.link.streamId, outer);
    const [, strange] = await it.read(links, { resolveLinkTos: true });
    assert.equal(strange.event.type, "$>");
    assert.equal(strange.link, undefined);
});

check("the name behind a link may hold an @", async (it) => {
    const target = `a@b@${newStream()}`;
    await it.append(target, it.numbered(1, { first: 5 }));
    const links = newStream("links");
    await it.append(links, it.link(0, target));
    assert.deepEqual(await it.numbers(links, { resolveLinkTos: true }), [5]);
});

check("what one client wrote, the other reads alike", async (it) => {
    const other = new Other(server);
    const stream = await it.fill(3);
    await other.do("append", stream, 3, 3, 2n);
    const [mine, theirs] = [(await it.read(stream)).map(({ event }) => event), await other.do("read", stream)];
    const comparable = (event) => ({ ...event, created: Math.floor(event.created / 1000) });
    assert.deepEqual(mine.map(comparable), theirs.map(comparable));
    assert.equal(mine.length, 6);
    await other.close();
});

end();
