/* client/consuming.c — the life of a consumer over its calls, and what its user says.
 *
 * Nothing that the user calls removes an entry or calls back: it is only noted. So callbacks may call everything, and walks over
 * entries need to fear nothing but themselves.
 *
 * When a connection breaks, a server with extensions hands what was not started to others at once, and keeps the rest for us
 * for a while. It does so if it has ever heard of a start from us; otherwise it takes everything as started. The same rule
 * stands here, in is_gone_with_connection(), so that both sides know the same without a word. */
#include "client/consuming.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>

enum {
    TEXTS_BYTES = 2048,         /* usual names and labels */
    TEXTS_BYTES_MAX = 16 * 1024 /* all of them at their limits */
};

/* --- telling --- */

void consuming_finish(sl_consuming *c, sl_holding_entry *held, sl_consumer_outcome outcome)
{
    const bool is_told = !held->is_own && c->handler.settled != NULL;
    sl_consumer_id id;

    memcpy(id.bytes, held->id.bytes, sizeof id.bytes);
    if (c->stop_wanted && !held->is_own) {
        c->since_stop.settled += outcome == SL_CONSUMER_SETTLED || outcome == SL_CONSUMER_SENT;
        c->since_stop.released += outcome == SL_CONSUMER_RELEASED;
        c->since_stop.lost += outcome == SL_CONSUMER_LOST || outcome == SL_CONSUMER_UNSURE;
    }
    sl_holding_remove(&c->holding, held);
    if (is_told)
        c->handler.settled(c->ctx, id, outcome);
}

void consuming_finish_unanswered(sl_consuming *c, sl_holding_entry *held)
{
    consuming_finish(c, held, held->verb == SL_HOLDING_RELEASE ? SL_CONSUMER_RELEASED : SL_CONSUMER_SENT);
}

void consuming_tell_stopped(sl_consuming *c, const sl_consumer_stopped *stopped)
{
    c->stop_told = c->stop_told || c->stop_wanted;
    if (c->handler.stopped != NULL)
        c->handler.stopped(c->ctx, stopped);
}

void consuming_tell_drained(sl_consuming *c, const sl_consumer_drained *drained)
{
    c->drained_told = c->drained_told || c->stop_wanted;
    if (c->handler.drained != NULL)
        c->handler.drained(c->ctx, drained);
}

/* Ends all that are marked. One walk is enough: a callback may add to what is to be said, but removes nothing. */
static void finish_marked(sl_consuming *c, sl_consumer_outcome outcome)
{
    SL_LIST_EACH_SAFE (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (held->is_mark)
            consuming_finish(c, held, outcome);
    }
}

/* --- life --- */

static bool copy(sl_consuming *c, const char *text, sl_str *ret_copy)
{
    const sl_str from = sl_str_from(text);
    const char *const to = sl_arena_copy_str(&c->arena, from);

    *ret_copy = (sl_str){ to, from.bytes };
    return to != NULL;
}

static bool copy_texts(sl_consuming *c, const sl_consumer_options *options)
{
    bool is_fine = copy(c, options->stream, &c->stream) && copy(c, options->group, &c->group) &&
                   copy(c, options->name, &c->name);

    c->labels = sl_arena_alloc(&c->arena, (options->label_count + 1) * sizeof *c->labels);
    is_fine = is_fine && c->labels != NULL;
    for (size_t i = 0; i < options->label_count && is_fine; i++)
        is_fine = copy(c, options->labels[i].key, &c->labels[i].key) &&
                  copy(c, options->labels[i].value, &c->labels[i].value);
    c->label_count = options->label_count;
    return is_fine;
}

/* Held ones twice over, because leases that ran out may still be worked on while others came in their place. */
static uint32_t capacity(const sl_consuming *c)
{
    return 2 * c->window + SL_CONSUMER_UNANSWERED_MAX;
}

sl_err sl_consuming_init(sl_consuming *c, const sl_alloc *alloc, const sl_consumer_options *options,
                         sl_hash_seed seed)
{
    sl_err err;

    *c = (sl_consuming){ .alloc = alloc, .handler = *options->handler, .ctx = options->ctx };
    c->window = options->window == 0 ? SL_CONSUMER_WINDOW_DEFAULT : options->window;
    c->says_started = options->says_started != 0;
    c->reconnect_ms = options->reconnect_ms == 0 ? SL_CONSUMER_RECONNECT_MS_DEFAULT : options->reconnect_ms;
    sl_arena_init(&c->arena, alloc, (sl_arena_sizes){ TEXTS_BYTES, TEXTS_BYTES_MAX });
    err = sl_holding_init(&c->holding, alloc, seed, capacity(c));
    c->batch = sl_alloc_take(alloc, SL_CONSUMING_IDS_MAX * sizeof *c->batch);
    c->ids = sl_alloc_take(alloc, SL_CONSUMING_IDS_MAX * sizeof *c->ids);
    if (err == SL_OK && (c->batch == NULL || c->ids == NULL || !copy_texts(c, options)))
        err = SL_ERR_NOMEM;
    if (err == SL_OK && options->finished_count > 0)
        err = sl_consuming_recall(c, options->finished, options->finished_count);
    if (err != SL_OK)
        sl_consuming_done(c);
    return err;
}

