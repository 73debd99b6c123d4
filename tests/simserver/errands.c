/* tests/simserver/errands.c — those who append, manage groups and stop consumers: one call at a time, and again when its end is not
 * known and matters. */
#include "world.h"

#include "base/cleanup.h"
#include "wire/persistent_client.h"
#include "wire/streams_codec.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define GROUPS_SERVICE "/event_store.client.persistent_subscriptions.PersistentSubscriptions/"

void clerk_init(clerk *k, world *w)
{
    *k = (clerk){ .world = w };
    k->peer.world = w;
    network_pipe_init(&k->peer.up);
    network_pipe_init(&k->peer.down);
}

bool clerk_ask(clerk *k, errand what)
{
    if (k->now.kind != ERRAND_NONE)
        return false;
    k->now = what;
    k->again = true;
    return true;
}

/* --- appends --- */

static bool send_append_options(clerk *k, const char *stream)
{
    const sl_append_request request = { .kind = SL_APPEND_REQUEST_OPTIONS,
                                        .options = { .stream = sl_str_from(stream),
                                                     .expected = { .kind = SL_WIRE_REVISION_ANY } } };
    uint8_t bytes[256];
    const size_t size = sl_append_request_size(&request);

    assert(size <= sizeof bytes);
    sl_append_request_encode(&request, bytes, size);
    return world_call_send(&k->call, bytes, size);
}

static sl_uuid next_id(world *w, uint32_t stream)
{
    sl_uuid id = { { 0xaa, 1 } };
    const uint32_t number = w->event_count + 1;

    memcpy(id.bytes + 8, &number, sizeof number);
    w->events[w->event_count].id = id;
    w->events[w->event_count].stream = stream;
    w->event_count++;
    return id;
}

static bool send_event(clerk *k, uint32_t stream)
{
    world *const w = k->world;
    char metadata[64];
    const int metadata_bytes =
        snprintf(metadata, sizeof metadata, "{\"$correlationId\":\"k%u\"}", sim_pick(&w->rng, 4));
    const sl_append_request request = { .kind = SL_APPEND_REQUEST_EVENT,
                                        .event = { .id = { next_id(w, stream), SL_WIRE_ID_STRUCTURED },
                                                   .type = SL_STR("made"),
                                                   .content_type = SL_STR("application/json"),
                                                   .custom_metadata = { metadata, (size_t)metadata_bytes },
                                                   .data = SL_STR("{\"a\":1}") } };
    uint8_t bytes[512];
    const size_t size = sl_append_request_size(&request);

    assert(size <= sizeof bytes);
    sl_append_request_encode(&request, bytes, size);
    report_count(&w->report, SITUATION_APPENDED);
    return world_call_send(&k->call, bytes, size);
}

static void send_append(clerk *k)
{
    world *const w = k->world;
    const uint32_t stream = sim_pick(&w->rng, w->stream_count);
    uint32_t count = (uint32_t)sim_between(&w->rng, 1, 12);
    char name[8];

    snprintf(name, sizeof name, "s%u", stream);
    if (count > w->event_count_max - w->event_count)
        count = w->event_count_max - w->event_count;
    report_say(&w->report, "append %u to %s", count, name);
    if (send_append_options(k, name))
        while (count-- > 0)
            (void)send_event(k, stream);
}

/* --- groups --- */

static sl_wire_group_request group_request(const world_group *g, bool next)
{
    return (sl_wire_group_request){
        .source = g->of_all ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM,
        .stream = sl_str_from(g->stream),
        .group = sl_str_from(g->name),
        .start = SL_WIRE_START_BEGIN,
        .has_settings = true,
        .settings = { .message_timeout = { .given = true, .value = next ? g->next_lease_ms : g->lease_ms },
                      .checkpoint_after = { .given = true, .value = 300 },
                      .max_retry_count = (int32_t)(next ? g->next_retries_max : g->retries_max),
                      .min_checkpoint_count = 2,
                      .max_checkpoint_count = 10,
                      .live_buffer_size = 40,
                      .read_batch_size = 7,
                      .history_buffer_size = 30,
                      .strategy = sl_str_from(next ? g->next_strategy : g->strategy) },
    };
}

