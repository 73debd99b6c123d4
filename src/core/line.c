/* core/line.c — one lane of a group: what was read of it, and what of that is not settled.
 *
 *      position   0 ......... 40 41 42 43 44 45 46 47 48 ........
 *      unsettled              41       44    46                      the list, ascending
 *      settled    <---------->    <--->   <>    <-->                 everything else below read_from
 *                             ^                       ^
 *                             checkpoint "below"      read_from
 *
 * What is settled is not stored: it is what lies between. A SETTLE record carries the gap that it makes, so
 * the set can be rebuilt from records (load.c); from then until all of that was read again, `settled` holds
 * what the records said about positions at and above read_from, and the messages they told of stand behind
 * `unread`. */
#include "core/group_private.h"

#include "base/cleanup.h"

#include <assert.h>

void sl_line_init(sl_line *line, uint64_t start, sl_range *ranges, uint32_t ranges_max)
{
    *line = (sl_line){ .read_from = start, .checkpoint = start };
    sl_list_init(&line->messages);
    line->unread = &line->messages;
    sl_ranges_init(&line->settled, ranges, ranges_max);
}

static sl_message *first_of(const sl_line *line)
{
    sl_list *const node = sl_list_first(&line->messages);

    return node == NULL ? NULL : SL_CONTAINER_OF(node, sl_message, line);
}

static sl_message *first_unread(const sl_line *line)
{
    return line->unread == &line->messages ? NULL : SL_CONTAINER_OF(line->unread, sl_message, line);
}

uint64_t sl_line_below(const sl_line *line)
{
    const sl_message *const first = first_of(line);

    return first == NULL ? line->read_from : sl_min_u64(first->position, line->read_from);
}

/* The gap that opens when this message is settled. */
sl_range sl_line_settled_around(const sl_line *line, const sl_message *message)
{
    const sl_list *const prev = message->line.prev, *const next = message->line.next;
    sl_range range = { .from = 0, .to = line->read_from };

    if (message->position >= line->read_from)
        return (sl_range){ message->position, message->position + 1 };
    if (prev != &line->messages)
        range.from = SL_CONTAINER_OF(prev, sl_message, line)->position + 1;
    if (next != &line->messages)
        range.to = sl_min_u64(range.to, SL_CONTAINER_OF(next, sl_message, line)->position);
    return range;
}

void sl_line_remove(sl_line *line, sl_message *message)
{
    if (line->unread == &message->line)
        line->unread = message->line.next;
    sl_list_remove(&message->line);
}

static bool position_before(const sl_pairing_node *a, const sl_pairing_node *b)
{
    return SL_CONTAINER_OF(a, const sl_message, again)->position <
           SL_CONTAINER_OF(b, const sl_message, again)->position;
}

/* Records tell of messages in the order of their deliveries. No message is in an index yet, so their nodes are free. */
void sl_line_sort(sl_line *line)
{
    sl_pairing sorted;

    sl_pairing_init(&sorted, position_before);
    SL_LIST_EACH_SAFE (node, &line->messages) {
        sl_list_remove(node);
        sl_pairing_insert(&sorted, &SL_CONTAINER_OF(node, sl_message, line)->again);
    }
    for (sl_pairing_node *node; (node = sl_pairing_min(&sorted)) != NULL;) {
        sl_pairing_remove(&sorted, node);
        sl_list_push_back(&line->messages, &SL_CONTAINER_OF(node, sl_message, again)->line);
    }
    line->unread = line->messages.next;
}

/* It is not in its stream any more: nobody can be given it again. */
static void vanish(sl_group *group, sl_line *line, sl_message *message)
{
    line->unread = message->line.next;
    message->vanished = message->read = true;
    message->sequence = line->sequence;
    if (message->index != SL_INDEX_HELD)
        sl_message_settle(group, message, SL_SETTLE_VANISHED);
}

/* Everything below `position` was read; what records told of and was not found there has vanished. */
static void pass(sl_group *group, sl_line *line, uint64_t position)
{
    sl_message *message;

    while ((message = first_unread(line)) != NULL && message->position < position) {
        if (message->settled)
            sl_message_free(group, message);
        else
            vanish(group, line, message);
    }
}

static void moved_to(sl_line *line, uint64_t read_from, uint32_t count)
{
    line->read_from = read_from;
    line->sequence += count;
    sl_ranges_drop_below(&line->settled, read_from);
}

