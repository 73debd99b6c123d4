/* server/reply.c — the table of reply.h, row by row. */
#include "server/reply.h"

#include "server/door.h"

enum {
    TEXT_BYTES = 4 * 1024,   /* of one message: a stream name with its %XX is the longest part */
    NUMBER_BYTES = 24,       /* a signed number of 64 bits, with its closing zero */
    REVISION_NO_STREAM = -1, /* how the trailers say what is no number */
    REVISION_ANY = -2,
    REVISION_STREAM_EXISTS = -4,
};

static void finish(sl_request *request, sl_status status, const char *message)
{
    sl_request_finish(request, status, sl_str_from(message), NULL, 0);
}

static sl_metadata exception(const char *kind)
{
    return (sl_metadata){ SL_STR("exception"), sl_str_from(kind) };
}

/* A message of three parts with one trailer besides the exception, which is what most rows have. */
typedef struct named {
    sl_status status;
    const char *exception, *before, *after;
    sl_str key, value; /* of the trailer; the value is also what the message names when `after` is not NULL */
} named;

static void finish_named(sl_request *request, const named *row)
{
    const sl_metadata trailers[] = { exception(row->exception), { row->key, row->value } };
    char buffer[TEXT_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, row->before);
    if (row->after != NULL) {
        sl_text_add_str(&text, row->value);
        sl_text_add(&text, row->after);
    }
    sl_request_finish(request, row->status, sl_text_str(&text), trailers, 2);
}

/* --- who may not --- */

/* Who has lost his identity while the call was open is told so, whatever he is refused. */
void sl_reply_access_denied(sl_request *request)
{
    const sl_metadata trailer = exception("access-denied");

    if (request->identity.is_revoked)
        sl_reply_unauthenticated(request);
    else
        sl_request_finish(request, SL_STATUS_PERMISSION_DENIED, SL_STR("Access Denied"), &trailer, 1);
}

void sl_reply_unauthenticated(sl_request *request)
{
    finish(request, SL_STATUS_UNAUTHENTICATED,
           request->identity.is_revoked ? SL_REPLY_REVOKED : "Unauthenticated");
}

void sl_reply_too_often(sl_request *request)
{
    finish(request, SL_STATUS_UNAUTHENTICATED, "Too many failed log-ins. Wait a moment and try again.");
}

/* Clients take the -1 for "do not try that again by yourself": the application shall decide. */
void sl_reply_not_ready(sl_request *request)
{
    static const sl_metadata trailer = { SL_STR_INIT("grpc-retry-pushback-ms"), SL_STR_INIT("-1") };

    sl_request_finish(request, SL_STATUS_UNAVAILABLE, SL_STR("Server not ready"), &trailer, 1);
}

/* --- streams --- */

void sl_reply_stream_deleted(sl_request *request, sl_str stream)
{
    finish_named(request, &(named){ SL_STATUS_FAILED_PRECONDITION, "stream-deleted", "Event stream '",
                                    "' is deleted.", SL_STR("stream-name"), stream });
}

/* Nothing for a revision that is not known: a client takes an empty text for that. */
static void add_revision(sl_text *text, sl_wire_revision revision)
{
    switch (revision.kind) {
    case SL_WIRE_REVISION_UNSET: return;
    case SL_WIRE_REVISION_NUMBER: sl_text_add_i64(text, (int64_t)revision.number); return;
    case SL_WIRE_REVISION_NO_STREAM: sl_text_add_i64(text, REVISION_NO_STREAM); return;
    case SL_WIRE_REVISION_ANY: sl_text_add_i64(text, REVISION_ANY); return;
    case SL_WIRE_REVISION_STREAM_EXISTS: sl_text_add_i64(text, REVISION_STREAM_EXISTS); return;
    }
}

static sl_str revision_text(sl_wire_revision revision, char buffer[NUMBER_BYTES])
{
    sl_text text;

    sl_text_init(&text, buffer, NUMBER_BYTES);
    add_revision(&text, revision);
    return sl_text_str(&text);
}

