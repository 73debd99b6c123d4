/* session.js — one call of Read, between the official subscription object and the official gRPC stream.
 *
 *                    ack, nack, unsubscribe (theirs)
 *      program <---> subscription object ----------------> gRPC stream <---> server
 *           \              ^ events, one when asked             |
 *            \             |                                    | everything, at once
 *             +--- stop, release, ... ---> Session <------------+
 *
 * Both ends are the client's own objects. The only thing in between that is replaced is the pipe from the stream to the
 * subscription, for two reasons:
 *   - An answer of the server (Stopped, say) must not wait behind events that the program has not asked for: a program
 *     that waits for its stop() inside its loop over the events would wait for ever. So the stream is always read to
 *     the end. What it can hold is limited by the window of the subscription.
 *   - An event that is still here when the program stops has not been started, and can be handed back. Once it lies in
 *     the buffer of a Node stream, nobody can take it out again. So the subscription has no buffer and gets an event
 *     when it asks for one. */
"use strict";

const wire = require("./wire.js");
const { Shelf, newEntry } = require("./shelf.js");

const MESSAGE = Symbol("what the server said, with the extensions");
const FEATURE = "stop";
const FEATURES_PATH = "/event_store.client.server_features.ServerFeatures/GetSupportedMethods";
const ROUND_TRIP_MS_MAX = 5_000;
const NACK_ACTION = { park: 1, retry: 2, skip: 3, stop: 4 };

function deferred() {
    const it = {};
    it.promise = new Promise((resolve, reject) => Object.assign(it, { resolve, reject }));
    it.promise.catch(() => {}); /* whoever waits for it is told; nobody has to */
    return it;
}

function idOf(event) {
    const id = event?.link?.id ?? event?.event?.id;
    if (typeof id !== "string") throw new TypeError("this is not an event of a subscription: it has no id");
    return id.toLowerCase();
}

const idsOf = (entries) => entries.map(({ id }) => id);

const isUnstarted = ({ started, settle }) => !started && settle === null;

/* Of those that the program was given. */
const eventsOf = (entries) => entries.map(({ event }) => event).filter(Boolean);

class Session {
    #extensions;
    #isManual; /* the program says itself what it has started */
    #shelf = new Shelf();
    #toStart = []; /* ids whose Started is written at the end of this turn */
    #handed = []; /* the last entries that were pushed: those that nobody has read yet are among them */
    #back = new Map(); /* id -> entry that goes back to the group; told with the next Stopped */

    #supported = false;
    #stub = null; /* grpc-js client on the channel of the call */
    #call = null;
    #subscription = null;
    #theirs = null; /* { ack, nack } of the client */
    #opened = deferred();
    #hasAsked = false; /* the subscription wants an event */

    #drain = null; /* deferred of stop(), until the call is over */
    #drained = null; /* the result, when there is one */
    #handsBack = false; /* after an own stop: what arrives is not handed out any more */
    #returns = false; /* between the request of an operator and its Stopped: what arrives goes back */
    #alone = null; /* counts of a stop without help by the server */
    #cause = null; /* the error of the call */
    #over = null; /* { cause, isTold } when the call has ended */
    #waiting = new Set(); /* to be called when it ends */

    constructor(extensions, { starting = "handed" }) {
        if (!["handed", "said"].includes(starting)) throw new TypeError('starting is "handed" or "said"');
        this.#extensions = extensions;
        this.#isManual = starting === "said";
    }

    /* The object that the client has just made; nobody has read from it yet. */
    serve(subscription) {
        this.#subscription = subscription;
        this.#theirs = { ack: subscription.ack.bind(subscription), nack: subscription.nack.bind(subscription) };
        subscription._read = () => {
            this.#hasAsked = true;
            this.#feed();
        };
    }

    /* --- making the call --- */

