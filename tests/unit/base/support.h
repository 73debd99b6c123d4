/* tests/unit/base/support.h — what the tests of base share: seeded dice, an allocator that fails when told,
 * and a way to see an assertion fire. */
#ifndef SL_TESTS_UNIT_BASE_SUPPORT_H
#define SL_TESTS_UNIT_BASE_SUPPORT_H

#include "test.h"

#include "base/alloc.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Says which seed and which step to look at when a random sequence goes wrong. */
#define EXPECT_RUN(fact, seed, step)                                                                         \
    do {                                                                                                     \
        if (!(fact))                                                                                         \
            fail_msg("seed %llu, step %llu: not so: %s", (unsigned long long)(seed),                         \
                     (unsigned long long)(step), #fact);                                                     \
    } while (0)

/* Says which row of a table is wrong. */
#define EXPECT_ROW(fact, row_index)                                                                          \
    do {                                                                                                     \
        if (!(fact))                                                                                         \
            fail_msg("row %llu: not so: %s", (unsigned long long)(row_index), #fact);                        \
    } while (0)

typedef struct dice {
    uint64_t state;
} dice;

static inline dice dice_from(uint64_t seed)
{
    return (dice){ seed * 0x9e3779b97f4a7c15 + 1 };
}

/* 64 bits, all of them usable. */
static inline uint64_t dice_u64(dice *d)
{
    d->state ^= d->state << 13;
    d->state ^= d->state >> 7;
    d->state ^= d->state << 17;
    return d->state * 0xd1342543de82ef95;
}

/* 0 to bound - 1. */
static inline size_t dice_pick(dice *d, size_t bound)
{
    return (size_t)((dice_u64(d) >> 16) % bound);
}

/* Counts what is out, and fails the call with number `fail_at` (the first is 1; 0 means never) and, if
 * `stays_out`, all calls after it. It keeps its own record of the size of each block, so that a wrong
 * old_bytes is seen. */
typedef struct test_alloc {
    size_t call_count, fail_at;
    bool stays_out;
    size_t block_count, byte_count;
} test_alloc;

enum {
    TEST_ALLOC_HEAD_BYTES = 16 /* keeps what follows aligned for any type */
};

static inline bool test_alloc_fails(test_alloc *t)
{
    t->call_count++;
    return t->fail_at != 0 && (t->call_count == t->fail_at || (t->stays_out && t->call_count > t->fail_at));
}

static inline void test_alloc_forget(test_alloc *t, void *memory, size_t old_bytes)
{
    char *block = memory == NULL ? NULL : (char *)memory - TEST_ALLOC_HEAD_BYTES;
    size_t recorded_bytes = 0;

    if (block == NULL)
        return;
    memcpy(&recorded_bytes, block, sizeof recorded_bytes);
    assert_int_equal(recorded_bytes, old_bytes);
    t->block_count--;
    t->byte_count -= old_bytes;
    free(block);
}

/* Always moves, so that a pointer kept over a resize is found by the address sanitizer. */
static inline void *test_alloc_resize(void *ctx, void *memory, size_t old_bytes, size_t new_bytes)
{
    test_alloc *t = ctx;
    char *block;

    if (new_bytes == 0) {
        test_alloc_forget(t, memory, old_bytes);
        return NULL;
    }
    if (test_alloc_fails(t) || new_bytes > SIZE_MAX / 4)
        return NULL;
    block = malloc(TEST_ALLOC_HEAD_BYTES + new_bytes);
    assert_non_null(block);
    memcpy(block, &new_bytes, sizeof new_bytes);
    memset(block + TEST_ALLOC_HEAD_BYTES, 0xa5, new_bytes);
    if (memory != NULL)
        memcpy(block + TEST_ALLOC_HEAD_BYTES, memory, old_bytes < new_bytes ? old_bytes : new_bytes);
    test_alloc_forget(t, memory, old_bytes);
    t->block_count++;
    t->byte_count += new_bytes;
    return block + TEST_ALLOC_HEAD_BYTES;
}

static inline sl_alloc test_alloc_use(test_alloc *t)
{
    return (sl_alloc){ .ctx = t, .resize = test_alloc_resize };
}

/* True when `run` ends in abort(), as a failed assertion does. It runs in a process of its own. */
static inline bool aborts(void (*run)(void))
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (freopen("/dev/null", "w", stderr) != NULL) /* the message of the assertion is expected */
            run();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
