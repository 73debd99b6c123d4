/* client/holding.c — see client/holding.h. */
#include "client/holding.h"

#include <assert.h>
#include <string.h>

enum {
    CHUNK_ENTRIES = 64
};

struct sl_holding_chunk {
    sl_holding_chunk *next;
    sl_holding_entry entries[CHUNK_ENTRIES];
};

/* --- life --- */

sl_err sl_holding_init(sl_holding *holding, const sl_alloc *alloc, sl_hash_seed seed, uint32_t capacity)
{
    *holding = (sl_holding){ .alloc = alloc, .seed = seed, .capacity = capacity };
    sl_list_init(&holding->free);
    sl_list_init(&holding->all);
    sl_list_init(&holding->starts);
    sl_list_init(&holding->extends);
    for (size_t i = 0; i < SL_HOLDING_VERB_COUNT_; i++)
        sl_list_init(&holding->queues[i]);
    holding->table_length = sl_map_table_length(capacity);
    holding->table = sl_alloc_take(alloc, holding->table_length * sizeof *holding->table);
    if (holding->table == NULL)
        return SL_ERR_NOMEM;
    sl_map_init(&holding->map, holding->table, holding->table_length);
    return SL_OK;
}

void sl_holding_done(sl_holding *holding)
{
    if (holding->table == NULL)
        return;
    while (!sl_list_empty(&holding->all))
        sl_holding_remove(holding, SL_CONTAINER_OF(sl_list_first(&holding->all), sl_holding_entry, all));
    while (holding->chunks != NULL) {
        sl_holding_chunk *const chunk = holding->chunks;
        holding->chunks = chunk->next;
        sl_alloc_give(holding->alloc, chunk, sizeof *chunk);
    }
    sl_alloc_give(holding->alloc, holding->table, holding->table_length * sizeof *holding->table);
    holding->table = NULL;
}

static bool take_chunk(sl_holding *holding)
{
    sl_holding_chunk *const chunk = sl_alloc_take(holding->alloc, sizeof *chunk);

    if (chunk == NULL)
        return false;
    chunk->next = holding->chunks;
    holding->chunks = chunk;
    for (size_t i = 0; i < CHUNK_ENTRIES; i++)
        sl_list_push_back(&holding->free, &chunk->entries[i].all);
    return true;
}

/* --- entries --- */

static uint64_t hash_of(const sl_holding *holding, sl_uuid id)
{
    return sl_hash(holding->seed, id.bytes, sizeof id.bytes);
}

sl_holding_entry *sl_holding_add(sl_holding *holding, sl_uuid id, uint64_t place)
{
    sl_holding_entry *held;

    if (holding->count == holding->capacity)
        return NULL;
    if (sl_list_empty(&holding->free) && !take_chunk(holding))
        return NULL;
    held = SL_CONTAINER_OF(sl_list_first(&holding->free), sl_holding_entry, all);
    sl_list_remove(&held->all);
    *held = (sl_holding_entry){ .id = id, .place = place };
    sl_list_push_back(&holding->all, &held->all);
    sl_list_init(&held->queue);
    sl_list_init(&held->start);
    sl_list_init(&held->extend);
    sl_map_insert(&holding->map, &held->by_id, hash_of(holding, id));
    holding->count++;
    holding->held_count++;
    return held;
}

static void uncount(sl_holding *holding, const sl_holding_entry *held)
{
    holding->count--;
    holding->held_count -= held->verb == SL_HOLDING_NONE;
    holding->said_count -= held->is_said;
    holding->user_count -= held->verb != SL_HOLDING_NONE && !held->is_own;
    holding->ghost_count -= held->is_ghost;
    holding->recalled_count -= held->is_recalled;
}

void sl_holding_remove(sl_holding *holding, sl_holding_entry *held)
{
    uncount(holding, held);
    sl_map_remove(&holding->map, &held->by_id);
    sl_list_remove(&held->queue);
    sl_list_remove(&held->start);
    sl_list_remove(&held->extend);
    sl_list_remove(&held->all);
    sl_list_push_front(&holding->free, &held->all);
    sl_holding_words_drop(holding, held->words);
    held->words = NULL;
}

/* --- finding --- */

/* The next entry with this id, beginning at a node of the map. */
static sl_holding_entry *with_id(sl_map_node *node, sl_uuid id)
{
    for (; node != NULL; node = sl_map_next(node)) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, by_id);
        if (sl_uuid_equal(held->id, id))
            return held;
    }
    return NULL;
}

static sl_holding_entry *first_with_id(const sl_holding *holding, sl_uuid id)
{
    return with_id(sl_map_find(&holding->map, hash_of(holding, id)), id);
}

static sl_holding_entry *next_with_id(const sl_holding_entry *held)
{
    return with_id(sl_map_next(&held->by_id), held->id);
}

static sl_holding_entry *held_from(sl_holding_entry *held)
{
    while (held != NULL && (held->verb != SL_HOLDING_NONE || held->is_own))
        held = next_with_id(held);
    return held;
}

sl_holding_entry *sl_holding_find_held(const sl_holding *holding, sl_uuid id)
{
    return held_from(first_with_id(holding, id));
}

sl_holding_entry *sl_holding_next_held(const sl_holding_entry *held)
{
    return held_from(next_with_id(held));
}

