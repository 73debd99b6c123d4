/* lib/stoppable.mjs — consumers with the package clients/node, which note everything that they are told. */
import {
    subscribeToPersistentSubscriptionToAll,
    subscribeToPersistentSubscriptionToStream,
} from "../../../clients/node/index.mjs";
import { ALL, Consumer, newGroup } from "./groups.mjs";

/* A new stream with `count` numbered events, and a group on it. */
export async function newWork(it, count, settings = {}) {
    const stream = await it.fill(count, "work");
    return newGroup(it, stream, settings);
}

/* A subscription that notes what it is told. Nothing is acked by itself. */
export class Stoppable extends Consumer {
    constructor(subscription) {
        super(subscription);
        this.told = []; /* [name of the event, what it says] in order; of events their numbers */
        subscription.on("data", ({ event }) => this.note(() => this.told.push(["event", event.data.n])));
        for (const name of ["stopRequested", "stopped", "settled", "lost", "drained"])
            subscription.on(name, (info) => this.note(() => this.told.push([name, info])));
    }

    /* What was told under this name, in order. */
    all(name) {
        return this.told.filter(([kind]) => kind === name).map(([, info]) => info);
    }

    /* The first time that it was or is told, or the one with that number. */
    async first(name, number = 0) {
        await this.until(() => this.all(name).length > number, name);
        return this.all(name)[number];
    }

    /* The kinds in the order in which they came. */
    get kinds() {
        return this.told.map(([kind]) => kind);
    }

    async confirmed() {
        await this.untilConfirmed();
        return this;
    }

    async untilEnded() {
        await this.until(() => this.ended, "the end");
    }
}

/* With Stop. */
export function join(it, { stream, name }, options = {}) {
    const subscription =
        stream === ALL
            ? subscribeToPersistentSubscriptionToAll(it.client, name, options)
            : subscribeToPersistentSubscriptionToStream(it.client, stream, name, options);
    return new Stoppable(subscription);
}

/* As users of the official client have it, without Stop. */
export function joinPlain(it, { stream, name }, options = {}) {
    return new Stoppable(it.client.subscribeToPersistentSubscriptionToStream(stream, name, options));
}