    /* Instead of the method `read` of the client's own stub. */
    async stub(client, stub, method) {
        this.#stub = stub;
        this.#supported = await client.supports(method, FEATURE);
        return { read: (metadata, options) => this.#begin(method, metadata, options) };
    }

    #begin(method, metadata, options) {
        let isFirst = true;
        const serialize = (request) => {
            if (Buffer.isBuffer(request)) return request; /* one of ours */
            const bytes = method.requestSerialize(request);
            if (isFirst) {
                isFirst = false;
                return this.#supported ? wire.withExtensions(bytes, this.#extensions) : bytes;
            }
            this.#noteSettle(wire.readSettle(bytes));
            return bytes;
        };
        const deserialize = (bytes) => {
            const response = method.responseDeserialize(bytes);
            response[MESSAGE] = wire.readResponse(bytes);
            return response;
        };
        const call = this.#stub.makeBidiStreamRequest(method.path, serialize, deserialize, metadata, options);
        call.pipe = (subscription) => this.#connect(call, subscription);
        return call;
    }

    #connect(call, subscription) {
        this.#call = call;
        this.#listenForErrors(call);
        call.on("end", () => this.end(this.#cause));
        call.on("data", (response) => this.#receive(response, response[MESSAGE]));
        if (this.#supported) this.#send(wire.idsRequest("started", [])); /* starts are said, by us or the program */
        this.#startAgain();
        this.#settleAgain();
        this.#opened.resolve();
        return subscription;
    }

    /* The subscription has put its listener on the call just before it asks for the pipe. That one tells the program of
     * every error. Behind Drained there is none to tell: a server that shuts down ends the calls that it has drained. */
    #listenForErrors(call) {
        const tell = call.listeners("error").at(-1);
        if (tell) call.off("error", tell);
        call.on("error", (error) => {
            this.#cause = error;
            if (!this.#drained) tell?.(error);
        });
    }

    /* The call is over, or has never begun. Who lost his call starts nothing of it any more: the server gives it to
     * others at once. */
    end(cause) {
        if (this.#over) return;
        this.#over = { cause, isTold: false };
        if (this.#supported) this.#shelf.dropWaiting();
        this.#opened.reject(cause ?? this.#endError());
        this.#drain?.reject(this.#endError());
        this.#alone?.idle.reject(this.#endError());
        for (const leave of [...this.#waiting]) leave();
        /* A program that ends with its loop hears the result of its stop before. */
        if (this.#drained) setImmediate(() => this.#tellEnd());
        else this.#tellEnd();
    }

    #tellEnd() {
        this.#over.isTold = true;
        this.#feed();
    }

    /* True when they have done it, false when the call ended before: what waits for room in a broken call waits for
     * ever. */
    #unlessOver(doing) {
        return new Promise((resolve, reject) => {
            const leave = () => {
                this.#waiting.delete(leave);
                resolve(false);
            };
            this.#waiting.add(leave);
            const done = (settle) => (value) => {
                this.#waiting.delete(leave);
                settle(value);
            };
            doing.then(() => true).then(done(resolve), done(reject));
        });
    }

    #endError() {
        const { cause } = this.#over;
        const why = cause ? `: ${cause.message}` : "";
        return new Error(`the subscription ended before it was drained${why}`, { cause });
    }

    /* --- from the server --- */

    #receive(response, message) {
        if (message.kind === "event") this.#arrive(response, message);
        else if (message.kind === "settled") this.#confirm(message);
        else if (message.kind === "stopped") this.#stopped(message);
        else if (message.kind === "drained") this.#finish({ ...message, supported: true });
        else if (message.kind === "stopRequested") this.#asked(message);
        else this.#subscription._transform(response, "buffer", () => {});
    }

    #emit(name, { kind, ...info }) {
        this.#subscription.emit(name, info);
    }

    #arrive(response, message) {
        if (this.#alone) return void this.#alone.released++;
        const entry = newEntry(message, response, performance.now());
        if (this.#handsBack || this.#returns) return this.#turnAway(entry);
        this.#shelf.arrive(entry);
        this.#feed();
    }

    #confirm({ ids, lost }) {
        for (const id of ids) if (this.#shelf.find(id)?.settle) this.#shelf.forget(id);
        if (ids.length > 0) this.#emit("settled", { ids });
        if (lost.length > 0) this.#lose(lost);
    }

    #lose(ids) {
        const entries = ids.map((id) => this.#shelf.find(id));
        for (const id of ids) this.#shelf.forget(id);
        this.#tellLost(ids, entries.filter(Boolean));
    }

    #tellLost(ids, entries) {
        this.#emit("lost", { ids, events: eventsOf(entries) });
    }

    /* Nothing is held but what the server says, and what was settled and is on its way. */
    #stopped(message) {
        const outstanding = new Set(message.outstanding);
        const gone = this.#shelf.drop(({ id, settle }) => settle === null && !outstanding.has(id));
        const late = gone.filter(({ started }) => started); /* never handed back: its lease has run out */
        if (late.length > 0) this.#tellLost(idsOf(late), late);
        const back = [...gone.filter(({ started }) => !started), ...this.#takeBack(outstanding)];
        const handedBack = back.map((entry) => this.#eventOf(entry)).filter(Boolean);
        const info = { ...this.#without(message, back), supported: true, handedBack };
        this.#shelf.notice(() => this.#emit("stopped", info));
    }

    #without({ inFlight, outstanding, ...message }, back) {
        const returned = new Set(idsOf(back));
        const left = outstanding.filter((id) => !returned.has(id));
        return { ...message, inFlight: inFlight - (outstanding.length - left.length), outstanding: left };
    }

    #finish({ kind, ...result }) {
        this.#drained = result;
        this.#shelf.dropWaiting();
        this.#shelf.notice(() => this.#emit("drained", result));
        this.#drain?.resolve(result);
    }

    /* --- what was not begun goes back --- */

    #asked(message) {
        if (message.handBackUnstarted) this.#handBack();
        this.#emit("stopRequested", message);
    }

    /* As an operator wishes. The server cannot do it: a Started may be on its way to it. No Stop is sent with it, which
     * would be final; an operator can take his back, and then events come again. Behind an own stop that hands back, the
     * server knows what was started before, and has done it. */
    #handBack() {
        if (this.#handsBack || this.#drained) return;
        this.#returns = true;
        this.#giveBack([...this.#shelf.taken().filter(isUnstarted), ...this.#shelf.dropWaiting()]);
    }

    #giveBack(entries) {
        if (entries.length === 0) return;
        const settle = { kind: "release", ids: idsOf(entries) };
        for (const entry of entries) {
            entry.settle = settle;
            this.#back.set(entry.id, entry);
        }
        this.#writeStarted();
        this.#send(wire.idsRequest("release", settle.ids));
    }

    /* Came too late to be handed to the program. On an own Stop the server takes it back by itself. */
    #turnAway(entry) {
        if (this.#handsBack) this.#back.set(entry.id, entry);
        else this.#giveBack([entry]);
    }

    /* Those that have gone with the stop that is answered. An operator's Stopped may cross an own Stop on its way, and
     * then still lists what the answer to that will not. */
    #takeBack(outstanding) {
        const hasGone = ({ id, settle }) => settle !== null || !outstanding.has(id);
        const gone = [...this.#back.values()].filter(hasGone);
        for (const { id } of gone) this.#back.delete(id);
        this.#returns = false;
        return gone;
    }

    /* As the client gives it, also when the program was never handed it. */
    #eventOf({ event, response }) {
        let made = event;
        try {
            if (!made) this.#subscription._transform(response, "buffer", (_, it) => (made = it));
        } catch {
            /* one that cannot be read; whoever gets it will hear of that */
        }
        return made;
    }

