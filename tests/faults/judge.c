/* tests/faults/judge.c — see judge.h. */
#include "judge.h"

#include "report.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEP = 16, /* events of one call */
    AGAIN_MAX = 10000
};

static bool allowed(const world *w, sl_err err, judge_mood mood)
{
    const bool is_dead =
        w->disk != NULL && sl_faulty_is_dead(w->disk); /* the power went while somebody was reading */

    if (err == SL_ERR_CORRUPT && mood == JUDGE_DAMAGED)
        return true;
    if (is_dead && (err == SL_ERR_IO || err == SL_ERR_STORE_FAILED))
        return true;
    return mood == JUDGE_FAULTS && w->faults &&
           (err == SL_ERR_IO || err == SL_ERR_STORE_FAILED || err == SL_ERR_CORRUPT);
}

/* Damage is always told with the file and the place. */
static void check_told(const world *w, sl_err err)
{
    const char *const told = w->store == NULL ? w->words : sl_store_problem(w->store);

    if (err == SL_ERR_CORRUPT)
        CHECK(strstr(told, ".seg") != NULL || strstr(told, ".idx") != NULL || strstr(told, ".roll") != NULL,
              "damage was found, but no file is named: \"%s\"", told);
}

/* --- groups --- */

/* The state of a group as a snapshot: so many equal parts that it does not fit into one record of the store, the first one
 * with the number of them. */
void judge_snapshot(const model_group *group, sl_sink sink)
{
    const uint64_t parts = 1 + group->hash % (group->count % 16 == 0 ? 2500 : group->count % 8 == 0 ? 90 : 4);

    for (uint64_t i = parts; i-- > 0;) {
        const sl_effect part = { .kind = SL_EFFECT_PASSED,
                                 .passed = { .lane = i == parts - 1 ? SL_LANE_PARKED : SL_LANE_MAIN,
                                             .from = i == parts - 1 ? group->count : i,
                                             .to = i == parts - 1 ? i : group->hash } };
        const sl_effect last = { .kind = SL_EFFECT_RULE, .rule = { .tag = group->hash, .stop = true } };

        sink.emit(sink.ctx, &part);
        if (i == 0)
            sink.emit(sink.ctx, &last);
    }
}

static void load_part(judge_groups *l, uint64_t number, const sl_effect *record)
{
    model_group *const group = &l->groups[number - 1];
    uint32_t *const left = &l->snapshot_left[number - 1];

    if (record->kind == SL_EFFECT_RULE) {
        CHECK(*left == 1, "group %" PRIu64 ": a snapshot ends too early, %" PRIu32 " parts are missing",
              number, *left - 1);
        group->hash = record->rule.tag;
        *left = 0;
    } else if (record->passed.lane == SL_LANE_PARKED) {
        CHECK(*left == 0, "group %" PRIu64 ": a snapshot begins inside another", number);
        group->count = record->passed.from;
        *left = (uint32_t)record->passed.to + 1;
    } else {
        CHECK(*left >= 2 && record->passed.from == *left - 2,
              "group %" PRIu64 ": parts of a snapshot are out of order", number);
        --*left;
    }
}

/* Texts are compared by their hashes: what was loaded is gone when it can be compared. */
static uint64_t hash_of(sl_str text)
{
    return sl_hash((sl_hash_seed){ 1, 2 }, text.data == NULL ? "" : text.data, text.bytes);
}

static sl_err load_group(void *ctx, uint64_t number, sl_str definition)
{
    judge_groups *const l = ctx;
    model_group *const group = number >= 1 && number <= MODEL_GROUPS ? &l->groups[number - 1] : NULL;

    CHECK(group != NULL, "group %" PRIu64 " was never created", number);
    CHECK(!group->exists, "group %" PRIu64 " was loaded twice", number);
    group->exists = true;
    group->definition = hash_of(definition);
    return SL_OK;
}

static sl_err load_record(void *ctx, uint64_t number, const sl_effect *record)
{
    judge_groups *const l = ctx;

    CHECK(number >= 1 && number <= MODEL_GROUPS && l->groups[number - 1].exists,
          "a record comes before its group %" PRIu64, number);
    if (record->kind == SL_EFFECT_PASSED || record->kind == SL_EFFECT_RULE) {
        load_part(l, number, record);
        return SL_OK;
    }
    CHECK(l->snapshot_left[number - 1] == 0, "group %" PRIu64 ": a record inside a snapshot", number);
    model_group_add(&l->groups[number - 1], record);
    return SL_OK;
}

