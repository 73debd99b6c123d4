/* Users, passwords, and who may do what to which stream; by TLS, because without it the clients send no
 * credentials. */
import grpc from "@grpc/grpc-js";
import { readFileSync, rmSync } from "node:fs";

import { makeCertificates } from "./lib/certificates.mjs";
import { connect, newStream } from "./lib/official.mjs";
import { Raw, status, trailersOf } from "./lib/raw.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";
import { newFolder, run, startServer } from "./lib/server.mjs";
import { eventually } from "./lib/wait.mjs";
import { watch } from "./lib/watch.mjs";

const files = newFolder();
const { authority, certificate, key } = makeCertificates(files);
const TLS = ["--tls-certificate", certificate, "--tls-key", key];

/* Letters that a careless encoding of "name:password" would trip over. */
const PASSWORDS = {
    admin: "s3cret-enough",
    alice: "pass:word with blanks",
    bob: "pässwörd-ü",
    olga: "operator-1",
    gina: "guess-me-not",
};

function addUser(folder, name, groups = []) {
    const words = ["user", "add", name, "--data", folder];
    for (const group of groups) words.push("--group", group);
    run(words, PASSWORDS[name] + "\n");
}

const folder = newFolder();
addUser(folder, "admin", ["$admins"]);
addUser(folder, "alice");
addUser(folder, "bob", ["crew"]);
addUser(folder, "olga", ["$ops"]);
addUser(folder, "gina");

const SECURE = { tls: true, tlsCAFile: authority };
const AS_ADMIN = { ...SECURE, user: `admin:${PASSWORDS.admin}` };
const { check, newer, server, end } = await rig({ words: TLS, connect: AS_ADMIN, folder });
const nobody = connect(server, SECURE);

/* The option of a call that is done by this user. */
function as(name, password = PASSWORDS[name]) {
    return { credentials: { username: name, password } };
}

/* What a user may do with a stream: a letter for each thing that works. */
async function rights(it, stream, name) {
    const may = as(name);
    const tries = {
        r: () => it.read(stream, may),
        w: () => it.append(stream, it.numbered(1), "any", may),
        R: () => it.client.getStreamMetadata(stream, may),
        W: () => it.client.setStreamMetadata(stream, {}, { expectedRevision: 77n, streamState: 77n, ...may }),
    };
    let letters = "";
    for (const [letter, attempt] of Object.entries(tries)) {
        const error = await attempt().then(
            () => null,
            (reason) => reason,
        );
        if (error instanceof it.sdk.AccessDeniedError) continue;
        /* A wrong revision is as good as a change: whoever gets that far was let in. */
        if (error && !(error instanceof it.sdk.WrongExpectedVersionError)) throw error;
        letters += letter;
    }
    return letters;
}

/* --- who is asking --- */

check("a user of the connection string can do what there is to do", async (it) => {
    const stream = await it.fill(2);
    assert.deepEqual(await it.numbers(stream), [0, 1]);
    assert.ok((await it.readAll({ maxCount: 5 })).length > 0);
    const subscription = watch(it.client.subscribeToAll({ fromPosition: "end" }));
    await subscription.untilCaughtUp();
    await subscription.stop();
    await it.client.setStreamMetadata(stream, { maxCount: 1 });
    await it.client.deleteStream(stream);
});

check("each user logs in with his own password, whatever letters it has", async (it) => {
    for (const name of ["admin", "alice", "bob", "olga"]) {
        const stream = newStream(name);
        await it.append(stream, it.numbered(1), "any", as(name));
        assert.deepEqual(await it.numbers(stream, as(name)), [0], name);
    }
});

check("a wrong password and an unknown user are refused alike, in every call", async (it) => {
    const stream = await it.fill(1);
    for (const who of [as("carol", "anything at all"), as("olga", "not the right one")]) {
        const calls = {
            append: () => it.append(stream, it.numbered(1), "any", who),
            read: () => it.read(stream, who),
            delete: () => it.client.deleteStream(stream, who),
        };
        for (const [what, call] of Object.entries(calls)) {
            const error = await failure(call(), it.sdk.AccessDeniedError, what);
            assert.equal(error.type, it.sdk.ErrorType.ACCESS_DENIED);
        }
    }
    assert.deepEqual(await it.numbers(stream), [0]);
});

