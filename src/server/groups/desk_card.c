/* server/groups/desk_card.c — cards of consumers (card.h): made, found, and what the core says of each.
 *
 * What the core says of a consumer is noted here as it comes by. A consumer is safe to terminate when DRAINED was said of it and
 * the log is durable up to there, so its card then waits for the disk like an answer does; also when its call ends meanwhile,
 * and the core has forgotten it. */
#include "server/groups/desk_private.h"

#include "server/groups/names.h"
#include "server/groups/operators.h"

#include <assert.h>

enum {
    TABLE_LENGTH_FIRST = 8,
    CARDS_MAX = 2 * SL_DESK_CONSUMERS_MAX, /* as many are gone and wait for the disk as the core may know */
};

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

        watcher->held = card->is_drained && !card->is_dropped ? card->lost : card->held;
        watcher->is_lost = card->is_lost;
        watcher->was_handed_back = card->was_handed_back;
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
    sl_card *card;

    if (desk->cards_by_consumer.count >= CARDS_MAX || !grow(desk))
        return NULL;
    card = sl_alloc_take(desk->host->alloc, bytes);
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

void desk_card_forget_reason(sl_card *card)
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
        if (desk->next_card == &card->node)
            desk->next_card = card->node.next;
        sl_map_remove(&desk->cards_by_consumer, &card->by_consumer);
        sl_list_remove(&card->node);
    }
    desk_card_forget_reason(card);
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
    if (card->is_gone)
        desk_card_free(card);
}

static void note_stopped(sl_card *card, const sl_effect *effect)
{
    if (effect->stopped.already_stopped)
        return;
    card->is_stopped = true;
    card->is_reported = false;
    card->asked_by = effect->stopped.asked_by;
    card->stopped_ns = desk_now_ns(card->desk);
    card->settled = card->released = card->lost = card->interrupted = 0;
}

/* What must be durable is what desk->wants_sync says now, so desk_emit() takes the answer first, which may move it. */
static void note_drained(sl_card *card, const sl_effect *effect)
{
    card->is_drained = true;
    card->ended_ns = desk_now_ns(card->desk);
    card->settled = effect->drained.settled;
    card->released = effect->drained.released;
    card->lost = effect->drained.lost;
    card->interrupted = effect->drained.interrupted;
    card->mark = (sl_desk_mark){ .fn = on_durable, .ctx = card };
    desk_mark_add(card->desk, &card->mark);
}

static void forget(sl_card *card)
{
    if (!card->is_drained)
        card->ended_ns = desk_now_ns(card->desk);
    if (card->is_stopped)
        report(card, outcome_of(card));
    desk_card_free(card);
}

/* "Drained" may be told only when it is durable, also of one that has gone meanwhile. */
static void note_gone(sl_card *card)
{
    if (card->is_drained && !card->is_safe)
        card->is_gone = true;
    else
        forget(card);
}

/* Who only adds a wish to a stop that there is may have no other reason for it. */
static void note_reason(sl_card *card)
{
    const sl_str reason = card->desk->stop_reason;

    if (card->is_stopped && reason.bytes == 0)
        return;
    desk_card_forget_reason(card);
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
    card->interrupted = info.interrupted;
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

/* A client without extensions is not told to give up what it works on, and others get that at once: when its program connects again
 * nothing of it is back. */
void desk_card_dropped(sl_desk *desk, uint64_t consumer)
{
    sl_card *const card = desk_card_find(desk, consumer);
    const sl_seat *const seat = desk_seat_find(desk, consumer);
    sl_consumer_info info;

    if (card == NULL || card->is_drained || sl_group_consumer(desk->group, consumer, &info) != SL_OK)
        return;
    card->is_dropped = true;
    card->held = info.in_flight;
    card->was_handed_back = seat != NULL && !seat->extensions;
}

/* One that is away and holds nothing had come to its end before. */
static bool is_at_its_end(const sl_desk *desk, const sl_card *card)
{
    sl_consumer_info info;

    if (card->is_gone) /* its last word is not durable, and never will be */
        return false;
    if (desk->group == NULL || sl_group_consumer(desk->group, card->consumer, &info) != SL_OK)
        return true;
    return info.state == SL_CONSUMER_AWAY && info.in_flight == 0;
}

/* Nobody will ever know of them. */
static void drop_card(sl_desk *desk, sl_card *card)
{
    if (!is_at_its_end(desk, card)) {
        desk_card_ends(desk, card->consumer, card->is_away);
        card->is_lost = !card->is_safe;
        card->is_dropped = card->is_lost && !desk->host->stopping;
    }
    forget(card);
}

void desk_cards_end(sl_desk *desk)
{
    desk_marks_drop(desk);
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

void sl_desk_cards(sl_desk *desk, sl_card_fn *fn, void *ctx)
{
    assert(desk->next_card == NULL);
    for (sl_list *node = desk->cards.next; node != &desk->cards; node = desk->next_card) {
        desk->next_card = node->next;
        fn(ctx, SL_CONTAINER_OF(node, sl_card, node));
    }
    desk->next_card = NULL;
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
