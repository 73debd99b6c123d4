/* bench/worker/parts.h — the parts of bench-worker, what they are told, and what they share. */
#ifndef BENCH_WORKER_PARTS_H
#define BENCH_WORKER_PARTS_H

#include "common/report.h"

#include <sys/types.h>

typedef struct run_options {
    bench_options common;
    double scale;             /* of all numbers of messages; 1 is the usual */
    uint64_t memory_messages; /* of the part memory */
    uint32_t slots;           /* requests or processes at the same time */
    uint32_t data_bytes;      /* of a message */
} run_options;

void part_callback(const run_options *o);
void part_http(const run_options *o);
void part_lines(const run_options *o);
void part_exec(const run_options *o);
void part_memory(const run_options *o);

/* Of one measurement, where `usual` would be measured. */
uint64_t run_messages(const run_options *o, uint64_t usual);

/* --- processes of ours (process.c) --- */

/* The command that answers lines, or with the word "once" reads its input and ends; for /bin/sh -c. */
const char *child_command(const char *word);

/* Calls fn in a process of its own, which ends when fn returns or when this one ends. */
pid_t child_fork(void (*fn)(void *ctx), void *ctx);
void child_end(pid_t process); /* kills it and takes its end */
void child_end_all(void);

/* Resident memory of this process. */
double resident_bytes(void);

#endif
