/* wire/codec/server_control.c — features, members, operations and statistics. Users are in users_control.c. */
#include "wire/server_control.h"

#include "wire/codec/gossip.pb-c.h"
#include "wire/codec/monitoring.pb-c.h"
#include "wire/codec/operations.pb-c.h"
#include "wire/codec/serverfeatures.pb-c.h"
#include "wire/codec/unpack.h"

#include <string.h>

/* --- ServerFeatures --- */

typedef EventStore__Client__ServerFeatures__SupportedMethods supported_methods;
typedef EventStore__Client__ServerFeatures__SupportedMethod supported_method;

sl_err sl_supported_methods_decode(sl_str message, sl_arena *arena, sl_supported_methods *ret_methods,
                                   const char **ret_reason)
{
    supported_methods *unpacked;
    sl_supported_method *methods;
    const sl_err err = sl_unpack(&event_store__client__server_features__supported_methods__descriptor,
                                 message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    methods = sl_arena_alloc_zero(arena, unpacked->n_methods * sizeof *methods);
    if (methods == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < unpacked->n_methods; i++) {
        const supported_method *const from = unpacked->methods[i];
        methods[i].method = sl_unpacked_text(from->method_name);
        methods[i].service = sl_unpacked_text(from->service_name);
        methods[i].feature_count = from->n_features;
        if (!sl_unpacked_texts(arena, from->features, from->n_features, &methods[i].features))
            return SL_ERR_NOMEM;
    }
    *ret_methods =
        (sl_supported_methods){ .methods = methods,
                                .method_count = unpacked->n_methods,
                                .version = sl_unpacked_text(unpacked->event_store_server_version) };
    return SL_OK;
}

sl_err sl_supported_methods_encode(const sl_supported_methods *methods, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    supported_methods packed = EVENT_STORE__CLIENT__SERVER_FEATURES__SUPPORTED_METHODS__INIT;
    supported_method **const list = sl_packer_take(&packer, methods->method_count * sizeof *list);
    supported_method *const items = sl_packer_take(&packer, methods->method_count * sizeof *items);

    if (packer.failed)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < methods->method_count; i++) {
        const sl_supported_method *const from = &methods->methods[i];
        event_store__client__server_features__supported_method__init(&items[i]);
        items[i].method_name = sl_packer_text(&packer, from->method);
        items[i].service_name = sl_packer_text(&packer, from->service);
        items[i].n_features = from->feature_count;
        items[i].features = sl_packer_texts(&packer, from->features, from->feature_count);
        list[i] = &items[i];
    }
    packed.n_methods = methods->method_count;
    packed.methods = list;
    packed.event_store_server_version = sl_packer_text(&packer, methods->version);
    return sl_pack(&packer, &packed.base, ret_message);
}

/* --- Gossip --- */

sl_err sl_cluster_info_encode(const sl_cluster_member *member, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__Gossip__ClusterInfo packed = EVENT_STORE__CLIENT__GOSSIP__CLUSTER_INFO__INIT;
    EventStore__Client__Gossip__MemberInfo info = EVENT_STORE__CLIENT__GOSSIP__MEMBER_INFO__INIT;
    EventStore__Client__Gossip__MemberInfo *members[] = { &info };
    EventStore__Client__Gossip__EndPoint end_point = EVENT_STORE__CLIENT__GOSSIP__END_POINT__INIT;
    EventStore__Client__UUID id = EVENT_STORE__CLIENT__UUID__INIT;
    EventStore__Client__UUID__Structured halves = EVENT_STORE__CLIENT__UUID__STRUCTURED__INIT;

    packed.n_members = 1;
    packed.members = members;
    info.instance_id = &id;
    id.value_case = EVENT_STORE__CLIENT__UUID__VALUE_STRUCTURED;
    id.structured = &halves;
    sl_uuid_to_halves(member->instance, &halves.most_significant_bits, &halves.least_significant_bits);
    info.time_stamp = (int64_t)member->now_ticks;
    info.state = (EventStore__Client__Gossip__MemberInfo__VNodeState)member->state;
    info.is_alive = member->is_alive;
    info.http_end_point = &end_point;
    end_point.address = sl_packer_text(&packer, member->address);
    end_point.port = member->port;
    return sl_pack(&packer, &packed.base, ret_message);
}

static sl_uuid instance_of(const EventStore__Client__UUID *id)
{
    sl_uuid uuid = { 0 };

    if (id == NULL)
        return uuid;
    if (id->value_case == EVENT_STORE__CLIENT__UUID__VALUE_STRUCTURED)
        return sl_uuid_from_halves(id->structured->most_significant_bits,
                                   id->structured->least_significant_bits);
    if (id->value_case == EVENT_STORE__CLIENT__UUID__VALUE_STRING)
        (void)sl_uuid_parse(id->string, strlen(id->string), &uuid); /* what is no UUID stays zero */
    return uuid;
}

