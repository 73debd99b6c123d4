/* server/groups/consumer.h — one call of PersistentSubscriptions/Read, as its files share it.
 *
 *      options --> may he read? --> the group --> a seat --> confirmed --> events out, acks in --> ...
 *         |            |               |
 *      INVALID      DENIED    does not exist, full, dropped
 *
 *      consumer.c          the call: its steps, its end, and what the desk says to it
 *      consumer_request.c  what the client sends: options once, then what it says of its messages */
#ifndef SL_SERVER_GROUPS_CONSUMER_H
#define SL_SERVER_GROUPS_CONSUMER_H

#include "server/access.h"
#include "server/groups/desk.h"
#include "server/request.h"
#include "wire/persistent_codec.h"

enum {
    CONSUMER_MESSAGE_BYTES_MAX = 1024 * 1024, /* about 40,000 ids in one request */
    CONSUMER_LABEL_BYTES_MAX = 256,           /* of a key, and of a value */
    CONSUMER_LABELS_MAX = SL_TAGS_MAX - 1,
    CONSUMER_RECONNECT_MS_DEFAULT = 2000,
};

typedef struct consumer {
    sl_request *request;
    sl_reader_node reader; /* waits for the rights of the stream */
    sl_desk_waiter waiter; /* waits for the group to be open */
    bool has_options;
    bool asks; /* for access */
    bool is_allowed;
    bool is_held;           /* by the desk: paused */
    bool stopped;           /* it has stopped itself, which is final */
    bool is_drained;        /* and it has nothing any more */
    bool ends_when_drained; /* the server stops */
    sl_str stream, group;   /* "$all" for all; in the arena of the request */
    uint64_t tags[SL_TAGS_MAX];
    sl_wire_label labels[CONSUMER_LABELS_MAX]; /* in the arena of the request */
    sl_seat_setup setup;
    sl_seat *seat; /* NULL: not yet, or not any more */
} consumer;

/* --- consumer_request.c --- */

/* False: the call was ended with a sentence. */
bool consumer_take_options(consumer *c, const sl_persistent_options *options);
void consumer_take_request(consumer *c, const sl_persistent_request *asked);

/* --- consumer.c --- */

/* The call ends because of what its client did: it leaves, then gets INVALID_ARGUMENT. */
void consumer_refuse(consumer *c, const char *sentence);

#endif