void sl_reply_wrong_revision(sl_request *request, sl_str stream, sl_wire_revision expected,
                             sl_wire_revision actual)
{
    char buffer[TEXT_BYTES], expected_buffer[NUMBER_BYTES], actual_buffer[NUMBER_BYTES];
    const sl_str wanted = revision_text(expected, expected_buffer), is = revision_text(actual, actual_buffer);
    const sl_metadata trailers[] = { exception("wrong-expected-version"),
                                     { SL_STR("stream-name"), stream },
                                     { SL_STR("expected-version"), wanted },
                                     { SL_STR("actual-version"), is } };
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "Delete failed due to WrongExpectedVersion. Stream: ");
    sl_text_add_str(&text, stream);
    sl_text_add(&text, ", Expected version: ");
    sl_text_add_str(&text, wanted);
    sl_text_add(&text, ", Actual version: ");
    sl_text_add_str(&text, is);
    sl_request_finish(request, SL_STATUS_FAILED_PRECONDITION, sl_text_str(&text), trailers, 4);
}

/* --- what is appended --- */

static sl_str number_text(uint64_t number, char buffer[NUMBER_BYTES])
{
    sl_text text;

    sl_text_init(&text, buffer, NUMBER_BYTES);
    sl_text_add_u64(&text, number);
    return sl_text_str(&text);
}

void sl_reply_append_too_large(sl_request *request, uint32_t max_bytes)
{
    char number[NUMBER_BYTES];

    finish_named(request, &(named){ SL_STATUS_INVALID_ARGUMENT, "maximum-append-size-exceeded",
                                    "Maximum Append Size of ", " Exceeded.", SL_STR("maximum-append-size"),
                                    number_text(max_bytes, number) });
}

void sl_reply_event_too_large(sl_request *request, sl_uuid id, uint32_t bytes, uint32_t max_bytes)
{
    char buffer[TEXT_BYTES], id_text[SL_UUID_TEXT_BYTES + 1], bytes_text[NUMBER_BYTES],
        max_text[NUMBER_BYTES];
    const sl_str is = number_text(bytes, bytes_text), max = number_text(max_bytes, max_text);
    const sl_metadata trailers[] = { exception("maximum-append-event-size-exceeded"),
                                     { SL_STR("maximum-append-event-size"), max },
                                     { SL_STR("event-id"), { id_text, SL_UUID_TEXT_BYTES } },
                                     { SL_STR("proposed-append-event-size"), is } };
    sl_text text;

    sl_uuid_format(id, id_text);
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "Event with Id: ");
    sl_text_add(&text, id_text);
    sl_text_add(&text, ", Size: ");
    sl_text_add_str(&text, is);
    sl_text_add(&text, ", exceeds Maximum Append Event Size of ");
    sl_text_add_str(&text, max);
    sl_text_add(&text, ".");
    sl_request_finish(request, SL_STATUS_INVALID_ARGUMENT, sl_text_str(&text), trailers, 4);
}

void sl_reply_add_missing_metadata(sl_text *text, sl_str property)
{
    sl_text_add(text, "Required Metadata Property '");
    sl_text_add_str(text, property);
    sl_text_add(text, "' is missing");
}

