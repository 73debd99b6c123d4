/* cli/line_input.c — see cli/line_input.h. */
#include "cli/line_input.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void on_readable(void *ctx)
{
    sl_line_input *input = ctx;

    input->on_more(input->ctx);
}

/* What cannot be waited for is a file: it never makes anybody wait. */
static sl_err watch(sl_line_input *input)
{
    const sl_err err = sl_watch_new(input->loop, input->fd, on_readable, input, &input->watch);

    if (err == SL_ERR_NOMEM)
        return err;
    input->is_waitable = err == SL_OK;
    return SL_OK;
}

static void unwatch(sl_line_input *input)
{
    sl_watch_free(input->watch);
    input->watch = NULL;
}

sl_err sl_line_input_open(sl_line_input *input, sl_loop *loop, const char *path, size_t line_bytes_max)
{
    const int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return SL_ERR_IO;
    *input = (sl_line_input){ .loop = loop, .fd = fd, .line_bytes_max = line_bytes_max };
    sl_buf_init(&input->text, &sl_alloc_default, line_bytes_max + 2 * SL_LINE_READ_BYTES);
    if (watch(input) != SL_OK) {
        sl_line_input_close(input);
        errno = ENOMEM;
        return SL_ERR_IO;
    }
    unwatch(input); /* it was only to find out */
    return SL_OK;
}

void sl_line_input_close(sl_line_input *input)
{
    if (input->loop == NULL)
        return;
    unwatch(input);
    close(input->fd);
    sl_buf_done(&input->text);
    *input = (sl_line_input){ 0 };
}

sl_err sl_line_input_want(sl_line_input *input, bool wanted)
{
    wanted = wanted && input->is_waitable && !input->is_ended;
    if (wanted == (input->watch != NULL))
        return SL_OK;
    if (wanted)
        return watch(input);
    unwatch(input);
    return SL_OK;
}

sl_err sl_line_input_next(sl_line_input *input, sl_str *ret_line)
{
    const char *const text = (const char *)sl_buf_data(&input->text);
    const size_t bytes = input->text.bytes;
    const char *const end =
        input->searched == bytes ? NULL : memchr(text + input->searched, '\n', bytes - input->searched);
    const size_t line_end = end == NULL ? bytes : (size_t)(end - text);

    input->searched = line_end;
    if (line_end - input->at > input->line_bytes_max)
        return SL_ERR_TOO_LARGE;
    if (end == NULL && !input->is_ended)
        return SL_ERR_AGAIN;
    if (end == NULL && input->at == bytes)
        return SL_ERR_EMPTY;
    *ret_line = (sl_str){ text + input->at, line_end - input->at };
    input->at = input->searched = line_end + (end != NULL);
    input->line_number++;
    return SL_OK;
}

void sl_line_input_drop(sl_line_input *input)
{
    sl_buf_consume(&input->text, input->at);
    input->searched -= input->at;
    input->at = 0;
}

sl_err sl_line_input_read(sl_line_input *input)
{
    sl_err err;
    ssize_t count;

    assert(input->at == 0);
    if (input->is_ended)
        return SL_OK;
    err = sl_buf_reserve(&input->text, SL_LINE_READ_BYTES);
    if (err != SL_OK)
        return SL_ERR_NOMEM;
    count = read(input->fd, sl_buf_tail(&input->text), SL_LINE_READ_BYTES);
    if (count > 0)
        sl_buf_added(&input->text, (size_t)count);
    else if (count == 0 || (errno != EAGAIN && errno != EINTR))
        input->is_ended = true;
    input->read_errno = count < 0 && input->is_ended ? errno : 0;
    return SL_OK;
}
