/* tests/unit/worker/source_contract_consumer.h — the world of the rows sluice:// and kurrentdb://: a server in the loop of the test, behind a real
 * socket. */
#ifndef SL_TESTS_UNIT_WORKER_SOURCE_CONTRACT_CONSUMER_H
#define SL_TESTS_UNIT_WORKER_SOURCE_CONTRACT_CONSUMER_H

#include "source_contract.h"

#include "../server/manage_rig.h"

#include "net/listener.h"
#include "server/peer.h"

typedef struct consumer_world {
    manage m;
    sl_peers peers;
    sl_listener *listener;
    server_call *other; /* another consumer of the group, or NULL */
    bool is_down;
    /* Of the next source that is opened; NULL and 0: as usual. */
    const char *stream, *group;
    uint32_t give_up_ms;
} consumer_world;

const source_contract_row *consumer_world_row(void);
const source_contract_row *kurrent_world_row(void);
/* It is killed and started again; connections are cut. */
void consumer_world_kill_server(source_contract *c);

#endif
