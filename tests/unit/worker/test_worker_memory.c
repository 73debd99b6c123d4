/* tests/unit/worker/test_worker_memory.c — workers, queues and their parts that cannot be made for lack of memory: they say so, stop
 * nobody else, and leave nothing behind. */
#include "crew_rig.h"
#include "scarce.h"
#include "test.h"

#include "base/cleanup.h"
#include "worker/ack_file.h"
#include "worker/append_handler.h"
#include "worker/callback_handler.h"
#include "worker/consumer_source.h"
#include "worker/exec_handler.h"
#include "worker/http_handler.h"
#include "worker/lines_handler.h"
#include "worker/memory_source.h"
#include "worker/schedule_source.h"
#include "worker/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SLOTS = 4
};

static const sl_logger quiet = { .level_min = SL_LOG_LEVEL_COUNT_ };
static const char *const environment[] = { "MODE=test", "LEVEL=7", NULL };

static sl_worker_result work(void *user, sl_ctx *ctx)
{
    (void)user;
    (void)ctx;
    return SL_WORKER_DONE;
}

/* --- handlers --- */

typedef sl_err handler_new_fn(sl_loop *loop, sl_text *problem, sl_handler **ret_handler);

static sl_err new_exec(sl_loop *loop, sl_text *problem, sl_handler **ret_handler)
{
    const sl_exec_options options = {
        .command = "true", .slots = SLOTS, .environment = environment, .log = &quiet
    };

    return sl_exec_handler_new(loop, &options, problem, ret_handler);
}

static sl_err new_lines(sl_loop *loop, sl_text *problem, sl_handler **ret_handler)
{
    const sl_lines_options options = {
        .command = "cat", .slots = SLOTS, .environment = environment, .log = &quiet
    };

    return sl_lines_handler_new(loop, &options, problem, ret_handler);
}

static sl_err new_http(sl_loop *loop, sl_text *problem, sl_handler **ret_handler)
{
    static const char *const headers[] = { "A: b", "C: d" };
    const sl_http_options options = { .url = "http://127.0.0.1:1/",
                                      .headers = headers,
                                      .header_count = SL_COUNT_OF(headers),
                                      .slots = SLOTS,
                                      .ca_file = "/dev/null" };

    return sl_http_handler_new(loop, &options, problem, ret_handler);
}

static sl_err new_append(sl_loop *loop, sl_text *problem, sl_handler **ret_handler)
{
    sl_client_address address;
    const sl_append_handler_options options = { .address = &address,
                                                .stream = SL_STR("copies"),
                                                .slots = SLOTS };

    EXPECT_OK(sl_client_address_parse(SL_STR("sluice://anna:secret@127.0.0.1:1"), problem, &address));
    return sl_append_handler_new(loop, &options, problem, ret_handler);
}

static sl_err new_callback(sl_loop *loop, sl_text *problem, sl_handler **ret_handler)
{
    const sl_callback_settings settings = { .work = work, .slots = SLOTS, .log = &quiet };

    (void)problem;
    return sl_callback_new(loop, &settings, ret_handler);
}

static sl_err new_threads(sl_loop *loop, sl_text *problem, sl_handler **ret_handler)
{
    const sl_callback_settings settings = { .work = work, .slots = SLOTS, .threads = 2, .log = &quiet };

    (void)problem;
    return sl_callback_new(loop, &settings, ret_handler);
}

static const struct handler_row {
    const char *name;
    handler_new_fn *make;
} handler_rows[] = {
    { "exec", new_exec },     { "lines", new_lines },       { "http", new_http },
    { "append", new_append }, { "callback", new_callback }, { "callback with threads", new_threads },
};

static bool make_handler(void *ctx)
{
    const struct handler_row *const row = ctx;
    sl_handler *handler = NULL;
    sl_loop *loop = NULL;
    char buffer[200];
    sl_text problem;
    sl_err err = sl_loop_new(NULL, NULL, NULL, &loop);

    sl_text_init(&problem, buffer, sizeof buffer);
    if (err == SL_OK)
        err = row->make(loop, &problem, &handler);
    if (err != SL_OK)
        EXPECT_ERR(err, SL_ERR_NOMEM);
    if (handler != NULL)
        handler->class->free(handler, UINT64_MAX);
    sl_loop_free(loop);
    return err == SL_OK;
}

