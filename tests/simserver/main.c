/* tests/simserver/main.c — runs seeds, counts, and says how to see a failed one again. */
#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "simserver SEED                         replays one run and shows what clients saw\n"
    "simserver --seeds N [--first S]        runs N seeds from S on (default 1)\n"
    "simserver --list FILE                  runs the seeds that FILE names, one at the start of each line\n"
    "    --stop           ends at the first seed that fails\n"
    "    --quiet          does not say what happened how often\n"
    "Each failing seed is one line and what clients saw before; the last line is \"N passed, N failed\". "
    "Exit code 1 if\n"
    "one failed.\n";

typedef struct options {
    uint64_t first, seed_count;
    bool trace, stop, quiet;
    const char *list;
} options;

typedef struct tally {
    uint64_t done, failed;
    uint64_t situations[SITUATION_COUNT_];
} tally;

static bool parse_number(const char *text, uint64_t *ret_number)
{
    char *end;

    errno = 0;
    *ret_number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == 0 && text[0] != '-';
}

static bool parse_pair(const char *name, const char *value, options *o)
{
    if (value == NULL)
        return false;
    if (strcmp(name, "--list") == 0) {
        o->list = value;
        return true;
    }
    if (strcmp(name, "--seeds") == 0)
        return parse_number(value, &o->seed_count);
    return strcmp(name, "--first") == 0 && parse_number(value, &o->first);
}

static bool parse(int count, char **arguments, options *o)
{
    *o = (options){ .first = 1 };
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--stop") == 0) {
            o->stop = true;
        } else if (strcmp(arguments[i], "--quiet") == 0) {
            o->quiet = true;
        } else if (parse_number(arguments[i], &o->first)) {
            o->trace = true;
            o->seed_count = 1;
        } else if (parse_pair(arguments[i], arguments[i + 1], o)) {
            i++;
        } else {
            return false;
        }
    }
    return (o->seed_count > 0) != (o->list != NULL);
}

static void run_seed(uint64_t seed, const options *o, tally *t)
{
    static world w;
    const bool passed = world_run(&w, seed, o->trace);

    if (!passed)
        report_print_failure(&w.report);
    for (int i = 0; i < SITUATION_COUNT_; i++)
        t->situations[i] += w.report.situations[i];
    t->failed += !passed;
    t->done++;
    fflush(stdout);
}

static void run_range(const options *o, tally *t)
{
    for (uint64_t i = 0; i < o->seed_count && !(o->stop && t->failed > 0); i++)
        run_seed(o->first + i, o, t);
}

/* A line is a seed and why it is kept; one that begins with no digit is a comment. */
static bool run_list(const options *o, tally *t)
{
    char line[512];
    FILE *const file = fopen(o->list, "r");

    if (file == NULL)
        return false;
    while (fgets(line, sizeof line, file) != NULL && !(o->stop && t->failed > 0))
        if (line[0] >= '0' && line[0] <= '9')
            run_seed(strtoull(line, NULL, 10), o, t);
    fclose(file);
    return true;
}

int main(int count, char **arguments)
{
    options o;
    static tally t;

    if (count == 2 && strcmp(arguments[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (!parse(count, arguments, &o)) {
        fputs("simserver: what was given is not understood\n", stderr);
        fputs(usage, stderr);
        return 2;
    }
    if (o.list != NULL && !run_list(&o, &t)) {
        fprintf(stderr, "simserver: %s: %s\n", o.list, strerror(errno));
        return 2;
    }
    run_range(&o, &t);
    if (!o.quiet && !o.trace)
        report_print_situations(t.situations);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", t.done - t.failed, t.failed);
    return t.failed > 0;
}
