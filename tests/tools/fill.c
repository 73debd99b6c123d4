/* tests/tools/fill.c — makes a journal to look at, or writes to one for as long as somebody looks.
 *
 *     fill FOLDER [NAME=NUMBER]...
 *
 *     events=1000      so many events are appended, each to the next of the streams in turn
 *     streams=10       named stream-0, stream-1, ...
 *     bytes=100        data of an event; text that says which event it is, then dots
 *     batch=10         events in one commit
 *     segment=262144   bytes of a segment: small, so that there are several
 *     max_count=0      $maxCount of every stream
 *     deletes=0        so many of the streams are soft-deleted at the end, and so many others
 *     tombstones=0     are tombstoned
 *     groups=0         groups with a record each for every commit; their states are written when the store asks
 *     updates=0        so many times each group gets another definition at the end
 *     pause_us=0       between two commits
 *     acks=0           1: a line for each commit that is durable: how many events there are, and the position after it
 *     scavenge=0       1: asks for a scavenge after every hundredth commit
 *     crash=0          1: ends without closing
 *
 * Everything about an event follows from its number, so that whoever reads it can tell whether it is right. */
#include "store/store.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    EVENT_BYTES_MAX = 1 << 20,
    BATCH_MAX = 1000,
    CREATED_SECONDS = 1700000000
};

typedef struct setting {
    const char *name;
    uint64_t value;
} setting;

enum {
    EVENTS,
    STREAMS,
    BYTES,
    BATCH,
    SEGMENT,
    MAX_COUNT,
    DELETES,
    TOMBSTONES,
    GROUPS,
    UPDATES,
    PAUSE_US,
    ACKS,
    SCAVENGE,
    CRASH,
    SETTING_COUNT
};

static setting settings[SETTING_COUNT] = {
    [EVENTS] = { "events", 1000 },  [STREAMS] = { "streams", 10 },      [BYTES] = { "bytes", 100 },
    [BATCH] = { "batch", 10 },      [SEGMENT] = { "segment", 262144 },  [MAX_COUNT] = { "max_count", 0 },
    [DELETES] = { "deletes", 0 },   [TOMBSTONES] = { "tombstones", 0 }, [GROUPS] = { "groups", 0 },
    [UPDATES] = { "updates", 0 },   [PAUSE_US] = { "pause_us", 0 },     [ACKS] = { "acks", 0 },
    [SCAVENGE] = { "scavenge", 0 }, [CRASH] = { "crash", 0 },
};

static uint64_t value(int which)
{
    return settings[which].value;
}

static void die(const char *what, const char *more)
{
    fprintf(stderr, "fill: %s %s\n", what, more);
    exit(1);
}

static void show_usage(FILE *out)
{
    fprintf(
        out,
        "fill FOLDER [SETTING=NUMBER]...\nWrites a journal for tests into FOLDER, or more into one that is "
        "there. Settings and what they are without being said:\n");
    for (int i = 0; i < SETTING_COUNT; i++)
        fprintf(out, "  %s=%" PRIu64 "\n", settings[i].name, settings[i].value);
}

static void read_setting(const char *word)
{
    const char *const equals = strchr(word, '=');

    for (int i = 0; equals != NULL && i < SETTING_COUNT; i++) {
        const size_t bytes = strlen(settings[i].name);
        if ((size_t)(equals - word) == bytes && strncmp(word, settings[i].name, bytes) == 0) {
            if (sl_str_parse_u64(sl_str_from(equals + 1), &settings[i].value) != SL_OK)
                die("not a whole number:", word);
            return;
        }
    }
    die("unknown setting", word);
}

/* --- events --- */

typedef struct made {
    char stream[32], type[32];
    char *data;
} made;

