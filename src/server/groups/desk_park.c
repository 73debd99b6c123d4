/* server/groups/desk_park.c — parked messages: a link in a stream beside the record, and how that stream gets shorter again.
 *
 * The record that settles a message by parking it and the link that keeps it are one batch, so neither is there without the other. The
 * stream is an ordinary one: clients read it, and a replay reads it as the second lane of the group. It is truncated only
 * below what the group has settled, by a record that stands in the log behind those of the settling. */
#include "server/groups/desk_private.h"

#include "base/cleanup.h"
#include "server/json.h"
#include "server/streams/write.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TRUNCATE_AFTER = 256, /* settled ones, while others of the replay are not */
    TARGET_BYTES = SL_STREAM_NAME_BYTES_MAX + 32,
};

/* --- appends --- */

static char *put(char **at, sl_str text)
{
    char *const here = *at;

    if (text.bytes > 0)
        memcpy(here, text.data, text.bytes);
    *at += text.bytes;
    return here;
}

/* One block with copies of its texts; the names are the desk's own or literals. NULL: out of memory. */
static desk_append *append_new(sl_desk *desk, const desk_append *made)
{
    const size_t bytes = sizeof *made + made->data.bytes + made->metadata.bytes;
    desk_append *const append = sl_alloc_take(desk->host->alloc, bytes);
    char *at = (char *)(append + 1);

    if (append == NULL)
        return NULL;
    *append = *made;
    append->bytes = bytes;
    append->id = sl_write_new_id(desk->host);
    append->created_ns = sl_clock_wall_ns(desk->host->clock);
    append->data.data = put(&at, made->data);
    append->metadata.data = put(&at, made->metadata);
    return append;
}

void desk_append_free(const sl_desk *desk, desk_append *append)
{
    if (append != NULL)
        desk_give(desk->host->alloc, append, append->bytes);
}

/* --- why ---
 *
 * A consumer that came back after a restart may park what was not read again yet. Its link is made when the reader comes to it,
 * long after the nack, so the record keeps what was said. */

void desk_nack_begin(sl_desk *desk, const sl_claim *claims, uint32_t count, sl_str reason)
{
    desk->nacked = claims;
    desk->nacked_count = count;
    desk->nacked_at = 0;
    desk->nack_reason = (sl_str){ reason.data, sl_min_u64(reason.bytes, DESK_REASON_BYTES) };
}

void desk_nack_end(sl_desk *desk)
{
    desk->nack_reason = (sl_str){ 0 };
    desk->nacked_count = 0;
    desk_reason_release(desk, SL_TAKE_PTR(desk->nack_kept));
}

void desk_reason_release(sl_desk *desk, desk_reason *reason)
{
    if (reason == NULL || --reason->holds > 0)
        return;
    desk->reasons_bytes -= sizeof *reason + reason->bytes;
    desk_give(desk->host->alloc, reason, sizeof *reason + reason->bytes);
}

/* A call of the core lets happen what is due, too: not everything that it parks is the nack's. Mostly one message follows the other. */
static bool is_nacked(sl_desk *desk, sl_uuid id)
{
    for (uint32_t i = 0; i < desk->nacked_count; i++) {
        const uint32_t at = (desk->nacked_at + i) % desk->nacked_count;

        if (sl_uuid_equal(desk->nacked[at].id, id)) {
            desk->nacked_at = at;
            return true;
        }
    }
    return false;
}

/* NULL: nothing was said. Without memory or room for it the message is parked all the same, without its reason. */
static desk_reason *keep_reason(sl_desk *desk)
{
    const sl_str said = desk->nack_reason;
    const size_t bytes = sizeof(desk_reason) + said.bytes;
    desk_reason *reason = desk->nack_kept;

    if (reason == NULL && said.bytes > 0 && desk->reasons_bytes + bytes <= DESK_REASONS_BYTES_MAX) {
        reason = desk->nack_kept = sl_alloc_take(desk->host->alloc, bytes);
        if (reason == NULL)
            return NULL;
        *reason = (desk_reason){ .holds = 1, .bytes = (uint32_t)said.bytes };
        memcpy(reason->text, said.data, said.bytes);
        desk->reasons_bytes += bytes;
    }
    if (reason != NULL)
        reason->holds++;
    return reason;
}

