/* The programs of clients/node/README.md, as they stand there: each is a process of its own, on a server that shuts down,
 * or dies and comes back. Only names are replaced: the package, the client, the address, the stream and the group. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { createInterface } from "node:readline";
import test from "node:test";
import { pathToFileURL } from "node:url";

import { connect, isKurrent, name, upTo } from "./lib/official.mjs";
import { assert } from "./lib/rig.mjs";
import { startServer } from "./lib/server.mjs";
import { join, newWork } from "./lib/stoppable.mjs";
import { within } from "./lib/wait.mjs";

const TEST_MS_MAX = 60_000;
const WAIT_MS_MAX = 30_000;
const PACKAGE = new URL("../../clients/node/", import.meta.url);
const EVENT_COUNT = 400;

const { resolve } = createRequire(import.meta.url);

/* What the README leaves to its reader: work, which says on stdout what it does. */
const WORK = `
import { setImmediate as turn } from "node:timers/promises";
async function work({ event }) {
    await turn();
    process.stdout.write("work " + event.data.n + "\\n");
}
`;

/* The program of the README that has this line. */
function programOf(line, server, { stream, name: group }) {
    const text = readFileSync(new URL("README.md", PACKAGE), "utf8");
    const programs = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, program]) => program);
    const [program, ...others] = programs.filter((each) => each.includes(line));
    assert.ok(program && others.length === 0, `one program with "${line}"`);
    const client = isKurrent ? "@kurrent/kurrentdb-client" : "@eventstore/db-client";
    const named = program
        .replace('"@kurrent/kurrentdb-client"', JSON.stringify(pathToFileURL(resolve(client)).href))
        .replace('"sluice-stop"', JSON.stringify(new URL("index.mjs", PACKAGE).href))
        .replace("127.0.0.1:2113", server.address)
        .replace('"orders", "billing"', JSON.stringify([stream, group]).slice(1, -1));
    if (isKurrent) return WORK + named;
    return WORK + named.replaceAll("KurrentDBClient", "EventStoreDBClient").replace("kurrentdb:", "esdb:");
}

/* A process that works, and what it has said so far. */
class Program {
    #folder = mkdtempSync(joinPath(tmpdir(), "sluice-program-"));
    #waiting = new Set();
    lines = [];
    errors = "";

    constructor(text) {
        const path = joinPath(this.#folder, "program.mjs");
        writeFileSync(path, text);
        const env = { ...process.env, HOSTNAME: "worker-1" };
        this.child = spawn(process.execPath, [path], { stdio: ["ignore", "pipe", "pipe"], env });
        this.ended = once(this.child, "close").then(([code]) => code);
        this.child.stderr.setEncoding("utf8").on("data", (part) => (this.errors += part));
        createInterface({ input: this.child.stdout }).on("line", (line) => this.#note(line));
    }

    #note(line) {
        this.lines.push(line);
        for (const look of this.#waiting) look();
    }

    /* The numbers of the events, in the order in which they were worked on. */
    get worked() {
        return this.lines.filter((line) => line.startsWith("work ")).map((line) => Number(line.slice(5)));
    }

    async untilWorked(count) {
        const met = new Promise((resolve) => {
            const look = () => this.worked.length >= count && resolve();
            this.#waiting.add(look);
            look();
        });
        const ended = this.ended.then((code) => {
            throw new Error(`it ended with ${code}: ${this.errors}`);
        });
        await within(Promise.race([met, ended]), WAIT_MS_MAX, `${count} events of ${this.worked.length}`);
    }

    async untilEnded() {
        return within(this.ended, WAIT_MS_MAX, "the end of the program");
    }

    remove() {
        this.child.kill("SIGKILL");
        rmSync(this.#folder, { recursive: true, force: true });
    }
}

/* body(server, it, program): on a server with EVENT_COUNT events and a group on them. */
function check(sentence, line, body) {
    test(`${sentence} (${name})`, { timeout: TEST_MS_MAX }, async () => {
        const server = await startServer();
        const it = connect(server);
        const group = await newWork(it, EVENT_COUNT);
        const program = new Program(programOf(line, server, group));
        try {
            await body(server, group, program);
        } finally {
            program.remove();
            await it.close();
            server.remove();
        }
    });
}

/* body(it): with a connection of its own, since those from before did not outlive the server. */
async function connected(server, body) {
    const it = connect(server);
    await body(it);
    await it.close();
}

/* What another consumer gets of this group when a last event is appended: nothing else. */
async function assertNothingLeft(server, group, number) {
    await connected(server, async (it) => {
        await it.append(group.stream, it.numbered(1, { first: number }));
        const last = join(it, group);
        await last.untilCount(1);
        assert.deepEqual(last.numbers, [number]);
        await last.stop();
    });
}

check("the program that leaves ends well with SIGTERM", "ends by itself", async (server, group, program) => {
    await program.untilWorked(50);
    program.child.kill("SIGTERM");
    assert.equal(await program.untilEnded(), 0, program.errors);
    assert.match(program.lines.join("\n"), /supported: true/);
    assert.equal(program.errors, "");
});

check("it ends well with a server that shuts down", "ends by itself", async (server, group, program) => {
    await program.untilWorked(50);
    const stopping = server.stop();
    assert.equal(await program.untilEnded(), 0, program.errors);
    assert.match(program.lines.join("\n"), /supported: true/);
    assert.equal(program.errors, "");
    assert.deepEqual(await stopping, { code: 0, signal: null });
});

check(
    "the program that comes back does everything once on a server that dies twice and shuts down once",
    "listen(resubscribe(subscription))",
    async (server, group, program) => {
        for (const [count, signal] of [
            [50, "SIGKILL"],
            [150, "SIGTERM"],
            [250, "SIGKILL"],
        ]) {
            await program.untilWorked(count);
            await server.restart(signal);
        }
        // It may be through with all events before the server is killed: only new ones show that it is back.
        await connected(server, (it) => it.append(group.stream, it.numbered(1, { first: EVENT_COUNT })));
        await program.untilWorked(EVENT_COUNT + 1);
        program.child.kill("SIGTERM");
        assert.equal(await program.untilEnded(), 0, program.errors);
        assert.deepEqual([...program.worked].sort((a, b) => a - b), upTo(EVENT_COUNT + 1));
        assert.match(program.lines.at(-1), /supported: true/);
        await assertNothingLeft(server, group, EVENT_COUNT + 1);
    },
);