check("without credentials nothing is allowed, and the answer comes at once", async (it) => {
    const { sdk, client } = nobody;
    const stream = newStream("nobody");
    await failure(nobody.append(stream, nobody.numbered(1)), sdk.AccessDeniedError, "append");
    await failure(nobody.read(stream), sdk.AccessDeniedError, "read");
    await failure(nobody.readAll(), sdk.AccessDeniedError, "readAll");
    await failure(client.deleteStream(stream), sdk.AccessDeniedError, "delete");
    const error = await watch(client.subscribeToStream(stream)).untilError();
    assert.ok(error instanceof sdk.AccessDeniedError, error.stack);
});

check("credentials of a call work without any in the connection string", async (it) => {
    const stream = newStream("call");
    await nobody.append(stream, nobody.numbered(1), "no_stream", as("alice"));
    assert.deepEqual(await nobody.numbers(stream, as("alice")), [0]);
});

newer("credentials can come from a function, and tokens are refused", async () => {
    const own = connect(server, SECURE);
    const stream = newStream("provider");
    own.client.setCredentialsProvider(async () => as("alice").credentials);
    await own.append(stream, own.numbered(1));
    assert.deepEqual(await own.numbers(stream), [0]);
    own.client.setCredentialsProvider(() => ({ bearerToken: "no.such.token" }));
    await failure(own.append(stream, own.numbered(1)), own.sdk.AccessDeniedError);
    await failure(own.read(stream), own.sdk.AccessDeniedError);
    await own.close();
});

check("who does not trust our authority does not talk to us", async () => {
    const it = connect(server, { tls: true, user: AS_ADMIN.user, maxDiscoverAttempts: 2 });
    await failure(it.fill(1), Error, "append");
    await failure(it.read("any"), Error, "read");
    await it.close();
});

check("the server is found by gossip over TLS", async () => {
    const it = connect(server, { ...AS_ADMIN, suffix: "+discover" });
    assert.deepEqual(await it.numbers(await it.fill(2)), [0, 1]);
    await it.close();
});

/* --- what is allowed --- */

check("streams without a list are everybody's; system streams and $all are the administrators'", async (it) => {
    const stream = await it.fill(1);
    assert.equal(await rights(it, stream, "alice"), "rwRW");
    assert.equal(await rights(it, `$system-${stream}`, "alice"), "");
    assert.equal(await rights(it, stream, "admin"), "rwRW");
    await failure(it.readAll({ maxCount: 1, ...as("alice") }), it.sdk.AccessDeniedError);
    const error = await watch(it.client.subscribeToAll(as("alice"))).untilError();
    assert.ok(error instanceof it.sdk.AccessDeniedError, error.stack);
    assert.equal((await it.readAll({ maxCount: 1, ...as("admin") })).length, 1);
});

/* [list, what alice, bob (of the crew) and the administrator may] */
const LISTS = [
    [{ readRoles: ["alice"] }, "rwRW", "wRW"],
    [{ writeRoles: ["bob"] }, "rRW", "rwRW"],
    [{ readRoles: ["crew"], writeRoles: ["crew"] }, "RW", "rwRW"],
    [{ metaReadRoles: ["alice"], metaWriteRoles: ["bob"] }, "rwR", "rwW"],
    [{ readRoles: [], writeRoles: [], metaReadRoles: [], metaWriteRoles: [] }, "", ""],
    [{ readRoles: ["$all"], writeRoles: ["$admins"] }, "rRW", "rRW"],
];

check("the list of a stream says who may", async (it) => {
    for (const [acl, alice, bob] of LISTS) {
        const stream = await it.fill(1);
        await it.client.setStreamMetadata(stream, { acl });
        const text = JSON.stringify(acl);
        assert.equal(await rights(it, stream, "alice"), alice, `alice, ${text}`);
        assert.equal(await rights(it, stream, "bob"), bob, `bob, ${text}`);
        assert.equal(await rights(it, stream, "admin"), "rwRW", `admin, ${text}`);
    }
});

