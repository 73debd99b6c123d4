/* server/streams/multi_reply.c — the table of version 2 (wire contract, section 10). */
#include "server/streams/multi_reply.h"

#include "server/reply.h"
#include "server/streams/write.h"

enum {
    TEXT_BYTES = 4 * 1024,
    RETRY_AFTER_S =
        5, /* what the real server suggests when it is busy or stops; never for what stays broken */
};

#define STREAMS SL_STR("streams")
#define SERVER  SL_STR("server")

typedef struct row {
    sl_status status;
    sl_str reason, domain;
} row;

/* Without memory for the detail the status goes alone. */
static void reply(sl_request *request, row what, sl_str message, sl_err detail_err,
                  const sl_wire_detail *detail)
{
    const sl_v2_status status = { .code = (int32_t)what.status,
                                  .message = message,
                                  .reason = what.reason,
                                  .domain = what.domain,
                                  .detail = detail_err == SL_OK ? detail : NULL };
    sl_metadata trailer = { .key = SL_STR("grpc-status-details-bin") };
    const sl_err err = sl_v2_status_encode(&status, &request->arena, &trailer.value);

    sl_request_finish(request, what.status, message, &trailer, err == SL_OK ? 1 : 0);
}

void sl_multi_reply_invalid(sl_request *request, const char *field, const char *sentence)
{
    const row what = { SL_STATUS_INVALID_ARGUMENT, SL_STR("BAD_REQUEST"), SERVER };
    sl_wire_detail detail;
    const sl_err err =
        sl_v2_detail_bad_request(sl_str_from(field), sl_str_from(sentence), &request->arena, &detail);

    reply(request, what, sl_str_from(sentence), err, &detail);
}

/* The user is not what it was: server/recall.h. */
static void reply_revoked(sl_request *request)
{
    const row what = { SL_STATUS_UNAUTHENTICATED, SL_STR("ACCESS_DENIED"), SERVER };

    reply(request, what, SL_STR(SL_REPLY_REVOKED), SL_OK, NULL);
}

void sl_multi_reply_denied(sl_request *request)
{
    const row what = { SL_STATUS_PERMISSION_DENIED, SL_STR("ACCESS_DENIED"), SERVER };
    char buffer[TEXT_BYTES];
    sl_wire_detail detail;
    sl_text text;
    const sl_err err =
        sl_v2_detail_access_denied(request->method->name, request->identity.name, &request->arena, &detail);

    if (request->identity.is_revoked) {
        reply_revoked(request);
        return;
    }
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "Access denied: this user may not do ");
    sl_text_add_str(&text, request->method->name);
    sl_text_add(&text, " on one of its streams.");
    reply(request, what, sl_text_str(&text), err, &detail);
}

/* --- streams --- */

void sl_multi_reply_stream(sl_request *request, sl_v2_stream_error error, sl_str stream)
{
    static const struct stream_row {
        sl_status status;
        sl_str reason;
        const char *text;
    } rows[] = {
        [SL_V2_STREAM_NOT_FOUND] = { SL_STATUS_NOT_FOUND, SL_STR_INIT("STREAM_NOT_FOUND"),
                                     "' was not found." },
        [SL_V2_STREAM_ALREADY_EXISTS] = { SL_STATUS_ALREADY_EXISTS, SL_STR_INIT("STREAM_ALREADY_EXISTS"),
                                          "' exists already." },
        [SL_V2_STREAM_DELETED] = { SL_STATUS_FAILED_PRECONDITION, SL_STR_INIT("STREAM_DELETED"),
                                   "' is deleted. Appending without the expectation that it exists brings it "
                                   "back." },
        [SL_V2_STREAM_TOMBSTONED] = { SL_STATUS_FAILED_PRECONDITION, SL_STR_INIT("STREAM_TOMBSTONED"),
                                      "' has a tombstone: it is gone for ever and its name cannot be used "
                                      "again." },
        [SL_V2_STREAM_ALREADY_IN_SESSION] = { SL_STATUS_ABORTED,
                                              SL_STR_INIT("STREAM_ALREADY_IN_APPEND_SESSION"),
                                              "' is in this session twice. Put all its records into one "
                                              "request." },
    };
    const row what = { rows[error].status, rows[error].reason, STREAMS };
    char buffer[TEXT_BYTES];
    sl_wire_detail detail;
    sl_text text;
    const sl_err err = sl_v2_detail_stream(error, stream, &request->arena, &detail);

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "Stream '");
    sl_text_add_str(&text, stream);
    sl_text_add(&text, rows[error].text);
    reply(request, what, sl_text_str(&text), err, &detail);
}

void sl_multi_reply_conflict(sl_request *request, const sl_v2_conflict *conflict)
{
    const row what = { SL_STATUS_FAILED_PRECONDITION, SL_STR("STREAM_REVISION_CONFLICT"), STREAMS };
    char buffer[TEXT_BYTES];
    sl_wire_detail detail;
    sl_text text;
    const sl_err err = sl_v2_detail_revision_conflict(conflict, &request->arena, &detail);

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "Append failed: stream '");
    sl_text_add_str(&text, conflict->stream);
    sl_text_add(&text, "' was expected at revision ");
    sl_text_add_i64(&text, conflict->expected);
    sl_text_add(&text, " and is at ");
    sl_text_add_i64(&text, conflict->actual);
    sl_text_add(&text, ".");
    reply(request, what, sl_text_str(&text), err, &detail);
}

