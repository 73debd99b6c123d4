/* worker/source/memory_inside.h — what a memory source is made of; for memory.c and memory_records.c. */
#ifndef SL_WORKER_SOURCE_MEMORY_INSIDE_H
#define SL_WORKER_SOURCE_MEMORY_INSIDE_H

#include "worker/memory_source.h"

typedef struct sl_memory_record {
    sl_list every;
    sl_list fresh;           /* put and never offered */
    sl_pairing_node waiting; /* READY after it was out: by number. DELAYED: by time */
    uint64_t number;
    uint64_t due_ns; /* DELAYED */
    uint64_t created_ns;
    sl_job *message; /* only its message is used; NULL: made by the source itself, when it is offered */
    bool is_made;    /* by the source itself: forgotten when it is settled */
    struct sl_memory_delivery *delivery; /* OUT: the one that counts */
    sl_memory_look look;
} sl_memory_record;

typedef struct sl_memory_delivery {
    sl_list line;             /* leases: by their end; answers: as they were said; spare */
    sl_memory_record *record; /* NULL: lost, or recalled and unknown */
    sl_job *job;
    bool is_begun;
    bool is_recalled;
    bool is_said;
    sl_settle settle; /* said, and not answered */
    char reason[SL_MEMORY_REASON_BYTES_MAX + 1];
} sl_memory_delivery;

typedef struct sl_memory {
    sl_source source;
    sl_source_class class; /* its own, because settings change it */
    sl_memory_settings settings;
    char *room; /* for the data of a message that is being made */
    sl_loop *loop;
    sl_timer timer;
    sl_list every, fresh;
    sl_pairing returned, delayed;
    sl_list leases, lost, answers, spare;
    uint64_t next_number, made;
    uint64_t again_ns; /* there was no memory for a message: the next try; UINT64_MAX: there was */
    bool is_started, is_up, is_down, is_shut, hands_back, has_failed;
    bool owes_fence, owes_close, is_closed;
    bool holds_answers, holds_fence;
    sl_memory_totals totals;
} sl_memory;

static inline sl_memory *sl_memory_of(sl_source *source)
{
    return SL_CONTAINER_OF(source, sl_memory, source);
}

static inline const sl_memory *sl_memory_of_const(const sl_source *source)
{
    return SL_CONTAINER_OF(source, const sl_memory, source);
}

static inline void sl_memory_pump_soon(sl_memory *memory)
{
    sl_timer_set(&memory->timer, 0);
}

/* --- memory_records.c --- */

sl_pairing_before_fn sl_memory_number_before, sl_memory_due_before;

/* NULL: none. In the order of the ring of all: for tests, which have few. */
sl_memory_record *sl_memory_find_number(const sl_memory *memory, uint64_t number);
sl_memory_record *sl_memory_find_id(const sl_memory *memory, sl_uuid id);

/* Good until the next call. */
sl_job_message sl_memory_message_of(sl_memory *memory, const sl_memory_record *about);

/* Is there one to offer? Then this is the next, taken out; NULL: no memory for it. */
bool sl_memory_has_next(const sl_memory *memory);
sl_memory_record *sl_memory_next(sl_memory *memory);

/* What becomes of one that is out. A made one is gone after its end. */
void sl_memory_return(sl_memory *memory, sl_memory_record *back);
void sl_memory_delay(sl_memory *memory, sl_memory_record *later, uint64_t delay_ns);
void sl_memory_end(sl_memory_record *settled, sl_memory_state state);
void sl_memory_forget(sl_memory_record *gone);

#endif
