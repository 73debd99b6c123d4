/* base/cleanup.h — the small words that have no better home: release at scope end, moved pointers, safe sums. */
#ifndef SL_BASE_CLEANUP_H
#define SL_BASE_CLEANUP_H

#include <stddef.h>
#include <stdint.h>

/* Calls function(&variable) when the variable goes out of scope, on every way out:
 *     SL_CLEANUP(sl_buf_done) sl_buf line = { 0 };
 * For one short-lived resource; a function with several uses one `out:` label instead, never both forms. */
#define SL_CLEANUP(function) __attribute__((cleanup(function)))

/* The pointer's value; the variable itself becomes NULL, so that the hand-over of ownership is visible and
 * its cleanup finds nothing to free: `return SL_TAKE_PTR(store);` */
#define SL_TAKE_PTR(pointer)                                                                                 \
    (__extension__({                                                                                         \
        __typeof__(pointer) *const sl_take_from_ = &(pointer);                                               \
        __typeof__(pointer) const sl_taken_ = *sl_take_from_;                                                \
        *sl_take_from_ = NULL;                                                                               \
        sl_taken_;                                                                                           \
    }))

/* Number of items of an array; gcc and clang warn when it is given a pointer. */
#define SL_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static inline uint64_t sl_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t sl_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The sum, or UINT64_MAX where it would wrap: "now + forever" stays forever. */
static inline uint64_t sl_add_sat_u64(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif
