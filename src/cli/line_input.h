/* cli/line_input.h — lines of a file or a pipe, in a loop that has other things to do as well.
 *
 *      open --> want(true) --> on_more --> next, next, ... --> drop --> ... --> close
 *
 * A pipe and a terminal are waited for; a file is always ready and is read when it is wanted. Lines are views into one
 * buffer: they are good until they are dropped. */
#ifndef SL_CLI_LINE_INPUT_H
#define SL_CLI_LINE_INPUT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SL_LINE_READ_BYTES = 256 * 1024 /* of the file at a time */
};

typedef struct sl_line_input {
    sl_loop *loop;
    int fd;
    bool is_ended;    /* nothing more will come; what is in the buffer is still to be taken */
    bool is_waitable; /* the loop can say when there is more */
    sl_watch *watch;
    sl_buf text;
    size_t at;       /* lines before this byte of the text were handed out */
    size_t searched; /* no line end between `at` and here */
    uint64_t line_number;
    size_t line_bytes_max;
    int read_errno; /* what ended it early, or 0 */
    void (*on_more)(void *ctx);
    void *ctx;
} sl_line_input;

/* path "-": the standard input. on_more comes when there is something to read for a waitable input that is wanted. SL_OK,
 * or SL_ERR_IO, and errno says why. */
sl_err sl_line_input_open(sl_line_input *input, sl_loop *loop, const char *path, size_t line_bytes_max);

/* Also right for one that is all zero. */
void sl_line_input_close(sl_line_input *input);

/* Is more wanted now? SL_OK or SL_ERR_NOMEM. */
sl_err sl_line_input_want(sl_line_input *input, bool wanted);

/* The next whole line, without its line end; the last one needs none.
 *   SL_OK             input->line_number is its number, from 1
 *   SL_ERR_AGAIN      none is there yet: read more
 *   SL_ERR_EMPTY      the input has ended
 *   SL_ERR_TOO_LARGE  it is longer than allowed */
sl_err sl_line_input_next(sl_line_input *input, sl_str *ret_line);

/* Lines that were handed out are not needed any more. */
void sl_line_input_drop(sl_line_input *input);

/* Reads once; of a waitable input only after on_more, or it would block. SL_OK, SL_ERR_NOMEM; what the system refuses ends
 * the input. Nothing may be handed out and not dropped. */
sl_err sl_line_input_read(sl_line_input *input);

#endif
