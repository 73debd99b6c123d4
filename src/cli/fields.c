/* cli/fields.c — see cli/fields.h. The second half is the table of what each record of a group holds, in the order of
 * core/effect.h. */
#include "cli/fields.h"

#include <inttypes.h>

#include "base/utf8.h"
#include "cli/print.h"

enum {
    TIME_BYTES = 40
};

void sl_field_name(sl_fields *fields, const char *name)
{
    fprintf(fields->out, fields->json ? "%s\"%s\": " : "%s%s=",
            !fields->any   ? ""
            : fields->json ? ", "
                           : " ",
            name);
    fields->any = true;
}

void sl_field_number(sl_fields *fields, const char *name, uint64_t value)
{
    sl_field_name(fields, name);
    fprintf(fields->out, "%" PRIu64, value);
}

void sl_field_bool(sl_fields *fields, const char *name, bool value)
{
    if (fields->json) {
        sl_field_name(fields, name);
        fputs(value ? "true" : "false", fields->out);
    } else if (value) {
        fprintf(fields->out, "%s%s", fields->any ? " " : "", name);
        fields->any = true;
    }
}

void sl_field_word(sl_fields *fields, const char *name, const char *word)
{
    sl_field_name(fields, name);
    fprintf(fields->out, fields->json ? "\"%s\"" : "%s", word);
}

void sl_field_text(sl_fields *fields, const char *name, sl_str text)
{
    sl_field_name(fields, name);
    (fields->json ? sl_print_json_str : sl_print_quoted)(fields->out, text);
}

void sl_field_uuid(sl_fields *fields, const char *name, sl_uuid value)
{
    char text[SL_UUID_TEXT_BYTES + 1];

    sl_uuid_format(value, text);
    sl_field_word(fields, name, text);
}

void sl_field_time(sl_fields *fields, const char *name, uint64_t wall_ns)
{
    char buffer[TIME_BYTES];
    sl_text text;

    if (wall_ns == 0)
        return;
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_time(&text, wall_ns);
    sl_field_word(fields, name, buffer);
}

static bool is_utf8(sl_str text)
{
    uint32_t code;

    while (text.bytes > 0) {
        const size_t bytes = sl_utf8_first(text, &code);
        if (bytes == 0)
            return false;
        text = (sl_str){ text.data + bytes, text.bytes - bytes };
    }
    return true;
}

void sl_field_bytes(sl_fields *fields, const char *name, sl_str bytes)
{
    char hex_name[32];

    if (is_utf8(bytes)) {
        sl_field_text(fields, name, bytes);
        return;
    }
    snprintf(hex_name, sizeof hex_name, "%s_hex", name);
    sl_field_name(fields, hex_name);
    fputs(fields->json ? "\"" : "", fields->out);
    for (size_t i = 0; i < bytes.bytes; i++)
        fprintf(fields->out, "%02x", (unsigned char)bytes.data[i]);
    fputs(fields->json ? "\"" : "", fields->out);
}

/* --- records of groups --- */

static void lane(sl_fields *f, sl_lane value)
{
    sl_field_word(f, "lane", value == SL_LANE_PARKED ? "parked" : "main");
}

static void place(sl_fields *f, sl_place value)
{
    lane(f, value.lane);
    sl_field_number(f, "message", value.position);
}

static void counters(sl_fields *f, sl_counters value)
{
    sl_field_number(f, "deliveries", value.deliveries);
    sl_field_number(f, "attempts", value.attempts);
    sl_field_number(f, "interrupts", value.interrupts);
    sl_field_number(f, "kills", value.kills);
}

static void range(sl_fields *f, uint64_t from, uint64_t to)
{
    sl_field_number(f, "from", from);
    sl_field_number(f, "to", to);
}

static const char *back_word(sl_back_cause cause)
{
    static const char *const words[SL_BACK_COUNT_] = {
        [SL_BACK_RELEASED] = "released", [SL_BACK_INTERRUPTED] = "interrupted",
        [SL_BACK_NACKED] = "nacked",     [SL_BACK_EXPIRED] = "expired",
        [SL_BACK_LEFT] = "left",         [SL_BACK_DIED] = "died",
    };

    return words[cause];
}

static const char *settle_word(sl_settle_cause cause)
{
    static const char *const words[SL_SETTLE_COUNT_] = {
        [SL_SETTLE_ACKED] = "acked", [SL_SETTLE_SKIPPED] = "skipped", [SL_SETTLE_VANISHED] = "vanished"
    };

    return words[cause];
}

static const char *park_word(sl_park_cause cause)
{
    static const char *const words[SL_PARK_COUNT_] = {
        [SL_PARK_ASKED] = "asked", [SL_PARK_RETRIES] = "retries", [SL_PARK_KILLS] = "kills"
    };

    return words[cause];
}

static void settings(sl_fields *f, const sl_settings *s)
{
    sl_field_word(f, "strategy", sl_strategy_name(s->strategy));
    sl_field_bool(f, "key_order", s->key_order);
    sl_field_number(f, "lease_ns", s->lease_ns);
    sl_field_number(f, "retries_max", s->retries_max);
    sl_field_number(f, "kills_max", s->kills_max);
    sl_field_number(f, "interrupts_max", s->interrupts_max);
    sl_field_number(f, "backoff_first_ns", s->backoff.delay_first_ns);
    sl_field_number(f, "backoff_max_ns", s->backoff.delay_max_ns);
    sl_field_number(f, "buffer_max", s->buffer_max);
    sl_field_number(f, "consumers_max", s->consumers_max);
    sl_field_number(f, "checkpoint_after_ns", s->checkpoint_after_ns);
    sl_field_number(f, "checkpoint_count_min", s->checkpoint_count_min);
    sl_field_number(f, "checkpoint_count_max", s->checkpoint_count_max);
}

