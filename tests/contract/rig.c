/* tests/contract/rig.c — the backends and the helpers of rig.h. */
#include "rig.h"

#include "base/cleanup.h"
#include "store/faulty/faulty.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the backends --- */

static const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 7, 11 } };

/* Small segments, so that filling one, its index and its roll take part in the tests; or those of a server. */
static sl_journal_options options_of(const rig *r)
{
    return (sl_journal_options){ .segment_bytes = r->is_large ? 0 : 256 * 1024 };
}

static sl_err opened(sl_err err, const sl_text *report)
{
    if (err != SL_OK)
        fail_msg("the store did not open: %s", report->data);
    return err;
}

static sl_err memory_open(rig *r)
{
    return sl_store_open_memory(&setup, &r->store);
}

static sl_err memory_restart(rig *r, sl_restart kind)
{
    return sl_store_memory_restart(r->store, kind);
}

static void memory_close(rig *r)
{
    sl_store_close(r->store);
}

static sl_err folder_open_again(rig *r)
{
    sl_journal_options options = options_of(r);
    char words[1024];
    sl_text report;

    sl_text_init(&report, words, sizeof words);
    options.folder = r->own;
    return opened(sl_store_open_journal(&setup, &options, &report, &r->store), &report);
}

static sl_err folder_open(rig *r)
{
    const char *const parent = getenv("TMPDIR");
    char *const path = malloc(256);

    snprintf(path, 256, "%s/sluice-contract-XXXXXX", parent == NULL ? P_tmpdir : parent);
    EXPECT(mkdtemp(path) != NULL);
    r->own = path;
    return folder_open_again(r);
}

/* An orderly end: a process cannot kill itself and go on, and the lock of the folder lives as long as it does. What a kill
 * leaves is tested by the row `faulty`, and on a real folder by tests/faults. */
static sl_err folder_restart(rig *r, sl_restart kind)
{
    (void)kind;
    sl_store_close(r->store);
    return folder_open_again(r);
}

static void remove_folder(const char *path)
{
    DIR *const folder = opendir(path);
    struct dirent *entry;

    EXPECT(folder != NULL);
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            EXPECT_EQ(unlinkat(dirfd(folder), entry->d_name, 0), 0);
    closedir(folder);
    EXPECT_EQ(rmdir(path), 0);
}

static void folder_close(rig *r)
{
    sl_store_close(r->store);
    remove_folder(r->own);
    free(r->own);
}

static sl_err faulty_open_again(rig *r)
{
    const sl_journal_options options = options_of(r);
    char words[1024];
    sl_text report;

    sl_text_init(&report, words, sizeof words);
    return opened(sl_store_open_faulty(&setup, &options, r->own, &report, &r->store), &report);
}

static sl_err faulty_open(rig *r)
{
    r->own = sl_faulty_new();
    return faulty_open_again(r);
}

/* Nothing that was not synced survives a power cut here: the tests say exactly what is left. Any subset of it is what
 * tests/faults lets survive. */
static sl_err faulty_restart(rig *r, sl_restart kind)
{
    if (kind == SL_RESTART_KILLED)
        sl_faulty_kill(r->own);
    else
        sl_faulty_power_cut(r->own, 0);
    sl_store_close(r->store); /* a dead one: it can not change anything any more */
    sl_faulty_settle(r->own);
    return faulty_open_again(r);
}

static void faulty_close(rig *r)
{
    sl_store_close(r->store);
    sl_faulty_free(r->own);
}

const backend backends[] = {
    { "memory", true, memory_open, memory_restart, memory_close },
    { "journal", false, folder_open, folder_restart, folder_close },
    { "faulty", true, faulty_open, faulty_restart, faulty_close },
};
const size_t backend_count = SL_COUNT_OF(backends);
const backend *backend_now = &backends[0];

static rig open_with(bool is_large)
{
    rig r = { .is_large = is_large };

    EXPECT_OK(backend_now->open(&r));
    EXPECT_STR(sl_store_problem(r.store), "");
    return r;
}