static sl_event_in make_event(made *m, uint64_t number)
{
    const size_t bytes = (size_t)value(BYTES);
    const int length = snprintf(m->data, bytes + 1, "{\"event\": %" PRIu64 "} ", number);

    if (length < 0 || (size_t)length > bytes)
        die("an event is too small for its number:", "bytes");
    memset(m->data + length, '.', bytes - (size_t)length);
    snprintf(m->stream, sizeof m->stream, "stream-%" PRIu64, number % value(STREAMS));
    snprintf(m->type, sizeof m->type, "type-%" PRIu64, number % 3);
    return (sl_event_in){ .id = sl_uuid_from_halves(0x66696c6c, (int64_t)number + 1),
                          .type = sl_str_from(m->type),
                          .data = { m->data, bytes },
                          .metadata = SL_STR("{}"),
                          .created_ns = (CREATED_SECONDS + number) * UINT64_C(1000000000) };
}

/* --- the store --- */

typedef struct filling {
    sl_store *store;
    uint64_t waiting;
    uint64_t commits;
    bool scavenging;
} filling;

static void committed(void *ctx, const sl_commit *commit)
{
    filling *const f = ctx;

    if (commit->err != SL_OK)
        die("a commit failed:", sl_err_text(commit->err));
    f->waiting--;
}

static void scavenged(void *ctx, const sl_scavenged *result)
{
    filling *const f = ctx;

    f->scavenging = false;
    if (result->err != SL_OK)
        die("a scavenge failed:", sl_err_text(result->err));
}

static void wait_all(filling *f)
{
    sl_store_turn(f->store);
    while (f->waiting > 0) {
        struct pollfd waiting = { .fd = sl_store_wait_fd(f->store), .events = POLLIN };

        if (poll(&waiting, 1, 60 * 1000) != 1)
            die("nothing happened", "for a minute");
        sl_store_poll(f->store);
    }
}

static void commit(filling *f, const sl_op *ops, uint32_t op_count)
{
    const sl_batch batch = { .ops = ops, .op_count = op_count };
    const sl_err err = sl_store_submit(f->store, &batch, committed, f);

    if (err != SL_OK)
        die("submit:", sl_err_text(err));
    f->waiting++;
    wait_all(f);
}

static void append_batch(filling *f, uint64_t first, uint64_t count)
{
    static made mades[BATCH_MAX];
    static sl_event_in events[BATCH_MAX];
    static sl_op ops[BATCH_MAX];

    for (uint64_t i = 0; i < count; i++) {
        if (mades[i].data == NULL)
            mades[i].data = malloc(EVENT_BYTES_MAX);
        events[i] = make_event(&mades[i], first + i);
        ops[i] = (sl_op){
            .kind = SL_OP_APPEND,
            .append = { .stream = sl_str_from(mades[i].stream), .events = &events[i], .event_count = 1 }
        };
    }
    commit(f, ops, (uint32_t)count);
}

/* --- streams and groups --- */

static void set_max_count(filling *f, uint64_t stream)
{
    char name[40], json[64];
    sl_event_in event = { .id = sl_uuid_from_halves(0x6d657461, (int64_t)stream + 1),
                          .type = SL_STR("$metadata"),
                          .is_json = true,
                          .created_ns = CREATED_SECONDS * UINT64_C(1000000000) };
    sl_op op = { .kind = SL_OP_APPEND, .append = { .events = &event, .event_count = 1 } };

    snprintf(name, sizeof name, "$$stream-%" PRIu64, stream);
    snprintf(json, sizeof json, "{\"$maxCount\": %" PRIu64 "}", value(MAX_COUNT));
    event.data = sl_str_from(json);
    op.append.stream = sl_str_from(name);
    commit(f, &op, 1);
}

static void remove_stream(filling *f, uint64_t stream, sl_op_kind kind)
{
    char name[40];
    const sl_op op = { .kind = kind,
                       .remove = {
                           .stream = { name, (size_t)snprintf(name, sizeof name, "stream-%" PRIu64, stream) },
                           .created_ns = CREATED_SECONDS * UINT64_C(1000000000),
                           .id = sl_uuid_from_halves(0x72656d, (int64_t)stream + 1) } };

    commit(f, &op, 1);
}

static sl_effect checkpoint(uint64_t below)
{
    return (sl_effect){ .kind = SL_EFFECT_CHECKPOINT, .checkpoint = { SL_LANE_MAIN, below } };
}