static void lease(sl_fields *f, const sl_effect *e)
{
    place(f, e->lease.place);
    sl_field_uuid(f, "id", e->lease.id);
    sl_field_number(f, "key", e->lease.key);
    sl_field_number(f, "consumer", e->lease.consumer);
    sl_field_number(f, "token", e->lease.token);
    sl_field_number(f, "until_ns", e->lease.until_ns);
    sl_field_number(f, "deliveries", e->lease.deliveries);
}

static void lease_change(sl_fields *f, const sl_effect *e)
{
    if (e->kind == SL_EFFECT_STARTED) {
        place(f, e->started.place);
        sl_field_number(f, "token", e->started.token);
    } else if (e->kind == SL_EFFECT_EXTEND) {
        place(f, e->extend.place);
        sl_field_number(f, "token", e->extend.token);
        sl_field_number(f, "until_ns", e->extend.until_ns);
    } else {
        place(f, e->move.place);
        sl_field_number(f, "token", e->move.token);
        sl_field_number(f, "consumer", e->move.consumer);
    }
}

static void message(sl_fields *f, const sl_effect *e)
{
    place(f, e->message.place);
    sl_field_uuid(f, "id", e->message.id);
    sl_field_number(f, "key", e->message.key);
    sl_field_number(f, "consumer", e->message.consumer);
    sl_field_number(f, "token", e->message.token);
    sl_field_number(f, "until_ns", e->message.until_ns);
    counters(f, e->message.counters);
    sl_field_number(f, "not_before_ns", e->message.not_before_ns);
    sl_field_bool(f, "started", e->message.started);
    sl_field_bool(f, "charged", e->message.charged);
    sl_field_bool(f, "ended", e->message.ended);
}

static void settle(sl_fields *f, const sl_effect *e)
{
    if (e->kind == SL_EFFECT_SETTLE) {
        place(f, e->settle.place);
        sl_field_uuid(f, "id", e->settle.id);
        range(f, e->settle.from, e->settle.to);
        sl_field_word(f, "cause", settle_word(e->settle.cause));
    } else {
        place(f, e->park.place);
        sl_field_uuid(f, "id", e->park.id);
        range(f, e->park.from, e->park.to);
        sl_field_word(f, "cause", park_word(e->park.cause));
        counters(f, e->park.counters);
    }
}

static void back(sl_fields *f, const sl_effect *e)
{
    place(f, e->back.place);
    sl_field_word(f, "cause", back_word(e->back.cause));
    sl_field_bool(f, "charged", e->back.charged);
    counters(f, e->back.counters);
    sl_field_number(f, "not_before_ns", e->back.not_before_ns);
}

static void consumer(sl_fields *f, const sl_effect *e)
{
    if (e->kind == SL_EFFECT_JOIN) {
        sl_field_number(f, "consumer", e->join.consumer);
        sl_field_uuid(f, "session", e->join.session);
        sl_field_bool(f, "sends_started", e->join.sends_started);
    } else if (e->kind == SL_EFFECT_GONE) {
        sl_field_number(f, "consumer", e->gone.consumer);
    } else {
        sl_field_number(f, "tag", e->rule.tag);
        sl_field_bool(f, "stop", e->rule.stop);
    }
}

void sl_field_effect(sl_fields *f, const sl_effect *e)
{
    sl_field_word(f, "record", sl_effect_name(e->kind));
    switch (e->kind) {
    case SL_EFFECT_EPOCH:
        sl_field_number(f, "epoch", e->epoch.epoch);
        sl_field_number(f, "messages_max", e->epoch.messages_max);
        return;
    case SL_EFFECT_SETTINGS: settings(f, &e->settings); return;
    case SL_EFFECT_RULE:
    case SL_EFFECT_JOIN:
    case SL_EFFECT_GONE: consumer(f, e); return;
    case SL_EFFECT_LEASE: lease(f, e); return;
    case SL_EFFECT_STARTED:
    case SL_EFFECT_EXTEND:
    case SL_EFFECT_MOVE: lease_change(f, e); return;
    case SL_EFFECT_BACK: back(f, e); return;
    case SL_EFFECT_SETTLE:
    case SL_EFFECT_PARK: settle(f, e); return;
    case SL_EFFECT_CHECKPOINT:
        lane(f, e->checkpoint.lane);
        sl_field_number(f, "below", e->checkpoint.below);
        return;
    case SL_EFFECT_PASSED:
        lane(f, e->passed.lane);
        range(f, e->passed.from, e->passed.to);
        return;
    case SL_EFFECT_MESSAGE: message(f, e); return;
    case SL_EFFECT_DELIVER:
    case SL_EFFECT_STOP_REQUESTED:
    case SL_EFFECT_STOPPED:
    case SL_EFFECT_SETTLED:
    case SL_EFFECT_LOST:
    case SL_EFFECT_DRAINED:
    case SL_EFFECT_COUNT_: return; /* answers are never stored */
    }
}
