/* cli/read_request.h — what `sluice read` asks for, from its options and, after a lost connection, from where it was. */
#ifndef SL_CLI_READ_REQUEST_H
#define SL_CLI_READ_REQUEST_H

#include "cli/commands.h"
#include "wire/streams_control.h"

enum {
    SL_READ_PREFIXES_MAX = 256 /* as many as the reader of options takes */
};

typedef struct sl_read_plan {
    bool is_all, is_follow, is_backwards;
    sl_read_request request;
    uint64_t count; /* UINT64_MAX: all */
    sl_str prefixes[SL_READ_PREFIXES_MAX];
} sl_read_plan;

/* SL_EXIT_OK, or SL_EXIT_USAGE after the complaint. The plan points into itself and must not be moved. */
int sl_read_plan_init(sl_read_plan *plan, const sl_invocation *invocation);

/* A subscription goes on behind this event, or, for all streams, behind this position. */
void sl_read_plan_move(sl_read_plan *plan, uint64_t revision, sl_wire_position position);

#endif
