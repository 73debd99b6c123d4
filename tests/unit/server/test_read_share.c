/* tests/unit/server/test_read_share.c — what one reader may take from all others: time in a turn, memory between two runs. */
#include "../base/support.h"
#include "read_rig.h"

#include "server/streams/read_private.h"

#include <stdio.h>

/* A stopwatch on which every look takes some time, as if so much had been done since the last one. */
typedef struct ticking {
    uint64_t now_ns, step_ns;
} ticking;

static uint64_t tick(void *ctx)
{
    ticking *const t = ctx;

    return t->now_ns += t->step_ns;
}

static unsigned turns_of(server_rig *rig, const sl_read_request *request)
{
    const server_call *const call = reads_call(rig, request);
    unsigned turns = 0;

    for (; !call->ended; turns++)
        EXPECT(server_rig_turn(rig));
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    return turns;
}

/* Without the stopwatch all of these take 1,024 events in a run, or 128 with an expression. */
TEST(a_run_that_filters_or_follows_links_ends_when_its_time_is_over)
{
    enum {
        EVENTS = 2000,
        LOOKS = 5 /* at the stopwatch, in one run */
    };
    ticking time = { 1, READING_RUN_NS / LOOKS };
    const sl_clock slow = { .mono_ns = tick, .wall_ns = tick, .ctx = &time };
    sl_read_request prefix = reads_filtered("x", 0, 1), expression = prefix, links = reads_of_stream("s");
    server_rig rig;

    prefix.extent = expression.extent = SL_READ_EXTENT_COUNT;
    expression.filter.regex = SL_STR("x");
    links.resolve_links = true;
    reads_start(&rig, NULL);
    reads_append(&rig, "s", EVENTS);
    EXPECT(turns_of(&rig, &prefix) < 10);
    rig.host->stopwatch = &slow;
    EXPECT(turns_of(&rig, &prefix) >= EVENTS / (READING_LOOKS_TIMED * (LOOKS + 1)));
    EXPECT(turns_of(&rig, &links) >= EVENTS / (READING_LOOKS_TIMED * (LOOKS + 1)));
    EXPECT(turns_of(&rig, &expression) >= EVENTS / (LOOKS + 1));
    server_rig_done(&rig);
}

/* --- memory --- */

/* Readers that have something of the store between two turns. */
static unsigned count_cursors(const server_rig *rig)
{
    unsigned count = 0;

    SL_LIST_EACH (node, &rig->host->requests) {
        const reading *const r = SL_CONTAINER_OF(node, const sl_request, node)->state;

        count += r->cursor != NULL || r->page != NULL;
    }
    return count;
}

static sl_read_request greedy_request(unsigned number)
{
    sl_read_request request = reads_filtered("wanted", 0, 1);

    switch (number % 4) {
    case 0: request.extent = SL_READ_EXTENT_COUNT; return request;
    case 1: return request;
    case 2: return reads_of_stream("wanted");
    default: break;
    }
    request.extent = SL_READ_EXTENT_COUNT;
    return reads_backwards(reads_from_end(request));
}

static bool is_over(const server_call *call, unsigned number, size_t event_count)
{
    return number % 4 == 1 ? call->message_count >= event_count + 2 : call->ended;
}

static void expect_wanted(const server_call *call, bool backwards, uint64_t count)
{
    uint64_t seen = 0;

    for (size_t i = 0; i < call->message_count; i++) {
        const sl_read_response response = reads_message(call, i);

        if (response.kind == SL_READ_RESPONSE_EVENT) {
            EXPECT_EQ(response.event.event.revision, backwards ? count - 1 - seen : seen);
            seen++;
        }
    }
    EXPECT_EQ(seen, count);
}

/* All of them read at once, nobody is slow: whoever has no place gives back what it holds, and comes to its end all the same. */
static void expect_few_cursors(sl_store *store, unsigned readers, unsigned events)
{
    server_call **const calls = calloc(readers, sizeof(server_call *));
    unsigned most = 0, left = readers;
    server_rig rig;

    reads_start(&rig, store);
    for (unsigned i = 0; i < events / 250; i++) {
        reads_append_burst(&rig, "wanted", 1, 10);
        reads_append_burst(&rig, "other", 249, 10);
    }
    for (unsigned i = 0; i < readers; i++) {
        const sl_read_request request = greedy_request(i);

        calls[i] = reads_call(&rig, &request);
    }
    while (left > 0) {
        if (!server_rig_turn(&rig))
            server_rig_wait(&rig);
        most = count_cursors(&rig) > most ? count_cursors(&rig) : most;
        left = 0;
        for (unsigned i = 0; i < readers; i++)
            left += !is_over(calls[i], i, events / 250);
    }
    for (unsigned i = 0; i < readers; i++)
        expect_wanted(calls[i], i % 4 == 3, events / 250);
    /* Subscriptions at the end have a cursor without buffers. */
    EXPECT(most <= SL_TAIL_PLACES_MAX + readers / 4);
    EXPECT(most >= SL_TAIL_PLACES_MAX); /* else this would say nothing */
    server_rig_done(&rig);
    free(calls);
}

TEST(few_of_many_readers_keep_memory_of_the_store_and_all_of_them_get_everything)
{
    slow_store slow = slow_store_open();

    expect_few_cursors(NULL, 400, 5000 / SWEEP_STEP);
    expect_few_cursors(slow.store, 400, 5000 / SWEEP_STEP);
    slow_store_close(&slow);
}

/* A hundred that scan everything do not keep a live subscription or a small read waiting. */
TEST(greedy_readers_do_not_stand_before_those_that_have_little_to_do)
{
    enum {
        GREEDY = 100
    };
    const sl_read_request little = reads_of_stream("small");
    sl_read_request request = reads_filtered("x", 0, 1);
    ticking time = { 1, SL_TAIL_SHARE_NS }; /* every run uses up the share of its turn */
    const sl_clock slow = { .mono_ns = tick, .wall_ns = tick, .ctx = &time };
    server_call *greedy[GREEDY];
    const server_call *live, *small;
    unsigned turns = 0;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 6000);
    live = reads_begin(&rig, reads_subscription("small"));
    request.extent = SL_READ_EXTENT_COUNT;
    for (unsigned i = 0; i < GREEDY; i++)
        greedy[i] = reads_call(&rig, &request);
    server_rig_turn(&rig);
    server_rig_turn(&rig);
    rig.host->stopwatch = &slow;
    reads_submit(&rig, "small");
    while (live->message_count < 3 && turns++ < 1000)
        EXPECT(server_rig_turn(&rig));
    EXPECT(turns <= 3);
    for (unsigned i = 0; i < GREEDY; i++)
        EXPECT(!greedy[i]->ended);
    small =
        reads_call(&rig, &little); /* this one stands in the row: a round of the others, one in each turn */
    for (turns = 0; !small->ended && turns < 1000; turns++)
        EXPECT(server_rig_turn(&rig));
    EXPECT(turns <= 2 * GREEDY);
    server_rig_done(&rig);
}
