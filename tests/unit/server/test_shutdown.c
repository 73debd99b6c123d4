/* tests/unit/server/test_shutdown.c — the way out of a server: its order, its bounds, its reason. Time is moved by hand. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/shutdown.h"

#define MS_NS    UINT64_C(1000000)
#define GRACE_NS (10000 * MS_NS)
#define BEGUN_NS UINT64_C(77)

/* A server that holds what the test says and writes down what it is told. */
typedef struct leaving {
    sl_shutdown shutdown;
    sl_drain_held held;
    bool keeps_gate; /* a thread that still opens the store does not hear us */
    char story[512]; /* "refuse(SIGTERM) cut farewell" */
    char lines[4096];
    sl_clock_manual time;
    sl_clock clock;
    sl_logger log;
} leaving;

static void tell(leaving *l, const char *what)
{
    strncat(l->story, l->story[0] == '\0' ? "" : " ", sizeof l->story - strlen(l->story) - 1);
    strncat(l->story, what, sizeof l->story - strlen(l->story) - 1);
}

static void refuse(void *ctx, const char *reason)
{
    leaving *const l = ctx;
    char text[SL_SHUTDOWN_REASON_BYTES + 16];

    snprintf(text, sizeof text, "refuse(%s)", reason);
    tell(l, text);
    l->held.gates = l->keeps_gate ? 1 : 0;
}

static void farewell(void *ctx)
{
    tell(ctx, "farewell");
}

static void cut(void *ctx)
{
    tell(ctx, "cut");
}

static sl_drain_held held(void *ctx)
{
    return ((leaving *)ctx)->held;
}

static void keep_line(void *ctx, const char *line, size_t bytes)
{
    leaving *const l = ctx;

    (void)bytes;
    strncat(l->lines, line, sizeof l->lines - strlen(l->lines) - 1);
}

static void leaving_init(leaving *l, uint64_t grace_ns)
{
    static const sl_shutdown_steps steps = {
        .refuse = refuse, .farewell = farewell, .cut = cut, .held = held
    };

    *l = (leaving){ .held = { .gates = 1 } };
    l->clock = sl_clock_manual_clock(&l->time);
    l->log = (sl_logger){ .level_min = SL_LOG_INFO, .clock = &l->clock, .sink = keep_line, .sink_ctx = l };
    sl_shutdown_init(&l->shutdown, grace_ns, &steps, l, &l->log);
}

static void begin(leaving *l)
{
    EXPECT(sl_shutdown_begin(&l->shutdown, SL_DRAIN_REASON_SIGTERM, NULL, BEGUN_NS));
}

TEST(nothing_happens_before_a_shutdown_is_asked_for)
{
    leaving l;

    leaving_init(&l, GRACE_NS);
    EXPECT_EQ(sl_shutdown_turn(&l.shutdown, 5), UINT64_MAX);
    sl_shutdown_insist(&l.shutdown, 6);
    EXPECT(!sl_shutdown_is_on(&l.shutdown));
    EXPECT_STR(sl_shutdown_reason(&l.shutdown), "");
    EXPECT_STR(l.story, "");
    EXPECT_STR(l.lines, "");
}