sl_err judge_load(world *w, judge_groups *ret_groups, judge_mood mood)
{
    const sl_loader loader = { ret_groups, load_group, load_record };
    sl_err err;

    memset(ret_groups, 0, sizeof *ret_groups);
    err = sl_store_load(w->store, &loader);
    CHECK(err == SL_OK || allowed(w, err, mood), "loading the groups: %s; %s", sl_err_text(err),
          sl_store_problem(w->store));
    check_told(w, err);
    for (int i = 0; i < MODEL_GROUPS && err == SL_OK; i++)
        CHECK(ret_groups->snapshot_left[i] == 0, "group %d: its snapshot has no end", i + 1);
    return err;
}

bool judge_same_groups(const judge_groups *loaded, const model *m)
{
    char text[TEXT_DEFINITION_BYTES_MAX];

    for (int i = 0; i < MODEL_GROUPS; i++) {
        const model_group *const is = &loaded->groups[i], *const wanted = &m->groups[i];

        if (is->exists != wanted->exists)
            return false;
        if (is->exists && (is->count != wanted->count || is->hash != wanted->hash ||
                           is->definition != hash_of(text_definition(wanted->definition, text))))
            return false;
    }
    return true;
}

/* --- events --- */

static bool same(sl_str a, sl_str b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

/* One that somebody has sent: every field is known. */
static void check_sent(const sl_event *e, const model_event *wanted, uint32_t index)
{
    static char memory[TEXT_EVENT_BYTES_MAX];
    const sl_event_in in = wanted->sort == MODEL_SENT ? text_event(wanted->number, memory)
                                                      : text_metadata(wanted->number, wanted->truncate_before,
                                                                      wanted->max_count, memory);

    CHECK(sl_uuid_equal(e->id, in.id), "event %" PRIu32 " has another id", index);
    CHECK(same(e->type, in.type), "event %" PRIu32 " has another type", index);
    CHECK(same(e->data, in.data), "event %" PRIu32 " has other data", index);
    CHECK(same(e->metadata, in.metadata), "event %" PRIu32 " has other metadata", index);
    CHECK(e->is_json == in.is_json && e->created_ns == in.created_ns, "event %" PRIu32 ": other fields",
          index);
}

static bool says(sl_str json, const char *name, int64_t value)
{
    char wanted[64], text[256];

    snprintf(text, sizeof text, "%.*s,", (int)(json.bytes - 1), json.data); /* without the closing brace */
    snprintf(wanted, sizeof wanted, "\"%s\":%lld,", name, (long long)value);
    return json.bytes < sizeof text && strstr(text, wanted) != NULL;
}

/* One that the store has made. */
static void check_made(const sl_event *e, const model_event *wanted, uint32_t index)
{
    const bool for_ever = wanted->sort == MODEL_TOMBSTONE;

    CHECK(same(e->type, for_ever ? SL_STR("$streamDeleted") : SL_STR("$metadata")),
          "event %" PRIu32 " that the store made has another type", index);
    CHECK(e->created_ns == text_created_ns(wanted->number), "event %" PRIu32 " was made at another time",
          index);
    CHECK(wanted->sort == MODEL_REVIVED || sl_uuid_equal(e->id, text_id(wanted->number)),
          "event %" PRIu32 " that the store made has another id", index);
    if (wanted->sort == MODEL_DELETED)
        CHECK(same(e->data, SL_STR("{\"$tb\":9223372036854775807}")), "event %" PRIu32 " deletes nothing",
              index);
    if (wanted->sort == MODEL_REVIVED)
        CHECK(says(e->data, "$tb", wanted->truncate_before) &&
                  (wanted->max_count == 0 || says(e->data, "$maxCount", wanted->max_count)),
              "event %" PRIu32 " says something else: %.*s", index, (int)e->data.bytes, e->data.data);
}

uint32_t judge_event(const model *m, const sl_event *e)
{
    const int stream = model_stream_named(e->stream);
    const uint32_t found = stream < 0 ? 0 : model_find(m, stream, (int64_t)e->revision);
    model_event *const wanted = found == 0 ? NULL : model_event_at(found - 1);

    CHECK(wanted != NULL,
          "nobody has written revision %" PRIu64 " of stream %.*s, which stands at position %" PRIu64,
          e->revision, (int)e->stream.bytes, e->stream.data, e->position);
    CHECK(wanted->position == 0 || wanted->position == e->position,
          "event %" PRIu32 " has moved from position %" PRIu64 " to %" PRIu64, found - 1, wanted->position,
          e->position);
    wanted->position = e->position;
    if (wanted->sort <= MODEL_METADATA)
        check_sent(e, wanted, found - 1);
    else
        check_made(e, wanted, found - 1);
    return found - 1;
}

void judge_gap(const model *m, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        CHECK(model_may_be_gone(m, i),
              "event %" PRIu32 " of %" PRIu32 " is missing: stream %d revision %" PRId64, i, m->event_count,
              model_event_at(i)->stream, model_event_at(i)->revision);
}

/* --- reading --- */

sl_err judge_next(world *w, sl_cursor *cursor, sl_event *events, uint32_t max, uint32_t *ret_count)
{
    for (int i = 0; i < AGAIN_MAX; i++) {
        const sl_err err = sl_cursor_next(cursor, events, max, ret_count);

        if (err != SL_ERR_AGAIN)
            return err;
        world_wait(w);
    }
    case_fail("a reader was told %d times to ask again, and got nothing", AGAIN_MAX);
}

static sl_err open_cursor(world *w, const sl_read *how, sl_cursor **ret_cursor)
{
    const sl_err err = sl_store_read(w->store, how, ret_cursor);

    CHECK(err != SL_ERR_NOMEM && err != SL_ERR_INVALID, "reading: %s", sl_err_text(err));
    return err;
}

/* How a cursor over everything may end. */
static void check_end(const world *w, sl_err err, judge_mood mood, const char *what)
{
    CHECK(err == SL_ERR_EMPTY || allowed(w, err, mood), "reading %s ended with: %s; %s", what,
          sl_err_text(err), sl_store_problem(w->store));
    check_told(w, err);
}

sl_err judge_present(world *w, const model *m, bool *present, judge_mood mood)
{
    sl_event events[STEP];
    sl_cursor *cursor = NULL;
    uint32_t next = 0, count = 0;
    sl_err err = open_cursor(w, &(sl_read){ .from = 0 }, &cursor);

    CHECK(err == SL_OK, "reading everything: %s", sl_err_text(err));
    memset(present, 0, m->event_count);
    while ((err = judge_next(w, cursor, events, STEP, &count)) == SL_OK) {
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t index = judge_event(m, &events[i]);
            CHECK(index >= next, "event %" PRIu32 " comes after a later one", index);
            present[index] = true;
            next = index + 1;
        }
    }
    sl_cursor_close(cursor);
    check_end(w, err, mood, "everything to see what is there");
    return err == SL_ERR_EMPTY ? SL_OK : err;
}

