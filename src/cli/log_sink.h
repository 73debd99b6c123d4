/* cli/log_sink.h — where the log lines of serve and work go: to the error output, and never at the cost of the loop.
 *
 *      line --> taken --> out
 *         \--> not taken: nobody reads --> left out and counted --> the next line that is taken has a note before it:
 *
 *      2026-11-15T22:53:32.123Z WARN  lines were left out: nobody read the log count=17
 *
 * A log agent that hangs, `| less`, or Ctrl-S must not stop deliveries, health checks and the drain; whoever waited for a line to be
 * read would be killed in the end, and its messages would run twice. One thread at a time. */
#ifndef SL_CLI_LOG_SINK_H
#define SL_CLI_LOG_SINK_H

#include "base/log.h"
#include "net/outlet.h"

#include <stdio.h>

typedef struct sl_log_sink {
    int fd; /* that of the error output */
    sl_outlet outlet;
    sl_log_format format; /* of the note */
    uint64_t left_out;    /* lines that no note has told of */
    bool is_torn; /* the last line was taken in part: the next one begins with the newline that is missing */
    size_t last_bytes; /* of the line that was left out last: the end may still have the time for it */
    char last[SL_LOG_LINE_BYTES_MAX];
} sl_log_sink;

/* What err holds back is written first; it stays the caller's. */
void sl_log_sink_begin(sl_log_sink *sink, FILE *err, sl_log_format format);

/* An sl_log_sink_fn; ctx is the sink. Never waits. The note is written whatever the least level of the log is. */
void sl_log_sink_write(void *ctx, const char *line, size_t line_bytes);

/* Once the loop is over. A reader who is merely slow gets a tenth of a second, all in all, for the last line. Where nobody reads
 * even then, the error output of this process leads nowhere from now on: what a command has to say at its end does not wait either. */
void sl_log_sink_end(sl_log_sink *sink);

#endif
