/* tests/unit/worker/work_rig.h — a worker between a source and a handler that do exactly what a test says.
 *
 * Jobs have numbers; everything that the worker says or asks is noted in the order in which it happened, as words:
 * "begin 1", "run 1", "abort 1", "ack 1", "gate", ... so that a test can say what it expects in one line. */
#ifndef SL_TESTS_WORK_RIG_H
#define SL_TESTS_WORK_RIG_H

#include "worker/worker_private.h"

enum {
    RIG_JOBS_MAX = 64,
    RIG_NOTES_BYTES = 8192
};

typedef struct work_rig {
    sl_loop *loop;
    sl_work *work;
    sl_logger log;
    sl_work_settings settings;
    sl_source_class source_class;
    struct rig_source {
        sl_source source;
        struct work_rig *rig;
    } * source;
    struct rig_handler {
        sl_handler handler;
        struct work_rig *rig;
    } * handler;
    sl_ack_file *acks;

    /* What the source does. */
    bool begins, fences, confirms, closes;
    bool loses_in_begin;
    sl_settled_how confirms_how;
    uint64_t lease_ns; /* 0: no leases */
    /* What the handler does. */
    bool dies_on_abort, dies_on_kill, is_frozen, is_unbegun;
    bool answers_at_once; /* with `answer` */
    uint32_t collects;    /* at its next turn's end it finds the result of this job: done; 0: none */
    bool handler_stays;   /* it never says that it is closed */
    sl_result answer;
    uint64_t told_until_ns; /* what it was told at the begin of a drain */

    sl_job *jobs[RIG_JOBS_MAX]; /* as long as they live */
    char notes[RIG_NOTES_BYTES];
    char start_notes[RIG_NOTES_BYTES]; /* those until it was up */
    sl_text text;
    char log_text[64 * 1024];
    size_t log_bytes;
    uint32_t ups, drainings, overs;
    bool source_freed, handler_freed;
    uint64_t free_until_ns; /* what the handler had for that */
    uint64_t stalled_ns;    /* in work_rig_until(): how long the machine did not let it run */
} work_rig;

/* Settings may be changed between these two. The budget is the least one: 100 ms for most parts. */
void work_rig_init(work_rig *rig);
void work_rig_start(work_rig *rig);
void work_rig_done(work_rig *rig);

/* Turns, without waiting, until nothing happens any more; or until `done` is true, waiting at most 10 s. */
void work_rig_turns(work_rig *rig);
void work_rig_until(work_rig *rig, bool (*done)(work_rig *rig));
bool work_rig_is_over(work_rig *rig);

void work_rig_offer(work_rig *rig, uint32_t number);
void work_rig_offer_try(work_rig *rig, uint32_t number, uint32_t attempt);
void work_rig_finish(work_rig *rig, uint32_t number, sl_result_kind kind);
void work_rig_confirm(work_rig *rig, uint32_t number, sl_settled_how how);
bool work_rig_notes_have(const work_rig *rig, const char *words);
/* The notes so far, and begins new ones. */
void work_rig_expect_notes(work_rig *rig, const char *words);
void work_rig_stop(work_rig *rig, sl_drain_reason reason, bool escalates);

#endif
