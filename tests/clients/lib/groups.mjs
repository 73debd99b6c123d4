/* lib/groups.mjs — persistent subscriptions behind one set of names, whether to a stream or to $all.
 *
 *      const group = await newGroup(it, stream, { startFrom: "start" });      stream ALL: to everything
 *      const consumer = group.consume({ bufferSize: 4 });
 *      await consumer.untilCount(3);
 *      await consumer.ack(0, 3);                                              the first three
 *
 * What a consumer sends is answered by nothing. Where a test has to know that it arrived, it asks for the group's
 * information until that shows it: `group.until(...)`. */
import { inspect } from "node:util";

import { newStream } from "./official.mjs";
import { eventually } from "./wait.mjs";
import { Watch } from "./watch.mjs";

export const ALL = "$all";

export class Consumer extends Watch {
    /* Events [from, to) in the order in which they came. */
    ack(from = 0, to = this.events.length) {
        return this.subscription.ack(...this.events.slice(from, to));
    }

    nack(action, reason, from = 0, to = this.events.length) {
        return this.subscription.nack(action, reason, ...this.events.slice(from, to));
    }

    untilConfirmed() {
        return this.until(() => this.confirmations.length > 0, "the confirmation");
    }

    /* Each event is acked when it comes; `after` is called behind that. */
    ackAll(after = () => {}) {
        this.subscription.on("data", (event) => {
            this.subscription.ack(event).then(
                () => after(event),
                () => {}, /* the call has ended: the error is told elsewhere */
            );
        });
        return this;
    }

    get retries() {
        return this.events.map(({ retryCount }) => retryCount);
    }
}

export class Group {
    constructor(it, stream, name) {
        Object.assign(this, { it, stream, name, isAll: stream === ALL });
    }

    #call(before, after, ...rest) {
        const { client } = this.it;
        return this.isAll
            ? client[`${before}ToAll${after}`](this.name, ...rest)
            : client[`${before}ToStream${after}`](this.stream, this.name, ...rest);
    }

    settings(changes = {}) {
        const { sdk } = this.it;
        return this.isAll
            ? sdk.persistentSubscriptionToAllSettingsFromDefaults(changes)
            : sdk.persistentSubscriptionToStreamSettingsFromDefaults(changes);
    }

    create(changes, ...options) {
        return this.#call("createPersistentSubscription", "", this.settings(changes), ...options);
    }

    update(changes, ...options) {
        return this.#call("updatePersistentSubscription", "", this.settings(changes), ...options);
    }

    delete(...options) {
        return this.#call("deletePersistentSubscription", "", ...options);
    }

    info(...options) {
        return this.#call("getPersistentSubscription", "Info", ...options);
    }

    replay(...options) {
        return this.#call("replayParkedMessages", "", ...options);
    }

    /* it: another client than the one that made the group. */
    consume(options, it = this.it) {
        const { client } = it;
        return new Consumer(
            this.isAll
                ? client.subscribeToPersistentSubscriptionToAll(this.name, options)
                : client.subscribeToPersistentSubscriptionToStream(this.stream, this.name, options),
        );
    }

    /* Its information, as soon as the condition holds for it. */
    until(condition, what) {
        return eventually(
            async () => {
                const info = await this.info();
                if (!condition(info)) throw new Error(`${what}: ${inspect(info, { depth: 4 })}`);
                return info;
            },
            { what },
        );
    }

    untilInFlight(count) {
        return this.until(({ stats }) => stats.totalInFlightMessages === count, `${count} messages in flight`);
    }

    untilParked(count) {
        return this.until(({ stats }) => stats.parkedMessageCount === BigInt(count), `${count} parked messages`);
    }

    untilConsumers(count) {
        return this.until(({ connections }) => connections.length === count, `${count} consumers`);
    }

    get parkedStream() {
        return `$persistentsubscription-${this.stream}::${this.name}-parked`;
    }
}

let groupNumber = 0;

/* A name that no other group has. */
export function groupOf(it, stream) {
    return new Group(it, stream, `group-${++groupNumber}`);
}

export async function newGroup(it, stream = newStream(), changes = {}, ...options) {
    const group = groupOf(it, stream);
    await group.create({ startFrom: "start", ...changes }, ...options);
    return group;
}
