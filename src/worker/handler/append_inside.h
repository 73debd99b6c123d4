/* worker/handler/append_inside.h — private to append.c, append_link.c and append_answer.c.
 *
 * A slot is a place for one job. Where it stands:
 *
 *      free --run--> unsent --call and room--> sent --answer--> free
 *                      ^  \____ abort, kill ____________________/
 *                      |_______ the server has not seen it ______|
 *
 * The answer to an append brings back the number of the slot and of its use, so what comes for a job that was killed meanwhile finds
 * nobody. */
#ifndef SL_WORKER_HANDLER_APPEND_INSIDE_H
#define SL_WORKER_HANDLER_APPEND_INSIDE_H

#include "base/list.h"
#include "client/client.h"
#include "wire/status.h"
#include "wire/streams_codec.h"
#include "worker/append_handler.h"

enum {
    APPEND_ADDRESS_BYTES = 320
};

typedef struct append_slot {
    sl_job *job;  /* NULL: free */
    sl_list line; /* in ->free, ->unsent or ->sent */
    bool is_sent;
    uint64_t use; /* counted */
} append_slot;

typedef struct appender {
    sl_handler handler; /* first */
    sl_loop *loop;
    sl_client *client; /* NULL: closed */
    sl_client_call call;
    bool is_leaving;  /* the server wants to close the connection */
    bool is_broken;   /* it does not keep to the protocol */
    bool is_draining; /* the worker */
    bool is_silent;   /* being freed: nobody is told */
    sl_list free, unsent, sent;
    append_slot *slots;
    uint32_t slot_count;
    uint32_t failures; /* in a row */
    uint64_t not_before_ns;
    sl_timer again; /* something waits for a call, which is begun then */
    sl_timer closing;
    size_t stream_bytes;
    char stream[SL_APPEND_TARGET_BYTES_MAX];
    char address[APPEND_ADDRESS_BYTES];
    char problem[SL_RESULT_REASON_BYTES_MAX + 1]; /* why there is no call; empty after an answer */
} appender;

/* append.c */
void append_end_slot(appender *a, append_slot *s, const sl_result *result);
void append_give_up(appender *a, append_slot *s); /* it was never sent: back, uncharged */

/* append_link.c */
sl_err append_make_client(appender *a, const sl_append_handler_options *options, sl_text *problem);
void append_go_on(appender *a); /* what waits goes on its way, or will when it can */
void append_on_again(void *ctx);

/* What a status of the server means for a message. Pure; without the reason. */
sl_result sl_append_judge(sl_status status);

/* A refusal of one append: the same, with the reason, which goes behind what `reason` has already. */
sl_result sl_append_judge_refusal(const sl_wire_status *error, sl_text *reason);

#endif
