/* worker/source/consumer_inside.h — the fields of a consumer source, for its files.
 *
 *      consumer.c         the class: what the worker says
 *      consumer_events.c  what the engine tells, and which job is meant
 *
 * For each job that is out there is a seat. Outcomes come by id, and ids may repeat: of several, the one of which something was said
 * first is meant, as in the engine; else the newest. */
#ifndef SL_WORKER_SOURCE_CONSUMER_INSIDE_H
#define SL_WORKER_SOURCE_CONSUMER_INSIDE_H

#include "client/consumer.h"
#include "worker/consumer_source.h"

enum {
    CONSUMER_SOURCE_REASON_BYTES = 512 /* of a stop, for people */
};

typedef struct consumer_seat {
    sl_list node; /* of all */
    sl_job *job;
    uint64_t said_number; /* 0: the worker has not said anything final */
    sl_settle_kind said;
    bool is_begun;
    bool is_over;         /* before the worker said something: `how` waits for that */
    bool is_lost;         /* and the worker was told so */
    bool is_out_of_reach; /* and only because the consumer ended without its server */
    sl_settled_how how;
} consumer_seat;

typedef struct consumer_reason { /* of a park that is recalled */
    sl_list node;
    size_t memory_bytes;
    char text[];
} consumer_reason;

typedef struct consumer_source {
    sl_source base;
    sl_source_class class; /* under the name that the address has */
    sl_loop *loop;
    sl_consumer *consumer;
    const sl_logger *log;
    sl_timer kick; /* something was said outside of a turn */
    sl_hash_seed seed;
    sl_map jobs; /* by id */
    sl_map_node **table;
    size_t table_length;
    sl_list seats, spare_seats;
    uint64_t said_number;
    uint32_t out_count;
    sl_consumer_finished *finished; /* until start(): what is recalled */
    size_t finished_count, finished_capacity;
    sl_list finished_reasons; /* what those point to */
    bool is_started, is_up;
    bool gate_is_closed, hands_back, is_fenced;
    bool is_closing, is_closed, has_failed, has_ended;
    bool stop_was_asked;
    uint32_t deadline_ms;
    char reason[CONSUMER_SOURCE_REASON_BYTES]; /* of the last stop_requested */
    char problem[SL_CONSUMER_PROBLEM_BYTES];   /* of the last down() */
    char shown[SL_HOST_BYTES_MAX + 10];        /* HOST:PORT */
    char stream[SL_CONSUMER_STREAM_BYTES_MAX + 1];
    char group[SL_CONSUMER_GROUP_BYTES_MAX + 1];
} consumer_source;

/* --- consumer_events.c --- */

extern const sl_consumer_handler consumer_source_handler; /* ctx: the source */

/* A place for a job, or NULL: no memory. */
consumer_seat *consumer_source_seat(consumer_source *c, sl_job *job);
/* An operator's stop has taken back what the worker would not have given: it hears of it now. */
void consumer_source_lose_handed_back(consumer_source *c);
/* The word about it is final: the worker frees the job. */
void consumer_source_settled(consumer_source *c, consumer_seat *seat, sl_settled_how how);
void consumer_source_free_seat(consumer_source *c, consumer_seat *seat);
/* What was said of it stays in the ack file: there is no settled() for it. */
bool consumer_source_is_for_next_process(const consumer_seat *seat);
void consumer_source_fence(consumer_source *c);
void consumer_source_close(consumer_source *c);
sl_consumer_id consumer_source_id(const sl_job *job);

#endif
