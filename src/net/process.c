/* net/process.c — see process.h.
 *
 * Pipes are our own and not libuv's, which are socket pairs: a shell cannot open /dev/stdout when that is a socket. libuv starts the
 * program, tells of its end, and waits for the pipes.
 *
 * Memory goes when the last handle is closed, in libuv's closing phase, never under a caller: see inside.h. */
#include "net/process.h"
#include "base/cleanup.h"
#include "net/inside.h"
#include "net/process_inside.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)

typedef struct pipe_end { /* our end of a pipe */
    int fd;               /* -1: closed */
    uv_poll_t poll;
} pipe_end;

struct sl_process {
    sl_loop *loop;
    sl_started started;
    uv_process_t uv;
    pipe_end input, outputs[SL_PROCESS_OUTPUT_COUNT_];
    int notice_fd;
    sl_timer linger;
    uint64_t written_bytes, unread_bytes; /* of the input; the second counts when nobody can read any more */
    uint32_t handles_open;
    bool has_uv;    /* libuv knows of a program, or of one that could not be started */
    bool is_gone;   /* nobody hears of it any more */
    bool has_ended; /* the program; it is reaped */
    bool is_killed; /* by us: nobody waits for what its descendants may still write */
    sl_process_end end;
    sl_process_handler handler;
    void *ctx;
};

/* --- starting --- */

enum {
    NOTICE_FD = 3,
    PIPES = NOTICE_FD + 1
};

typedef struct pipes {
    int ours[PIPES], theirs[PIPES];
} pipes;

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_pipes(pipes *all)
{
    for (int i = 0; i < PIPES; i++) {
        close_fd(&all->ours[i]);
        close_fd(&all->theirs[i]);
    }
}

/* The two ends of a pipe do not share their flags: only ours does not wait. */
static bool make_pipe(int *ret_reads, int *ret_writes)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    *ret_reads = ends[0];
    *ret_writes = ends[1];
    return true;
}

static bool make_pipes(pipes *all, bool has_notice)
{
    bool ok;

    *all = (pipes){ { -1, -1, -1, -1 }, { -1, -1, -1, -1 } };
    ok = make_pipe(&all->theirs[STDIN_FILENO], &all->ours[STDIN_FILENO]) &&
         make_pipe(&all->ours[STDOUT_FILENO], &all->theirs[STDOUT_FILENO]) &&
         make_pipe(&all->ours[STDERR_FILENO], &all->theirs[STDERR_FILENO]) &&
         (!has_notice || make_pipe(&all->theirs[NOTICE_FD], &all->ours[NOTICE_FD]));
    for (int i = 0; ok && i < PIPES; i++)
        ok = all->ours[i] < 0 || fcntl(all->ours[i], F_SETFL, O_NONBLOCK) == 0;
    return ok;
}

