/* tests/fuzz/server_script.h — the input of fuzz_host, read as instructions. Reading beyond the end gives zeros. */
#ifndef SL_TESTS_FUZZ_SERVER_SCRIPT_H
#define SL_TESTS_FUZZ_SERVER_SCRIPT_H

#include "base/str.h"

#include <stdint.h>

typedef struct script {
    const uint8_t *data;
    size_t bytes;
} script;

static inline uint8_t script_next(script *s)
{
    if (s->bytes == 0)
        return 0;
    s->bytes--;
    return *s->data++;
}

static inline uint32_t script_next_u16(script *s)
{
    const uint32_t high = script_next(s);

    return high << 8 | script_next(s);
}

/* The next bytes as they are; fewer when there are no more. */
static inline sl_str script_take(script *s, size_t bytes)
{
    const sl_str taken = { (const char *)s->data, bytes < s->bytes ? bytes : s->bytes };

    s->data += taken.bytes;
    s->bytes -= taken.bytes;
    return taken;
}

#endif
