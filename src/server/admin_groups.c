/* server/admin_groups.c — pages about groups and consumers, for people and for orchestrators that ask whether a process may be ended. */
#include "server/admin.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "server/admin_query.h"
#include "server/groups/registry.h"

#include <cjson/cJSON.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ARENA_CHUNK_BYTES = 16 * 1024,
    ARENA_BYTES_MAX = 64 * 1024 * 1024,
};

/* --- JSON; what fails is seen at the end, because cJSON takes NULL everywhere --- */

/* Names come from clients: what is not UTF-8 would make the whole page unreadable. NULL: out of memory. */
static char *clean(sl_str text)
{
    char *const copy = cJSON_malloc(text.bytes + 1);
    const bool is_valid = sl_utf8_valid(text);

    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i < text.bytes; i++)
        copy[i] = is_valid || (unsigned char)text.data[i] < 0x80 ? text.data[i] : '?';
    copy[text.bytes] = '\0';
    return copy;
}

static void add_text(cJSON *to, const char *name, sl_str text, bool *failed)
{
    char *const copy = clean(text);

    *failed = copy == NULL || cJSON_AddStringToObject(to, name, copy) == NULL || *failed;
    cJSON_free(copy);
}

/* As text, because a double rounds large numbers. */
static void add_u64(cJSON *to, const char *name, uint64_t value, bool *failed)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    *failed = cJSON_AddRawToObject(to, name, text) == NULL || *failed;
}

static void add_flag(cJSON *to, const char *name, bool flag, bool *failed)
{
    *failed = cJSON_AddBoolToObject(to, name, flag) == NULL || *failed;
}

static cJSON *add_to(cJSON *array, bool *failed)
{
    cJSON *const object = cJSON_CreateObject();

    if (object == NULL || !cJSON_AddItemToArray(array, object)) {
        cJSON_Delete(object);
        *failed = true;
        return NULL;
    }
    return object;
}

/* --- consumers --- */

static void show_labels(cJSON *to, const sl_wire_consumer *row, bool *failed)
{
    cJSON *const labels = cJSON_AddObjectToObject(to, "labels");

    for (size_t i = 0; i < row->label_count && !*failed; i++) {
        char *const key = clean(row->labels[i].key);

        *failed = key == NULL;
        if (*failed)
            return;
        cJSON_DeleteItemFromObjectCaseSensitive(labels, key); /* the last one counts */
        add_text(labels, key, row->labels[i].value, failed);
        cJSON_free(key);
    }
}

static void show_consumer(cJSON *to, const sl_wire_consumer *row, bool *failed)
{
    show_labels(to, row, failed);
    add_text(to, "stream", row->stream, failed);
    add_text(to, "group", row->group, failed);
    add_text(to, "name", row->name, failed);
    add_u64(to, "consumer", row->consumer, failed);
    add_text(to, "state", row->state, failed);
    if (row->asked_by.bytes > 0)
        add_text(to, "asked_by", row->asked_by, failed);
    add_u64(to, "window", row->window, failed);
    add_u64(to, "in_flight", row->in_flight, failed);
    add_u64(to, "started", row->started, failed);
    add_u64(to, "deliveries", row->deliveries, failed);
    add_u64(to, "in_state_ms", row->in_state_ms, failed);
    add_flag(to, "safe_to_terminate", row->safe_to_terminate, failed);
    add_text(to, "address", row->address, failed);
    add_text(to, "user", row->user, failed);
    add_u64(to, "removal_cost", row->removal_cost, failed);
    add_flag(to, "cheapest_to_remove", row->cheapest_to_remove, failed);
}

static void show_report(cJSON *to, const sl_wire_drain_report *row, bool *failed)
{
    char buffer[40];
    sl_text at;

    sl_text_init(&at, buffer, sizeof buffer);
    sl_text_add_time(&at, row->stopped_at_ms * UINT64_C(1000000));
    add_text(to, "stream", row->stream, failed);
    add_text(to, "group", row->group, failed);
    add_text(to, "name", row->name, failed);
    add_u64(to, "consumer", row->consumer, failed);
    add_text(to, "outcome", row->outcome, failed);
    add_text(to, "asked_by", row->asked_by, failed);
    add_text(to, "stopped_at", sl_text_str(&at), failed);
    add_u64(to, "took_ms", row->took_ms, failed);
    add_u64(to, "settled", row->settled, failed);
    add_u64(to, "released", row->released, failed);
    add_u64(to, "interrupted", row->interrupted, failed);
    add_u64(to, "lost", row->lost, failed);
}

