/* lib/other.mjs — the other official client, in a thread of its own (lib/official.mjs says why), for tests in
 * which they meet.
 *
 *      const other = new Other(server);
 *      await other.do("append", stream, 3);        see lib/other_thread.mjs for what it can do
 *      await other.close(); */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

import { isKurrent } from "./official.mjs";
import { within } from "./wait.mjs";

const ANSWER_MS_MAX = 30_000;

export class Other {
    #thread;

    constructor(server) {
        const workerData = { client: isKurrent ? "legacy" : "kurrent", address: server.address };
        this.#thread = new Worker(new URL("./other_thread.mjs", import.meta.url), { workerData });
        this.#thread.unref(); /* a test that fails must not wait for it */
    }

    /* One at a time. */
    async do(what, ...values) {
        const answered = once(this.#thread, "message"); /* fails with the thread */
        this.#thread.postMessage({ what, values });
        const [{ result, error }] = await within(answered, ANSWER_MS_MAX, `${what} of the other client`);
        if (error) throw new Error(`${what} of the other client: ${error}`);
        return result;
    }

    close() {
        return this.#thread.terminate();
    }
}
