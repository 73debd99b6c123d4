/* tests/unit/main.c — runs every registered test, or those that match the pattern given as argument. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TESTS_MAX = 4096
};

static struct CMUnitTest tests[TESTS_MAX];
static size_t test_count;

void test_register(const char *name, const char *file, test_fn *run)
{
    (void)file;
    if (test_count == TESTS_MAX) {
        fprintf(stderr, "more than %d tests: raise TESTS_MAX in tests/unit/main.c\n", TESTS_MAX);
        _Exit(2);
    }
    tests[test_count++] = (struct CMUnitTest){ .name = name, .test_func = run };
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests("unit", tests, test_count, NULL, NULL) == 0 ? 0 : 1;
}
