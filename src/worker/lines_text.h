/* worker/lines_text.h — the lines that long-lived handlers read and write, as pure functions. lines_handler.h shows them. */
#ifndef SL_WORKER_LINES_TEXT_H
#define SL_WORKER_LINES_TEXT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "worker/handler.h"

enum {
    SL_LINES_DEPTH_MAX = 512, /* of JSON that is copied as such; deeper data goes as base64 */
    SL_LINES_RETRY_AFTER_MS_MAX = 7 * 24 * 3600 * 1000
};

typedef struct sl_lines_answer {
    bool is_progress; /* then only id counts */
    sl_uuid id;
    sl_result_kind result; /* DONE, RETRY, FAILED or PARK */
    uint64_t retry_after_ms;
    char reason[SL_RESULT_REASON_BYTES_MAX + 1]; /* printable UTF-8, cut */
} sl_lines_answer;

/* line: without its line end; any bytes. SL_OK, SL_ERR_NOMEM, or SL_ERR_INVALID; then `problem` says what is wrong with it. Fields that
 * it does not know are ignored. */
sl_err sl_lines_answer_parse(sl_str line, sl_lines_answer *ret_answer, sl_text *problem);

/* Append a line, whole or not at all. SL_OK, SL_ERR_NOMEM, SL_ERR_TOO_LARGE. */
sl_err sl_lines_add_message(sl_buf *out, const sl_job *job, uint64_t now_ns);
sl_err sl_lines_add_draining(sl_buf *out, uint64_t remaining_ms);
sl_err sl_lines_add_abort(sl_buf *out, sl_uuid id);

/* Is this one JSON value in valid UTF-8? Then its line ends, which stand outside of its texts, become blanks. */
bool sl_lines_make_one_line(char *json, size_t bytes);

#endif
