/* worker/handler/environment.h — what a handler's process finds in its environment: ours, what the configuration adds, and the message.
 *
 * The first two are copied once; for each message only its own part is written behind them, into memory that is used again. */
#ifndef SL_WORKER_HANDLER_ENVIRONMENT_H
#define SL_WORKER_HANDLER_ENVIRONMENT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "worker/job.h"

enum {
    SL_ENVIRONMENT_ENTRY_BYTES_MAX = 128 * 1024, /* with its zero: the system takes no longer one */
    SL_ENVIRONMENT_MESSAGE_ENTRIES_MAX = 16
};

typedef struct sl_environment {
    char **entries; /* base_count of the base, then those of the message, then NULL */
    size_t base_count, entry_capacity, count;
    char *texts; /* of the base */
    size_t texts_bytes;
    sl_buf message; /* the texts of the message */
} sl_environment;

typedef struct sl_environment_times { /* for turning a deadline into a time of day */
    uint64_t now_ns, wall_ns;
} sl_environment_times;

/* extra: NAME=value, ends with NULL; NULL: nothing. What has the name of one of the message's is left out of the base.
 * SL_OK, SL_ERR_NOMEM, or SL_ERR_INVALID with a sentence. */
sl_err sl_environment_init(sl_environment *environment, char *const *base, const char *const *extra,
                           sl_text *problem);
void sl_environment_done(sl_environment *environment); /* also right when it is all zero */

/* Good until the next call. NULL: no memory. */
char *const *sl_environment_of(sl_environment *environment, const sl_job *job, sl_environment_times times);

#endif