rig rig_open(void)
{
    return open_with(false);
}

rig rig_open_large(void)
{
    return open_with(true);
}

void rig_close(rig *r)
{
    backend_now->close(r);
}

bool rig_restart(rig *r, sl_restart kind)
{
    if (kind == SL_RESTART_POWER_CUT && !backend_now->cuts_power)
        return false;
    EXPECT_OK(backend_now->restart(r, kind));
    return true;
}

/* --- writing --- */

sl_uuid id_of(uint64_t number)
{
    return sl_uuid_from_halves(77, (int64_t)number);
}

uint64_t number_of(sl_uuid id)
{
    int64_t most, least;

    sl_uuid_to_halves(id, &most, &least);
    return most == 77 ? (uint64_t)least : UINT64_MAX; /* else it is one that the store has made */
}

sl_event_in event(uint64_t number)
{
    static char texts[1024][2][32];
    static size_t turn;
    char(*const text)[32] = texts[turn++ % SL_COUNT_OF(texts)];

    snprintf(text[0], sizeof text[0], "data %llu", (unsigned long long)number);
    snprintf(text[1], sizeof text[1], "type-%llu", (unsigned long long)number);
    return (sl_event_in){ .id = id_of(number),
                          .type = sl_str_from(text[1]),
                          .data = sl_str_from(text[0]),
                          .metadata = SL_STR("meta"),
                          .created_ns = NOW_NS };
}

sl_op append_op(const char *stream, sl_expected expected, const sl_event_in *events, uint32_t event_count)
{
    return (sl_op){ .kind = SL_OP_APPEND, .append = { sl_str_from(stream), expected, events, event_count } };
}

static sl_op remove_op(sl_op_kind kind, const char *stream, sl_expected expected)
{
    return (sl_op){ .kind = kind,
                    .remove = { .stream = sl_str_from(stream),
                                .expected = expected,
                                .created_ns = NOW_NS,
                                .id = sl_uuid_from_halves(78, 1) } };
}

sl_op delete_op(const char *stream, sl_expected expected)
{
    return remove_op(SL_OP_DELETE, stream, expected);
}

sl_op tombstone_op(const char *stream, sl_expected expected)
{
    return remove_op(SL_OP_TOMBSTONE, stream, expected);
}

sl_op create_op(uint64_t group, const char *definition)
{
    return (sl_op){ .kind = SL_OP_GROUP_CREATE, .group_create = { group, sl_str_from(definition) } };
}

sl_op update_op(uint64_t group, const char *definition)
{
    return (sl_op){ .kind = SL_OP_GROUP_UPDATE, .group_update = { group, sl_str_from(definition) } };
}

sl_op drop_op(uint64_t group)
{
    return (sl_op){ .kind = SL_OP_GROUP_DELETE, .group_delete = { group } };
}

sl_op record_op(uint64_t group, const sl_effect *record)
{
    return (sl_op){ .kind = SL_OP_GROUP_RECORD, .group_record = { group, record, 1 } };
}

static void note_answer(void *ctx, const sl_commit *commit)
{
    answer *const a = ctx;

    a->calls++;
    a->order = ++a->r->done_count;
    a->err = commit->err;
    a->failed_op = commit->failed_op;
    for (uint32_t i = 0; i < a->op_count && i < RESULTS_KEPT; i++)
        a->results[i] = commit->results[i];
}

sl_err submit(rig *r, const sl_op *ops, uint32_t op_count, sl_durability durability, answer *a)
{
    const sl_batch batch = { .ops = ops, .op_count = op_count, .durability = durability };

    *a = (answer){ .r = r, .op_count = op_count };
    return sl_store_submit(r->store, &batch, note_answer, a);
}

