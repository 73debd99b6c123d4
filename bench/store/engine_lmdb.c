/* bench/store/engine_lmdb.c — the same logical work with LMDB, default durability.
 *
 * Two databases: events by position, written in order (MDB_APPEND) and in place (MDB_RESERVE); and positions by stream and
 * revision, a key of 12 bytes in big-endian, so that the built-in order of bytes is the right one. In its favour, as with
 * SQLite: streams are numbers, revisions are known, ids are not looked for. */
#include "common/bench.h"
#include "engine.h"

#include <lmdb.h>
#include <stdlib.h>

enum {
    KEY_BYTES = 12,
    HEAD_BYTES = 40 /* stream, type length, revision, created, id */
};

#define MAP_BYTES (UINT64_C(1) << 38)

struct bench_engine {
    MDB_env *env;
    MDB_dbi events, by_stream;
    MDB_txn *reader; /* begun once, renewed for each read */
    uint64_t position;
};

static void must(int result)
{
    if (result != 0)
        bench_fail("lmdb: %s", mdb_strerror(result));
}

static bench_engine *lm_open(const char *folder)
{
    bench_engine *const engine = bench_allocate(sizeof *engine);
    MDB_txn *txn = NULL;

    *engine = (bench_engine){ 0 };
    bench_folder_make(folder);
    must(mdb_env_create(&engine->env));
    must(mdb_env_set_maxdbs(engine->env, 2));
    must(mdb_env_set_mapsize(engine->env, MAP_BYTES));
    must(mdb_env_open(engine->env, folder, 0, 0600));
    must(mdb_txn_begin(engine->env, NULL, 0, &txn));
    must(mdb_dbi_open(txn, "events", MDB_CREATE | MDB_INTEGERKEY, &engine->events));
    must(mdb_dbi_open(txn, "by_stream", MDB_CREATE, &engine->by_stream));
    must(mdb_txn_commit(txn));
    must(mdb_txn_begin(engine->env, NULL, MDB_RDONLY, &engine->reader));
    mdb_txn_reset(engine->reader);
    return engine;
}

/* --- append --- */

static void put_key(bench_place place, uint8_t key[KEY_BYTES])
{
    const uint32_t stream = __builtin_bswap32(place.stream);
    const uint64_t revision = __builtin_bswap64(place.revision);

    memcpy(key, &stream, sizeof stream);
    memcpy(key + sizeof stream, &revision, sizeof revision);
}

static void put_event(uint8_t *at, const sl_event_in *event, bench_place place)
{
    const uint32_t type_bytes = (uint32_t)event->type.bytes;

    memcpy(at, &place.stream, 4);
    memcpy(at + 4, &type_bytes, 4);
    memcpy(at + 8, &place.revision, 8);
    memcpy(at + 16, &event->created_ns, 8);
    memcpy(at + 24, event->id.bytes, 16);
    memcpy(at + HEAD_BYTES, event->type.data, event->type.bytes);
    memcpy(at + HEAD_BYTES + event->type.bytes, event->data.data, event->data.bytes);
}

static void append_one(bench_engine *engine, MDB_cursor *events, MDB_cursor *by_stream,
                       const sl_event_in *event, bench_place place)
{
    uint64_t position = ++engine->position;
    uint8_t bytes[KEY_BYTES];
    MDB_val key = { sizeof position, &position };
    MDB_val value = { HEAD_BYTES + event->type.bytes + event->data.bytes, NULL };

    must(mdb_cursor_put(events, &key, &value, MDB_APPEND | MDB_RESERVE));
    put_event(value.mv_data, event, place);
    put_key(place, bytes);
    key = (MDB_val){ sizeof bytes, bytes };
    value = (MDB_val){ sizeof position, &position };
    must(mdb_cursor_put(by_stream, &key, &value, MDB_NOOVERWRITE));
}

static void lm_append(bench_engine *engine, const bench_batch *batch)
{
    MDB_txn *txn = NULL;
    MDB_cursor *events = NULL, *by_stream = NULL;

    must(mdb_txn_begin(engine->env, NULL, 0, &txn));
    must(mdb_cursor_open(txn, engine->events, &events));
    must(mdb_cursor_open(txn, engine->by_stream, &by_stream));
    for (uint32_t i = 0; i < batch->count; i++)
        append_one(engine, events, by_stream, &batch->events[i], batch->places[i]);
    mdb_cursor_close(events);
    mdb_cursor_close(by_stream);
    must(mdb_txn_commit(txn));
}

/* --- read --- */

static void see(const MDB_val *value, bench_seen *seen)
{
    const uint8_t *const at = value->mv_data;
    uint32_t type_bytes = 0;

    memcpy(&type_bytes, at + 4, sizeof type_bytes);
    bench_seen_add(seen, at + HEAD_BYTES + type_bytes, value->mv_size - HEAD_BYTES - type_bytes);
}

static void must_end(int result)
{
    if (result != MDB_NOTFOUND)
        must(result);
}

static void lm_read_all(bench_engine *engine, bench_seen *seen)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    int result = 0;

    must(mdb_txn_renew(engine->reader));
    must(mdb_cursor_open(engine->reader, engine->events, &cursor));
    while ((result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
        see(&value, seen);
    must_end(result);
    mdb_cursor_close(cursor);
    mdb_txn_reset(engine->reader);
}

/* The position is copied, because LMDB reads keys that are numbers as aligned ones and stores values anywhere. */
static void see_position(bench_engine *engine, const MDB_val *stored, bench_seen *seen)
{
    uint64_t position = 0;
    MDB_val key = { sizeof position, &position }, value;

    memcpy(&position, stored->mv_data, sizeof position);
    must(mdb_get(engine->reader, engine->events, &key, &value));
    see(&value, seen);
}

static void lm_read_stream(bench_engine *engine, bench_place from, uint32_t max, bench_seen *seen)
{
    MDB_cursor *cursor = NULL;
    uint8_t bytes[KEY_BYTES];
    MDB_val key = { sizeof bytes, bytes }, position;
    int result = 0;

    put_key(from, bytes);
    must(mdb_txn_renew(engine->reader));
    must(mdb_cursor_open(engine->reader, engine->by_stream, &cursor));
    result = mdb_cursor_get(cursor, &key, &position, MDB_SET_RANGE);
    for (; result == 0 && max > 0 && memcmp(key.mv_data, bytes, sizeof from.stream) == 0; max--) {
        see_position(engine, &position, seen);
        result = mdb_cursor_get(cursor, &key, &position, MDB_NEXT);
    }
    must_end(result);
    mdb_cursor_close(cursor);
    mdb_txn_reset(engine->reader);
}

static void lm_read_point(bench_engine *engine, bench_place place, bench_seen *seen)
{
    uint8_t bytes[KEY_BYTES];
    MDB_val key = { sizeof bytes, bytes }, position;

    put_key(place, bytes);
    must(mdb_txn_renew(engine->reader));
    must(mdb_get(engine->reader, engine->by_stream, &key, &position));
    see_position(engine, &position, seen);
    mdb_txn_reset(engine->reader);
}

static void lm_close(bench_engine *engine)
{
    mdb_txn_abort(engine->reader);
    mdb_env_close(engine->env);
    free(engine);
}

const bench_engine_kind bench_lmdb = {
    .name = "lmdb",
    .open = lm_open,
    .append = lm_append,
    .read_all = lm_read_all,
    .read_stream = lm_read_stream,
    .read_point = lm_read_point,
    .close = lm_close,
};
