/* bench/delivery/sluice_groups.h — making groups on our server, for parts that need more than one. */
#ifndef BENCH_DELIVERY_SLUICE_GROUPS_H
#define BENCH_DELIVERY_SLUICE_GROUPS_H

#include "server/peer.h"

/* On the stream "bench", from its beginning or from its end. */
void sluice_groups_make(peer *p, const char *first, uint32_t count, bool from_end);

#endif
