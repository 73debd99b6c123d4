/* tests/faults/world.c — see world.h. */
#include "world.h"

#include "judge.h"
#include "report.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 7, 11 } };

void world_init(world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->timing = dice_from(seed, 1);
    w->from = (draw){ .d = dice_from(seed, 2), .next_number = 1, .fresh_number = 1, .bytes_max = 6000 };
    w->now = w->history[0] = model_new();
    w->progress = &w->own_progress;
    sl_text_init(&w->report, w->words, sizeof w->words);
}

void world_done(world *w)
{
    if (w->follower != NULL)
        sl_cursor_close(w->follower);
    if (w->store != NULL)
        sl_store_close(w->store);
    sl_faulty_free(w->disk);
    w->follower = NULL;
    w->store = NULL;
    w->disk = NULL;
}

/* After the power is gone every error is a right answer. */
static bool is_dead(const world *w)
{
    return w->disk != NULL && sl_faulty_is_dead(w->disk);
}

static bool excused(const world *w)
{
    return w->faults || is_dead(w);
}

/* --- sending --- */

static void note_end(world *w)
{
    const uint64_t end = sl_store_end(w->store);

    if (end > w->progress->end)
        w->progress->end = end;
}

static bool changes_something(const world *w, uint32_t index)
{
    return memcmp(&w->history[index], &w->history[index + 1], sizeof(model)) != 0;
}

/* The batch had no room: it never happened. Only where one is sent at a time, because later ones were judged as if it
 * had. */
static void take_back(world *w, const world_batch *b)
{
    CHECK(b->index + 1 == w->batch_count, "a batch was refused after others had been sent");
    w->now = w->history[b->index + 1] = w->history[b->index];
    w->refused++;
}

static void note_error(world *w, const world_batch *b, sl_err err)
{
    const bool known = err == SL_ERR_STORE_FAILED || err == SL_ERR_NO_SPACE;

    CHECK(excused(w), "batch %" PRIu32 " was answered with: %s; %s", b->index, sl_err_text(err),
          sl_store_problem(w->store));
    CHECK(known, "batch %" PRIu32 " was answered with an error that says nothing: %s", b->index,
          sl_err_text(err));
    if (err == SL_ERR_NO_SPACE && !is_dead(w)) {
        take_back(w, b);
        return;
    }
    w->failed = true;
    CHECK(w->closing || sl_store_problem(w->store)[0] != '\0', "the store failed and does not say why");
}

static void check_result(const world_batch *b, uint32_t op, const sl_op_result *is)
{
    const model_result *const wanted = &b->results[op];
    model_event *const event = wanted->last_event == 0 ? NULL : model_event_at(wanted->last_event - 1);

    if (!b->has_events[op])
        return;
    CHECK(wanted->err == SL_ERR_STREAM_DELETED || (int64_t)is->revision == wanted->revision,
          "batch %" PRIu32 " op %" PRIu32 ": revision %" PRId64 " instead of %" PRId64, b->index, op,
          (int64_t)is->revision, wanted->revision);
    CHECK(is->repeated == wanted->repeated, "batch %" PRIu32 " op %" PRIu32 ": repeated or not", b->index,
          op);
    if (b->err != SL_OK || event == NULL)
        return;
    CHECK(event->position == 0 || event->position == is->position,
          "batch %" PRIu32 " op %" PRIu32 ": position %" PRIu64 " instead of %" PRIu64, b->index, op,
          is->position, event->position);
    event->position = is->position;
}

static void note_promise(world *w, const world_batch *b)
{
    if (b->err != SL_OK || !changes_something(w, b->index))
        return;
    if (w->progress->answered < b->index + 1)
        w->progress->answered = b->index + 1;
    if (b->durability == SL_DURABLE_SYNC && w->progress->synced < b->index + 1)
        w->progress->synced = b->index + 1;
}

static void on_done(void *ctx, const sl_commit *commit)
{
    world_batch *const b = ctx;
    world *const w = b->world;

    CHECK(!b->answered, "batch %" PRIu32 " was answered twice", b->index);
    CHECK(w->last_answered[b->durability] < b->index + 1, "batch %" PRIu32 " was answered too late",
          b->index);
    b->answered = true;
    w->last_answered[b->durability] = b->index + 1;
    if (commit->err != b->err && (commit->err == SL_ERR_STORE_FAILED || commit->err == SL_ERR_NO_SPACE)) {
        note_error(w, b, commit->err);
        return;
    }
    CHECK(commit->err == b->err, "batch %" PRIu32 " was answered with: %s, wanted: %s", b->index,
          sl_err_text(commit->err), sl_err_text(b->err));
    CHECK(b->err == SL_OK || commit->failed_op == b->failed_op, "batch %" PRIu32 ": another op failed",
          b->index);
    for (uint32_t i = b->err == SL_OK ? 0 : b->failed_op; i < b->op_count; i++) {
        check_result(b, i, &commit->results[i]);
        if (b->err != SL_OK)
            break;
    }
    note_promise(w, b);
}