/* The trailer names all that are required, the message the one that is missing. */
void sl_reply_missing_metadata(sl_request *request, sl_str property)
{
    const sl_metadata trailers[] = { exception("missing-required-metadata-property"),
                                     { SL_STR("required-metadata-properties"),
                                       SL_STR("type,content-type") } };
    char buffer[TEXT_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_reply_add_missing_metadata(&text, property);
    sl_request_finish(request, SL_STATUS_INVALID_ARGUMENT, sl_text_str(&text), trailers, 2);
}

void sl_reply_invalid(sl_request *request, const char *sentence)
{
    finish(request, SL_STATUS_INVALID_ARGUMENT, sentence);
}

void sl_reply_undecodable(sl_request *request, sl_err err, const char *reason)
{
    if (err == SL_ERR_INVALID && reason != NULL)
        sl_reply_invalid(request, reason);
    else
        sl_reply_error(request, err);
}

void sl_reply_thrown(sl_request *request, const char *sentence)
{
    char buffer[TEXT_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "Exception was thrown by handler. ");
    sl_text_add(&text, sentence);
    sl_request_finish(request, SL_STATUS_UNKNOWN, sl_text_str(&text), NULL, 0);
}

/* --- what is read --- */

void sl_reply_index_not_found(sl_request *request, sl_str index)
{
    finish_named(request, &(named){ SL_STATUS_NOT_FOUND, "index-not-found", "Index '", "' is not found.",
                                    SL_STR("index-name"), index });
}

/* --- persistent subscriptions --- */

typedef struct about_group {
    sl_status status;
    const char *exception;
    const char *before, *between, *after; /* the group, then the stream */
    sl_str stream, group, reason;         /* the reason behind `after`, in quotes, when there is one */
} about_group;

static void finish_group(sl_request *request, const about_group *row)
{
    const sl_metadata trailers[] = { exception(row->exception),
                                     { SL_STR("stream-name"), row->stream },
                                     { SL_STR("group-name"), row->group },
                                     { SL_STR("reason"), row->reason } };
    char buffer[TEXT_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, row->before);
    sl_text_add_str(&text, row->group);
    sl_text_add(&text, row->between);
    sl_text_add_str(&text, row->stream);
    sl_text_add(&text, row->after);
    if (row->reason.bytes > 0) {
        sl_text_add_str(&text, row->reason);
        sl_text_add_char(&text, '\'');
    }
    sl_request_finish(request, row->status, sl_text_str(&text), trailers, row->reason.bytes > 0 ? 4 : 3);
}

void sl_reply_group_not_found(sl_request *request, sl_str stream, sl_str group)
{
    finish_group(request, &(about_group){ .status = SL_STATUS_NOT_FOUND,
                                          .exception = "persistent-subscription-does-not-exist",
                                          .before = "Subscription group ",
                                          .between = " on stream ",
                                          .after = " does not exist.",
                                          .stream = stream,
                                          .group = group });
}

void sl_reply_group_exists(sl_request *request, sl_str stream, sl_str group)
{
    finish_group(request, &(about_group){ .status = SL_STATUS_ALREADY_EXISTS,
                                          .exception = "persistent-subscription-exists",
                                          .before = "Subscription group ",
                                          .between = " on stream ",
                                          .after = " exists.",
                                          .stream = stream,
                                          .group = group });
}

void sl_reply_group_failed(sl_request *request, sl_str stream, sl_str group, sl_str reason)
{
    finish_group(request, &(about_group){ .status = SL_STATUS_INTERNAL,
                                          .exception = "persistent-subscription-failed",
                                          .before = "Subscription group ",
                                          .between = " on stream ",
                                          .after = " failed: '",
                                          .stream = stream,
                                          .group = group,
                                          .reason = reason });
}

void sl_reply_group_full(sl_request *request, sl_str stream, sl_str group)
{
    finish_group(request, &(about_group){ .status = SL_STATUS_FAILED_PRECONDITION,
                                          .exception = "maximum-subscribers-reached",
                                          .before = "Maximum subscriptions reached for subscription group ",
                                          .between = " on stream ",
                                          .after = ".",
                                          .stream = stream,
                                          .group = group });
}

void sl_reply_group_dropped(sl_request *request, sl_str stream, sl_str group)
{
    finish_group(request, &(about_group){ .status = SL_STATUS_CANCELLED,
                                          .exception = "persistent-subscription-dropped",
                                          .before = "Subscription group ",
                                          .between = " on stream ",
                                          .after = " was dropped.",
                                          .stream = stream,
                                          .group = group });
}

/* --- users and operations --- */

void sl_reply_user_not_found(sl_request *request, sl_str login_name)
{
    finish_named(request, &(named){ SL_STATUS_NOT_FOUND, "user-not-found", "User '", "' is not found.",
                                    SL_STR("login-name"), login_name });
}

void sl_reply_user_conflict(sl_request *request, sl_str login_name)
{
    finish_named(request, &(named){ SL_STATUS_FAILED_PRECONDITION, "user-conflict", "Conflict.", NULL,
                                    SL_STR("login-name"), login_name });
}

/* KurrentDB's "try again" is a deadline that has passed, and a conflict for those who only look at the exception. */
void sl_reply_user_busy(sl_request *request, sl_str login_name)
{
    finish_named(request, &(named){ SL_STATUS_DEADLINE_EXCEEDED, "user-conflict",
                                    "Somebody else is changing this user. Try again.", NULL,
                                    SL_STR("login-name"), login_name });
}

void sl_reply_scavenge_not_found(sl_request *request, sl_str scavenge_id)
{
    finish_named(request, &(named){ SL_STATUS_NOT_FOUND, "scavenge-not-found", "Scavenge id was invalid.",
                                    NULL, SL_STR("scavenge-id"), scavenge_id });
}

/* --- the server itself --- */

/* The door is shut after the host was told to stop, or alone when only writing has ended. */
static const char *stop_reason(const sl_host *host)
{
    const char *const reason = sl_door_is_shut(host->door) ? sl_door_reason(host->door) : host->stop_reason;

    return reason == NULL || *reason == '\0' ? "no reason was given" : reason;
}

void sl_reply_stopping(sl_request *request)
{
    char buffer[TEXT_BYTES];
    sl_text text;

    if (request->identity.is_revoked) {
        sl_reply_unauthenticated(request);
        return;
    }
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "The server is shutting down: ");
    sl_text_add(&text, stop_reason(request->host));
    sl_request_finish(request, SL_STATUS_UNAVAILABLE, sl_text_str(&text), NULL, 0);
}

