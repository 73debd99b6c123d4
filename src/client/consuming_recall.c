/* client/consuming_recall.c — messages that an earlier process of this name was done with, and died before it heard so.
 *
 *      recall --> queued --said--> answered             with extensions: listed as held, and said at once
 *                   |                  \--lost--> ghost    told as unsure; settled again if it comes to us
 *                   +--> held back --event--> queued    without: nothing can be said of what this call was not given
 *                             \--time is over--> unsure
 *
 * Only id and revision are known of them, not the stream: the first that comes with both is it. */
#include "client/consuming.h"

#include <string.h>

static const char why_parked[] = "parked by an earlier process of this consumer, whose reason is not known";

static sl_holding_words *words_of(sl_consuming *c, const sl_consumer_finished *finished)
{
    const bool has_reason = finished->reason != NULL && finished->reason[0] != '\0';

    return finished->is_park
               ? consuming_words(c, SL_WIRE_NACK_PARK, has_reason ? finished->reason : why_parked)
               : NULL;
}

static sl_err recall_one(sl_consuming *c, const sl_consumer_finished *finished)
{
    sl_holding_words *const words = words_of(c, finished);
    sl_holding_entry *held;
    sl_uuid id;

    if (finished->is_park && words == NULL)
        return SL_ERR_NOMEM;
    memcpy(id.bytes, finished->id.bytes, sizeof id.bytes);
    held = sl_holding_add(&c->holding, id, finished->revision);
    if (held != NULL) {
        held->token = finished->lease_token;
        held->is_recalled = held->was_said = true; /* as far as anybody knows */
        c->holding.recalled_count++;
        sl_holding_say(&c->holding, held, finished->is_park ? SL_HOLDING_NACK : SL_HOLDING_ACK, words);
    }
    sl_holding_words_drop(&c->holding, words);
    return held == NULL ? SL_ERR_NOMEM : SL_OK;
}

static void remove_all(sl_consuming *c)
{
    SL_LIST_EACH_SAFE (node, &c->holding.all)
        sl_holding_remove(&c->holding, SL_CONTAINER_OF(node, sl_holding_entry, all));
}

sl_err sl_consuming_recall(sl_consuming *c, const sl_consumer_finished *finished, size_t count)
{
    sl_err err = SL_OK;

    if (count > SL_CONSUMER_FINISHED_MAX - c->holding.recalled_count)
        return SL_ERR_TOO_LARGE;
    c->holding.capacity += (uint32_t)count;
    for (size_t i = 0; i < count && err == SL_OK; i++)
        err = recall_one(c, &finished[i]);
    if (err != SL_OK)
        remove_all(c); /* before the first call there is nothing else */
    return err;
}

/* Each with what it is now; a callback may add words, but removes nothing. */
static bool is_waiting(const sl_holding_entry *held)
{
    return held->is_recalled && !held->is_said && !held->is_ghost;
}

void consuming_recalled_begin(sl_consuming *c)
{
    if (c->holding.recalled_count == 0)
        return;
    SL_LIST_EACH (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (!is_waiting(held))
            continue;
        if (c->extensions)
            sl_holding_say_again(&c->holding, held);
        else
            sl_holding_hold_back(held);
    }
}

static void finish_waiting(sl_consuming *c)
{
    SL_LIST_EACH_SAFE (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (is_waiting(held) && sl_list_empty(&held->queue))
            consuming_finish(c, held, SL_CONSUMER_UNSURE);
    }
}

void consuming_recalled_stop(sl_consuming *c)
{
    if (c->holding.recalled_count > 0)
        finish_waiting(c);
}

void sl_consuming_forget_recalled(sl_consuming *c)
{
    if (c->holding.recalled_count == 0)
        return;
    finish_waiting(c);
    SL_LIST_EACH_SAFE (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (held->is_recalled && held->is_ghost)
            sl_holding_remove(&c->holding, held);
    }
}

sl_holding_entry *consuming_recalled_find(sl_consuming *c, const sl_wire_read_event *event, sl_uuid id,
                                          uint64_t place)
{
    const uint64_t revision = event->has_event ? event->event.revision : event->link.revision;
    sl_holding_entry *const held = sl_holding_find_recalled(&c->holding, id, revision, place);

    if (held != NULL && !held->is_placed) {
        held->place = place;
        held->is_placed = true;
    }
    return held;
}
