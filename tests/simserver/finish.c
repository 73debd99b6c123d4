/* tests/simserver/finish.c — the end of a run: nothing fails any more, everybody is answered, and one consumer takes what is left. */
#include "world.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUIET_TURNS = 40,
    ROUNDS_MAX = 400,
};

static void turns(world *w, uint32_t count)
{
    while (count-- > 0 && !w->report.failed)
        world_turn(w);
}

static void settle_server(world *w)
{
    while (!w->report.failed && (w->host == NULL || sl_shutdown_is_on(&w->shutdown)))
        world_turn(w);
}

/* Stops are taken back, errands that were begun are ended. */
static void end_errands(world *w)
{
    for (uint32_t i = 0; i < w->stop_count; i++) {
        while (w->manager.now.kind != ERRAND_NONE && !w->report.failed)
            world_turn(w);
        if (!w->stops[i].taken_back)
            (void)clerk_ask(&w->manager, (errand){ .kind = ERRAND_RESUME, .stop = i });
    }
    while ((w->manager.now.kind != ERRAND_NONE || w->writer.now.kind != ERRAND_NONE) && !w->report.failed)
        world_turn(w);
}

static void check_answers(world *w)
{
    for (uint32_t i = 0; i < w->client_count; i++)
        if (w->clients[i].judged != NULL)
            judge_check_answers(w->clients[i].judged);
}

static void check_drained(world *w)
{
    for (uint32_t i = 0; i < w->client_count; i++)
        if (w->clients[i].judged != NULL)
            judge_check_drained(w->clients[i].judged);
}

static void wait_for_leases(world *w)
{
    sl_clock_manual_advance(&w->time, 5000 * WORLD_MS_NS + w->judge.backward_ns);
    turns(w, QUIET_TURNS);
}

/* --- what is left --- */

/* Nothing was delivered for a while, and everything that was is answered. */
static bool is_quiet(const world *w, uint64_t *delivered)
{
    const uint64_t before = *delivered;

    *delivered = w->report.situations[SITUATION_DELIVERED];
    return before == *delivered;
}

static void take_the_rest(world *w, uint32_t group)
{
    client *const c = &w->clients[WORLD_CLIENTS_MAX];
    uint64_t delivered = UINT64_MAX;
    uint32_t quiet_rounds = 0; /* one is not enough: a page that was waited for is delivered in the next */

    client_init(c, w, WORLD_CLIENTS_MAX);
    client_settle_down(c, group);
    for (uint32_t i = 0; i < ROUNDS_MAX && !w->report.failed; i++) {
        for (uint32_t turn = 0; turn < 12; turn++) {
            world_turn(w);
            client_ack_all(c);
        }
        if (i > 3 && w->store.is_journal)
            sim_store_wait(&w->store); /* a page that is on its way */
        quiet_rounds = i > 3 && is_quiet(w, &delivered) ? quiet_rounds + 1 : 0;
        if (quiet_rounds == 2)
            break;
        if (i < 2)
            sl_clock_manual_advance(&w->time, 3000 * WORLD_MS_NS);
    }
    turns(w, QUIET_TURNS);
    if (!w->report.failed && c->judged == NULL)
        report_fail(&w->report, REPORT_LIVENESS, "the consumer that stays was sent away");
    check_answers(w);
    client_leave(c);
    turns(w, QUIET_TURNS);
    world_peer_cut(&c->peer, JUDGE_CUT, 0);
}

/* --- what the streams have --- */

static bool sees(const world_group *g, sl_str stream)
{
    char name[16];

    snprintf(name, sizeof name, "%.*s", (int)stream.bytes, stream.data);
    if (!g->of_all)
        return strcmp(name, g->stream) == 0;
    if (!g->regex)
        return strncmp(name, g->filter, strlen(g->filter)) == 0;
    return strcmp(g->filter, "^s[02]") == 0 ? name[1] == '0' || name[1] == '2' : name[1] != '1';
}

typedef struct looked {
    world *world;
    world_group *group;
    char parked[WORLD_EVENTS_MAX * 12]; /* " REVISION@STREAM " for each link */
} looked;

static void each_event(world *w, const char *stream, void (*fn)(looked *l, const sl_event *event), looked *l)
{
    const sl_read read = { .stream = sl_str_from(stream), .now_ns = w->time.wall_ns };
    sl_cursor *cursor;
    sl_event event;
    uint32_t count;
    sl_err err;

    if (sl_store_read(w->store.inner, &read, &cursor) != SL_OK)
        return;
    while ((err = sl_cursor_next(cursor, &event, 1, &count)) == SL_OK || err == SL_ERR_AGAIN)
        if (err == SL_OK)
            fn(l, &event);
        else
            sl_store_poll(w->store.inner);
    sl_cursor_close(cursor);
}

static void note_parked(looked *l, const sl_event *event)
{
    const size_t used = strlen(l->parked);

    snprintf(l->parked + used, sizeof l->parked - used, " %.*s ", (int)event->data.bytes, event->data.data);
}

static void check_event(looked *l, const sl_event *event)
{
    char what[32], words[34];
    bool is_parked;

    snprintf(what, sizeof what, "%ju@%.*s", (uintmax_t)event->revision, (int)event->stream.bytes,
             event->stream.data);
    snprintf(words, sizeof words, " %s ", what);
    is_parked = strstr(l->parked, words) != NULL;
    if (is_parked)
        judge_check_parked(&l->group->judged, &event->id, what);
    judge_check_settled(&l->group->judged, &event->id, what, is_parked);
}

static void check_group(world *w, world_group *g)
{
    looked *const l = calloc(1, sizeof *l);
    char name[96];

    if (l == NULL)
        abort();
    *l = (looked){ .world = w, .group = g };
    snprintf(name, sizeof name, "$persistentsubscription-%s::%s-parked", g->of_all ? "$all" : g->stream,
             g->name);
    each_event(w, name, note_parked, l);
    for (uint32_t i = 0; i < w->stream_count; i++) {
        snprintf(name, sizeof name, "s%u", i);
        if (sees(g, sl_str_from(name)))
            each_event(w, name, check_event, l);
    }
    free(l);
}

void world_finish(world *w)
{
    report_say(&w->report, "from here on nothing fails");
    w->calm = true;
    w->store.full = w->store.no_space = false;
    w->store.ready_ns = 0;
    if (w->store.disk != NULL)
        sl_faulty_fail_after(w->store.disk, UINT64_MAX, SL_OK);
    settle_server(w);
    turns(w, QUIET_TURNS);
    sl_clock_manual_advance(&w->time, 2000 * WORLD_MS_NS); /* who was refused tries again */
    turns(w, QUIET_TURNS);
    settle_server(w);
    check_answers(w);
    for (uint32_t i = 0; i < w->group_count; i++) {
        judge_check_order(&w->groups[i].judged);
        judge_check_counts(&w->groups[i].judged);
    }
    end_errands(w);
    wait_for_leases(w);
    check_drained(w);
    check_answers(w);
    for (uint32_t i = 0; i < w->client_count; i++)
        client_leave(&w->clients[i]);
    turns(w, QUIET_TURNS);
    for (uint32_t i = 0; i < w->group_count && !w->report.failed; i++)
        take_the_rest(w, i);
    for (uint32_t i = 0; i < w->group_count && !w->report.failed; i++)
        check_group(w, &w->groups[i]);
}
