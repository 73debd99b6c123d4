/* cli/log_sink.c — see log_sink.h. */
#include "cli/log_sink.h"

#include "net/loop.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 50 /* twice at the end: for the last line, and for what the command says after it */
};

static_assert((size_t)SL_LOG_LINE_BYTES_MAX <= (size_t)SL_OUTLET_BYTES_MAX,
              "a line is one write: a pipe never takes a part of it");

void sl_log_sink_begin(sl_log_sink *sink, FILE *err, sl_log_format format)
{
    (void)fflush(err);
    *sink = (sl_log_sink){ .fd = fileno(err), .format = format };
    sink->outlet = sl_outlet_open(sink->fd);
}

static sl_err put(sl_log_sink *sink, sl_str text)
{
    const size_t bytes = text.bytes;
    sl_err err = SL_OK;

    while (err == SL_OK && text.bytes > 0)
        err = sl_outlet_write(&sink->outlet, &text);
    sink->is_torn = sink->is_torn || (err != SL_OK && text.bytes < bytes);
    return err;
}

static sl_err put_line(sl_log_sink *sink, sl_str line)
{
    sl_err err = SL_OK;

    if (sink->is_torn) {
        err = put(sink, SL_STR("\n"));
        sink->is_torn = err != SL_OK;
    }
    return err == SL_OK ? put(sink, line) : err;
}

/* --- the note --- */

static void put_note(void *ctx, const char *line, size_t line_bytes)
{
    sl_log_sink *const sink = ctx;

    if (put_line(sink, (sl_str){ line, line_bytes }) == SL_OK)
        sink->left_out = 0;
}

static void say_left_out(sl_log_sink *sink)
{
    const sl_logger log = { .level_min = SL_LOG_WARN,
                            .format = sink->format,
                            .clock = sl_loop_stopwatch(),
                            .sink = put_note,
                            .sink_ctx = sink };

    sl_log(&log, SL_LOG_WARN, "lines were left out: nobody read the log",
           SL_LOG_U64("count", sink->left_out));
}

/* --- lines --- */

static void leave_out(sl_log_sink *sink, sl_str line)
{
    assert(line.bytes <= sizeof sink->last);
    memmove(sink->last, line.data, line.bytes); /* it may be this one, once more */
    sink->last_bytes = line.bytes;
    sink->left_out++;
}

/* A line without a reader is lost without a word: where could it be told? */
void sl_log_sink_write(void *ctx, const char *line, size_t line_bytes)
{
    sl_log_sink *const sink = ctx;
    const sl_str text = { line, line_bytes };

    if (sink->left_out > 0)
        say_left_out(sink);
    if (sink->left_out > 0 || put_line(sink, text) == SL_ERR_AGAIN)
        leave_out(sink, text);
}

static void lead_nowhere(int fd)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (nowhere < 0)
        return;
    (void)dup2(nowhere, fd);
    (void)close(nowhere);
}

void sl_log_sink_end(sl_log_sink *sink)
{
    if (sink->left_out > 0 && sl_outlet_wait(&sink->outlet, PATIENCE_MS)) {
        sink->left_out--; /* this one comes now */
        sl_log_sink_write(sink, sink->last, sink->last_bytes);
    }
    if (!sl_outlet_wait(&sink->outlet, PATIENCE_MS))
        lead_nowhere(sink->fd);
    sl_outlet_close(&sink->outlet);
}