sl_err submit_patient(rig *r, const sl_op *op, answer *a)
{
    const sl_batch batch = { .ops = op, .op_count = 1, .durability = SL_DURABLE_SYNC, .patient = true };

    *a = (answer){ .r = r, .op_count = 1 };
    return sl_store_submit(r->store, &batch, note_answer, a);
}

static void wait_once(rig *r)
{
    struct pollfd waiting = { .fd = sl_store_wait_fd(r->store), .events = POLLIN };

    if (poll(&waiting, 1, 10 * 1000) != 1)
        fail_msg("nothing happened within ten seconds");
    sl_store_poll(r->store);
}

void pass_time(rig *r)
{
    sl_store_turn(r->store);
    wait_once(r);
}

void fill_segment(rig *r)
{
    static char data[64 * 1024];
    sl_event_in e = event(800000);
    const sl_op op = append_op("filling", ANY, &e, 1);

    e.type = SL_STR("filler");
    e.data = (sl_str){ data, sizeof data };
    for (uint64_t i = 0; i < 8; i++) {
        e.id = id_of(800000 + i);
        EXPECT_OK(commit(r, &op, 1).err);
    }
}

void wait_for(rig *r, uint64_t done_count)
{
    while (r->done_count < done_count)
        wait_once(r);
}

answer commit(rig *r, const sl_op *ops, uint32_t op_count)
{
    const uint64_t before = r->done_count;
    answer a;

    EXPECT_OK(submit(r, ops, op_count, SL_DURABLE_SYNC, &a));
    EXPECT_EQ(a.calls, 0); /* never from inside submit */
    sl_store_turn(r->store);
    EXPECT_EQ(a.calls, 0); /* nor from turn */
    wait_for(r, before + 1);
    EXPECT_EQ(a.calls, 1);
    return a;
}

answer append(rig *r, const char *stream, sl_expected expected, uint64_t first_id, uint32_t event_count)
{
    sl_event_in events[64];
    sl_op op;

    EXPECT(event_count <= SL_COUNT_OF(events));
    for (uint32_t i = 0; i < event_count; i++)
        events[i] = event(first_id + i);
    op = append_op(stream, expected, events, event_count);
    return commit(r, &op, 1);
}

answer set_metadata(rig *r, const char *stream, const char *json)
{
    static uint64_t id = 1000000000;
    char name[SL_STREAM_NAME_BYTES_MAX + 1];
    sl_event_in e = event(id++);
    sl_op op;

    snprintf(name, sizeof name, "$$%s", stream);
    e.type = SL_STR("$metadata");
    e.data = sl_str_from(json);
    e.is_json = true;
    op = append_op(name, ANY, &e, 1);
    return commit(r, &op, 1);
}

void expect_written(answer a, uint64_t revision)
{
    EXPECT_ERR(a.err, SL_OK);
    EXPECT_EQ(a.results[0].revision, revision);
    EXPECT_EQ(a.results[0].repeated, false);
    EXPECT(a.results[0].position < sl_store_end(a.r->store)); /* it is durable, so it can be read */
}

void expect_repeated(answer a, uint64_t revision, uint64_t position)
{
    EXPECT_ERR(a.err, SL_OK);
    EXPECT_EQ(a.results[0].repeated, true);
    EXPECT_EQ(a.results[0].revision, revision);
    EXPECT_EQ(a.results[0].position, position);
}

void expect_refused(answer a, sl_err err, uint64_t revision)
{
    EXPECT_ERR(a.err, err);
    EXPECT_EQ(a.results[a.failed_op].revision, revision);
}

/* --- reading --- */

static sl_err next_some(rig *r, sl_cursor *cursor, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    for (;;) {
        const sl_err err = sl_cursor_next(cursor, events, max, ret_count);

        if (err != SL_ERR_AGAIN)
            return err;
        wait_once(r);
    }
}

sl_err next_one(rig *r, sl_cursor *cursor, sl_event *ret_event)
{
    uint32_t count = 0;
    const sl_err err = next_some(r, cursor, ret_event, 1, &count);

    EXPECT_EQ(count, err == SL_OK ? 1 : 0);
    return err;
}

