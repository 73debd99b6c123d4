/* worker/append_handler.h — a handler that appends each message to a stream of a server.
 *
 *      message --> event with the same type, data and metadata --> stream
 *
 * The event's id is made from the message's id and the name of the stream (UUID version 5, the message's id being the name space), and any
 * revision will do: a server drops an id that the end of the stream has already, so a message that is delivered twice is there once (B16).
 *
 * All appends share one call (BatchAppend) on one connection, which is made when the first message comes. When it is lost, what was sent
 * and not answered is said to be worth another try: one fault of the destination, however many those are. Everything else waits for the
 * next connection, whose pause doubles from 100 ms to 10 s: a server that is restarted costs no message a try. Each connection that
 * cannot be made is a fault too, told with one of the messages that wait, so that the worker's breaker closes the gate. In a drain the
 * next try comes at once, and what it cannot send is handed back.
 *
 *      refused for good (permission, deleted stream, too large, not valid)   to the dead letters, in the words of the server
 *      a server that does not know who we are, or answers nonsense           failed
 *      anything else                                                         later
 *
 * abort and kill: what was not sent is UNBEGUN. kill: what was sent may be on its way; its answer is not waited for. */
#ifndef SL_WORKER_APPEND_HANDLER_H
#define SL_WORKER_APPEND_HANDLER_H

#include "client/address.h"
#include "net/loop.h"
#include "worker/handler.h"

enum {
    SL_APPEND_TARGET_BYTES_MAX = 1024, /* of a stream's name, as servers have it */
    SL_APPEND_RETRY_MS_MIN = 100,
    SL_APPEND_RETRY_MS_MAX = 10 * 1000
};

typedef struct sl_append_handler_options {
    const sl_client_address *address; /* copied */
    sl_str stream;                    /* copied; empty: the one that the message comes from */
    uint32_t slots;
    uint64_t connect_timeout_ns; /* 0: for ever */
} sl_append_handler_options;

/* What is wrong is said in `problem`, as a sentence without a full stop. Nothing is connected yet.
 *   SL_OK
 *   SL_ERR_INVALID  the file of certificates or the name of the stream cannot be used
 *   SL_ERR_NOMEM */
sl_err sl_append_handler_new(sl_loop *loop, const sl_append_handler_options *options, sl_text *problem,
                             sl_handler **ret_handler);

#endif
