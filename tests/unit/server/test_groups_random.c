/* tests/unit/server/test_groups_random.c — many small lives of a group, chosen by a seed: consumers come, work, stop, cancel and lose
 * their connections, the server is killed, time passes. What was confirmed as settled is never seen again, nobody has more than
 * its window, nobody gets anything after Stopped, and in the end nothing is left (B4, B5, S1.2, S1.14). */
#include "groups_rig.h"
#include "read_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = 40,
    STEPS = 250,
    EVENTS_MAX = 400,
    CALLS_MAX = 6,
    WINDOW = 5,
};

typedef enum verb {
    NONE,
    ACK,
    SKIP,
    PARK,
    RETRY,
    RELEASE,
} verb;

/* What a consumer was given and has not answered. */
typedef struct working {
    sl_uuid id;
    verb said;
} working;

typedef struct worker {
    server_call *call; /* NULL: a free place */
    server_peer *peer;
    bool extensions, stopped, sent_started;
    size_t heard; /* messages that were looked at */
    working *list;
    size_t count, capacity;
} worker;

typedef struct life {
    groups g;
    uint64_t random;
    unsigned seed;
    worker workers[CALLS_MAX];
    sl_uuid settled[EVENTS_MAX * 4]; /* confirmed, so never to be seen again */
    size_t settled_count;
    unsigned appended;
} life;

static unsigned draw(life *l, unsigned below)
{
    l->random = l->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(l->random >> 33) % below;
}

/* --- what is heard --- */

static bool is_settled(const life *l, sl_uuid id)
{
    for (size_t i = 0; i < l->settled_count; i++)
        if (sl_uuid_equal(l->settled[i], id))
            return true;
    return false;
}

static void on_event(life *l, worker *w, sl_uuid id)
{
    if (is_settled(l, id))
        fail_msg("seed %u: an event that was confirmed as settled came again", l->seed);
    if (w->stopped)
        fail_msg("seed %u: an event came after Stopped", l->seed);
    if (w->count == w->capacity) {
        w->capacity = w->capacity == 0 ? 16 : 2 * w->capacity;
        w->list = realloc(w->list, w->capacity * sizeof *w->list);
        assert_non_null(w->list);
    }
    w->list[w->count++] = (working){ .id = id };
}

static void on_answer(life *l, worker *w, sl_uuid id, bool lost)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->list[i].said == NONE || !sl_uuid_equal(w->list[i].id, id))
            continue;
        if (!lost && (w->list[i].said == ACK || w->list[i].said == SKIP || w->list[i].said == PARK))
            l->settled[l->settled_count++] = id;
        w->list[i] = w->list[--w->count];
        return;
    }
    if (!w->sent_started) /* else it may be that of a Started that came too late */
        fail_msg("seed %u: an answer to what was never said", l->seed);
}

static void on_answers(life *l, worker *w, const sl_wire_ids *ids, bool lost)
{
    sl_wire_walk walk = sl_wire_items_walk(&ids->items);
    sl_wire_id id;

    while (ids->count > 0 && sl_wire_ids_next(&walk, &id))
        on_answer(l, w, id.uuid, lost);
}

static void listen(life *l, worker *w)
{
    for (; w->heard < w->call->message_count; w->heard++) {
        const sl_persistent_response message = groups_message(w->call, w->heard);

        if (message.kind == SL_PERSISTENT_RESPONSE_EVENT)
            on_event(l, w, groups_id(w->call, w->heard));
        if (message.kind == SL_PERSISTENT_RESPONSE_STOPPED)
            w->stopped = true;
        if (message.kind != SL_PERSISTENT_RESPONSE_SETTLED)
            continue;
        on_answers(l, w, &message.settled.ids, false);
        on_answers(l, w, &message.settled.lost, true);
    }
}

static void listen_all(life *l)
{
    server_rig_run(&l->g.rig);
    for (unsigned i = 0; i < CALLS_MAX; i++)
        if (l->workers[i].call != NULL)
            listen(l, &l->workers[i]);
}

/* --- what is done --- */

static void forget(worker *w)
{
    free(w->list);
    *w = (worker){ 0 };
}

static void join(life *l, worker *w)
{
    char name[16];

    snprintf(name, sizeof name, "w%u", draw(l, 4));
    w->extensions = draw(l, 3) > 0;
    w->peer = server_rig_connect(&l->g.rig, "127.0.0.1:40001");
    w->call = groups_call(&l->g, (groups_consumer){ .name = name,
                                                    .window = WINDOW,
                                                    .extensions = w->extensions,
                                                    .reconnect_ms = 1000,
                                                    .peer = w->peer });
    server_rig_run(&l->g.rig);
}