static bool is_rather(const sl_holding_entry *held, const sl_holding_entry *than, bool begun_first)
{
    if (held->is_own != than->is_own)
        return than->is_own;
    return begun_first && held->started && !than->started;
}

sl_holding_entry *sl_holding_find_marked(const sl_holding *holding, sl_uuid id, bool begun_first)
{
    sl_holding_entry *found = NULL;

    for (sl_holding_entry *held = first_with_id(holding, id); held != NULL; held = next_with_id(held))
        if (held->is_mark && (found == NULL || is_rather(held, found, begun_first)))
            found = held;
    return found;
}

sl_holding_entry *sl_holding_find_said(const sl_holding *holding, sl_uuid id)
{
    sl_holding_entry *first = NULL;

    for (sl_holding_entry *held = first_with_id(holding, id); held != NULL; held = next_with_id(held))
        if (held->is_said && (first == NULL || held->said_number < first->said_number))
            first = held;
    return first;
}

sl_holding_entry *sl_holding_find_place(const sl_holding *holding, sl_uuid id, uint64_t place)
{
    sl_holding_entry *held = first_with_id(holding, id);

    while (held != NULL && held->place != place)
        held = next_with_id(held);
    return held;
}

sl_holding_entry *sl_holding_find_recalled(const sl_holding *holding, sl_uuid id, uint64_t revision,
                                           uint64_t place)
{
    sl_holding_entry *held = holding->recalled_count == 0 ? NULL : first_with_id(holding, id);

    while (held != NULL && (!held->is_recalled || held->place != (held->is_placed ? place : revision)))
        held = next_with_id(held);
    return held;
}

sl_holding_entry *sl_holding_find_ghost(const sl_holding *holding)
{
    if (holding->ghost_count == 0)
        return NULL;
    SL_LIST_EACH (node, &holding->all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (held->is_ghost)
            return held;
    }
    return NULL;
}

sl_holding_entry *sl_holding_find_ended(const sl_holding *holding, uint64_t now_ns)
{
    SL_LIST_EACH (node, &holding->all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (held->verb == SL_HOLDING_NONE && held->lease_until_ns <= now_ns)
            return held;
    }
    return NULL;
}

/* --- saying --- */

void sl_holding_say(sl_holding *holding, sl_holding_entry *held, sl_holding_verb verb,
                    sl_holding_words *words)
{
    assert(held->verb == SL_HOLDING_NONE);
    assert(verb != SL_HOLDING_NONE);
    held->verb = verb;
    held->words = words;
    if (words != NULL)
        words->users++;
    holding->held_count--;
    holding->user_count += !held->is_own;
    sl_list_remove(&held->extend);
    sl_list_push_back(&holding->queues[verb], &held->queue);
}

void sl_holding_hold_back(sl_holding_entry *held)
{
    assert(held->verb != SL_HOLDING_NONE && !held->is_said);
    sl_list_remove(&held->queue);
}

void sl_holding_say_again(sl_holding *holding, sl_holding_entry *held)
{
    assert(held->verb != SL_HOLDING_NONE && !held->is_said && !held->is_ghost);
    if (sl_list_empty(&held->queue))
        sl_list_push_back(&holding->queues[held->verb], &held->queue);
}

void sl_holding_said(sl_holding *holding, sl_holding_entry *held)
{
    sl_list_remove(&held->queue);
    sl_list_remove(&held->start); /* its end tells more */
    held->is_said = true;
    held->said_number = ++holding->said_number;
    holding->said_count++;
}

void sl_holding_unsay_all(sl_holding *holding)
{
    SL_LIST_EACH (node, &holding->all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (!held->is_said)
            continue;
        held->is_said = false;
        held->was_said = true;
        holding->said_count--;
        sl_list_push_back(&holding->queues[held->verb], &held->queue);
    }
    assert(holding->said_count == 0);
}

void sl_holding_bury(sl_holding *holding, sl_holding_entry *held)
{
    assert((held->verb == SL_HOLDING_ACK || held->is_recalled) && held->is_said && !held->is_ghost);
    holding->said_count--;
    holding->user_count -= !held->is_own;
    holding->ghost_count++;
    held->is_said = false;
    held->is_own = held->is_ghost = true;
    sl_list_remove(&held->start);
}

void sl_holding_start(sl_holding *holding, sl_holding_entry *held)
{
    held->started = true;
    if (sl_list_empty(&held->start))
        sl_list_push_back(&holding->starts, &held->start);
}

void sl_holding_extend(sl_holding *holding, sl_holding_entry *held, uint32_t lease_ms)
{
    held->extend_ms = lease_ms;
    if (sl_list_empty(&held->extend))
        sl_list_push_back(&holding->extends, &held->extend);
}

/* --- words --- */

sl_holding_words *sl_holding_words_new(sl_holding *holding, int32_t action, const char *text, size_t bytes)
{
    sl_holding_words *const words = sl_alloc_take(holding->alloc, sizeof *words + bytes);

    if (words == NULL)
        return NULL;
    *words = (sl_holding_words){ .users = 1, .action = action, .bytes = bytes };
    if (bytes > 0)
        memcpy(words->text, text, bytes);
    return words;
}

void sl_holding_words_drop(sl_holding *holding, sl_holding_words *words)
{
    if (words == NULL || --words->users > 0)
        return;
    sl_alloc_give(holding->alloc, words, sizeof *words + words->bytes);
}
