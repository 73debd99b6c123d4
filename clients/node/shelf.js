/* shelf.js — what a consumer holds, from the arrival of an event until it is settled.
 *
 *      arrive --> waits on the shelf --take--> with the program --settle--> on its way --forget--> gone
 *                        |                          |
 *                        +------- drop: handed back, lost, or the lease ran out ------> gone
 *
 * An entry is { id, response, token, leaseMs, since, event, started, settle }. It waits while `event` is null, and is on
 * its way once `settle` says how. Between the entries on the shelf may stand notices: things that the program is told
 * when everything that came before has been handed to it.
 *
 * It is never larger than the window of the subscription (`bufferSize`), because a server sends no more than that. */
"use strict";

function newEntry({ id, token, leaseMs }, response, now) {
    return { id, response, token, leaseMs, since: now, event: null, started: false, settle: null };
}

class Shelf {
    #held = new Map(); /* id -> entry; the newest, when an event came again */
    #row = []; /* entries that wait, and notices, in the order of their arrival */

    arrive(entry) {
        this.#held.set(entry.id, entry);
        this.#row.push(entry);
    }

    /* What another call of this process had taken. */
    adopt(entries) {
        for (const entry of entries) this.#held.set(entry.id, entry);
    }

    /* Told at once if nothing waits. */
    notice(tell) {
        this.#row.push({ tell });
        this.tellNotices();
    }

    tellNotices() {
        while (this.#row.length > 0 && (this.#row[0].tell || this.#isStale(this.#row[0]))) {
            const { tell } = this.#row.shift();
            tell?.();
        }
    }

    /* The first that waits and may still be started, or null. `expired` is called for one whose lease has run out
     * meanwhile: somebody else may have it by now. */
    take(now, expired) {
        for (;;) {
            this.tellNotices();
            const entry = this.#row.shift();
            if (!entry) return null;
            if (entry.leaseMs === 0 || now < entry.since + entry.leaseMs) return entry;
            this.#held.delete(entry.id);
            expired(entry);
        }
    }

    /* Dropped, or replaced by a newer delivery of the same event. */
    #isStale(entry) {
        return this.#held.get(entry.id) !== entry;
    }

    find(id) {
        return this.#held.get(id);
    }

    forget(id) {
        this.#held.delete(id);
    }

    /* Drops what fits, and gives it. */
    drop(fits) {
        const dropped = [...this.#held.values()].filter(fits);
        for (const { id } of dropped) this.#held.delete(id);
        this.tellNotices();
        return dropped;
    }

    dropWaiting() {
        return this.drop((entry) => entry.event === null);
    }

    /* With the program, and not settled yet. */
    taken() {
        return [...this.#held.values()].filter((entry) => entry.event !== null && entry.settle === null);
    }

    /* With the program, or settled without a confirmation so far. */
    unconfirmed() {
        return [...this.#held.values()].filter((entry) => entry.event !== null);
    }
}

module.exports = { Shelf, newEntry };
