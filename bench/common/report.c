/* bench/common/report.c — see report.h. */
#include "common/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 128,
    NAME_BYTES_MAX = 32,
};

typedef struct row {
    char what[NAME_BYTES_MAX], peer[NAME_BYTES_MAX]; /* peer "": a figure that stands alone */
    const char *unit;
    double ours, theirs, ratio; /* NAN: none */
    double wanted;              /* of the ratio, or of a figure that stands alone; 0: nothing is wanted */
    bool at_most;               /* and not at least */
} row;

static row rows[ROWS_MAX];
static size_t row_count, shown_count;

static double wanted_ratio(const char *what, const char *peer)
{
    for (const bench_wanted *w = bench_wanted_ratios; w->what != NULL; w++)
        if (strcmp(w->what, what) == 0 && (strcmp(w->peer, "*") == 0 || strcmp(w->peer, peer) == 0))
            return w->ratio;
    return 0;
}

/* --- collecting --- */

static row *add_row(const char *what, const char *peer, const char *unit)
{
    row *const r = &rows[row_count];

    if (row_count == ROWS_MAX)
        bench_fail("more than %d rows", ROWS_MAX);
    row_count++;
    *r = (row){ .unit = unit, .ours = NAN, .theirs = NAN, .ratio = NAN };
    snprintf(r->what, sizeof r->what, "%s", what);
    snprintf(r->peer, sizeof r->peer, "%s", peer);
    return r;
}

static void add_comparison(const char *what, const char *peer, const char *unit, const double *ours,
                           const double *theirs, size_t rounds, bool is_cost)
{
    row *const r = add_row(what, peer, unit);
    double ratios[BENCH_ROUNDS_MAX];

    for (size_t i = 0; i < rounds; i++)
        ratios[i] = is_cost ? theirs[i] / ours[i] : ours[i] / theirs[i];
    r->ours = bench_median(ours, rounds);
    r->theirs = bench_median(theirs, rounds);
    r->ratio = bench_median(ratios, rounds);
    if (!isfinite(r->ratio)) /* a cost of nothing, as in memory: there is nothing to compare */
        r->ratio = NAN;
    r->wanted = wanted_ratio(what, peer);
}

void bench_report_speed(const char *what, const char *peer, const double *ours, const double *theirs,
                        size_t rounds, const char *unit)
{
    add_comparison(what, peer, unit, ours, theirs, rounds, false);
}

void bench_report_cost(const char *what, const char *peer, const double *ours, const double *theirs,
                       size_t rounds, const char *unit)
{
    add_comparison(what, peer, unit, ours, theirs, rounds, true);
}

void bench_report_least(const char *what, double value, const char *unit, double wanted)
{
    row *const r = add_row(what, "", unit);

    r->ours = value;
    r->wanted = wanted;
}

void bench_report_most(const char *what, double value, const char *unit, double wanted)
{
    bench_report_least(what, value, unit, wanted);
    rows[row_count - 1].at_most = true;
}

void bench_report_missing(const char *what, const char *peer, const char *unit)
{
    add_row(what, peer, unit);
}

static bool is_met(const row *r)
{
    const double value = r->peer[0] == '\0' ? r->ours : r->ratio;

    return r->at_most ? value <= r->wanted : value >= r->wanted;
}

/* --- the table --- */

static const char *number_text(double value, char text[NAME_BYTES_MAX])
{
    const int digits = fabs(value) >= 100 ? 0 : fabs(value) >= 1 ? 2 : 3;

    if (isnan(value))
        return "n/a";
    snprintf(text, NAME_BYTES_MAX, "%.*f", digits, value);
    return text;
}

static void show_row(const row *r)
{
    const bool alone = r->peer[0] == '\0';
    char ours[NAME_BYTES_MAX], theirs[NAME_BYTES_MAX], ratio[NAME_BYTES_MAX], wanted[NAME_BYTES_MAX];

    printf("%-22s %-16s %12s %12s  %-11s %8s", r->what, alone ? "-" : r->peer, number_text(r->ours, ours),
           alone ? "-" : number_text(r->theirs, theirs), r->unit, alone ? "-" : number_text(r->ratio, ratio));
    if (r->wanted > 0)
        printf("   %s %-9s %s", r->at_most ? "at most " : "at least", number_text(r->wanted, wanted),
               is_met(r) ? "met" : "MISSED");
    printf("\n");
}

void bench_report_show(void)
{
    if (shown_count == 0 && row_count > 0)
        printf("%-22s %-16s %12s %12s  %-11s %8s   %s\n", "what", "peer", "ours", "theirs", "unit", "ratio",
               "wanted");
    for (; shown_count < row_count; shown_count++)
        show_row(&rows[shown_count]);
    fflush(stdout);
}

/* --- JSON --- */

static void put_number(FILE *file, const char *name, double value)
{
    if (isnan(value))
        fprintf(file, ", \"%s\": null", name);
    else
        fprintf(file, ", \"%s\": %.6g", name, value);
}

static void put_row(FILE *file, const row *r)
{
    fprintf(file, "    {\"what\": \"%s\"", r->what);
    if (r->peer[0] != '\0')
        fprintf(file, ", \"peer\": \"%s\"", r->peer);
    fprintf(file, ", \"unit\": \"%s\"", r->unit);
    put_number(file, "ours", r->ours);
    if (r->peer[0] != '\0') {
        put_number(file, "theirs", r->theirs);
        put_number(file, "ratio", r->ratio);
    }
    if (r->wanted > 0)
        fprintf(file, ", \"%s\": %g, \"met\": %s", r->at_most ? "wanted_at_most" : "wanted_at_least",
                r->wanted, is_met(r) ? "true" : "false");
    fprintf(file, "}");
}

static void put_json(FILE *file, const bench_options *options)
{
    fprintf(file,
            "{\n  \"name\": \"%s\",\n  \"rounds\": %" PRIu32 ", \"streams\": %" PRIu32 ", \"seed\": %" PRIu64
            ", \"quick\": %s,\n  \"rows\": [\n",
            bench_name, options->rounds, options->streams, options->seed, options->quick ? "true" : "false");
    for (size_t i = 0; i < row_count; i++) {
        put_row(file, &rows[i]);
        fprintf(file, "%s\n", i + 1 < row_count ? "," : "");
    }
    fprintf(file, "  ]\n}\n");
}

static void write_json(const bench_options *options)
{
    FILE *const file = fopen(options->json, "w");

    if (file == NULL)
        bench_fail("cannot write %s: %s", options->json, strerror(errno));
    put_json(file, options);
    if (fclose(file) != 0)
        bench_fail("cannot write %s: %s", options->json, strerror(errno));
}

void bench_report_end(const bench_options *options)
{
    if (options->json != NULL && strcmp(options->json, "-") == 0) {
        put_json(stdout, options);
        return;
    }
    for (size_t i = 0; i < row_count; i++)
        if (!isnan(rows[i].ratio))
            printf("ratio %s %s %.3f\n", rows[i].what, rows[i].peer, rows[i].ratio);
    if (options->json != NULL)
        write_json(options);
}
