/* tests/unit/client/consuming_rig.h — the consumer's side of the call without a connection: what its user hears and what it sends, as
 * text.
 *
 *      heard:  connected:1 connected:2+3 (3 resumed) connected:1- (no extensions)
 *              7  7#2            event with revision 7; its retry count
 *              settled:7 released:7 lost:7 unsure:7 sent:7
 *              stop-requested stopped:2 stopped:0! stopped:1^operator resumed drained:1/0/0
 *      sent:   options:10 options:10+7,8 (resume) options-:10 (without extensions)
 *              started:7 extend:7=500 ack:7,8 nack:7=park/reason nack:7=retry/reason~500 release:7 stop stop+back
 *
 * Messages are named by their revision. A scripted peer says what a test wants; consuming_host.h has a real server instead. */
#ifndef SL_TESTS_UNIT_CLIENT_CONSUMING_RIG_H
#define SL_TESTS_UNIT_CLIENT_CONSUMING_RIG_H

#include "test.h"

#include "client/consuming.h"

enum {
    CONSUMING_RIG_IDS = 4096,
    CONSUMING_RIG_TEXT = 64 * 1024,
    CONSUMING_RIG_MESSAGE = 256 * 1024
};

typedef struct consuming_rig {
    sl_consuming c;
    sl_uuid ids[CONSUMING_RIG_IDS]; /* by revision, as events brought them */
    char heard[CONSUMING_RIG_TEXT], sent[CONSUMING_RIG_TEXT];
    uint64_t now_ns;
    bool no_room;        /* sending gives FULL */
    uint32_t sent_count; /* messages since the last look */
    /* Where messages go besides the text; may be NULL. */
    void (*on_sent)(void *ctx, sl_str message);
    void *ctx;
    /* What the user does when an event comes; may be NULL. */
    void (*on_event)(struct consuming_rig *rig, uint64_t revision);
    uint8_t message[CONSUMING_RIG_MESSAGE];
} consuming_rig;

/* name and window; everything else as usual. */
consuming_rig *consuming_rig_new(const char *name, uint32_t window);
void consuming_rig_free(consuming_rig *rig);

/* What was heard or sent since the last look, and forgets it. Good until the next word. */
const char *consuming_rig_heard(consuming_rig *rig);
const char *consuming_rig_sent(consuming_rig *rig);

/* The end of a turn. */
sl_err consuming_rig_turn(consuming_rig *rig);

/* The user says something of messages [first, first + count) by revision; the result of the call. */
size_t consuming_rig_ack(consuming_rig *rig, uint64_t first, size_t count);
size_t consuming_rig_nack(consuming_rig *rig, uint64_t first, size_t count, int32_t action, const char *why);
size_t consuming_rig_nack_later(consuming_rig *rig, uint64_t first, size_t count, uint32_t delay_ms);
size_t consuming_rig_release(consuming_rig *rig, uint64_t first, size_t count);
size_t consuming_rig_started(consuming_rig *rig, uint64_t first, size_t count);
size_t consuming_rig_extend(consuming_rig *rig, uint64_t first, size_t count, uint32_t lease_ms);

/* --- the scripted peer --- */

/* A call with extensions, greeted and confirmed; the words about it are forgotten. */
void consuming_rig_join(consuming_rig *rig);
bool consuming_rig_say(consuming_rig *rig, const sl_persistent_response *response);
/* An event of the stream "s" whose id is its revision. */
bool consuming_rig_event(consuming_rig *rig, uint64_t revision, uint64_t token);
bool consuming_rig_settled(consuming_rig *rig, uint64_t first, size_t count);
bool consuming_rig_lost(consuming_rig *rig, uint64_t first, size_t count);
/* Outstanding are [first, first + count). */
bool consuming_rig_stopped(consuming_rig *rig, sl_wire_asked_by asked_by, bool already, uint64_t first,
                           size_t count);
bool consuming_rig_drained(consuming_rig *rig);
sl_uuid consuming_rig_id(uint64_t revision);

#define EXPECT_CONSUMER_HEARD(rig, wanted) EXPECT_STR(consuming_rig_heard(rig), wanted)
#define EXPECT_CONSUMER_SENT(rig, wanted)  EXPECT_STR(consuming_rig_sent(rig), wanted)

#endif
