/* server/methods.c — the list of everything that is offered, and sentences for what is not.
 *
 * A look-up compares lengths before bytes, so for the few dozen rows there are it touches one or two names. */
#include "server/services.h"

/* One line for each, so that parts can be added side by side. */
/* clang-format off */
const sl_method *const sl_methods[] = {
    /* event_store.client.streams.Streams */
    &sl_method_streams_read,
    &sl_method_streams_append,
    &sl_method_streams_batch_append,
    &sl_method_streams_delete,
    &sl_method_streams_tombstone,

    /* kurrentdb.protocol.v2.streams.StreamsService */
    &sl_method_streams_v2_append_session,
    &sl_method_streams_v2_append_records,

    /* event_store.client.persistent_subscriptions.PersistentSubscriptions */
    &sl_method_persistent_read,
    &sl_method_persistent_create,
    &sl_method_persistent_update,
    &sl_method_persistent_delete,
    &sl_method_persistent_get_info,
    &sl_method_persistent_list,
    &sl_method_persistent_replay_parked,
    &sl_method_persistent_truncate_parked,
    &sl_method_persistent_restart_subsystem,

    /* event_store.client.server_features.ServerFeatures, gossip, operations, monitoring */
    &sl_method_features_get_supported_methods,
    &sl_method_gossip_read,
    &sl_method_operations_start_scavenge,
    &sl_method_operations_stop_scavenge,
    &sl_method_operations_shutdown,
    &sl_method_operations_merge_indexes,
    &sl_method_operations_resign_node,
    &sl_method_operations_set_node_priority,
    &sl_method_operations_restart_persistent_subscriptions,
    &sl_method_monitoring_stats,

    /* sluice.operators.Operators */
    &sl_method_operators_consumers,
    &sl_method_operators_stop,
    &sl_method_operators_resume,

    /* event_store.client.users.Users */
    &sl_method_users_create,
    &sl_method_users_update,
    &sl_method_users_delete,
    &sl_method_users_disable,
    &sl_method_users_enable,
    &sl_method_users_details,
    &sl_method_users_change_password,
    &sl_method_users_reset_password,

    NULL, /* the end; not counted */
};
/* clang-format on */
const size_t sl_method_count = sizeof sl_methods / sizeof sl_methods[0] - 1;

typedef struct missing {
    sl_str service; /* or its beginning */
    const char *why;
} missing;

/* Clients know these services and call them; the first row that fits counts. */
static const missing missing_services[] = {
    { SL_STR_INIT("event_store.client.projections."),
      "Sluice has no projections. Read the stream with a subscription and fold it in the client." },
    { SL_STR_INIT("event_store.client.redaction."), "Sluice cannot redact single events. Delete or truncate "
                                                    "the stream and scavenge to remove data for good." },
    { SL_STR_INIT("kurrent.client.redaction."), "Sluice cannot redact single events. Delete or truncate the "
                                                "stream and scavenge to remove data for good." },
    { SL_STR_INIT("kurrentdb.protocol.v2.index"),
      "Sluice has no secondary indexes. Read $all with a filter on the event type or the stream name." },
    { SL_STR_INIT("kurrentdb.protocol.v2.registry"),
      "Sluice has no schema registry. Events are stored as they are, whatever their schema." },
    { SL_STR_INIT("kurrentdb.protocol.v2.schema"),
      "Sluice has no schema registry. Events are stored as they are, whatever their schema." },
    { SL_STR_INIT("event_store.cluster."), "This is a single node: it takes part in no cluster, so there is "
                                           "nobody to elect and nothing to replicate." },
};

static bool is_path(const sl_method *method, sl_str service, sl_str name)
{
    return method->name.bytes == name.bytes && method->service.bytes == service.bytes &&
           sl_str_equal(method->name, name) && sl_str_equal(method->service, service);
}

static const char *why_missing(sl_str service)
{
    for (size_t i = 0; i < sizeof missing_services / sizeof missing_services[0]; i++)
        if (sl_str_starts_with(service, missing_services[i].service))
            return missing_services[i].why;
    return "Sluice offers no such method. ServerFeatures/GetSupportedMethods lists what it offers.";
}

const sl_method *sl_method_find(sl_str path, const char **ret_why)
{
    sl_str service = { NULL, 0 }, name = { NULL, 0 };

    if (sl_str_starts_with(path, SL_STR("/")))
        (void)sl_str_cut((sl_str){ path.data + 1, path.bytes - 1 }, '/', &service, &name);
    for (size_t i = 0; i < sl_method_count; i++)
        if (is_path(sl_methods[i], service, name))
            return sl_methods[i];
    *ret_why = why_missing(service);
    return NULL;
}
