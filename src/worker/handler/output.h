/* worker/handler/output.h — what handlers print: to the log, but not more than a person could read, and the last of it as a reason.
 *
 * Memory is fixed, whatever is printed: a line is cut at SL_OUTPUT_LINE_BYTES_MAX, and lines above the rate are only counted. */
#ifndef SL_WORKER_HANDLER_OUTPUT_H
#define SL_WORKER_HANDLER_OUTPUT_H

#include "base/log.h"
#include "net/loop.h"
#include "net/process.h"
#include "worker/handler.h"

enum {
    SL_OUTPUT_LINE_BYTES_MAX = 1000,
    SL_OUTPUT_LINES_PER_SECOND_MAX = 100, /* of all processes of a handler together */
    SL_OUTPUT_TAIL_BYTES = 800,           /* of stderr, kept for a reason */
    SL_OUTPUT_REASON_LINES_MAX = 3
};

/* For all processes of one handler. */
typedef struct sl_output_gate {
    sl_loop *loop;
    const sl_logger *log;
    uint64_t second_ends_ns;
    uint32_t line_count; /* in this second */
    uint64_t dropped;    /* and not told yet */
} sl_output_gate;

void sl_output_gate_init(sl_output_gate *gate, sl_loop *loop, const sl_logger *log);

/* Tells how many lines were left out, if any. For the end. */
void sl_output_gate_flush(sl_output_gate *gate);

typedef struct sl_output_line {
    char text[SL_OUTPUT_LINE_BYTES_MAX];
    size_t bytes;
    bool is_cut;
} sl_output_line;

typedef struct sl_output { /* of one process */
    sl_output_gate *gate;
    int64_t process_id;
    sl_uuid message; /* that it works on; zero: none */
    sl_output_line lines[SL_PROCESS_OUTPUT_COUNT_];
    char tail[SL_OUTPUT_TAIL_BYTES];
    size_t tail_bytes;
    bool tail_is_cut;
} sl_output;

/* For a new process. */
void sl_output_begin(sl_output *output, sl_output_gate *gate, int64_t process_id);
void sl_output_take(sl_output *output, sl_process_output which, const char *data, size_t bytes);

/* A reason is about one message: what came before it does not belong to it. */
void sl_output_forget_tail(sl_output *output);

/* The process has ended: so have its last lines. */
void sl_output_end(sl_output *output);

/* Adds the last lines of stderr. False: there are none. */
bool sl_output_add_reason(const sl_output *output, sl_text *reason);

/* "exit code 3: " or "killed by signal 9: " and the last lines of stderr. */
void sl_output_explain_end(const sl_output *output, const sl_process_end *end, sl_text *reason);

/* Adds foreign text as one line: control characters and line ends become blanks, broken characters question marks. Also used for what
 * peers answer, and for what protocols got wrong. */
void sl_output_add_printable(sl_text *text, sl_str foreign);

#endif