void sl_consuming_done(sl_consuming *c)
{
    if (c->alloc == NULL)
        return;
    sl_holding_done(&c->holding);
    if (c->batch != NULL) /* of one that could not be made, either may be missing */
        sl_alloc_give(c->alloc, SL_TAKE_PTR(c->batch), SL_CONSUMING_IDS_MAX * sizeof *c->batch);
    if (c->ids != NULL)
        sl_alloc_give(c->alloc, SL_TAKE_PTR(c->ids), SL_CONSUMING_IDS_MAX * sizeof *c->ids);
    sl_arena_done(&c->arena);
    c->alloc = NULL;
}

/* --- calls --- */

/* What was said may have counted. */
static bool is_unsure(const sl_holding_entry *held)
{
    return (held->is_said || held->was_said) &&
           (held->verb == SL_HOLDING_ACK || held->verb == SL_HOLDING_NACK);
}

static void finish_by_word(sl_consuming *c, bool also_recalled)
{
    SL_LIST_EACH_SAFE (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (also_recalled || !held->is_recalled)
            consuming_finish(c, held, is_unsure(held) ? SL_CONSUMER_UNSURE : SL_CONSUMER_LOST);
    }
}

void sl_consuming_abandon(sl_consuming *c)
{
    finish_by_word(c, true);
}

void sl_consuming_begin(sl_consuming *c, bool extensions)
{
    assert(!c->is_open);
    if (!extensions)
        finish_by_word(c, false); /* such a server keeps nothing from call to call */
    c->is_open = true;
    c->extensions = extensions;
    c->keeps_delays = false;
    c->is_greeted = c->is_confirmed = c->is_promised = false;
    c->stop_said = c->hand_back_said = false;
    c->is_stopped = c->is_drained = false;
    c->joined_stopped = c->stop_wanted;
    c->stopped_by = SL_CONSUMER_BY_ITSELF;
    c->resumed_count = 0;
    consuming_recalled_begin(c);
}

static bool is_gone_with_connection(const sl_consuming *c, const sl_holding_entry *held)
{
    if (held->is_ghost)
        return !held->is_recalled;
    return held->verb == SL_HOLDING_NONE && (held->is_own || (c->sends_started && !held->started));
}

void sl_consuming_over(sl_consuming *c)
{
    if (!c->is_open)
        return;
    c->is_open = false;
    if (!c->extensions) {
        finish_by_word(c, false);
        return;
    }
    sl_holding_unsay_all(&c->holding);
    SL_LIST_EACH (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        held->is_mark = is_gone_with_connection(c, held);
        if (!held->is_mark && held->started)
            sl_holding_start(&c->holding, held); /* the last one may not have arrived */
    }
    finish_marked(c, SL_CONSUMER_LOST);
}

/* --- stops that no server answers --- */

static void hand_back_here(sl_consuming *c)
{
    SL_LIST_EACH (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        held->is_mark = held->verb == SL_HOLDING_NONE && !held->started;
    }
    finish_marked(c, SL_CONSUMER_RELEASED);
}

/* Without those that are only remembered. */
static uint32_t live_count(const sl_consuming *c)
{
    return c->holding.count - c->holding.ghost_count;
}

static void stop_here(sl_consuming *c)
{
    if (c->hand_back_wanted)
        hand_back_here(c);
    consuming_recalled_stop(c);
    if (!c->stop_told)
        consuming_tell_stopped(
            c, &(sl_consumer_stopped){ .asked_by = SL_CONSUMER_BY_ITSELF, .in_flight = live_count(c) });
}

/* Nothing is held, so there is nothing to connect for: the next call could only bring new messages. */
static void stop_alone(sl_consuming *c)
{
    if (c->hand_back_wanted)
        hand_back_here(c); /* not listed when it comes back, so others get it then */
    if (live_count(c) > 0)
        return;
    if (!c->stop_told)
        consuming_tell_stopped(c, &(sl_consumer_stopped){ .asked_by = SL_CONSUMER_BY_ITSELF });
    consuming_tell_drained(c, &c->since_stop);
}

void sl_consuming_step(sl_consuming *c)
{
    if (!c->stop_wanted || c->drained_told)
        return;
    if (!c->is_open)
        stop_alone(c);
    else if (!c->extensions)
        stop_here(c);
}

static bool is_at_its_end(const sl_consuming *c)
{
    return c->stop_told && !c->drained_told && live_count(c) == 0;
}

