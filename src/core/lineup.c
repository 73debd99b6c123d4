/* core/lineup.c — which message is next. */
#include "core/group_private.h"

#include <assert.h>

/* Delivered before, replayed from the parked ones, new: in this order, and by position in each. */
static unsigned rank(const sl_message *message)
{
    if (message->index == SL_INDEX_FRESH)
        return 2;
    return message->lane == SL_LANE_MAIN ? 0 : 1;
}

bool sl_message_before(const sl_message *a, const sl_message *b)
{
    return rank(a) != rank(b) ? rank(a) < rank(b) : a->position < b->position;
}

static bool again_before(const sl_pairing_node *a, const sl_pairing_node *b)
{
    return sl_message_before(SL_CONTAINER_OF(a, sl_message, again), SL_CONTAINER_OF(b, sl_message, again));
}

void sl_lineup_init(sl_lineup *queue)
{
    sl_pairing_init(&queue->again, again_before);
    sl_list_init(&queue->fresh);
}

void sl_lineup_insert(sl_lineup *queue, sl_message *message)
{
    assert(message->index == SL_INDEX_FRESH || message->index == SL_INDEX_AGAIN);
    if (message->index == SL_INDEX_FRESH)
        sl_list_push_back(&queue->fresh, &message->fresh);
    else
        sl_pairing_insert(&queue->again, &message->again);
}

void sl_lineup_remove(sl_lineup *queue, sl_message *message)
{
    assert(message->index == SL_INDEX_FRESH || message->index == SL_INDEX_AGAIN);
    if (message->index == SL_INDEX_FRESH)
        sl_list_remove(&message->fresh);
    else
        sl_pairing_remove(&queue->again, &message->again);
}

sl_message *sl_lineup_first(const sl_lineup *queue)
{
    if (sl_pairing_min(&queue->again) != NULL)
        return SL_CONTAINER_OF(sl_pairing_min(&queue->again), sl_message, again);
    if (!sl_list_empty(&queue->fresh))
        return SL_CONTAINER_OF(sl_list_first(&queue->fresh), sl_message, fresh);
    return NULL;
}
