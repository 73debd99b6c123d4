/* cli/parked_print.c — see cli/parked_print.h.
 *
 * A parked message is a link in a stream of its own, and what is said about the parking is the metadata of the link: "reason" and
 * "added" with every server, "consumer" where it is known. Anything may stand there, since whoever may write the stream may have. */
#include "cli/parked_print.h"

#include <cjson/cJSON.h>
#include <inttypes.h>

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

/* Empty when there is no such text. A reason has lines; for people it becomes one. */
static sl_str text_of(const cJSON *metadata, const char *name)
{
    char *const text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, name));

    for (char *c = text; c != NULL && *c != '\0'; c++)
        *c = *c == '\n' || *c == '\r' ? ' ' : *c;
    return sl_str_trim(sl_str_from(text));
}

typedef struct parked {
    const sl_wire_recorded *link, *target; /* target: NULL when it is gone */
    sl_str reason, consumer;
} parked;

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

static void print_paragraph(const sl_parked_printer *printer, const parked *p)
{
    FILE *const out = printer->events.out;
    char time[TIME_BYTES];

    format_time(p->link->created_ticks, time);
    fprintf(out, "parked message %" PRIu64 "\n  parked    %s\n", p->link->revision, time);
    print_named(out, "reason", p->reason);
    print_named(out, "consumer", p->consumer);
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
                       .consumer = text_of(metadata, "consumer") };
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
