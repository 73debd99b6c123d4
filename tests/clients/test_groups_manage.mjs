/* Persistent subscriptions are made, changed, looked at and deleted: every setting, every error. */
import { rmSync } from "node:fs";

import { makeCertificates } from "./lib/certificates.mjs";
import { ALL, groupOf, newGroup } from "./lib/groups.mjs";
import { connect, newStream, upTo } from "./lib/official.mjs";
import { assert, failure, rig } from "./lib/rig.mjs";
import { newFolder, run, startServer } from "./lib/server.mjs";
import { inParallel } from "./lib/wait.mjs";

const { check, newer, server, end } = await rig();

const ODD = {
    resolveLinkTos: true,
    extraStatistics: true,
    messageTimeout: 1_234,
    maxRetryCount: 3,
    checkPointAfter: 4_321,
    checkPointLowerBound: 5,
    checkPointUpperBound: 77,
    maxSubscriberCount: 6,
    liveBufferSize: 44,
    readBatchSize: 9,
    historyBufferSize: 55,
    consumerStrategyName: "DispatchToSingle",
};

/* --- settings --- */

for (const source of ["a stream", ALL]) {
    const sourceOf = () => (source === ALL ? ALL : newStream());

    check(`a group of ${source} has the settings that it was made with`, async (it) => {
        for (const changes of [{}, ODD]) {
            const group = await newGroup(it, sourceOf(), changes);
            const info = await group.info();
            assert.deepEqual(info.settings, group.settings({ startFrom: "start", ...changes }));
            assert.equal(info.eventSource, group.stream);
            assert.equal(info.groupName, group.name);
            assert.equal(info.status, "Live");
            assert.deepEqual(info.connections, []);
            await group.delete();
        }
    });

    check(`a group of ${source} has the settings of its last update`, async (it) => {
        const group = await newGroup(it, sourceOf());
        await group.update({ ...ODD, startFrom: "end" });
        assert.deepEqual((await group.info()).settings, group.settings({ ...ODD, startFrom: "end" }));
        await group.update({ startFrom: "start" });
        assert.deepEqual((await group.info()).settings, group.settings({ startFrom: "start" }));
        await group.delete();
    });

    check(`every strategy can be chosen for ${source}`, async (it) => {
        const { DISPATCH_TO_SINGLE, PINNED, PINNED_BY_CORRELATION, ROUND_ROBIN } = it.sdk;
        for (const strategy of [DISPATCH_TO_SINGLE, PINNED, PINNED_BY_CORRELATION, ROUND_ROBIN]) {
            if (strategy === undefined) continue; /* the older client does not know all of them */
            const group = await newGroup(it, sourceOf(), { consumerStrategyName: strategy });
            assert.equal((await group.info()).settings.consumerStrategyName, strategy);
            await group.delete();
        }
    });

    check(`a group of ${source} that is deleted is gone and can be made again`, async (it) => {
        const group = await newGroup(it, sourceOf());
        await group.delete();
        await failure(group.info(), it.sdk.PersistentSubscriptionDoesNotExistError);
        await group.create({ startFrom: "start" });
        await group.delete();
    });

    check(`what is asked of a group of ${source} that is not there is told by an error`, async (it) => {
        const group = groupOf(it, sourceOf());
        const asked = {
            info: () => group.info(),
            update: () => group.update(),
            delete: () => group.delete(),
            replay: () => group.replay(),
            consume: async () => {
                throw await group.consume().untilError();
            },
        };
        for (const [what, ask] of Object.entries(asked)) {
            const error = await failure(ask(), it.sdk.PersistentSubscriptionDoesNotExistError, what);
            assert.equal(error.streamName, group.stream, what);
            assert.equal(error.groupName, group.name, what);
            assert.equal(error.type, "persistent-subscription-does-not-exist", what);
        }
    });

    check(`a group of ${source} is made once`, async (it) => {
        const group = await newGroup(it, sourceOf());
        const error = await failure(group.create(), it.sdk.PersistentSubscriptionExistsError);
        assert.equal(error.streamName, group.stream);
        assert.equal(error.groupName, group.name);
        await group.delete();
    });
}

check("settings and groups are there after a restart of the server", async (it) => {
    const groups = [await newGroup(it, newStream(), ODD), await newGroup(it, ALL, ODD)];
    const filtered = await newGroup(it, ALL, {}, { filter: it.sdk.streamNameFilter({ prefixes: ["some,"] }) });
    await server.restart();
    const next = connect(server);
    for (const group of groups) {
        group.it = next;
        assert.deepEqual((await group.info()).settings, group.settings({ startFrom: "start", ...ODD }));
    }
    filtered.it = next;
    const stream = newStream("some,");
    await next.append(stream, next.numbered(2));
    await next.append(newStream("some"), next.numbered(1));
    await next.append(stream, next.numbered(1, { first: 2 }));
    const consumer = filtered.consume();
    await consumer.untilCount(3);
    assert.deepEqual(consumer.numbers, [0, 1, 2]);
    await consumer.stop();
    for (const group of [...groups, filtered]) await group.delete();
    await next.close();
});

