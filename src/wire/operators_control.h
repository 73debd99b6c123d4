/* wire/operators_control.h — Sluice's own service for operators: who consumes, stop them, go on.
 *
 * Through protobuf-c on the caller's arena; errors and lifetimes as in streams_control.h. Both directions of every message: servers
 * read requests and write answers, the commands of `sluice consumer` do the opposite. */
#ifndef SL_WIRE_OPERATORS_CONTROL_H
#define SL_WIRE_OPERATORS_CONTROL_H

#include "base/arena.h"
#include "wire/common_codec.h"

#define SL_OPERATORS_SERVICE "sluice.operators.Operators" /* methods Consumers, Stop, Resume */

/* Who is meant: everything that is not empty must fit. Nothing given fits everybody. */
typedef struct sl_wire_who {
    sl_str stream; /* "$all" for groups on everything */
    sl_str group;
    sl_str consumer_name;
    sl_str label_key, label_value;
} sl_wire_who;

/* --- Consumers --- */

typedef struct sl_wire_consumers_request {
    sl_wire_who who;
    bool with_reports;
} sl_wire_consumers_request;

typedef struct sl_wire_consumer {
    sl_str stream, group;
    uint64_t consumer; /* its number in the group */
    sl_str name;
    const sl_wire_label *labels;
    size_t label_count;
    sl_str state;    /* active, stopping, drained, away */
    sl_str asked_by; /* consumer, operator, server; empty when nobody asked it to stop */
    uint32_t window, in_flight, started;
    uint64_t deliveries, in_state_ms;
    bool safe_to_terminate;
    sl_str address, user;
    uint32_t removal_cost;   /* core/removal.h */
    bool cheapest_to_remove; /* of the active ones of its group; one of them */
} sl_wire_consumer;

/* What became of a consumer that stopped. */
typedef struct sl_wire_drain_report {
    sl_str stream, group;
    uint64_t consumer;
    sl_str name, asked_by;
    uint64_t stopped_at_ms; /* wall clock */
    uint64_t took_ms;
    uint32_t settled, released, lost;
    uint32_t interrupted; /* of released: after they were started */
    sl_str outcome;       /* drained, left, away, dropped */
} sl_wire_drain_report;

typedef struct sl_wire_consumers {
    const sl_wire_consumer *consumers;
    size_t consumer_count;
    const sl_wire_drain_report *reports; /* newest first */
    size_t report_count;
} sl_wire_consumers;

sl_err sl_wire_consumers_request_decode(sl_str message, sl_arena *arena,
                                        sl_wire_consumers_request *ret_request, const char **ret_reason);
sl_err sl_wire_consumers_request_encode(const sl_wire_consumers_request *request, sl_arena *arena,
                                        sl_str *ret_message);
sl_err sl_wire_consumers_decode(sl_str message, sl_arena *arena, sl_wire_consumers *ret_consumers,
                                const char **ret_reason);
sl_err sl_wire_consumers_encode(const sl_wire_consumers *consumers, sl_arena *arena, sl_str *ret_message);

/* --- Stop --- */

typedef struct sl_wire_stop_request {
    sl_wire_who who;
    sl_str reason;        /* told to the consumers */
    uint32_t deadline_ms; /* told to the consumers, not enforced; 0: none */
    uint32_t wait_ms;     /* 0: do not wait */
    bool hand_back_unstarted;
    bool once; /* only those that are there; else also who joins later, until it is resumed */
} sl_wire_stop_request;

/* One of several; the last one has `done`, or wait_ms was over. */
typedef struct sl_wire_stop_progress {
    uint32_t meant, drained, in_flight;
    uint32_t went_away;  /* of drained: gone with messages in flight, */
    uint32_t lost;       /* so many */
    uint32_t unlabelled; /* of meant: whether they have the label is not known */
    uint32_t rules;      /* in so many groups whoever joins later is stopped too */
    bool done;
} sl_wire_stop_progress;

sl_err sl_wire_stop_request_decode(sl_str message, sl_arena *arena, sl_wire_stop_request *ret_request,
                                   const char **ret_reason);
sl_err sl_wire_stop_request_encode(const sl_wire_stop_request *request, sl_arena *arena, sl_str *ret_message);
sl_err sl_wire_stop_progress_decode(sl_str message, sl_arena *arena, sl_wire_stop_progress *ret_progress,
                                    const char **ret_reason);
sl_err sl_wire_stop_progress_encode(const sl_wire_stop_progress *progress, sl_arena *arena,
                                    sl_str *ret_message);

/* --- Resume --- */

typedef struct sl_wire_resume_answer {
    uint32_t resumed, too_late;
    uint32_t rules; /* in so many groups one was taken back */
} sl_wire_resume_answer;

/* A ResumeReq is a Who. */
sl_err sl_wire_resume_request_decode(sl_str message, sl_arena *arena, sl_wire_who *ret_who,
                                     const char **ret_reason);
sl_err sl_wire_resume_request_encode(const sl_wire_who *who, sl_arena *arena, sl_str *ret_message);
sl_err sl_wire_resume_answer_decode(sl_str message, sl_arena *arena, sl_wire_resume_answer *ret_answer,
                                    const char **ret_reason);
sl_err sl_wire_resume_answer_encode(const sl_wire_resume_answer *answer, sl_arena *arena,
                                    sl_str *ret_message);

#endif
