/* server/groups/desk_card.c — cards of consumers (card.h), what operators do to them, and promises about the log.
 *
 * What the core says of a consumer is noted here as it comes by. A consumer is safe to terminate when DRAINED was said of it and
 * the log is durable up to there, so its card then waits for the disk like an answer does. */
#include "server/groups/desk_private.h"

#include "server/groups/names.h"
#include "server/groups/operators.h"

#include <assert.h>

enum {
    TABLE_LENGTH_FIRST = 8,
};

/* --- marks: what is to be told when the log is durable --- */

void desk_mark_add(sl_desk *desk, sl_desk_mark *mark)
{
    mark->needs = desk->wants_sync;
    sl_list_push_back(&desk->marks, &mark->node);
    sl_host_at_turn_end(desk->host, &desk->turn_end);
}

void sl_desk_mark_forget(sl_desk_mark *mark)
{
    if (mark->node.next != NULL)
        sl_list_remove(&mark->node);
}

/* Each may take others back, so always the first one. */
void desk_marks_release(sl_desk *desk)
{
    while (!sl_list_empty(&desk->marks)) {
        sl_desk_mark *const mark = SL_CONTAINER_OF(sl_list_first(&desk->marks), sl_desk_mark, node);

        if (mark->needs > desk->durable)
            return;
        sl_list_remove(&mark->node);
        mark->fn(mark->ctx, true);
    }
}

static void marks_drop(sl_desk *desk)
{
    while (!sl_list_empty(&desk->marks)) {
        sl_desk_mark *const mark = SL_CONTAINER_OF(sl_list_first(&desk->marks), sl_desk_mark, node);

        sl_list_remove(&mark->node);
        mark->fn(mark->ctx, false);
    }
}

/* --- watchers --- */

void sl_card_watch(sl_card *card, sl_card_watcher *watcher)
{
    watcher->card = card;
    sl_list_push_back(&card->watchers, &watcher->node);
    card->desk->watcher_count++;
}

void sl_card_unwatch(sl_card_watcher *watcher)
{
    if (watcher->card == NULL)
        return;
    watcher->card->desk->watcher_count--;
    watcher->card = NULL;
    sl_list_remove(&watcher->node);
}

static void let_go(sl_card *card)
{
    while (!sl_list_empty(&card->watchers)) {
        sl_card_watcher *const watcher =
            SL_CONTAINER_OF(sl_list_first(&card->watchers), sl_card_watcher, node);

        watcher->held = card->is_drained ? 0 : card->held;
        watcher->is_lost = card->is_lost;
        sl_card_unwatch(watcher);
    }
    sl_operators_touch(card->desk->host);
}

/* --- made and gone --- */

static uint64_t hash_of(const sl_desk *desk, uint64_t consumer)
{
    return sl_hash(desk->host->seed, &consumer, sizeof consumer);
}

sl_card *desk_card_find(const sl_desk *desk, uint64_t consumer)
{
    sl_map_node *node = desk->cards_by_consumer.table == NULL
                            ? NULL
                            : sl_map_find(&desk->cards_by_consumer, hash_of(desk, consumer));

    for (; node != NULL; node = sl_map_next(node)) {
        sl_card *const card = SL_CONTAINER_OF(node, sl_card, by_consumer);

        if (card->consumer == consumer)
            return card;
    }
    return NULL;
}

/* False: there is no table, and no memory for one. */
static bool grow(sl_desk *desk)
{
    const sl_alloc *const alloc = desk->host->alloc;
    const size_t old_length = desk->cards_length;
    const size_t length = old_length == 0 ? TABLE_LENGTH_FIRST : 2 * old_length;
    sl_map_node **const old = desk->cards_by_consumer.table;
    sl_map_node **table;

    if (old != NULL && desk->cards_by_consumer.count < old_length)
        return true;
    table = sl_alloc_take(alloc, length * sizeof *table);
    if (table == NULL)
        return old != NULL; /* slower, not wrong */
    if (old == NULL)
        sl_map_init(&desk->cards_by_consumer, table, length);
    else
        sl_map_resize(&desk->cards_by_consumer, table, length);
    desk->cards_length = length;
    desk_give(alloc, old, old_length * sizeof *old);
    return true;
}