/* What the history keeps of the last failure is shorter, but stays when there was no room for the reason itself. */
static sl_str said_of(sl_desk *desk, const desk_record *record)
{
    if (record->reason != NULL)
        return (sl_str){ record->reason->text, record->reason->bytes };
    return is_nacked(desk, record->effect.park.id) ? desk->nack_reason
                                                   : desk_failure_reason(desk, &record->effect);
}

/* A nack says why, even if the lease ran out in the same moment. */
static void note_failure(sl_desk *desk, const sl_effect *park)
{
    if (is_nacked(desk, park->park.id))
        desk_failure_park(desk, park, SL_BACK_NACKED);
    else if (park->park.last != SL_BACK_COUNT_) /* else its BACK was noted */
        desk_failure_park(desk, park, park->park.last);
}

/* --- the link --- */

static void add_line(sl_text *text, sl_str line)
{
    sl_text_add(text, line.bytes == 0 ? "" : "\n");
    sl_text_add_str(text, line);
}

static void say_reason(sl_desk *desk, const desk_record *record, sl_text *reason)
{
    const sl_effect *const park = &record->effect;

    switch (park->park.cause) {
    case SL_PARK_ASKED:
        sl_text_add(reason, "Client explicitly NAK'ed message.\n");
        sl_text_add_str(reason, said_of(desk, record));
        return;
    case SL_PARK_RETRIES:
        sl_text_add(reason, "Reached retry count of ");
        sl_text_add_u64(reason, sl_group_settings(desk->group)->retries_max);
        add_line(reason, said_of(desk, record));
        return;
    case SL_PARK_KILLS:
        sl_text_add(reason, "Consumers died while they worked on it: ");
        sl_text_add_u64(reason, park->park.counters.kills);
        return;
    case SL_PARK_COUNT_: return;
    }
}

static bool add_past(const sl_desk *desk, const sl_effect *park, cJSON *top)
{
    const sl_counters *const counters = &park->park.counters;

    return sl_json_add(top, "attempts", cJSON_CreateNumber(desk_failure_last_attempt(desk, park))) &&
           sl_json_add(top, "deliveries", cJSON_CreateNumber(counters->deliveries)) &&
           sl_json_add(top, "interrupts", cJSON_CreateNumber(counters->interrupts)) &&
           sl_json_add(top, "kills", cJSON_CreateNumber(counters->kills)) &&
           sl_json_add(top, "history", desk_failures_history(desk, park->park.place));
}

/* The first three have the names that KurrentDB gives them. NULL: out of memory. To be freed with cJSON_free(). */
static char *make_metadata(sl_desk *desk, const desk_record *record, uint64_t number)
{
    char reason_buffer[DESK_REASON_BYTES], added_buffer[64];
    sl_text reason, added;
    cJSON *const top = cJSON_CreateObject();
    char *text = NULL;

    sl_text_init(&reason, reason_buffer, sizeof reason_buffer);
    say_reason(desk, record, &reason);
    sl_text_init(&added, added_buffer, sizeof added_buffer);
    sl_text_add_time(&added, sl_clock_wall_ns(desk->host->clock));
    if (cJSON_AddStringToObject(top, "added", added_buffer) != NULL &&
        cJSON_AddStringToObject(top, "reason", reason_buffer) != NULL &&
        (number == 0 || cJSON_AddNumberToObject(top, "subscriptionEventNumber", (double)number) != NULL) &&
        add_past(desk, &record->effect, top))
        text = cJSON_PrintUnformatted(top);
    cJSON_Delete(top);
    return text;
}

