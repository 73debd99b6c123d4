/* cli/client_errors.c — what a server or a network said, in words that tell what to do about it.
 *
 * A server of KurrentDB's kind names its errors twice: by the status of gRPC, and more exactly by the trailer "exception". */
#include "cli/client_session.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/coding.h"

static sl_str trailer(const sl_session_failure *failure, const char *key)
{
    sl_str value = { 0 };

    if (failure->trailers != NULL)
        (void)sl_metadata_list_find(failure->trailers, sl_str_from(key), &value);
    return value;
}

static bool is_exception(const sl_session_failure *failure, const char *name)
{
    return sl_str_equal(trailer(failure, "exception"), sl_str_from(name));
}

/* Servers end their sentences; ours goes on or gets its full stop later. */
static sl_str without_stop(sl_str text)
{
    while (text.bytes > 0 && (text.data[text.bytes - 1] == '.' || text.data[text.bytes - 1] == '\n'))
        text.bytes--;
    return text;
}

/* --- no connection --- */

static void add_connect_hint(const sl_session *session, sl_text *text)
{
    static const sl_client_place place = { "--server", "sluice://HOST:PORT?tls=true" };

    sl_client_add_hint(&session->last_end, &place, sl_client_get_address(session->client)->tls, text);
    if (session->last_end.net == SL_NET_END_REFUSED)
        sl_text_add(text, " Start it with: sluice serve");
}

/* The end of the connection comes after the end of the call, but the call was told the same sentence. */
static void explain_lost(const sl_session *session, const sl_session_failure *failure, sl_text *text)
{
    sl_text_add_str(text, without_stop(failure->message));
    if (session->last_end.problem != NULL)
        add_connect_hint(session, text);
}

/* --- who asks --- */

static const char how_to_log_in[] = ". Say who you are with --user NAME; the password comes from "
                                    "SLUICE_PASSWORD, --password-file or a question";

static void explain_who(const sl_session *session, const sl_session_failure *failure, sl_text *text)
{
    const bool is_denied = failure->status == SL_STATUS_PERMISSION_DENIED;

    if (!is_denied && sl_str_starts_with(failure->message, SL_STR("Too many "))) {
        sl_text_add_str(text, without_stop(failure->message));
        sl_text_add(text, ". The server did not look at this password");
        return;
    }
    if (is_denied)
        sl_text_add(text, session->has_user ? "access denied: this user may not do that"
                                            : "access denied: not everybody may do that");
    else
        sl_text_add(text, session->has_user ? "the server does not accept this user with this password"
                                            : "the server wants to know who is asking");
    if (!is_denied && !sl_str_equal(failure->message, SL_STR("Unauthenticated")) &&
        failure->message.bytes > 0) {
        sl_text_add(text, " (");
        sl_text_add_str(text, without_stop(failure->message));
        sl_text_add(text, ")");
    }
    sl_text_add(text, session->has_user ? "" : how_to_log_in);
}

/* --- streams --- */

/* Trailers are ASCII: what a name has besides is written as %XX. */
static void add_quoted(sl_text *text, sl_str name)
{
    SL_CLEANUP(sl_buf_done) sl_buf decoded = { 0 };

    sl_buf_init(&decoded, &sl_alloc_default, SL_SESSION_SENTENCE_BYTES);
    if (sl_percent_append_decoded(&decoded, name) == SL_OK)
        name = (sl_str){ (const char *)sl_buf_data(&decoded), decoded.bytes };
    sl_text_add_char(text, '"');
    sl_text_add_str(text, name);
    sl_text_add_char(text, '"');
}

void sl_session_add_revision(sl_text *text, sl_wire_revision revision)
{
    switch (revision.kind) {
    case SL_WIRE_REVISION_NUMBER:
        sl_text_add(text, "at revision ");
        sl_text_add_u64(text, revision.number);
        return;
    case SL_WIRE_REVISION_NO_STREAM: sl_text_add(text, "not there"); return;
    case SL_WIRE_REVISION_STREAM_EXISTS: sl_text_add(text, "there"); return;
    case SL_WIRE_REVISION_ANY:
    case SL_WIRE_REVISION_UNSET: break;
    }
    sl_text_add(text, "somewhere else");
}

/* "7", and the numbers that stand for states of a stream. */
static sl_wire_revision parse_version(sl_str text)
{
    uint64_t number;

    if (sl_str_parse_u64(text, &number) == SL_OK)
        return (sl_wire_revision){ SL_WIRE_REVISION_NUMBER, number };
    if (sl_str_equal(text, SL_STR("-1")))
        return (sl_wire_revision){ .kind = SL_WIRE_REVISION_NO_STREAM };
    if (sl_str_equal(text, SL_STR("-4")))
        return (sl_wire_revision){ .kind = SL_WIRE_REVISION_STREAM_EXISTS };
    return (sl_wire_revision){ .kind = SL_WIRE_REVISION_UNSET };
}

static void explain_wrong_revision(const sl_session_failure *failure, sl_text *text)
{
    sl_text_add(text, "stream ");
    add_quoted(text, trailer(failure, "stream-name"));
    sl_text_add(text, " is ");
    sl_session_add_revision(text, parse_version(trailer(failure, "actual-version")));
    sl_text_add(text, ", which is not what --expect says");
}

