/* server/groups/desk_failures.c — what went wrong with messages that are tried again: the history that stands in their link when they
 * are parked.
 *
 * Kept in memory, and only for messages that have failed. The room for it is bounded, and when it is full the oldest go: no message waits
 * or fails because its history cannot be kept. One delivery fails once: a nack that comes after its lease ran out says why, and takes
 * the place of what was noted then. */
#include "server/groups/desk_private.h"

#include "base/cleanup.h"
#include "server/json.h"

enum {
    TABLE_LENGTH_FIRST = 8,
    TIME_BYTES = 64,
};

static desk_failure *of_node(sl_map_node *node)
{
    return node == NULL ? NULL : SL_CONTAINER_OF(node, desk_failure, by_place);
}

static desk_failure *first_at(desk_failure *failure, sl_place place)
{
    while (failure != NULL &&
           (failure->place.lane != place.lane || failure->place.position != place.position))
        failure = of_node(sl_map_next(&failure->by_place));
    return failure;
}

/* The newest, and the one before it. */
static desk_failure *newest_of(const sl_desk *desk, sl_place place)
{
    if (desk->failures.count == 0)
        return NULL;
    return first_at(of_node(sl_map_find(&desk->failures, desk_place_hash(desk, place))), place);
}

static desk_failure *before(const desk_failure *failure)
{
    return first_at(of_node(sl_map_next(&failure->by_place)), failure->place);
}

/* --- room --- */

static void give_table(sl_desk *desk)
{
    desk_give(desk->host->alloc, desk->failures.table, desk->failures_length * sizeof *desk->failures.table);
    desk->failures.table = NULL;
    desk->failures_length = 0;
}

static void drop(sl_desk *desk, desk_failure *failure)
{
    const size_t bytes = sizeof *failure + failure->bytes;

    sl_map_remove(&desk->failures, &failure->by_place);
    sl_list_remove(&failure->by_age);
    desk->failures_bytes -= bytes;
    desk_give(desk->host->alloc, failure, bytes);
    if (desk->failures.count == 0)
        give_table(desk);
}

static void make_room(sl_desk *desk, size_t bytes)
{
    while (desk->failures_bytes + bytes > DESK_FAILURES_BYTES_MAX)
        drop(desk, SL_CONTAINER_OF(sl_list_first(&desk->failures_by_age), desk_failure, by_age));
}

/* False: there is no table. One that is too small is slower, not wrong. */
static bool make_table(sl_desk *desk)
{
    sl_map_node **const old = desk->failures.table;
    const size_t old_length = desk->failures_length;
    const size_t length = old == NULL ? TABLE_LENGTH_FIRST : 2 * old_length;
    sl_map_node **table;

    if (old != NULL && desk->failures.count < old_length)
        return true;
    table = sl_alloc_take(desk->host->alloc, length * sizeof *table);
    if (table == NULL)
        return old != NULL;
    if (old == NULL)
        sl_map_init(&desk->failures, table, length);
    else
        sl_map_resize(&desk->failures, table, length);
    desk->failures_length = length;
    desk_give(desk->host->alloc, old, old_length * sizeof *old);
    return true;
}

/* No character is cut in two. */
static size_t cut_bytes(sl_str text)
{
    size_t bytes = sl_min_u64(text.bytes, DESK_FAILURE_REASON_BYTES);

    while (bytes > 0 && bytes < text.bytes && ((uint8_t)text.data[bytes] & 0xc0) == 0x80)
        bytes--;
    return bytes;
}

/* --- noting and forgetting --- */

/* What the last delivery brought before is replaced, and of too many the oldest goes. */
static void make_place(sl_desk *desk, sl_place place, uint32_t delivery)
{
    desk_failure *failure = newest_of(desk, place), *oldest = NULL;
    uint32_t count = 0;

    if (failure != NULL && failure->delivery == delivery) {
        drop(desk, failure);
        failure = newest_of(desk, place);
    }
    for (; failure != NULL; failure = before(failure)) {
        oldest = failure;
        count++;
    }
    if (count >= DESK_FAILURES_MAX)
        drop(desk, oldest);
}

