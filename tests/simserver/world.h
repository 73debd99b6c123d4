/* tests/simserver/world.h — one server, its disk, its clients, the network between them and the clock; all of it from one seed.
 *
 *      client ==pipe==> link --> host --> store           a turn: clients act, bytes arrive, the server has its turn,
 *      judge  <==pipe==                                   bytes arrive, the clock goes on
 *
 * A run: a group or two are made; then clients, operators and faults do what the seed says; then the faults end, everybody is
 * answered, one consumer stays and takes what is left. */
#ifndef SIMSERVER_WORLD_H
#define SIMSERVER_WORLD_H

#include "../sim/rng.h"
#include "judge.h"
#include "network.h"
#include "store.h"

#include "base/arena.h"
#include "base/clock.h"
#include "server/host.h"
#include "server/link.h"
#include "server/shutdown.h"
#include "wire/call.h"
#include "wire/operators_control.h"

enum {
    WORLD_CLIENTS_MAX = 8,
    WORLD_STREAMS_MAX = 4,
    WORLD_GROUPS_MAX = 2,
    WORLD_EVENTS_MAX = 400,
    WORLD_HELD_MAX = 256,
    WORLD_STOPS_MAX = 16,
    WORLD_TURNS_MAX = 20 * 1000, /* of one run: who needs more runs for ever */
};

#define WORLD_MS_NS UINT64_C(1000000)

typedef struct world world;

/* A connection, seen from both ends. */
typedef struct world_peer {
    world *world;
    sl_connection *client; /* NULL: none */
    sl_link *link;         /* NULL: the server has none, or not any more */
    network_pipe up, down;
    bool touched;
    uint64_t link_until_turn; /* the client is gone, the server learns it then; 0: it is not gone */
    judge_moment said;        /* of the bytes that the client receives now */
    judge_end end;            /* what the end of its calls means */
} world_peer;

typedef struct world_call world_call;
typedef void world_done_fn(world_call *call, bool answered, sl_status status);

/* Any call of a client: a Read of a group, or one with an answer. */
struct world_call {
    world_peer *peer;
    sl_call *call; /* NULL: over */
    void (*message)(world_call *call, sl_str message);
    void (*end)(world_call *call, const sl_call_end_info *info);
    void *ctx;
};

/* --- consumers: client.c --- */

typedef struct client_held {
    sl_uuid id;
    bool started, claimed;
} client_held;

typedef struct client {
    world *world;
    uint32_t number;
    world_peer peer;
    world_call call;
    judge_call *judged; /* NULL: no call */
    uint32_t group;
    /* What it is like. */
    bool extensions, has_name, sends_started, is_steady;
    char name[16], label[8];
    uint32_t window, reconnect_ms;
    sl_wire_id_form id_form;
    /* What it does. */
    bool half_closed, drained, asked_to_stop, wish_heard;
    uint64_t joins_at_turn; /* without a call: when to try again */
    uint64_t ends_at_turn;  /* with one: when to leave, because there is nothing to do any more; 0: not */
    bool lists_resume;
    client_held held[WORLD_HELD_MAX];
    uint32_t held_count;
} client;

void client_init(client *c, world *w, uint32_t number);
void client_act(client *c);
/* Joins at once, as one that takes everything and acks it. */
void client_settle_down(client *c, uint32_t group);
/* Acks everything that it has. */
void client_ack_all(client *c);
void client_leave(client *c);
void client_cut(client *c);
/* The server is gone, and the connections with it. */
void client_lost_server(client *c, judge_end how);

/* --- everybody else: errands.c --- */

typedef enum errand_kind {
    ERRAND_NONE,
    ERRAND_APPEND,
    ERRAND_CREATE,
    ERRAND_UPDATE,
    ERRAND_DELETE, /* and create again */
    ERRAND_REPLAY,
    ERRAND_STOP,
    ERRAND_RESUME,
} errand_kind;

typedef struct errand {
    errand_kind kind;
    uint32_t group, stop;
} errand;

/* Somebody who has one call at a time. */
typedef struct clerk {
    world *world;
    world_peer peer;
    world_call call;
    errand now;          /* NONE: nothing to do */
    bool is_open, again; /* a call is on; the same has to be asked again */
} clerk;

void clerk_init(clerk *k, world *w);
/* False: it is busy. */
bool clerk_ask(clerk *k, errand what);
void clerk_act(clerk *k);
void clerk_lost_server(clerk *k);

typedef struct world_stop {
    sl_wire_who who;
    uint32_t group;
    char name[16];
    bool hand_back, taken_back;
} world_stop;

typedef struct world_group {
    judge_group judged;
    bool of_all;
    char stream[16], name[16], filter[16], strategy[24];
    bool regex;
    uint32_t lease_ms, retries_max;
    uint32_t next_lease_ms, next_retries_max; /* of an update that is on its way */
    char next_strategy[24];
    bool closed; /* it is being deleted: nobody joins */
} world_group;

struct world {
    uint64_t seed;
    sim_rng rng;
    report report;
    judge judge;
    uint64_t turn;
    sl_clock_manual time;
    sl_clock clock;
    sl_logger log;
    sl_server_settings settings;
    sim_store store;
    sl_host *host; /* NULL: it is down */
    uint64_t up_at_turn, lives;
    sl_shutdown shutdown;
    bool is_disturbed;   /* something happened to the server behind its turn */
    uint64_t wait_ns;    /* before the next turn */
    uint64_t refused_ns; /* when the disk refused something the last time: the server tries again later */

    /* What the seed says. */
    uint32_t stream_count, group_count, client_count, event_count_max, turns;
    uint32_t delay_ms_max, split_percent;
    bool faults, cuts, operators, changes, crashes, power, slow_disk, jumps;
    bool calm; /* nothing fails any more */

    world_group groups[WORLD_GROUPS_MAX];
    client clients[WORLD_CLIENTS_MAX + 1]; /* the last one is who stays */
    clerk writer, manager;
    world_stop stops[WORLD_STOPS_MAX];
    uint32_t stop_count;

    struct {
        sl_uuid id;
        uint32_t stream;
    } events[WORLD_EVENTS_MAX];
    uint32_t event_count;
};

/* A whole run. False: a rule was broken, and w->report says which. */
bool world_run(world *w, uint64_t seed, bool shows_all);

/* --- for the others --- */

bool world_connect(world_peer *peer);
/* Both ends are gone; the server may learn it later. */
void world_peer_cut(world_peer *peer, judge_end end, uint64_t server_turns);
bool world_call_start(world_call *call, world_peer *peer, const char *path, const sl_metadata *metadata,
                      size_t metadata_count);
bool world_call_send(world_call *call, const uint8_t *data, size_t bytes);

void world_turn(world *w);
void world_act(world *w); /* faults and operators: faults.c */
bool world_server_start(world *w);
void world_server_end(world *w, sim_store_end how);
void world_shutdown_begin(world *w);
bool world_shutdown_turn(world *w); /* true: it is over */
void world_finish(world *w);        /* finish.c: the end of a run */

#endif
