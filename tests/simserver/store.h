/* tests/simserver/store.h — the disk of a run: the memory store behind a layer that takes its time and refuses, or the journal on a
 * disk that loses power and fails.
 *
 * Both survive the server: kill and power cut leave what store/store.h promises, and the next server opens the same. */
#ifndef SIMSERVER_STORE_H
#define SIMSERVER_STORE_H

#include "base/list.h"
#include "store/backend.h"
#include "store/faulty/faulty.h"

typedef struct sim_store {
    sl_store base; /* what the host gets when it is not the journal */
    bool is_journal;
    sl_faulty *disk; /* journal */
    sl_store *inner;
    sl_list waiting; /* entries that are not answered */
    uint32_t inside;
    uint64_t now_ns, ready_ns; /* nothing is answered before ready_ns */
    bool full, no_space;       /* memory: FULL while something is inside; appends get NO_SPACE */
    char words[1024];
} sim_store;

void sim_store_open(sim_store *store, bool is_journal);
void sim_store_close(sim_store *store);

sl_store *sim_store_door(sim_store *store);

typedef enum sim_store_end {
    SIM_STORE_CLOSED, /* in order: everything is there */
    SIM_STORE_KILLED,
    SIM_STORE_CUT, /* what was not synced may be gone */
} sim_store_end;

/* To be called before the host is freed: whoever dies changes nothing any more. */
void sim_store_dies(sim_store *store, sim_store_end how, uint64_t seed);
/* And this one afterwards. False: the journal cannot be opened again, and words say why. */
bool sim_store_restart(sim_store *store, sim_store_end how);

/* The journal has threads. Waiting for what they do, whenever they have something to do, makes every run the same. */
void sim_store_wait(const sim_store *store);
bool sim_store_readable(const sim_store *store);

#endif
