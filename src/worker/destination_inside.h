/* worker/destination_inside.h — what a destination is made of; for destination.c, which changes it, and destination_show.c. */
#ifndef SL_WORKER_DESTINATION_INSIDE_H
#define SL_WORKER_DESTINATION_INSIDE_H

#include "base/pairing.h"
#include "worker/destination.h"

enum {
    SHARED_KEYS = 1024 /* counters; a power of two */
};

typedef enum sl_place {
    PLACE_RESTING,
    PLACE_READY,
    PLACE_TIMED,
    PLACE_BLOCKED
} sl_place;

struct sl_destination {
    sl_list waiting; /* jobs, in order */
    sl_list ring;    /* RESTING, READY: with its like */
    size_t waiting_count;
    size_t running_count;
    sl_place place;
    bool waits_for_result; /* TIMED, BLOCKED: a result may change that */
    uint64_t next_ns;      /* by the rate, the next job may begin then */
    uint64_t pause_ns;     /* by a Retry-After, the same */
    uint64_t wake_ns;      /* TIMED */
    const sl_job *newest;  /* the last one taken, while it may still be put back */
    sl_pairing_node timed;
    sl_breaker breaker;

    sl_list every;
    sl_map_node by_key;
    char *key; /* behind this structure; NULL: the shared one */
    size_t key_bytes;
};

struct sl_destinations {
    sl_destination_rules rules;
    sl_list ready, resting, every;
    sl_pairing timed;
    uint64_t now_ns;         /* the newest time that anybody told */
    uint64_t drain_until_ns; /* 0: no drain */
    bool has_unkept;         /* jobs to keep were found when nobody wanted them */
    sl_map by_key;
    sl_hash_seed seed;
    uint32_t shared_keys[SHARED_KEYS];
    sl_destination shared;
};

#endif
