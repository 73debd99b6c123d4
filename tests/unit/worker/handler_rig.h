/* tests/unit/worker/handler_rig.h — a loop, a handler with real processes, and a diary of what it said. */
#ifndef SL_TESTS_UNIT_WORKER_HANDLER_RIG_H
#define SL_TESTS_UNIT_WORKER_HANDLER_RIG_H

#include "test.h"

#include "net/loop.h"
#include "worker/exec_handler.h"
#include "worker/handler.h"
#include "worker/lines_handler.h"

#include <stdbool.h>

enum {
    HANDLER_RIG_JOBS = 256,
    HANDLER_RIG_LOG_BYTES = 256 * 1024
};

typedef struct handler_rig_result {
    int count;
    sl_result_kind kind;
    bool is_fault;
    uint64_t retry_after_ns, at_ns;
    char reason[SL_RESULT_REASON_BYTES_MAX + 1];
} handler_rig_result;

typedef struct handler_rig {
    sl_loop *loop;
    sl_handler *handler;
    sl_logger log;
    sl_timer guard, tick;
    bool is_late, is_closed;
    int progress_count, result_count, log_lines;
    int fds, children; /* before the handler was made */
    sl_job *jobs[HANDLER_RIG_JOBS];
    handler_rig_result results[HANDLER_RIG_JOBS];
    size_t job_count;
    char said[HANDLER_RIG_LOG_BYTES]; /* the log, its end cut off */
    size_t said_bytes;
} handler_rig;

/* The rig is large: static memory of the test is fine, each start empties it. */
void handler_rig_start(handler_rig *rig);
void handler_rig_exec(handler_rig *rig, const char *command, uint32_t slots);
void handler_rig_lines(handler_rig *rig, const char *command, uint32_t slots);
void handler_rig_lines_with_signal(handler_rig *rig, const char *command); /* abort_signal is set */
void handler_rig_lines_with_close(handler_rig *rig, const char *command, uint64_t close_ns);

/* Closes and frees everything, and expects that nothing is left: no child, no descriptor. */
void handler_rig_stop(handler_rig *rig);

/* For who waits for what must end: ten seconds from now. */
uint64_t handler_rig_later_ns(void);

/* Without close(): free in the middle. */
void handler_rig_drop(handler_rig *rig);

/* free() of a handler whose processes do not die, as if they hung inside of the system, with so much time; returns how long it took.
 * They are ended then. */
uint64_t handler_rig_free_hung(handler_rig *rig, uint64_t limit_ns);

/* From now on processes get no signal, as if they took long to die. */
void handler_rig_lose_signals(bool are_lost);

/* Runs a message with these bytes; returns its number. */
size_t handler_rig_run(handler_rig *rig, const char *data);
size_t handler_rig_run_message(handler_rig *rig, const sl_job_message *message, uint64_t until_ns);

/* Turn until it is so; fails after 20 seconds. */
const handler_rig_result *handler_rig_result_of(handler_rig *rig, size_t number);
void handler_rig_until_said(handler_rig *rig, const char *text);
void handler_rig_until_closed(handler_rig *rig);
void handler_rig_until_gone(handler_rig *rig, long process_id);
void handler_rig_until_frozen(handler_rig *rig, size_t number);
void handler_rig_turn(handler_rig *rig);

/* The number behind `text` in the log. */
long handler_rig_number_after(const handler_rig *rig, const char *text);
bool handler_rig_has_said(const handler_rig *rig, const char *text);
int handler_rig_count_fds(void);
int handler_rig_count_children(void);

#endif
