/* tests/unit/worker/source_contract.h — the rules of worker/source.h, held against every kind of source.
 *
 * A row is a kind of source with its world: how it gets messages, goes away and fails. It registers itself, so a new kind is a new file:
 *
 *      SOURCE_CONTRACT_ROW(memory, .name = "memory", .open = memory_open, ...);
 *
 * The suite plays the worker. Each callback checks what can be checked at once (nothing is offered after the fence, one answer for each
 * job, only of jobs of which something was said ...), so every test holds all of the rules that its moves touch. */
#ifndef SL_TESTS_UNIT_WORKER_SOURCE_CONTRACT_H
#define SL_TESTS_UNIT_WORKER_SOURCE_CONTRACT_H

#include "test.h"

#include "net/loop.h"
#include "worker/source.h"

#include <stdbool.h>

enum {
    SOURCE_CONTRACT_JOBS_MAX = 64,
    SOURCE_CONTRACT_ROWS_MAX = 8
};

typedef struct contract_job {
    sl_job *job; /* NULL: settled and freed */
    sl_uuid id;
    uint64_t token, revision;
    uint32_t attempt;
    bool is_said, is_lost, is_recalled;
    sl_settled_how how; /* when job is NULL */
} contract_job;

typedef struct source_contract {
    const struct source_contract_row *row;
    sl_loop *loop;
    sl_timer guard;
    bool guard_rang;
    sl_source *source;
    void *world;       /* the row's */
    uint64_t lease_ns; /* 0: as usual, which no test outlives */
    contract_job jobs[SOURCE_CONTRACT_JOBS_MAX];
    uint32_t job_count, settled_count;
    uint32_t ups, downs, fences, closes, failures, losts, stops;
    sl_source_failure failure;
    sl_drain_reason stopped_by;
    bool is_started, gate_is_closed, is_closing;
    /* What the worker does from inside of callbacks. */
    bool acks_in_offer, stops_in_settled, closes_in_fenced;
} source_contract;

typedef struct source_contract_row {
    const char *name;
    void (*make_world)(source_contract *c);
    sl_source *(*open)(source_contract *c); /* also a second time: the next process of the same name */
    void (*put)(source_contract *c, uint32_t count); /* so many more messages */
    void (*turn)(source_contract *c);                /* in each turn, before it sends. NULL: nothing */
    /* It goes away, and comes back. NULL: such a source cannot. */
    void (*set_down)(source_contract *c, bool is_down);
    /* The lease of this job goes to somebody else. NULL: there are no leases. */
    void (*take_away)(source_contract *c, const sl_job *job);
    /* Somebody else takes what is left to him, and what he was given. NULL: there is nobody. */
    void (*let_another_come)(source_contract *c);
    bool (*others_have)(source_contract *c, sl_uuid id);
    void (*break_for_good)(source_contract *c); /* for good. NULL: it cannot */
    void (*stop)(source_contract *c);           /* by an operator. NULL: there are none */
    void (*free_world)(source_contract *c);     /* after the source */
    bool is_one_at_a_time;                      /* the next job comes when the last one is settled */
    bool outlives_process; /* messages stay when the source is freed: what was finished can be recalled */
} source_contract_row;

void source_contract_register(const source_contract_row *row);

#define SOURCE_CONTRACT_ROW(which, ...)                                                                      \
    static const source_contract_row which##_row = { __VA_ARGS__ };                                          \
    __attribute__((constructor)) static void register_##which##_row(void)                                    \
    {                                                                                                        \
        source_contract_register(&which##_row);                                                              \
    }

extern const source_contract_row *source_contract_rows[SOURCE_CONTRACT_ROWS_MAX];
extern size_t source_contract_row_count;

/* --- life --- */

source_contract *source_contract_new(const source_contract_row *row);
source_contract *source_contract_new_with_leases(const source_contract_row *row, uint64_t lease_ns);
/* Started, and so many were offered. */
source_contract *source_contract_with(const source_contract_row *row, uint32_t count);
void source_contract_free(source_contract *c);
/* A process dies, and the next one begins. */
void source_contract_free_source(source_contract *c);
void source_contract_open_source(source_contract *c);

/* --- moves of the worker; jobs by the order in which they were offered --- */

void source_contract_start(source_contract *c);
bool source_contract_begin(source_contract *c, uint32_t index);
void source_contract_settle(source_contract *c, uint32_t index, sl_settle_kind kind);
void source_contract_begin_and_settle(source_contract *c, uint32_t index, sl_settle_kind kind);
void source_contract_settle_rest(source_contract *c, sl_settle_kind kind); /* of which nothing was said */
void source_contract_close_gate(source_contract *c, bool hand_back);
void source_contract_close_source(source_contract *c);
/* A whole drain. */
void source_contract_end(source_contract *c);
contract_job *source_contract_note(source_contract *c, sl_job *job);

/* The next delivery of the same message, or NULL. */
const contract_job *source_contract_again(source_contract *c, uint32_t first);

/* --- time --- */

void source_contract_turn(source_contract *c);
void source_contract_be_quiet(source_contract *c); /* many turns */

#define CONTRACT_UNTIL(c, fact)                                                                              \
    do {                                                                                                     \
        while (!(fact)) {                                                                                    \
            if ((c)->guard_rang)                                                                             \
                fail_msg("%s: never came true: %s", (c)->row->name, #fact);                                  \
            source_contract_turn(c);                                                                         \
        }                                                                                                    \
    } while (0)

#endif
