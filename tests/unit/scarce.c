/* tests/unit/scarce.c — see scarce.h. */
#include "scarce.h"

#include "test.h"

#include "base/alloc.h"

#include <stdatomic.h>

#if defined(__clang__) /* the names are those that the linker makes up */
#pragma clang diagnostic ignored "-Wreserved-identifier"
#endif

/* Threads of a worker take and give too. */
static atomic_bool is_on, has_failed;
static atomic_size_t call_count;
static atomic_long block_count;
static scarce_plan current;

void *__real_sl_alloc_take(const sl_alloc *alloc, size_t bytes);
void *__wrap_sl_alloc_take(const sl_alloc *alloc, size_t bytes);
void *__real_sl_alloc_resize(const sl_alloc *alloc, void *memory, size_t old_bytes, size_t new_bytes);
void *__wrap_sl_alloc_resize(const sl_alloc *alloc, void *memory, size_t old_bytes, size_t new_bytes);
void __real_sl_alloc_give(const sl_alloc *alloc, void *memory, size_t bytes);
void __wrap_sl_alloc_give(const sl_alloc *alloc, void *memory, size_t bytes);

static bool is_meant(const sl_alloc *alloc)
{
    return atomic_load(&is_on) && alloc->resize == sl_alloc_default.resize;
}

static bool fails(const sl_alloc *alloc)
{
    size_t number;

    if (!is_meant(alloc))
        return false;
    number = atomic_fetch_add(&call_count, 1) + 1;
    if (current.fail_at == 0 || number < current.fail_at || (number > current.fail_at && !current.stays_out))
        return false;
    atomic_store(&has_failed, true);
    return true;
}

void *__wrap_sl_alloc_take(const sl_alloc *alloc, size_t bytes)
{
    void *const memory = fails(alloc) ? NULL : __real_sl_alloc_take(alloc, bytes);

    if (memory != NULL && is_meant(alloc))
        atomic_fetch_add(&block_count, 1);
    return memory;
}

void *__wrap_sl_alloc_resize(const sl_alloc *alloc, void *memory, size_t old_bytes, size_t new_bytes)
{
    void *const resized = fails(alloc) ? NULL : __real_sl_alloc_resize(alloc, memory, old_bytes, new_bytes);

    if (memory == NULL && resized != NULL && is_meant(alloc))
        atomic_fetch_add(&block_count, 1);
    return resized;
}

void __wrap_sl_alloc_give(const sl_alloc *alloc, void *memory, size_t bytes)
{
    if (memory != NULL && is_meant(alloc))
        atomic_fetch_sub(&block_count, 1);
    __real_sl_alloc_give(alloc, memory, bytes);
}

void scarce_begin(scarce_plan plan)
{
    current = plan;
    atomic_store(&has_failed, false);
    atomic_store(&call_count, 0);
    atomic_store(&block_count, 0);
    atomic_store(&is_on, true);
}

bool scarce_end(long *ret_blocks)
{
    atomic_store(&is_on, false);
    if (ret_blocks != NULL)
        *ret_blocks = atomic_load(&block_count);
    return atomic_load(&has_failed);
}

/* False: no call failed, because there are not so many. */
static bool try_once(const char *name, scarce_make_fn *make, void *ctx, scarce_plan plan)
{
    bool was_made, failed;
    long blocks;

    scarce_begin(plan);
    was_made = make(ctx);
    failed = scarce_end(&blocks);
    if (was_made == failed || blocks != 0)
        fail_msg("%s, without memory at call %zu%s: it was %smade, and %ld blocks are left", name,
                 plan.fail_at, plan.stays_out ? " and after it" : "", was_made ? "" : "not ", blocks);
    return failed;
}

void scarce_sweep(const char *name, scarce_make_fn *make, void *ctx)
{
    for (int stays_out = 0; stays_out < 2; stays_out++) {
        size_t fail_at = 1;

        while (try_once(name, make, ctx, (scarce_plan){ .fail_at = fail_at, .stays_out = stays_out == 1 }))
            fail_at++;
        EXPECT(fail_at > 1); /* or it takes no memory, and nothing was looked at */
    }
}
