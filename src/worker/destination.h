/* worker/destination.h — where work goes to, and whether it may go there now: a breaker and a rate for each destination.
 *
 * A worker without a key has one destination. With one (`--key stream`, `type`, `data.NAME`, `metadata.NAME`) each value of the key is
 * a destination of its own: one that fails or has to be slow keeps only its own messages waiting. Waiting messages stay in the
 * intake with their leases; when it is full nothing more comes, which is how a breaker closes the gate instead of filling the
 * dead letters (B18).
 *
 *      messages --> destination A  (waiting in order)  --ready-->  slots
 *               --> destination B  (until 12:00:03)
 *
 * Destinations that have nothing to wait for and nothing to remember are forgotten when there are many. */
#ifndef SL_WORKER_DESTINATION_H
#define SL_WORKER_DESTINATION_H

#include "base/alloc.h"
#include "core/breaker.h"
#include "worker/job.h"

struct cJSON;

enum {
    SL_DESTINATIONS_MAX = 10000, /* more keys than this at a time share the last one */
    SL_DESTINATION_KEY_BYTES_MAX = 256
};

typedef enum sl_key_kind {
    SL_KEY_NONE,
    SL_KEY_STREAM,
    SL_KEY_TYPE,
    SL_KEY_DATA,     /* a field of the data, which is JSON; a message without it has the empty key */
    SL_KEY_METADATA, /* the same for the metadata */
    SL_KEY_KIND_COUNT_
} sl_key_kind;

typedef struct sl_destination_rules {
    sl_key_kind key;
    char field[64]; /* DATA, METADATA */
    bool has_breaker;
    sl_breaker_rules breaker;
    uint64_t interval_ns; /* between two begins; 0: no limit */
    uint32_t
        concurrent_max; /* jobs that run at the same time for one destination; 0: no limit. 1 keeps the order of a key */
} sl_destination_rules;

/* "stream", "type", "data.NAME", "metadata.NAME". SL_OK or SL_ERR_INVALID. */
sl_err sl_key_parse(sl_str text, sl_destination_rules *rules);

typedef struct sl_destination sl_destination;
typedef struct sl_destinations sl_destinations; /* opaque */

/* SL_OK, SL_ERR_NOMEM, SL_ERR_INVALID (the breaker's rules), SL_ERR_IO (no random numbers). */
sl_err sl_destinations_new(const sl_destination_rules *rules, sl_destinations **ret_all);
void sl_destinations_free(sl_destinations *all); /* NULL is allowed */

/* A job that waits from now on; SL_OK or SL_ERR_NOMEM. */
sl_err sl_destinations_add(sl_destinations *all, sl_job *job);
/* It was taken and could not begin: it waits in front and keeps its turn. Instead of sl_destinations_ended(). */
void sl_destinations_put_back(sl_destinations *all, sl_job *job);
/* It does not wait any more, without having been taken. Harmless for one that a drain has kept. */
void sl_destinations_remove(sl_destinations *all, sl_job *job);

/* The next job that may begin, taken out; NULL: none. Then *ret_wake_ns is when to ask again at the latest; UINT64_MAX: when something
 * has changed. keeps: NULL, or where jobs go that a drain shall keep stored (S3.37, S3.39), linked by sl_job.line, which must be in a ring
 * of the worker or initialised: it is taken out of that. They have no destination any more. */
sl_job *sl_destinations_take(sl_destinations *all, uint64_t now_ns, sl_list *keeps, uint64_t *ret_wake_ns);

/* How it went; for each job that was taken, once. */
typedef enum sl_destination_result {
    SL_DESTINATION_WORKED,
    SL_DESTINATION_FAILED,
    SL_DESTINATION_UNKNOWN /* aborted, lost, not begun: says nothing about the destination */
} sl_destination_result;
void sl_destinations_ended(sl_destinations *all, sl_job *job, sl_destination_result result,
                           uint64_t retry_after_ns, uint64_t now_ns);

/* A drain begins, accepted work may go until until_ns; or it was taken back. In a drain a job whose turn would come too late by the
 * rate is kept at once, not when the time is over. */
void sl_destinations_drain(sl_destinations *all, uint64_t until_ns);
void sl_destinations_drain_end(sl_destinations *all);

size_t sl_destinations_count(const sl_destinations *all);
/* How many have an open or half-open breaker. */
size_t sl_destinations_open_count(const sl_destinations *all, uint64_t now_ns);
void sl_destinations_describe(const sl_destinations *all, uint64_t now_ns, struct cJSON *array);

#endif
