/* worker/handler/append_answer.c — what a server's refusal means, see the table in append_handler.h. Pure. */
#include "base/arena.h"
#include "base/cleanup.h"
#include "wire/error_details.h"
#include "worker/handler/append_inside.h"

enum {
    DETAIL_CHUNK_BYTES = 1024,
    DETAIL_BYTES_MAX = 64 * 1024
};

static const sl_result later = { .kind = SL_RESULT_RETRY, .is_fault = true };
static const sl_result failed = { .kind = SL_RESULT_FAILED, .is_fault = true };
static const sl_result park = { .kind = SL_RESULT_PARK };

sl_result sl_append_judge(sl_status status)
{
    switch (status) {
    case SL_STATUS_INVALID_ARGUMENT:
    case SL_STATUS_NOT_FOUND:
    case SL_STATUS_PERMISSION_DENIED:
    case SL_STATUS_FAILED_PRECONDITION:
    case SL_STATUS_OUT_OF_RANGE: return park;
    case SL_STATUS_UNAUTHENTICATED: /* the password is wrong for every message: none of them is to blame */
    case SL_STATUS_UNIMPLEMENTED:
    case SL_STATUS_ALREADY_EXISTS: /* a revision that nobody asked for */
    case SL_STATUS_INTERNAL:
    case SL_STATUS_UNKNOWN:
    case SL_STATUS_DATA_LOSS: return failed;
    case SL_STATUS_OK: /* as KurrentDB says that it is busy */
    case SL_STATUS_CANCELLED:
    case SL_STATUS_DEADLINE_EXCEEDED:
    case SL_STATUS_RESOURCE_EXHAUSTED:
    case SL_STATUS_ABORTED:
    case SL_STATUS_UNAVAILABLE:
    case SL_STATUS_COUNT_: break;
    }
    return later;
}

static void add_sentence(const sl_wire_status *error, sl_text *reason)
{
    SL_CLEANUP(sl_arena_done) sl_arena arena;
    const sl_str detail = error->detail_type;
    sl_str sentence = error->message;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ DETAIL_CHUNK_BYTES, DETAIL_BYTES_MAX });
    if (sl_str_ends_with(detail, SL_STR(".BadRequest")))
        (void)sl_detail_bad_request_decode(error->detail_value, &arena, &sentence, NULL);
    else if (sl_str_ends_with(detail, SL_STR(".StreamDeleted")))
        sentence = SL_STR("it was deleted for ever");
    else if (sl_str_ends_with(detail, SL_STR(".AccessDenied")))
        sentence = SL_STR("this user may not append to it");
    else if (sl_str_ends_with(detail, SL_STR(".MaximumAppendEventSizeExceeded")) ||
             sl_str_ends_with(detail, SL_STR(".MaximumAppendSizeExceeded")))
        sentence = SL_STR("the event is larger than the server allows");
    if (sentence.bytes == 0)
        sentence = sl_str_from(sl_status_text((sl_status)error->code));
    sl_text_add_str(reason, sentence);
}

sl_result sl_append_judge_refusal(const sl_wire_status *error, sl_text *reason)
{
    sl_result result = sl_append_judge((sl_status)error->code);

    add_sentence(error, reason);
    result.reason = sl_text_str(reason);
    return result;
}
