/* tests/sim/main.c — runs seeds, counts, and says how to see a failed one again. */
#include "fail.h"
#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "sim SEED                                    replays one run and shows inputs, effects and clock\n"
    "sim --seeds N [--first S] [--steps K]       runs N seeds from S on (default 1)\n"
    "sim --list FILE                             runs the seeds that FILE names, one at the start of each "
    "line\n"
    "    --steps K        this many steps instead of what the seed says\n"
    "    --stop           ends at the first seed that fails\n"
    "    --quiet          no progress\n"
    "Each failing seed is one line; the last line is \"N passed, N failed\". Exit code 1 if one failed.\n";

typedef struct options {
    uint64_t first, seed_count;
    uint32_t steps;
    bool trace, stop, quiet;
    const char *list;
} options;

static bool parse_number(const char *text, uint64_t *ret_number)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-')
        return false;
    *ret_number = number;
    return true;
}

static bool parse_flag(const char *argument, options *o)
{
    o->stop = o->stop || strcmp(argument, "--stop") == 0;
    o->quiet = o->quiet || strcmp(argument, "--quiet") == 0;
    return strcmp(argument, "--stop") == 0 || strcmp(argument, "--quiet") == 0;
}

static bool parse_pair(const char *name, const char *value, options *o)
{
    uint64_t number;
    if (value != NULL && strcmp(name, "--list") == 0) {
        o->list = value;
        return true;
    }
    if (value == NULL || !parse_number(value, &number))
        return false;
    if (strcmp(name, "--seeds") == 0)
        o->seed_count = number;
    else if (strcmp(name, "--first") == 0)
        o->first = number;
    else if (strcmp(name, "--steps") == 0 && number <= UINT32_MAX)
        o->steps = (uint32_t)number;
    else
        return false;
    return true;
}

static bool parse(int count, char **arguments, options *o)
{
    *o = (options){ .first = 1 };
    for (int i = 1; i < count; i++) {
        if (parse_flag(arguments[i], o))
            continue;
        if (parse_number(arguments[i], &o->first)) {
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

static bool run_seed(uint64_t seed, const options *o)
{
    static sim_world world; /* static: a jump out of the run must find it unharmed */
    sim_failure failure;
    sim_world_init(&world, seed, o->steps, o->trace);
    const bool passed = sim_guard(sim_world_run, &world, &failure);
    sim_world_done(&world);
    if (!passed)
        printf("seed %" PRIu64 " step %" PRIu32 ": invariant %d (%s), %s: %s   [replay: sim %" PRIu64 "%s]\n",
               seed, failure.step, (int)failure.rule, sim_rule_requirements(failure.rule),
               sim_rule_text(failure.rule), failure.text, seed, o->steps > 0 ? " with the same --steps" : "");
    fflush(stdout);
    return passed;
}

static void show_progress(const options *o, uint64_t done, uint64_t failed)
{
    if (o->quiet || o->trace || !isatty(STDERR_FILENO) || (done % 50 != 0 && done != o->seed_count))
        return;
    fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " failed ", done, o->seed_count, failed);
    if (done == o->seed_count)
        fputc('\n', stderr);
}

typedef struct tally {
    uint64_t done, failed;
} tally;

static void run_range(const options *o, tally *t)
{
    while (t->done < o->seed_count && !(o->stop && t->failed > 0)) {
        t->failed += !run_seed(o->first + t->done, o);
        t->done++;
        show_progress(o, t->done, t->failed);
    }
}

/* A line is a seed and why it is kept; one that begins with no digit is a comment. */
static bool run_list(const options *o, tally *t)
{
    char line[512];
    FILE *file = fopen(o->list, "r");
    if (file == NULL)
        return false;
    while (fgets(line, sizeof line, file) != NULL && !(o->stop && t->failed > 0)) {
        if (line[0] < '0' || line[0] > '9')
            continue;
        t->failed += !run_seed(strtoull(line, NULL, 10), o);
        t->done++;
    }
    fclose(file);
    return true;
}

int main(int count, char **arguments)
{
    options o;
    tally t = { .done = 0 };
    if (count == 2 && strcmp(arguments[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (!parse(count, arguments, &o)) {
        fputs("sim: what was given is not understood; numbers are whole and seed counts at least 1\n",
              stderr);
        fputs(usage, stderr);
        return 2;
    }
    if (o.list != NULL && !run_list(&o, &t)) {
        fprintf(stderr, "sim: %s: %s\n", o.list, strerror(errno));
        return 2;
    }
    run_range(&o, &t);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", t.done - t.failed, t.failed);
    return t.failed > 0;
}