TEST(a_shutdown_refuses_then_finishes_then_says_goodbye_S3_21)
{
    leaving l;

    leaving_init(&l, GRACE_NS);
    l.held.started = 3;
    l.held.unconfirmed = 2;
    l.held.open = 2;
    begin(&l);
    sl_shutdown_turn(&l.shutdown, BEGUN_NS);
    EXPECT_STR(l.story, "refuse(SIGTERM)");
    l.held.started = 1;
    sl_shutdown_turn(&l.shutdown, BEGUN_NS + MS_NS);
    EXPECT_STR(l.story, "refuse(SIGTERM)");
    l.held.started = 0;
    sl_shutdown_turn(&l.shutdown, BEGUN_NS + 2 * MS_NS);
    EXPECT_STR(l.story, "refuse(SIGTERM)"); /* GOAWAY must not overtake an answer */
    l.held.unconfirmed = 0;
    EXPECT_EQ(sl_shutdown_turn(&l.shutdown, BEGUN_NS + 3 * MS_NS), BEGUN_NS + 102 * MS_NS);
    EXPECT_STR(l.story, "refuse(SIGTERM)"); /* nor come in one piece with it */
    sl_shutdown_turn(&l.shutdown, BEGUN_NS + 102 * MS_NS);
    EXPECT_STR(l.story, "refuse(SIGTERM) cut farewell");
    EXPECT(!sl_shutdown_is_over(&l.shutdown));
    l.held.open = 0;
    EXPECT_EQ(sl_shutdown_turn(&l.shutdown, BEGUN_NS + 103 * MS_NS), UINT64_MAX);
    EXPECT(sl_shutdown_is_over(&l.shutdown));

    EXPECT(strstr(l.lines, "WARN") == NULL);
}

TEST(the_first_reason_of_a_shutdown_is_kept_S3_2)
{
    leaving l;

    leaving_init(&l, GRACE_NS);
    begin(&l);
    EXPECT(!sl_shutdown_begin(&l.shutdown, SL_DRAIN_REASON_FAILED, "the store failed", BEGUN_NS + 1));
    EXPECT_STR(sl_shutdown_reason(&l.shutdown), "SIGTERM");
    EXPECT(strstr(l.lines, "shutting down reason=SIGTERM grace=10s") != NULL);
}

TEST(a_start_that_failed_goes_the_same_way_at_once_S3_25)
{
    leaving l;

    leaving_init(&l, GRACE_NS);
    l.held = (sl_drain_held){ 0 };
    EXPECT(sl_shutdown_begin(&l.shutdown, SL_DRAIN_REASON_START_FAILED, "start failed: no port", BEGUN_NS));
    sl_shutdown_turn(&l.shutdown, BEGUN_NS);
    EXPECT(sl_shutdown_is_over(&l.shutdown));
    EXPECT_STR(l.story, "refuse(start failed: no port) cut farewell");
}

TEST(a_long_reason_of_a_shutdown_is_cut)
{
    char reason[3 * SL_SHUTDOWN_REASON_BYTES];
    leaving l;

    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    leaving_init(&l, GRACE_NS);
    EXPECT(sl_shutdown_begin(&l.shutdown, SL_DRAIN_REASON_FAILED, reason, BEGUN_NS));
    EXPECT_EQ(strlen(sl_shutdown_reason(&l.shutdown)), SL_SHUTDOWN_REASON_BYTES - 1);
}

/* With the clock moved to each time that is asked for. Returns when it was over. */
static uint64_t run_out(leaving *l)
{
    uint64_t now_ns = BEGUN_NS;

    for (unsigned turns = 0; !sl_shutdown_is_over(&l->shutdown); turns++) {
        const uint64_t wake_ns = sl_shutdown_turn(&l->shutdown, now_ns);
        EXPECT(turns < 20);
        now_ns = sl_shutdown_is_over(&l->shutdown) ? now_ns : wake_ns;
    }
    return now_ns;
}

