/* tests/faults/main.c — what happens to the store when disks, power and processes fail. See README.md. */
#include "report.h"
#include "suites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "faults SUITE [NUMBER]                  one case of a suite, or all that are usual\n"
    "faults SUITE --cases N [--first S]     N cases from number S on (default 1)\n"
    "    --repeat K       each case so often: threads make a case differ from itself\n"
    "    --every K        calls, errnos: only every K-th call is made to fail\n"
    "    --memory         power: the store in memory, to test the test\n"
    "Suites: power, calls, errnos, short, flips, full, kill, threads. Prints TAP; a case that fails is named "
    "by\n"
    "the words that repeat it. Exit code 1 if one failed.\n";

static const struct suite {
    const char *name;
    void (*run)(const suite_options *options);
    uint64_t usual_count;
} suites[] = {
    { "power", suite_power, 1000 }, { "calls", suite_calls, 0 }, /* until no call fails any more */
    { "errnos", suite_errnos, 0 },  { "short", suite_short, 5 }, { "flips", suite_flips, 1000 },
    { "full", suite_full, 50 },     { "kill", suite_kill, 4 },   { "threads", suite_threads, 2 },
};

static bool parse_number(const char *text, uint64_t *ret_number)
{
    char *end;

    if (text == NULL || text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool parse(char **words, suite_options *o)
{
    for (; *words != NULL; words++) {
        if (strcmp(*words, "--memory") == 0) {
            o->in_memory = true;
        } else if (parse_number(*words, &o->first)) {
            o->count = 1;
        } else {
            uint64_t *const into = strcmp(*words, "--cases") == 0    ? &o->count
                                   : strcmp(*words, "--first") == 0  ? &o->first
                                   : strcmp(*words, "--every") == 0  ? &o->every
                                   : strcmp(*words, "--repeat") == 0 ? &o->repeat
                                                                     : NULL;
            if (into == NULL || !parse_number(*++words, into))
                return false;
        }
    }
    return true;
}

/* What a case needs to know to be run: case_run() passes only one pointer. */
typedef struct one {
    uint64_t number;
    const suite_options *options;
    suite_case_fn *run;
} one;

static void run_one(void *ctx)
{
    const one *const o = ctx;

    for (uint64_t i = 0; i < o->options->repeat; i++)
        o->run(o->number, o->options);
}

bool suite_try(const suite_options *options, const char *name, unsigned seconds_max, suite_case_fn *run)
{
    one o = { options->first, options, run };

    return case_run(run_one, &o, seconds_max, "%s %" PRIu64, name, o.number);
}

void suite_run(const suite_options *options, const char *name, unsigned seconds_max, suite_case_fn *run)
{
    const uint64_t slice = (options->count + 9) / 10;
    suite_options now = *options;
    bool passed = true;

    for (uint64_t i = 0; i < options->count; i++) {
        now.first = options->first + i;
        passed = suite_try(&now, name, seconds_max, run) && passed;
        if ((i + 1) % slice != 0 && i + 1 != options->count)
            continue;
        if (passed)
            tap_passed("%s: cases up to %" PRIu64, name, now.first);
        passed = true;
    }
}

static const struct suite *find(const char *name)
{
    for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++)
        if (strcmp(suites[i].name, name) == 0)
            return &suites[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct suite *const suite = argc < 2 ? NULL : find(argv[1]);
    int failed;
    suite_options options = { .first = 1, .every = 1, .repeat = 1 };

    if (suite == NULL || !parse(argv + 2, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    if (options.count == 0)
        options.count = suite->usual_count;
    report_begin();
    suite->run(&options);
    failed = tap_end();
    if (failed)
        _exit(1); /* cases that failed have left much open; how much is no news */
    return 0;
}
