/* cli/client_session.h — a command's talk with a server: a loop, a client, Ctrl-C, and errors in words for people.
 *
 *      open --> ask or call, as often as needed --> close
 *
 * Every function that returns an exit code has said what was wrong when it is not SL_EXIT_OK. */
#ifndef SL_CLI_CLIENT_SESSION_H
#define SL_CLI_CLIENT_SESSION_H

#include "base/arena.h"
#include "cli/commands.h"
#include "client/ask.h"
#include "client/client.h"
#include "wire/common_codec.h"

#include <stdbool.h>

enum {
    SL_SESSION_SENTENCE_BYTES = 1536 /* what is said about an error; the server's part of it is cut before */
};

typedef struct sl_session {
    const sl_invocation *invocation;
    sl_loop *loop;
    sl_client *client;
    uint64_t timeout_ns; /* --timeout */
    bool has_user;       /* somebody in particular asks */
    bool has_begun;
    bool interrupted;       /* a signal came: end, but in order */
    bool impatient;         /* a second one: end at once */
    bool ran_out;           /* the server did not answer in time, and the call was ended */
    bool awaits_answer;     /* set by a command that sent what has to be answered in time */
    sl_client_end last_end; /* of the connection; its problem is NULL while none has ended */
    sl_arena arena;         /* for messages; lives as long as the session */
    sl_timer patience;
    sl_client_call *waiting;         /* what patience is about; NULL: nothing */
    void (*on_interrupt)(void *ctx); /* may be NULL; once, in the loop */
    void *ctx;
} sl_session;

/* Reads the options and makes the client; connects with the first call. */
int sl_session_open(sl_session *session, const sl_invocation *invocation);

/* Also right after an open that failed, and for a session that is all zero. */
void sl_session_close(sl_session *session);

/* From now on Ctrl-C is a matter of the session; before, it ends the process, which may be waiting for a file or an answer at the
 * terminal. sl_session_ask() and _try() call it themselves. */
int sl_session_begin(sl_session *session);

/* For calls without a deadline: from now on the server has --timeout to say its first word, and while awaits_answer is set, to
 * give an answer. Otherwise ran_out is set and the call cancelled. Calling it again begins anew; NULL ends it. */
void sl_session_wait_for(sl_session *session, sl_client_call *call);

typedef struct sl_session_call {
    const char *path;
    const sl_str *messages;
    size_t message_count;
    bool is_endless; /* --timeout is not for this call */
    void (*on_message)(void *ctx, sl_str message);
    void *ctx;
} sl_session_call;

/* One call and its end. SL_EXIT_OK: the status was OK. */
int sl_session_ask(sl_session *session, const sl_session_call *call);

/* The same for callers that look at the status themselves. SL_EXIT_OK: there is an answer, whatever it is; end it with
 * sl_client_answer_done(). */
int sl_session_try(sl_session *session, const sl_session_call *call, sl_client_answer *ret_answer);

/* How a call ended, for somebody who has no answer that was kept. */
typedef struct sl_session_failure {
    sl_call_end_kind kind;
    sl_status status;
    sl_str message;
    const sl_metadata_list *trailers; /* may be NULL */
} sl_session_failure;

/* A call or a connection that could not even be begun. SL_EXIT_FAILED. */
int sl_session_fail_start(const sl_session *session, sl_err err);

/* Says it in words: what happened and what can be done. Returns SL_EXIT_FAILED. */
int sl_session_fail(const sl_session *session, const sl_session_failure *failure);
int sl_session_fail_answer(const sl_session *session, const sl_client_answer *answer);

/* Only the words, without a full stop, for somebody who has more to say. What can be done about a lost connection is known when
 * the client has ended it, that is, not yet in on_end of a call. */
void sl_session_explain(const sl_session *session, const sl_session_failure *failure, sl_text *text);

/* printf, and sl_cli_fail(). */
__attribute__((format(printf, 2, 3))) int sl_session_failf(const sl_session *session, const char *format,
                                                           ...);

/* "at revision 5", "not there": where a stream is. */
void sl_session_add_revision(sl_text *text, sl_wire_revision revision);

#endif
