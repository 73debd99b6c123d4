/* tests/sim/log.h — the store of a run: the records of a group, of which a crash may take what was not synced. */
#ifndef SIM_LOG_H
#define SIM_LOG_H

#include "core/effect.h"

typedef struct sim_records {
    sl_effect *records;
    uint32_t count, room;
} sim_records;

typedef struct sim_log {
    sim_records snapshot;  /* what a restart begins with */
    sim_records tail;      /* what was written since */
    uint64_t tail_first;   /* number of tail.records[0], counted from the first record of the run */
    uint32_t synced_count; /* of the tail: these survive whatever happens */
} sim_log;

void sim_records_add(sim_records *records, const sl_effect *record);
void sim_records_done(sim_records *records);

void sim_log_init(sim_log *log);
void sim_log_done(sim_log *log);
uint64_t sim_log_next(const sim_log *log); /* number that the next record will have */
void sim_log_cut(sim_log *log, uint32_t tail_count);

/* The snapshot takes the place of everything before it; its records are copied. */
void sim_log_rebase(sim_log *log, const sim_records *snapshot);

#endif
