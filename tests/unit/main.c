/* tests/unit/main.c — runs every registered test, or those whose names match a pattern.
 *
 *     unit                    all of them
 *     unit PATTERN...         those that match one of the patterns, as a shell matches file names: 'lease_*'; a pattern with
 *                             a slash is for the files in which they stand: '*unit/net/test_loop.c'
 *     unit --share 1/2 ...    every second of them, beginning with the first: for processes that run side by side
 *     unit --list             shows the names and where the tests stand, and runs nothing
 *
 * A pattern that matches nothing is an error: a mistyped name must not look like a passed test. */
#include "scarce.h"
#include "test.h"

#include "../tools/plain.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TESTS_MAX = 4096
};

static struct CMUnitTest tests[TESTS_MAX];
static const char *files[TESTS_MAX];
static size_t test_count;

/* A test that failed in the middle must not take those after it along. */
static int begin_afresh(void **state)
{
    (void)state;
    plain_is_on = false;
    (void)scarce_end(NULL);
    return 0;
}

void test_register(const char *name, const char *file, test_fn *run)
{
    if (test_count == TESTS_MAX) {
        fprintf(stderr, "more than %d tests: raise TESTS_MAX in tests/unit/main.c\n", TESTS_MAX);
        _Exit(2);
    }
    files[test_count] = file;
    tests[test_count++] = (struct CMUnitTest){ .name = name, .test_func = run, .setup_func = begin_afresh };
}

/* The compiler names files from the build folder on; people look from the root of the tree. */
static const char *from_the_root(const char *file)
{
    const char *found = strstr(file, "tests/unit/");

    return found == NULL ? file : found;
}

static int list(void)
{
    for (size_t i = 0; i < test_count; i++)
        printf("%s  %s\n", from_the_root(files[i]), tests[i].name);
    return 0;
}

static void move(size_t to, size_t from)
{
    tests[to] = tests[from];
    files[to] = files[from];
}

static bool matches(const char *pattern, size_t test)
{
    const bool is_path = strchr(pattern, '/') != NULL;

    return fnmatch(pattern, is_path ? from_the_root(files[test]) : tests[test].name, 0) == 0;
}

/* Keeps the tests that match one of the patterns. False, after saying so, when a pattern matches none. */
static bool choose(char **patterns, int pattern_count)
{
    bool chosen[TESTS_MAX] = { false };
    size_t kept = 0;

    for (int p = 0; p < pattern_count; p++) {
        bool matched = false;
        for (size_t i = 0; i < test_count; i++) {
            const bool fits = matches(patterns[p], i);
            chosen[i] |= fits;
            matched |= fits;
        }
        if (!matched) {
            fprintf(stderr, "unit: no test matches '%s'; --list shows the names\n", patterns[p]);
            return false;
        }
    }
    for (size_t i = 0; i < test_count; i++)
        if (chosen[i])
            move(kept++, i);
    test_count = kept;
    return true;
}

/* "2/3": keeps the second, the fifth, the eighth ... False: that is not a share. */
static bool take_share(const char *text)
{
    unsigned share, share_count;
    size_t kept = 0;
    char rest;

    if (sscanf(text, "%u/%u%c", &share, &share_count, &rest) != 2 || share == 0 || share > share_count)
        return false;
    for (size_t i = share - 1; i < test_count; i += share_count)
        move(kept++, i);
    test_count = kept;
    return true;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--share") == 0 && take_share(argv[2])) {
        argc -= 2;
        argv += 2;
    }
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (argc > 1 && argv[1][0] == '-') {
        fprintf(stderr, "usage: unit [--share 1/2] [PATTERN]... | unit --list\n");
        return 2;
    }
    if (argc > 1 && !choose(argv + 1, argc - 1))
        return 1;
    return _cmocka_run_group_tests("unit", tests, test_count, NULL, NULL) == 0 ? 0 : 1;
}
