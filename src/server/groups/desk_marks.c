/* server/groups/desk_marks.c — what is to be told when the log of a group is durable up to a record: promises to operators.
 *
 * Marks are in the order of the records that they need, because what a later one waits for is never before that of an earlier one. */
#include "server/groups/desk_private.h"

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

void desk_marks_drop(sl_desk *desk)
{
    while (!sl_list_empty(&desk->marks)) {
        sl_desk_mark *const mark = SL_CONTAINER_OF(sl_list_first(&desk->marks), sl_desk_mark, node);

        sl_list_remove(&mark->node);
        mark->fn(mark->ctx, false);
    }
}