TEST(a_handler_without_memory_is_refused_and_leaves_nothing)
{
    for (size_t i = 0; i < SL_COUNT_OF(handler_rows); i++) {
        struct handler_row row = handler_rows[i];

        scarce_sweep(row.name, make_handler, &row);
    }
}

/* --- sources --- */

typedef sl_err source_new_fn(sl_loop *loop, sl_text *problem, sl_source **ret_source);

static sl_err new_memory(sl_loop *loop, sl_text *problem, sl_source **ret_source)
{
    return sl_memory_source_open(loop, SL_STR("count=3,bytes=100"), problem, ret_source);
}

static sl_err new_schedule(sl_loop *loop, sl_text *problem, sl_source **ret_source)
{
    return sl_schedule_source_open(loop, &quiet, SL_STR("every=1h"), problem, ret_source);
}

static sl_err new_consumer(sl_loop *loop, sl_text *problem, sl_source **ret_source)
{
    static const sl_consumer_label labels[] = { { "version", "7" } };
    const sl_consumer_source_options options = { .address = "sluice://127.0.0.1:1",
                                                 .stream = "orders",
                                                 .group = "billing",
                                                 .labels = labels,
                                                 .label_count = SL_COUNT_OF(labels),
                                                 .user = "anna",
                                                 .password = "secret",
                                                 .log = &quiet };

    return sl_consumer_source_new(loop, &options, problem, ret_source);
}

static const struct source_row {
    const char *name;
    source_new_fn *make;
} source_rows[] = { { "memory", new_memory }, { "schedule", new_schedule }, { "consumer", new_consumer } };

static bool make_source(void *ctx)
{
    const struct source_row *const row = ctx;
    sl_source *source = NULL;
    sl_loop *loop = NULL;
    char buffer[200];
    sl_text problem;
    sl_err err = sl_loop_new(NULL, NULL, NULL, &loop);

    sl_text_init(&problem, buffer, sizeof buffer);
    if (err == SL_OK)
        err = row->make(loop, &problem, &source);
    if (err != SL_OK)
        EXPECT_ERR(err, SL_ERR_NOMEM);
    if (source != NULL)
        source->class->free(source);
    sl_loop_free(loop);
    return err == SL_OK;
}

TEST(a_source_without_memory_is_refused_and_leaves_nothing)
{
    for (size_t i = 0; i < SL_COUNT_OF(source_rows); i++) {
        struct source_row row = source_rows[i];

        scarce_sweep(row.name, make_source, &row);
    }
}

/* --- the ack file, and workers with and without one --- */

typedef struct ack_place {
    char folder[64], path[96];
} ack_place;