static void ignore_broken_pipes(void)
{
    struct sigaction now;

    if (sigaction(SIGPIPE, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL)
        (void)signal(SIGPIPE, SIG_IGN);
}

/* Whoever started us may have left descriptors open that are not ours to pass on. Kernels before 5.11 do not know this, which is no harm:
 * what we open is never inherited. */
static void keep_our_descriptors(void)
{
    (void)close_range(STDERR_FILENO + 1, UINT32_MAX, CLOSE_RANGE_CLOEXEC);
}

static sl_err explain(int uv_result, const char *program, sl_text *problem)
{
    static const struct {
        int result;
        sl_err err;
        const char *text;
    } rows[] = {
        { UV_ENOENT, SL_ERR_NOT_FOUND, "there is no such program: check its name and PATH" },
        { UV_EACCES, SL_ERR_NOT_FOUND, "it may not be run: check its permissions (chmod +x)" },
        { -ENOEXEC, SL_ERR_NOT_FOUND, "it is no program for this system" },
        { UV_E2BIG, SL_ERR_TOO_LARGE, "arguments and environment are larger than the system takes" },
        { UV_EMFILE, SL_ERR_OPEN_FILES,
          "as many files are open as the system allows: raise the limit (ulimit -n)" },
        { UV_ENFILE, SL_ERR_OPEN_FILES, "as many files are open as the whole system allows" },
        { UV_ENOSPC, SL_ERR_OPEN_FILES,
          "as many descriptors are waited for as the system allows: raise fs.epoll.max_user_watches" },
        { UV_EAGAIN, SL_ERR_FULL,
          "no more processes are allowed: raise the limit (ulimit -u, pids.max of the container)" },
        { UV_ENOMEM, SL_ERR_NOMEM, "out of memory" },
    };
    size_t i = 0;

    while (i < SL_COUNT_OF(rows) && rows[i].result != uv_result)
        i++;
    sl_text_add(problem, program);
    sl_text_add(problem, " could not be started: ");
    sl_text_add(problem, i < SL_COUNT_OF(rows) ? rows[i].text : uv_strerror(uv_result));
    return i < SL_COUNT_OF(rows) ? rows[i].err : SL_ERR_IO;
}

static void release_if_closed(sl_process *process)
{
    if (process->handles_open > 0 || !process->is_gone)
        return;
    process->loop->things--;
    sl_alloc_give(process->loop->alloc, process, sizeof *process);
}

static void handle_closed(uv_handle_t *handle)
{
    sl_process *process = handle->data;

    process->handles_open--;
    release_if_closed(process);
}

static void close_end(pipe_end *end)
{
    if (end->fd < 0)
        return;
    uv_close((uv_handle_t *)&end->poll, handle_closed);
    close_fd(&end->fd);
}

/* Everything but the memory, which goes with the last handle. */
static void vanish(sl_process *process)
{
    assert(!process->is_gone);
    process->is_gone = true;
    sl_timer_stop(&process->linger);
    sl_started_remove(&process->started);
    close_end(&process->input);
    for (int i = 0; i < SL_PROCESS_OUTPUT_COUNT_; i++)
        close_end(&process->outputs[i]);
    close_fd(&process->notice_fd);
    if (process->has_uv)
        uv_close((uv_handle_t *)&process->uv, handle_closed);
    release_if_closed(process);
}

static int spawn(sl_process *process, const sl_process_options *options, const pipes *all, uv_exit_cb on_exit)
{
    uv_stdio_container_t stdio[PIPES];
    uv_process_options_t with = { .exit_cb = on_exit,
                                  .file = options->program,
                                  .args = (char **)(uintptr_t)options->arguments,
                                  .env = (char **)(uintptr_t)options->environment,
                                  .flags = UV_PROCESS_DETACHED,
                                  .stdio_count = options->has_notice ? PIPES : PIPES - 1,
                                  .stdio = stdio };

    for (int i = 0; i < PIPES; i++)
        stdio[i] = (uv_stdio_container_t){ .flags = UV_INHERIT_FD, .data.fd = all->theirs[i] };
    process->uv.data = process;
    process->has_uv = true; /* it needs to be closed also when there is no program */
    process->handles_open++;
    sl_started_lock();
    const int result = uv_spawn(&process->loop->uv, &process->uv, &with);
    process->started.pid = process->uv.pid;
    if (result == 0)
        sl_started_add(&process->started);
    sl_started_unlock();
    return result;
}

static int take_end(sl_process *process, pipe_end *end, int *fd)
{
    const int result = uv_poll_init(&process->loop->uv, &end->poll, *fd);

    if (result != 0)
        return result;
    end->fd = *fd;
    *fd = -1;
    end->poll.data = process;
    process->handles_open++;
    return 0;
}

/* Before there is a program: the system may refuse to wait for one more descriptor. */
static int take_ends(sl_process *process, pipes *all)
{
    int result = take_end(process, &process->input, &all->ours[STDIN_FILENO]);

    for (int i = 0; result == 0 && i < SL_PROCESS_OUTPUT_COUNT_; i++)
        result = take_end(process, &process->outputs[i], &all->ours[STDOUT_FILENO + i]);
    process->notice_fd = all->ours[NOTICE_FD];
    all->ours[NOTICE_FD] = -1;
    return result;
}

/* --- output --- */

static bool outputs_are_closed(const sl_process *process)
{
    return process->outputs[SL_PROCESS_STDOUT].fd < 0 && process->outputs[SL_PROCESS_STDERR].fd < 0;
}

/* What is left in a pipe goes with our end of it, so this comes before that. */
static void count_unread(sl_process *process)
{
    int unread;

    if (process->input.fd >= 0 && ioctl(process->input.fd, FIONREAD, &unread) == 0)
        process->unread_bytes = (uint64_t)unread;
}

/* The group may have members that outlived their leader. Its number cannot belong to strangers yet: it was free for a fifth of a second at
 * most, and the system gives numbers out in turn. */
static void finish(sl_process *process)
{
    if (process->is_gone)
        return;
    sl_process_kill(process, SIGKILL);
    count_unread(process);
    process->end.read_bytes = process->written_bytes - process->unread_bytes;
    vanish(process);
    process->handler.on_exit(process->ctx, &process->end);
}

/* Reads once. False: there is nothing now, or nothing more. */
static bool read_output(sl_process *process, sl_process_output which)
{
    pipe_end *end = &process->outputs[which];
    ssize_t count;

    if (end->fd < 0)
        return false;
    do {
        count = read(end->fd, process->loop->in, sizeof process->loop->in);
    } while (count < 0 && errno == EINTR);
    if (count > 0)
        process->handler.on_output(process->ctx, which, (const char *)process->loop->in, (size_t)count);
    else if (count == 0 || errno != EAGAIN)
        close_end(end);
    return count > 0 && !process->is_gone;
}

/* One read for each turn: a program that prints without end leaves the others their share, and one that prints a line costs no
 * second read that would find nothing. */
static void output_ready(uv_poll_t *poll, int status, int events)
{
    sl_process *process = poll->data;

    (void)status; /* whatever it is: reading tells */
    (void)events;
    (void)read_output(process, poll == &process->outputs[SL_PROCESS_STDERR].poll ? SL_PROCESS_STDERR
                                                                                 : SL_PROCESS_STDOUT);
    if (!process->is_gone && process->has_ended && outputs_are_closed(process))
        finish(process);
}

static void wait_for_output(sl_process *process)
{
    for (int i = 0; i < SL_PROCESS_OUTPUT_COUNT_; i++) {
        pipe_end *end = &process->outputs[i];
        if (end->fd >= 0)
            uv_poll_start(&end->poll, UV_READABLE, output_ready);
    }
}

/* What the program wrote before it ended is in the pipes, and nothing of it may be lost: a reason is often the last line. */
static void read_the_rest(sl_process *process, sl_process_output which)
{
    for (size_t left = SL_PROCESS_LAST_BYTES_MAX / SL_RECEIVE_BYTES; left > 0; left--) {
        if (!read_output(process, which))
            return;
    }
}

static void lingered(void *ctx)
{
    finish(ctx);
}

static void program_ended(uv_process_t *uv, int64_t status, int term_signal)
{
    sl_process *process = uv->data;

    process->has_ended = true;
    process->end = (sl_process_end){ .exited = term_signal == 0, .code = (int)status, .signal = term_signal };
    if (term_signal != 0)
        process->end.code = 0;
    for (int i = 0; i < SL_PROCESS_OUTPUT_COUNT_ && !process->is_gone; i++)
        read_the_rest(process, (sl_process_output)i);
    if (process->is_gone)
        return;
    if (outputs_are_closed(process) || process->is_killed) {
        finish(process);
        return;
    }
    sl_timer_set(&process->linger, sl_loop_now_ns(process->loop) + SL_PROCESS_LINGER_MS * MS_NS);
}

sl_err sl_process_start(sl_loop *loop, const sl_process_options *options, const sl_process_handler *handler,
                        void *ctx, sl_text *problem, sl_process **ret_process)
{
    sl_process *process = sl_alloc_take(loop->alloc, sizeof *process);
    pipes all;
    int result;

    if (process == NULL)
        return explain(UV_ENOMEM, options->program, problem);
    *process = (sl_process){ .loop = loop, .input.fd = -1, .notice_fd = -1, .handler = *handler, .ctx = ctx };
    process->outputs[0].fd = process->outputs[1].fd = -1;
    sl_timer_init(&process->linger, loop, lingered, process);
    ignore_broken_pipes();
    keep_our_descriptors();
    if (!make_pipes(&all, options->has_notice)) {
        result = -errno;
        close_pipes(&all);
        sl_alloc_give(loop->alloc, process, sizeof *process);
        return explain(result, options->program, problem);
    }
    loop->things++;
    result = take_ends(process, &all);
    if (result == 0)
        result = spawn(process, options, &all, program_ended);
    close_pipes(&all);
    if (result != 0) {
        vanish(process);
        return explain(result, options->program, problem);
    }
    wait_for_output(process);
    *ret_process = process;
    return SL_OK;
}

/* --- input, signals, the end --- */

static void nobody_reads(sl_process *process)
{
    count_unread(process);
    sl_process_close_input(process);
}

static void input_ready(uv_poll_t *poll, int status, int events)
{
    sl_process *process = poll->data;

    (void)events;
    uv_poll_stop(poll);
    if (status != 0)
        nobody_reads(process);
    if (process->handler.on_room != NULL)
        process->handler.on_room(process->ctx);
}

size_t sl_process_write(sl_process *process, const void *data, size_t bytes)
{
    ssize_t count;

    if (process->input.fd < 0 || bytes == 0)
        return bytes;
    do {
        count = write(process->input.fd, data, bytes);
    } while (count < 0 && errno == EINTR);
    if (count < 0 && errno != EAGAIN) {
        nobody_reads(process);
        return bytes;
    }
    process->written_bytes += count < 0 ? 0 : (uint64_t)count;
    if (count < (ssize_t)bytes)
        uv_poll_start(&process->input.poll, UV_WRITABLE, input_ready);
    return count < 0 ? 0 : (size_t)count;
}

void sl_process_close_input(sl_process *process)
{
    close_end(&process->input);
}

bool sl_process_input_is_closed(const sl_process *process)
{
    return process->input.fd < 0;
}

void sl_process_notify(sl_process *process, sl_str line)
{
    assert(line.bytes <= SL_PROCESS_NOTICE_BYTES_MAX);
    if (process->notice_fd < 0)
        return;
    /* The pipe is empty, so the line fits; a program that has closed its end does not want to know. */
    if (write(process->notice_fd, line.data, line.bytes) >= 0 || errno != EINTR)
        close_fd(&process->notice_fd);
}

void sl_process_kill(sl_process *process, int signal_number)
{
    (void)kill(-process->started.pid, signal_number);
    if (signal_number != SIGKILL)
        return;
    process->is_killed = true;
    if (process->has_ended)
        sl_timer_set(&process->linger, sl_loop_now_ns(process->loop));
}

int64_t sl_process_id(const sl_process *process)
{
    return process->started.pid;
}

void sl_process_free(sl_process *process, uint64_t until_ns)
{
    if (process == NULL)
        return;
    assert(!process->is_gone);
    sl_process_kill(process, SIGKILL);
    vanish(process); /* libuv does not wait for the program any more, so that we can */
    if (!process->has_ended)
        (void)sl_process_reap(process->started.pid, until_ns);
}
