/* tests/faults/suites.h — the sub-commands of the program `faults`. */
#ifndef SL_TESTS_FAULTS_SUITES_H
#define SL_TESTS_FAULTS_SUITES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct suite_options {
    uint64_t first, count; /* cases */
    uint64_t every;        /* calls, errnos: only every so-manieth call to the disk is made to fail */
    uint64_t repeat;       /* each so often: threads make a case differ from itself */
    bool in_memory;        /* power: the store in memory instead of the journal, to test the test */
} suite_options;

void suite_power(const suite_options *options);
void suite_calls(const suite_options *options);
void suite_flips(const suite_options *options);
void suite_full(const suite_options *options);
void suite_kill(const suite_options *options);
void suite_errnos(const suite_options *options);
void suite_short(const suite_options *options);
void suite_threads(const suite_options *options);

/* suite_run: the cases from options->first on; about ten lines say what has passed. suite_try: only the first one; a
 * line if it has failed. */
typedef void suite_case_fn(uint64_t number, const suite_options *options);
bool suite_try(const suite_options *options, const char *name, unsigned seconds_max, suite_case_fn *run);
void suite_run(const suite_options *options, const char *name, unsigned seconds_max, suite_case_fn *run);

#endif
