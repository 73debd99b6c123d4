/* cli/parked_print.c — see cli/parked_print.h.
 *
 * A parked message is a link in a stream of its own, and what is said about the parking is the metadata of the link: "reason" and
 * "added" with every server, "consumer" where it is known, counts and "history" of ours. Anything may stand there, since whoever may
 * write the stream may have. */
#include "cli/parked_print.h"

#include <cjson/cJSON.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "cli/print.h"

enum {
    TIME_BYTES = 40,
    NAME_COLUMNS_MAX = 60,
    REST_COLUMNS_MIN = 20,
};

void sl_parked_printer_init(sl_parked_printer *printer, FILE *out, bool json, bool in_full)
{
    sl_event_printer_init(&printer->events, out, json, true);
    printer->in_full = in_full;
}

void sl_parked_printer_done(sl_parked_printer *printer)
{
    sl_event_printer_done(&printer->events);
}

/* --- what the link says --- */

static const cJSON *item_of(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* Empty when there is no such text. A reason has lines; for people it becomes one. */
static sl_str text_of(const cJSON *metadata, const char *name)
{
    char *const text = cJSON_GetStringValue(item_of(metadata, name));

    for (char *c = text; c != NULL && *c != '\0'; c++)
        *c = *c == '\n' || *c == '\r' ? ' ' : *c;
    return sl_str_trim(sl_str_from(text));
}

typedef struct parked {
    const sl_wire_recorded *link, *target; /* target: NULL when it is gone */
    sl_str reason, consumer;
    const cJSON *metadata; /* NULL: it is no JSON */
} parked;

/* False: there is no such count. */
static bool count_of(const cJSON *object, const char *name, uint64_t *ret_count)
{
    const cJSON *const item = item_of(object, name);

    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= UINT32_MAX))
        return false;
    *ret_count = (uint64_t)item->valuedouble;
    return true;
}

static void format_time(uint64_t ticks, char buffer[static TIME_BYTES])
{
    sl_text text;

    sl_text_init(&text, buffer, TIME_BYTES);
    sl_text_add_time(&text, ticks * SL_WIRE_TICK_NS);
}

/* --- for programs --- */

static sl_err print_target(sl_parked_printer *printer, const sl_wire_recorded *target)
{
    FILE *const out = printer->events.out;
    sl_fields fields = { .out = out, .json = true };
    sl_err err = SL_OK;

    fputc('{', out);
    sl_field_text(&fields, "stream", target->stream);
    sl_field_number(&fields, "revision", target->revision);
    sl_field_uuid(&fields, "id", target->id.uuid);
    sl_field_text(&fields, "type", target->type);
    sl_field_time(&fields, "created", target->created_ticks * SL_WIRE_TICK_NS);
    if (printer->in_full) {
        sl_field_text(&fields, "content_type", target->content_type);
        err = sl_event_print_payload(&printer->events, &fields, "data", target->data);
        if (err == SL_OK)
            err = sl_event_print_payload(&printer->events, &fields, "metadata", target->custom_metadata);
    }
    fputc('}', out);
    return err;
}

static void print_failure_object(FILE *out, const cJSON *failure)
{
    sl_fields fields = { .out = out, .json = true };
    uint64_t attempt;

    fputc('{', out);
    if (count_of(failure, "attempt", &attempt))
        sl_field_number(&fields, "attempt", attempt);
    sl_field_text(&fields, "time", text_of(failure, "time"));
    sl_field_text(&fields, "reason", text_of(failure, "reason"));
    fputc('}', out);
}

/* Only what is there: other servers count nothing. */
static void print_past(FILE *out, const cJSON *metadata, sl_fields *fields)
{
    static const char *const counts[] = { "attempts", "deliveries", "interrupts", "kills" };
    const cJSON *const history = item_of(metadata, "history"), *failure;
    uint64_t count;

    for (size_t i = 0; i < SL_COUNT_OF(counts); i++)
        if (count_of(metadata, counts[i], &count))
            sl_field_number(fields, counts[i], count);
    if (!cJSON_IsArray(history))
        return;
    sl_field_name(fields, "history");
    fputc('[', out);
    cJSON_ArrayForEach(failure, history)
    {
        fputs(failure == history->child ? "" : ", ", out);
        print_failure_object(out, failure);
    }
    fputc(']', out);
}