static bool forwards(world *w, judge_mood mood)
{
    sl_event events[STEP];
    sl_cursor *cursor = NULL;
    uint32_t next = 0, count = 0;
    sl_err err = open_cursor(w, &(sl_read){ .from = 0 }, &cursor);

    while ((err = judge_next(w, cursor, events, 1 + (uint32_t)dice_pick(&w->timing, STEP), &count)) ==
           SL_OK) {
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t index = judge_event(&w->now, &events[i]);
            CHECK(index >= next, "event %" PRIu32 " comes after a later one", index);
            judge_gap(&w->now, next, index);
            next = index + 1;
        }
    }
    sl_cursor_close(cursor);
    check_end(w, err, mood, "everything");
    if (err == SL_ERR_EMPTY)
        judge_gap(&w->now, next, w->now.event_count);
    return err == SL_ERR_EMPTY;
}

static bool backwards(world *w, judge_mood mood)
{
    sl_event events[STEP];
    sl_cursor *cursor = NULL;
    uint32_t above = w->now.event_count, count = 0;
    sl_err err = open_cursor(w, &(sl_read){ .backwards = true, .from = UINT64_MAX }, &cursor);

    while ((err = judge_next(w, cursor, events, 1 + (uint32_t)dice_pick(&w->timing, STEP), &count)) ==
           SL_OK) {
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t index = judge_event(&w->now, &events[i]);
            CHECK(index < above, "backwards, event %" PRIu32 " comes after an earlier one", index);
            judge_gap(&w->now, index + 1, above);
            above = index;
        }
    }
    sl_cursor_close(cursor);
    check_end(w, err, mood, "everything backwards");
    if (err == SL_ERR_EMPTY)
        judge_gap(&w->now, 0, above);
    return err == SL_ERR_EMPTY;
}

bool judge_everything(world *w, judge_mood mood)
{
    const bool all_forwards = forwards(w, mood);

    return backwards(w, mood) && all_forwards;
}

/* --- one stream --- */

