/* tests/unit/test.h — the few words that a unit test needs, on top of cmocka.
 *
 * TEST(the_rule_as_a_sentence) registers itself; tests/unit/main.c runs all of them, or those whose name
 * matches a pattern: `build/tests/unit/unit 'a_lease_*'`, and `--list` shows the names. EXPECT_ROW, for tests
 * that walk along a table, is in tests/unit/base/support.h. */
#ifndef SL_TESTS_UNIT_TEST_H
#define SL_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

typedef void test_fn(void **state);

/* Called by constructors, before main(). `file` is where the test stands; --list shows it. */
void test_register(const char *name, const char *file, test_fn *run);

#define TEST(rule)                                                                                           \
    static void test_##rule(void **test_state);                                                              \
    __attribute__((constructor)) static void register_##rule(void)                                           \
    {                                                                                                        \
        test_register(#rule, __FILE__, test_##rule);                                                         \
    }                                                                                                        \
    static void test_##rule(__attribute__((unused)) void **test_state)

/* The step of a sweep over seeds, bits or calls that fail. ThreadSanitizer looks for races, which one round has like the next, and it
 * is ten times slower: it gets a part of the rounds. */
#ifdef __SANITIZE_THREAD__
#define SWEEP_STEP 7
#else
#define SWEEP_STEP 1
#endif

#define EXPECT(fact)                  assert_true(fact)
#define EXPECT_EQ(is, wanted)         assert_int_equal((is), (wanted))
#define EXPECT_STR(is, wanted)        assert_string_equal((is), (wanted))
#define EXPECT_MEM(is, wanted, bytes) assert_memory_equal((is), (wanted), (bytes))
#define EXPECT_OK(call)               EXPECT_ERR(call, SL_OK)

/* Compares error codes and shows their texts, not their numbers. */
#define EXPECT_ERR(call, wanted)                                                                             \
    do {                                                                                                     \
        const sl_err test_is_ = (call);                                                                      \
        if (test_is_ != (wanted))                                                                            \
            fail_msg("%s gave \"%s\", wanted \"%s\"", #call, sl_err_text(test_is_), sl_err_text(wanted));    \
    } while (0)

#endif
