/* tests/unit/server/test_batch_append_random.c — BatchAppend against a model, many seeds: every append that was finished is answered exactly
 * once, what was answered well is stored at that revision, and each call's appends stand in the order in which it finished them.
 *
 * A seed decides what clients send (whole appends, parts, nonsense), when they read, when they go away, when time passes and when
 * the store is full. The model knows only what was sent. */
#include "../base/support.h"
#include "writes.h"

#include "server/door.h"

enum {
    CALLS = 3,
    APPENDS_MAX = 400, /* of one call */
    STEPS = 600,
    EVENTS_MAX = 3, /* of one request */
    ROUNDS = 20,
};

typedef enum sent_state {
    SENT_NOTHING,
    SENT_OPEN,     /* in parts, and not finished */
    SENT_FINISHED, /* it has to be answered */
    SENT_REFUSED,  /* the same, and never well: it is nonsense */
} sent_state;

typedef struct sent_append {
    sent_state state;
    uint32_t event_count;
    bool answered;
} sent_append;

typedef struct talker {
    server_call *call;
    char stream[24]; /* its own */
    uint32_t count;
    uint32_t finished[APPENDS_MAX]; /* in the order of finishing */
    uint32_t finished_count;
    sent_append appends[APPENDS_MAX];
} talker;

typedef struct play {
    writes w;
    dice d;
    uint64_t seed;
    unsigned calls_made;
    talker *talkers[CALLS];
} play;

static void talker_start(play *p, size_t which)
{
    talker *const t = p->talkers[which];

    *t = (talker){ .call = NULL };
    snprintf(t->stream, sizeof t->stream, "s%u", p->calls_made++);
    t->call = server_rig_call_with(
        &p->w.rig,
        &(server_call_options){ .path = WRITES_BATCH_PATH, .peer = server_rig_connect(&p->w.rig, "p:1") });
}

/* --- sending --- */

/* Events say whose they are: the number of the append, and the number of the event in it. */
static void send_part(play *p, talker *t, uint32_t number, bool begins, bool ends)
{
    sent_append *const append = &t->appends[number];
    const size_t count = append->state == SENT_REFUSED ? 1 : dice_pick(&p->d, EVENTS_MAX + 1);
    const sl_batch_options options = { .stream = sl_str_from(t->stream), .expected = WRITES_ANY };
    sl_wire_proposed *const events =
        writes_events(&p->w, (uint64_t)number * 1000 + append->event_count, count);

    if (append->state == SENT_REFUSED)
        events[0].id = (sl_wire_id){ .form = SL_WIRE_ID_ABSENT };
    append->event_count += (uint32_t)count;
    writes_batch_draft(&p->w, t->call,
                       &(sl_batch_append_draft){ .correlation = writes_correlation(number),
                                                 .options = begins ? &options : NULL,
                                                 .events = events,
                                                 .event_count = count,
                                                 .is_final = ends });
    if (ends && append->state == SENT_FINISHED)
        t->finished[t->finished_count++] = number;
}

static void send_new(play *p, talker *t)
{
    const uint32_t number = t->count;
    const size_t kind = dice_pick(&p->d, 10);

    if (t->count == APPENDS_MAX)
        return;
    t->count++;
    t->appends[number].state = kind == 0 ? SENT_REFUSED : kind < 3 ? SENT_OPEN : SENT_FINISHED;
    send_part(p, t, number, true, t->appends[number].state != SENT_OPEN);
}

static void send_more(play *p, talker *t)
{
    const uint32_t number = t->count == 0 ? 0 : (uint32_t)dice_pick(&p->d, t->count);
    const bool ends = dice_pick(&p->d, 2) == 0;

    if (t->count == 0 || t->appends[number].state != SENT_OPEN)
        return;
    if (ends)
        t->appends[number].state = SENT_FINISHED;
    send_part(p, t, number, false, ends);
}

/* --- judging --- */

static void judge_success(play *p, const talker *t, uint32_t number, uint64_t revision)
{
    const char *const stored = writes_stored(&p->w, t->stream);
    const sent_append *const append = &t->appends[number];
    char wanted[64];

    if (append->event_count == 0)
        return;
    snprintf(wanted, sizeof wanted, "%llu:t%llu", (unsigned long long)revision,
             (unsigned long long)number * 1000 + append->event_count - 1);
    if (strstr(stored, wanted) == NULL)
        fail_msg("seed %llu: %s of %s is not there: %s", (unsigned long long)p->seed, wanted, t->stream,
                 stored);
}

static void judge_answers(play *p, talker *t)
{
    for (size_t i = 0; i < t->call->message_count; i++) {
        const sl_batch_append_response answer = writes_batch_answer(t->call, i);
        const uint64_t number = writes_batch_number(&answer);
        const bool good = answer.kind == SL_BATCH_APPEND_RESPONSE_SUCCESS;

        EXPECT_RUN(number < t->count && !t->appends[number].answered, p->seed, number);
        EXPECT_RUN(!good || t->appends[number].state == SENT_FINISHED, p->seed, number);
        t->appends[number].answered = true;
        if (good && answer.current.kind == SL_WIRE_REVISION_NUMBER)
            judge_success(p, t, (uint32_t)number, answer.current.number);
    }
}

