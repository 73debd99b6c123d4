/* server/groups/desk_stop.c — what operators do to the consumers of a group: stop them and let them go on, by rule or one by one.
 *
 * Every call of the core lets happen what is due, so cards of others may be gone afterwards. */
#include "server/groups/desk_private.h"

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
        desk_card_forget_reason(card);
    }
}

sl_err sl_desk_stop_tag(sl_desk *desk, uint64_t tag, const sl_stop *stop, sl_str reason, sl_desk_mark *mark)
{
    sl_err err = desk_may_act(desk);

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
    sl_err err = desk_may_act(desk);

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
    sl_err err = desk_may_act(desk);

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
    sl_err err = desk_may_act(desk);

    if (err != SL_OK)
        return err;
    desk_enter(desk);
    err = sl_group_resume(desk->group, consumer, desk_now_ns(desk));
    desk_leave(desk);
    note_resumed(desk);
    return err;
}