static size_t label_count_of(const sl_seat_setup *setup)
{
    return setup->label_count > SL_CARD_LABELS_MAX ? SL_CARD_LABELS_MAX : setup->label_count;
}

static size_t text_bytes_of(const sl_seat_setup *setup)
{
    size_t bytes = setup->connection_name.bytes + setup->user.bytes + setup->address.bytes;

    for (size_t i = 0; i < label_count_of(setup); i++)
        bytes += setup->labels[i].key.bytes + setup->labels[i].value.bytes;
    return bytes;
}

static sl_str put_text(char **at, sl_str text)
{
    const sl_str copy = { *at, text.bytes };

    if (text.bytes > 0)
        memcpy(*at, text.data, text.bytes);
    *at += text.bytes;
    return copy;
}

static void fill_texts(sl_card *card, const sl_seat_setup *setup)
{
    char *at = card->texts;

    card->name = put_text(&at, setup->connection_name);
    card->user = put_text(&at, setup->user);
    card->address = put_text(&at, setup->address);
    card->label_count = label_count_of(setup);
    for (size_t i = 0; i < card->label_count; i++) {
        card->labels[i].key = put_text(&at, setup->labels[i].key);
        card->labels[i].value = put_text(&at, setup->labels[i].value);
    }
}

sl_card *desk_card_new(sl_desk *desk, const sl_seat_setup *setup)
{
    const size_t bytes = sizeof(sl_card) + text_bytes_of(setup);
    sl_card *const card = grow(desk) ? sl_alloc_take(desk->host->alloc, bytes) : NULL;

    if (card == NULL)
        return NULL;
    *card = (sl_card){ .desk = desk, .bytes = bytes, .tag_count = setup->join.tag_count };
    for (uint32_t i = 0; i < card->tag_count && i < SL_TAGS_MAX; i++)
        card->tags[i] = setup->join.tags[i];
    sl_list_init(&card->node);
    sl_list_init(&card->watchers);
    fill_texts(card, setup);
    return card;
}

static void forget_reason(sl_card *card)
{
    desk_give(card->desk->host->alloc, card->reason, card->reason_bytes);
    card->reason = NULL;
    card->reason_bytes = 0;
}

void desk_card_free(sl_card *card)
{
    sl_desk *const desk = card->desk;

    sl_desk_mark_forget(&card->mark);
    let_go(card);
    if (card->consumer != 0) {
        sl_map_remove(&desk->cards_by_consumer, &card->by_consumer);
        sl_list_remove(&card->node);
    }
    forget_reason(card);
    desk->unnamed_count -= card->is_unnamed;
    desk_give(desk->host->alloc, card->learnt, card->learnt_bytes);
    desk_give(desk->host->alloc, card, card->bytes);
}

void desk_card_known(sl_desk *desk, sl_card *card, uint64_t consumer)
{
    card->consumer = consumer;
    sl_map_insert(&desk->cards_by_consumer, &card->by_consumer, hash_of(desk, consumer));
    sl_list_push_back(&desk->cards, &card->node);
}

/* --- without a name --- */

static void make_missing(void *ctx, const sl_consumer_info *info)
{
    static const sl_seat_setup nothing = { 0 };
    sl_desk *const desk = ctx;
    sl_card *card;

    if (desk_card_find(desk, info->consumer) != NULL)
        return;
    card = desk_card_new(desk, &nothing);
    if (card == NULL)
        return;
    card->is_away = card->is_unnamed = card->is_of_earlier_life = true;
    card->session = info->session;
    desk->unnamed_count++;
    desk_card_known(desk, card, info->consumer);
}

/* One that nobody could wait for would look as if it held nothing, so without a card for each the group is not opened. */
sl_err desk_cards_of_earlier_life(sl_desk *desk)
{
    sl_group_info info;

    sl_group_consumers(desk->group, make_missing, desk);
    sl_group_info_get(desk->group, &info);
    return desk->cards_by_consumer.count < info.consumers[SL_CONSUMER_AWAY] ? SL_ERR_NOMEM : SL_OK;
}

