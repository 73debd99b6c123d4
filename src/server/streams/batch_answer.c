/* server/streams/batch_answer.c — what became of an append, in the words of the table in the wire contract (section 3.5).
 *
 * Clients look at the type of the detail first, some at the code, some at the text. The last row is ours: errors of the store come with
 * the status and the sentence that another call would end with. */
#include "server/reply.h"
#include "server/streams/batch_call.h"
#include "wire/error_details.h"

#include <assert.h>

/* The status of an error without its detail. */
static sl_wire_status status_of(sl_status code, const char *message)
{
    return (sl_wire_status){ .code = (int32_t)code, .message = sl_str_from(message) };
}

static sl_err missing_metadata(const char *key, sl_arena *scratch, sl_wire_detail *ret_detail)
{
    char buffer[128];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_reply_add_missing_metadata(&text, sl_str_from(key));
    return sl_detail_bad_request(sl_text_str(&text), scratch, ret_detail);
}

static sl_err event_too_large(const sl_refusal *refusal, uint32_t max_bytes, sl_arena *scratch,
                              sl_wire_detail *ret_detail)
{
    char id[SL_UUID_TEXT_BYTES + 1];

    sl_uuid_format(refusal->event_id, id);
    return sl_detail_event_too_large((sl_str){ id, SL_UUID_TEXT_BYTES },
                                     (sl_detail_sizes){ refusal->event_bytes, max_bytes }, scratch,
                                     ret_detail);
}

static sl_err refused(const sl_host *host, const sl_refusal *refusal, sl_arena *scratch,
                      sl_wire_status *status, sl_wire_detail *detail)
{
    switch (refusal->kind) {
    case SL_REFUSAL_INVALID:
        *status = status_of(SL_STATUS_INVALID_ARGUMENT, "BadRequest");
        return sl_detail_bad_request(sl_str_from(refusal->text), scratch, detail);
    case SL_REFUSAL_MISSING_METADATA:
        *status = status_of(SL_STATUS_INVALID_ARGUMENT, "BadRequest");
        return missing_metadata(refusal->text, scratch, detail);
    case SL_REFUSAL_EVENT_TOO_LARGE:
        *status = status_of(SL_STATUS_INVALID_ARGUMENT, "MaximumAppendEventSizeExceeded");
        return event_too_large(refusal, host->settings->event_bytes_max, scratch, detail);
    case SL_REFUSAL_APPEND_TOO_LARGE:
        *status = status_of(SL_STATUS_INVALID_ARGUMENT, "MaximumAppendSizeExceeded");
        return sl_detail_append_too_large(host->settings->append_bytes_max, scratch, detail);
    case SL_REFUSAL_NONE:
    case SL_REFUSAL_ERROR: break;
    }
    *status = status_of(sl_reply_status_of(refusal->err), sl_reply_sentence_of(host, refusal->err));
    *detail = sl_detail_unknown();
    return SL_OK;
}

/* Everything but success. */
static sl_err describe(const sl_host *host, const sl_batch_name *name, const sl_batch_outcome *outcome,
                       sl_arena *scratch, sl_wire_status *status, sl_wire_detail *detail)
{
    switch (outcome->kind) {
    case SL_BATCH_WRONG_REVISION:
        *status = status_of(SL_STATUS_ALREADY_EXISTS, "WrongExpectedVersion");
        return sl_detail_wrong_revision(sl_revision_to_wire(outcome->revision), outcome->expected, scratch,
                                        detail);
    case SL_BATCH_STREAM_DELETED:
        *status = status_of(SL_STATUS_NOT_FOUND, "StreamDeleted");
        return sl_detail_stream_deleted(name->stream, scratch, detail);
    case SL_BATCH_ACCESS_DENIED:
        *status = status_of(SL_STATUS_PERMISSION_DENIED, "AccessDenied");
        *detail = sl_detail_access_denied();
        return SL_OK;
    case SL_BATCH_TIMEOUT:
        *status = status_of(SL_STATUS_DEADLINE_EXCEEDED, "Timeout");
        *detail = sl_detail_timeout();
        return SL_OK;
    case SL_BATCH_SUCCESS:
    case SL_BATCH_REFUSED: break;
    }
    return refused(host, &outcome->refusal, scratch, status, detail);
}

static sl_err fill_error(const sl_host *host, const sl_batch_name *name, const sl_batch_outcome *outcome,
                         sl_arena *scratch, sl_batch_append_response *response)
{
    sl_wire_detail detail = { 0 };
    const sl_err err = describe(host, name, outcome, scratch, &response->error, &detail);

    response->kind = SL_BATCH_APPEND_RESPONSE_ERROR;
    response->error.detail_type = detail.type;
    response->error.detail_value = detail.value;
    return err;
}

static sl_err send(sl_request *request, const sl_batch_append_response *response)
{
    const size_t bytes = sl_batch_append_response_size(response);
    uint8_t *message;
    const sl_err err = sl_request_reserve(request, bytes, &message);

    if (err != SL_OK)
        return err == SL_ERR_EMPTY ? SL_OK : err;
    sl_batch_append_response_encode(response, message, bytes);
    sl_request_commit(request, bytes);
    return SL_OK;
}

sl_err sl_batch_answer(sl_request *request, sl_arena *scratch, const sl_batch_name *name,
                       const sl_batch_outcome *outcome)
{
    sl_batch_append_response response = { .correlation = name->correlation, .stream = name->stream };
    sl_err err = SL_OK;

    if (outcome->kind == SL_BATCH_SUCCESS) {
        response.kind = SL_BATCH_APPEND_RESPONSE_SUCCESS;
        response.current = sl_revision_to_wire(outcome->revision);
        response.position =
            (sl_wire_position){ SL_WIRE_POSITION_GIVEN, outcome->position, outcome->position };
        return send(request, &response);
    }
    sl_arena_reset(scratch);
    err = fill_error(request->host, name, outcome, scratch, &response);
    return err == SL_OK ? send(request, &response) : err;
}