static void read_again(sl_group *group, sl_line *line, sl_message *message)
{
    if (message->settled) { /* nothing but its place was left */
        sl_message_free(group, message);
        return;
    }
    line->unread = message->line.next;
    message->read = true;
    message->sequence = line->sequence;
    if (message->index == SL_INDEX_NOWHERE)
        sl_message_put(group, message);
}

/* After a restart there are places for everything that was known before it, and for nothing else: what comes new in
 * a lane that has nothing left to read again waits until the other lane has nothing either. Otherwise it could
 * take the last place from a message that everybody waits for. */
static bool has_place(const sl_group *group, const sl_line *line)
{
    if (sl_group_reads_again(group) && first_unread(line) == NULL)
        return false;
    return sl_group_room(group) > 0;
}

static sl_err read_new(sl_group *group, sl_line *line, const sl_offer *offer)
{
    sl_message *message;

    if (!has_place(group, line))
        return SL_ERR_FULL;
    message = sl_message_new(group, offer);
    if (message == NULL)
        return SL_ERR_FULL;
    sl_list_insert_before(line->unread, &message->line);
    message->read = true;
    message->sequence = line->sequence;
    sl_strategy_message_known(group, message);
    sl_message_put(group, message);
    return SL_OK;
}

sl_err sl_line_offer(sl_group *group, const sl_offer *offer)
{
    sl_line *const line = &group->lines[offer->place.lane];
    const uint64_t position = offer->place.position;
    sl_message *unread;
    sl_err err = SL_OK;

    if (position < line->read_from)
        return SL_OK;
    pass(group, line, position);
    moved_to(line, position, 0);
    unread = first_unread(line);
    if (unread != NULL && unread->position == position)
        read_again(group, line, unread);
    else if (!sl_ranges_has(&line->settled, position))
        err = read_new(group, line, offer);
    if (err == SL_OK)
        moved_to(line, position + 1, 1);
    return err;
}

bool sl_line_wants(const sl_line *line, uint64_t position)
{
    if (position < line->read_from)
        return false;
    for (const sl_list *node = line->unread; node != &line->messages; node = node->next) {
        const sl_message *const message = SL_CONTAINER_OF(node, const sl_message, line);

        if (message->position == position)
            return !message->settled;
        if (message->position > position)
            break;
    }
    return !sl_ranges_has(&line->settled, position);
}

void sl_line_advance(sl_group *group, sl_place place, uint32_t considered)
{
    sl_line *const line = &group->lines[place.lane];

    pass(group, line, place.position + 1);
    moved_to(line, sl_max_u64(line->read_from, place.position + 1), considered);
}

/* How many messages a checkpoint written now would pass. */
static uint64_t passed_since(const sl_line *line)
{
    const sl_message *const first = first_of(line);
    const bool read = first != NULL && first->position < line->read_from;

    return (read ? first->sequence : line->sequence) - line->checkpoint_sequence;
}

/* Is there enough for a checkpoint as soon as its time has come? An idle group writes what it has: otherwise
 * a quiet stream would be delivered again and again from an old checkpoint by whoever trusts checkpoints. */
static bool enough_for_timed(const sl_group *group, const sl_line *line)
{
    const uint64_t count = passed_since(line);

    return group->settings.checkpoint_after_ns > 0 && sl_line_below(line) != line->checkpoint &&
           (count >= group->settings.checkpoint_count_min || (count >= 1 && group->message_count == 0));
}

static uint64_t timed_at(const sl_group *group, const sl_line *line)
{
    return sl_add_sat_u64(line->checkpoint_at_ns, group->settings.checkpoint_after_ns);
}

static bool checkpoint_is_due(const sl_group *group, const sl_line *line)
{
    if (sl_line_below(line) == line->checkpoint)
        return false;
    if (passed_since(line) >= group->settings.checkpoint_count_max)
        return true;
    return enough_for_timed(group, line) && timed_at(group, line) <= group->now_ns;
}

void sl_line_checkpoint(sl_group *group, sl_lane lane)
{
    sl_line *const line = &group->lines[lane];

    if (!checkpoint_is_due(group, line))
        return;
    line->checkpoint_sequence += passed_since(line);
    line->checkpoint = sl_line_below(line);
    line->checkpoint_at_ns = group->now_ns;
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_CHECKPOINT,
                                       .checkpoint = { .lane = lane, .below = line->checkpoint } });
}

uint64_t sl_line_wake(const sl_group *group, sl_lane lane)
{
    const sl_line *const line = &group->lines[lane];

    return enough_for_timed(group, line) ? timed_at(group, line) : SL_NEVER;
}