void sl_card_learn(sl_card *card, sl_str name, sl_str user)
{
    sl_desk *const desk = card->desk;
    char *at = sl_alloc_take(desk->host->alloc, name.bytes + user.bytes);

    desk->unnamed_count -= card->is_unnamed;
    card->is_unnamed = false;
    card->tags[0] = sl_tag_of_name(name);
    card->tag_count = 1;
    if (at == NULL)
        return; /* it is found by its tag; only the text is missing */
    card->learnt = at;
    card->learnt_bytes = name.bytes + user.bytes;
    card->name = put_text(&at, name);
    card->user = put_text(&at, user);
}

void sl_desk_unnamed_cards(const sl_desk *desk, sl_card_fn *fn, void *ctx)
{
    if (desk->unnamed_count == 0)
        return;
    SL_LIST_EACH_SAFE (node, &desk->cards) {
        sl_card *const card = SL_CONTAINER_OF(node, sl_card, node);

        if (card->is_unnamed)
            fn(ctx, card);
    }
}

/* --- what the core says --- */

static void report(sl_card *card, sl_report_outcome outcome)
{
    if (!card->is_reported)
        sl_operators_report(card->desk->host, card, outcome);
    card->is_reported = true;
}

static sl_report_outcome outcome_of(const sl_card *card)
{
    if (card->is_dropped)
        return SL_REPORT_DROPPED;
    if (card->is_drained)
        return SL_REPORT_DRAINED;
    return card->is_away ? SL_REPORT_AWAY : SL_REPORT_LEFT;
}

static void on_durable(void *ctx, bool is_durable)
{
    sl_card *const card = ctx;

    if (!is_durable)
        return; /* the desk ends, and its cards with it */
    card->is_safe = true;
    report(card, outcome_of(card));
    let_go(card);
}

static void note_stopped(sl_card *card, const sl_effect *effect)
{
    if (effect->stopped.already_stopped)
        return;
    card->is_stopped = true;
    card->is_reported = false;
    card->asked_by = effect->stopped.asked_by;
    card->stopped_ns = desk_now_ns(card->desk);
    card->settled = card->released = card->lost = 0;
}

static void note_drained(sl_card *card, const sl_effect *effect)
{
    card->is_drained = true;
    card->ended_ns = desk_now_ns(card->desk);
    card->settled = effect->drained.settled;
    card->released = effect->drained.released;
    card->lost = effect->drained.lost;
    card->mark = (sl_desk_mark){ .fn = on_durable, .ctx = card };
    desk_mark_add(card->desk, &card->mark);
}

static void note_gone(sl_card *card)
{
    if (!card->is_drained)
        card->ended_ns = desk_now_ns(card->desk);
    if (card->is_stopped)
        report(card, outcome_of(card));
    desk_card_free(card);
}

static void note_reason(sl_card *card)
{
    const sl_str reason = card->desk->stop_reason;

    forget_reason(card);
    if (reason.bytes == 0)
        return;
    card->reason = sl_alloc_take(card->desk->host->alloc, reason.bytes);
    if (card->reason == NULL)
        return; /* it is told to stop all the same, in other words */
    memcpy(card->reason, reason.data, reason.bytes);
    card->reason_bytes = reason.bytes;
}

void desk_card_note(sl_desk *desk, const sl_effect *effect)
{
    sl_card *card = NULL;

    if (effect->kind == SL_EFFECT_STOP_REQUESTED)
        card = desk_card_find(desk, effect->stop_requested.consumer);
    else if (effect->kind == SL_EFFECT_STOPPED)
        card = desk_card_find(desk, effect->stopped.consumer);
    else if (effect->kind == SL_EFFECT_DRAINED)
        card = desk_card_find(desk, effect->drained.consumer);
    else if (effect->kind == SL_EFFECT_GONE)
        card = desk_card_find(desk, effect->gone.consumer);
    if (card == NULL)
        return;
    if (effect->kind == SL_EFFECT_STOP_REQUESTED)
        note_reason(card);
    else if (effect->kind == SL_EFFECT_STOPPED)
        note_stopped(card, effect);
    else if (effect->kind == SL_EFFECT_DRAINED)
        note_drained(card, effect);
    else
        note_gone(card);
}

