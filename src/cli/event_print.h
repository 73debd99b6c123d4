/* cli/event_print.h — an event on one line: for people, or as a JSON object with everything that is known about it.
 *
 * Whatever is in an event, it stays on its line and a terminal obeys none of it. */
#ifndef SL_CLI_EVENT_PRINT_H
#define SL_CLI_EVENT_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "cli/fields.h"
#include "wire/streams_codec.h"

typedef struct sl_event_printer {
    FILE *out;
    bool json;
    bool many_streams; /* the name of the stream is worth showing */
    size_t columns;    /* for people: lines are cut there; SIZE_MAX: never */
    sl_buf compact;    /* JSON without blanks, on its way */
    sl_buf coded;      /* base64, on its way */
} sl_event_printer;

void sl_event_printer_init(sl_event_printer *printer, FILE *out, bool json, bool many_streams);
void sl_event_printer_done(sl_event_printer *printer);

/* SL_OK or SL_ERR_NOMEM. An error of the output is seen by main(). */
sl_err sl_event_print(sl_event_printer *printer, const sl_wire_read_event *event);

/* `"NAME": VALUE, "NAME_encoding": "json"` when the bytes are JSON, else the bytes as base64 and "base64". Empty bytes
 * are null without an encoding. */
sl_err sl_event_print_payload(sl_event_printer *printer, sl_fields *fields, const char *name, sl_str bytes);

#endif