/* What an error of the store means for who asked. Rows that are not here cannot come from a store; they are told as UNKNOWN
 * with the text of the error, so that nothing is ever answered with silence. */
static const struct error_row {
    sl_status status;
    const char *sentence;
} error_rows[SL_ERR_COUNT_] = {
    [SL_ERR_NO_SPACE] = { SL_STATUS_RESOURCE_EXHAUSTED, "The disk of the server is full: nothing was "
                                                        "written. Reading goes on; free some space "
                                                        "and try again." },
    [SL_ERR_STREAMS_MAX] = { SL_STATUS_RESOURCE_EXHAUSTED,
                             "The server has as many streams as it can hold: nothing was written. Streams "
                             "that are there can be written to." },
    [SL_ERR_STORE_FAILED] = { SL_STATUS_UNAVAILABLE,
                              "The storage of the server has failed and it accepts nothing more. What was "
                              "sent may "
                              "or may not have been written; the server has to be restarted." },
    [SL_ERR_CORRUPT] = { SL_STATUS_DATA_LOSS,
                         "Stored data that is needed to answer is damaged. The log of the server says where; "
                         "restore it from a backup." },
    [SL_ERR_INVALID] = { SL_STATUS_INVALID_ARGUMENT,
                         "The request breaks a rule for names, event types or ids: nothing was written." },
    [SL_ERR_TOO_LARGE] = { SL_STATUS_INVALID_ARGUMENT,
                           "The request is larger than the server allows: nothing was written." },
    [SL_ERR_NOMEM] = { SL_STATUS_RESOURCE_EXHAUSTED,
                       "The server is out of memory: nothing was written. Try again later." },
    [SL_ERR_FULL] = { SL_STATUS_RESOURCE_EXHAUSTED,
                      "The server has as much to do as it can take: nothing was written. Try again later." },
    [SL_ERR_IO] = { SL_STATUS_UNAVAILABLE,
                    "The storage of the server did not answer. Try again; the log of the server says more." },
    [SL_ERR_DRAINING] = { SL_STATUS_UNAVAILABLE, NULL }, /* the reason */
    [SL_ERR_OPEN_FILES] = { SL_STATUS_RESOURCE_EXHAUSTED, "The server has as many files open as its system "
                                                          "allows. Try again later, and raise "
                                                          "the limit (ulimit -n)." },
};

sl_status sl_reply_status_of(sl_err err)
{
    if (err == SL_OK)
        return SL_STATUS_OK;
    return error_rows[err].status == SL_STATUS_OK ? SL_STATUS_UNKNOWN : error_rows[err].status;
}

const char *sl_reply_sentence_of(const sl_host *host, sl_err err)
{
    if (err == SL_ERR_DRAINING)
        return stop_reason(host);
    return error_rows[err].sentence == NULL ? sl_err_text(err) : error_rows[err].sentence;
}

void sl_reply_error(sl_request *request, sl_err err)
{
    if (err == SL_ERR_DRAINING)
        sl_reply_stopping(request);
    else
        finish(request, sl_reply_status_of(err), sl_reply_sentence_of(request->host, err));
}