/* --- what is refused --- */

check("settings that make no group fail with the reason, and harm nobody else", async (it) => {
    const other = await newGroup(it);
    const consumer = other.consume();
    await consumer.untilConfirmed();
    const { position } = await it.append(other.stream, it.numbered(1));
    const beyond = { commit: position.commit + 1_000_000n, prepare: position.prepare + 1_000_000n };
    const rows = [
        [newStream(), { readBatchSize: 500 }, /batch size/],
        [newStream(), { readBatchSize: 20, historyBufferSize: 10 }, /batch size/],
        [newStream(), { startFrom: 2n ** 63n }, /^Invalid Start From position:/],
        ["$all-but-not", { readBatchSize: 500 }, /batch size/],
        [ALL, { readBatchSize: 500 }, /batch size/],
        [ALL, { startFrom: beyond }, /^Invalid Start From position:/],
        [ALL, { startFrom: { commit: 0n, prepare: 1n } }, /^Invalid Start From position:/],
    ];
    for (const [stream, changes, reason] of rows) {
        const group = groupOf(it, stream);
        const error = await failure(group.create(changes), it.sdk.PersistentSubscriptionFailedError);
        assert.match(error.reason, reason);
        assert.equal(error.streamName, stream);
        assert.equal(error.groupName, group.name);
    }
    const error = await failure(other.update({ readBatchSize: 500 }), it.sdk.PersistentSubscriptionFailedError);
    assert.match(error.reason, /batch size/);
    const asStream = it.client.createPersistentSubscriptionToStream(ALL, "g", other.settings());
    assert.equal(
        (await failure(asStream, it.sdk.PersistentSubscriptionFailedError)).reason,
        "Persistent subscriptions to $all are only supported over gRPC through gRPC clients",
    );
    const nameless = it.client.createPersistentSubscriptionToStream("", "g", other.settings());
    assert.equal((await failure(nameless, it.sdk.PersistentSubscriptionFailedError)).reason, "Bad stream name.");
    await it.append(other.stream, it.numbered(1, { first: 1 }));
    await consumer.untilCount(2); /* by the same connection, which is still the same */
    assert.equal(consumer.error, null);
    await consumer.stop();
});

check("an expression that is none makes no group", async (it) => {
    const group = groupOf(it, ALL);
    const error = await failure(group.create({}, { filter: it.sdk.eventTypeFilter({ regex: "(unfinished" }) }));
    assert.notEqual(error.type, "unavailable", error.message);
    await failure(group.info(), it.sdk.PersistentSubscriptionDoesNotExistError);
});

check("odd but harmless settings make groups that deliver", async (it) => {
    const rows = [
        { messageTimeout: 0 },
        { checkPointAfter: 0 },
        { checkPointLowerBound: 0, checkPointUpperBound: 0 },
        { maxRetryCount: 0 },
        { liveBufferSize: 0 },
        { readBatchSize: 0, historyBufferSize: 1 },
        { readBatchSize: 1, historyBufferSize: 2 },
    ];
    for (const changes of rows) {
        const group = await newGroup(it, await it.fill(30), changes);
        const consumer = group.consume().ackAll();
        await consumer.until(() => new Set(consumer.numbers).size === 30, JSON.stringify(changes));
        await consumer.stop();
        await group.delete();
    }
});

check("a group begins where it is told to, and that event is the first", async (it) => {
    const stream = newStream();
    const { position } = await it.append(stream, it.numbered(3));
    const written = await it.append(stream, it.numbered(2, { first: 3 }));
    const rows = [
        [stream, "start", [0, 1, 2, 3, 4, 5]],
        [stream, 0n, [0, 1, 2, 3, 4, 5]],
        [stream, 2n, [2, 3, 4, 5]],
        [stream, 5n, [5]],
        [stream, "end", [5]],
        [ALL, position, [2, 3, 4, 5]],
        [ALL, written.position, [4, 5]],
        [ALL, "end", [5]],
    ];
    const filter = it.sdk.streamNameFilter({ prefixes: [stream] });
    const consumers = [];
    for (const [source, startFrom] of rows) {
        const group = await newGroup(it, source, { startFrom }, source === ALL ? { filter } : {});
        const told = (await group.info()).settings.startFrom;
        assert.deepEqual(told, startFrom === 0n ? "start" : startFrom);
        consumers.push(group.consume());
    }
    await it.append(stream, it.numbered(1, { first: 5 }));
    for (const [i, consumer] of consumers.entries()) {
        const [, startFrom, expected] = rows[i];
        await consumer.untilCount(expected.length);
        assert.deepEqual(consumer.numbers, expected, `${JSON.stringify(startFrom, (_, v) => `${v}`)}`);
        await consumer.stop();
    }
});

