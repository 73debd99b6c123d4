/* Much at once: a hundred thousand events, fifty clients, and that everything arrives complete and in order. */
import { connect, newStream, upTo } from "./lib/official.mjs";
import { assert, rig } from "./lib/rig.mjs";
import { inParallel } from "./lib/wait.mjs";
import { watch } from "./lib/watch.mjs";

const { check, newer, older, server, end } = await rig();

const EVENTS = 100_000;
const CLIENTS = 50;
const ROUND = 10; /* appends of each of them */

/* Says where a sequence goes wrong; deepEqual of a hundred thousand would print all of it. */
function isCount(numbers, count, first = 0, step = 1) {
    assert.equal(numbers.length, count);
    const wrong = numbers.findIndex((n, i) => n !== first + i * step);
    assert.equal(wrong, -1, `number ${wrong} is ${numbers[wrong]}`);
}

const big = newStream("big");

check("a hundred thousand events are appended", async (it) => {
    const size = 5000;
    for (let first = 0; first < EVENTS; first += size) {
        const { nextExpectedRevision } = await it.append(
            big,
            it.numbered(size, { first }),
            first ? BigInt(first - 1) : "no_stream",
        );
        assert.equal(nextExpectedRevision, BigInt(first + size - 1));
    }
});

check("they are read complete and in order", async (it) => {
    isCount(await it.numbers(big), EVENTS);
});

/* The rest is divided between the two clients, because each of them takes seconds for so many. */

newer("they are read complete backwards", async (it) => {
    isCount(await it.numbers(big, { direction: "backwards", fromRevision: "end" }), EVENTS, EVENTS - 1, -1);
});

older("a subscription catches up with all of them and goes live", async (it) => {
    const subscription = watch(it.client.subscribeToStream(big));
    await subscription.untilCaughtUp();
    await subscription.untilCount(EVENTS);
    isCount(subscription.numbers.slice(0, EVENTS), EVENTS);
    await subscription.stop();
});

newer("$all has all of them, once", async (it) => {
    const numbers = [];
    let last = 0n;
    for await (const { event } of it.client.readAll()) {
        assert.ok(event.position.commit > last, `${event.position.commit} after ${last}`);
        last = event.position.commit;
        if (event.streamId === big) numbers.push(event.data.n);
    }
    isCount(numbers, EVENTS);
});

newer("a filter finds the last of them", async (it) => {
    const needle = newStream("needle");
    await it.append(needle, it.numbered(1, { first: 7 }));
    const filter = it.sdk.streamNameFilter({ prefixes: [needle] });
    const found = await it.readAll({ filter });
    assert.deepEqual(
        found.map(({ event }) => event.data.n),
        [7],
    );
});

check("fifty clients write, read and listen at once", async (reader) => {
    const shared = newStream("shared");
    const crowd = upTo(CLIENTS).map(() => connect(server));
    const listeners = crowd.map((it) => watch(it.client.subscribeToStream(shared)));
    await Promise.all(listeners.map((listener) => listener.untilCaughtUp()));
    const own = await Promise.all(
        crowd.map(async (it, who) => {
            const stream = newStream("own");
            for (let n = 0; n < ROUND; n++) {
                await it.append(stream, it.numbered(1, { first: n }), n ? BigInt(n - 1) : "no_stream");
                await it.append(shared, it.sdk.jsonEvent({ type: "shared", data: { n, who } }));
            }
            return stream;
        }),
    );
    const reads = await Promise.all(crowd.map((it, n) => it.numbers(own[n])));
    for (const numbers of reads) isCount(numbers, ROUND);
    const truth = (await reader.read(shared)).map(({ event }) => event.id);
    assert.equal(new Set(truth).size, CLIENTS * ROUND);
    for (const listener of listeners) {
        await listener.untilCount(CLIENTS * ROUND);
        assert.deepEqual(
            listener.events.map(({ event }) => event.id),
            truth,
        );
    }
    await Promise.all(crowd.map((it) => it.close()));
});

check("what each writer wrote is in its order, however many write to one stream", async (it) => {
    const stream = newStream("writers");
    const lanes = upTo(50).map((who) => async () => {
        for (let n = 0; n < 20; n++)
            await it.append(stream, it.sdk.jsonEvent({ type: "lane", data: { n, who } }));
    });
    await inParallel(lanes, lanes.length);
    const events = (await it.read(stream)).map(({ event }) => event.data);
    for (const who of upTo(50))
        isCount(
            events.filter((data) => data.who === who).map(({ n }) => n),
            20,
        );
});

check("twenty reads of it at once are all complete", async (it) => {
    const count = 2000;
    const stream = await it.fill(count);
    const reads = await Promise.all(upTo(20).map(() => it.numbers(stream)));
    for (const numbers of reads) isCount(numbers, count);
});

end();
