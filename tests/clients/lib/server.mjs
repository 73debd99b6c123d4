/* lib/server.mjs — the server under test: a real process on a folder of its own.
 *
 *      start --> ready --> stop (SIGTERM), kill (SIGKILL), freeze (SIGSTOP) --> restart on the same folder and port
 *
 * Which program: build/sluice, or what the environment variable SLUICE names. The servers are in the process
 * group of the test, and a test that ends in any way takes them along. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { within } from "./wait.mjs";

export const PROGRAM = process.env.SLUICE ?? fileURLToPath(new URL("../../../build/sluice", import.meta.url));

const START_MS_MAX = 30_000;
const STOP_MS_MAX = 30_000;
const PORT_MIN = 20_000;
const PORT_COUNT = 12_000;
const LOG_CHARS_MAX = 64 * 1024; /* the end of it is what explains a failure */

const running = new Set();
process.on("exit", () => {
    for (const server of running) server.abandon();
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

/* Runs the program to its end, as a user does; for `sluice user add` and the like. Fails unless it succeeds. */
export function run(words, input = "") {
    const result = spawnSync(PROGRAM, words, { input, encoding: "utf8" });
    if (result.status !== 0)
        throw new Error(
            `sluice ${words.join(" ")}: exit code ${result.status}\n${result.stdout}${result.stderr}`,
        );
    return result.stdout;
}

export function newFolder() {
    return mkdtempSync(join(tmpdir(), "sluice-clients-"));
}

/* Below those that the system gives to whoever asks for any: a server that comes back to its port must not find
 * somebody else there. */
async function freePort() {
    for (;;) {
        const listener = createServer();
        const isFree = new Promise((resolve) => {
            listener.once("listening", () => listener.close(() => resolve(true)));
            listener.once("error", () => resolve(false));
        });
        const port = PORT_MIN + Math.floor(Math.random() * PORT_COUNT);
        listener.listen(port, "127.0.0.1");
        if (await isFree) return port;
    }
}

class Server {
    #child;
    #ended;
    #log = "";
    #words;

    constructor(folder, words) {
        this.folder = folder;
        this.port = 0;
        this.#words = words;
    }

    async start() {
        this.port ||= await freePort();
        const words = ["serve", "--port", this.port, "--admin-port", 0, "--data", this.folder, ...this.#words];
        this.#child = spawn(PROGRAM, words.map(String), { stdio: ["ignore", "pipe", "pipe"] });
        this.#ended = once(this.#child, "exit").then(([code, signal]) => ({ code, signal }));
        this.#ended.catch(() => {}); /* a program that is not there is reported by #ready() */
        this.#child.stderr.setEncoding("utf8").on("data", (text) => this.#remember(text));
        running.add(this);
        await within(this.#ready(), START_MS_MAX, 'the line "ready"').catch((error) => this.#fail(error));
        return this;
    }

    /* The first line of stdout that says so, or why there will never be one. */
    #ready() {
        const lines = createInterface({ input: this.#child.stdout });
        return new Promise((resolve, reject) => {
            this.#child.once("error", reject);
            this.#ended.then(
                ({ code, signal }) => reject(new Error(`it ended with ${code ?? signal}`)),
                reject,
            );
            lines.on("line", (line) => {
                this.#remember(`${line}\n`);
                if (this.#understand(line)) resolve();
            });
        });
    }

    #understand(line) {
        const match = /^ready grpc=(\S+):(\d+) admin=(\S+)$/.exec(line);
        if (!match) return false;
        this.host = match[1];
        this.port = Number(match[2]);
        this.admin = match[3];
        return true;
    }

    #fail(error) {
        this.abandon();
        throw new Error(`sluice serve: ${error.message}\n${this.#log}`);
    }

    #remember(text) {
        this.#log = (this.#log + text).slice(-LOG_CHARS_MAX);
    }

    get log() {
        return this.#log;
    }

    get address() {
        return `${this.host}:${this.port}`;
    }

    get pid() {
        return this.#child.pid;
    }

    get alive() {
        return this.#child.exitCode === null && this.#child.signalCode === null;
    }

    /* How it ended: { code, signal }. */
    get ended() {
        return this.#ended;
    }

    async stop(signal = "SIGTERM") {
        this.#child.kill(signal);
        const end = await within(this.#ended, STOP_MS_MAX, `the end of the server after ${signal}`);
        running.delete(this);
        return end;
    }

    kill() {
        return this.stop("SIGKILL");
    }

    /* Not a step is done until thaw(): what a client sends meanwhile waits in the kernel. */
    freeze() {
        this.#child.kill("SIGSTOP");
    }

    thaw() {
        this.#child.kill("SIGCONT");
    }

    /* Certificates are read again. */
    hangUp() {
        this.#child.kill("SIGHUP");
    }

    /* The next process on the same folder and port, so that clients find it where they left it. */
    async restart(signal = "SIGTERM") {
        if (this.alive) await this.stop(signal);
        return this.start();
    }

    abandon() {
        this.#child.kill("SIGKILL");
        running.delete(this);
    }

    remove() {
        if (this.alive) this.abandon();
        rmSync(this.folder, { recursive: true, force: true });
    }
}

/* words: further options of `sluice serve`; folder: an own one unless given. */
export async function startServer({ words = [], folder = newFolder() } = {}) {
    return new Server(folder, words).start();
}
