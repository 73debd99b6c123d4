/* tests/unit/server/groups_rig.h — short words for tests of persistent subscriptions: groups, consumers, what they say and hear.
 *
 * What a consumer heard is compared as text, one word for each message:
 *
 *      confirmed:orders::g      orders:3          an event, by stream and revision
 *      orders:3#2               its retry count, when it is not 0
 *      a:3<links:0              found through a link;  -<links:0  the link points to nothing
 *      settled:2 settled:1/3    so many settled, and so many lost
 *      stopped:2 stopped:0!     so many in flight; ! already stopped; ^operator or ^server asked for it
 *      drained:2/1/0            settled, released, lost
 *      stop-requested
 *      CANCELLED                at the end the status, when the call has ended */
#ifndef SL_TESTS_UNIT_SERVER_GROUPS_RIG_H
#define SL_TESTS_UNIT_SERVER_GROUPS_RIG_H

#include "rig.h"

#include "server/groups/registry.h"
#include "wire/persistent_codec.h"

#define GROUPS_PATH      "/event_store.client.persistent_subscriptions.PersistentSubscriptions/Read"
#define GROUPS_SECOND_NS UINT64_C(1000000000)

typedef struct groups {
    server_rig rig;
    sl_store *store; /* in memory; stays when the server is started again */
} groups;

void groups_start(groups *g);
/* With another store, which stays the test's. */
void groups_start_on(groups *g, sl_store *store);
/* The same, and with memory of the test's for everything but the store. */
void groups_start_with(groups *g, sl_store *store, const sl_alloc *alloc);
void groups_done(groups *g);

/* The server ends, one way or the other, and another begins with the same store; calls of the test are gone. */
void groups_kill(groups *g);
void groups_cut_power(groups *g);

/* Consumers that come from now on are this user, who has no rights but those of everybody. */
void groups_as_user(groups *g, const char *name);

/* --- groups --- */

/* On a stream from its start, 30 s lease, 10 retries, RoundRobin: as clients make it. stream "$all": all. */
sl_group_definition groups_definition(const char *stream, const char *group);
void groups_create(groups *g, const sl_group_definition *definition);
sl_desk *groups_plain(groups *g); /* the above of "orders", "g" */
sl_desk *groups_find(groups *g, const char *stream, const char *group);

/* --- consumers --- */

typedef struct groups_consumer {
    const char *stream, *group, *name; /* "orders", "g", none */
    int32_t window;                    /* 10 */
    bool extensions;
    int32_t reconnect_ms;
    const sl_uuid *resume;
    size_t resume_count;
    sl_wire_id_form id_form; /* STRUCTURED */
    const sl_wire_label *labels;
    size_t label_count;
    server_peer *peer;
} groups_consumer;

/* Options are sent, and everything runs until nothing moves. */
server_call *groups_join(groups *g, groups_consumer how);
/* The same without running. */
server_call *groups_call(groups *g, groups_consumer how);

/* Messages [first, first + count) of the call must be events. Sent, then run. */
void groups_ack(server_call *call, size_t first, size_t count);
void groups_nack(server_call *call, size_t first, size_t count, sl_wire_nack action, const char *reason);
/* Without running. */
void groups_send_nack(server_call *call, sl_uuid id, sl_wire_nack action, const char *reason);
void groups_release(server_call *call, size_t first, size_t count);
void groups_started(server_call *call, size_t first, size_t count);
void groups_extend(server_call *call, size_t first, size_t count, int32_t lease_ms);
void groups_stop(server_call *call, bool hand_back_unstarted);
/* Only sent. */
void groups_send(server_call *call, const sl_persistent_request *request);
void groups_send_ids(server_call *call, sl_persistent_request_kind kind, const sl_uuid *ids, size_t count);

sl_persistent_response groups_message(const server_call *call, size_t index);
/* The id that an event is acked by. */
sl_uuid groups_id(const server_call *call, size_t index);
/* As above; good until the next call of this. The second form: from message `first` on. */
const char *groups_heard(const server_call *call);
const char *groups_heard_from(const server_call *call, size_t first);

#define EXPECT_HEARD(call, wanted)             EXPECT_STR(groups_heard(call), wanted)
#define EXPECT_HEARD_FROM(call, first, wanted) EXPECT_STR(groups_heard_from(call, first), wanted)

/* "0:data 1:data" of all events of a stream that can be read. */
const char *groups_stored(groups *g, const char *stream);
/* "metadata metadata", the same. */
const char *groups_stored_metadata(groups *g, const char *stream);

/* --- stores --- */

sl_store *groups_memory_store(void);
sl_store *groups_inner_store(sl_store *store); /* the one in memory behind it, or itself */

/* One whose syncs take as long as the test wants. */
sl_store *groups_held_store(void);
void groups_held_store_hold(sl_store *store,
                            bool hold); /* false: what was held back is done at the next poll */
void groups_held_store_hold_all(sl_store *store, bool hold); /* also what needs no sync */
void groups_held_store_refuse(sl_store *store, bool refuse); /* appends get NO_SPACE */
void groups_held_store_fill(sl_store *store, bool full);     /* the same, and it says so when asked */
void groups_held_store_fill_after(sl_store *store,
                                  unsigned questions);     /* it has room until it was asked so often */
void groups_held_store_reserve(sl_store *store);           /* the same, but its reserve is hardly used yet */
void groups_held_store_block(sl_store *store, bool block); /* records are not taken either */
/* Every read has to wait for the disk once; or for ever; or finds this revision of no stream any more. */
void groups_held_store_slow(sl_store *store, bool slow);
void groups_held_store_stick(sl_store *store, bool stick);
void groups_held_store_lose(sl_store *store, uint64_t revision);

#endif