/* The core forgets what it counted when the consumer goes. What it holds now is neither settled nor handed back by it. */
void desk_card_ends(sl_desk *desk, uint64_t consumer, bool is_away)
{
    sl_card *const card = desk_card_find(desk, consumer);
    sl_consumer_info info;

    if (card == NULL || sl_group_consumer(desk->group, consumer, &info) != SL_OK)
        return;
    card->is_away = is_away;
    card->held = info.in_flight;
    if (info.state != SL_CONSUMER_STOPPING)
        return;
    card->settled = info.settled;
    card->released = info.released;
    card->lost = info.lost + info.in_flight;
}

/* A program under an operator's stop may connect again and again; that is no drain that anybody wants to read about. */
void desk_card_joined(sl_card *card)
{
    sl_consumer_info info;

    card->is_reported = card->is_drained;
    if (sl_group_consumer(card->desk->group, card->consumer, &info) == SL_OK)
        sl_operators_joined(card, &info);
}

/* Another core has taken over: those that it does not know are gone, the others are away. */
void desk_cards_look(sl_desk *desk)
{
    SL_LIST_EACH_SAFE (node, &desk->cards) {
        sl_card *const card = SL_CONTAINER_OF(node, sl_card, node);
        sl_consumer_info info;

        card->is_away = true;
        if (desk->group == NULL || sl_group_consumer(desk->group, card->consumer, &info) != SL_OK)
            note_gone(card);
    }
}

void desk_card_dropped(sl_desk *desk, uint64_t consumer)
{
    sl_card *const card = desk_card_find(desk, consumer);

    if (card != NULL && !card->is_drained)
        card->is_dropped = true;
}

/* Nobody will ever know of them. One that is away and holds nothing had come to its end before. */
static void drop_card(sl_desk *desk, sl_card *card)
{
    sl_consumer_info info;

    if (desk->group != NULL && sl_group_consumer(desk->group, card->consumer, &info) == SL_OK &&
        !(info.state == SL_CONSUMER_AWAY && info.in_flight == 0)) {
        desk_card_ends(desk, card->consumer, card->is_away);
        card->is_lost = !card->is_safe;
        card->is_dropped = card->is_lost && !desk->host->stopping;
    }
    note_gone(card);
}

void desk_cards_end(sl_desk *desk)
{
    marks_drop(desk);
    while (!sl_list_empty(&desk->cards))
        drop_card(desk, SL_CONTAINER_OF(sl_list_first(&desk->cards), sl_card, node));
}

void desk_cards_free(sl_desk *desk)
{
    desk_cards_end(desk);
    desk_give(desk->host->alloc, desk->cards_by_consumer.table, desk->cards_length * sizeof(sl_map_node *));
    desk->cards_by_consumer.table = NULL;
    desk->cards_length = 0;
}

/* --- what operators do --- */

static sl_err may_act(const sl_desk *desk)
{
    switch (desk->state) {
    case DESK_LOADING:
    case DESK_OPENING: return SL_ERR_AGAIN;
    case DESK_OPEN: return SL_OK;
    case DESK_FAILED: break;
    }
    return SL_ERR_STORE_FAILED;
}

/* Those that the core has made active again. */
static void note_resumed(sl_desk *desk)
{
    SL_LIST_EACH (node, &desk->cards) {
        sl_card *const card = SL_CONTAINER_OF(node, sl_card, node);
        sl_consumer_info info;

        if (!card->is_stopped || sl_group_consumer(desk->group, card->consumer, &info) != SL_OK ||
            info.state != SL_CONSUMER_ACTIVE)
            continue;
        card->is_stopped = false;
        forget_reason(card);
    }
}

