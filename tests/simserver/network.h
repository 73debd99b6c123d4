/* tests/simserver/network.h — a made-up network: bytes take their time, come in any pieces, in order, or not at all. */
#ifndef SIMSERVER_NETWORK_H
#define SIMSERVER_NETWORK_H

#include "judge.h"

#include <stddef.h>

/* What was handed over at once. */
typedef struct network_letter {
    sl_list node;
    judge_moment said;
    uint64_t due_ns;
    size_t bytes, taken;
    uint8_t data[];
} network_letter;

/* One direction of a connection. */
typedef struct network_pipe {
    sl_list letters;
    uint64_t last_due_ns; /* nothing overtakes */
    uint64_t stalled_until_ns;
} network_pipe;

void network_pipe_init(network_pipe *pipe);
void network_pipe_clear(network_pipe *pipe);
bool network_pipe_empty(const network_pipe *pipe);
void network_pipe_put(network_pipe *pipe, const void *data, size_t bytes, judge_moment said, uint64_t due_ns);

/* The next bytes that have arrived by now, at most `most` of them; good until the next call. 0: none. */
size_t network_pipe_take(network_pipe *pipe, uint64_t now_ns, size_t most, const uint8_t **ret_data,
                         judge_moment *ret_said);

#endif