static cJSON *page_of(const sl_wire_consumers *list, bool with_reports)
{
    cJSON *const object = cJSON_CreateObject();
    cJSON *const consumers = cJSON_AddArrayToObject(object, "consumers");
    cJSON *const reports = with_reports ? cJSON_AddArrayToObject(object, "reports") : NULL;
    bool failed = object == NULL || consumers == NULL || (with_reports && reports == NULL);

    for (size_t i = 0; i < list->consumer_count && !failed; i++)
        show_consumer(add_to(consumers, &failed), &list->consumers[i], &failed);
    for (size_t i = 0; i < list->report_count && !failed; i++)
        show_report(add_to(reports, &failed), &list->reports[i], &failed);
    if (!failed)
        return object;
    cJSON_Delete(object);
    return NULL;
}

static void arena_begin(sl_arena *arena, const sl_host *host)
{
    sl_arena_init(arena, host->alloc, (sl_arena_sizes){ ARENA_CHUNK_BYTES, ARENA_BYTES_MAX });
}

cJSON *sl_admin_consumers(sl_host *host, const sl_wire_who *who, bool with_reports, sl_err *ret_err)
{
    sl_wire_consumers list;
    cJSON *object = NULL;
    sl_arena arena;

    arena_begin(&arena, host);
    *ret_err = sl_operators_list(host, who, with_reports, &arena, &list);
    if (*ret_err == SL_OK)
        object = page_of(&list, with_reports);
    sl_arena_done(&arena);
    return object;
}

/* --- who --- */

static const char *take_label(sl_str given, sl_wire_who *who)
{
    if (given.bytes == 0)
        return NULL;
    if (!sl_str_cut(given, '=', &who->label_key, &who->label_value) || who->label_key.bytes == 0)
        return "A label is written as key=value: label=version=42.";
    return NULL;
}

/* parameters: stream, group, name and label are the first four. */
const char *sl_admin_who(const char *path, const sl_str parts[2], const sl_admin_parameter *parameters,
                         sl_arena *arena, sl_wire_who *ret_who)
{
    static const char not_encoded[] = "The path is not percent-encoded UTF-8.";
    const bool of_group = strncmp(path, "/v1/groups/", 11) == 0;
    const bool of_name = strncmp(path, "/v1/consumers/", 14) == 0;

    *ret_who = (sl_wire_who){ .stream = parameters[0].value,
                              .group = parameters[1].value,
                              .consumer_name = parameters[2].value };
    if (of_group && (sl_admin_decode(parts[0], false, arena, &ret_who->stream) != SL_OK ||
                     sl_admin_decode(parts[1], false, arena, &ret_who->group) != SL_OK))
        return not_encoded;
    if (of_name && sl_admin_decode(parts[0], false, arena, &ret_who->consumer_name) != SL_OK)
        return not_encoded;
    return take_label(parameters[3].value, ret_who);
}

static bool refuse_error(sl_pages_answer *answer, sl_err err)
{
    if (err == SL_ERR_NOT_FOUND)
        sl_pages_refuse(answer, 404, "There is no such group.");
    else if (err == SL_ERR_FULL)
        sl_pages_refuse(answer, 413, "There are more than 10,000 consumers: name a stream or a group.");
    else if (err == SL_ERR_AGAIN)
        sl_pages_refuse(answer, 503, "The users are still being read: try again in a moment.");
    else if (err != SL_OK)
        sl_pages_refuse(answer, 500, sl_err_text(err));
    return err != SL_OK;
}

/* Who is asked about; false: it was answered. */
static bool read_who(const sl_pages_question *question, const sl_str parts[2], sl_arena *arena,
                     sl_wire_who *ret_who, sl_pages_answer *answer)
{
    sl_admin_parameter parameters[] = {
        { .name = "stream" }, { .name = "group" }, { .name = "name" }, { .name = "label" }
    };
    const char *complaint = sl_admin_parameters(sl_str_from(question->query), arena, parameters, 4);

    if (complaint == NULL)
        complaint = sl_admin_who(question->path, parts, parameters, arena, ret_who);
    if (complaint == NULL)
        complaint = sl_who_complaint(ret_who, true);
    if (complaint != NULL)
        sl_pages_refuse(answer, 400, complaint);
    return complaint == NULL;
}