/* Texts are what event() made, unless the event is one that the store or a test has made in another way. */
static void check_texts(const sl_event *e)
{
    char data[32];

    snprintf(data, sizeof data, "data %llu", (unsigned long long)number_of(e->id));
    if (number_of(e->id) != UINT64_MAX && sl_str_starts_with(e->type, SL_STR("type-")))
        EXPECT(sl_str_equal(e->data, sl_str_from(data)) && sl_str_equal(e->metadata, SL_STR("meta")));
}

page read_by(rig *r, const sl_read *how, uint32_t step)
{
    page p = { .seen = malloc(PAGE_EVENTS_MAX * sizeof *p.seen) };
    sl_cursor *cursor = NULL;
    sl_event events[64];
    uint32_t count = 0;

    EXPECT(p.seen != NULL && step <= SL_COUNT_OF(events));
    p.opened = sl_store_read(r->store, how, &cursor);
    while (p.opened == SL_OK && (p.ended = next_some(r, cursor, events, step, &count)) == SL_OK) {
        EXPECT(count >= 1 && count <= step && p.count + count <= PAGE_EVENTS_MAX);
        for (uint32_t i = 0; i < count; i++) {
            check_texts(&events[i]);
            p.seen[p.count++] =
                (struct seen){ events[i].position, events[i].revision, number_of(events[i].id) };
        }
    }
    if (p.opened != SL_OK)
        return p;
    p.position = sl_cursor_position(cursor);
    p.considered = sl_cursor_considered(cursor);
    sl_cursor_close(cursor);
    return p;
}

void page_free(page *p)
{
    free(p->seen);
}

void expect_stream(rig *r, const char *stream, uint64_t first, uint64_t last)
{
    const uint64_t wanted = first > last || last == NONE ? 0 : last - first + 1;

    for (uint32_t step = 1; step <= 3; step += 2) {
        const sl_read up = { .stream = sl_str_from(stream), .now_ns = NOW_NS };
        const sl_read down = {
            .stream = sl_str_from(stream), .backwards = true, .from = UINT64_MAX, .now_ns = NOW_NS
        };
        SL_CLEANUP(page_free) page forwards = read_by(r, &up, step);
        SL_CLEANUP(page_free) page backwards = read_by(r, &down, step);

        EXPECT_OK(forwards.opened);
        EXPECT_OK(backwards.opened);
        EXPECT_ERR(forwards.ended, SL_ERR_EMPTY);
        EXPECT_ERR(backwards.ended, SL_ERR_EMPTY);
        EXPECT_EQ(forwards.count, wanted);
        EXPECT_EQ(backwards.count, wanted);
        for (uint32_t i = 0; i < wanted; i++) {
            EXPECT_EQ(forwards.seen[i].revision, first + i);
            EXPECT_EQ(backwards.seen[i].revision, last - i);
        }
    }
}

void expect_unreadable(rig *r, const char *stream, sl_err err)
{
    const sl_read up = { .stream = sl_str_from(stream) };
    const sl_read down = { .stream = sl_str_from(stream), .backwards = true, .from = UINT64_MAX };
    sl_cursor *cursor = NULL;

    EXPECT_ERR(sl_store_read(r->store, &up, &cursor), err);
    EXPECT_ERR(sl_store_read(r->store, &down, &cursor), err);
    EXPECT(cursor == NULL); /* ret_ parameters are untouched */
}

uint32_t count_all(rig *r)
{
    const sl_read everything = { .from = 0 };
    SL_CLEANUP(page_free) page p = read_by(r, &everything, 64);

    EXPECT_OK(p.opened);
    return p.count;
}

sl_stream_info info_of(rig *r, const char *stream)
{
    sl_stream_info info;

    sl_store_stream(r->store, sl_str_from(stream), &info);
    return info;
}
