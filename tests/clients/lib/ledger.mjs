/* lib/ledger.mjs — who wrote what and what he was told: the judge of kill.mjs.
 *
 * It knows nothing of the server. An attempt is an append to one or several streams; its author heard yes, or
 * nothing. From what is there afterwards it must follow that
 *   (1) everything that was confirmed is there, at the revisions that were confirmed;
 *   (2) an attempt is there whole or not at all, its events one behind the other, in all of its streams;
 *   (3) attempts of one author that waited for each other are there in their order;
 *   (4) nothing is there twice, and nothing that nobody wrote;
 *   (5) what somebody was shown is there. */

export class Ledger {
    constructor() {
        this.attempts = [];
        this.shown = new Map(); /* id -> stream, of what subscribers got */
        this.streams = new Map(); /* name -> attempts */
    }

    /* parts: [{ stream, ids }]. The order of begin() is the order of an author's attempts. */
    begin(author, parts) {
        const attempt = { author, parts, number: this.attempts.length, confirmed: false, revisions: [] };
        this.attempts.push(attempt);
        for (const part of parts) {
            if (!this.streams.has(part.stream)) this.streams.set(part.stream, []);
            this.streams.get(part.stream).push({ attempt, ids: part.ids });
        }
        return attempt;
    }

    /* revisions: of the last event of each part. */
    confirm(attempt, revisions) {
        attempt.confirmed = true;
        attempt.revisions = revisions;
    }

    show(stream, id) {
        this.shown.set(id, stream);
    }

    get confirmedCount() {
        return this.attempts.filter(({ confirmed }) => confirmed).length;
    }

    /* contents: Map of stream -> ids in the order of their revisions, for every stream that was written to.
     * Gives sentences about what is wrong, none when all is well. */
    judge(contents) {
        const findings = [];
        for (const [stream, ids] of contents) this.#judgeStream(stream, ids, findings);
        for (const attempt of this.attempts) this.#judgeAttempt(attempt, contents, findings);
        this.#judgeOrder(contents, findings);
        for (const [id, stream] of this.shown)
            if (this.streams.has(stream) && !contents.get(stream)?.includes(id))
                findings.push(`${id} of ${stream} was shown to a subscriber and is gone`);
        return findings;
    }

    #judgeStream(stream, ids, findings) {
        const written = new Set(this.streams.get(stream)?.flatMap((part) => part.ids));
        if (new Set(ids).size !== ids.length) findings.push(`${stream} has an event twice`);
        for (const id of ids) if (!written.has(id)) findings.push(`${stream} has ${id}, which nobody wrote`);
    }

    #judgeAttempt(attempt, contents, findings) {
        const places = attempt.parts.map(({ stream, ids }) => placeOf(ids, contents.get(stream) ?? []));
        const who = `attempt ${attempt.number} of ${attempt.author}`;
        if (places.includes("torn") || new Set(places.map((place) => place === "absent")).size > 1)
            findings.push(`${who} is there in part: ${places}`);
        if (!attempt.confirmed) return;
        for (const [i, { ids }] of attempt.parts.entries()) {
            const last = typeof places[i] === "number" ? BigInt(places[i] + ids.length - 1) : places[i];
            if (last !== attempt.revisions[i])
                findings.push(`${who} was confirmed at revision ${attempt.revisions[i]} and is at ${last}`);
        }
    }

    /* An author waits for an answer before his next attempt on a stream, so their places must rise. */
    #judgeOrder(contents, findings) {
        for (const [stream, parts] of this.streams) {
            const reached = new Map(); /* author -> place */
            for (const { attempt, ids } of parts) {
                const place = placeOf(ids, contents.get(stream) ?? []);
                if (typeof place !== "number") continue;
                if (place < (reached.get(attempt.author) ?? -1))
                    findings.push(`${stream}: ${attempt.author} is out of order`);
                reached.set(attempt.author, place);
            }
        }
    }
}

const indexes = new WeakMap(); /* array of ids -> Map of id -> place */

function indexOf(ids) {
    if (!indexes.has(ids)) indexes.set(ids, new Map(ids.map((id, place) => [id, place])));
    return indexes.get(ids);
}

/* Where the events stand one behind the other: a number, "absent", or "torn". */
function placeOf(wanted, ids) {
    const index = indexOf(ids);
    const first = index.get(wanted[0]);
    if (wanted.every((id) => !index.has(id))) return "absent";
    return wanted.every((id, i) => index.get(id) === first + i) ? first : "torn";
}
