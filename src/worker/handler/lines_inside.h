/* worker/handler/lines_inside.h — private to lines.c and lines_process.c.
 *
 * A slot is a place for one process and one message. Where it stands:
 *
 *      idle     it has a process, and no message                        (in handler->idle)
 *      begun    it has a message, and a look at its process in the next turn           (in handler->begun)
 *      busy     its message was given to its process                    (in no ring)
 *      waiting  it has a message, and no process that could take it     (in handler->waiting)
 *      down     it has neither; a process that was killed may still be ending    (in handler->down) */
#ifndef SL_WORKER_HANDLER_LINES_INSIDE_H
#define SL_WORKER_HANDLER_LINES_INSIDE_H

#include "base/buf.h"
#include "worker/handler/command.h"
#include "worker/handler/output.h"
#include "worker/lines_handler.h"

typedef struct lines_handler {
    sl_handler base;
    sl_loop *loop;
    sl_command command;
    bool abort_signal;
    uint32_t slots_max, slot_count, process_count;
    sl_output_gate gate;
    sl_orphans orphans;
    sl_list all, idle, begun, waiting, down;
    sl_timer starter;                               /* for what is begun */
    bool is_draining, is_closing, was_asked_to_end; /* the last: SIGTERM was sent */
    uint64_t drain_until_ns, close_ns;
    sl_timer close_timer;
} lines_handler;

typedef struct lines_slot {
    sl_list node; /* in one of the rings, or in none */
    sl_list all_node;
    lines_handler *handler;
    sl_process *process; /* NULL: none */
    sl_job *job;
    bool is_given;     /* the process has the job, or a part of it, or it is in the pipe to it */
    bool is_aborted;   /* the job, by us */
    bool is_killed;    /* the process, by us, for the sake of its job: it gets no other one */
    bool has_answered; /* the process, a job */
    bool is_broken,
        is_deaf; /* the process: it broke the contract and is killed; because it does not listen any more */
    uint64_t pause_ns;     /* before the last start; 0: a message was answered since */
    uint64_t start_ns;     /* no process before this */
    sl_timer timer;        /* waiting: for that */
    sl_buf in, out;        /* a part of a line; what the process has not read */
    uint64_t sent_bytes;   /* of `out`, to this process */
    uint64_t before_bytes; /* is_given: of all that it is sent, what comes before the job */
    sl_output output;
    char problem[SL_RESULT_REASON_BYTES_MAX + 1]; /* broken: what was wrong */
} lines_slot;

/* lines.c */
void lines_finish(lines_slot *slot, sl_result_kind kind, bool is_fault, uint64_t retry_after_ns,
                  sl_str reason);
void lines_process_gone(lines_handler *handler);

/* lines_process.c */
bool lines_has_process(const lines_slot *slot); /* one that can be given a message */
void lines_take(lines_slot *slot, sl_job *job);
void lines_begin(
    lines_slot *slot); /* in the next turn its job is given, to a process that is started if it has none */
void lines_begin_some(void *ctx);
void lines_tell_draining(lines_slot *slot);
void lines_tell_abort(lines_slot *slot);

#endif