static void explain_deleted(const sl_session_failure *failure, sl_text *text)
{
    sl_text_add(text, "stream ");
    add_quoted(text, trailer(failure, "stream-name"));
    sl_text_add(text, " was deleted for ever: it has a tombstone");
}

static void explain_user(const sl_session_failure *failure, sl_text *text)
{
    if (is_exception(failure, "user-not-found")) {
        sl_text_add(text, "there is no user ");
        add_quoted(text, trailer(failure, "login-name"));
        return;
    }
    if (failure->status == SL_STATUS_FAILED_PRECONDITION) /* the word for it on the wire is "Conflict." */
        sl_text_add(text, "There is a user with that login name");
    else
        sl_text_add_str(text, without_stop(failure->message));
}

/* --- groups --- */

static void add_group(const sl_session_failure *failure, sl_text *text)
{
    const sl_str stream = trailer(failure, "stream-name");

    sl_text_add(text, "group ");
    add_quoted(text, trailer(failure, "group-name"));
    if (sl_str_equal(stream, SL_STR("$all"))) {
        sl_text_add(text, " on all streams");
        return;
    }
    sl_text_add(text, " on stream ");
    add_quoted(text, stream);
}

/* Whoever names a stream without a group means all of its groups, and there is none. */
static void add_missing(const sl_session_failure *failure, sl_text *text)
{
    if (trailer(failure, "group-name").bytes > 0) {
        add_group(failure, text);
        return;
    }
    sl_text_add(text, "group on stream ");
    add_quoted(text, trailer(failure, "stream-name"));
}

static bool is_about_group(const sl_session_failure *failure)
{
    return is_exception(failure, "persistent-subscription-does-not-exist") ||
           is_exception(failure, "persistent-subscription-exists") ||
           is_exception(failure, "persistent-subscription-failed");
}

static void explain_group(const sl_session_failure *failure, sl_text *text)
{
    if (is_exception(failure, "persistent-subscription-does-not-exist")) {
        sl_text_add(text, "there is no ");
        add_missing(failure, text);
        sl_text_add(text, ". 'sluice group list' shows those there are, 'sluice group create' makes one");
    } else if (is_exception(failure, "persistent-subscription-exists")) {
        add_group(failure, text);
        sl_text_add(text, " is there already, and was not changed. 'sluice group update' changes settings");
    } else {
        sl_text_add(text, "the server refused that for ");
        add_group(failure, text);
        sl_text_add(text, ": ");
        sl_text_add_str(text, without_stop(trailer(failure, "reason")));
    }
}

/* --- all of them --- */

static void explain_rest(const sl_session *session, const sl_session_failure *failure, sl_text *text)
{
    if (failure->kind == SL_CALL_DEADLINE || session->ran_out) {
        sl_text_add(text, "the server did not answer within ");
        sl_text_add_duration(text, session->timeout_ns);
        sl_text_add(text, ". More time can be given with --timeout");
        return;
    }
    if (failure->kind == SL_CALL_CANCELLED) {
        sl_text_add(text, session->interrupted ? "interrupted" : "the call was ended from this side");
        return;
    }
    if (failure->status == SL_STATUS_UNAVAILABLE)
        sl_text_add(text, "the server takes no requests at the moment: ");
    else if (failure->status == SL_STATUS_UNIMPLEMENTED)
        sl_text_add(text, "the server does not offer that: ");
    else
        sl_text_add(text, "the server refused: ");
    if (failure->message.bytes > 0)
        sl_text_add_str(text, without_stop(failure->message));
    else
        sl_text_add(text, sl_status_text(failure->status));
    if (failure->status != SL_STATUS_UNAVAILABLE && failure->status != SL_STATUS_UNIMPLEMENTED) {
        sl_text_add(text, " (");
        sl_text_add(text, sl_status_name(failure->status));
        sl_text_add(text, ")");
    }
}

void sl_session_explain(const sl_session *session, const sl_session_failure *failure, sl_text *text)
{
    if (failure->kind == SL_CALL_CONNECTION_LOST)
        explain_lost(session, failure, text);
    else if (failure->status == SL_STATUS_PERMISSION_DENIED || failure->status == SL_STATUS_UNAUTHENTICATED)
        explain_who(session, failure, text);
    else if (is_exception(failure, "wrong-expected-version"))
        explain_wrong_revision(failure, text);
    else if (is_exception(failure, "stream-deleted"))
        explain_deleted(failure, text);
    else if (is_exception(failure, "user-not-found") || is_exception(failure, "user-conflict"))
        explain_user(failure, text);
    else if (is_about_group(failure))
        explain_group(failure, text);
    else
        explain_rest(session, failure, text);
}

int sl_session_fail(const sl_session *session, const sl_session_failure *failure)
{
    char buffer[SL_SESSION_SENTENCE_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_session_explain(session, failure, &text);
    return sl_cli_fail(session->invocation, buffer);
}

int sl_session_fail_answer(const sl_session *session, const sl_client_answer *answer)
{
    const sl_session_failure failure = { .kind = answer->kind,
                                         .status = answer->status,
                                         .message = sl_str_from(answer->message),
                                         .trailers = &answer->trailers };

    return sl_session_fail(session, &failure);
}