/* --- lists --- */

check("groups are listed, all of them or those of a stream or of $all", async (it) => {
    const [one, two] = [newStream("list-1"), newStream("list-2")];
    await failure(
        it.client.listPersistentSubscriptionsToStream(one),
        it.sdk.PersistentSubscriptionDoesNotExistError,
    );
    const groups = [await newGroup(it, one), await newGroup(it, one), await newGroup(it, two)];
    const ofAll = await newGroup(it, ALL);
    const names = (infos) => infos.map(({ groupName }) => groupName);
    assert.deepEqual(names(await it.client.listPersistentSubscriptionsToStream(one)), [
        groups[0].name,
        groups[1].name,
    ]);
    assert.deepEqual(names(await it.client.listPersistentSubscriptionsToStream(two)), [groups[2].name]);
    const everywhere = await it.client.listPersistentSubscriptionsToAll();
    assert.ok(names(everywhere).includes(ofAll.name));
    assert.ok(everywhere.every(({ eventSource }) => eventSource === ALL));
    const all = await it.client.listAllPersistentSubscriptions();
    for (const group of [...groups, ofAll]) assert.ok(names(all).includes(group.name));
    const sources = all.map(({ eventSource }) => eventSource);
    assert.deepEqual(sources, [...sources].sort());
    for (const group of [...groups, ofAll]) await group.delete();
    assert.deepEqual(await it.client.listPersistentSubscriptionsToStream(one), []);
});

check("hundreds of groups are made at once, listed and deleted", async (it) => {
    const stream = newStream("many");
    const groups = upTo(200).map(() => groupOf(it, stream));
    await inParallel(
        groups.map((group) => () => group.create()),
        20,
    );
    assert.equal((await it.client.listPersistentSubscriptionsToStream(stream)).length, 200);
    await inParallel(
        groups.map((group) => () => group.delete()),
        20,
    );
    assert.deepEqual(await it.client.listPersistentSubscriptionsToStream(stream), []);
});

check("names of any letters are names", async (it) => {
    for (const name of ["a b", "ü-ß-漢字", "a/b?c=d", "%20", "💧".repeat(20), "x::y"]) {
        const stream = `${newStream()} ${name}`;
        await it.append(stream, it.numbered(1));
        const group = groupOf(it, stream);
        group.name += name;
        await group.create({ startFrom: "start" });
        const consumer = group.consume();
        await consumer.untilCount(1);
        assert.equal(consumer.subscription.id, `${stream}::${group.name}`);
        assert.equal((await group.info()).groupName, group.name);
        assert.equal((await it.client.listPersistentSubscriptionsToStream(stream)).length, 1);
        const error = await failure(group.create(), it.sdk.PersistentSubscriptionExistsError);
        assert.ok(error.streamName.length > 0 && error.groupName.length > 0);
        await consumer.stop();
        await group.delete();
    }
});

/* --- consumers meanwhile --- */

check("consumers are dropped when their group is updated, deleted or restarted", async (it) => {
    const ways = {
        update: (group) => group.update({ startFrom: "start", maxRetryCount: 5 }),
        delete: (group) => group.delete(),
        restart: () => it.client.restartPersistentSubscriptionSubsystem(),
    };
    for (const source of [await it.fill(5), ALL])
        for (const [name, way] of Object.entries(ways)) {
            const group = await newGroup(it, source);
            const consumers = [group.consume(), group.consume()];
            await Promise.all(consumers.map((consumer) => consumer.untilConfirmed()));
            await consumers[0].untilCount(1);
            await way(group);
            for (const consumer of consumers) {
                const error = await consumer.untilError();
                assert.ok(error instanceof it.sdk.PersistentSubscriptionDroppedError, `${name}: ${error.stack}`);
                assert.equal(error.streamName, group.stream);
                assert.equal(error.groupName, group.name);
            }
            if (name !== "delete") await group.delete();
        }
});

check("what was acked stays acked when a group is updated or restarted, the rest comes at once", async (it) => {
    const group = await newGroup(it, await it.fill(10));
    const ways = [
        () => group.update({ startFrom: "start" }),
        () => it.client.restartPersistentSubscriptionSubsystem(),
    ];
    for (const [i, way] of ways.entries()) {
        const consumer = group.consume({ bufferSize: 5 });
        await consumer.untilCount(5);
        assert.deepEqual(consumer.numbers, upTo(5, 2 * i));
        assert.deepEqual(consumer.retries, [0, 0, 0, 0, 0]);
        await consumer.ack(0, 2);
        await consumer.untilCount(7); /* so the acks were taken */
        await way();
        await consumer.untilError();
    }
    const consumer = group.consume({ bufferSize: 10 });
    await consumer.untilCount(6);
    assert.deepEqual(consumer.numbers, upTo(6, 4));
    await consumer.stop();
});

