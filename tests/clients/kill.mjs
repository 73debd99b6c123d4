/* kill.mjs — a server under load is killed with SIGKILL at a random moment: every append that a client saw
 * succeed is there.
 *
 *      node kill.mjs [kurrent|legacy] [--rounds N] [--seconds N] [--seed N]
 *
 * One folder for all rounds. In each round a server is started on it, official clients write in every way they
 * have, one of them listens, the server is killed, another is started, and lib/ledger.mjs judges what is there.
 * In the end all rounds are judged again: later kills must not have damaged what earlier ones left. The seed
 * decides what is written and when the kill comes; the machine decides what that hits, so the same seed is the
 * same load and not the same run.
 *
 * Prints TAP. --seconds ends early, after the round in which they are over. */
import { randomUUID } from "node:crypto";
import { parseArgs } from "node:util";

import { Ledger } from "./lib/ledger.mjs";
import { connect, isGone, isKurrent, name as clientName, newStream, upTo } from "./lib/official.mjs";
import { startServer } from "./lib/server.mjs";
import { inParallel, within } from "./lib/wait.mjs";
import { watch } from "./lib/watch.mjs";

const BY_APPEND = { credentials: { username: "nobody", password: "nothing" } };
const AUTHORS = 48;
/* All connections of the older client share one table of what they wait for. The first that fails clears it,
 * and an answer that another still gets then ends the process. */
const SESSIONS = isKurrent ? 4 : 1;
const SETTLE_MS_MAX = 30_000;
const EVENTS_MAX = 8; /* of one append */
const LOAD_MS_MIN = 20; /* after the first confirmation */
const LOAD_MS_MAX = 500;

const { values: words } = parseArgs({
    options: {
        rounds: { type: "string", default: "10" },
        seconds: { type: "string", default: "3600" },
        seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 32)) },
    },
    allowPositionals: true /* the client: lib/official.mjs */,
});

/* Mulberry32: small, and the same everywhere. */
function generator(seed) {
    let state = seed >>> 0;
    return () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let mixed = Math.imul(state ^ (state >>> 15), state | 1);
        mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    };
}

function pick(random, count) {
    return Math.floor(random() * count);
}

/* --- one author after the other, in every way there is to write --- */

class Author {
    constructor(round, name, it) {
        this.round = round;
        this.name = name;
        this.it = it;
        this.stream = newStream(`own-${name}`);
        this.last = "no_stream"; /* revision of `stream` */
    }

    events() {
        const count = 1 + pick(this.round.random, EVENTS_MAX);
        return upTo(count).map((n) =>
            this.it.sdk.jsonEvent({
                id: randomUUID(),
                type: "load",
                data: { n, text: "x".repeat(pick(this.round.random, 400)) },
            }),
        );
    }

    /* Writes until the server is gone; nothing that fails is tried again, because nobody knows what became of
     * it. */
    async work() {
        try {
            while (!this.round.over) await this.step();
        } catch (error) {
            if (!isGone(error)) throw error;
        }
    }

    step() {
        const ways = [this.toOwn, this.toOwn, this.toShared, this.toShared, this.byAppend];
        if (this.it.isKurrent) ways.push(this.toTwo);
        return ways[pick(this.round.random, ways.length)].call(this);
    }

    async write(stream, state, options) {
        const events = this.events();
        const attempt = this.round.ledger.begin(this.name, [{ stream, ids: events.map(({ id }) => id) }]);
        const { nextExpectedRevision } = await this.it.append(stream, events, state, options);
        this.round.confirm(attempt, [nextExpectedRevision]);
        return nextExpectedRevision;
    }

    async toOwn() {
        this.last = await this.write(this.stream, this.last);
    }

    toShared() {
        return this.write(this.round.shared, "any");
    }

    byAppend() {
        return this.write(this.round.shared, "any", BY_APPEND);
    }

