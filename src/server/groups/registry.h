/* server/groups/registry.h — all persistent subscriptions of this server, by stream and name.
 *
 * Loaded from the store before clients are served (sl_store_load), changed by the management calls: what is made, changed or deleted is
 * answered when it is durable. */
#ifndef SL_SERVER_GROUPS_REGISTRY_H
#define SL_SERVER_GROUPS_REGISTRY_H

#include "server/groups/desk.h"

typedef struct sl_registry sl_registry;

enum {
    SL_GROUPS_MAX = 10 * 1000
};

/* For host.c: made with the host; loads everything at once (sl_store_load may wait for the disk, as opening does).
 *   SL_OK, SL_ERR_NOMEM, SL_ERR_CORRUPT, SL_ERR_IO; `problem` says which group */
sl_err sl_registry_new(sl_host *host, sl_text *problem, sl_registry **ret_registry);
void sl_registry_free(sl_registry *registry);

/* NULL when there is none. */
sl_desk *sl_registry_find(const sl_registry *registry, sl_str stream, sl_str group);

/* Each in turn, sorted by stream, then by name; stream empty: all. */
typedef void sl_desk_fn(void *ctx, sl_desk *desk);
void sl_registry_each(const sl_registry *registry, sl_str stream, sl_desk_fn *fn, void *ctx);
bool sl_registry_knows_stream(const sl_registry *registry,
                              sl_str stream); /* it has or had a group in this life */

typedef void sl_registry_done_fn(void *ctx, sl_err err);

/* done() comes once, when it is durable or refused:
 *   SL_OK, SL_ERR_EXISTS (create), SL_ERR_NOT_FOUND, SL_ERR_FULL (SL_GROUPS_MAX), what the store says
 * If the function itself gives an error, done() is not called. */
sl_err sl_registry_create(sl_registry *registry, const sl_group_definition *definition,
                          sl_registry_done_fn *done, void *ctx);
sl_err sl_registry_update(sl_registry *registry, const sl_group_definition *definition,
                          sl_registry_done_fn *done, void *ctx);
sl_err sl_registry_delete(sl_registry *registry, sl_str stream, sl_str group, sl_registry_done_fn *done,
                          void *ctx);

/* All desks are closed and loaded again, as RestartSubsystem asks: consumers are dropped, nothing is lost. */
sl_err sl_registry_restart(sl_registry *registry);

#endif
