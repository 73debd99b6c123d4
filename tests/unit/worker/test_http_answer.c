/* What an HTTP answer means for a message: worker/handler/http_answer.c, without a network. */
#include "base/support.h"
#include "test.h"

#include "worker/handler/http_inside.h"

#define SECOND_NS UINT64_C(1000000000)

static char reason_buffer[SL_RESULT_REASON_BYTES_MAX + 1];

static sl_result judge(sl_http_answer answer)
{
    sl_text reason;

    answer.target = SL_STR("POST http://h/x");
    sl_text_init(&reason, reason_buffer, sizeof reason_buffer);
    return sl_http_judge(&answer, &reason);
}

TEST(each_status_has_its_meaning)
{
    static const struct {
        long status;
        sl_result_kind kind;
        bool is_fault;
    } rows[] = {
        { 200, SL_RESULT_DONE, false },  { 202, SL_RESULT_DONE, false },  { 299, SL_RESULT_DONE, false },
        { 408, SL_RESULT_RETRY, false }, { 425, SL_RESULT_RETRY, false }, { 429, SL_RESULT_RETRY, true },
        { 503, SL_RESULT_RETRY, true },  { 400, SL_RESULT_PARK, false },  { 401, SL_RESULT_FAILED, true },
        { 404, SL_RESULT_FAILED, true }, { 409, SL_RESULT_PARK, false },  { 422, SL_RESULT_PARK, false },
        { 403, SL_RESULT_FAILED, true }, { 405, SL_RESULT_FAILED, true }, { 407, SL_RESULT_FAILED, true },
        { 402, SL_RESULT_PARK, false },  { 406, SL_RESULT_PARK, false },  { 410, SL_RESULT_PARK, false },
        { 499, SL_RESULT_PARK, false },  { 500, SL_RESULT_FAILED, true }, { 502, SL_RESULT_FAILED, true },
        { 504, SL_RESULT_FAILED, true }, { 301, SL_RESULT_FAILED, true }, { 307, SL_RESULT_FAILED, true },
        { 999, SL_RESULT_FAILED, true },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_result result = judge((sl_http_answer){ .status = rows[i].status });
        EXPECT_ROW(result.kind == rows[i].kind, rows[i].status);
        EXPECT_ROW(result.is_fault == rows[i].is_fault, rows[i].status);
    }
}

TEST(retry_after_is_read_as_seconds_or_as_a_date_and_nonsense_is_five_seconds)
{
    /* 784111777 is the date below. */
    static const struct {
        const char *text;
        uint64_t wanted_ns;
    } rows[] = {
        { "7", 7 * SECOND_NS },
        { " 120 ", 120 * SECOND_NS },
        { "0", 0 },
        { "Sun, 06 Nov 1994 08:49:37 GMT", 37 * SECOND_NS },
        { "Sunday, 06-Nov-94 08:49:37 GMT", 37 * SECOND_NS },
        { "Sun, 06 Nov 1994 08:48:37 GMT", 0 },
        { "", 5 * SECOND_NS },
        { "-3", 5 * SECOND_NS },
        { "1.5", 5 * SECOND_NS },
        { "soon", 5 * SECOND_NS },
        { "99999999999999999999999", UINT64_MAX },
        { "18446744073709551615", UINT64_MAX },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_result result = judge((sl_http_answer){ .status = 503,
                                                         .has_retry_after = true,
                                                         .retry_after = sl_str_from(rows[i].text),
                                                         .wall_ns = UINT64_C(784111740) * SECOND_NS });
        EXPECT_ROW(result.retry_after_ns == rows[i].wanted_ns, i);
    }
    EXPECT_EQ(judge((sl_http_answer){ .status = 503 }).retry_after_ns, 0);
    EXPECT_EQ(judge((sl_http_answer){ .status = 500, .has_retry_after = true, .retry_after = SL_STR("2") })
                  .retry_after_ns,
              2 * SECOND_NS);
}

TEST(the_reason_is_one_clean_line_with_the_status_and_the_beginning_of_the_answer_B15)
{
    sl_result result = judge((sl_http_answer){
        .status = 422, .body = SL_STR("\r\n no such \x1b[31m order\x80 \xc3\xa9\r\nsecond line") });

    EXPECT_STR(reason_buffer, "POST http://h/x was answered with status 422: no such  [31m order? \xc3\xa9");
    EXPECT_EQ(result.reason.bytes, strlen(reason_buffer));
    (void)judge((sl_http_answer){ .status = 302 });
    EXPECT(strstr(reason_buffer, "not followed") != NULL);
}

TEST(a_reason_is_cut_at_its_limit)
{
    static char body[5000];

    memset(body, 'x', sizeof body);
    EXPECT_EQ(judge((sl_http_answer){ .status = 404, .body = { body, sizeof body } }).reason.bytes,
              SL_RESULT_REASON_BYTES_MAX);
}

TEST(no_status_is_a_fault_of_the_destination_in_the_words_of_the_network_B18)
{
    const sl_result result = judge((sl_http_answer){ .failure = SL_STR("Connection reset by peer") });

    EXPECT_EQ(result.kind, SL_RESULT_FAILED);
    EXPECT(result.is_fault);
    EXPECT_STR(reason_buffer, "POST http://h/x failed: Connection reset by peer");
}

/* A service that works while it answers has said 200 before it failed. */
TEST(a_good_answer_that_breaks_off_is_none_but_a_refusal_counts)
{
    EXPECT_EQ(judge((sl_http_answer){ .status = 200, .failure = SL_STR("cut") }).kind, SL_RESULT_FAILED);
    EXPECT_STR(reason_buffer, "POST http://h/x was answered with status 200, but the answer broke off: cut");
    EXPECT_EQ(judge((sl_http_answer){ .status = 422, .failure = SL_STR("cut") }).kind, SL_RESULT_PARK);
    EXPECT_EQ(judge((sl_http_answer){ .status = 503, .failure = SL_STR("cut") }).kind, SL_RESULT_RETRY);
}