static sl_str write_target(char buffer[TARGET_BYTES], uint64_t revision, sl_str stream)
{
    sl_text text;

    sl_text_init(&text, buffer, TARGET_BYTES);
    sl_text_add_u64(&text, revision);
    sl_text_add_char(&text, '@');
    sl_text_add_str(&text, stream);
    return sl_text_str(&text);
}

/* "NUMBER@STREAM" of the event itself; a link that points to nothing is linked to as it is. */
static sl_str target_of(const sl_desk *desk, const desk_entry *entry, char buffer[TARGET_BYTES],
                        uint64_t *ret_number)
{
    sl_wire_read_event event;

    if (entry->body == NULL) {
        *ret_number = entry->position;
        return write_target(buffer, entry->position, desk->definition.stream);
    }
    if (sl_persistent_body_decode(desk_entry_body(entry), &event) != SL_OK)
        return SL_STR(""); /* cannot be: it was made here */
    *ret_number = event.has_link ? event.link.revision : event.event.revision;
    return event.has_event ? write_target(buffer, event.event.revision, event.event.stream) : event.link.data;
}

static void make_link(sl_desk *desk, desk_record *record, const desk_entry *entry)
{
    char target[TARGET_BYTES];
    uint64_t number = 0;
    const sl_str data = target_of(desk, entry, target, &number);
    char *const metadata = make_metadata(desk, record, number);
    const desk_append made = { .stream = sl_str_from(desk->parked),
                               .type = SL_STR("$>"),
                               .data = data,
                               .metadata = sl_str_from(metadata) };

    record->append = metadata == NULL ? NULL : append_new(desk, &made);
    cJSON_free(metadata);
    if (record->append == NULL)
        desk_fail(desk, SL_ERR_NOMEM, "park");
}

static void wait_for_link(sl_desk *desk, desk_record *record)
{
    record->waits_for_link = true;
    record->reason = is_nacked(desk, record->effect.park.id) ? keep_reason(desk) : NULL;
    desk->links_wanted++;
}

void desk_park_link(sl_desk *desk, desk_record *record, const desk_entry *entry)
{
    note_failure(desk, &record->effect);
    if (!desk->can_park)
        sl_log(desk->host->log, SL_LOG_ERROR,
               "the name of the group is too long to park messages: one is only counted",
               SL_LOG_STR("group", desk->key));
    else if (entry != NULL)
        make_link(desk, record, entry);
    else
        wait_for_link(desk, record);
    if (!record->waits_for_link)
        desk_failures_forget(desk, record->effect.park.place);
}

/* entry NULL: everything up to this place was read. What was not there has vanished, and there is nothing to link to. */
void desk_park_read(sl_desk *desk, sl_place place, const desk_entry *entry)
{
    for (uint32_t i = 0; i < desk->record_count; i++) {
        desk_record *const record = &desk->records[i];
        const sl_place parked = record->effect.park.place;

        if (!record->waits_for_link || parked.lane != place.lane || parked.position > place.position)
            continue;
        record->waits_for_link = false;
        desk->links_wanted--;
        if (parked.position == place.position && entry != NULL)
            make_link(desk, record, entry);
        desk_reason_release(desk, SL_TAKE_PTR(record->reason));
        desk_failures_forget(desk, parked);
        sl_host_at_turn_end(desk->host, &desk->turn_end);
    }
}

/* --- truncating --- */

static desk_append *make_truncation(sl_desk *desk, uint64_t before)
{
    char json[256];
    const int bytes =
        snprintf(json, sizeof json,
                 "{\"$tb\":%" PRIu64 ",\"$acl\":{\"$r\":\"$admins\",\"$w\":\"$admins\",\"$d\":\"$admins\","
                 "\"$mr\":\"$admins\",\"$mw\":\"$admins\"}}",
                 before);
    const desk_append made = { .stream = sl_str_from(desk->parked_meta),
                               .type = SL_STR("$metadata"),
                               .data = { json, (size_t)bytes },
                               .is_json = true };

    return append_new(desk, &made);
}