TEST(whatever_hangs_a_shutdown_ends_within_its_grace_S3_24)
{
    static const struct {
        sl_drain_held held;
        const char *line; /* a warning with the name of the phase */
    } rows[] = {
        { { .started = 1 }, "WARN  shutdown phase ended phase=settling end=\"timed out\"" },
        { { .unconfirmed = 1 }, "WARN  shutdown phase ended phase=flushing end=\"timed out\"" },
        { { .open = 1 }, "INFO  shutdown phase ended phase=closing end=\"timed out\"" },
        { { .started = 9, .unconfirmed = 9, .open = 9 }, "phase=aborting end=\"timed out\"" },
    };
    static const uint64_t graces_ms[] = { 500, 999, 1000, 10000, 3600 * 1000 };

    for (size_t i = 0; i < SL_COUNT_OF(rows) * SL_COUNT_OF(graces_ms); i++) {
        const uint64_t grace_ns = graces_ms[i % SL_COUNT_OF(graces_ms)] * MS_NS;
        leaving l;
        leaving_init(&l, grace_ns);
        l.held = rows[i / SL_COUNT_OF(graces_ms)].held;
        l.held.gates = 1;
        begin(&l);
        EXPECT(run_out(&l) < sl_shutdown_end_ns(&l.shutdown));
        EXPECT(sl_shutdown_end_ns(&l.shutdown) < BEGUN_NS + grace_ns);
        EXPECT_STR(l.story, "refuse(SIGTERM) cut farewell");
        if (strstr(l.lines, rows[i / SL_COUNT_OF(graces_ms)].line) == NULL)
            fail_msg("\"%s\" is not in\n%s", rows[i / SL_COUNT_OF(graces_ms)].line, l.lines);
    }
}

TEST(a_store_that_is_being_opened_is_not_waited_for_longer_than_its_part)
{
    leaving l;

    leaving_init(&l, GRACE_NS);
    l.keeps_gate = true;
    begin(&l);
    sl_shutdown_turn(&l.shutdown, BEGUN_NS);
    EXPECT(!sl_shutdown_is_over(&l.shutdown));
    EXPECT_EQ(run_out(&l), BEGUN_NS + 100 * MS_NS);
    EXPECT(strstr(l.lines, "WARN  shutdown phase ended phase=fencing end=\"timed out\"") != NULL);
    EXPECT_STR(l.story, "refuse(SIGTERM) cut farewell");
}

TEST(a_second_signal_ends_all_waiting_at_once_and_skips_no_step)
{
    static const sl_drain_held rows[] = {
        { .gates = 1 },
        { .gates = 1, .started = 5, .unconfirmed = 5, .open = 5 },
        { .unconfirmed = 5, .open = 5 },
        { .open = 5 },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        leaving l;
        leaving_init(&l, GRACE_NS);
        l.held = rows[i];
        begin(&l);
        if (i % 2 == 1)
            sl_shutdown_turn(&l.shutdown, BEGUN_NS);
        sl_shutdown_insist(&l.shutdown, BEGUN_NS + MS_NS);
        sl_shutdown_insist(&l.shutdown, BEGUN_NS + MS_NS);
        sl_shutdown_turn(&l.shutdown, BEGUN_NS + MS_NS);
        EXPECT(sl_shutdown_is_over(&l.shutdown));
        EXPECT_STR(l.story, "refuse(SIGTERM) cut farewell");
        EXPECT(l.shutdown.insisted);
    }
}

TEST(a_second_signal_is_told_once_and_is_not_called_a_timeout)
{
    leaving l;

    leaving_init(&l, GRACE_NS);
    l.held.started = 5;
    begin(&l);
    sl_shutdown_turn(&l.shutdown, BEGUN_NS);
    sl_shutdown_insist(&l.shutdown, BEGUN_NS + MS_NS);
    sl_shutdown_turn(&l.shutdown, BEGUN_NS + MS_NS);
    EXPECT(strstr(l.lines, "second signal") != NULL);
    EXPECT(strstr(l.lines, "phase=settling end=\"cut short\" used=1ms") != NULL);
    EXPECT(strstr(l.lines, "timed out") == NULL);
}

TEST(a_second_signal_after_the_last_phase_is_remembered_for_the_store)
{
    leaving l;

    leaving_init(&l, GRACE_NS);
    begin(&l);
    sl_shutdown_turn(&l.shutdown, BEGUN_NS);
    EXPECT(sl_shutdown_is_over(&l.shutdown));
    EXPECT(sl_shutdown_end_ns(&l.shutdown) > BEGUN_NS + GRACE_NS * 9 / 10);
    sl_shutdown_insist(&l.shutdown, BEGUN_NS + MS_NS);
    EXPECT_EQ(sl_shutdown_end_ns(&l.shutdown), BEGUN_NS + 201 * MS_NS);
}
