/* server/groups/management.h — shared by the files that make, change, show and delete persistent subscriptions for clients. */
#ifndef SL_SERVER_GROUPS_MANAGEMENT_H
#define SL_SERVER_GROUPS_MANAGEMENT_H

#include "server/groups/registry.h"
#include "server/request.h"

#define MANAGEMENT_SERVICE "event_store.client.persistent_subscriptions.PersistentSubscriptions"

enum {
    MANAGEMENT_CREATE_BYTES_MAX = 256 * 1024, /* more than the largest filter, so that it can be named */
    MANAGEMENT_NAME_BYTES_MAX = 16 * 1024,    /* requests that only name a group */
};

/* What ServerFeatures says of each of these methods: groups of a stream, groups of $all. */
extern const sl_str management_features[];
enum {
    MANAGEMENT_FEATURE_COUNT = 2
};

/* "$all" for everything. */
sl_str management_stream(sl_wire_source source, sl_str stream);

/* The desk that a request names. NULL: the call is over. */
sl_desk *management_find(sl_request *request, sl_str stream, sl_str group);

/* From a decoded Create to a definition, or from an Update, where `stored` is the one that it changes. Checked up to the start
 * position. False: the call is over. */
bool management_define(sl_request *request, const sl_wire_group_request *asked,
                       const sl_group_definition *stored, sl_group_definition *ret_definition);

/* What the real server looks at when it makes the group, after everything else. False: the call is over. */
bool management_check_rest(sl_request *request, const sl_group_definition *definition);

/* RestartSubsystem, and Operations.RestartPersistentSubscriptions: every consumer is dropped, every group loaded again. */
void sl_management_restart(sl_request *request);

#endif
