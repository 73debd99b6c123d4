/* Tests of worker/lines_text.h: the lines as pure functions, with hostile ones among them. */
#include "test.h"

#include "base/cleanup.h"
#include "base/support.h"
#include "worker/lines_text.h"

#define ID "ab000000-0000-0000-0000-000000000001"

static sl_err parse(sl_str line, sl_lines_answer *answer, char problem_data[256])
{
    sl_text problem;

    sl_text_init(&problem, problem_data, 256);
    return sl_lines_answer_parse(line, answer, &problem);
}

TEST(lines_an_answer_means_the_same_however_it_is_written)
{
    static const char *const rows[] = {
        "{\"id\":\"" ID "\",\"result\":\"park\",\"reason\":\"a b\"}",
        " { \"result\" : \"park\" ,\t\"id\": \"" ID "\" , \"reason\":\"a b\" } \r",
        "{\"id\":\"" ID "\",\"result\":\"p\\u0061rk\",\"reason\":\"a\\nb\"}",
        "{\"id\":\"AB000000-0000-0000-0000-000000000001\",\"more\":{\"id\":[1,2]},\"result\":\"park\","
        "\"reason\":\"a b\"}",
        "{\"id\":\"" ID
        "\",\"type\":\"result\",\"result\":\"park\",\"reason\":\"a\\tb\",\"retry_after_ms\":0}",
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        sl_lines_answer answer;
        char problem[256];

        EXPECT_ERR(parse(sl_str_from(rows[i]), &answer, problem), SL_OK);
        EXPECT_ROW(!answer.is_progress && answer.result == SL_RESULT_PARK && answer.retry_after_ms == 0, i);
        EXPECT_ROW(strcmp(answer.reason, "a b") == 0, i);
        EXPECT_ROW(answer.id.bytes[0] == 0xab && answer.id.bytes[15] == 1, i);
    }
}

TEST(lines_what_is_no_answer_is_refused_and_said_why)
{
    static const struct {
        sl_str line;
        const char *problem;
    } rows[] = {
        { SL_STR_INIT(""), "no JSON object" },
        { SL_STR_INIT("ack"), "no JSON object" },
        { SL_STR_INIT("[]"), "no JSON object" },
        { SL_STR_INIT("null"), "no JSON object" },
        { SL_STR_INIT("{"), "no JSON object" },
        { SL_STR_INIT("{}"), "its answer has no \"id\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ack\"} x"), "no JSON object" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ack\"}{}"), "no JSON object" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ack\",}"), "no JSON object" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ack\0\"}"), "no JSON object" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ack\"\0}"), "no JSON object" },
        { SL_STR_INIT("{\"id\":1,\"result\":\"ack\"}"), "the \"id\" of its answer is not that of a message" },
        { SL_STR_INIT("{\"id\":\"ab\",\"result\":\"ack\"}"),
          "the \"id\" of its answer is not that of a message" },
        { SL_STR_INIT("{\"result\":\"ack\"}"), "its answer has no \"id\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\"}"), "its \"result\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":true}"), "its \"result\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ACK\"}"), "its \"result\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ack\",\"result\":\"park\"}"),
          "twice what \"result\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"id\":\"" ID "\",\"result\":\"ack\"}"), "twice what \"id\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ack\",\"reason\":1}"), "its \"reason\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ack\",\"retry_after_ms\":-1}"),
          "its \"retry_after_ms\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ack\",\"retry_after_ms\":\"1\"}"),
          "its \"retry_after_ms\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"result\":\"ack\",\"retry_after_ms\":1e300}"),
          "its \"retry_after_ms\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"type\":\"hello\",\"result\":\"ack\"}"),
          "its \"type\" is neither \"result\" nor \"progress\"" },
        { SL_STR_INIT("{\"id\":\"" ID "\",\"type\":\"progress\",\"result\":\"ack\"}"),
          "and has a \"result\"" },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        sl_lines_answer answer;
        char problem[256];

        EXPECT_ROW(parse(rows[i].line, &answer, problem) == SL_ERR_INVALID, i);
        EXPECT_ROW(strstr(problem, rows[i].problem) != NULL, i);
    }
}

TEST(lines_a_reason_of_a_handler_is_cut_and_printable)
{
    static char line[20000];
    sl_lines_answer answer;
    char problem[256];
    int bytes = snprintf(line, sizeof line, "{\"id\":\"" ID "\",\"result\":\"failed\",\"reason\":\"\xff\x7f");

    memset(line + bytes, 'r', 10000);
    memcpy(line + bytes + 10000, "\"}", 3);
    EXPECT_ERR(parse(sl_str_from(line), &answer, problem), SL_OK);
    EXPECT_EQ(strlen(answer.reason), SL_RESULT_REASON_BYTES_MAX);
    EXPECT_MEM(answer.reason, "? rrr", 5);
}

TEST(lines_any_bytes_are_read_without_harm)
{
    static const char seedling[] =
        "{\"id\":\"" ID "\",\"result\":\"ack\",\"reason\":\"x\\u0041\",\"retry_after_ms\":12}";

    for (uint64_t seed = 0; seed < 3000; seed++) {
        dice d = dice_from(seed);
        const size_t bytes = dice_pick(&d, sizeof seedling);
        char *line = malloc(bytes + 1); /* of its own, so that reading past its end is seen */
        sl_lines_answer answer;
        char problem[256];

        assert_non_null(line);
        memcpy(line, seedling + (dice_pick(&d, 4) == 0 ? sizeof seedling - 1 - bytes : 0), bytes);
        for (size_t changes = dice_pick(&d, 4); changes > 0 && bytes > 0; changes--)
            line[dice_pick(&d, bytes)] = (char)dice_u64(&d);
        (void)parse((sl_str){ line, bytes }, &answer, problem);
        (void)sl_lines_make_one_line(line, bytes);
        free(line);
    }
}

