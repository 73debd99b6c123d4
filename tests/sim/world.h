/* tests/sim/world.h — everything around a group: streams, store, clients and their network, operators, the clock.
 *
 * One seed decides all of it. The group under test and the model see the same inputs; the world itself judges
 * nothing but two things that are true for any queue: what was settled durably never comes again, and in the end
 * nothing is left. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "draw.h"
#include "log.h"
#include "model.h"

enum {
    WORLD_CLIENTS_MAX = 16,
    WORLD_HELD_MAX = 64,
    WORLD_LETTERS_MAX = 24,
    WORLD_KEYS_MAX = 40
};

typedef struct sim_holding { /* what a client believes to hold; it may be wrong */
    sl_uuid id;
    uint64_t token;
    bool started;
} sim_holding;

typedef struct sim_client {
    sl_uuid session;
    uint64_t tags[SL_TAGS_MAX];
    uint32_t tag_count, window;
    uint64_t reconnect_ns;
    bool extensions, sends_started;
    uint64_t consumer; /* of its call; 0: it has none */
    bool drained;
    sim_holding held[WORLD_HELD_MAX];
    uint32_t held_count;
} sim_client;

typedef struct sim_world {
    uint64_t seed;
    bool trace;
    sim_rng rng;
    sim_plan plan;
    uint32_t step;
    uint64_t clock_ns;

    sl_group_setup setup;
    void *memory, *copy_memory; /* of the group, and of a second one that opens snapshots */
    sl_group *group;
    model *model, *model_at_snapshot;

    sim_stream streams[SL_LANE_COUNT_];
    uint64_t event_serial, position_next;
    uint64_t *parked_by; /* for each event of the parked lane the number of the record that put it there */
    uint32_t parked_by_room;
    uint32_t parked_shown; /* events of the parked lane that an operator asked to replay */
    uint64_t keys[WORLD_KEYS_MAX];
    bool keys_apart;

    sim_log log;
    sim_client clients[WORLD_CLIENTS_MAX];
    sim_client *joining;                 /* in the middle of its join */
    sim_call letters[WORLD_LETTERS_MAX]; /* sent by clients, not yet arrived */
    uint32_t letter_count;
} sim_world;

/* steps: 0 lets the seed decide. */
void sim_world_init(sim_world *world, uint64_t seed, uint32_t steps, bool trace);
void sim_world_done(sim_world *world);

/* The whole run; ends early through sim_fail(). ctx is a sim_world. */
void sim_world_run(void *ctx);

/* --- for the files of the world --------------------------------------------------------------------------- */

void sim_world_note(const sim_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
sim_result sim_world_call(sim_world *world, sim_call *call);
void sim_world_tick(sim_world *world);

/* world_client.c */
void sim_clients_init(sim_world *world);
void sim_client_saw(sim_world *world, const sl_effect *effect);
void sim_client_connect(sim_world *world, sim_client *client);
void sim_client_end(sim_world *world, sim_client *client, sim_call_kind how);
void sim_client_work(sim_world *world, sim_client *client);
void sim_client_ack_all(sim_world *world, sim_client *client);
sim_client *sim_client_pick(sim_world *world, bool connected);
void sim_letter_deliver(sim_world *world);

/* world_stream.c */
void sim_append_events(sim_world *world);
void sim_park_event(sim_world *world, const sl_effect *park);
bool sim_read(sim_world *world, sl_lane lane, bool eager);
void sim_lose_events(sim_world *world);

/* world_store.c */
void sim_sync(sim_world *world);
void sim_restart(sim_world *world);
void sim_snapshot(sim_world *world);
void sim_judge_delivery(const sim_world *world, const sl_effect *lease);

/* world_action.c */
void sim_act(sim_world *world, sim_action action);

/* world_end.c */
void sim_end(sim_world *world);

#endif