sl_err sl_desk_stop_tag(sl_desk *desk, uint64_t tag, const sl_stop *stop, sl_str reason, sl_desk_mark *mark)
{
    sl_err err = may_act(desk);

    if (err != SL_OK)
        return err;
    desk->stop_reason = reason;
    desk_enter(desk);
    err = sl_group_stop_tag(desk->group, tag, stop, desk_now_ns(desk));
    desk_leave(desk);
    desk->stop_reason = (sl_str){ 0 };
    if (err == SL_OK)
        desk_mark_add(desk, mark);
    return err;
}

sl_err sl_desk_resume_tag(sl_desk *desk, uint64_t tag, sl_desk_mark *mark)
{
    sl_err err = may_act(desk);

    if (err != SL_OK)
        return err;
    desk_enter(desk);
    err = sl_group_resume_tag(desk->group, tag, desk_now_ns(desk));
    desk_leave(desk);
    if (err != SL_OK)
        return err;
    note_resumed(desk);
    desk_mark_add(desk, mark);
    return SL_OK;
}

sl_err sl_desk_stop_one(sl_desk *desk, uint64_t consumer, const sl_stop *stop, sl_str reason)
{
    sl_err err = may_act(desk);

    if (err != SL_OK)
        return err;
    desk->stop_reason = reason;
    desk_enter(desk);
    err = sl_group_stop(desk->group, consumer, stop, desk_now_ns(desk));
    desk_leave(desk);
    desk->stop_reason = (sl_str){ 0 };
    return err;
}

sl_err sl_desk_resume_one(sl_desk *desk, uint64_t consumer)
{
    sl_err err = may_act(desk);

    if (err != SL_OK)
        return err;
    desk_enter(desk);
    err = sl_group_resume(desk->group, consumer, desk_now_ns(desk));
    desk_leave(desk);
    note_resumed(desk);
    return err;
}

/* --- for lists --- */

typedef struct walk {
    const sl_desk *desk;
    sl_desk_consumer_fn *fn;
    void *ctx;
} walk;

static void count_started(void *ctx, const sl_held *held)
{
    *(uint32_t *)ctx += held->started;
}

static void show(void *ctx, const sl_consumer_info *info)
{
    const walk *const w = ctx;
    sl_desk_consumer shown = { .info = *info, .card = desk_card_find(w->desk, info->consumer) };

    (void)sl_group_held(w->desk->group, info->consumer, count_started, &shown.started);
    shown.in_state_ns = desk_now_ns(w->desk) > info->since_ns ? desk_now_ns(w->desk) - info->since_ns : 0;
    w->fn(w->ctx, &shown);
}

void sl_desk_consumers(const sl_desk *desk, sl_desk_consumer_fn *fn, void *ctx)
{
    walk w = { desk, fn, ctx };

    if (desk->group != NULL && (desk->state == DESK_OPEN || desk->state == DESK_OPENING))
        sl_group_consumers(desk->group, show, &w);
}

void sl_desk_cards(const sl_desk *desk, sl_card_fn *fn, void *ctx)
{
    SL_LIST_EACH_SAFE (node, &desk->cards)
        fn(ctx, SL_CONTAINER_OF(node, sl_card, node));
}

sl_host *sl_desk_host(const sl_desk *desk)
{
    return desk->host;
}

bool sl_desk_has_consumers(const sl_desk *desk)
{
    return !sl_list_empty(&desk->cards);
}

sl_err sl_card_info(const sl_card *card, sl_consumer_info *ret_info)
{
    return sl_group_consumer(card->desk->group, card->consumer, ret_info);
}

void sl_desk_counts(const sl_desk *desk, sl_group_info *ret_info)
{
    *ret_info = (sl_group_info){ 0 };
    if (desk->group != NULL && desk->state != DESK_LOADING)
        sl_group_info_get(desk->group, ret_info);
}

bool sl_seat_is_stopped(const sl_seat *seat)
{
    sl_consumer_info info;

    return sl_group_consumer(seat->desk->group, seat->consumer, &info) == SL_OK &&
           info.state != SL_CONSUMER_ACTIVE;
}
