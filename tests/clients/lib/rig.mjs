/* lib/rig.mjs — a test file in three lines: a server, a client, and tests that are sentences.
 *
 *      const { check, server, end } = await rig();
 *      check("an append is ...", async (it) => { await it.append(...) });
 *      newer("a filter ...", async (it) => { ... });       only with the newer client; older() likewise
 *
 * Each file ends with a test that the server is still there and ends as it should: a crash is a failure even if
 * the client got over it. */
import assert from "node:assert/strict";
import test, { after } from "node:test";

import { closeAll, connect as connectTo, isKurrent, name } from "./official.mjs";
import { startServer } from "./server.mjs";

const TEST_MS_MAX = 60_000;
const LEAVE_MS_MAX = 10_000;

export { assert };

/* The error of a promise that must fail. */
export async function failure(promise, Kind, what = "it") {
    const error = await promise.then(
        () => null,
        (reason) => reason,
    );
    assert.ok(error !== null, `${what} should have failed`);
    if (Kind)
        assert.ok(
            error instanceof Kind,
            `${error?.constructor?.name} instead of ${Kind.name}: ${error?.stack}`,
        );
    return error;
}

async function withLog(server, body) {
    try {
        await body();
    } catch (error) {
        if (!server.alive) error.message += `\nthe server is gone; its last words:\n${server.log}`;
        throw error;
    }
}

function lastWords(server, it) {
    test("the server is still there, and ends with exit code 0", { timeout: TEST_MS_MAX }, async () => {
        await it.close();
        assert.ok(server.alive, `the server died:\n${server.log}`);
        assert.deepEqual(await server.stop(), { code: 0, signal: null }, server.log);
    });
    after(async () => {
        setTimeout(() => process.exit(1), LEAVE_MS_MAX).unref(); /* whatever a failed test has left behind */
        server.remove();
        await closeAll();
    });
}

/* words: options of `sluice serve`; connect: options of the connection string. */
export async function rig({ words = [], connect = {}, folder } = {}) {
    const server = await startServer({ words, folder });
    const it = connectTo(server, connect);
    const check = (sentence, body, options = {}) =>
        test(`${sentence} (${name})`, { timeout: TEST_MS_MAX, ...options }, () =>
            withLog(server, () => body(it)),
        );
    const newer = isKurrent ? check : () => {};
    const older = isKurrent ? () => {} : check;
    return { server, it, check, newer, older, end: () => lastWords(server, it) };
}
