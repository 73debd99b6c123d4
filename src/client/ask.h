/* client/ask.h — one call after the other, for programs that have nothing else to do meanwhile.
 *
 * The loop is turned until the call is over; so timers, signals and other calls of the same loop go on. */
#ifndef SL_CLIENT_ASK_H
#define SL_CLIENT_ASK_H

#include "client/client.h"

enum {
    SL_CLIENT_ANSWER_TEXT_BYTES = 1024 /* of the server's message, with its closing zero; cut when longer */
};

typedef struct sl_client_question {
    sl_str path;
    const sl_str *messages; /* all that is sent; then the client is silent */
    size_t message_count;
    uint64_t timeout_ns; /* 0: none */
    /* What comes back, as it comes; may be NULL. The memory is good during the callback. */
    void (*on_message)(void *ctx, sl_str message);
    void *ctx;
    const bool *stop; /* gives up when it becomes true: a signal handler of the loop sets it; may be NULL */
} sl_client_question;

/* How it ended: as sl_client_result, but kept. */
typedef struct sl_client_answer {
    sl_call_end_kind kind;
    sl_status status;
    bool unprocessed;
    uint64_t message_count; /* that came back */
    char message[SL_CLIENT_ANSWER_TEXT_BYTES];
    sl_metadata_list trailers;
} sl_client_answer;

/* Connects when the client is idle. SL_OK: the call is over, and *ret_answer says how, whatever it is; it is to be ended with
 * sl_client_answer_done(). Otherwise there was no call, or it was cancelled at the message that could not be sent, and the server
 * may have seen those before it:
 *   SL_ERR_INVALID    a host that cannot be one
 *   SL_ERR_DRAINING   the connection is ending
 *   SL_ERR_FULL       too many calls are open
 *   SL_ERR_TOO_LARGE  a message above the limit
 *   SL_ERR_NOMEM */
sl_err sl_client_ask(sl_client *client, const sl_client_question *question, sl_client_answer *ret_answer);

/* Also right for an answer that is all zero. */
void sl_client_answer_done(sl_client_answer *answer);

/* The trailer "exception", by which KurrentDB names an error, or any other; empty when there is none. Good as long as
 * the answer. For programs; what commands say about errors is in cli/client_errors.c. */
sl_str sl_client_answer_trailer(const sl_client_answer *answer, sl_str key);

/* Turns the loop until one of them is true; either may be NULL. */
void sl_client_turn_until(sl_client *client, const bool *done, const bool *stop);

#endif
