/* server/services.h — the rows of all methods, by service; methods.c lists them. */
#ifndef SL_SERVER_SERVICES_H
#define SL_SERVER_SERVICES_H

#include "server/method.h"

/* event_store.client.streams.Streams */
extern const sl_method sl_method_streams_append, sl_method_streams_batch_append;
extern const sl_method sl_method_streams_delete, sl_method_streams_tombstone;
extern const sl_method sl_method_streams_read;

/* kurrentdb.protocol.v2.streams.StreamsService */
extern const sl_method sl_method_streams_v2_append_session, sl_method_streams_v2_append_records;

/* event_store.client.persistent_subscriptions.PersistentSubscriptions */
extern const sl_method sl_method_persistent_create, sl_method_persistent_update, sl_method_persistent_delete;
extern const sl_method sl_method_persistent_get_info, sl_method_persistent_list;
extern const sl_method sl_method_persistent_replay_parked, sl_method_persistent_truncate_parked;
extern const sl_method sl_method_persistent_restart_subsystem, sl_method_persistent_read;

/* event_store.client.server_features.ServerFeatures, gossip, operations, monitoring */
extern const sl_method sl_method_features_get_supported_methods;
extern const sl_method sl_method_gossip_read;
extern const sl_method sl_method_operations_start_scavenge, sl_method_operations_stop_scavenge;
extern const sl_method sl_method_operations_shutdown, sl_method_operations_merge_indexes;
extern const sl_method sl_method_operations_resign_node, sl_method_operations_set_node_priority;
extern const sl_method sl_method_operations_restart_persistent_subscriptions;
extern const sl_method sl_method_monitoring_stats;

/* sluice.operators.Operators */
extern const sl_method sl_method_operators_consumers, sl_method_operators_stop, sl_method_operators_resume;

/* event_store.client.users.Users */
extern const sl_method sl_method_users_create, sl_method_users_update, sl_method_users_delete;
extern const sl_method sl_method_users_disable, sl_method_users_enable, sl_method_users_details;
extern const sl_method sl_method_users_change_password, sl_method_users_reset_password;

#endif