static sl_err encode_group(const clerk *k, sl_arena *arena, sl_str *ret_message)
{
    const world_group *const g = &k->world->groups[k->now.group];
    sl_wire_group_request request = group_request(g, k->now.kind == ERRAND_UPDATE);
    const sl_str prefix = sl_str_from(g->filter);

    if (k->now.kind == ERRAND_UPDATE)
        return sl_wire_group_update_encode(&request, arena, ret_message);
    if (g->of_all)
        request.filter = (sl_wire_filter){ .kind = SL_WIRE_FILTER_GIVEN,
                                           .on = SL_WIRE_FILTER_ON_STREAM,
                                           .regex = g->regex ? prefix : SL_STR(""),
                                           .prefixes = &prefix,
                                           .prefix_count = g->regex ? 0 : 1 };
    return sl_wire_group_create_encode(&request, arena, ret_message);
}

static sl_wire_group_name name_of(const world_group *g)
{
    return (sl_wire_group_name){ .source = g->of_all ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM,
                                 .stream = sl_str_from(g->stream),
                                 .group = sl_str_from(g->name) };
}

static sl_err encode_stop(const clerk *k, sl_arena *arena, sl_str *ret_message)
{
    const world_stop *const stop = &k->world->stops[k->now.stop];
    const sl_wire_stop_request request = { .who = stop->who,
                                           .reason = SL_STR("the seed says so"),
                                           .hand_back_unstarted = stop->hand_back };

    return sl_wire_stop_request_encode(&request, arena, ret_message);
}

static sl_err encode(const clerk *k, sl_arena *arena, sl_str *ret_message)
{
    const world_group *const g = &k->world->groups[k->now.group];
    const sl_wire_group_name name = name_of(g);
    const sl_parked_request parked = { .name = name, .limit = SL_PARKED_LIMIT_NONE };

    switch (k->now.kind) {
    case ERRAND_CREATE:
    case ERRAND_UPDATE: return encode_group(k, arena, ret_message);
    case ERRAND_DELETE: return sl_wire_group_delete_encode(&name, arena, ret_message);
    case ERRAND_REPLAY: return sl_parked_request_encode(&parked, arena, ret_message);
    case ERRAND_STOP: return encode_stop(k, arena, ret_message);
    case ERRAND_RESUME:
        return sl_wire_resume_request_encode(&k->world->stops[k->now.stop].who, arena, ret_message);
    case ERRAND_NONE:
    case ERRAND_APPEND: break;
    }
    return SL_ERR_INVALID;
}

static const char *path_of(errand_kind kind)
{
    switch (kind) {
    case ERRAND_APPEND: return "/event_store.client.streams.Streams/Append";
    case ERRAND_CREATE: return GROUPS_SERVICE "Create";
    case ERRAND_UPDATE: return GROUPS_SERVICE "Update";
    case ERRAND_DELETE: return GROUPS_SERVICE "Delete";
    case ERRAND_REPLAY: return GROUPS_SERVICE "ReplayParked";
    case ERRAND_STOP: return "/" SL_OPERATORS_SERVICE "/Stop";
    case ERRAND_RESUME: return "/" SL_OPERATORS_SERVICE "/Resume";
    case ERRAND_NONE: break;
    }
    return "";
}

/* --- answers --- */

static void set_rules(world_group *g)
{
    const judge_rules rules = { .pinned = strncmp(g->strategy, "Pinned", 6) == 0,
                                .by_correlation = strcmp(g->strategy, "PinnedByCorrelation") == 0,
                                .lease_ns = g->lease_ms * WORLD_MS_NS,
                                .retries_max = g->retries_max };

    judge_group_changed(&g->judged, &rules);
}

static void updated(world_group *g)
{
    g->lease_ms = g->next_lease_ms;
    g->retries_max = g->next_retries_max;
    memcpy(g->strategy, g->next_strategy, sizeof g->strategy);
    set_rules(g);
}

static void deleted(clerk *k)
{
    k->now.kind = ERRAND_CREATE;
    k->again = true;
}

static void created(clerk *k)
{
    world_group *const g = &k->world->groups[k->now.group];
    const judge_rules rules = g->judged.rules;

    if (g->closed)
        judge_group_recreated(&g->judged, &rules);
    set_rules(g);
    g->closed = false;
    k->now.kind = ERRAND_NONE;
}

/* What has happened when it ended so; the rest is asked again. */
static void succeeded(clerk *k)
{
    world *const w = k->world;
    const errand what = k->now;

    k->now.kind = ERRAND_NONE;
    switch (what.kind) {
    case ERRAND_UPDATE: updated(&w->groups[what.group]); break;
    case ERRAND_DELETE: deleted(k); break;
    case ERRAND_CREATE: created(k); break;
    case ERRAND_RESUME: w->stops[what.stop].taken_back = true; break;
    case ERRAND_NONE:
    case ERRAND_APPEND:
    case ERRAND_REPLAY:
    case ERRAND_STOP: break;
    }
}

