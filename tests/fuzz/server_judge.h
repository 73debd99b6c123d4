/* tests/fuzz/server_judge.h — what must be true whatever the input was.
 *
 *   - every call that was started ends, once; and once everything is calm, every call that is owed an answer has it
 *   - a call that ends well has exactly the answers that it should have: one, or one for each append of a batch
 *   - an append that was answered with success was durable at that moment, and can be read back at the end
 *   - answers can be decoded; what is read comes in order, from the stream that was asked for, and is not more than was asked for
 *   - the hash of the administrator's password is given to nobody but him, by no way, as long as nobody has changed a user
 *   - after the door was shut nothing is accepted, and once what was inside is answered nothing is written
 *
 * The judge looks at the messages on the side of the client, with the codecs of the client, and at the store, past all services. */
#ifndef SL_TESTS_FUZZ_SERVER_JUDGE_H
#define SL_TESTS_FUZZ_SERVER_JUDGE_H

#include "base/str.h"
#include "base/uuid.h"
#include "server/method.h"
#include "store/store.h"
#include "wire/status.h"
#include "wire/streams_codec.h"
#include "wire/streams_control.h"

enum {
    JUDGE_NAME_BYTES_MAX = 64, /* longer streams are not followed */
    JUDGE_BATCHES_MAX = 16,    /* of one call */
    JUDGE_ACKS_MAX = 256,
};

/* An append that was sent, as far as it is known. */
typedef struct judge_append {
    bool is_known; /* it has events, and everything below is right */
    char stream[JUDGE_NAME_BYTES_MAX];
    size_t stream_bytes;
    sl_uuid last_id;
    sl_wire_id correlation; /* BatchAppend */
    uint32_t answer_count;
} judge_append;

typedef struct judge_read {
    bool is_known;
    bool all, backwards;
    char stream[JUDGE_NAME_BYTES_MAX];
    size_t stream_bytes;
    uint64_t count_max; /* UINT64_MAX: a subscription */
    uint64_t event_count, last;
} judge_read;

typedef struct judge_call {
    bool began_shut;  /* the door was shut when it was started */
    bool is_stranger; /* not the administrator */
    judge_append append;
    judge_append batches[JUDGE_BATCHES_MAX];
    uint32_t batch_count;
    judge_read read;
    uint32_t received_count; /* messages */
} judge_call;

typedef struct judge_ack {
    char stream[JUDGE_NAME_BYTES_MAX];
    size_t stream_bytes;
    sl_uuid last_id;
    uint64_t revision;
} judge_ack;

typedef struct judge {
    sl_store *store; /* past all services */
    sl_str secret;   /* empty: there is none to keep */
    bool users_are_changed;
    judge_ack acks[JUDGE_ACKS_MAX];
    uint32_t ack_count;
    bool door_is_shut;
    uint64_t accepted_at_shut; /* counters.batches_accepted */
    uint64_t others_at_shut;   /* of them those that settle nothing */
    bool end_is_known;         /* nothing was inside any more after the door was shut */
    uint64_t end_at_shut;
} judge;

/* message_index: of this call, from 0 on. */
void judge_sent(judge *j, judge_call *call, const sl_method *method, uint32_t message_index, sl_str message);
void judge_received(judge *j, judge_call *call, const sl_method *method, sl_str message);

/* The server has said how it went. */
void judge_ended(const judge_call *call, const sl_method *method, sl_status status);

/* At the end: what was acknowledged is there. */
void judge_acks(const judge *j, uint64_t now_ns);

/* After each turn. */
void judge_door(judge *j, uint64_t batches_accepted, uint64_t others_accepted, uint64_t batches_inside);

#endif