static sl_err print_object(sl_parked_printer *printer, const parked *p)
{
    FILE *const out = printer->events.out;
    sl_fields fields = { .out = out, .json = true };
    sl_err err = SL_OK;

    fputc('{', out);
    sl_field_number(&fields, "number", p->link->revision);
    sl_field_uuid(&fields, "id", p->link->id.uuid);
    sl_field_time(&fields, "parked_at", p->link->created_ticks * SL_WIRE_TICK_NS);
    sl_field_text(&fields, "reason", p->reason);
    if (p->consumer.bytes > 0)
        sl_field_text(&fields, "consumer", p->consumer);
    print_past(out, p->metadata, &fields);
    sl_field_text(&fields, "link", p->link->data);
    if (printer->in_full)
        err = sl_event_print_payload(&printer->events, &fields, "link_metadata", p->link->custom_metadata);
    sl_field_name(&fields, "event");
    if (p->target == NULL)
        fputs("null", out);
    else if (err == SL_OK)
        err = print_target(printer, p->target);
    fputs("}\n", out);
    return err;
}

/* --- for people --- */

/* 0  2026-11-16T09:00:00.000Z  5@orders  placed  Reached retry count of 10 */
static void print_line(const sl_parked_printer *printer, const parked *p)
{
    FILE *const out = printer->events.out;
    const size_t columns_max = printer->events.columns;
    char time[TIME_BYTES];
    size_t columns;
    int digits;

    format_time(p->link->created_ticks, time);
    digits = fprintf(out, "%" PRIu64 "  %s  ", p->link->revision, time);
    columns = digits < 0 ? 0 : (size_t)digits;
    columns += sl_print_safe(out, p->link->data, NAME_COLUMNS_MAX);
    fputs("  ", out);
    columns += sl_print_safe(out, p->target == NULL ? SL_STR("(gone)") : p->target->type, NAME_COLUMNS_MAX);
    fputs("  ", out);
    columns += 4;
    if (columns_max != SIZE_MAX && columns + REST_COLUMNS_MIN > columns_max)
        columns = columns_max - REST_COLUMNS_MIN;
    sl_print_safe(out, p->reason, columns_max == SIZE_MAX ? SIZE_MAX : columns_max - columns);
    fputc('\n', out);
}

static void print_named(FILE *out, const char *name, sl_str text)
{
    if (text.bytes == 0)
        return;
    fprintf(out, "  %-9s ", name);
    sl_print_safe(out, text, SIZE_MAX);
    fputc('\n', out);
}

/*   failed    2  2026-11-16T09:00:00.000Z  exit code 1: no such item */
static void print_failure(FILE *out, const cJSON *failure)
{
    uint64_t attempt;

    if (!count_of(failure, "attempt", &attempt))
        return;
    fprintf(out, "  %-9s %" PRIu64 "  ", "failed", attempt);
    sl_print_safe(out, text_of(failure, "time"), TIME_BYTES);
    fputs("  ", out);
    sl_print_safe(out, text_of(failure, "reason"), SIZE_MAX);
    fputc('\n', out);
}

static void print_history(FILE *out, const cJSON *metadata)
{
    const cJSON *const history = item_of(metadata, "history"), *failure;
    uint64_t attempts;

    if (count_of(metadata, "attempts", &attempts))
        fprintf(out, "  %-9s %" PRIu64 "\n", "attempts", attempts);
    if (cJSON_IsArray(history))
        cJSON_ArrayForEach(failure, history) print_failure(out, failure);
}

static void print_paragraph(const sl_parked_printer *printer, const parked *p)
{
    FILE *const out = printer->events.out;
    char time[TIME_BYTES];

    format_time(p->link->created_ticks, time);
    fprintf(out, "parked message %" PRIu64 "\n  parked    %s\n", p->link->revision, time);
    print_named(out, "reason", p->reason);
    print_named(out, "consumer", p->consumer);
    print_history(out, p->metadata);
    print_named(out, "event", p->link->data);
    if (p->target == NULL) {
        fputs("  the event itself is gone\n", out);
        return;
    }
    format_time(p->target->created_ticks, time);
    print_named(out, "type", p->target->type);
    fprintf(out, "  created   %s\n", time);
    print_named(out, "data", p->target->data);
    print_named(out, "metadata", p->target->custom_metadata);
}

sl_err sl_parked_print(sl_parked_printer *printer, const sl_wire_read_event *event)
{
    const sl_wire_recorded *const link = event->has_link ? &event->link : &event->event;
    cJSON *const metadata = cJSON_ParseWithLength(link->custom_metadata.data, link->custom_metadata.bytes);
    const parked p = { .link = link,
                       .target = event->has_link && event->has_event ? &event->event : NULL,
                       .reason = text_of(metadata, "reason"),
                       .consumer = text_of(metadata, "consumer"),
                       .metadata = metadata };
    sl_err err = SL_OK;

    if (printer->events.json)
        err = print_object(printer, &p);
    else if (printer->in_full)
        print_paragraph(printer, &p);
    else
        print_line(printer, &p);
    cJSON_Delete(metadata);
    return err;
}