bool sl_consuming_wants_proof(const sl_consuming *c)
{
    return c->is_open && !c->extensions && c->is_confirmed && (c->holding.said_count > 0 || is_at_its_end(c));
}

void sl_consuming_proved(sl_consuming *c)
{
    if (!sl_consuming_wants_proof(c))
        return;
    SL_LIST_EACH_SAFE (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (held->is_said)
            consuming_finish_unanswered(c, held);
    }
    if (!is_at_its_end(c))
        return;
    c->is_drained = true;
    consuming_tell_drained(c, &c->since_stop);
}

/* --- the user --- */

static sl_holding_entry *find(const sl_consuming *c, sl_consumer_id id)
{
    sl_uuid uuid;

    memcpy(uuid.bytes, id.bytes, sizeof uuid.bytes);
    return sl_holding_find_held(&c->holding, uuid);
}

/* Of several with one id the server means one after the other, by the same rules (core/claim.c); so who says it of each reaches each. */
static sl_holding_entry *find_to_start(const sl_consuming *c, sl_consumer_id id)
{
    sl_holding_entry *const newest = find(c, id);

    for (sl_holding_entry *held = newest; held != NULL; held = sl_holding_next_held(held))
        if (!held->started)
            return held;
    return newest;
}

static sl_holding_entry *find_to_extend(const sl_consuming *c, sl_consumer_id id)
{
    sl_holding_entry *found = find(c, id);

    for (sl_holding_entry *held = found; held != NULL; held = sl_holding_next_held(held))
        if (held->lease_until_ns < found->lease_until_ns)
            found = held;
    return found;
}

size_t sl_consuming_settle(sl_consuming *c, const sl_consumer_id *ids, size_t count, sl_holding_verb verb,
                           sl_holding_words *words)
{
    size_t taken = 0;

    for (size_t i = 0; i < count; i++) {
        sl_holding_entry *const held = find(c, ids[i]);
        if (held == NULL)
            continue;
        sl_holding_say(&c->holding, held, verb, words);
        taken++;
    }
    return taken;
}

size_t sl_consuming_nack(sl_consuming *c, const sl_consumer_id *ids, size_t count, int32_t action,
                         const char *reason)
{
    return sl_consuming_nack_later(c, ids, count, action, reason, 0);
}

sl_holding_words *consuming_words(sl_consuming *c, int32_t action, const char *reason)
{
    const size_t bytes = reason == NULL ? 0 : strnlen(reason, SL_CONSUMER_REASON_BYTES_MAX + 1);
    char kept[SL_CONSUMER_REASON_BYTES_MAX + 1];
    sl_text text;

    sl_text_init(&text, kept, sizeof kept); /* cuts between characters */
    sl_text_add_str(&text, (sl_str){ reason, bytes });
    return sl_holding_words_new(&c->holding, action, kept, text.bytes);
}

size_t sl_consuming_nack_later(sl_consuming *c, const sl_consumer_id *ids, size_t count, int32_t action,
                               const char *reason, uint32_t delay_ms)
{
    sl_holding_words *const words = consuming_words(c, action, reason);
    size_t taken;

    if (words == NULL)
        return 0;
    words->delay_ms = delay_ms;
    taken = sl_consuming_settle(c, ids, count, SL_HOLDING_NACK, words);
    sl_holding_words_drop(&c->holding, words);
    return taken;
}

size_t sl_consuming_extend(sl_consuming *c, const sl_consumer_id *ids, size_t count, uint32_t lease_ms,
                           uint64_t now_ns)
{
    size_t taken = 0;

    if (c->is_open && !c->extensions)
        return 0;
    for (size_t i = 0; i < count; i++) {
        sl_holding_entry *const held = find_to_extend(c, ids[i]);
        if (held == NULL)
            continue;
        sl_holding_extend(&c->holding, held, lease_ms);
        held->lease_until_ns =
            sl_add_sat_u64(now_ns, (lease_ms == 0 ? held->lease_ms : lease_ms) * UINT64_C(1000000));
        taken++;
    }
    return taken;
}

size_t sl_consuming_started(sl_consuming *c, const sl_consumer_id *ids, size_t count)
{
    size_t taken = 0;

    if (!c->is_open || !c->is_confirmed)
        return 0;
    for (size_t i = 0; i < count; i++) {
        sl_holding_entry *const held = find_to_start(c, ids[i]);
        if (held == NULL || (c->hand_back_wanted && !held->started))
            continue;
        if (!held->started)
            sl_holding_start(&c->holding, held);
        taken++;
    }
    return taken;
}

void sl_consuming_stop(sl_consuming *c, bool hand_back_unstarted)
{
    c->stop_wanted = true;
    c->hand_back_wanted = c->hand_back_wanted || hand_back_unstarted;
}

bool sl_consuming_is_quiet(const sl_consuming *c)
{
    return c->holding.user_count == 0;
}
