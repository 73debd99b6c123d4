/* store/journal/groups.c — see groups.h. */
#include "store/journal/groups.h"

#include "store/array.h"
#include "store/journal/records.h"

#include <assert.h>
#include <string.h>

enum {
    STATE_AFTER = 1024, /* records since the last state, beyond as many as would fill its bytes */
    RECORD_BYTES_ABOUT = 40,
    TABLE_LENGTH_FIRST = 64
};

sl_err journal_groups_init(journal_groups *groups, const sl_alloc *alloc, sl_hash_seed seed)
{
    sl_map_node **const table = sl_alloc_take(alloc, TABLE_LENGTH_FIRST * sizeof *table);

    if (table == NULL)
        return SL_ERR_NOMEM;
    *groups = (journal_groups){ .alloc = alloc, .seed = seed };
    sl_map_init(&groups->map, table, TABLE_LENGTH_FIRST);
    sl_list_init(&groups->all);
    sl_list_init(&groups->due);
    return SL_OK;
}

static void group_free(const journal_groups *groups, journal_group *group)
{
    sl_alloc_give(groups->alloc, group->definition, group->definition_bytes);
    sl_alloc_give(groups->alloc, group, sizeof *group);
}

void journal_groups_done(journal_groups *groups)
{
    if (groups->alloc == NULL)
        return;
    journal_groups_keep(groups);
    SL_LIST_EACH_SAFE (node, &groups->all)
        group_free(groups, SL_CONTAINER_OF(node, journal_group, in_all));
    sl_alloc_give(groups->alloc, groups->undo, groups->undo_capacity * sizeof *groups->undo);
    sl_alloc_give(groups->alloc, groups->map.table, (groups->map.table_mask + 1) * sizeof(sl_map_node *));
    *groups = (journal_groups){ 0 };
}

/* --- finding, adding, removing --- */

static uint64_t hash_of(const journal_groups *groups, uint64_t number)
{
    return sl_hash(groups->seed, &number, sizeof number);
}

static journal_group *find_in_map(const journal_groups *groups, uint64_t number)
{
    for (sl_map_node *node = sl_map_find(&groups->map, hash_of(groups, number)); node != NULL;
         node = sl_map_next(node)) {
        journal_group *const group = SL_CONTAINER_OF(node, journal_group, node);

        if (group->number == number)
            return group;
    }
    return NULL;
}

static journal_group *find(journal_groups *groups, uint64_t number)
{
    if (groups->newest_found == NULL || groups->newest_found->number != number)
        groups->newest_found = find_in_map(groups, number);
    return groups->newest_found;
}

static sl_err reserve(journal_groups *groups)
{
    const size_t length = groups->map.table_mask + 1;
    sl_map_node **const old = groups->map.table;
    sl_map_node **table;
    journal_undo *const undo = sl_array_grow(groups->alloc, groups->undo, &groups->undo_capacity,
                                             sizeof *undo, groups->undo_count + 1);

    if (undo == NULL)
        return SL_ERR_NOMEM;
    groups->undo = undo;
    if (groups->map.count < length)
        return SL_OK;
    table = sl_alloc_take(groups->alloc, 2 * length * sizeof *table);
    if (table == NULL)
        return SL_ERR_NOMEM;
    sl_map_resize(&groups->map, table, 2 * length);
    sl_alloc_give(groups->alloc, old, length * sizeof *old);
    return SL_OK;
}

/* SL_OK or SL_ERR_NOMEM. The copy of nothing is NULL. */
static sl_err copy_text(const journal_groups *groups, sl_str text, char **ret_copy)
{
    char *copy = NULL;

    if (text.bytes > 0) {
        copy = sl_alloc_take(groups->alloc, text.bytes);
        if (copy == NULL)
            return SL_ERR_NOMEM;
        memcpy(copy, text.data, text.bytes);
    }
    *ret_copy = copy;
    return SL_OK;
}

static journal_group *group_new(const journal_groups *groups, uint64_t number, sl_str definition)
{
    journal_group *const group = sl_alloc_take(groups->alloc, sizeof *group);

    if (group == NULL)
        return NULL;
    *group = (journal_group){ .number = number, .definition_bytes = definition.bytes };
    sl_list_init(&group->in_all);
    sl_list_init(&group->in_due);
    if (copy_text(groups, definition, &group->definition) != SL_OK) {
        sl_alloc_give(groups->alloc, group, sizeof *group);
        return NULL;
    }
    return group;
}

static void insert(journal_groups *groups, journal_group *group)
{
    sl_map_insert(&groups->map, &group->node, hash_of(groups, group->number));
    sl_list_push_back(&groups->all, &group->in_all);
}

static void take_out(journal_groups *groups, journal_group *group)
{
    groups->newest_found = NULL;
    sl_map_remove(&groups->map, &group->node);
    sl_list_remove(&group->in_all);
    sl_list_remove(&group->in_due);
}