check("a group goes from one strategy to another and delivers with each", async (it) => {
    const { DISPATCH_TO_SINGLE, PINNED, ROUND_ROBIN } = it.sdk;
    const group = await newGroup(it, await it.fill(12), { consumerStrategyName: PINNED });
    let next = 0;
    for (const strategy of [ROUND_ROBIN, PINNED, DISPATCH_TO_SINGLE, PINNED, ROUND_ROBIN, DISPATCH_TO_SINGLE]) {
        const consumer = group.consume({ bufferSize: 3 });
        await consumer.untilCount(3);
        assert.deepEqual(consumer.numbers, upTo(3, next), strategy);
        await consumer.ack(0, 2);
        next += 2;
        await consumer.until(() => consumer.events.length >= Math.min(5, 12 - next + 2), "the next two");
        await group.update({ startFrom: "start", consumerStrategyName: strategy });
        await consumer.untilError();
        if (next + 3 > 12) break;
    }
});

check("an update moves the start of a group that has not begun, and of no other", async (it) => {
    const group = await newGroup(it, await it.fill(5), { startFrom: "end" });
    await group.update({ startFrom: 3n });
    const consumer = group.consume({ bufferSize: 1 });
    await consumer.untilCount(1);
    assert.deepEqual(consumer.numbers, [3]);
    await consumer.ack();
    await consumer.untilCount(2);
    await group.update({ startFrom: "start" });
    await consumer.untilError();
    const second = group.consume();
    await second.untilCount(1);
    await it.append(group.stream, it.numbered(1, { first: 5 }));
    await second.untilCount(2);
    assert.deepEqual(second.numbers, [4, 5]);
    await second.stop();
});

newer("an update cannot choose PinnedByCorrelation: the client itself says so", async (it) => {
    const group = await newGroup(it);
    await failure(group.update({ consumerStrategyName: it.sdk.PINNED_BY_CORRELATION }));
    await group.delete();
});

/* --- who may --- */

check("groups are made by admins and operators and seen by users; readers of the stream read", async (it) => {
    const files = newFolder();
    const { authority, certificate, key } = makeCertificates(files);
    const folder = newFolder();
    const rights = { admin: ["$admins"], olga: ["$ops"], una: [] };
    for (const [name, groups] of Object.entries(rights))
        run(
            ["user", "add", name, "--data", folder, ...groups.flatMap((group) => ["--group", group])],
            `${name}-password\n`,
        );
    const secure = await startServer({ words: ["--tls-certificate", certificate, "--tls-key", key], folder });
    const options = { tls: true, tlsCAFile: authority };
    const as = (name) => connect(secure, { ...options, user: `${name}:${name}-password` });
    const [admin, olga, una, nobody] = [as("admin"), as("olga"), as("una"), connect(secure, options)];
    const { AccessDeniedError } = it.sdk;
    const stream = await admin.fill(1);
    for (const session of [admin, olga]) {
        const group = await newGroup(session, stream);
        await group.update({ startFrom: "start" });
        await group.replay();
        await group.delete();
        await session.client.restartPersistentSubscriptionSubsystem();
    }
    const group = await newGroup(admin, stream);
    for (const session of [una, nobody]) {
        const mine = groupOf(session, stream);
        mine.name = group.name;
        for (const what of ["create", "update", "delete", "replay"])
            await failure(mine[what](), AccessDeniedError, what);
        await failure(session.client.restartPersistentSubscriptionSubsystem(), AccessDeniedError);
    }
    group.it = una;
    assert.equal((await group.info()).groupName, group.name);
    assert.equal((await una.client.listAllPersistentSubscriptions()).length, 1);
    group.it = nobody;
    await failure(group.info(), AccessDeniedError);
    assert.ok((await group.consume({}, nobody).untilError()) instanceof AccessDeniedError);
    const consumer = group.consume({}, una);
    await consumer.untilCount(1);
    const { connections } = await Object.assign(group, { it: admin }).info();
    assert.equal(connections[0].username, "una");
    await consumer.stop();
    const everything = await newGroup(admin, ALL);
    assert.ok((await everything.consume({}, una).untilError()) instanceof AccessDeniedError);
    await admin.client.setStreamMetadata(stream, { acl: { readRoles: ["$admins"] } });
    assert.ok((await group.consume({}, una).untilError()) instanceof AccessDeniedError);
    await Promise.all([admin, olga, una, nobody].map((session) => session.close()));
    await secure.stop();
    secure.remove();
    rmSync(files, { recursive: true, force: true });
});

end();
