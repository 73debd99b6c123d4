/* net/process_inside.h — private to src/net: what process.c and orphans.c share. */
#ifndef SL_NET_PROCESS_INSIDE_H
#define SL_NET_PROCESS_INSIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Children are a matter of the whole process, so what we started is in one table for all loops and threads. */
typedef struct sl_started {
    struct sl_started *next; /* in the same row of the table */
    pid_t pid;               /* also the number of its session and group */
} sl_started;

/* Around a start, so that no other thread takes the child for an orphan before it is in the table. */
void sl_started_lock(void);
void sl_started_unlock(void);

void sl_started_add(sl_started *started);    /* locked */
void sl_started_remove(sl_started *started); /* also right when it was never added */

/* One of ours that has not been told to have ended. */
bool sl_started_has(pid_t pid);

/* False: it is still not dead at until_ns of monotonic time. Looks once at least. */
bool sl_process_reap(pid_t pid, uint64_t until_ns);

#endif