    async toTwo() {
        const requests = [
            { streamName: this.stream, events: this.events(), expectedState: this.last },
            { streamName: this.round.shared, events: this.events(), expectedState: "any" },
        ];
        const parts = requests.map(({ streamName, events }) => ({
            stream: streamName,
            ids: events.map(({ id }) => id),
        }));
        const attempt = this.round.ledger.begin(this.name, parts);
        const { responses } = await this.it.client.multiStreamAppend(requests);
        const revisions = parts.map(
            ({ stream }) => responses.find(({ streamName }) => streamName === stream).revision,
        );
        this.round.confirm(attempt, revisions);
        this.last = revisions[0];
    }
}

/* --- one round --- */

class Round {
    constructor(random) {
        this.random = random;
        this.ledger = new Ledger();
        this.shared = newStream("shared");
        this.over = false;
        this.begun = new Promise((resolve) => (this.begin = resolve));
    }

    confirm(attempt, revisions) {
        this.ledger.confirm(attempt, revisions);
        this.begin();
    }

    async run(server) {
        const sessions = upTo(SESSIONS).map(() => connect(server));
        const authors = sessions.flatMap((it, i) =>
            upTo(AUTHORS / SESSIONS).map((n) => new Author(this, `author-${i}-${n}`, it)),
        );
        const listener = watch(sessions[0].client.subscribeToAll({ fromPosition: "end" }));
        await listener.untilCaughtUp();
        const works = authors.map((author) => author.work());
        const delay_ms = LOAD_MS_MIN + pick(this.random, LOAD_MS_MAX - LOAD_MS_MIN);
        await within(Promise.race([this.begun, Promise.all(works)]), SETTLE_MS_MAX, "the first confirmation");
        await new Promise((resolve) => setTimeout(resolve, delay_ms));
        await server.kill();
        this.over = true;
        await within(Promise.all(works), SETTLE_MS_MAX, "the authors to notice");
        for (const { event } of listener.events) this.ledger.show(event.streamId, event.id);
        await Promise.all(sessions.map((it) => it.close()));
        return delay_ms;
    }
}

/* Ids of every stream of the ledger, as this client reads them. */
async function contentsOf(ledger, it) {
    const names = [...ledger.streams.keys()];
    const readIds = async (name) => {
        try {
            return (await it.read(name)).map(({ event }) => event.id);
        } catch (error) {
            if (error instanceof it.sdk.StreamNotFoundError) return [];
            throw error;
        }
    };
    const all = await inParallel(
        names.map((name) => () => readIds(name)),
        8,
    );
    return new Map(names.map((name, i) => [name, all[i]]));
}

let testNumber = 0;

function tell(findings, name) {
    console.log(`${findings.length ? "not ok" : "ok"} ${++testNumber} - ${name}`);
    for (const finding of findings.slice(0, 20)) console.log(`#   ${finding}`);
    return findings.length === 0;
}

async function judged(server, name, ledgers) {
    const it = connect(server);
    const findings = [];
    for (const ledger of ledgers) findings.push(...ledger.judge(await contentsOf(ledger, it)));
    await it.close();
    return tell(findings, name);
}

async function main() {
    const random = generator(Number(words.seed));
    const endAt = Date.now() + Number(words.seconds) * 1000;
    const ledgers = [];
    let good = true;
    console.log(`# ${clientName}, seed ${words.seed}`);
    const server = await startServer();
    for (let n = 1; n <= Number(words.rounds) && Date.now() < endAt; n++) {
        const round = new Round(random);
        ledgers.push(round.ledger);
        const delay_ms = await round.run(server);
        await server.start();
        const counts = `${round.ledger.confirmedCount} of ${round.ledger.attempts.length} confirmed`;
        const name = `round ${n}, killed after ${delay_ms} ms: ${counts}`;
        good = (await judged(server, name, [round.ledger])) && good;
    }
    good = (await judged(server, "everything that was confirmed in any round is there", ledgers)) && good;
    const { code } = await server.stop();
    good = tell(code === 0 ? [] : [server.log], "the last server ends with exit code 0") && good;
    server.remove();
    console.log(`1..${testNumber}`);
    process.exit(good ? 0 : 1);
}

await main();
