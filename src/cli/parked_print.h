/* cli/parked_print.h — a parked message: which event it is, and why it was parked. */
#ifndef SL_CLI_PARKED_PRINT_H
#define SL_CLI_PARKED_PRINT_H

#include "cli/event_print.h"

typedef struct sl_parked_printer {
    sl_event_printer events;
    bool in_full; /* data and metadata too */
} sl_parked_printer;

void sl_parked_printer_init(sl_parked_printer *printer, FILE *out, bool json, bool in_full);
void sl_parked_printer_done(sl_parked_printer *printer);

/* An event of the stream of parked messages, with the link in it resolved. SL_OK or SL_ERR_NOMEM. */
sl_err sl_parked_print(sl_parked_printer *printer, const sl_wire_read_event *event);

#endif
