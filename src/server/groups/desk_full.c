/* server/groups/desk_full.c — a disk without room: what a group does until there is some again.
 *
 *      the store refuses events          what may have to be parked needs one: such a nack waits here, in the words of its consumer, and
 *                                        nobody is told that it counts. What would be parked without being asked for,
 *                                        because its lease ran out too often, gets another try. All else goes on
 *      its reserve is half used          besides nothing is given out, so that what is left serves to settle what was
 *                                        (sl_group_hold)
 *      not even records are taken        the same, and besides consumers are not listened to
 *
 * A nack that waits keeps nobody else from settling. It is forgotten with its call: then the message goes back to the group, as if the
 * nack had not arrived. */
#include "server/groups/desk_private.h"

#include "base/cleanup.h"

enum {
    LATER_BYTES_MAX =
        1024 * 1024, /* of a group; what is beyond goes to the core, and its batch has to wait */
};

struct desk_later {
    sl_list node; /* seat->later */
    sl_nack nack;
    size_t bytes; /* of this block */
    uint32_t claim_count;
    uint32_t reason_bytes;
    sl_claim claims[]; /* and the reason behind them */
};

typedef struct desk_later desk_later;

void desk_full_look(sl_desk *desk)
{
    if (desk_is_full(desk) && desk->room_look.is_set)
        return; /* asked within the last second */
    desk->room = sl_store_room(desk->host->store);
    if (desk_is_full(desk))
        sl_alarm_set(desk->host, &desk->room_look, sl_clock_mono_ns(desk->host->clock) + DESK_SECOND_NS);
}

static desk_later *take_first(sl_desk *desk, sl_list *list)
{
    desk_later *const later = SL_CONTAINER_OF(sl_list_first(list), desk_later, node);

    sl_list_remove(&later->node);
    desk->later_bytes -= later->bytes;
    return later;
}

static void later_free(const sl_desk *desk, desk_later *later)
{
    desk_give(desk->host->alloc, later, later->bytes);
}

bool desk_nack_later(sl_seat *seat, const sl_claim *claims, uint32_t count, const sl_nack *nack,
                     sl_str reason)
{
    sl_desk *const desk = seat->desk;
    const uint32_t reason_bytes = (uint32_t)sl_min_u64(reason.bytes, DESK_REASON_BYTES);
    const size_t bytes = sizeof(desk_later) + count * sizeof *claims + reason_bytes;
    desk_later *later;

    if (!desk_is_full(desk) || nack->action == SL_NACK_SKIP || count == 0 ||
        desk->later_bytes + bytes > LATER_BYTES_MAX)
        return false;
    later = sl_alloc_take(desk->host->alloc, bytes);
    if (later == NULL)
        return false;
    *later =
        (desk_later){ .nack = *nack, .bytes = bytes, .claim_count = count, .reason_bytes = reason_bytes };
    memcpy(later->claims, claims, count * sizeof *claims);
    if (reason_bytes > 0)
        memcpy(later->claims + count, reason.data, reason_bytes);
    sl_list_push_back(&seat->later, &later->node);
    desk->later_bytes += bytes;
    return true;
}

/* The disk may be full again before all of them are said: what has to wait once more joins a list that nobody works on. */
static void say_now(sl_seat *seat)
{
    sl_list now;

    sl_list_init(&now);
    sl_list_splice(&now, &seat->later);
    while (!sl_list_empty(&now)) {
        desk_later *const later = take_first(seat->desk, &now);
        const sl_str reason = { (const char *)(later->claims + later->claim_count), later->reason_bytes };

        sl_seat_nack(seat, later->claims, later->claim_count, &later->nack, reason);
        later_free(seat->desk, later);
    }
}

void desk_nacks_go_on(sl_desk *desk)
{
    if (desk->later_bytes == 0 || desk_is_full(desk) || desk_is_stuck(desk))
        return;
    SL_LIST_EACH (node, &desk->seats)
        say_now(SL_CONTAINER_OF(node, sl_seat, node));
}

void desk_nacks_forget(sl_seat *seat)
{
    while (!sl_list_empty(&seat->later))
        later_free(seat->desk, take_first(seat->desk, &seat->later));
}
