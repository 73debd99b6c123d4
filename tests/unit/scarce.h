/* tests/unit/scarce.h — memory that runs out, for what takes it from sl_alloc_default.
 *
 * Most constructors of workers and clients have no allocator passed in. The linker puts scarce.c between them and base/alloc.c (--wrap):
 * it makes the call with a chosen number fail, and counts the blocks that are out. Other allocators are left alone; tests pass test_alloc
 * (base/support.h) where one can be passed. Off until it is begun. Memory that other libraries take by themselves never runs out. */
#ifndef SL_TESTS_UNIT_SCARCE_H
#define SL_TESTS_UNIT_SCARCE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct scarce_plan {
    size_t fail_at; /* the first take or growth from now on is 1; 0: none fails */
    bool stays_out; /* all after it fail as well */
} scarce_plan;

void scarce_begin(scarce_plan plan);

/* True: one has failed. *ret_blocks, unless NULL: how many more blocks are out than at the beginning. */
bool scarce_end(long *ret_blocks);

/* What a constructor under test does: makes the thing and all that it needs, and frees all of it. False: there was no memory for it. */
typedef bool scarce_make_fn(void *ctx);

/* Makes it with the first call failing, then with the second and so on until none fails any more; each time alone and with all that come
 * after it. Expects that it cannot be made exactly if a call failed, and that nothing is left either way. */
void scarce_sweep(const char *name, scarce_make_fn *make, void *ctx);

#endif
