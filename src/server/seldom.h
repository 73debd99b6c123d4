/* server/seldom.h — lines of the log that clients can cause as often as they like, bounded.
 *
 * A line for each would let a stranger fill the disk with our log. So there are SL_SELDOM_LINES of a kind in SL_SELDOM_NS at most,
 * and the first one of the next period says how many were left out. What is counted is counted elsewhere. */
#ifndef SL_SERVER_SELDOM_H
#define SL_SERVER_SELDOM_H

#include <stdbool.h>
#include <stdint.h>

#define SL_SELDOM_NS UINT64_C(10000000000)

enum {
    SL_SELDOM_LINES = 10,
};

/* One for each kind of line; all zero at the beginning. */
typedef struct sl_seldom {
    uint64_t ends_ns; /* of this period; 0: there was none */
    uint32_t said;    /* in this period */
    uint64_t unsaid;  /* since the last line */
} sl_seldom;

/* True: write the line, with *ret_unsaid: how many of its kind were left out before it. */
bool sl_seldom_may(sl_seldom *seldom, uint64_t now_ns, uint64_t *ret_unsaid);

#endif
