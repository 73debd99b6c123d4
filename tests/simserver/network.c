/* tests/simserver/network.c — see network.h. */
#include "network.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void network_pipe_init(network_pipe *pipe)
{
    *pipe = (network_pipe){ 0 };
    sl_list_init(&pipe->letters);
}

static void drop_first(network_pipe *pipe)
{
    network_letter *const letter = SL_CONTAINER_OF(sl_list_first(&pipe->letters), network_letter, node);

    sl_list_remove(&letter->node);
    free(letter);
}

void network_pipe_clear(network_pipe *pipe)
{
    while (!sl_list_empty(&pipe->letters))
        drop_first(pipe);
}

bool network_pipe_empty(const network_pipe *pipe)
{
    return sl_list_empty(&pipe->letters);
}

void network_pipe_put(network_pipe *pipe, const void *data, size_t bytes, judge_moment said, uint64_t due_ns)
{
    network_letter *const letter = malloc(sizeof *letter + bytes);

    assert(letter != NULL);
    if (due_ns < pipe->last_due_ns)
        due_ns = pipe->last_due_ns;
    pipe->last_due_ns = due_ns;
    *letter = (network_letter){ .said = said, .due_ns = due_ns, .bytes = bytes };
    memcpy(letter->data, data, bytes);
    sl_list_push_back(&pipe->letters, &letter->node);
}

size_t network_pipe_take(network_pipe *pipe, uint64_t now_ns, size_t most, const uint8_t **ret_data,
                         judge_moment *ret_said)
{
    network_letter *letter;
    size_t bytes;

    if (!sl_list_empty(&pipe->letters)) {
        letter = SL_CONTAINER_OF(sl_list_first(&pipe->letters), network_letter, node);
        if (letter->taken == letter->bytes)
            drop_first(pipe);
    }
    if (sl_list_empty(&pipe->letters) || now_ns < pipe->stalled_until_ns)
        return 0;
    letter = SL_CONTAINER_OF(sl_list_first(&pipe->letters), network_letter, node);
    if (letter->due_ns > now_ns)
        return 0;
    bytes = letter->bytes - letter->taken;
    bytes = bytes < most ? bytes : most;
    *ret_data = letter->data + letter->taken;
    *ret_said = letter->said;
    letter->taken += bytes;
    return bytes;
}