static void place_make(ack_place *place)
{
    (void)snprintf(place->folder, sizeof place->folder, "/tmp/sluice-memory-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->path, sizeof place->path, "%s/acks", place->folder);
}

static void place_clear(const ack_place *place)
{
    (void)unlink(place->path);
    EXPECT_EQ(rmdir(place->folder), 0); /* nothing else is left there */
}

static bool make_ack_file(void *ctx)
{
    const ack_place *const place = ctx;
    sl_ack_file *file = NULL;
    char buffer[400];
    sl_text problem;
    sl_err err;

    sl_text_init(&problem, buffer, sizeof buffer);
    err = sl_ack_file_open(place->path, SL_STR("here/s/g"), SL_STR("anna"), &problem, &file);
    if (err != SL_OK)
        EXPECT_ERR(err, SL_ERR_NOMEM);
    sl_ack_file_close(file);
    return err == SL_OK;
}

TEST(an_ack_file_without_memory_is_refused_and_leaves_nothing)
{
    ack_place place;

    place_make(&place);
    scarce_sweep("an ack file", make_ack_file, &place);
    place_clear(&place);
}

static bool make_worker(void *ctx)
{
    sl_worker_options options = *(const sl_worker_options *)ctx;
    char problem[SL_WORKER_PROBLEM_BYTES] = "";
    sl_worker *worker = NULL;
    const sl_worker_status status = sl_worker_new(&options, problem, sizeof problem, &worker);

    if (status != SL_WORKER_OK)
        EXPECT_EQ(status, SL_WORKER_NOMEM);
    EXPECT_EQ(status == SL_WORKER_OK, problem[0] == '\0');
    sl_worker_free(worker);
    return status == SL_WORKER_OK;
}

TEST(a_worker_without_memory_is_refused_with_a_sentence_and_leaves_nothing)
{
    sl_worker_options options = { .from = "memory:count=3", .work = work, .key = "data.customer" };
    ack_place place;

    scarce_sweep("a worker", make_worker, &options);
    place_make(&place);
    options = (sl_worker_options){ .from = "sluice://127.0.0.1:1/s/g", .work = work, .ack_file = place.path };
    scarce_sweep("a worker with an ack file", make_worker, &options);
    place_clear(&place);
}

/* --- queues --- */

static sl_queue_outcome send_nowhere(void *user, const sl_queue_item *item, sl_queue_answer *answer)
{
    (void)user;
    (void)item;
    (void)answer;
    return SL_QUEUE_SENT;
}

static bool make_queue(void *ctx)
{
    const sl_queue_options options = { .callbacks = { .send = send_nowhere } };
    sl_queue *queue = NULL;
    sl_queue_status status = sl_queue_new(&options, &queue);

    (void)ctx;
    if (status == SL_QUEUE_OK)
        status = sl_queue_put(queue, "a", 1, "key");
    if (status == SL_QUEUE_OK)
        status = sl_queue_put(queue, "b", 1, NULL);
    if (status != SL_QUEUE_OK)
        EXPECT_EQ(status, SL_QUEUE_NOMEM);
    sl_queue_free(queue);
    return status == SL_QUEUE_OK;
}

TEST(a_queue_without_memory_is_refused_and_leaves_nothing)
{
    scarce_sweep("a queue", make_queue, NULL);
}

/* --- the pages of a crew --- */

static const sl_crew_view *look_at_nothing(void *ctx)
{
    return ctx;
}

static bool make_pages(void *ctx)
{
    static const sl_status_owner owner = { .look = look_at_nothing, .host = "127.0.0.1" };
    sl_status_pages *pages = NULL;
    sl_loop *loop = NULL;
    char buffer[200];
    sl_text problem;
    sl_err err = sl_loop_new(NULL, NULL, NULL, &loop);

    sl_text_init(&problem, buffer, sizeof buffer);
    if (err == SL_OK)
        err = sl_status_pages_new(loop, &owner, ctx, 0, &problem, &pages);
    if (err != SL_OK)
        EXPECT_ERR(err, SL_ERR_NOMEM);
    sl_status_pages_free(pages);
    sl_loop_free(loop);
    return err == SL_OK;
}

TEST(status_pages_without_memory_are_refused_and_leave_nothing)
{
    scarce_sweep("status pages", make_pages, NULL);
}

/* --- a crew that works --- */

static sl_worker_result count(void *user, sl_ctx *ctx)
{
    (void)ctx;
    ++*(unsigned *)user;
    return SL_WORKER_DONE;
}

static sl_err make_parts(void *ctx, sl_loop *loop, const sl_logger *log, sl_text *problem,
                         sl_crew_parts *ret_parts)
{
    const sl_callback_settings settings = { .work = count, .user = ctx, .slots = SLOTS, .log = log };
    sl_source *source = NULL;
    sl_err err = sl_memory_source_open(loop, SL_STR("count=2,end=yes"), problem, &source);

    if (err == SL_OK)
        err = sl_callback_new(loop, &settings, &ret_parts->handler);
    if (err == SL_OK)
        ret_parts->source = source;
    else if (source != NULL)
        source->class->free(source);
    return err;
}

/* One call after the other fails, from the first of the crew to the last of its way out. */
TEST(a_crew_does_all_of_its_work_or_says_that_it_cannot_start_whichever_call_finds_no_memory)
{
    static crew_rig rig;
    bool has_failed = true;

    for (size_t fail_at = 1; has_failed; fail_at++) {
        unsigned done = 0;
        sl_crew_end end;
        long blocks;

        crew_rig_init(&rig, 1);
        rig.members[0].make = make_parts;
        rig.members[0].ctx = &done;
        scarce_begin((scarce_plan){ .fail_at = fail_at });
        end = crew_rig_run(&rig);
        has_failed = scarce_end(&blocks);
        if (blocks != 0 || end != (done == 0 ? SL_CREW_NOT_STARTED : SL_CREW_CLEAN) ||
            (done != 0 && done != 2))
            fail_msg("without memory at call %zu: end %d, %u messages done, %ld blocks left: %s\n%s", fail_at,
                     (int)end, done, blocks, rig.problem, rig.log);
        EXPECT_EQ(end == SL_CREW_CLEAN, rig.problem[0] == '\0');
        crew_rig_done(&rig);
    }
    EXPECT(strstr(rig.log, "ERROR") == NULL);
}
