/* bench/store/engine_sqlite.c — the same logical work with SQLite: WAL, synchronous FULL, autocheckpoint 10000.
 *
 * In its favour: streams are numbers that are known already (no names in rows, nothing to look up), revisions come with the
 * events, an event id is not looked for, and pages of the database are read through a mapping. */
#include "common/bench.h"
#include "engine.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static const char schema[] = "PRAGMA journal_mode = WAL;"
                             "PRAGMA synchronous = FULL;"
                             "PRAGMA wal_autocheckpoint = 10000;"
                             "PRAGMA cache_size = -65536;"
                             "PRAGMA mmap_size = 17179869184;"
                             "CREATE TABLE events (position INTEGER PRIMARY KEY, stream INTEGER NOT NULL,"
                             " revision INTEGER NOT NULL, id BLOB NOT NULL, type TEXT NOT NULL,"
                             " created INTEGER NOT NULL, is_json INTEGER NOT NULL, data BLOB NOT NULL,"
                             " metadata BLOB);"
                             "CREATE UNIQUE INDEX by_stream ON events (stream, revision);";

#define COLUMNS "SELECT position, stream, revision, id, type, created, is_json, data, metadata FROM events "

enum {
    COLUMN_DATA = 7
};

typedef enum statement {
    BEGIN,
    COMMIT,
    INSERT,
    READ_ALL,
    READ_STREAM,
    READ_POINT,
    STATEMENT_COUNT
} statement;

static const char *const texts[STATEMENT_COUNT] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [INSERT] = "INSERT INTO events (position, stream, revision, id, type, created, is_json, data, metadata)"
               " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [READ_ALL] = COLUMNS "WHERE position >= 1 ORDER BY position",
    [READ_STREAM] = COLUMNS "WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?",
    [READ_POINT] = COLUMNS "WHERE stream = ? AND revision = ?",
};

struct bench_engine {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    sqlite3_int64 position; /* of the last event */
};

static void must(bench_engine *engine, int result, int wanted)
{
    if (result != wanted)
        bench_fail("sqlite: %s", sqlite3_errmsg(engine->db));
}

static bench_engine *lite_open(const char *folder)
{
    bench_engine *const engine = bench_allocate(sizeof *engine);
    char path[BENCH_PATH_BYTES_MAX + 16];

    *engine = (bench_engine){ 0 };
    bench_folder_make(folder);
    snprintf(path, sizeof path, "%s/events.db", folder);
    must(engine, sqlite3_open(path, &engine->db), SQLITE_OK);
    must(engine, sqlite3_exec(engine->db, schema, NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < STATEMENT_COUNT; i++)
        must(engine,
             sqlite3_prepare_v3(engine->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &engine->statements[i],
                                NULL),
             SQLITE_OK);
    return engine;
}

static void run(bench_engine *engine, statement which)
{
    must(engine, sqlite3_step(engine->statements[which]), SQLITE_DONE);
    must(engine, sqlite3_reset(engine->statements[which]), SQLITE_OK);
}

/* --- append --- */

/* What it returns can only be an error of ours or no memory; the step would then fail for a missing value. */
static void bind_event(sqlite3_stmt *insert, const sl_event_in *event)
{
    sqlite3_bind_blob(insert, 4, event->id.bytes, sizeof event->id.bytes, SQLITE_STATIC);
    sqlite3_bind_text(insert, 5, event->type.data, (int)event->type.bytes, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 6, (sqlite3_int64)event->created_ns);
    sqlite3_bind_int(insert, 7, event->is_json);
    sqlite3_bind_blob(insert, 8, event->data.data, (int)event->data.bytes, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 9, event->metadata.data, (int)event->metadata.bytes, SQLITE_STATIC);
}

static void lite_append(bench_engine *engine, const bench_batch *batch)
{
    sqlite3_stmt *const insert = engine->statements[INSERT];

    run(engine, BEGIN);
    for (uint32_t i = 0; i < batch->count; i++) {
        sqlite3_bind_int64(insert, 1, ++engine->position);
        sqlite3_bind_int64(insert, 2, batch->places[i].stream);
        sqlite3_bind_int64(insert, 3, (sqlite3_int64)batch->places[i].revision);
        bind_event(insert, &batch->events[i]);
        run(engine, INSERT);
    }
    run(engine, COMMIT);
}

/* --- read --- */

static void read_rows(bench_engine *engine, statement which, bench_seen *seen)
{
    sqlite3_stmt *const rows = engine->statements[which];
    int result = 0;

    while ((result = sqlite3_step(rows)) == SQLITE_ROW)
        bench_seen_add(seen, sqlite3_column_blob(rows, COLUMN_DATA),
                       (size_t)sqlite3_column_bytes(rows, COLUMN_DATA));
    must(engine, result, SQLITE_DONE);
    must(engine, sqlite3_reset(rows), SQLITE_OK);
}

static void lite_read_all(bench_engine *engine, bench_seen *seen)
{
    read_rows(engine, READ_ALL, seen);
}

static void lite_read_stream(bench_engine *engine, bench_place from, uint32_t max, bench_seen *seen)
{
    sqlite3_stmt *const rows = engine->statements[READ_STREAM];

    sqlite3_bind_int64(rows, 1, from.stream);
    sqlite3_bind_int64(rows, 2, (sqlite3_int64)from.revision);
    sqlite3_bind_int64(rows, 3, max);
    read_rows(engine, READ_STREAM, seen);
}

static void lite_read_point(bench_engine *engine, bench_place place, bench_seen *seen)
{
    sqlite3_stmt *const rows = engine->statements[READ_POINT];

    sqlite3_bind_int64(rows, 1, place.stream);
    sqlite3_bind_int64(rows, 2, (sqlite3_int64)place.revision);
    read_rows(engine, READ_POINT, seen);
}

static void lite_close(bench_engine *engine)
{
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(engine->statements[i]);
    must(engine, sqlite3_close(engine->db), SQLITE_OK);
    free(engine);
}

const bench_engine_kind bench_sqlite = {
    .name = "sqlite",
    .open = lite_open,
    .append = lite_append,
    .read_all = lite_read_all,
    .read_stream = lite_read_stream,
    .read_point = lite_read_point,
    .close = lite_close,
};