static void check_info(world *w, int stream)
{
    const bool is_metadata = model_is_metadata(stream);
    const model_stream *const wanted = &w->now.streams[stream];
    sl_stream_info info;

    sl_store_stream(w->store, text_stream(stream % MODEL_STREAMS, is_metadata), &info);
    CHECK((int64_t)info.revision == wanted->last, "stream %d is at revision %" PRId64 " instead of %" PRId64,
          stream, (int64_t)info.revision, wanted->last);
    if (model_tombstoned(&w->now, stream)) {
        CHECK(info.state == SL_STREAM_TOMBSTONED, "stream %d is not tombstoned", stream);
        return;
    }
    if (is_metadata)
        return;
    CHECK((info.state == SL_STREAM_SOFT_DELETED) == model_soft_deleted(&w->now, stream),
          "stream %d: state %d", stream, (int)info.state);
    CHECK((int64_t)info.truncate_before == wanted->truncate_before &&
              (int64_t)info.max_count == wanted->max_count,
          "stream %d: $tb %" PRIu64 " $maxCount %" PRIu64 " instead of %" PRId64 " and %" PRId64, stream,
          info.truncate_before, info.max_count, wanted->truncate_before, wanted->max_count);
}

/* Revisions of a stream that a reader did not see. */
static void check_skipped(world *w, int stream, int64_t from, int64_t to)
{
    for (int64_t at = from; at < to; at++) {
        const uint32_t event = model_find(&w->now, stream, at);
        CHECK(event == 0 || model_may_be_gone(&w->now, event - 1),
              "stream %d does not show revision %" PRId64, stream, at);
    }
}

/* Reads from one end to the other. False: something is damaged. */
static bool read_stream(world *w, int stream, bool down, int64_t from, judge_mood mood)
{
    const sl_read how = { .stream = text_stream(stream % MODEL_STREAMS, model_is_metadata(stream)),
                          .backwards = down,
                          .from = (uint64_t)from };
    const int64_t last = w->now.streams[stream].last, first = model_first(&w->now, stream);
    int64_t low = !down && from > first ? from : first,
            high = down && from < last ? from : last; /* not seen yet */
    sl_cursor *cursor = NULL;
    sl_event events[STEP];
    uint32_t count = 0;
    sl_err err = open_cursor(w, &how, &cursor);

    CHECK(err == SL_OK, "stream %d can not be read: %s", stream, sl_err_text(err));
    while ((err = judge_next(w, cursor, events, 1 + (uint32_t)dice_pick(&w->timing, STEP), &count)) ==
           SL_OK) {
        for (uint32_t i = 0; i < count; i++) {
            const int64_t revision = model_event_at(judge_event(&w->now, &events[i]))->revision;
            CHECK(model_stream_named(events[i].stream) == stream && revision >= low && revision <= high,
                  "stream %d shows revision %" PRId64 " of %" PRId64 " to %" PRId64, stream, revision, low,
                  high);
            check_skipped(w, stream, down ? revision + 1 : low, down ? high + 1 : revision);
            low = down ? low : revision + 1;
            high = down ? revision - 1 : high;
        }
    }
    sl_cursor_close(cursor);
    check_end(w, err, mood, "a stream");
    if (err == SL_ERR_EMPTY)
        check_skipped(w, stream, low, high + 1);
    return err == SL_ERR_EMPTY;
}

bool judge_stream(world *w, int stream, judge_mood mood)
{
    const sl_err wanted = model_tombstoned(&w->now, stream) ? SL_ERR_STREAM_DELETED
                          : model_soft_deleted(&w->now, stream) || w->now.streams[stream].last < 0
                              ? SL_ERR_NOT_FOUND
                              : SL_OK;
    const int64_t last = w->now.streams[stream].last;
    sl_cursor *cursor = NULL;
    bool whole;

    check_info(w, stream);
    if (wanted != SL_OK) {
        const sl_read how = { .stream = text_stream(stream % MODEL_STREAMS, model_is_metadata(stream)) };
        const sl_err err = sl_store_read(w->store, &how, &cursor);
        CHECK(err == wanted, "opening stream %d: %s, wanted: %s", stream, sl_err_text(err),
              sl_err_text(wanted));
        return true;
    }
    whole = read_stream(w, stream, false, 0, mood);
    whole = read_stream(w, stream, true, INT64_MAX, mood) && whole;
    whole = read_stream(w, stream, false, (int64_t)dice_pick(&w->timing, (uint64_t)last + 2), mood) && whole;
    return read_stream(w, stream, true, (int64_t)dice_pick(&w->timing, (uint64_t)last + 2), mood) && whole;
}

bool judge_all(world *w, judge_mood mood)
{
    bool whole = judge_everything(w, mood);

    for (int i = 0; i < 2 * MODEL_STREAMS; i++)
        whole = judge_stream(w, i, mood) && whole;
    return whole;
}
