/* lib/watch.mjs — a subscription whose deliveries are kept in order and can be waited for. */
import { within } from "./wait.mjs";

const WAIT_MS_MAX = 30_000;

export class Watch {
    constructor(subscription) {
        this.subscription = subscription;
        this.events = []; /* as the client gives them */
        this.caughtUp = []; /* what was said with each */
        this.confirmations = [];
        this.error = null;
        this.ended = false;
        this.waiting = new Set();
        subscription
            .on("data", (event) => this.note(() => this.events.push(event)))
            .on("caughtUp", (info) => this.note(() => this.caughtUp.push(info)))
            .on("confirmation", () => this.note(() => this.confirmations.push(subscription.id)))
            .on("error", (error) => this.note(() => (this.error = error)))
            .on("end", () => this.note(() => (this.ended = true)))
            .on("close", () => this.note(() => (this.ended = true)));
    }

    note(change) {
        change();
        for (const look of this.waiting) look();
    }

    /* Waits until the condition holds. An error of the subscription ends the waiting, unless it is what is
     * waited for. */
    async until(condition, what) {
        let look;
        const met = new Promise((resolve, reject) => {
            look = () => {
                if (condition()) resolve();
                else if (this.error) reject(this.error);
            };
            this.waiting.add(look);
            look();
        });
        try {
            await within(met, WAIT_MS_MAX, `${what} (${this.events.length} events so far)`);
        } finally {
            this.waiting.delete(look);
        }
    }

    untilCount(count) {
        return this.until(() => this.events.length >= count, `${count} events`);
    }

    /* The clients tell it at once and pass events on by the way of their buffers, so these may be a turn
     * behind. */
    async untilCaughtUp() {
        await this.until(() => this.caughtUp.length > 0, "caught up");
        await new Promise((resolve) => setImmediate(resolve));
    }

    async untilError() {
        await this.until(() => this.error !== null, "an error");
        return this.error;
    }

    get numbers() {
        return this.events.map(({ event }) => event.data.n);
    }

    stop() {
        return this.subscription.unsubscribe();
    }
}

export function watch(subscription) {
    return new Watch(subscription);
}
