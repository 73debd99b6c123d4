/* tests/faults/report.h — cases that pass or fail, and TAP that says so.
 *
 * A case is named by the words that repeat it: `faults power 37` runs the case "power 37". CHECK leaves the case at once;
 * what it had open stays open, because a store that has just broken a promise is not asked to close in order. A case
 * that crashes or hangs the program is named as well, before the program ends. */
#ifndef SL_TESTS_FAULTS_REPORT_H
#define SL_TESTS_FAULTS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define CHECK(fact, ...)                                                                                     \
    do {                                                                                                     \
        if (!(fact))                                                                                         \
            case_fail(__VA_ARGS__);                                                                          \
    } while (0)

__attribute__((noreturn, format(printf, 1, 2))) void case_fail(const char *format, ...);

/* Once, before everything else: crashes and hangs are reported from now on. */
void report_begin(void);

typedef void case_fn(void *ctx);

/* False: it failed, and that was said. seconds_max: after that it counts as hanging, and the program ends. */
bool case_run(case_fn *run, void *ctx, unsigned seconds_max, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* In a child process a failure is told to the parent by the exit code CHILD_FAILED, not in TAP. */
enum {
    CHILD_FAILED = 3
};
void report_in_child(void);

/* A line of TAP for what has passed, and at the end the number of lines. */
void tap_passed(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The exit code of the program. */
int tap_end(void);

#endif
