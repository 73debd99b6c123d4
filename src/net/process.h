/* net/process.h — programs that we start: their pipes, their end, and whatever they leave behind.
 *
 *      start --> write, on_output ... --> on_exit      (once; the object is gone after it)
 *            \--kill(signal)--------------^
 *
 * A program gets a session and a process group of its own, an environment that is given whole, default signals and an empty signal mask,
 * and pipes: 0 to read from, 1 and 2 to write to, and with `has_notice` 3 to read from. It inherits no other descriptor.
 *
 * The end. on_exit comes when the program has ended and its output has been read. A descendant that keeps a pipe open delays that by
 * SL_PROCESS_LINGER_MS at most, and not at all after SIGKILL by sl_process_kill(). What is left of the group is killed then. Descendants that left the group (setsid) are the business of
 * sl_orphans below.
 *
 * Writing never waits and nothing is queued here: the caller is told how much the system took, and hears when it takes more. A program that
 * does not read is no error; what is written to one that closed its input is dropped.
 *
 * Everything in the thread of the loop, except sl_process_is_frozen(). SIGPIPE is ignored from the first start on, unless somebody
 * handles it, and all descriptors of this process but 0, 1 and 2 are closed in programs that it runs, ours or not. */
#ifndef SL_NET_PROCESS_H
#define SL_NET_PROCESS_H

#include "base/err.h"
#include "base/str.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SL_PROCESS_LINGER_MS = 200, /* for descendants that keep the pipes of a program that has ended */
    SL_PROCESS_LAST_BYTES_MAX =
        1024 * 1024,                   /* that are read from each pipe at once when the program has ended */
    SL_PROCESS_NOTICE_BYTES_MAX = 512, /* what a pipe takes in one piece */
    SL_PROCESS_STARTS_PER_TURN_MAX =
        4 /* for whoever has many to start: one takes milliseconds in which nothing else happens, a drain included */
};

typedef struct sl_process sl_process; /* opaque */

typedef enum sl_process_output {
    SL_PROCESS_STDOUT,
    SL_PROCESS_STDERR,
    SL_PROCESS_OUTPUT_COUNT_
} sl_process_output;

typedef struct sl_process_end {
    bool exited; /* false: ended by a signal */
    int code;    /* of an exit */
    int signal;
    uint64_t read_bytes; /* of what was written to its input; all of it when the input was closed by us */
} sl_process_end;

typedef struct sl_process_handler {
    void (*on_output)(void *ctx, sl_process_output which, const char *data, size_t bytes);
    void (*on_room)(void *ctx); /* after a write that was not taken whole: try again. May be NULL */
    void (*on_exit)(void *ctx, const sl_process_end *end);
} sl_process_handler;

typedef struct sl_process_options {
    const char *program;      /* a path, or a name that is looked for in PATH */
    char *const *arguments;   /* with the name of the program in front; ends with NULL */
    char *const *environment; /* all of it; ends with NULL */
    bool has_notice;          /* descriptor 3: see sl_process_notify() */
} sl_process_options;

/* No callback comes from inside. `problem` gets a sentence.
 *   SL_OK
 *   SL_ERR_NOMEM
 *   SL_ERR_OPEN_FILES
 *   SL_ERR_NOT_FOUND   there is no such program, or it may not be run
 *   SL_ERR_TOO_LARGE   arguments and environment are more than the system takes
 *   SL_ERR_FULL        no more processes are allowed
 *   SL_ERR_IO          the system refused for another reason */
sl_err sl_process_start(sl_loop *loop, const sl_process_options *options, const sl_process_handler *handler,
                        void *ctx, sl_text *problem, sl_process **ret_process);

/* Kills the group and reaps the program; waits until until_ns at most (monotonic). Who frees several kills all of them first, and takes one
 * time for all. No callback after this. Not after on_exit. NULL is allowed. */
void sl_process_free(sl_process *process, uint64_t until_ns);

/* To its input. Returns how many bytes were taken; if those are not all, on_room comes. After the input was closed, from whichever side,
 * everything is taken and dropped. */
size_t sl_process_write(sl_process *process, const void *data, size_t bytes);
void sl_process_close_input(sl_process *process);
bool sl_process_input_is_closed(
    const sl_process *process); /* from either side, as far as writing has shown */

/* One line to descriptor 3, which is then closed on our side; at most SL_PROCESS_NOTICE_BYTES_MAX. Only the first one counts. */
void sl_process_notify(sl_process *process, sl_str line);

/* To the whole group. Also right when the program has just ended. */
void sl_process_kill(sl_process *process, int signal_number);

int64_t sl_process_id(const sl_process *process);

/* It, or one of its descendants, is stopped by a signal or a debugger: a shell that waits for a stopped command lives, but nothing
 * goes on. The nearest 64 are looked at, and only itself where the kernel does not list children. A process that does not exist is
 * not frozen. Any thread. */
bool sl_process_is_frozen(int64_t process_id);

/* --- descendants that have lost their parents --- */

/* From now on they become children of this process instead of children of init, and can be found. False: the system does not know how. */
bool sl_process_adopt_orphans(void);

enum {
    SL_ORPHANS_REAP_PAUSE_MS =
        2000 /* it reads all children; a busy handler can leave a thousand dead in a second */
};

/* One for each owner that starts processes. */
typedef struct sl_orphans {
    sl_loop *loop;
    sl_timer timer;
    sl_timer reaper;   /* while programs run */
    uint64_t pause_ns; /* until the next look, doubling */
    uint64_t sweep_not_before_ns;
    uint64_t looks; /* so far */
} sl_orphans;

void sl_orphans_init(sl_orphans *orphans, sl_loop *loop);

/* Kills and reaps children of this process that are in a session of a program that has ended, or in one of their own making: before the
 * end of this turn, or some milliseconds after the last time, however often it is called; then again as long as there are any. Programs that run, what lives in their session, and children that other code started are left alone. Does nothing
 * without sl_process_adopt_orphans(). */
void sl_orphans_sweep(sl_orphans *orphans);

/* After a start: while any program runs, its descendants that have died as our children are reaped every SL_ORPHANS_REAP_PAUSE_MS. Nothing
 * is killed then. */
void sl_orphans_watch(sl_orphans *orphans);

/* A sweep at once; waits for the last one as sl_process_free() does. Needed before the memory goes. */
void sl_orphans_done(sl_orphans *orphans, uint64_t until_ns);

#endif