/* A place in the log where a group begins. */
typedef struct group_start {
    uint64_t position, segment;
} group_start;

static sl_err create(journal_groups *groups, uint64_t number, sl_str definition, group_start start)
{
    journal_group *group;

    if (find(groups, number) != NULL)
        return SL_ERR_EXISTS;
    if (reserve(groups) != SL_OK)
        return SL_ERR_NOMEM;
    group = group_new(groups, number, definition);
    if (group == NULL)
        return SL_ERR_NOMEM;
    group->start = start.position;
    group->state_end = start.position + 1;
    group->started_number = start.segment;
    insert(groups, group);
    groups->undo[groups->undo_count++] = (journal_undo){ .deed = JOURNAL_CREATED, .group = group };
    return SL_OK;
}

static sl_err remove_group(journal_groups *groups, uint64_t number)
{
    journal_group *const group = find(groups, number);

    if (group == NULL)
        return SL_ERR_NOT_FOUND;
    if (reserve(groups) != SL_OK)
        return SL_ERR_NOMEM;
    take_out(groups, group);
    groups->undo[groups->undo_count++] = (journal_undo){ .deed = JOURNAL_DELETED, .group = group };
    return SL_OK;
}

/* Does not count as a record: loading the group takes no longer because of it, so it is no reason to write a state. */
static sl_err update(journal_groups *groups, uint64_t number, sl_str definition)
{
    journal_group *const group = find(groups, number);
    char *copy;

    if (group == NULL)
        return SL_ERR_NOT_FOUND;
    if (reserve(groups) != SL_OK || copy_text(groups, definition, &copy) != SL_OK)
        return SL_ERR_NOMEM;
    groups->undo[groups->undo_count++] = (journal_undo){ .deed = JOURNAL_UPDATED,
                                                         .group = group,
                                                         .definition = group->definition,
                                                         .definition_bytes = group->definition_bytes };
    group->definition = copy;
    group->definition_bytes = definition.bytes;
    return SL_OK;
}

static sl_err count_records(journal_groups *groups, uint64_t number, uint64_t count)
{
    journal_group *const group = find(groups, number);

    if (group == NULL)
        return SL_ERR_NOT_FOUND;
    group->record_count += count;
    if (sl_list_empty(&group->in_due) &&
        group->record_count > STATE_AFTER + group->state_bytes / RECORD_BYTES_ABOUT)
        sl_list_push_back(&groups->due, &group->in_due);
    return SL_OK;
}

sl_err journal_groups_take(journal_groups *groups, const sl_op *op, uint64_t position, uint64_t segment)
{
    if (op->kind == SL_OP_GROUP_CREATE)
        return create(groups, op->group_create.group, op->group_create.definition,
                      (group_start){ position, segment });
    if (op->kind == SL_OP_GROUP_DELETE)
        return remove_group(groups, op->group_delete.group);
    if (op->kind == SL_OP_GROUP_UPDATE)
        return update(groups, op->group_update.group, op->group_update.definition);
    assert(op->kind == SL_OP_GROUP_RECORD);
    return count_records(groups, op->group_record.group, op->group_record.record_count);
}

void journal_groups_keep(journal_groups *groups)
{
    for (size_t i = 0; i < groups->undo_count; i++) {
        const journal_undo *const undo = &groups->undo[i];

        if (undo->deed == JOURNAL_DELETED)
            group_free(groups, undo->group);
        else if (undo->deed == JOURNAL_UPDATED)
            sl_alloc_give(groups->alloc, undo->definition, undo->definition_bytes);
    }
    groups->undo_count = 0;
}

static void take_back(journal_groups *groups, const journal_undo *undo)
{
    journal_group *const group = undo->group;

    switch (undo->deed) {
    case JOURNAL_CREATED:
        take_out(groups, group);
        group_free(groups, group);
        break;
    case JOURNAL_DELETED: insert(groups, group); break;
    case JOURNAL_UPDATED:
        sl_alloc_give(groups->alloc, group->definition, group->definition_bytes);
        group->definition = undo->definition;
        group->definition_bytes = undo->definition_bytes;
        break;
    }
}

void journal_groups_rollback(journal_groups *groups)
{
    while (groups->undo_count > 0)
        take_back(groups, &groups->undo[--groups->undo_count]);
}

/* --- states --- */

void journal_groups_stated(journal_group *group, uint64_t start, uint64_t end, uint64_t segment)
{
    group->start = start;
    group->state_end = end;
    group->started_number = segment;
    group->record_count = 0;
    group->unfinished = 0;
    sl_list_remove(&group->in_due);
}

