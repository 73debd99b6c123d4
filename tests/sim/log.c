/* tests/sim/log.c — growing arrays of records. */
#include "log.h"

#include <assert.h>
#include <stdlib.h>

void sim_records_add(sim_records *records, const sl_effect *record)
{
    if (records->count == records->room) {
        records->room = records->room == 0 ? 256 : 2 * records->room;
        records->records = realloc(records->records, records->room * sizeof records->records[0]);
        assert(records->records != NULL);
    }
    records->records[records->count++] = *record;
}

void sim_records_done(sim_records *records)
{
    free(records->records);
    *records = (sim_records){ .records = NULL };
}

void sim_log_init(sim_log *log)
{
    *log = (sim_log){ .tail_first = 0 };
}

void sim_log_done(sim_log *log)
{
    sim_records_done(&log->snapshot);
    sim_records_done(&log->tail);
}

uint64_t sim_log_next(const sim_log *log)
{
    return log->tail_first + log->tail.count;
}

void sim_log_cut(sim_log *log, uint32_t tail_count)
{
    assert(tail_count >= log->synced_count && tail_count <= log->tail.count);
    log->tail.count = tail_count;
}

void sim_log_rebase(sim_log *log, const sim_records *snapshot)
{
    log->tail_first = sim_log_next(log);
    log->tail.count = log->synced_count = log->snapshot.count = 0;
    for (uint32_t i = 0; i < snapshot->count; i++)
        sim_records_add(&log->snapshot, &snapshot->records[i]);
}