void sl_multi_reply_violations(sl_request *request, const sl_v2_conflict *conflicts, size_t conflict_count)
{
    const row what = { SL_STATUS_FAILED_PRECONDITION, SL_STR("APPEND_CONSISTENCY_VIOLATION"), STREAMS };
    char buffer[TEXT_BYTES];
    sl_wire_detail detail;
    sl_text text;
    const sl_err err = sl_v2_detail_violations(conflicts, conflict_count, &request->arena, &detail);

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "Append failed, nothing was written: checks that do not hold: ");
    sl_text_add_u64(&text, conflict_count);
    sl_text_add(&text, ".");
    reply(request, what, sl_text_str(&text), err, &detail);
}

/* --- sizes --- */

static uint32_t bounded(uint64_t bytes)
{
    return bytes > INT32_MAX ? INT32_MAX : (uint32_t)bytes; /* the field is an int32 */
}

static void add_sizes(sl_text *text, sl_detail_sizes sizes)
{
    sl_text_add(text, " has ");
    sl_text_add_u64(text, sizes.bytes);
    sl_text_add(text, " bytes, and ");
    sl_text_add_u64(text, sizes.max_bytes);
    sl_text_add(text, " are allowed.");
}

void sl_multi_reply_record_too_large(sl_request *request, sl_str stream, sl_str record_id, uint64_t bytes)
{
    const row what = { SL_STATUS_INVALID_ARGUMENT, SL_STR("APPEND_RECORD_SIZE_EXCEEDED"), STREAMS };
    const sl_detail_sizes sizes = { bounded(bytes), request->host->settings->event_bytes_max };
    char buffer[TEXT_BYTES];
    sl_wire_detail detail;
    sl_text text;
    const sl_err err = sl_v2_detail_record_too_large(stream, record_id, sizes, &request->arena, &detail);

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "Record ");
    sl_text_add_str(&text, record_id);
    add_sizes(&text, sizes);
    reply(request, what, sl_text_str(&text), err, &detail);
}

void sl_multi_reply_too_large(sl_request *request, uint64_t bytes)
{
    const row what = { SL_STATUS_ABORTED, SL_STR("APPEND_TRANSACTION_SIZE_EXCEEDED"), STREAMS };
    const sl_detail_sizes sizes = { bounded(bytes), request->host->settings->append_bytes_max };
    char buffer[TEXT_BYTES];
    sl_wire_detail detail;
    sl_text text;
    const sl_err err = sl_v2_detail_transaction_too_large(sizes, &request->arena, &detail);

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "The whole append");
    add_sizes(&text, sizes);
    reply(request, what, sl_text_str(&text), err, &detail);
}

void sl_multi_reply_no_requests(sl_request *request)
{
    const row what = { SL_STATUS_FAILED_PRECONDITION, SL_STR("APPEND_SESSION_NO_REQUESTS"), STREAMS };

    reply(request, what, SL_STR("The append session ended without a request."), SL_OK, NULL);
}

/* --- the server itself --- */

static void reply_retry(sl_request *request, row what, sl_str message)
{
    sl_wire_detail detail;
    const sl_err err =
        sl_v2_detail_retry_after(RETRY_AFTER_S * UINT64_C(1000000000), &request->arena, &detail);

    reply(request, what, message, err, &detail);
}

void sl_multi_reply_late(sl_request *request)
{
    const row what = { SL_STATUS_DEADLINE_EXCEEDED, SL_STR("OPERATION_TIMEOUT"), SERVER };
    char buffer[TEXT_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_write_add_late(&text, request->host->settings);
    reply_retry(request, what, sl_text_str(&text));
}

/* Version 2 has its own statuses: what is too much is UNAVAILABLE here, what is broken is INTERNAL. */
static row row_of(sl_err err)
{
    if (err == SL_ERR_DRAINING)
        return (row){ SL_STATUS_UNAVAILABLE, SL_STR("SERVER_SHUTTING_DOWN"), SERVER };
    if (sl_reply_status_of(err) == SL_STATUS_RESOURCE_EXHAUSTED)
        return (row){ SL_STATUS_UNAVAILABLE, SL_STR("SERVER_OVERLOADED"), SERVER };
    return (row){ SL_STATUS_INTERNAL, SL_STR("SERVER_MALFUNCTION"), SERVER };
}

void sl_multi_reply_error(sl_request *request, sl_err err)
{
    const char *const sentence = sl_reply_sentence_of(request->host, err);
    char buffer[TEXT_BYTES];
    sl_text text;

    if (err == SL_ERR_DRAINING && request->identity.is_revoked) {
        reply_revoked(request);
        return;
    }
    if (sl_reply_status_of(err) == SL_STATUS_INVALID_ARGUMENT) {
        sl_multi_reply_invalid(request, "records", sentence);
        return;
    }
    sl_text_init(&text, buffer, sizeof buffer);
    if (err == SL_ERR_DRAINING)
        sl_text_add(&text, "The server is shutting down: ");
    sl_text_add(&text, sentence);
    if (sl_err_may_retry(err))
        reply_retry(request, row_of(err), sl_text_str(&text));
    else
        reply(request, row_of(err), sl_text_str(&text), SL_OK, NULL);
}
