/* tests/unit/worker/handled.h — the owner of a handler under test: keeps what it is told. */
#ifndef SL_TESTS_UNIT_WORKER_HANDLED_H
#define SL_TESTS_UNIT_WORKER_HANDLED_H

#include "test.h"

#include "worker/handler.h"

typedef struct handled {
    sl_handler *handler;
    unsigned finished, progressed, closed;
    unsigned kinds[SL_RESULT_KIND_COUNT_];
    unsigned faults; /* that count for a breaker */
    sl_result last;  /* its reason is in the next one */
    char reason[SL_RESULT_REASON_BYTES_MAX + 1];
    sl_job *last_job;
    sl_job *next;    /* run from inside of finished(), when it is not NULL */
    sl_job *victim;  /* killed from inside of finished() */
    bool close_next; /* closed from inside of finished() */
} handled;

void handled_use(handled *h, sl_handler *handler);

/* A message with this data and number, of stream "orders", group "g", type "placed". */
sl_job *handled_job(unsigned number, const char *data);
sl_job *handled_job_of(const sl_job_message *message);
/* What the ones above begin with. */
sl_job_message handled_message(unsigned number, const char *data);

void handled_run(handled *h, sl_job *job);

#endif