check("deleting has a right of its own", async (it) => {
    for (const call of ["deleteStream", "tombstoneStream"]) {
        const stream = await it.fill(1);
        await it.client.setStreamMetadata(stream, { acl: { deleteRoles: ["bob"] } });
        await failure(it.client[call](stream, as("alice")), it.sdk.AccessDeniedError);
        await it.client[call](stream, as("bob"));
    }
});

check("a list that changes counts from then on", async (it) => {
    const stream = await it.fill(1);
    for (const name of ["alice", "bob", "alice"]) {
        await it.client.setStreamMetadata(stream, { acl: { readRoles: [name] } });
        assert.equal(await rights(it, stream, name), "rwRW");
        assert.equal(await rights(it, stream, name === "alice" ? "bob" : "alice"), "wRW");
    }
});

check("a subscription ends when its reader may not read any more", async (it) => {
    const stream = await it.fill(1);
    const subscription = watch(it.client.subscribeToStream(stream, as("alice")));
    await subscription.untilCaughtUp();
    await it.client.setStreamMetadata(stream, { acl: { readRoles: ["bob"] } });
    await it.append(stream, it.numbered(1));
    const error = await subscription.untilError();
    assert.ok(error instanceof it.sdk.AccessDeniedError, error.stack);
});

newer("an append to several streams needs the right for each", async (it) => {
    const own = connect(server, { ...SECURE, user: `bob:${encodeURIComponent(PASSWORDS.bob)}` });
    const [open, shut] = [newStream("open"), await it.fill(1)];
    await it.client.setStreamMetadata(shut, { acl: { writeRoles: ["alice"] } });
    const requests = [open, shut].map((streamName) => ({
        streamName,
        events: it.numbered(1),
        expectedState: "any",
    }));
    const error = await failure(own.client.multiStreamAppend(requests), Error);
    assert.equal(error.code, status.PERMISSION_DENIED, error.message);
    await failure(it.read(open), it.sdk.StreamNotFoundError);
    await own.client.multiStreamAppend(requests.slice(0, 1));
    await own.close();
});

check("the defaults of $settings count where a stream says nothing", async (it) => {
    const stream = await it.fill(1);
    const settings = {
        $userStreamAcl: { $r: ["bob"], $w: ["bob"], $d: "$admins", $mr: "$admins", $mw: "$admins" },
    };
    await it.append("$settings", it.sdk.jsonEvent({ type: "settings", data: settings }));
    assert.equal(await rights(it, stream, "alice"), "");
    assert.equal(await rights(it, stream, "bob"), "rw");
    await it.append("$settings", it.sdk.jsonEvent({ type: "settings", data: {} }));
    assert.equal(await rights(it, stream, "alice"), "rwRW");
});

/* --- the service of users --- */

function secureRaw(name) {
    const headers = { authorization: `Basic ${Buffer.from(`${name}:${PASSWORDS[name]}`).toString("base64")}` };
    const raw = new Raw(server, { credentials: grpc.credentials.createSsl(readFileSync(authority)) });
    const call = (method, options) => raw.unary("users", method, { options }, { headers });
    return { raw, headers, call };
}

check("an administrator makes a user, who can log in until he is disabled or deleted", async (it) => {
    const { raw, headers, call } = secureRaw("admin");
    const stream = await it.fill(1);
    const login = (password) => it.read(stream, as("dora", password));
    const dora = { login_name: "dora", full_name: "Dora D", groups: ["crew"], password: "the first" };

    assert.equal((await call("Create", dora)).error, null);
    const again = await call("Create", dora);
    assert.equal(trailersOf(again).exception, "user-conflict");
    await login("the first");
    assert.equal(
        (
            await call("ChangePassword", {
                login_name: "dora",
                current_password: "the first",
                new_password: "the second",
            })
        ).error,
        null,
    );
    await login("the second");
    await failure(login("the first"), it.sdk.AccessDeniedError);
    assert.equal((await call("ResetPassword", { login_name: "dora", new_password: "the third" })).error, null);
    await login("the third");

    const details = await raw.serverStream(
        "users",
        "Details",
        { options: { login_name: "dora" } },
        { headers },
    );
    assert.equal(details.responses[0].user_details.full_name, "Dora D");
    assert.deepEqual(details.responses[0].user_details.groups, ["crew"]);
    assert.equal((await call("Disable", { login_name: "dora" })).error, null);
    await failure(login("the third"), it.sdk.AccessDeniedError);
    assert.equal((await call("Enable", { login_name: "dora" })).error, null);
    await eventually(() => login("the third"));
    assert.equal((await call("Delete", { login_name: "dora" })).error, null);
    await failure(login("the third"), it.sdk.AccessDeniedError);
    const missing = await call("Delete", { login_name: "dora" });
    assert.equal(missing.error.code, status.NOT_FOUND);
    assert.equal(trailersOf(missing).exception, "user-not-found");
    raw.close();
});