/* Only what the page is about is shown of the list. */
static void show_list(sl_server *server, const sl_pages_question *question, const sl_str parts[2],
                      sl_pages_answer *answer, const char *without)
{
    sl_wire_who who;
    sl_arena arena;
    cJSON *object;
    sl_err err;

    arena_begin(&arena, server->host);
    if (read_who(question, parts, &arena, &who, answer)) {
        object = sl_admin_consumers(server->host, &who, strcmp(without, "reports") != 0, &err);
        cJSON_DeleteItemFromObjectCaseSensitive(object, without);
        if (!refuse_error(answer, err))
            sl_pages_show(answer, object);
    }
    sl_arena_done(&arena);
}

static void show_consumers(sl_server *server, const sl_pages_question *question, const sl_str parts[2],
                           sl_pages_answer *answer)
{
    show_list(server, question, parts, answer, "reports");
}

static void show_drains(sl_server *server, const sl_pages_question *question, const sl_str parts[2],
                        sl_pages_answer *answer)
{
    show_list(server, question, parts, answer, "consumers");
}

/* B17. One that is gone holds nothing, and if it had stopped before there is a report that says so. */
static bool is_safe(const sl_wire_consumers *list)
{
    for (size_t i = 0; i < list->consumer_count; i++)
        if (!list->consumers[i].safe_to_terminate)
            return false;
    return true;
}

static void show_named(sl_server *server, const sl_pages_question *question, const sl_str parts[2],
                       sl_pages_answer *answer)
{
    sl_wire_consumers list;
    sl_wire_who who;
    sl_arena arena;
    cJSON *object;
    bool failed = false;

    arena_begin(&arena, server->host);
    if (read_who(question, parts, &arena, &who, answer) &&
        !refuse_error(answer, sl_operators_list(server->host, &who, true, &arena, &list))) {
        if (list.consumer_count == 0 && list.report_count == 0) {
            sl_pages_refuse(answer, 404, "There is no consumer of this name, and none that has stopped.");
        } else {
            object = page_of(&list, true);
            add_text(object, "name", who.consumer_name, &failed);
            add_flag(object, "safe_to_terminate", is_safe(&list), &failed);
            sl_pages_show(answer, object);
        }
    }
    sl_arena_done(&arena);
}

/* --- groups --- */

typedef struct group_list {
    cJSON *array;
    sl_arena arena;
    bool failed;
} group_list;

static void show_counts(cJSON *to, const sl_desk *desk, bool *failed)
{
    cJSON *const consumers = cJSON_AddObjectToObject(to, "consumers");
    sl_group_info counts;

    sl_desk_counts(desk, &counts);
    for (int i = 0; i < SL_CONSUMER_STATE_COUNT_; i++)
        add_u64(consumers, sl_consumer_state_name((sl_consumer_state)i), counts.consumers[i], failed);
    add_u64(to, "in_flight", counts.in_flight, failed);
    add_u64(to, "available", counts.available, failed);
    add_u64(to, "waiting", counts.waiting, failed);
    add_u64(to, "delivered", counts.deliveries, failed);
    add_u64(to, "settled", counts.settled, failed);
    add_u64(to, "lost", counts.lost, failed);
    add_u64(to, "charged", counts.charged, failed);
}

static void show_info(cJSON *to, const sl_desk *desk, group_list *l)
{
    sl_wire_group_info info;

    if (to == NULL || sl_desk_info(desk, &l->arena, &info) != SL_OK) {
        l->failed = true;
        return;
    }
    add_text(to, "stream", sl_desk_definition(desk)->stream, &l->failed);
    add_text(to, "group", info.group, &l->failed);
    add_text(to, "status", info.status, &l->failed);
    add_text(to, "strategy", info.strategy, &l->failed);
    add_text(to, "start_from", info.start_from, &l->failed);
    add_text(to, "last_checkpointed_position", info.last_checkpointed_position, &l->failed);
    add_text(to, "last_known_position", info.last_known_position, &l->failed);
    add_u64(to, "parked", (uint64_t)info.parked_count, &l->failed);
    add_u64(to, "stop_rules", info.stop_rules, &l->failed);
    add_flag(to, "everyone_stopped", info.everyone_stopped, &l->failed);
    show_counts(to, desk, &l->failed);
}

