/* server/seldom.c — see seldom.h. */
#include "server/seldom.h"

#include "base/cleanup.h"

bool sl_seldom_may(sl_seldom *seldom, uint64_t now_ns, uint64_t *ret_unsaid)
{
    if (now_ns >= seldom->ends_ns) {
        seldom->ends_ns = sl_add_sat_u64(now_ns, SL_SELDOM_NS);
        seldom->said = 0;
    }
    if (seldom->said >= SL_SELDOM_LINES) {
        seldom->unsaid++;
        return false;
    }
    seldom->said++;
    *ret_unsaid = seldom->unsaid;
    seldom->unsaid = 0;
    return true;
}
