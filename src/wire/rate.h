/* wire/rate.h — "so many at once, then so many in a second", in one number.
 *
 * A bucket remembers when it would be empty again if nothing more came in. Each event moves that moment one
 * interval into the future; an event that would move it further than `burst` intervals from now is one too many. */
#ifndef SL_WIRE_RATE_H
#define SL_WIRE_RATE_H

#include "wire/limits.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_bucket {
    uint64_t empty_at_ns; /* 0 at first; now_ns must never go back */
} sl_bucket;

/* False when this one is beyond the rate; the bucket is then as it was. */
bool sl_bucket_take(sl_bucket *bucket, sl_rate rate, uint64_t now_ns);

#endif