TEST(lines_json_is_recognised_and_put_on_one_line)
{
    static const struct {
        const char *json, *line; /* NULL: it is none */
    } rows[] = {
        { "{}", "{}" },
        { " [ ] ", " [ ] " },
        { "{\"a\":\n[1,\r\n2.5e-3,{\"b\":null}],\"c\":\"\\n\\u00e4\"}\n",
          "{\"a\": [1,  2.5e-3,{\"b\":null}],\"c\":\"\\n\\u00e4\"} " },
        { "-0", "-0" },
        { "true", "true" },
        { "\"\303\244\"", "\"\303\244\"" },
        { "", NULL },
        { " ", NULL },
        { "[1,]", NULL },
        { "[1}", NULL },
        { "\"a\nb\"", NULL },
        { "\"\377\"", NULL },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        char text[200];

        (void)snprintf(text, sizeof text, "%s", rows[i].json);
        EXPECT_ROW(sl_lines_make_one_line(text, strlen(text)) == (rows[i].line != NULL), i);
        EXPECT_ROW(rows[i].line == NULL || strcmp(text, rows[i].line) == 0, i);
    }
}

TEST(lines_json_that_is_too_deep_is_none)
{
    static char deep[2 * SL_LINES_DEPTH_MAX + 2];

    memset(deep, '[', SL_LINES_DEPTH_MAX);
    memset(deep + SL_LINES_DEPTH_MAX, ']', SL_LINES_DEPTH_MAX);
    EXPECT(sl_lines_make_one_line(deep, 2 * SL_LINES_DEPTH_MAX));
    memset(deep, '[', SL_LINES_DEPTH_MAX + 1);
    memset(deep + SL_LINES_DEPTH_MAX + 1, ']', SL_LINES_DEPTH_MAX + 1);
    EXPECT(!sl_lines_make_one_line(deep, 2 * SL_LINES_DEPTH_MAX + 2));
}

static void expect_line(const sl_job_message *message, uint64_t until_ns, const char *wanted)
{
    sl_job *job = sl_job_new(message);
    sl_buf out;

    assert_non_null(job);
    job->until_ns = until_ns;
    sl_buf_init(&out, &sl_alloc_default, 1000 * 1000);
    EXPECT_OK(sl_lines_add_message(&out, job, 1000));
    EXPECT_OK(sl_buf_append_u8(&out, 0));
    EXPECT_STR((char *)sl_buf_data(&out), wanted);
    sl_buf_done(&out);
    sl_job_free(job);
}

TEST(lines_a_message_is_one_line_of_json)
{
    sl_job_message message = { .token = 5,
                               .attempt = 2,
                               .revision = 9,
                               .created_ns = UINT64_C(1763247212123) * 1000000,
                               .stream = SL_STR_INIT("a\"\\\n\377"),
                               .type = SL_STR_INIT("Placed"),
                               .content_type = SL_STR_INIT("application/json; charset=utf-8"),
                               .data = SL_STR_INIT("{\"x\":\n1}"),
                               .metadata = SL_STR_INIT("no json") };

    message.event_id.bytes[15] = 1;
    expect_line(
        &message, 1000 + UINT64_C(30000) * 1000000,
        "{\"type\":\"message\",\"id\":\"00000000-0000-0000-0000-000000000001\",\"token\":5,\"attempt\":2,"
        "\"stream\":\"a\\u0022\\u005c\\u000a\\ufffd\",\"group\":\"\",\"event_type\":\"Placed\",\"revision\":"
        "9,"
        "\"content_type\":\"application/json; charset=utf-8\",\"created\":\"2025-11-15T22:53:32.123Z\","
        "\"remaining_ms\":30000,\"data\":{\"x\": 1},\"metadata_base64\":\"bm8ganNvbg==\"}\n");
    message = (sl_job_message){ .content_type = SL_STR_INIT("text/plain"),
                                .data = SL_STR_INIT("{}1"),
                                .created_ns = 0 };
    expect_line(
        &message, UINT64_MAX,
        "{\"type\":\"message\",\"id\":\"00000000-0000-0000-0000-000000000000\",\"token\":0,\"attempt\":0,"
        "\"stream\":\"\",\"group\":\"\",\"event_type\":\"\",\"revision\":0,\"content_type\":\"text/plain\","
        "\"created\":\"1970-01-01T00:00:00.000Z\",\"data_base64\":\"e30x\"}\n");
    message.content_type = SL_STR("application/vnd.a+json");
    message.data = SL_STR("{}");
    message.metadata = SL_STR("[1]");
    expect_line(
        &message, 0,
        "{\"type\":\"message\",\"id\":\"00000000-0000-0000-0000-000000000000\",\"token\":0,\"attempt\":0,"
        "\"stream\":\"\",\"group\":\"\",\"event_type\":\"\",\"revision\":0,\"content_type\":\"application/"
        "vnd.a+json\","
        "\"created\":\"1970-01-01T00:00:00.000Z\",\"remaining_ms\":0,\"data\":{},\"metadata\":[1]}\n");
}

TEST(lines_a_message_that_does_not_fit_leaves_the_buffer_as_it_was)
{
    const sl_job_message message = { .data = SL_STR_INIT("data") };
    sl_job *job = sl_job_new(&message);
    sl_buf out;

    sl_buf_init(&out, &sl_alloc_default, 100);
    EXPECT_OK(sl_buf_append(&out, "x", 1));
    EXPECT_ERR(sl_lines_add_message(&out, job, 0), SL_ERR_TOO_LARGE);
    EXPECT_EQ(out.bytes, 1);
    sl_buf_done(&out);
    sl_job_free(job);
}