static void note(sl_desk *desk, const desk_failure *noted, sl_str reason)
{
    const size_t text_bytes = cut_bytes(reason), bytes = sizeof *noted + text_bytes;
    desk_failure *failure;

    make_place(desk, noted->place, noted->delivery);
    make_room(desk, bytes);
    if (!make_table(desk))
        return;
    failure = sl_alloc_take(desk->host->alloc, bytes);
    if (failure == NULL)
        return;
    *failure = *noted;
    failure->bytes = (uint32_t)text_bytes;
    failure->at_ns = sl_clock_wall_ns(desk->host->clock);
    if (text_bytes > 0)
        memcpy(failure->text, reason.data, text_bytes);
    sl_map_insert(&desk->failures, &failure->by_place, desk_place_hash(desk, noted->place));
    sl_list_push_back(&desk->failures_by_age, &failure->by_age);
    desk->failures_bytes += bytes;
}

static sl_str words_of(const sl_desk *desk, sl_back_cause cause)
{
    switch (cause) {
    case SL_BACK_NACKED: return desk->nack_reason;
    case SL_BACK_INTERRUPTED: return SL_STR("It was handed back unfinished too often.");
    case SL_BACK_EXPIRED: return SL_STR("There was no answer before the lease ran out.");
    case SL_BACK_LEFT: return SL_STR("Its consumer left without an answer.");
    case SL_BACK_DIED: return SL_STR("Its consumer was lost and did not come back for it in time.");
    case SL_BACK_RELEASED:
    case SL_BACK_COUNT_: break;
    }
    return SL_STR("");
}

void desk_failure_back(sl_desk *desk, const sl_effect *back)
{
    const sl_counters *const counters = &back->back.counters;

    if (back->back.charged || back->back.cause == SL_BACK_NACKED)
        note(desk,
             &(desk_failure){
                 .place = back->back.place, .attempt = counters->attempts, .delivery = counters->deliveries },
             words_of(desk, back->back.cause));
}

/* A delivery that leads to the end is not charged any more, unless its lease had run out before. */
uint32_t desk_failure_last_attempt(const sl_desk *desk, const sl_effect *park)
{
    const sl_counters *const counters = &park->park.counters;
    const desk_failure *const newest = newest_of(desk, park->park.place);

    if (newest != NULL && newest->delivery == counters->deliveries)
        return newest->attempt;
    return counters->attempts + (counters->attempts < UINT32_MAX);
}

void desk_failure_park(sl_desk *desk, const sl_effect *park, sl_back_cause last)
{
    note(desk,
         &(desk_failure){ .place = park->park.place,
                          .attempt = desk_failure_last_attempt(desk, park),
                          .delivery = park->park.counters.deliveries },
         words_of(desk, last));
}

void desk_failures_forget(sl_desk *desk, sl_place place)
{
    for (desk_failure *failure; (failure = newest_of(desk, place)) != NULL;)
        drop(desk, failure);
}

void desk_failures_free(sl_desk *desk)
{
    while (!sl_list_empty(&desk->failures_by_age))
        drop(desk, SL_CONTAINER_OF(sl_list_first(&desk->failures_by_age), desk_failure, by_age));
}

/* --- telling --- */

sl_str desk_failure_reason(const sl_desk *desk, const sl_effect *park)
{
    const desk_failure *const newest = newest_of(desk, park->park.place);

    if (newest == NULL || newest->delivery != park->park.counters.deliveries)
        return SL_STR("");
    return (sl_str){ newest->text, newest->bytes };
}

/* NULL: out of memory. */
static cJSON *failure_item(const desk_failure *failure)
{
    char reason_buffer[DESK_FAILURE_REASON_BYTES + 1], time_buffer[TIME_BYTES];
    cJSON *const item = cJSON_CreateObject();
    sl_text reason, time;

    sl_text_init(&reason, reason_buffer, sizeof reason_buffer);
    sl_text_add_str(&reason, (sl_str){ failure->text, failure->bytes });
    sl_text_init(&time, time_buffer, sizeof time_buffer);
    sl_text_add_time(&time, failure->at_ns);
    if (item != NULL && sl_json_add(item, "attempt", cJSON_CreateNumber(failure->attempt)) &&
        sl_json_add(item, "time", cJSON_CreateString(time_buffer)) &&
        sl_json_add(item, "reason", cJSON_CreateString(reason_buffer)))
        return item;
    cJSON_Delete(item);
    return NULL;
}

cJSON *desk_failures_history(const sl_desk *desk, sl_place place)
{
    cJSON *const array = cJSON_CreateArray();

    for (const desk_failure *failure = newest_of(desk, place); failure != NULL; failure = before(failure)) {
        cJSON *const item = array == NULL ? NULL : failure_item(failure);

        if (item == NULL || !cJSON_InsertItemInArray(array, 0, item)) {
            cJSON_Delete(item);
            cJSON_Delete(array);
            return NULL;
        }
    }
    return array;
}
