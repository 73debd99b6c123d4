/* tests/contract/main.c — runs every registered test for every backend, or those that match the pattern given as
 * argument: `build/tests/contract/contract 'memory.an_append*'`. */
#include "rig.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RULES_MAX = 512
};

static struct rule {
    const char *name;
    test_fn *run;
} rules[RULES_MAX];
static size_t rule_count;

void test_register(const char *name, const char *file, test_fn *run)
{
    (void)file;
    if (rule_count == RULES_MAX) {
        fprintf(stderr, "more than %d tests: raise RULES_MAX in tests/contract/main.c\n", RULES_MAX);
        _Exit(2);
    }
    rules[rule_count++] = (struct rule){ name, run };
}

static int use_backend(void **state)
{
    backend_now = *state;
    return 0;
}

/* cmocka does not change the state, but its type has no const. */
static void *state_of(const backend *b)
{
    return (void *)(uintptr_t)b;
}

static struct CMUnitTest test_of(const struct rule *rule, const backend *b)
{
    const size_t bytes = strlen(b->name) + strlen(rule->name) + 2;
    char *const name = malloc(bytes);

    if (name == NULL)
        _Exit(2);
    snprintf(name, bytes, "%s.%s", b->name, rule->name);
    return (struct CMUnitTest){
        .name = name, .test_func = rule->run, .setup_func = use_backend, .initial_state = state_of(b)
    };
}

/* A mistyped name must not look like a passed test. */
static bool matches_any(const char *pattern, const struct CMUnitTest *tests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fnmatch(pattern, tests[i].name, 0) == 0)
            return true;
    fprintf(stderr, "contract: no test matches '%s'; a name is BACKEND.rule_as_in_the_source\n", pattern);
    return false;
}

int main(int argc, char **argv)
{
    const size_t count = rule_count * backend_count;
    struct CMUnitTest *const tests = calloc(count + 1, sizeof *tests);
    int failed = 1;

    if (tests == NULL)
        return 2;
    for (size_t i = 0; i < count; i++)
        tests[i] = test_of(&rules[i % rule_count], &backends[i / rule_count]);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    if (argc <= 1 || matches_any(argv[1], tests, count))
        failed = _cmocka_run_group_tests("contract", tests, count, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)tests[i].name);
    free(tests);
    return failed == 0 ? 0 : 1;
}