static bool is_expected(const clerk *k, sl_status status)
{
    if (k->now.kind == ERRAND_CREATE)
        return status == SL_STATUS_ALREADY_EXISTS;
    if (k->now.kind == ERRAND_DELETE || k->now.kind == ERRAND_RESUME || k->now.kind == ERRAND_STOP)
        return status == SL_STATUS_NOT_FOUND;
    return false;
}

static bool may_fail(sl_status status)
{
    return status == SL_STATUS_UNAVAILABLE || status == SL_STATUS_CANCELLED || status == SL_STATUS_UNKNOWN ||
           status == SL_STATUS_RESOURCE_EXHAUSTED || status == SL_STATUS_DEADLINE_EXCEEDED ||
           status == SL_STATUS_ABORTED;
}

static void on_message(world_call *call, sl_str message)
{
    (void)call;
    (void)message;
}

static void on_end(world_call *call, const sl_call_end_info *info)
{
    clerk *const k = call->ctx;
    world *const w = k->world;

    k->is_open = false;
    report_say(&w->report, "errand %d ended: %s %.*s", (int)k->now.kind, sl_status_name(info->status),
               (int)info->message.bytes, info->message.data);
    if (info->status == SL_STATUS_OK || is_expected(k, info->status)) {
        succeeded(k);
        return;
    }
    if (info->kind == SL_CALL_FINISHED && !may_fail(info->status) && k->now.kind != ERRAND_REPLAY)
        report_fail(&w->report, REPORT_WRONG, "errand %d ended with %s: %.*s", (int)k->now.kind,
                    sl_status_name(info->status), (int)info->message.bytes, info->message.data);
    if (k->now.kind == ERRAND_APPEND)
        report_count(&w->report, SITUATION_APPEND_UNKNOWN);
    if (k->now.kind == ERRAND_APPEND || k->now.kind == ERRAND_REPLAY)
        k->now.kind = ERRAND_NONE;
    else
        k->again = true;
}

/* --- asking --- */

static void tell_judge(clerk *k)
{
    world *const w = k->world;
    const world_stop *const stop = &w->stops[k->now.stop];
    world_group *const g = &w->groups[k->now.group];
    judge_rules rules = g->judged.rules;

    switch (k->now.kind) {
    case ERRAND_STOP:
        for (uint32_t i = 0; i < w->group_count; i++)
            judge_group_stop_sent(&w->groups[i].judged, stop->hand_back);
        break;
    case ERRAND_RESUME:
        for (uint32_t i = 0; i < w->group_count; i++)
            judge_group_resume_sent(&w->groups[i].judged);
        break;
    case ERRAND_UPDATE:
        rules.lease_ns = g->next_lease_ms * WORLD_MS_NS;
        rules.retries_max = g->next_retries_max;
        judge_group_changing(&g->judged, &rules);
        break;
    case ERRAND_NONE:
    case ERRAND_APPEND:
    case ERRAND_CREATE:
    case ERRAND_DELETE:
    case ERRAND_REPLAY: break;
    }
}

static void send_message(clerk *k)
{
    sl_arena arena;
    sl_str message;
    sl_err err;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    err = encode(k, &arena, &message);
    assert(err == SL_OK);
    (void)err;
    (void)world_call_send(&k->call, (const uint8_t *)message.data, message.bytes);
    sl_arena_done(&arena);
}

static void ask(clerk *k)
{
    world *const w = k->world;

    k->call = (world_call){ .message = on_message, .end = on_end, .ctx = k };
    if (k->peer.client == NULL && !world_connect(&k->peer))
        return;
    if (!world_call_start(&k->call, &k->peer, path_of(k->now.kind), NULL, 0)) {
        world_peer_cut(&k->peer, JUDGE_CUT, 0);
        return;
    }
    k->is_open = true;
    k->again = false;
    report_say(&w->report, "errand %d (group %u, stop %u) is asked", (int)k->now.kind, k->now.group,
               k->now.stop);
    tell_judge(k);
    if (k->now.kind == ERRAND_APPEND)
        send_append(k);
    else
        send_message(k);
    if (k->call.call != NULL)
        sl_call_half_close(k->call.call);
}

void clerk_act(clerk *k)
{
    world *const w = k->world;

    if (k->now.kind != ERRAND_NONE && k->again && !k->is_open && w->host != NULL && !w->host->stopping)
        ask(k);
}

void clerk_lost_server(clerk *k)
{
    world_peer_cut(&k->peer, JUDGE_SERVER_GONE, 0);
}
