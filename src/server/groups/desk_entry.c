/* server/groups/desk_entry.c — the events of messages that the core knows, from offer to settle.
 *
 * Each is encoded once, in the form of ids that consumers of this group use (they mostly agree); an answer on its way out keeps its
 * event, so that a lease that ends meanwhile takes nothing from under it. Once it has left, the event goes if the store surely has
 * it (desk_fetch.c); the entry stays. */
#include "server/groups/desk_private.h"

#include <assert.h>

uint64_t desk_place_hash(const sl_desk *desk, sl_place place)
{
    const uint64_t words[2] = { place.lane, place.position };

    return sl_hash(desk->host->seed, words, sizeof words);
}

static void grow(sl_desk *desk)
{
    sl_map_node **const old = desk->entries.table;
    const size_t length = desk->entries_length;
    sl_map_node **table;

    if (desk->entries.count < length)
        return;
    table = sl_alloc_take(desk->host->alloc, 2 * length * sizeof *table);
    if (table == NULL)
        return; /* slower, not wrong */
    sl_map_resize(&desk->entries, table, 2 * length);
    desk->entries_length = 2 * length;
    desk_give(desk->host->alloc, old, length * sizeof *old);
}

desk_entry *desk_entry_find(const sl_desk *desk, sl_place place)
{
    for (sl_map_node *node = sl_map_find(&desk->entries, desk_place_hash(desk, place)); node != NULL;
         node = sl_map_next(node)) {
        desk_entry *const entry = SL_CONTAINER_OF(node, desk_entry, by_place);

        if (entry->lane == place.lane && entry->position == place.position)
            return entry;
    }
    return NULL;
}

desk_entry *desk_entry_new(sl_desk *desk, sl_place place, const sl_wire_read_event *event)
{
    desk_entry *const entry = sl_alloc_take(desk->host->alloc, sizeof *entry);

    if (entry == NULL)
        return NULL;
    *entry = (desk_entry){ .position = place.position,
                           .lane = (uint8_t)place.lane,
                           .log_position = event->commit_position,
                           .holds = 1,
                           .can_fetch = desk_fetch_can(desk, place, event) };
    if (desk_entry_fill(desk, entry, event) != SL_OK) {
        desk_give(desk->host->alloc, entry, sizeof *entry);
        return NULL;
    }
    grow(desk);
    sl_map_insert(&desk->entries, &entry->by_place, desk_place_hash(desk, place));
    desk->payload_bytes += sizeof *entry;
    return entry;
}

sl_err desk_entry_fill(sl_desk *desk, desk_entry *entry, const sl_wire_read_event *event)
{
    const size_t bytes = sl_persistent_body_size(event);
    uint8_t *const body = desk_room_take(desk, &desk->event_room, bytes);

    if (body == NULL)
        return SL_ERR_NOMEM;
    sl_persistent_body_encode(event, body, bytes);
    entry->body = body;
    entry->body_bytes = (uint32_t)bytes;
    entry->id_form = (uint8_t)(event->has_event ? event->event.id.form : event->link.id.form);
    desk->payload_bytes += bytes;
    return SL_OK;
}

static void drop_body(sl_desk *desk, desk_entry *entry)
{
    if (entry->body == NULL)
        return;
    desk->payload_bytes -= entry->body_bytes;
    desk_room_give(desk, &desk->event_room, entry->body, entry->body_bytes);
    entry->body = NULL;
    entry->body_bytes = 0;
}

void desk_entry_empty(sl_desk *desk, desk_entry *entry)
{
    if (!entry->can_fetch)
        return;
    drop_body(desk, entry);
    desk->reader_may_go = true;
}

void desk_entry_release(sl_desk *desk, desk_entry *entry)
{
    assert(entry->holds > 0);
    if (--entry->holds > 0)
        return;
    drop_body(desk, entry);
    desk->payload_bytes -= sizeof *entry;
    desk_give(desk->host->alloc, entry, sizeof *entry);
}

void desk_entry_forget(sl_desk *desk, desk_entry *entry)
{
    if (entry->unsent != NULL)
        desk_answer_free(entry->unsent);
    sl_map_remove(&desk->entries, &entry->by_place);
    desk_entry_release(desk, entry);
}

void desk_entries_free(sl_desk *desk)
{
    for (size_t i = 0; i < desk->entries_length; i++)
        while (desk->entries.table[i] != NULL)
            desk_entry_forget(desk, SL_CONTAINER_OF(desk->entries.table[i], desk_entry, by_place));
}