/* Draws the next batch, and lets the model decide on it. */
static world_batch *plan(world *w)
{
    world_batch *const b = &w->batches[w->batch_count];
    const model before = w->now;

    draw_batch(&w->from, &w->now, &w->batch);
    memset(b, 0, sizeof *b);
    b->world = w;
    b->index = w->batch_count++;
    b->durability = w->batch.durability;
    b->op_count = w->batch.op_count;
    for (uint32_t i = 0; i < b->op_count && b->err == SL_OK; i++) {
        b->has_events[i] = w->batch.ops[i].kind <= SL_OP_TOMBSTONE;
        b->results[i] = model_do(&w->now, &w->batch.ops[i]);
        b->err = b->results[i].err;
        b->failed_op = i;
    }
    if (b->err != SL_OK)
        w->now = before;
    w->history[w->batch_count] = w->now;
    return b;
}

bool world_send(world *w)
{
    world_batch *b;
    sl_err err;

    if (w->batch_count == WORLD_BATCHES_MAX || w->failed)
        return false;
    b = plan(w);
    w->progress->sent = w->batch_count;
    err = sl_store_submit(w->store,
                          &(sl_batch){ .ops = w->batch.store_ops,
                                       .op_count = w->batch.op_count,
                                       .durability = w->batch.durability },
                          on_done, b);
    if (err == SL_OK)
        return true;
    CHECK(excused(w), "submitting a batch: %s; %s", sl_err_text(err), sl_store_problem(w->store));
    CHECK(err == SL_ERR_STORE_FAILED || err == SL_ERR_IO || err == SL_ERR_NO_SPACE || err == SL_ERR_CORRUPT,
          "submitting a batch gave an error that says nothing: %s", sl_err_text(err));
    w->now = w->history[--w->batch_count]; /* nothing was taken */
    w->failed = w->failed || err == SL_ERR_STORE_FAILED || is_dead(w);
    return !w->failed;
}

void world_replay(world *w, uint32_t batch_count)
{
    while (w->batch_count < batch_count)
        plan(w);
}

void world_turn(world *w)
{
    const bool trusted = !excused(w);

    sl_store_turn(w->store);
    if (trusted && !excused(w))
        w->progress->turned = w->batch_count;
}

void world_poll(world *w)
{
    sl_store_poll(w->store);
    note_end(w);
}

void world_wait(world *w)
{
    struct pollfd waiting = { .fd = sl_store_wait_fd(w->store), .events = POLLIN };

    CHECK(poll(&waiting, 1, 10 * 1000) == 1, "nothing happened within ten seconds");
    world_poll(w);
}

static bool all_answered(const world *w)
{
    for (uint32_t i = w->batch_count; i-- > 0;)
        if (!w->batches[i].answered)
            return false;
    return true;
}

void world_settle(world *w)
{
    world_turn(w);
    while (!all_answered(w))
        world_wait(w);
}

/* --- reading while others write --- */

void world_follow(world *w)
{
    sl_event events[8];
    uint32_t count = 0;
    sl_err err = SL_OK;

    if (w->follower == NULL) {
        err = sl_store_read(w->store, &(sl_read){ .from = 0 }, &w->follower);
        CHECK(err == SL_OK, "opening a cursor: %s", sl_err_text(err));
        w->followed = 0;
    }
    err = sl_cursor_next(w->follower, events, 1 + (uint32_t)dice_pick(&w->timing, 8), &count);
    for (uint32_t i = 0; err == SL_OK && i < count; i++) {
        const uint32_t index = judge_event(&w->now, &events[i]);
        CHECK(events[i].position < sl_store_end(w->store), "an event is shown that is not durable");
        CHECK(index >= w->followed, "event %" PRIu32 " is followed by an earlier one", index);
        judge_gap(&w->now, w->followed, index);
        w->followed = index + 1;
    }
    CHECK(err == SL_OK || err == SL_ERR_EMPTY || err == SL_ERR_AGAIN || excused(w), "following: %s; %s",
          sl_err_text(err), sl_store_problem(w->store));
}

static void stop_following(world *w)
{
    if (w->follower != NULL)
        sl_cursor_close(w->follower);
    w->follower = NULL;
}

static void look_around(world *w)
{
    world_settle(w);
    if (excused(w) || w->failed)
        return;
    if (dice_one_in(&w->timing, 3))
        judge_everything(w, JUDGE_STRICT);
    else
        judge_stream(w, (int)dice_pick(&w->timing, (uint64_t)(2 * MODEL_STREAMS)), JUDGE_STRICT);
}