static sl_err truncate_to(sl_desk *desk, uint64_t before, void (*done)(void *ctx, sl_err err), void *ctx)
{
    desk_record record = { .done = done, .done_ctx = ctx };

    record.append = make_truncation(desk, before);
    if (record.append == NULL)
        return SL_ERR_NOMEM;
    desk->truncated = before;
    return desk_record_add(desk, &record);
}

/* After each turn in which something happened: has the group settled more of what was replayed? */
void desk_move_truncation(sl_desk *desk)
{
    sl_group_info info;
    uint64_t below;

    if (desk->state != DESK_OPEN || !desk->can_park || sl_door_is_shut(desk->host->door))
        return;
    sl_group_info_get(desk->group, &info);
    below = info.checkpoint[SL_LANE_PARKED];
    if (below <= desk->truncated)
        return;
    if (below == sl_group_read_from(desk->group, SL_LANE_PARKED) || below - desk->truncated >= TRUNCATE_AFTER)
        (void)truncate_to(desk, below, NULL, NULL); /* without memory: the next turn tries again */
}

typedef struct truncation {
    sl_desk *desk;
    void (*done)(void *ctx, sl_err err);
    void *ctx;
} truncation;

static void on_truncated(void *ctx, sl_err err)
{
    truncation *const t = ctx;

    t->desk->truncating = false;
    t->done(t->ctx, err);
    desk_give(t->desk->host->alloc, t, sizeof *t);
}

static bool is_replaying(const sl_desk *desk)
{
    return desk->readers[SL_LANE_PARKED].is_on || desk->truncating;
}

/* Where a replay or a truncation ends at the latest: behind what is parked now. */
static uint64_t parked_end(const sl_desk *desk, uint64_t stop_at)
{
    sl_stream_info info;

    sl_store_stream(desk->host->store, sl_str_from(desk->parked), &info);
    if (info.state != SL_STREAM_LIVE || info.revision == SL_REVISION_NONE)
        return 0;
    return sl_min_u64(stop_at, info.revision + 1);
}

sl_err sl_desk_truncate_parked(sl_desk *desk, uint64_t stop_at, void (*done)(void *ctx, sl_err err),
                               void *ctx)
{
    const uint64_t end = parked_end(desk, stop_at);
    truncation *t;
    sl_err err = desk_may_act(desk);

    if (err != SL_OK)
        return err;
    if (sl_door_is_shut(desk->host->door))
        return SL_ERR_DRAINING;
    if (is_replaying(desk))
        return SL_ERR_EXISTS;
    t = sl_alloc_take(desk->host->alloc, sizeof *t);
    if (t == NULL)
        return SL_ERR_NOMEM;
    *t = (truncation){ desk, done, ctx };
    desk->truncating = true;
    desk_enter(desk);
    if (end > sl_group_read_from(desk->group, SL_LANE_PARKED))
        (void)sl_group_advance(desk->group, (sl_place){ SL_LANE_PARKED, end - 1 }, 0, desk_now_ns(desk));
    desk_leave(desk);
    err = truncate_to(desk, sl_max_u64(end, desk->truncated), on_truncated, t);
    if (err != SL_OK) {
        desk->truncating = false;
        desk_give(desk->host->alloc, t, sizeof *t);
    }
    return err;
}

sl_err sl_desk_replay_parked(sl_desk *desk, uint64_t stop_at)
{
    desk_reader *const reader = &desk->readers[SL_LANE_PARKED];
    const sl_err err = desk_may_act(desk);

    if (err != SL_OK)
        return err;
    if (is_replaying(desk))
        return SL_ERR_EXISTS;
    reader->end = parked_end(desk, stop_at);
    desk_reader_start(reader);
    return SL_OK;
}
