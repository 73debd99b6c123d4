/* server/groups/registry_private.h — all groups, as registry.c and registry_change.c share them. */
#ifndef SL_SERVER_GROUPS_REGISTRY_PRIVATE_H
#define SL_SERVER_GROUPS_REGISTRY_PRIVATE_H

#include "server/door.h"
#include "server/groups/registry.h"

enum {
    REGISTRY_PAST_STREAMS = 1024, /* whose groups were deleted: the latest of them */
    REGISTRY_ARENA_CHUNK_BYTES = 4 * 1024,
    REGISTRY_ARENA_BYTES_MAX = 1024 * 1024, /* a definition in pieces: some times its text */
};

typedef struct registry_entry {
    sl_map_node by_number;
    uint64_t number;
    sl_desk *desk;
    sl_desk *renewed; /* while it is loaded again */
    bool is_there;    /* it can be found. False: the store has not answered yet to its creation or deletion */
} registry_entry;

typedef struct registry_list { /* sorted by stream, then by name */
    registry_entry **items;
    size_t count, capacity;
} registry_list;

struct sl_registry {
    sl_host *host;
    sl_map by_number;
    size_t table_length;
    registry_list list;
    size_t groups_max;                            /* SL_GROUPS_MAX; tests have fewer */
    uint64_t next_number;                         /* above all that are there */
    sl_list changes;                              /* registry_change.c */
    uint64_t past_streams[REGISTRY_PAST_STREAMS]; /* hashes */
    size_t past_stream_count;
};

static const sl_arena_sizes registry_arena_sizes = { REGISTRY_ARENA_CHUNK_BYTES, REGISTRY_ARENA_BYTES_MAX };

/* --- registry.c --- */

registry_entry *registry_find(const sl_registry *registry, sl_str stream, sl_str group);
registry_entry *registry_find_number(const sl_registry *registry, uint64_t number);

/* Is there one whose parked messages would be in the same stream? */
bool registry_key_is_taken(const sl_registry *registry, const sl_group_definition *definition);

/* Takes the desk, also when there is no memory. It is not there yet. SL_OK or SL_ERR_NOMEM. */
sl_err registry_add(sl_registry *registry, sl_desk *desk, registry_entry **ret_entry);

/* With its desk: consumers are dropped. */
void registry_forget(sl_registry *registry, registry_entry *e);

/* A new desk from what the store has. The old one stays when that fails. */
sl_err registry_reload(sl_registry *registry, registry_entry *e);

/* --- registry_change.c --- */

/* The registry goes; the store may still answer. */
void registry_changes_orphan(sl_registry *registry);

#endif