static void on_scavenged(void *ctx, const sl_scavenged *result)
{
    world *const w = ctx;

    CHECK(result->err == SL_OK || excused(w) || w->closing, "scavenging: %s; %s", sl_err_text(result->err),
          sl_store_problem(w->store));
    w->rewritten += result->segments_rewritten;
}

static void scavenge(world *w)
{
    const sl_scavenge how = { .now_ns = text_created_ns(0),
                              .dead_share = (uint32_t)dice_pick(&w->timing, 30) };
    const sl_err err = sl_store_scavenge(w->store, &how, on_scavenged, w);

    CHECK(err == SL_OK || err == SL_ERR_EXISTS || err == SL_ERR_NOT_FOUND || excused(w), "scavenging: %s",
          sl_err_text(err));
}

static void work_step(world *w)
{
    const uint64_t what = dice_pick(&w->timing, 100);

    if (what < 58)
        world_send(w);
    else if (what < 74)
        world_turn(w);
    else if (what < 85)
        world_poll(w);
    else if (what < 94)
        world_follow(w);
    else if (what < 96)
        world_settle(w);
    else if (what < 97)
        scavenge(w);
    else
        look_around(w);
    if (w->faults && !is_dead(w))
        world_settle(w); /* one batch at a time, see take_back() */
}

void world_work(world *w, uint64_t steps)
{
    for (uint64_t i = 0; i < steps && !w->failed && !is_dead(w); i++)
        work_step(w);
}

/* --- dying and living on --- */

static void on_snapshot(void *ctx, uint64_t group, sl_sink sink)
{
    world *const w = ctx;

    CHECK(group >= 1 && group <= MODEL_GROUPS && w->now.groups[group - 1].exists,
          "a snapshot is wanted of group %" PRIu64 ", which is not there", group);
    w->snapshots++;
    judge_snapshot(&w->now.groups[group - 1], sink);
}

/* An orderly end answers everything, and makes it durable. */
static void close_in_order(world *w)
{
    const bool excuse = excused(w);

    w->closing = true;
    sl_store_close(w->store);
    w->closing = false;
    w->store = NULL;
    if (excuse || excused(w))
        return;
    CHECK(all_answered(w), "the store was closed and has not answered everything");
    w->progress->synced = w->batch_count;
}

void world_crash(world *w, world_end how, uint64_t seed)
{
    const bool in_memory = w->disk == NULL && w->folder == NULL;

    stop_following(w);
    if (w->disk != NULL && how == WORLD_KILLED)
        sl_faulty_kill(w->disk);
    if (w->disk != NULL && how == WORLD_CUT)
        sl_faulty_power_cut(w->disk, seed);
    if (w->store != NULL && in_memory && how != WORLD_CLOSED)
        CHECK(sl_store_memory_restart(w->store,
                                      how == WORLD_CUT ? SL_RESTART_POWER_CUT : SL_RESTART_KILLED) == SL_OK,
              "no memory");
    else if (w->store != NULL && in_memory)
        world_settle(w);
    else if (w->store != NULL)
        close_in_order(w);
    if (w->disk != NULL)
        sl_faulty_settle(w->disk);
    w->ended = how > w->ended ? how : w->ended;
}

static sl_err open_store(world *w)
{
    sl_err err;

    sl_text_init(&w->report, w->words, sizeof w->words);
    w->options.folder = w->folder;
    if (w->disk != NULL)
        err = sl_store_open_faulty(&setup, &w->options, w->disk, &w->report, &w->store);
    else if (w->folder != NULL)
        err = sl_store_open_journal(&setup, &w->options, &w->report, &w->store);
    else
        err = w->store != NULL ? SL_OK : sl_store_open_memory(&setup, &w->store);
    if (err == SL_OK)
        return err;
    w->store = NULL;
    CHECK(excused(w), "the store does not open: %s; %s", sl_err_text(err), w->words);
    CHECK(w->report.bytes > 0, "the store does not open and does not say why: %s", sl_err_text(err));
    return err;
}

static uint32_t least_that_survived(const world *w)
{
    const world_progress *const p = w->progress;
    const uint32_t written = p->turned > p->answered ? p->turned : p->answered;

    return w->ended == WORLD_KILLED && written > p->synced ? written : p->synced;
}

