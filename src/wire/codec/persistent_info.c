/* wire/codec/persistent_info.c — what GetInfo and List answer. */
#include "wire/persistent_control.h"

#include "wire/codec/persistent.pb-c.h"
#include "wire/codec/unpack.h"

typedef EventStore__Client__PersistentSubscriptions__SubscriptionInfo subscription_info;
typedef EventStore__Client__PersistentSubscriptions__SubscriptionInfo__ConnectionInfo connection_info;
typedef EventStore__Client__PersistentSubscriptions__SubscriptionInfo__Measurement measurement;

static measurement **to_measurements(sl_packer *packer, const sl_wire_group_connection *from)
{
    measurement **const list = sl_packer_take(packer, from->measurement_count * sizeof *list);
    measurement *const items = sl_packer_take(packer, from->measurement_count * sizeof *items);

    if (packer->failed)
        return NULL;
    for (size_t i = 0; i < from->measurement_count; i++) {
        event_store__client__persistent_subscriptions__subscription_info__measurement__init(&items[i]);
        items[i].key = sl_packer_text(packer, from->measurements[i].key);
        items[i].value = from->measurements[i].value;
        list[i] = &items[i];
    }
    return list;
}

static void to_connection(sl_packer *packer, const sl_wire_group_connection *from, connection_info *into)
{
    event_store__client__persistent_subscriptions__subscription_info__connection_info__init(into);
    into->from = sl_packer_text(packer, from->from);
    into->username = sl_packer_text(packer, from->username);
    into->connection_name = sl_packer_text(packer, from->connection_name);
    into->average_items_per_second = from->average_items_per_second;
    into->total_items = from->total_items;
    into->count_since_last_measurement = from->count_since_last_measurement;
    into->available_slots = from->available_slots;
    into->in_flight_messages = from->in_flight_messages;
    into->n_observed_measurements = from->measurement_count;
    into->observed_measurements = to_measurements(packer, from);
}

static connection_info **to_connections(sl_packer *packer, const sl_wire_group_info *from)
{
    connection_info **const list = sl_packer_take(packer, from->connection_count * sizeof *list);
    connection_info *const items = sl_packer_take(packer, from->connection_count * sizeof *items);

    if (packer->failed)
        return NULL;
    for (size_t i = 0; i < from->connection_count; i++) {
        to_connection(packer, &from->connections[i], &items[i]);
        list[i] = &items[i];
    }
    return list;
}

static void to_texts(sl_packer *packer, const sl_wire_group_info *from, subscription_info *into)
{
    into->event_source = sl_packer_text(packer, from->event_source);
    into->group_name = sl_packer_text(packer, from->group);
    into->status = sl_packer_text(packer, from->status);
    into->last_checkpointed_event_position = sl_packer_text(packer, from->last_checkpointed_position);
    into->last_known_event_position = sl_packer_text(packer, from->last_known_position);
    into->start_from = sl_packer_text(packer, from->start_from);
    into->named_consumer_strategy = sl_packer_text(packer, from->strategy);
}

static void to_settings(const sl_wire_group_info *from, subscription_info *into)
{
    into->resolve_link_tos = from->resolve_links;
    into->extra_statistics = from->extra_statistics;
    into->message_timeout_milliseconds = from->message_timeout_ms;
    into->max_retry_count = from->max_retry_count;
    into->live_buffer_size = from->live_buffer_size;
    into->buffer_size = from->buffer_size;
    into->read_batch_size = from->read_batch_size;
    into->check_point_after_milliseconds = from->checkpoint_after_ms;
    into->min_check_point_count = from->min_checkpoint_count;
    into->max_check_point_count = from->max_checkpoint_count;
    into->max_subscriber_count = from->max_subscriber_count;
    into->max_interrupts = from->max_interrupts;
    into->max_kills = from->max_kills;
}

static void to_counts(const sl_wire_group_info *from, subscription_info *into)
{
    into->average_per_second = from->average_per_second;
    into->total_items = from->total_items;
    into->count_since_last_measurement = from->count_since_last_measurement;
    into->read_buffer_count = from->read_buffer_count;
    into->live_buffer_count = from->live_buffer_count;
    into->retry_buffer_count = from->retry_buffer_count;
    into->total_in_flight_messages = from->in_flight_count;
    into->outstanding_messages_count = from->outstanding_count;
    into->parked_message_count = from->parked_count;
    into->stop_rules = from->stop_rules;
    into->everyone_stopped = from->everyone_stopped;
}

static void to_info(sl_packer *packer, const sl_wire_group_info *from, subscription_info *into)
{
    event_store__client__persistent_subscriptions__subscription_info__init(into);
    to_texts(packer, from, into);
    to_settings(from, into);
    to_counts(from, into);
    into->n_connections = from->connection_count;
    into->connections = to_connections(packer, from);
}

sl_err sl_wire_group_info_encode(const sl_wire_group_info *info, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__PersistentSubscriptions__GetInfoResp packed =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__GET_INFO_RESP__INIT;
    subscription_info inner;

    to_info(&packer, info, &inner);
    packed.subscription_info = &inner;
    return sl_pack(&packer, &packed.base, ret_message);
}

sl_err sl_wire_group_list_encode(const sl_wire_group_info *infos, size_t info_count, sl_arena *arena,
                                 sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__PersistentSubscriptions__ListResp packed =
        EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__LIST_RESP__INIT;
    subscription_info **const list = sl_packer_take(&packer, info_count * sizeof *list);
    subscription_info *const items = sl_packer_take(&packer, info_count * sizeof *items);

    if (packer.failed)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < info_count; i++) {
        to_info(&packer, &infos[i], &items[i]);
        list[i] = &items[i];
    }
    packed.n_subscriptions = info_count;
    packed.subscriptions = list;
    return sl_pack(&packer, &packed.base, ret_message);
}
