/* tests/unit/core/rig.h — a group in a box: short words to drive it, and its effects as one line of text.
 *
 * Consumers are c1, c2, ... in the order in which they joined, messages are their positions (p3: of the
 * parked lane). After each step rig_said() gives what happened since the last look:
 *
 *      c1<-0            delivered; c1<-0(2): with two charged attempts behind it
 *      0 back nacked!   came back; ! means charged
 *      0 acked          settled; also skipped, vanished; "0 parked retries"
 *      c1 asked operator, c1 stopped 2 (in flight), c1 stopped-already 2, c1 drained 1/0/0
 * (settled/released/lost) c1 settled 0, c1 lost 0, c1 gone, 0 moves c2, 0 started, 0 extended, below 5
 * (checkpoint)
 *
 * JOIN, LEASE, EPOCH, SETTINGS and RULE records are kept but not said. */
#ifndef SL_TESTS_UNIT_CORE_RIG_H
#define SL_TESTS_UNIT_CORE_RIG_H

#include "../test.h"
#include "core/group.h"

enum {
    RIG_EFFECTS_MAX = 65536,
    RIG_TEXT_BYTES = 65536
};

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

typedef struct rig {
    sl_group *group;
    void *memory;
    sl_group_setup setup;
    uint64_t now_ns;
    uint64_t position;  /* the next one that rig_offer() uses */
    sl_effect *effects; /* all since the group was made, over restarts */
    size_t effect_count, seen;
    char *text;
} rig;

/* Leases of 10 s, no checkpoints by time, room for 64 messages and 8 consumers; `tweak` may be NULL. */
rig *rig_new(void (*tweak)(sl_settings *settings));
rig *rig_new_limits(void (*tweak)(sl_settings *settings), sl_group_limits limits);
void rig_free(rig *r);

/* What happened since the last call of this function; and the same must be `wanted`. */
const char *rig_said(rig *r);
#define EXPECT_SAID(r, wanted) EXPECT_STR(rig_said(r), wanted)

/* The same, of effects of one kind: leases that end at the same time end in no particular order. */
const char *rig_said_only(rig *r, sl_effect_kind kind);

sl_uuid rig_id(sl_lane lane, uint64_t position); /* the id that offers of the rig carry */
sl_uuid rig_session(unsigned number);

/* Joins with a session of its own and extensions; returns the id. */
uint64_t rig_join(rig *r, uint32_t window);
uint64_t rig_join_as(rig *r, unsigned session, uint32_t window, bool extensions);

void rig_offer(rig *r, uint32_t count);   /* key = position */
void rig_offer_key(rig *r, uint64_t key); /* one message of that key */
void rig_offer_parked(rig *r, uint64_t position);
void rig_read_again(rig *r); /* everything from read_from up to r->position */
uint64_t rig_tick(rig *r,
                  uint64_t later_ns); /* lets time pass, then ticks; how long until the next, or SL_NEVER */

sl_err rig_ack(rig *r, uint64_t consumer, uint64_t position);
sl_err rig_ack_token(rig *r, uint64_t consumer, uint64_t position, uint64_t token);
sl_err rig_nack(rig *r, uint64_t consumer, uint64_t position, sl_nack_action action);
sl_err rig_nack_after(rig *r, uint64_t consumer, uint64_t position, uint64_t delay_ns);
sl_err rig_release(rig *r, uint64_t consumer, uint64_t position);
sl_err rig_started(rig *r, uint64_t consumer, uint64_t position);
sl_err rig_extend(rig *r, uint64_t consumer, uint64_t position, uint64_t lease_ns);
sl_err rig_stop(rig *r, uint64_t consumer);
sl_err rig_stop_by(rig *r, uint64_t consumer, sl_asker asker, bool hand_back);

/* The last effect of that kind, which must exist. */
const sl_effect *rig_last(const rig *r, sl_effect_kind kind);
uint64_t rig_token(const rig *r, uint64_t position); /* of the last lease on it */

/* Throws the group away and makes it again from its records: all of them, or the first `count` effects. */
void rig_restart(rig *r);
void rig_restart_with(rig *r, size_t effect_count);

#endif
