/* worker/lines_handler.h — long-lived processes, one message at a time in each, a line of JSON for everything.
 *
 * To the handler, which is run by `/bin/sh -c` and reads its standard input:
 *
 *      {"type":"message","id":"...","token":1,"attempt":1,"stream":"..","group":"..","event_type":"..","revision":0,
 *       "content_type":"..","created":"2026-11-15T22:53:32.123Z","remaining_ms":30000,"data":...,"metadata":...}
 *      {"type":"draining","remaining_ms":5000}       a drain has begun (S2.20)
 *      {"type":"abort","id":"..."}                   end this message
 *
 * `data` is there when the content type is JSON and the data is valid; line ends between its parts become blanks, nothing else
 * changes. Otherwise "data_base64" holds it. The same for metadata, which is left out when it is empty. remaining_ms is left out without a
 * limit.
 *
 * From the handler, on its standard output:
 *
 *      {"id":"...","result":"ack"}                   or "retry", "failed", "park"; also "reason":"..", "retry_after_ms":500
 *      {"type":"progress","id":"..."}                a sign of life
 *
 * Anything else breaks the contract: other text, an answer to another message or to none, a line above SL_LINES_LINE_BYTES_MAX. Then the
 * process is killed, and the message that it held fails with a reason that says what was wrong.
 *
 * A process is started when it is needed. When it dies, only the message that it held is charged, and if it had answered one before, only when it has read something
 * of it: otherwise the next process gets it. The next start waits, from
 * SL_LINES_PAUSE_MS_MIN doubling to SL_LINES_PAUSE_MS_MAX, until a message was answered. A message that waits for a process
 * moves to another one that becomes free. kill() is SIGKILL. close() closes the input of each process; those that are there after half
 * of close_ns get SIGTERM, after three quarters SIGKILL, and the rest is for their end.
 *
 * stderr goes to the log as info, limited. */
#ifndef SL_WORKER_LINES_HANDLER_H
#define SL_WORKER_LINES_HANDLER_H

#include "base/log.h"
#include "net/loop.h"
#include "worker/handler.h"

enum {
    SL_LINES_LINE_BYTES_MAX = 1024 * 1024,         /* of an answer */
    SL_LINES_UNSENT_BYTES_MAX = 256 * 1024 * 1024, /* of a message, and what is said while it is being read */
    SL_LINES_KEPT_BYTES = 256 * 1024,              /* buffers above this are given back when they are empty */
    SL_LINES_PAUSE_MS_MIN = 100,
    SL_LINES_PAUSE_MS_MAX = 10 * 1000,
    SL_LINES_CLOSE_MS = 2000 /* for whoever does not say how long close() may take */
};

typedef struct sl_lines_options {
    const char *command; /* copied */
    uint32_t slots;      /* processes at the same time */
    const char *const
        *environment;  /* NAME=value to add to our own environment; copied; ends with NULL; NULL: nothing */
    bool abort_signal; /* an abort is also said with SIGTERM */
    uint64_t close_ns; /* that close() may take; 0: SL_LINES_CLOSE_MS */
    const sl_logger *log; /* must live as long as the handler */
} sl_lines_options;

/* SL_OK, SL_ERR_NOMEM, or SL_ERR_INVALID with a sentence in `problem`. */
sl_err sl_lines_handler_new(sl_loop *loop, const sl_lines_options *options, sl_text *problem,
                            sl_handler **ret_handler);

#endif
