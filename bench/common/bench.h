/* bench/common/bench.h — what every benchmark with a folder needs: options, clock, medians, folders, the device. */
#ifndef BENCH_COMMON_BENCH_H
#define BENCH_COMMON_BENCH_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_PATH_BYTES_MAX = 1024,
    BENCH_ROUNDS_MAX = 99,
};

/* Each program has one: its name without "bench-", for folders and complaints. */
extern const char bench_name[];

typedef struct bench_options {
    const char *parent; /* the folder for everything is made in here; NULL: TMPDIR, else beside the program */
    const char *json;   /* NULL: none; "-": to the terminal, instead of the table */
    const char *parts;  /* names with commas; NULL: all */
    uint32_t rounds;
    uint32_t streams;
    uint64_t gigabytes; /* of the folder that is opened */
    uint64_t events;    /* the same in events, when it is not 0 */
    uint64_t seed;
    bool quick;
} bench_options;

/* --- the command line: what cannot be meant ends the program with a sentence and 2 --- */

/* The value of --NAME. */
uint64_t bench_number(const char *name, const char *text, uint64_t least, uint64_t most);

/* Is `name` one of the words, which are separated by commas? NULL: everything is. */
bool bench_is_named(const char *words, const char *name);

/* Every word must be one of the known ones (NULL at their end), or it would be left out without a word. */
void bench_check_names(const char *option, const char *words, const char *const *known);

/* --- errors --- */

/* Says what does not work, ends what bench_at_end() named, removes the folder, ends with 1. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_must(sl_err err, const char *what);
void bench_at_end(void (*fn)(void)); /* one, for example to end processes */
void *bench_allocate(size_t bytes);

/* Ends the program in order after an interrupt; called between two batches. */
void bench_check(void);

/* --- time and numbers --- */

double bench_now_s(void);
uint64_t bench_random(uint64_t *state); /* *state must not be 0 */
double bench_median(const double *values, size_t count);

/* One line on the terminal that is written over, nothing in a log. total 0: the line goes away. */
void bench_progress(const char *what, uint64_t done, uint64_t total);

/* --- the folder and its device --- */

/* Makes the folder for everything and finds the device below it; warns when files there never reach a disk. */
void bench_folder_open(const char *parent);
void bench_folder_close(void);

/* `name` in that folder, as a path of its own for each name; good until the next call. */
const char *bench_path(const char *name);
void bench_folder_make(const char *path);
void bench_folder_remove(const char *path);
void bench_need_space(uint64_t bytes);

/* Bytes that were sent to the device since it is there, by anybody; UINT64_MAX when it cannot be found. */
uint64_t bench_device_bytes(void);

/* Lets everything that was written reach the device, and what others do in the background end: so that one does not
 * pay for the other. Waits for some hundred milliseconds at most. */
void bench_quiet(void);

#endif
