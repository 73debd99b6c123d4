/* cli/event_print.c — see cli/event_print.h. */
#include "cli/event_print.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "cli/json_value.h"
#include "cli/print.h"
#include "wire/coding.h"

enum {
    TIME_BYTES = 40,
    NAME_BYTES = 64,
    DATA_COLUMNS_MIN = 20, /* so much of the data is shown, however long the rest of the line is */
    NAME_COLUMNS_MAX = 60, /* of a type or a stream, for people */
    PAYLOAD_BYTES_MAX = 128 * 1024 * 1024 /* six times the largest message: every byte may become \u00XX */
};

void sl_event_printer_init(sl_event_printer *printer, FILE *out, bool json, bool many_streams)
{
    const int fd = fileno(out);

    *printer = (sl_event_printer){ .out = out,
                                   .json = json,
                                   .many_streams = many_streams,
                                   .columns = fd >= 0 && isatty(fd) ? sl_print_columns(out) : SIZE_MAX };
    sl_buf_init(&printer->compact, &sl_alloc_default, PAYLOAD_BYTES_MAX);
    sl_buf_init(&printer->coded, &sl_alloc_default, PAYLOAD_BYTES_MAX);
}

void sl_event_printer_done(sl_event_printer *printer)
{
    sl_buf_done(&printer->compact);
    sl_buf_done(&printer->coded);
}

static sl_str content(const sl_buf *buf)
{
    return (sl_str){ (const char *)sl_buf_data(buf), buf->bytes };
}

/* --- JSON --- */

static sl_err print_base64(sl_event_printer *printer, sl_str bytes)
{
    sl_err err;

    sl_buf_clear(&printer->coded);
    err = sl_base64_append(&printer->coded, bytes);
    for (size_t i = bytes.bytes; i % 3 != 0 && err == SL_OK; i++)
        err = sl_buf_append_u8(&printer->coded, '='); /* most readers want the padding */
    if (err == SL_OK)
        fprintf(printer->out, "\"%.*s\"", (int)printer->coded.bytes,
                (const char *)sl_buf_data(&printer->coded));
    return err;
}

static sl_err print_value(sl_event_printer *printer, sl_str json)
{
    sl_err err;

    sl_buf_clear(&printer->compact);
    err = sl_json_compact(json, &printer->compact);
    if (err == SL_OK)
        fwrite(sl_buf_data(&printer->compact), 1, printer->compact.bytes, printer->out);
    return err;
}

sl_err sl_event_print_payload(sl_event_printer *printer, sl_fields *fields, const char *name, sl_str bytes)
{
    const bool is_json = sl_json_is_value(bytes);
    char encoding_name[NAME_BYTES];
    sl_err err;

    sl_field_name(fields, name);
    if (bytes.bytes == 0) {
        fputs("null", printer->out);
        return SL_OK;
    }
    err = is_json ? print_value(printer, bytes) : print_base64(printer, bytes);
    snprintf(encoding_name, sizeof encoding_name, "%s_encoding", name);
    sl_field_word(fields, encoding_name, is_json ? "json" : "base64");
    return err;
}

static void print_place(sl_fields *fields, const sl_wire_recorded *event)
{
    sl_field_text(fields, "stream", event->stream);
    sl_field_number(fields, "revision", event->revision);
    sl_field_number(fields, "position", event->commit_position);
    if (event->prepare_position != event->commit_position)
        sl_field_number(fields, "prepare_position", event->prepare_position);
    sl_field_uuid(fields, "id", event->id.uuid);
}

static void print_link(sl_event_printer *printer, sl_fields *fields, const sl_wire_read_event *event)
{
    sl_fields inner = { .out = printer->out, .json = true };

    if (!event->has_link)
        return;
    sl_field_bool(fields, "resolved", event->has_event);
    sl_field_name(fields, "link");
    fputc('{', printer->out);
    print_place(&inner, &event->link);
    fputc('}', printer->out);
}

static sl_err print_object(sl_event_printer *printer, const sl_wire_read_event *event)
{
    const sl_wire_recorded *const shown = event->has_event ? &event->event : &event->link;
    sl_fields fields = { .out = printer->out, .json = true };
    sl_err err;

    fputc('{', printer->out);
    print_place(&fields, shown);
    sl_field_text(&fields, "type", shown->type);
    sl_field_time(&fields, "created", shown->created_ticks * SL_WIRE_TICK_NS);
    sl_field_text(&fields, "content_type", shown->content_type);
    err = sl_event_print_payload(printer, &fields, "data", shown->data);
    if (err == SL_OK)
        err = sl_event_print_payload(printer, &fields, "metadata", shown->custom_metadata);
    print_link(printer, &fields, event);
    fputs("}\n", printer->out);
    return err;
}

/* --- for people --- */

static size_t left(const sl_event_printer *printer, size_t column)
{
    if (printer->columns == SIZE_MAX)
        return SIZE_MAX;
    return column + DATA_COLUMNS_MIN > printer->columns ? DATA_COLUMNS_MIN : printer->columns - column;
}

/* JSON is shown as JSON; anything else with escapes where that is needed. */
static sl_err print_data(sl_event_printer *printer, sl_str data, size_t columns_max)
{
    sl_err err;

    if (!sl_json_is_value(data)) {
        sl_print_safe(printer->out, data, columns_max);
        return SL_OK;
    }
    sl_buf_clear(&printer->compact);
    err = sl_json_compact(data, &printer->compact);
    if (err != SL_OK)
        return err;
    if (columns_max >= printer->compact.bytes)
        fwrite(sl_buf_data(&printer->compact), 1, printer->compact.bytes, printer->out);
    else
        sl_print_safe(printer->out, content(&printer->compact), columns_max);
    return SL_OK;
}

/* "12", or "12@orders" among events of many streams. Returns the columns. */
static size_t print_name(const sl_event_printer *printer, const sl_wire_recorded *event)
{
    const int digits = fprintf(printer->out, "%" PRIu64, event->revision);
    const size_t columns = digits < 0 ? 0 : (size_t)digits;

    if (!printer->many_streams)
        return columns;
    fputc('@', printer->out);
    return columns + 1 + sl_print_safe(printer->out, event->stream, NAME_COLUMNS_MAX);
}

static size_t print_time(FILE *out, uint64_t ticks)
{
    char buffer[TIME_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_time(&text, ticks * SL_WIRE_TICK_NS);
    fputs(buffer, out);
    return text.bytes;
}

static sl_err print_line(sl_event_printer *printer, const sl_wire_read_event *event)
{
    const sl_wire_recorded *const place = event->has_link ? &event->link : &event->event;
    const sl_wire_recorded *const shown = event->has_event ? &event->event : &event->link;
    FILE *const out = printer->out;
    size_t columns = 0;
    sl_err err;

    if (printer->many_streams) {
        const int digits = fprintf(out, "%" PRIu64 "  ", place->commit_position);
        columns += digits < 0 ? 0 : (size_t)digits;
    }
    columns += print_name(printer, place);
    fputs("  ", out);
    columns += print_time(out, shown->created_ticks) + 4;
    fputs("  ", out);
    columns += sl_print_safe(out, shown->type, NAME_COLUMNS_MAX) + 2;
    fputs("  ", out);
    err = print_data(printer, shown->data, left(printer, columns));
    fputc('\n', out);
    return err;
}

sl_err sl_event_print(sl_event_printer *printer, const sl_wire_read_event *event)
{
    if (!event->has_event && !event->has_link)
        return SL_OK; /* nothing is said about it */
    return printer->json ? print_object(printer, event) : print_line(printer, event);
}