    /* --- to the program --- */

    #feed() {
        if (!this.#hasAsked || this.#subscription.destroyed) return;
        const entry = this.#shelf.take(performance.now(), (late) => this.#tellLost([late.id], []));
        if (entry) this.#hand(entry);
        else if (this.#over?.isTold) this.#subscription.end();
    }

    #hand(entry) {
        const { response } = entry;
        this.#hasAsked = false;
        entry.response = null;
        if (!this.#isManual) this.#markStarted([entry]);
        this.#subscription._transform(response, "buffer", (error, event) => {
            if (error) return this.#subscription.destroy(error);
            entry.event = event;
            this.#handed = [...this.#unread(), entry];
            return this.#subscription.push(event);
        });
        queueMicrotask(() => this.#shelf.tellNotices());
    }

    /* A stream of Node may look ahead, and what it has then is the last that it was given. */
    #unread() {
        const count = this.#subscription.readableLength;
        return count > 0 ? this.#handed.slice(-count) : [];
    }

    /* Written before anything that the program can say about the event, and together with others of this turn. */
    #markStarted(entries) {
        for (const entry of entries) entry.started = true;
        if (!this.#supported) return;
        if (this.#toStart.length === 0) queueMicrotask(() => this.#writeStarted());
        this.#toStart.push(...idsOf(entries));
    }

    #writeStarted() {
        const ids = this.#toStart.splice(0);
        if (ids.length > 0) this.#send(wire.idsRequest("started", ids));
    }

    /* --- from the program --- */

    #send(bytes) {
        if (this.#over || this.#call.destroyed) return false;
        this.#call.write(bytes);
        return true;
    }

    #noteSettle(settle) {
        for (const id of settle?.ids ?? []) {
            const entry = this.#shelf.find(id.toLowerCase());
            if (!entry) continue;
            entry.settle = settle;
            if (!this.#supported) this.#shelf.forget(entry.id); /* nobody will confirm it */
            if (this.#alone) this.#alone.settled++;
        }
        this.#lookIdle();
    }

    /* After a reconnect: nobody knows whether these have arrived. A server that died before it wrote of a start would take
     * running work for work that can be handed back. */
    #startAgain() {
        const entries = this.#shelf.taken().filter(({ started }) => started);
        if (this.#supported && entries.length > 0) this.#send(wire.idsRequest("started", idsOf(entries)));
    }

    #settleAgain() {
        for (const { id, settle } of this.#supported ? this.#shelf.unconfirmed() : []) {
            if (settle?.kind === "nack") this.#send(wire.nackRequest([id], settle.action, settle.reason));
            else if (settle) this.#send(wire.idsRequest(settle.kind, [id]));
        }
    }

    /* Written to the call, or kept for resubscribe() to write it to the next one. */
    async ack(...events) {
        await this.#settle({ kind: "ack", ids: events.map(idOf) }, () => this.#theirs.ack(...events));
    }

    async nack(action, reason, ...events) {
        const settle = { kind: "nack", ids: events.map(idOf), action: NACK_ACTION[action] ?? 0, reason };
        await this.#settle(settle, () => this.#theirs.nack(action, reason, ...events));
    }

    async #settle(settle, write) {
        if (!this.#over && (await this.#unlessOver(write()))) return;
        this.#noteSettle(settle);
        const { cause } = this.#over;
        throw new Error(`the call has ended${cause ? `: ${cause.message}` : ""}`, { cause });
    }

    async stop({ handBackUnstarted = false, leave = true } = {}) {
        if (!this.#drained) await this.#opened.promise;
        if (!this.#supported) return this.#stopAlone();
        /* Who has left his loop over the events cannot be handed any more of them. */
        if (!this.#drained) await this.#askToStop(handBackUnstarted || this.#subscription.destroyed);
        if (leave && !this.#over) await this.#unlessOver(this.#subscription.unsubscribe());
        return this.#drained;
    }

    #askToStop(handBackUnstarted) {
        if (this.#over) throw this.#endError();
        this.#drain ??= deferred();
        if (handBackUnstarted) {
            this.#handsBack = true;
            for (const entry of this.#shelf.dropWaiting()) this.#back.set(entry.id, entry);
        }
        this.#writeStarted();
        this.#send(wire.stopRequest(handBackUnstarted));
        return this.#drain.promise;
    }

    /* True when it was written; false when this server does not know how, or the call is over. What became of it is
     * told by the events "settled" and "lost". */
    async release(...events) {
        const ids = events.map(idOf);
        if (!this.#supported || ids.length === 0) return false;
        this.#writeStarted();
        if (!this.#send(wire.idsRequest("release", ids))) return false;
        this.#noteSettle({ kind: "release", ids });
        return true;
    }

    async extend(leaseMs, ...events) {
        const ids = events.map(idOf);
        if (!Number.isInteger(leaseMs) || leaseMs < 0 || leaseMs > wire.INT32_MAX)
            throw new RangeError("a lease is a whole number of milliseconds, 0 for that of the group");
        if (!this.#supported || ids.length === 0) return false;
        this.#writeStarted();
        return this.#send(wire.extendRequest(ids, leaseMs));
    }

    async started(...events) {
        const entries = events.map((event) => this.#shelf.find(idOf(event)));
        this.#markStarted(entries.filter((entry) => entry && isUnstarted(entry)));
        const isOurs = entries.every((entry) => entry && entry.settle === null);
        return this.#supported && !this.#over && isOurs;
    }

    held() {
        return this.#shelf.taken().map(({ event }) => event);
    }

    lease(event) {
        const entry = this.#shelf.find(idOf(event));
        return entry?.leaseMs ? { token: entry.token, leaseMs: entry.leaseMs } : undefined;
    }

    get supported() {
        return this.#opened.promise.then(() => this.#supported);
    }

    /* --- without the help of the server (S1.20) ---
     *
     * Nothing more is started, everything that was started is waited for, and then the call ends. It ends behind a
     * round trip on its connection, so that the last acks are there before the end is. */

    #stopAlone() {
        if (this.#over && !this.#alone) throw this.#endError();
        this.#alone ??= { settled: 0, released: 0, idle: deferred() };
        const isFirst = !this.#handsBack;
        this.#handsBack = true;
        const back = this.#shelf.drop(isUnstarted);
        this.#alone.released += back.length;
        this.#emit("stopped", this.#stoppedAlone(!isFirst, back));
        this.#lookIdle();
        this.#alone.result ??= this.#leaveAlone();
        return this.#alone.result;
    }

    #stoppedAlone(alreadyStopped, back) {
        const outstanding = idsOf(this.#shelf.taken());
        const common = { inFlight: outstanding.length, outstanding, handedBack: back.map((entry) => this.#eventOf(entry)).filter(Boolean) };
        return { supported: false, askedBy: "consumer", alreadyStopped, ...common };
    }

    #lookIdle() {
        if (this.#alone && this.#shelf.taken().length === 0) this.#alone.idle.resolve();
    }

    async #leaveAlone() {
        await this.#alone.idle.promise;
        while (this.#call.writableLength > 0 && !this.#over) await new Promise(setImmediate);
        await this.#roundTrip();
        const { settled, released } = this.#alone;
        this.#finish({ settled, released, lost: 0, supported: false });
        if (!this.#over) await this.#subscription.unsubscribe();
        return this.#drained;
    }

    #roundTrip() {
        const same = (bytes) => bytes;
        const options = { deadline: Date.now() + ROUND_TRIP_MS_MAX };
        return new Promise((resolve) => {
            this.#stub.makeUnaryRequest(FEATURES_PATH, same, same, Buffer.alloc(0), options, () => resolve());
        });
    }

    /* --- a new call in place of one that was lost --- */

    /* What the program was given and never took out of the stream is not begun, and nobody will see it there. */
    unconfirmed() {
        for (const entry of this.#unread()) entry.settle ??= { kind: "release", ids: [entry.id] };
        return this.#shelf.unconfirmed();
    }

    adopt(entries) {
        this.#shelf.adopt(entries);
    }
}

module.exports = { Session, idsOf };