static void create_groups(filling *f)
{
    for (uint64_t group = 1; group <= value(GROUPS); group++) {
        char definition[64];
        const sl_op op = { .kind = SL_OP_GROUP_CREATE,
                           .group_create = {
                               group,
                               { definition, (size_t)snprintf(definition, sizeof definition,
                                                              "{\"group\": %" PRIu64 "}", group) } } };
        commit(f, &op, 1);
    }
}

static void update_group(filling *f, uint64_t group, uint64_t update)
{
    char definition[64];
    const sl_op op = { .kind = SL_OP_GROUP_UPDATE,
                       .group_update = {
                           group,
                           { definition, (size_t)snprintf(definition, sizeof definition,
                                                          "{\"group\": %" PRIu64 ", \"update\": %" PRIu64 "}",
                                                          group, update) } } };

    commit(f, &op, 1);
}

static void update_groups(filling *f)
{
    for (uint64_t update = 1; update <= value(UPDATES); update++)
        for (uint64_t group = 1; group <= value(GROUPS); group++)
            update_group(f, group, update);
}

static void advance_groups(filling *f)
{
    const sl_effect record = checkpoint(f->commits);

    for (uint64_t group = 1; group <= value(GROUPS); group++) {
        const sl_op op = { .kind = SL_OP_GROUP_RECORD, .group_record = { group, &record, 1 } };
        commit(f, &op, 1);
    }
}

static void snapshot(void *ctx, uint64_t group, sl_sink sink)
{
    const filling *const f = ctx;
    const sl_effect record = checkpoint(f->commits);

    (void)group;
    sink.emit(sink.ctx, &record);
}

/* --- all of it --- */

static void open_store(filling *f, const char *folder)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 1, 2 } };
    const sl_journal_options options = { .folder = folder, .segment_bytes = value(SEGMENT) };
    char words[1024];
    sl_text report;

    sl_text_init(&report, words, sizeof words);
    if (sl_store_open_journal(&setup, &options, &report, &f->store) != SL_OK)
        die("the store did not open:", words);
    sl_store_on_snapshot(f->store, snapshot, f);
}

static void maybe_scavenge(filling *f)
{
    const sl_scavenge how = { .now_ns = (CREATED_SECONDS + 1) * UINT64_C(1000000000) };

    if (value(SCAVENGE) != 0 && !f->scavenging && f->commits % 100 == 0)
        f->scavenging = sl_store_scavenge(f->store, &how, scavenged, f) == SL_OK;
}

static void append_all(filling *f)
{
    for (uint64_t done = 0; done < value(EVENTS);) {
        const uint64_t left = value(EVENTS) - done, step = left < value(BATCH) ? left : value(BATCH);

        append_batch(f, done, step);
        done += step;
        f->commits++;
        advance_groups(f);
        maybe_scavenge(f);
        if (value(ACKS) != 0) {
            printf("%" PRIu64 " %" PRIu64 "\n", done, sl_store_end(f->store));
            fflush(stdout);
        }
        if (value(PAUSE_US) != 0)
            usleep((useconds_t)value(PAUSE_US));
    }
}

int main(int argc, char **argv)
{
    filling f = { 0 };

    if (argc < 2 || argv[1][0] == '-') {
        show_usage(argc < 2 ? stderr : stdout);
        return argc < 2;
    }
    for (int i = 2; i < argc; i++)
        read_setting(argv[i]);
    if (value(BATCH) == 0 || value(BATCH) > BATCH_MAX || value(BYTES) >= EVENT_BYTES_MAX ||
        value(STREAMS) == 0)
        die("out of bounds:", "batch, bytes or streams");
    open_store(&f, argv[1]);
    for (uint64_t i = 0; value(MAX_COUNT) != 0 && i < value(STREAMS); i++)
        set_max_count(&f, i);
    create_groups(&f);
    append_all(&f);
    update_groups(&f);
    for (uint64_t i = 0; i < value(DELETES); i++)
        remove_stream(&f, i, SL_OP_DELETE);
    for (uint64_t i = 0; i < value(TOMBSTONES); i++)
        remove_stream(&f, value(DELETES) + i, SL_OP_TOMBSTONE);
    if (value(CRASH) != 0)
        _exit(0);
    sl_store_close(f.store);
    return 0;
}