static sl_cluster_member from_member(const EventStore__Client__Gossip__MemberInfo *info)
{
    sl_cluster_member member = { .instance = instance_of(info->instance_id),
                                 .now_ticks = (uint64_t)info->time_stamp,
                                 .state = (sl_member_state)info->state,
                                 .is_alive = info->is_alive };

    if (info->http_end_point != NULL) {
        member.address = sl_unpacked_text(info->http_end_point->address);
        member.port = info->http_end_point->port;
    }
    return member;
}

sl_err sl_cluster_info_decode(sl_str message, sl_arena *arena, sl_cluster_info *ret_info,
                              const char **ret_reason)
{
    EventStore__Client__Gossip__ClusterInfo *unpacked;
    sl_cluster_member *members;
    const sl_err err = sl_unpack(&event_store__client__gossip__cluster_info__descriptor, message, arena,
                                 &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    members = sl_arena_alloc_zero(arena, unpacked->n_members * sizeof *members);
    if (members == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < unpacked->n_members; i++)
        members[i] = from_member(unpacked->members[i]);
    *ret_info = (sl_cluster_info){ .members = members, .member_count = unpacked->n_members };
    return SL_OK;
}

/* --- Operations --- */

sl_err sl_scavenge_start_decode(sl_str message, sl_arena *arena, sl_scavenge_start *ret_start,
                                const char **ret_reason)
{
    EventStore__Client__Operations__StartScavengeReq *unpacked;
    const sl_err err = sl_unpack(&event_store__client__operations__start_scavenge_req__descriptor, message,
                                 arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_start = (sl_scavenge_start){ 0 };
    if (unpacked->options != NULL) {
        ret_start->thread_count = unpacked->options->thread_count;
        ret_start->start_from_chunk = unpacked->options->start_from_chunk;
    }
    return SL_OK;
}

sl_err sl_scavenge_stop_decode(sl_str message, sl_arena *arena, sl_str *ret_scavenge_id,
                               const char **ret_reason)
{
    EventStore__Client__Operations__StopScavengeReq *unpacked;
    const sl_err err = sl_unpack(&event_store__client__operations__stop_scavenge_req__descriptor, message,
                                 arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_scavenge_id =
        unpacked->options == NULL ? (sl_str){ 0 } : sl_unpacked_text(unpacked->options->scavenge_id);
    return SL_OK;
}

sl_err sl_scavenge_response_encode(sl_str scavenge_id, sl_scavenge_result result, sl_arena *arena,
                                   sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__Operations__ScavengeResp packed =
        EVENT_STORE__CLIENT__OPERATIONS__SCAVENGE_RESP__INIT;

    packed.scavenge_id = sl_packer_text(&packer, scavenge_id);
    packed.scavenge_result = (EventStore__Client__Operations__ScavengeResp__ScavengeResult)result;
    return sl_pack(&packer, &packed.base, ret_message);
}

sl_err sl_node_priority_decode(sl_str message, sl_arena *arena, int32_t *ret_priority,
                               const char **ret_reason)
{
    EventStore__Client__Operations__SetNodePriorityReq *unpacked;
    const sl_err err = sl_unpack(&event_store__client__operations__set_node_priority_req__descriptor, message,
                                 arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_priority = unpacked->priority;
    return SL_OK;
}

/* --- Monitoring --- */

sl_err sl_stats_request_decode(sl_str message, sl_arena *arena, sl_stats_request *ret_request,
                               const char **ret_reason)
{
    EventStore__Client__Monitoring__StatsReq *unpacked;
    const sl_err err = sl_unpack(&event_store__client__monitoring__stats_req__descriptor, message, arena,
                                 &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_request = (sl_stats_request){ .use_metadata = unpacked->use_metadata,
                                       .refresh_ms = unpacked->refresh_time_period_in_ms };
    return SL_OK;
}

sl_err sl_stats_encode(const sl_wire_label *stats, size_t stat_count, sl_arena *arena, sl_str *ret_message)
{
    typedef EventStore__Client__Monitoring__StatsResp__StatsEntry entry;
    sl_packer packer = { .arena = arena };
    EventStore__Client__Monitoring__StatsResp packed = EVENT_STORE__CLIENT__MONITORING__STATS_RESP__INIT;
    entry **const list = sl_packer_take(&packer, stat_count * sizeof *list);
    entry *const items = sl_packer_take(&packer, stat_count * sizeof *items);

    if (packer.failed)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < stat_count; i++) {
        event_store__client__monitoring__stats_resp__stats_entry__init(&items[i]);
        items[i].key = sl_packer_text(&packer, stats[i].key);
        items[i].value = sl_packer_text(&packer, stats[i].value);
        list[i] = &items[i];
    }
    packed.n_stats = stat_count;
    packed.stats = list;
    return sl_pack(&packer, &packed.base, ret_message);
}