static void show_settings(cJSON *to, const sl_desk *desk, bool *failed)
{
    const sl_settings settings = sl_group_definition_settings(sl_desk_definition(desk));
    cJSON *const object = cJSON_AddObjectToObject(to, "settings");

    add_flag(object, "resolve_links", sl_desk_definition(desk)->settings.resolve_links, failed);
    add_u64(object, "message_timeout_ms", settings.lease_ns / 1000000, failed);
    add_u64(object, "max_retry_count", settings.retries_max, failed);
    add_u64(object, "max_subscriber_count", settings.consumers_max, failed);
    add_u64(object, "max_interrupts", settings.interrupts_max, failed);
    add_u64(object, "max_kills", settings.kills_max, failed);
    add_u64(object, "checkpoint_after_ms", settings.checkpoint_after_ns / 1000000, failed);
}

static void add_group(void *ctx, sl_desk *desk)
{
    group_list *const l = ctx;

    if (!l->failed)
        show_info(add_to(l->array, &l->failed), desk, l);
    sl_arena_reset(&l->arena);
}

static void show_groups(sl_server *server, const sl_pages_question *question, const sl_str parts[2],
                        sl_pages_answer *answer)
{
    cJSON *const object = cJSON_CreateObject();
    group_list l = { .array = cJSON_AddArrayToObject(object, "groups") };
    sl_wire_who who;

    arena_begin(&l.arena, server->host);
    if (read_who(question, parts, &l.arena, &who, answer)) {
        const sl_str stream = who.stream;
        char kept[SL_WHO_TEXT_BYTES_MAX];

        if (stream.bytes > 0)
            memcpy(kept, stream.data, stream.bytes); /* the arena is cleared for each group */
        sl_registry_each(server->host->registry, (sl_str){ kept, stream.bytes }, add_group, &l);
        sl_pages_show(answer, l.failed ? NULL : object);
        if (!l.failed) {
            sl_arena_done(&l.arena);
            return;
        }
    }
    cJSON_Delete(object);
    sl_arena_done(&l.arena);
}

static void show_group(sl_server *server, const sl_pages_question *question, const sl_str parts[2],
                       sl_pages_answer *answer)
{
    group_list l = { 0 };
    sl_wire_who who;
    sl_desk *desk;
    cJSON *object;
    sl_err err;

    arena_begin(&l.arena, server->host);
    if (read_who(question, parts, &l.arena, &who, answer)) {
        desk = sl_registry_find(server->host->registry, who.stream, who.group);
        object = sl_admin_consumers(server->host, &who, false, &err);
        if (desk == NULL) {
            sl_pages_refuse(answer, 404, "There is no such group.");
            cJSON_Delete(object);
        } else if (!refuse_error(answer, err)) {
            /* "consumers" are numbers in the list of groups, and the consumers themselves here. */
            cJSON *const list = cJSON_DetachItemFromObjectCaseSensitive(object, "consumers");

            show_info(object, desk, &l);
            show_settings(object, desk, &l.failed);
            cJSON_DeleteItemFromObjectCaseSensitive(object, "consumers");
            l.failed = !cJSON_AddItemToObject(object, "consumers", list) || l.failed;
            sl_pages_show(answer, object);
        }
    }
    sl_arena_done(&l.arena);
}

const sl_admin_group_route sl_admin_group_routes[] = {
    { "/v1/groups", false, show_groups },
    { "/v1/groups/STREAM/GROUP", false, show_group },
    { "/v1/consumers", false, show_consumers },
    { "/v1/consumers/NAME", false, show_named },
    { "/v1/drains", false, show_drains },
    { "/v1/groups/STREAM/GROUP/stop", true, sl_admin_show_stop },
    { "/v1/groups/STREAM/GROUP/resume", true, sl_admin_show_stop },
    { "/v1/consumers/NAME/stop", true, sl_admin_show_stop },
    { "/v1/consumers/NAME/resume", true, sl_admin_show_stop },
    { "/v1/stop", true, sl_admin_show_stop },
    { "/v1/resume", true, sl_admin_show_stop },
};
const size_t sl_admin_group_route_count = SL_COUNT_OF(sl_admin_group_routes);
