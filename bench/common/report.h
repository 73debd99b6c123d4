/* bench/common/report.h — what was found: a table for people, lines for tools/bench, JSON for other programs. */
#ifndef BENCH_COMMON_REPORT_H
#define BENCH_COMMON_REPORT_H

#include "common/bench.h"

/* What the project wants of comparisons; each program has such a table, closed by a row without a name. */
typedef struct bench_wanted {
    const char *what, *peer; /* peer "*": all of them */
    double ratio;
} bench_wanted;
extern const bench_wanted bench_wanted_ratios[];

/* A comparison in speeds (more is better) or in costs (less is better); the ratio is "how many times better are we" in
 * both. Values are medians over the rounds, the ratio is the median of the ratios of the rounds. */
void bench_report_speed(const char *what, const char *peer, const double *ours, const double *theirs,
                        size_t rounds, const char *unit);
void bench_report_cost(const char *what, const char *peer, const double *ours, const double *theirs,
                       size_t rounds, const char *unit);

/* A figure that stands alone. wanted 0: nothing is wanted of it. */
void bench_report_least(const char *what, double value, const char *unit, double wanted);
void bench_report_most(const char *what, double value, const char *unit, double wanted);

/* A figure that could not be had here. */
void bench_report_missing(const char *what, const char *peer, const char *unit);

/* Everything that was reported since the last call, as rows of the table. */
void bench_report_show(void);

/* The lines "ratio WHAT PEER NUMBER"; and the file, when one is wanted. */
void bench_report_end(const bench_options *options);

#endif
