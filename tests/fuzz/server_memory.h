/* tests/fuzz/server_memory.h — the memory of the server in fuzz_host: bounded, counted, and failing when the input says so. */
#ifndef SL_TESTS_FUZZ_SERVER_MEMORY_H
#define SL_TESTS_FUZZ_SERVER_MEMORY_H

#include "base/alloc.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TIGHT_MEMORY_BYTES_MAX = 64 << 20 /* what a host takes at the beginning is 10 MiB */
};

typedef struct tight_memory {
    sl_alloc alloc;
    size_t bytes;         /* that are out; 0 when everything is freed */
    uint32_t allocs_left; /* until the first that fails; UINT32_MAX: none does */
    uint32_t fails_left;  /* so many, then all is well again */
    bool is_opening;      /* large blocks are those of the input before: see server_memory.c */
} tight_memory;

/* Opening, until its owner says otherwise. */
void tight_memory_init(tight_memory *memory);

/* After `allocs` that succeed, `fails` do not. */
void tight_memory_fail(tight_memory *memory, uint32_t allocs, uint32_t fails);
void tight_memory_calm(tight_memory *memory);

#endif
