/* Connections: deadlines that pass, servers that stop, die and come back, discovery, and what is not offered. */
import { createServer } from "node:net";

import { Client, connect, isGone, isKurrent, newStream, sdk, upTo } from "./lib/official.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";
import { eventually, within } from "./lib/wait.mjs";
import { watch } from "./lib/watch.mjs";

const { check, newer, server, end } = await rig();

/* --- deadlines --- */

check("a deadline that passes is an error of its own, and the client goes on", async (it) => {
    const stream = await it.fill(1);
    server.freeze();
    const late = failure(it.client.deleteStream(stream, { deadline: 300 }), it.sdk.DeadlineExceededError);
    await late.finally(() => server.thaw());
    assert.equal((await it.append(newStream(), it.numbered(1))).nextExpectedRevision, 0n);
});

check("an append whose time was over before the server saw it is refused and not written", async (it) => {
    const stream = newStream("late");
    await it.fill(1); /* the call for appends is open */
    server.freeze();
    const appending = it.append(stream, it.numbered(1), "any", { deadline: 200 });
    const outcome = failure(appending, it.sdk.DeadlineExceededError);
    await new Promise((resolve) =>
        setTimeout(resolve, 400),
    ); /* the time has to pass, and nothing tells when it has */
    server.thaw();
    await outcome;
    await failure(it.read(stream), it.sdk.StreamNotFoundError);
});

check("an append with a deadline of its own, by Append, fails in time", async (it) => {
    const stream = await it.fill(1);
    const credentials = { username: "nobody", password: "nothing" };
    server.freeze();
    const late = failure(
        it.append(stream, it.numbered(1), "any", { credentials, deadline: 300 }),
        it.sdk.DeadlineExceededError,
    );
    await late.finally(() => server.thaw());
    assert.equal((await it.append(newStream(), it.numbered(1), "any", { credentials })).success, true);
});

check("subscriptions have no deadline", async (it) => {
    const stream = await it.fill(1);
    const subscription = watch(it.client.subscribeToStream(stream, { deadline: 1 }));
    await subscription.untilCaughtUp();
    server.freeze();
    await new Promise((resolve) => setTimeout(resolve, 300)); /* its time has to be over: nothing tells when it is */
    server.thaw();
    await it.append(stream, it.numbered(1, { first: 1 }));
    await subscription.untilCount(2);
    await subscription.stop();
});

/* --- a server that goes away and comes back --- */

/* An own session: the one of the rig must not be caught in what this test does to it. */
async function survives(signal) {
    const it = connect(server);
    const stream = await it.fill(3);
    const subscription = watch(it.client.subscribeToStream(stream));
    await subscription.untilCaughtUp();

    await server.stop(signal);
    const error = await subscription.untilError();
    assert.ok(isGone(error), `${error.type}: ${error.message}`);
    await failure(within(it.client.deleteStream(newStream()), 15_000, "an error"), it.sdk.UnavailableError);
    await server.start();

    await eventually(() => it.append(stream, it.numbered(1, { first: 3 }), 2n), {
        what: "an append after the restart",
    });
    await eventually(async () => assert.deepEqual(await it.numbers(stream), [0, 1, 2, 3]), { what: "a read" });
    const again = await eventually(async () => {
        const next = watch(it.client.subscribeToStream(stream));
        await next.untilCount(4);
        return next;
    });
    assert.deepEqual(again.numbers, [0, 1, 2, 3]);
    await again.stop();
    await it.close();
}

for (const signal of ["SIGTERM", "SIGKILL"])
    check(`the same client works again after ${signal} and a restart`, () => survives(signal));

check("what was acknowledged before the server was stopped is there afterwards, and nothing else", async () => {
    const it = connect(server);
    const stream = newStream("stopped");
    const outcomes = [];
    let stopping = null;
    for (
        let n = 0;
        n < 2000 && (stopping === null || outcomes.every(({ status }) => status !== "failed"));
        n++
    ) {
        const outcome = { n, status: "waiting" };
        outcomes.push(outcome);
        outcome.promise = it.append(stream, it.numbered(1, { first: n })).then(
            () => (outcome.status = "acknowledged"),
            (error) => ((outcome.status = "failed"), (outcome.error = error)),
        );
        if (n === 0) await outcome.promise; /* one is there for certain, however soon the rest is over */
        if (n === 300) stopping = server.stop();
        if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(outcomes.map(({ promise }) => promise));
    assert.deepEqual(await stopping, { code: 0, signal: null });
    await server.start();
    const reader = connect(server);
    const written = new Set(await reader.numbers(stream));
    for (const { n, status, error } of outcomes) {
        if (status === "acknowledged") assert.ok(written.has(n), `${n} was acknowledged and is gone`);
        else assert.ok(isGone(error), `${n}: ${error.stack}`);
    }
    assert.ok(outcomes.some(({ status }) => status === "acknowledged"));
    await Promise.all([it.close(), reader.close()]);
});

check("a repetition after a restart is still found when it names its revision", async () => {
    const it = connect(server);
    const stream = await it.fill(2);
    const events = it.numbered(2, { first: 2 });
    const first = await it.append(stream, events, 1n);
    await server.restart("SIGKILL");
    const again = await eventually(() => it.append(stream, events, 1n));
    assert.deepEqual(again, first);
    assert.deepEqual(await it.numbers(stream), [0, 1, 2, 3]);
    await it.close();
});

check("nobody there is an error that says so, and no hang", async () => {
    const nobody = await new Promise((resolve) => {
        const listener = createServer().listen(0, "127.0.0.1", () => {
            const { port } = listener.address();
            listener.close(() => resolve({ address: `127.0.0.1:${port}` }));
        });
    });
    const it = connect(nobody, { maxDiscoverAttempts: 2 });
    const error = await failure(within(it.fill(1), 20_000, "an error"), Error);
    assert.ok(isGone(error), error.stack);
    await failure(within(it.read("anything"), 20_000, "an error"), sdk.UnavailableError);
    await it.close();
});

/* --- speed that can be seen --- */

/* How long the slowest tenth of the reads takes at least. */
async function slowTenth_ms(it, stream) {
    const took_ms = [];
    for (let n = 0; n < 100; n++) {
        const began_at = performance.now();
        await it.read(stream);
        took_ms.push(performance.now() - began_at);
    }
    return took_ms.sort((a, b) => a - b)[90];
}

/* The bridge sends a request in pieces and waits for an acknowledgement between them; one that is delayed takes
 * 40 ms. Some rounds, because a machine that is busy with something else is slow too, but not all the time. */
newer("reads one after the other are not held up by acknowledgements of TCP", async (it) => {
    const stream = await it.fill(3);
    await slowTenth_ms(it, stream); /* a new connection is acknowledged at once for a while */
    const rounds = [];
    for (let round = 0; round < 20 && !rounds.some((ms) => ms < 30); round++)
        rounds.push(await slowTenth_ms(it, stream));
    assert.ok(
        rounds.some((ms) => ms < 30),
        `the slowest tenth took ${rounds.map((ms) => ms.toFixed(1))} ms`,
    );
});

/* --- connection strings --- */

const PREFERENCES = ["leader", "follower", "random", "readOnlyReplica"];

check("the server is found by gossip, whatever node is preferred", async () => {
    for (const nodePreference of PREFERENCES) {
        const it = connect(server, { suffix: "+discover", nodePreference });
        const stream = await it.fill(2);
        assert.deepEqual(await it.numbers(stream), [0, 1], nodePreference);
        await it.close();
    }
});

check("several addresses are asked by gossip too, also when some lead nowhere", async () => {
    const hosts = `127.0.0.1:1,${server.address},127.0.0.1:2`;
    /* The bridge asks one of them at random in each attempt. */
    const it = connect(server, { hosts, gossipTimeout: 2, maxDiscoverAttempts: 40, discoveryInterval: 20 });
    assert.deepEqual(await it.numbers(await it.fill(2)), [0, 1]);
    await it.close();
});

check("options of the connection string do no harm", async () => {
    const it = connect(server, {
        connectionName: "a name",
        defaultDeadline: 20_000,
        keepAliveInterval: 10_000,
        keepAliveTimeout: 5000,
        throwOnAppendFailure: true,
    });
    assert.equal(it.client.connectionName, "a name");
    assert.deepEqual(await it.numbers(await it.fill(1)), [0]);
    await it.close();
});

check("every scheme leads to the server", async () => {
    for (const scheme of isKurrent ? ["kurrentdb", "kurrent", "kdb", "esdb"] : ["esdb"]) {
        for (const suffix of ["", "+discover"]) {
            const client = Client.connectionString(`${scheme}${suffix}://${server.address}?tls=false`);
            await client.appendToStream(newStream(), sdk.jsonEvent({ type: "a", data: {} }));
            await client.dispose();
        }
    }
});

check("dispose() ends subscriptions and leaves nothing behind", async (it) => {
    const own = connect(server);
    const stream = await own.fill(1);
    const subscriptions = upTo(5).map(() => watch(own.client.subscribeToStream(stream)));
    await Promise.all(subscriptions.map((subscription) => subscription.untilCaughtUp()));
    await within(own.close(), 5000, "the end of all calls");
    await it.append(stream, it.numbered(1));
    assert.deepEqual(
        subscriptions.map(({ events }) => events.length),
        [1, 1, 1, 1, 1],
    );
});

/* --- what is not offered --- */

/* Each must fail in a moment, with a sentence. */
async function refuses(what, attempt, kinds) {
    const error = await failure(within(attempt(), 15_000, `an answer to ${what}`), Error, what);
    assert.ok(!/in vain/.test(error.message), error.message);
    assert.ok(
        kinds.some((Kind) => error instanceof Kind),
        `${what}: ${error.stack}`,
    );
    assert.ok(error.message.length > 20, `${what}: "${error.message}"`);
    return error;
}

const PROJECTION = "fromAll().when({})";

check("projections are refused with a sentence", async (it) => {
    const { client, sdk } = it;
    const calls = {
        create: () => client.createProjection("p", PROJECTION),
        update: () => client.updateProjection("p", PROJECTION),
        enable: () => client.enableProjection("p"),
        disable: () => client.disableProjection("p"),
        reset: () => client.resetProjection("p"),
        state: () => client.getProjectionState("p"),
        result: () => client.getProjectionResult("p"),
        status: () => client.getProjectionStatus("p"),
        list: () => client.listProjections(),
        delete: () => client.deleteProjection("p"),
        restart: () => client.restartSubsystem(),
    };
    for (const [name, call] of Object.entries(calls)) {
        const error = await refuses(name, call, [sdk.UnknownError, sdk.UnsupportedError]);
        assert.match(error.message, /UNIMPLEMENTED|requires server version/, name);
    }
    assert.equal((await it.append(newStream(), it.numbered(1))).success, true);
});

newer("a call that is not offered does not tear the connection down", async (it) => {
    const stream = await it.fill(1);
    const subscription = watch(it.client.subscribeToStream(stream));
    await subscription.untilCaughtUp();
    await failure(it.client.createProjection("p", PROJECTION), Error);
    await it.append(stream, it.numbered(1, { first: 1 }));
    await subscription.untilCount(2);
    await subscription.stop();
});

end();
