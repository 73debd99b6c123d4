/* wire/codec/persistent_answer.c — what GetInfo and List have answered, as a client reads it. */
#include "wire/persistent_client.h"

#include "wire/codec/persistent.pb-c.h"
#include "wire/codec/unpack.h"

typedef EventStore__Client__PersistentSubscriptions__SubscriptionInfo subscription_info;
typedef EventStore__Client__PersistentSubscriptions__SubscriptionInfo__ConnectionInfo connection_info;

static bool from_measurements(const connection_info *from, sl_arena *arena, sl_wire_group_connection *into)
{
    sl_wire_group_measurement *const list =
        sl_arena_alloc(arena, from->n_observed_measurements * sizeof *list);

    if (list == NULL)
        return false;
    for (size_t i = 0; i < from->n_observed_measurements; i++) {
        list[i].key = sl_unpacked_text(from->observed_measurements[i]->key);
        list[i].value = from->observed_measurements[i]->value;
    }
    into->measurements = list;
    into->measurement_count = from->n_observed_measurements;
    return true;
}

static bool from_connection(const connection_info *from, sl_arena *arena, sl_wire_group_connection *into)
{
    *into = (sl_wire_group_connection){
        .from = sl_unpacked_text(from->from),
        .username = sl_unpacked_text(from->username),
        .connection_name = sl_unpacked_text(from->connection_name),
        .average_items_per_second = from->average_items_per_second,
        .total_items = from->total_items,
        .count_since_last_measurement = from->count_since_last_measurement,
        .available_slots = from->available_slots,
        .in_flight_messages = from->in_flight_messages,
    };
    return from_measurements(from, arena, into);
}

static bool from_connections(const subscription_info *from, sl_arena *arena, sl_wire_group_info *into)
{
    sl_wire_group_connection *const list = sl_arena_alloc(arena, from->n_connections * sizeof *list);

    if (list == NULL)
        return false;
    for (size_t i = 0; i < from->n_connections; i++) {
        if (!from_connection(from->connections[i], arena, &list[i]))
            return false;
    }
    into->connections = list;
    into->connection_count = from->n_connections;
    return true;
}

static void from_settings(const subscription_info *from, sl_wire_group_info *into)
{
    into->start_from = sl_unpacked_text(from->start_from);
    into->strategy = sl_unpacked_text(from->named_consumer_strategy);
    into->resolve_links = from->resolve_link_tos;
    into->extra_statistics = from->extra_statistics;
    into->message_timeout_ms = from->message_timeout_milliseconds;
    into->max_retry_count = from->max_retry_count;
    into->live_buffer_size = from->live_buffer_size;
    into->buffer_size = from->buffer_size;
    into->read_batch_size = from->read_batch_size;
    into->checkpoint_after_ms = from->check_point_after_milliseconds;
    into->min_checkpoint_count = from->min_check_point_count;
    into->max_checkpoint_count = from->max_check_point_count;
    into->max_subscriber_count = from->max_subscriber_count;
    into->max_interrupts = from->max_interrupts;
    into->max_kills = from->max_kills;
}

static void from_counts(const subscription_info *from, sl_wire_group_info *into)
{
    into->average_per_second = from->average_per_second;
    into->total_items = from->total_items;
    into->count_since_last_measurement = from->count_since_last_measurement;
    into->read_buffer_count = from->read_buffer_count;
    into->live_buffer_count = from->live_buffer_count;
    into->retry_buffer_count = from->retry_buffer_count;
    into->in_flight_count = from->total_in_flight_messages;
    into->outstanding_count = from->outstanding_messages_count;
    into->parked_count = from->parked_message_count;
    into->stop_rules = from->stop_rules;
    into->everyone_stopped = from->everyone_stopped;
}

static bool from_info(const subscription_info *from, sl_arena *arena, sl_wire_group_info *into)
{
    *into = (sl_wire_group_info){
        .event_source = sl_unpacked_text(from->event_source),
        .group = sl_unpacked_text(from->group_name),
        .status = sl_unpacked_text(from->status),
        .last_checkpointed_position = sl_unpacked_text(from->last_checkpointed_event_position),
        .last_known_position = sl_unpacked_text(from->last_known_event_position),
    };
    from_settings(from, into);
    from_counts(from, into);
    return from_connections(from, arena, into);
}

sl_err sl_wire_group_info_decode(sl_str message, sl_arena *arena, sl_wire_group_info *ret_info,
                                 const char **ret_reason)
{
    EventStore__Client__PersistentSubscriptions__GetInfoResp *unpacked;
    sl_wire_group_info info = { 0 };
    const sl_err err = sl_unpack(&event_store__client__persistent_subscriptions__get_info_resp__descriptor,
                                 message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    if (unpacked->subscription_info != NULL && !from_info(unpacked->subscription_info, arena, &info))
        return SL_ERR_NOMEM;
    *ret_info = info;
    return SL_OK;
}

sl_err sl_wire_group_list_decode(sl_str message, sl_arena *arena, sl_wire_group_infos *ret_infos,
                                 const char **ret_reason)
{
    EventStore__Client__PersistentSubscriptions__ListResp *unpacked;
    sl_wire_group_info *list;
    const sl_err err = sl_unpack(&event_store__client__persistent_subscriptions__list_resp__descriptor,
                                 message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    list = sl_arena_alloc(arena, unpacked->n_subscriptions * sizeof *list);
    for (size_t i = 0; i < unpacked->n_subscriptions; i++) {
        if (list == NULL || !from_info(unpacked->subscriptions[i], arena, &list[i]))
            return SL_ERR_NOMEM;
    }
    if (list == NULL)
        return SL_ERR_NOMEM;
    *ret_infos = (sl_wire_group_infos){ list, unpacked->n_subscriptions };
    return SL_OK;
}
