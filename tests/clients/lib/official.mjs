/* lib/official.mjs — one of the two official clients behind one set of names, so that tests are written once
 * and run with both.
 *
 * Which one: the first word behind the name of the test file, "kurrent" (@kurrent/kurrentdb-client, if there is
 * no word) or "legacy" (@eventstore/db-client). A process, or a worker thread, has one of them: both describe
 * their messages to the same global registry, and the one that came first then fails to write its own.
 *
 * Nothing is changed in them and nothing of their insides is used. Where they differ:
 *   - the expected state of an append is `streamState` in the newer one and `expectedRevision` in the older;
 *     setStreamMetadata() of the newer one hands its options through to the append, so it listens to
 *     `streamState` too, whatever its documentation says;
 *   - reads of the newer one run through a native bridge with a connection of its own; it knows the time of an
 *     event by the second;
 *   - filters for readAll(), multiStreamAppend() and appendRecords() exist only in the newer one. */
import { workerData } from "node:worker_threads";

const PACKAGES = {
    kurrent: { module: "@kurrent/kurrentdb-client", client: "KurrentDBClient", scheme: "kurrentdb" },
    legacy: { module: "@eventstore/db-client", client: "EventStoreDBClient", scheme: "esdb" },
};

export const name = workerData?.client ?? process.argv.slice(2).find((word) => word in PACKAGES) ?? "kurrent";
export const isKurrent = name === "kurrent";
export const { scheme } = PACKAGES[name];
export const sdk = await import(PACKAGES[name].module);
export const Client = sdk[PACKAGES[name].client];

function query(options) {
    return Object.entries(options)
        .map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
        .join("&");
}

const KEEP_ALIVE_MS = 10_000; /* as both have it by default */
const sessions = [];

/* options: those of the connection string; hosts, user and suffix ("+discover") are parts of it.
 *
 * grpc-js lets all clients of a process share one connection when their options are the same. Here each has its
 * own, as in processes of their own: their options differ by a millisecond. */
export function connect(server, { suffix = "", user = "", hosts = server.address, ...options } = {}) {
    const login = user && `${user}@`;
    const own = { tls: false, keepAliveInterval: KEEP_ALIVE_MS + sessions.length, ...options };
    const text = `${scheme}${suffix}://${login}${hosts}?${query(own)}`;
    const session = new Session(Client.connectionString(text));
    sessions.push(session);
    return session;
}

/* For the end of a file in which a test failed and left something open. */
export function closeAll() {
    return Promise.all(sessions.map((session) => session.close()));
}

/* The option that says which state of the stream an append, a delete or a change of metadata expects. */
export function expecting(state) {
    return { streamState: state, expectedRevision: state };
}

/* What a WrongExpectedVersionError of either client says. */
export function versionsOf(error) {
    return {
        stream: error.streamName,
        expected: error.expectedState ?? error.expectedVersion,
        actual: error.actualState ?? error.actualVersion,
    };
}

const UNAVAILABLE = 14;

/* The error of a call whose server went away. The question for features, which comes before the first append,
 * is not given a class. */
export function isGone(error) {
    return ["unavailable", "cancelled"].includes(error.type) || error.code === UNAVAILABLE;
}

export async function collect(iterable) {
    const all = [];
    for await (const one of iterable) all.push(one);
    return all;
}

let streamNumber = 0;

/* A name that nobody else uses, in this process and in any other. */
export function newStream(prefix = "stream") {
    return `${prefix}-${process.pid}-${Date.now().toString(36)}-${++streamNumber}`;
}

class Session {
    constructor(client) {
        this.client = client;
        this.sdk = sdk;
        this.isKurrent = isKurrent;
    }

    /* `count` JSON events with data { n: first } and so on. */
    numbered(count, { first = 0, type = "numbered" } = {}) {
        return Array.from({ length: count }, (_, i) => this.sdk.jsonEvent({ type, data: { n: first + i } }));
    }

    async append(stream, events, state = "any", options = {}) {
        return this.client.appendToStream(stream, events, { ...expecting(state), ...options });
    }

    /* A new stream with `count` numbered events. */
    async fill(count, prefix) {
        const stream = newStream(prefix);
        if (count > 0) await this.append(stream, this.numbered(count));
        return stream;
    }

    read(stream, options) {
        return collect(this.client.readStream(stream, options));
    }

    readAll(options) {
        return collect(this.client.readAll(options));
    }

    /* The `n` of each event that a read gives. */
    async numbers(stream, options) {
        return (await this.read(stream, options)).map(({ event }) => event.data.n);
    }

    link(revision, stream) {
        return this.sdk.binaryEvent({ type: "$>", data: Buffer.from(`${revision}@${stream}`) });
    }

    close() {
        return this.client.dispose();
    }
}

export function upTo(count, first = 0) {
    return Array.from({ length: count }, (_, i) => first + i);
}
