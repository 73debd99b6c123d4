/* bench/common/tools.c — clock, random numbers, medians, and ends that leave nothing behind. */
#include "common/bench.h"

#include "base/str.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- errors --- */

static void (*at_end)(void);

void bench_at_end(void (*fn)(void))
{
    at_end = fn;
}

_Noreturn void bench_fail(const char *format, ...)
{
    va_list arguments;

    bench_progress("", 0, 0);
    va_start(arguments, format);
    fprintf(stderr, "bench-%s: ", bench_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    if (at_end != NULL)
        at_end();
    bench_folder_close();
    exit(1);
}

void bench_must(sl_err err, const char *what)
{
    if (err != SL_OK)
        bench_fail("%s: %s", what, sl_err_text(err));
}

void *bench_allocate(size_t bytes)
{
    void *const memory = malloc(bytes);

    if (memory == NULL)
        bench_fail("no memory for %zu bytes", bytes);
    return memory;
}

static volatile sig_atomic_t interrupted;

static void note_interrupt(int number)
{
    interrupted = number;
}

/* Installed on first use. Files of some gigabytes are nothing to leave behind because somebody lost patience. */
void bench_check(void)
{
    static bool installed;

    if (!installed) {
        const struct sigaction action = { .sa_handler = note_interrupt };
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        installed = true;
    }
    if (interrupted != 0)
        bench_fail("stopped by signal %d", (int)interrupted);
}

/* --- time and numbers --- */

double bench_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t bench_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* --- the command line --- */

uint64_t bench_number(const char *name, const char *text, uint64_t least, uint64_t most)
{
    uint64_t value = 0;

    if (sl_str_parse_u64(sl_str_from(text), &value) == SL_OK && value >= least && value <= most)
        return value;
    fprintf(stderr, "bench-%s: --%s must be a whole number from %llu to %llu, not '%s'\n", bench_name, name,
            (unsigned long long)least, (unsigned long long)most, text);
    exit(2);
}

/* The first of the words; false: there is none left. */
static bool next_word(sl_str *rest, sl_str *ret_word)
{
    if (rest->data == NULL)
        return false;
    if (!sl_str_cut(*rest, ',', ret_word, rest)) {
        *ret_word = *rest;
        *rest = (sl_str){ NULL, 0 };
    }
    return true;
}

bool bench_is_named(const char *words, const char *name)
{
    sl_str rest = words == NULL ? (sl_str){ NULL, 0 } : sl_str_from(words), word;

    while (next_word(&rest, &word))
        if (sl_str_equal(word, sl_str_from(name)))
            return true;
    return words == NULL;
}

static bool is_known(sl_str word, const char *const *known)
{
    for (; *known != NULL; known++)
        if (sl_str_equal(word, sl_str_from(*known)))
            return true;
    return false;
}

void bench_check_names(const char *option, const char *words, const char *const *known)
{
    sl_str rest = words == NULL ? (sl_str){ NULL, 0 } : sl_str_from(words), word;

    while (next_word(&rest, &word)) {
        if (is_known(word, known))
            continue;
        fprintf(stderr, "bench-%s: --%s does not know '%.*s'; it knows", bench_name, option, (int)word.bytes,
                word.data);
        for (; *known != NULL; known++)
            fprintf(stderr, " %s", *known);
        fputc('\n', stderr);
        exit(2);
    }
}

/* --- numbers --- */

double bench_median(const double *values, size_t count)
{
    double sorted[BENCH_ROUNDS_MAX];

    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

void bench_progress(const char *what, uint64_t done, uint64_t total)
{
    if (!isatty(STDERR_FILENO))
        return;
    if (total == 0)
        fprintf(stderr, "\r%60s\r", "");
    else
        fprintf(stderr, "\r%-30s %3u %%", what, (unsigned)(done * 100 / total));
}