uint64_t journal_groups_from(const journal_groups *groups, uint64_t segment)
{
    SL_LIST_EACH (node, &groups->all) {
        const journal_group *const group = SL_CONTAINER_OF(node, const journal_group, in_all);

        if (group->started_number < segment)
            segment = group->started_number;
    }
    return segment;
}

/* --- reading again --- */

static void replay_first(journal_group *group, uint64_t position, uint64_t segment)
{
    group->unfinished = position;
    group->unfinished_number = segment;
    group->unfinished_bytes = 0;
}

static void replay_part(journal_group *group, const sl_group_state *part, uint64_t position)
{
    if (group->unfinished ==
        0) /* its beginning was in an older segment: replaced since, or it would be read as well */
        return;
    group->unfinished_bytes += part->byte_count;
    if (!part->is_last)
        return;
    group->state_bytes = group->unfinished_bytes;
    journal_groups_stated(group, group->unfinished, position + 1, group->unfinished_number);
}

/* A first part may be the first that is seen of a group: what created it is in an older segment. */
static sl_err replay_state(journal_groups *groups, const sl_record_view *record, uint64_t segment)
{
    sl_group_state part;
    journal_group *group;
    sl_err err = sl_group_state_get(record, &part);

    if (err != SL_OK)
        return err;
    if (part.is_first && find(groups, part.group) == NULL) {
        err = create(groups, part.group, part.definition, (group_start){ record->position, segment });
        if (err != SL_OK)
            return err;
        find(groups, part.group)->state_end = 0;
    }
    group = find(groups, part.group);
    if (group == NULL)
        return SL_OK;
    if (part.is_first)
        replay_first(group, record->position, segment);
    replay_part(group, &part, record->position);
    return SL_OK;
}

/* Only counted here. One that does not add up is told when it is loaded, if it still counts then. */
static sl_err replay_records(journal_groups *groups, uint64_t number, sl_str rest)
{
    uint64_t count = 0;
    sl_effect effect;

    while (rest.bytes > 0 && sl_group_next(&rest, &effect) == SL_OK)
        count++;
    return count_records(groups, number, count);
}

sl_err journal_groups_replay(journal_groups *groups, const sl_record_view *record, uint64_t segment)
{
    uint64_t number;
    sl_str rest;
    sl_err err = sl_group_get(record, &number, &rest);

    if (err != SL_OK)
        return err;
    if (record->kind == SL_RECORD_GROUP_STATE)
        err = replay_state(groups, record, segment);
    else if (record->kind == SL_RECORD_GROUP_CREATE)
        err = create(groups, number, rest, (group_start){ record->position, segment });
    else if (record->kind == SL_RECORD_GROUP_DELETE)
        err = remove_group(groups, number);
    else if (record->kind == SL_RECORD_GROUP_UPDATE)
        err = update(groups, number, rest);
    else
        err = replay_records(groups, number, rest);
    journal_groups_keep(groups);
    /* The first segment may begin in the middle of a group whose state comes later. */
    return err == SL_ERR_NOT_FOUND ? SL_OK : err;
}

/* --- loading --- */

static sl_err load_records(const sl_loader *loader, uint64_t group, sl_str rest)
{
    sl_effect effect;
    sl_err err;

    do {
        err = sl_group_next(&rest, &effect);
        if (err == SL_OK)
            err = loader->record(loader->ctx, group, &effect);
    } while (err == SL_OK && rest.bytes > 0);
    return err;
}

static sl_err load_state(const sl_loader *loader, const sl_record_view *record)
{
    sl_group_state part;
    sl_effect effect;
    sl_str rest = { 0 };
    sl_err err = sl_group_state_get(record, &part);

    if (err == SL_OK)
        rest = sl_group_state_records(&part);
    while (err == SL_OK && rest.bytes > 0) {
        err = sl_group_state_next(&rest, &effect);
        if (err == SL_OK)
            err = loader->record(loader->ctx, part.group, &effect);
    }
    return err;
}

sl_err journal_groups_load(const journal_groups *groups, const sl_record_view *record,
                           const sl_loader *loader)
{
    const journal_group *group;
    uint64_t number;
    sl_str rest;
    sl_err err = sl_group_get(record, &number, &rest);

    group = err == SL_OK ? find_in_map(groups, number) : NULL;
    if (group == NULL || record->position < group->start)
        return err;
    if (group->state_end == 0)
        return SL_ERR_CORRUPT; /* there is no complete beginning of this group */
    if (record->position == group->start)
        err = loader->group(loader->ctx, number, (sl_str){ group->definition, group->definition_bytes });
    if (err == SL_OK && record->kind == SL_RECORD_GROUP_STATE && record->position < group->state_end)
        err = load_state(loader, record);
    if (err == SL_OK && record->kind == SL_RECORD_GROUP && record->position >= group->state_end)
        err = load_records(loader, number, rest);
    return err;
}
