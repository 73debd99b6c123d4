/* worker/handler/http_answer.c — what an answer means, see the table in http_handler.h. Pure.
 *
 * A status that came is the word of the destination. With one exception: an answer of 2xx that breaks off. Services that work while
 * they answer send the status first, and then it says nothing about the work. */
#include "base/cleanup.h"
#include "worker/handler/http_inside.h"
#include "worker/handler/output.h"

#define SECOND_NS UINT64_C(1000000000)

/* --- when to come again --- */

static uint64_t seconds_to_ns(uint64_t seconds)
{
    return seconds > UINT64_MAX / SECOND_NS ? UINT64_MAX : seconds * SECOND_NS;
}

static bool is_number(sl_str text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return text.bytes > 0;
}

/* A date has a name of a month in it: what has no letters is a broken number, and curl would find a date in many of those. */
static bool has_letters(const char *text)
{
    for (; *text != '\0'; text++)
        if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z'))
            return true;
    return false;
}

static uint64_t until_date_ns(sl_str text, uint64_t wall_ns)
{
    char buffer[SL_HTTP_RETRY_AFTER_BYTES + 1];
    sl_text date;
    time_t at_s;

    sl_text_init(&date, buffer, sizeof buffer);
    sl_text_add_str(&date, text);
    at_s = has_letters(buffer) ? curl_getdate(buffer, NULL) : -1;
    if (at_s < 0)
        return SL_HTTP_BAD_RETRY_AFTER_NS;
    const uint64_t at_ns = seconds_to_ns((uint64_t)at_s);
    return at_ns > wall_ns ? at_ns - wall_ns : 0;
}

/* No maximum here: how long is too long is known to the retry policy. */
static uint64_t retry_after_ns(const sl_http_answer *answer)
{
    const sl_str text = sl_str_trim(answer->retry_after);
    uint64_t seconds = UINT64_MAX;

    if (!answer->has_retry_after)
        return 0;
    if (!is_number(text))
        return until_date_ns(text, answer->wall_ns);
    (void)sl_str_parse_u64(text, &seconds); /* too large for a number is for ever */
    return seconds_to_ns(seconds);
}

/* --- what people are told --- */

static sl_str first_line(sl_str body)
{
    const sl_str trimmed = sl_str_trim(body);

    return sl_str_trim((sl_str){ trimmed.data, sl_str_find(trimmed, '\n') });
}

/* About the address or who asks, which are the same for every message: one wrong letter must not send a whole group to the dead
 * letters. */
static bool is_about_the_destination(long status)
{
    return status == 401 || status == 403 || status == 404 || status == 405 || status == 407;
}

static void explain_status(const sl_http_answer *answer, sl_text *reason)
{
    const sl_str line = first_line(answer->body);

    sl_text_add(reason, " was answered with status ");
    sl_text_add_i64(reason, answer->status);
    if (answer->status >= 300 && answer->status < 400)
        sl_text_add(reason, ", a redirect: those are not followed, name the final address instead");
    if (is_about_the_destination(answer->status))
        sl_text_add(reason, " (check the address and the credentials)");
    if (line.bytes > 0) {
        sl_text_add(reason, ": ");
        sl_output_add_printable(reason, line);
    }
}

static void explain_failure(const sl_http_answer *answer, sl_text *reason)
{
    if (answer->status != 0) {
        sl_text_add(reason, " was answered with status ");
        sl_text_add_i64(reason, answer->status);
        sl_text_add(reason, ", but the answer broke off: ");
    } else {
        sl_text_add(reason, " failed: ");
    }
    sl_output_add_printable(reason, answer->failure);
}

/* --- the judgement --- */

static sl_result judge_status(const sl_http_answer *answer)
{
    const long status = answer->status;

    if (status >= 200 && status < 300)
        return (sl_result){ .kind = SL_RESULT_DONE };
    if (status == 408 || status == 425 || status == 429 || status == 503)
        return (sl_result){ .kind = SL_RESULT_RETRY,
                            .is_fault = status == 429 || status == 503,
                            .retry_after_ns = retry_after_ns(answer) };
    if (status >= 400 && status < 500 && !is_about_the_destination(status))
        return (sl_result){ .kind = SL_RESULT_PARK };
    return (sl_result){ .kind = SL_RESULT_FAILED,
                        .is_fault = true,
                        .retry_after_ns = status >= 500 ? retry_after_ns(answer) : 0 };
}

sl_result sl_http_judge(const sl_http_answer *answer, sl_text *reason)
{
    sl_result result = { .kind = SL_RESULT_FAILED, .is_fault = true };
    const bool is_broken =
        answer->status == 0 || (answer->failure.bytes > 0 && answer->status >= 200 && answer->status < 300);

    if (!is_broken)
        result = judge_status(answer);
    if (result.kind == SL_RESULT_DONE)
        return result;
    sl_output_add_printable(reason, answer->target);
    if (is_broken)
        explain_failure(answer, reason);
    else
        explain_status(answer, reason);
    result.reason = sl_text_str(reason);
    return result;
}