check("others cannot make users, or read their passwords", async (it) => {
    const { raw, call } = secureRaw("alice");
    const denied = await call("Create", {
        login_name: "eve",
        password: "long enough",
        full_name: "Eve",
        groups: ["$admins"],
    });
    assert.equal(denied.error.code, status.PERMISSION_DENIED);
    raw.close();
    await failure(it.read("$user-admin", as("alice")), it.sdk.AccessDeniedError);
    await failure(it.read("$users", as("alice")), it.sdk.AccessDeniedError);
    const text = JSON.stringify((await it.read("$user-alice")).map(({ event }) => event.data));
    assert.ok(!text.includes(PASSWORDS.alice));
    assert.ok(!server.log.includes(PASSWORDS.admin) && !server.log.includes(PASSWORDS.alice));
});

async function throttledCount() {
    const text = await (await fetch(`http://${server.admin}/metrics`)).text();
    return Number(/^sluice_logins_total\{result="throttled"\} (\d+)$/m.exec(text)[1]);
}

/* Until some guesses in a row are not even looked at. Each that is doubles the time for which the next are not:
 * it has to be longer than a few calls take, however slow the machine is. */
async function untilShut(guess) {
    for (let n = 0, throttled = 0; throttled < 4; n++) {
        assert.ok(n < 40, "guesses are still looked at");
        const before = await throttledCount();
        await guess(n);
        throttled = (await throttledCount()) > before ? throttled + 1 : 0;
    }
}

/* A password that was right not long ago is remembered and let through: guessing does not lock out who is at
 * work. So it is somebody who has not come yet. */
check(
    "who guesses too often has to wait, even with the right password, and others do not notice",
    async (it) => {
        const stream = await it.fill(1);
        const guess = (n) => failure(it.read(stream, as("gina", `guess ${n}`)), it.sdk.AccessDeniedError);
        await untilShut(guess);
        await failure(it.read(stream, as("gina")), it.sdk.AccessDeniedError);
        assert.deepEqual(await it.numbers(stream, as("alice")), [0]);
        await eventually(() => it.read(stream, as("gina")), { ms: 40_000, what: "the wait to be over" });
    },
);

check("--anonymous lets callers without credentials do what lists allow to everybody", async () => {
    const open = newFolder();
    addUser(open, "admin", ["$admins"]);
    const second = await startServer({ words: [...TLS, "--anonymous"], folder: open });
    const it = connect(second, SECURE);
    const stream = await it.fill(2);
    assert.deepEqual(await it.numbers(stream), [0, 1]);
    await it.client.setStreamMetadata(stream, { acl: { readRoles: ["admin"] } });
    await failure(it.read(stream), it.sdk.AccessDeniedError);
    await failure(it.readAll(), it.sdk.AccessDeniedError);
    assert.deepEqual(await it.numbers(stream, as("admin")), [0, 1]);
    await it.close();
    assert.deepEqual(await second.stop(), { code: 0, signal: null });
    second.remove();
});

check("certificates can be changed while clients are connected", async (it) => {
    const stream = await it.fill(1);
    const subscription = watch(it.client.subscribeToStream(stream));
    await subscription.untilCaughtUp();
    makeCertificates(files); /* the same files, and an authority that nobody has seen */
    server.hangUp();
    const next = await eventually(async () => {
        const session = connect(server, AS_ADMIN);
        await session.append(stream, session.numbered(1, { first: 1 }), 0n);
        return session;
    });
    await subscription.untilCount(2);
    assert.deepEqual(await next.numbers(stream), [0, 1]);
    await Promise.all([subscription.stop(), next.close()]);
});

check("everything that was opened is closed", async (it) => {
    await nobody.close();
    rmSync(files, { recursive: true });
});

end();
