/* index.js — persistent subscriptions of the official clients that can be stopped.
 *
 *      subscribeToPersistentSubscriptionToStream(client, stream, group, options, duplexOptions)
 *      subscribeToPersistentSubscriptionToAll(client, group, options, duplexOptions)
 *      resubscribe(subscription, changes)
 *      withStop(client)
 *
 * The client's own function makes the subscription, so what comes back is the client's own object. It is called on a
 * stand-in for the client, in which one thing differs: the maker of gRPC streams. README.md has the use of it, session.js
 * how it works. */
"use strict";

const { INT32_MAX } = require("./wire.js");
const { Session, idsOf } = require("./session.js");

const TO_STREAM = "subscribeToPersistentSubscriptionToStream";
const TO_ALL = "subscribeToPersistentSubscriptionToAll";
const OURS = ["ack", "nack", "stop", "release", "extend", "started", "held", "lease"];

const origins = new WeakMap(); /* subscription -> how it was made */

/* The client with some members replaced. Functions keep the client as their `this`: it has private parts. */
function standIn(client, members) {
    return new Proxy(client, {
        get(target, key) {
            if (Object.hasOwn(members, key)) return members[key];
            const value = Reflect.get(target, key, target);
            return typeof value === "function" ? value.bind(target) : value;
        },
    });
}

function checkClient(client) {
    const needed = ["GRPCStreamCreator", "supports", TO_STREAM, TO_ALL];
    const missing = needed.filter((name) => typeof client?.[name] !== "function");
    if (missing.length > 0)
        throw new TypeError(`this client is not known here: it has no ${missing.join(", ")}`);
}

function checkExtensions({ consumerName, labels, reconnectMs, resume }) {
    if (consumerName !== undefined && typeof consumerName !== "string")
        throw new TypeError("consumerName is a text");
    if (labels !== undefined && (typeof labels !== "object" || labels === null))
        throw new TypeError("labels is an object of texts");
    const isTime = Number.isInteger(reconnectMs) && reconnectMs >= 0 && reconnectMs <= INT32_MAX;
    if (reconnectMs !== undefined && !isTime) throw new RangeError("reconnectMs is a number of milliseconds");
    if (resume !== undefined && !Array.isArray(resume)) throw new TypeError("resume is an array of ids");
}

/* Makes gRPC streams as the client does, with the session in between. */
function streamsThrough(session, client) {
    return (Stub, name, create, ...others) => {
        const createOurs = async (stub) => create(await session.stub(client, stub, Stub.service.read));
        const make = client.GRPCStreamCreator(Stub, name, createOurs, ...others);
        return () =>
            make().catch((error) => {
                session.end(error);
                throw error;
            });
    };
}

function dress(subscription, session) {
    for (const name of OURS)
        Object.defineProperty(subscription, name, { value: session[name].bind(session), configurable: true });
    return Object.defineProperty(subscription, "supported", {
        get: () => session.supported,
        configurable: true,
    });
}

function subscribe(origin, entries = []) {
    const { client, method, names, options, duplexOptions } = origin;
    const { consumerName, labels, reconnectMs, resume, starting, ...theirs } = options;
    const extensions = { consumerName, labels, reconnectMs, resume };
    checkClient(client);
    checkExtensions(extensions);
    const session = new Session(extensions, { starting });
    session.adopt(entries);
    const inside = standIn(client, { GRPCStreamCreator: streamsThrough(session, client) });
    const unbuffered = { ...duplexOptions, highWaterMark: null, readableHighWaterMark: 0 };
    const subscription = client[method].call(inside, ...names, theirs, unbuffered);
    session.serve(subscription);
    origins.set(subscription, { ...origin, session });
    return dress(subscription, session);
}

function subscribeToPersistentSubscriptionToStream(client, stream, group, options = {}, duplexOptions = {}) {
    return subscribe({ client, method: TO_STREAM, names: [stream, group], options, duplexOptions });
}

function subscribeToPersistentSubscriptionToAll(client, group, options = {}, duplexOptions = {}) {
    return subscribe({ client, method: TO_ALL, names: [group], options, duplexOptions });
}

/* The same subscription once more, after its call was lost: what the program was given and has not settled stays with
 * it, and what it settled without hearing that this is durable is settled again. */
function resubscribe(subscription, changes = {}) {
    const origin = origins.get(subscription);
    if (!origin) throw new TypeError("this subscription was not made here");
    const options = { ...origin.options, ...changes };
    if (!options.consumerName) throw new TypeError("only a consumer with a consumerName can come back");
    const entries = origin.session.unconfirmed();
    return subscribe({ ...origin, options: { ...options, resume: idsOf(entries) } }, entries);
}

/* The client, with subscriptions that can be stopped; everything else of it is as before. */
function withStop(client) {
    checkClient(client);
    return standIn(client, {
        [TO_STREAM]: (...words) => subscribeToPersistentSubscriptionToStream(client, ...words),
        [TO_ALL]: (...words) => subscribeToPersistentSubscriptionToAll(client, ...words),
    });
}

module.exports = {
    resubscribe,
    subscribeToPersistentSubscriptionToAll,
    subscribeToPersistentSubscriptionToStream,
    withStop,
};