static void complain(const world *w, uint32_t found, const judge_groups *loaded)
{
    const uint32_t least = least_that_survived(w);
    const model *const first = &w->history[least], *const last = &w->history[w->batch_count];
    char text[512];
    sl_text groups;

    sl_text_init(&groups, text, sizeof text);
    for (int i = 0; i < MODEL_GROUPS; i++) {
        sl_text_add(&groups, " ");
        sl_text_add_u64(&groups, loaded->groups[i].exists ? loaded->groups[i].count : 9999);
        sl_text_add(&groups, "(");
        sl_text_add_u64(&groups, first->groups[i].exists ? first->groups[i].count : 9999);
        sl_text_add(&groups, "-");
        sl_text_add_u64(&groups, last->groups[i].exists ? last->groups[i].count : 9999);
        sl_text_add(&groups, ")");
    }
    case_fail("after %s: no moment fits; found %" PRIu32 " events, promised %" PRIu32 ", sent %" PRIu32
              "; records of groups found (promised-sent)%s; batches promised %" PRIu32 " of %" PRIu32 "; %s",
              w->ended == WORLD_CUT      ? "a power cut"
              : w->ended == WORLD_KILLED ? "a kill"
                                         : "closing in order",
              found, first->event_count, last->event_count, text, least, w->batch_count, w->words);
}

static uint32_t count_present(const bool *present, uint32_t event_count)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < event_count; i++)
        count += present[i];
    return count;
}

/* Whether the events that are there may be those of this moment. */
static bool fits(const model *m, const bool *present, uint32_t event_count)
{
    for (uint32_t i = 0; i < m->event_count; i++)
        if (!present[i] && !model_may_be_gone(m, i))
            return false;
    return count_present(present + m->event_count, event_count - m->event_count) == 0;
}

/* Which batch was the last one that is there? The events and the groups tell it. */
static void go_on_from(world *w, const bool *present, const judge_groups *loaded)
{
    const uint32_t least = least_that_survived(w), event_count = w->history[w->batch_count].event_count;

    for (uint32_t k = w->batch_count + 1; k-- > least;) {
        if (!judge_same_groups(loaded, &w->history[k]) || !fits(&w->history[k], present, event_count))
            continue;
        w->now = w->history[k];
        w->history[0] = w->now;
        w->batch_count = 0;
        w->last_answered[0] = w->last_answered[1] = 0;
        w->progress->sent = w->progress->turned = w->progress->synced = w->progress->answered = 0;
        w->from.fresh_number = w->from.next_number;
        w->ended = WORLD_CLOSED;
        w->failed = false;
        return;
    }
    complain(w, count_present(present, event_count), loaded);
}

static sl_err give_up(world *w, sl_err err)
{
    sl_store_close(w->store);
    w->store = NULL;
    return err;
}

static void keep_problem(world *w)
{
    if (sl_store_problem(w->store)[0] != '\0')
        snprintf(w->words, sizeof w->words, "%s", sl_store_problem(w->store));
}

sl_err world_open_damaged(world *w)
{
    judge_groups loaded;
    sl_err err;
    bool whole;

    CHECK(w->ended == WORLD_CLOSED && w->progress->synced == w->batch_count,
          "damage without an orderly end before it");
    w->faults = true;
    err = open_store(w);
    w->faults = false;
    CHECK(err == SL_OK || err == SL_ERR_CORRUPT || err == SL_ERR_VERSION, "damage is called: %s; %s",
          sl_err_text(err), w->words);
    if (err != SL_OK)
        return SL_ERR_CORRUPT;
    err = judge_load(w, &loaded, JUDGE_DAMAGED);
    CHECK(err != SL_OK || judge_same_groups(&loaded, &w->now), "groups are wrong, and nobody says so");
    whole = judge_all(w, JUDGE_DAMAGED) && err == SL_OK;
    keep_problem(w);
    sl_store_close(w->store);
    w->store = NULL;
    return whole ? SL_OK : SL_ERR_CORRUPT;
}

sl_err world_open(world *w)
{
    static bool present[MODEL_EVENTS_MAX];
    const judge_mood mood = w->faults ? JUDGE_FAULTS : JUDGE_STRICT;
    judge_groups loaded;
    sl_err err = open_store(w);

    if (err != SL_OK)
        return err;
    err = judge_load(w, &loaded, mood);
    if (err == SL_OK)
        err = judge_present(w, &w->history[w->batch_count], present, mood);
    if (err != SL_OK)
        return give_up(w, err);
    CHECK(sl_store_end(w->store) >= w->progress->end,
          "the log ends at %" PRIu64 ", but %" PRIu64 " was durable", sl_store_end(w->store),
          w->progress->end);
    go_on_from(w, present, &loaded);
    sl_store_on_snapshot(w->store, on_snapshot, w);
    judge_everything(w, mood);
    for (int i = 0; i < 2 * MODEL_STREAMS; i++)
        if (dice_one_in(&w->timing, 3))
            judge_stream(w, i, mood);
    note_end(w);
    return SL_OK;
}