static void say(worker *w, working *about, verb what)
{
    static const sl_wire_nack actions[] = {
        [SKIP] = SL_WIRE_NACK_SKIP, [PARK] = SL_WIRE_NACK_PARK, [RETRY] = SL_WIRE_NACK_RETRY
    };
    sl_persistent_request request = { .kind = what == ACK       ? SL_PERSISTENT_REQUEST_ACK
                                              : what == RELEASE ? SL_PERSISTENT_REQUEST_RELEASE
                                                                : SL_PERSISTENT_REQUEST_NACK };

    if (request.kind == SL_PERSISTENT_REQUEST_NACK)
        request.action = (int32_t)actions[what];
    request.ids = (sl_wire_ids){ .count = 1, .list = &about->id, .form = SL_WIRE_ID_STRUCTURED };
    groups_send(w->call, &request);
    about->said = what;
    if (!w->extensions) /* nobody will answer */
        *about = w->list[--w->count];
}

/* Given twice and answered once: nobody could tell which answer is for which. */
static bool waits_for_answer(const worker *w, sl_uuid id)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->list[i].said != NONE && sl_uuid_equal(w->list[i].id, id))
            return true;
    return false;
}

static void work(life *l, worker *w)
{
    const verb what = (verb)(ACK + draw(l, RELEASE));
    working *about;

    if (w->count == 0)
        return;
    about = &w->list[draw(l, (unsigned)w->count)];
    if (!waits_for_answer(w, about->id))
        say(w, about, draw(l, 2) == 0 ? ACK : what);
}

static void start_one(life *l, worker *w)
{
    if (w->count == 0)
        return;
    groups_send_ids(w->call, SL_PERSISTENT_REQUEST_STARTED, &w->list[draw(l, (unsigned)w->count)].id, 1);
    w->sent_started = true;
}

static void kill_server(life *l)
{
    for (unsigned i = 0; i < CALLS_MAX; i++)
        forget(&l->workers[i]);
    groups_kill(&l->g);
}

static void step(life *l)
{
    worker *const w = &l->workers[draw(l, CALLS_MAX)];
    const unsigned what = draw(l, 100);

    if (w->call != NULL && w->call->ended)
        fail_msg("seed %u: a call ended by itself: %s", l->seed, w->call->message);
    if (what < 15 && l->appended < EVENTS_MAX) {
        reads_append(&l->g.rig, "orders", 1);
        l->appended++;
    } else if (what < 20) {
        server_rig_advance(&l->g.rig, (1 + draw(l, 40)) * GROUPS_SECOND_NS / 4);
    } else if (what < 22) {
        kill_server(l);
    } else if (w->call == NULL) {
        join(l, w);
    } else if (what < 70) {
        work(l, w);
    } else if (what < 80) {
        start_one(l, w);
    } else if (what < 84) {
        groups_send(w->call, &(sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_STOP,
                                                       .hand_back_unstarted = draw(l, 2) == 0 });
    } else if (what < 88) {
        server_call_cancel(w->call);
        forget(w);
    } else if (what < 91) {
        server_rig_break(w->peer);
        forget(w);
    }
    if (draw(l, 3) > 0)
        listen_all(l);
}

/* One consumer takes everything that is left; nothing may come after that. */
static void finish(life *l)
{
    worker *const w = &l->workers[0];
    server_call *last;

    kill_server(l);
    w->extensions = true;
    w->call = groups_call(&l->g, (groups_consumer){ .window = 1000, .extensions = true });
    server_rig_run(&l->g.rig);
    for (unsigned round = 0; round < 20; round++) {
        server_rig_advance(&l->g.rig, 10 * GROUPS_SECOND_NS);
        listen_all(l);
        for (size_t i = 0; i < w->count; i++)
            if (!waits_for_answer(w, w->list[i].id))
                say(w, &w->list[i], ACK);
        listen_all(l);
    }
    EXPECT_EQ(w->count, 0);
    kill_server(l);
    last = groups_join(&l->g, (groups_consumer){ .window = 1000 });
    server_rig_advance(&l->g.rig, 100 * GROUPS_SECOND_NS);
    EXPECT_HEARD(last, "confirmed:orders::g");
}

TEST(whatever_happens_to_consumers_and_server_what_is_settled_stays_settled_and_nothing_is_lost)
{
    static const char *const strategies[] = { "RoundRobin", "DispatchToSingle", "Pinned" };

    for (unsigned seed = 1; seed <= SEEDS; seed += SWEEP_STEP) {
        sl_group_definition definition = groups_definition("orders", "g");
        life *const l = calloc(1, sizeof *l);

        assert_non_null(l);
        l->seed = seed;
        l->random = seed;
        definition.settings.strategy = sl_str_from(strategies[seed % 3]);
        definition.settings.message_timeout.value = 5000;
        definition.settings.max_retry_count = 1000;
        groups_start(&l->g);
        groups_create(&l->g, &definition);
        for (unsigned i = 0; i < STEPS; i++)
            step(l);
        finish(l);
        for (unsigned i = 0; i < CALLS_MAX; i++)
            forget(&l->workers[i]);
        groups_done(&l->g);
        free(l);
    }
}