/* "0:t1000 1:t1001 2:t3000": each append whole and once, in the order of finishing; late ones may be missing. */
static void judge_order(const play *p, const talker *t, const char *stored)
{
    uint32_t next = 0;
    uint64_t revision, event;
    int used;

    while (sscanf(stored, "%llu:t%llu%n", (unsigned long long *)&revision, (unsigned long long *)&event,
                  &used) == 2) {
        const uint32_t number = (uint32_t)(event / 1000);

        EXPECT_RUN(event % 1000 == 0, p->seed, event);
        while (next < t->finished_count && t->finished[next] != number)
            next++;
        EXPECT_RUN(next++ < t->finished_count, p->seed, event);
        for (uint64_t i = 0; i < t->appends[number].event_count; i++) {
            EXPECT_RUN(sscanf(stored, "%llu:t%llu%n", (unsigned long long *)&revision,
                              (unsigned long long *)&event, &used) == 2,
                       p->seed, i);
            EXPECT_RUN(event == (uint64_t)number * 1000 + i, p->seed, event);
            stored += used + (stored[used] == ' ');
        }
    }
    EXPECT_RUN(*stored == 0, p->seed, revision);
}

static void judge(play *p, talker *t, bool was_cut)
{
    judge_answers(p, t);
    judge_order(p, t, writes_stored(&p->w, t->stream));
    for (uint32_t i = 0; i < t->count && !was_cut; i++)
        EXPECT_RUN(t->appends[i].answered || t->appends[i].state == SENT_OPEN, p->seed, i);
}

/* --- playing --- */

static void fill_store(play *p)
{
    static char data[15 * 1024 * 1024];
    size_t bytes = sizeof data;

    while (bytes > 0) {
        const sl_event_in event = { .id = { { 1, 1 } }, .type = SL_STR("t"), .data = { data, bytes } };
        const sl_op op = { .kind = SL_OP_APPEND,
                           .append = { .stream = SL_STR("large"),
                                       .expected = { SL_EXPECT_ANY, 0 },
                                       .events = &event,
                                       .event_count = 1 } };
        if (!writes_submit(&p->w, &op))
            bytes /= 2;
    }
}

static void step(play *p)
{
    const size_t which = dice_pick(&p->d, CALLS);
    talker *const t = p->talkers[which];
    const size_t kind = dice_pick(&p->d, 1000);

    if (kind < 600) {
        send_new(p, t);
    } else if (kind < 800) {
        send_more(p, t);
    } else if (kind < 850) {
        writes_deliver(&p->w);
    } else if (kind < 900) {
        (void)server_rig_turn(&p->w.rig);
    } else if (kind < 940) {
        t->call->peer->stuck = !t->call->peer->stuck;
        t->call->peer->touched = true;
    } else if (kind < 960) {
        sl_clock_manual_advance(&p->w.rig.time, dice_pick(&p->d, 700) * 1000 * 1000);
    } else if (kind < 962) {
        fill_store(p);
    } else if (kind < 965) {
        server_rig_break(t->call->peer);
        server_rig_run(&p->w.rig);
        judge(p, t, true);
        talker_start(p, which);
    }
}

static void finish(play *p)
{
    for (size_t i = 0; i < CALLS; i++) {
        p->talkers[i]->call->peer->stuck = false;
        p->talkers[i]->call->peer->touched = true;
        server_call_half_close(p->talkers[i]->call);
    }
    for (size_t i = 0; i < CALLS; i++) {
        server_rig_run_until_ended(&p->w.rig, p->talkers[i]->call);
        EXPECT_CALL_STATUS(p->talkers[i]->call, SL_STATUS_OK);
    }
    for (size_t i = 0; i < CALLS; i++)
        judge(p, p->talkers[i], false);
    EXPECT_RUN(p->w.rig.host->gathered_bytes == 0 && sl_list_empty(&p->w.rig.host->requests), p->seed, 0);
}

static void run(uint64_t seed)
{
    play p = { .d = dice_from(seed), .seed = seed };

    writes_start(&p.w);
    for (size_t i = 0; i < CALLS; i++) {
        p.talkers[i] = calloc(1, sizeof *p.talkers[i]);
        talker_start(&p, i);
    }
    for (unsigned i = 0; i < STEPS; i++)
        step(&p);
    finish(&p);
    writes_done(&p.w);
    for (size_t i = 0; i < CALLS; i++)
        free(p.talkers[i]);
}

TEST(whatever_clients_do_every_finished_append_is_answered_once_and_in_order)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed += SWEEP_STEP)
        run(seed);
}
