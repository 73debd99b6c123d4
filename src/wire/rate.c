/* wire/rate.c — see rate.h. */
#include "wire/rate.h"

#include "base/cleanup.h"

#include <assert.h>

bool sl_bucket_take(sl_bucket *bucket, sl_rate rate, uint64_t now_ns)
{
    const uint64_t interval_ns = UINT64_C(1000000000) / rate.per_s;
    const uint64_t from_ns = sl_max_u64(bucket->empty_at_ns, now_ns);

    assert(rate.burst > 0 && rate.per_s > 0);
    if (from_ns + interval_ns - now_ns > rate.burst * interval_ns)
        return false;
    bucket->empty_at_ns = from_ns + interval_ns;
    return true;
}
