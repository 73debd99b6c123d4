/* client/consumer_inside.h — a consumer with its connection, for the files of this folder and for tests. See consumer.h for the worker.
 *
 *      consumer.c       the public functions: options, the loop, what users say
 *      consumer_link.c  the connection: ask what the server can do, start the call, come back, leave
 *
 *      idle --connect--> asking --features--> reading --over--> closing --> idle, and a timer that connects again
 *                                                                    \--> ended */
#ifndef SL_CLIENT_CONSUMER_INSIDE_H
#define SL_CLIENT_CONSUMER_INSIDE_H

#include "client/client.h"
#include "client/consumer.h"
#include "client/consuming.h"

typedef enum sl_consumer_link_state {
    CONSUMER_LINK_IDLE,    /* no connection; perhaps a timer */
    CONSUMER_LINK_ASKING,  /* connecting, and the features are asked for */
    CONSUMER_LINK_READING, /* the call is open */
    CONSUMER_LINK_CLOSING, /* the call is over, or was never begun: the connection ends */
    CONSUMER_LINK_ENDED
} sl_consumer_link_state;

struct sl_consumer {
    const sl_alloc *alloc;
    sl_loop *loop;
    bool loop_is_own;
    bool is_woken, is_late; /* sl_consumer_run() shall return */
    bool is_dirty;          /* something was said outside of a turn */
    sl_client_address address;
    sl_consuming consuming;
    sl_client *client; /* NULL: made when it is needed */
    uint32_t connect_timeout_ms, retry_ms_max, give_up_ms, leave_ms;
    uint64_t random;

    sl_consumer_link_state state;
    sl_client_call features, read, proof;
    sl_timer retry, run, leave;
    sl_timer hurry;            /* a connection that does not end by itself is cut */
    sl_timer rejoin;           /* drained by a server that keeps the call: a new one is tried */
    sl_timer recall;           /* what an earlier process left is known again no longer */
    bool has_stop, has_delays; /* the server told so */
    uint32_t failures;
    uint64_t confirmed_at_ns, alone_since_ns; /* 0: not */
    bool proof_is_out, is_proved;
    uint64_t proof_sent_count;
    bool is_leaving, leave_is_over;
    sl_client_end last_end; /* of a connection that brought nothing; problem NULL: there is none */

    /* How it ends; OK: it does not, or because it was asked to leave. */
    sl_consumer_status status;
    bool is_final;
    char sentence[SL_CONSUMER_PROBLEM_BYTES];
};

/* --- consumer_link.c --- */

void consumer_link_init(sl_consumer *consumer);
/* Without a callback. */
void consumer_link_done(sl_consumer *consumer);
/* Connects in the next turn. */
void consumer_link_start(sl_consumer *consumer);
void consumer_link_cut_pause(sl_consumer *consumer); /* it waits before the next try: no longer */
void consumer_link_leave(sl_consumer *consumer);
void consumer_link_turn_end(sl_consumer *consumer);

#endif
