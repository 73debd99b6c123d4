/* tests/unit/pages/test_pages.c — what all pages say in the same way, and what they read from a question. */
#include "test.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "pages/pages.h"

enum {
    BODY_BYTES_MAX = 4096
};

static sl_pages_answer make_answer(void)
{
    sl_pages_answer answer = { .status = 1, .allow = "X", .challenge = "X" };

    sl_buf_init(&answer.body, &sl_alloc_default, BODY_BYTES_MAX);
    EXPECT_OK(sl_buf_append(&answer.body, "before", 6));
    return answer;
}

/* Ends the answer. */
static void expect_answer(sl_pages_answer *answer, unsigned status, const char *body)
{
    EXPECT_EQ(answer->status, status);
    EXPECT_EQ(answer->body.bytes, strlen(body));
    if (answer->body.bytes > 0)
        EXPECT_MEM(sl_buf_data(&answer->body), body, strlen(body));
    sl_buf_done(&answer->body);
}

TEST(an_answer_of_a_page_begins_as_200_without_anything)
{
    sl_pages_answer answer = make_answer();

    sl_pages_begin(&answer);
    EXPECT(answer.allow == NULL && answer.challenge == NULL && answer.job == NULL);
    EXPECT_STR(answer.content_type, "application/json");
    expect_answer(&answer, 200, "");
}

TEST(a_refusal_of_a_page_is_a_sentence_in_json)
{
    sl_pages_answer answer = make_answer();

    sl_pages_refuse(&answer, 418, "Say \"please\".");
    EXPECT_STR(answer.content_type, "application/json");
    expect_answer(&answer, 418, "{\"error\":\"Say \\\"please\\\".\"}\n");
    answer = make_answer();
    sl_pages_refuse_change(&answer);
    EXPECT_STR(answer.allow, "GET, HEAD");
    expect_answer(&answer, 405, "{\"error\":\"This page can only be read: use GET or HEAD.\"}\n");
}

TEST(an_object_is_shown_with_the_status_that_the_page_has_chosen)
{
    sl_pages_answer answer = make_answer();
    cJSON *const object = cJSON_CreateObject();

    EXPECT(cJSON_AddBoolToObject(object, "ready", false) != NULL);
    answer.status = 503;
    sl_pages_show(&answer, object);
    expect_answer(&answer, 503, "{\"ready\":false}\n");
    answer = make_answer();
    sl_pages_show(&answer, NULL);
    expect_answer(&answer, 500, "");
}

/* --- memory --- */

static int allocations_left;

static void *scarce_malloc(size_t bytes)
{
    return allocations_left-- > 0 ? malloc(bytes) : NULL;
}

TEST(a_refusal_without_memory_keeps_its_number)
{
    cJSON_Hooks hooks = { .malloc_fn = scarce_malloc, .free_fn = free };
    bool was_whole = false;

    for (int limit = 0; !was_whole; limit++) {
        sl_pages_answer answer = make_answer();
        EXPECT(limit < 100);
        allocations_left = limit;
        cJSON_InitHooks(&hooks);
        sl_pages_refuse(&answer, 421, "No.");
        cJSON_InitHooks(NULL);
        was_whole = allocations_left >= 0;
        expect_answer(&answer, 421, was_whole ? "{\"error\":\"No.\"}\n" : "");
    }
}

TEST(a_page_that_is_too_large_is_an_answer_without_a_body)
{
    sl_pages_answer answer = make_answer();
    cJSON *const object = cJSON_CreateObject();
    char text[BODY_BYTES_MAX];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    EXPECT(cJSON_AddStringToObject(object, "text", text) != NULL);
    sl_pages_show(&answer, object);
    expect_answer(&answer, 500, "");
}

/* --- pages that do not exist --- */

static bool two_rows(size_t index, sl_pages_row *ret_row)
{
    static const sl_pages_row rows[] = { { "", "/a", "the first" }, { "POST ", "/b/NAME", NULL } };

    if (index >= SL_COUNT_OF(rows))
        return false;
    *ret_row = rows[index];
    return true;
}

TEST(a_path_without_a_page_is_told_what_there_is)
{
    sl_pages_answer answer = make_answer();

    sl_pages_refuse_path(&answer, "/c\"", two_rows);
    expect_answer(
        &answer, 404,
        "{\"error\":\"There is no page /c\\\" here. These exist: /a (the first); POST /b/NAME\"}\n");
}

TEST(a_long_path_of_a_page_is_not_repeated_whole)
{
    sl_pages_answer answer = make_answer();
    char path[64 * 1024];

    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    sl_pages_refuse_path(&answer, path, two_rows);
    EXPECT_EQ(answer.status, 404);
    EXPECT(answer.body.bytes < 256);
    EXPECT(memmem(sl_buf_data(&answer.body), answer.body.bytes, "/b/NAME", 7) != NULL);
    sl_buf_done(&answer.body);
}

/* --- questions --- */

TEST(only_get_and_head_are_reading)
{
    EXPECT(sl_pages_is_reading("GET") && sl_pages_is_reading("HEAD"));
    EXPECT(!sl_pages_is_reading("POST") && !sl_pages_is_reading("get") && !sl_pages_is_reading(""));
}

TEST(the_name_in_a_host_header_is_without_its_port)
{
    static const struct {
        const char *header, *name;
        bool is_number;
    } rows[] = {
        { "localhost", "localhost", false },
        { " localhost:2114\t", "localhost", false },
        { "127.0.0.1:2114", "127.0.0.1", true },
        { "[::1]:2114", "::1", true },
        { "[fe80::AB]", "fe80::AB", true },
        { "[::1", "[::1", false },
        { "[", "[", false },
        { "[]", "", false },
        { ":2114", "", false },
        { "", "", false },
        { "bead", "bead", false }, /* hexadecimal letters are a name without a colon */
        { "10.1.2.3.", "10.1.2.3.", false },
        { "10.1.2.3.example", "10.1.2.3.example", false },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const sl_str name = sl_pages_host_name(sl_str_from(rows[i].header));
        if (!sl_str_equal(name, sl_str_from(rows[i].name)) || sl_pages_is_number(name) != rows[i].is_number)
            fail_msg("row %zu: \"%s\"", i, rows[i].header);
    }
    EXPECT_EQ(sl_pages_host_name((sl_str){ 0 }).bytes, 0);
}

TEST(names_of_hosts_are_the_same_in_capitals_and_nothing_is_no_name)
{
    EXPECT(sl_pages_same_name(SL_STR("LocalHost"), "localhost"));
    EXPECT(!sl_pages_same_name(SL_STR("localhos"), "localhost"));
    EXPECT(!sl_pages_same_name(SL_STR("localhost"), "localhos"));
    EXPECT(!sl_pages_same_name(SL_STR(""), ""));
    EXPECT(!sl_pages_same_name(SL_STR("localhost"), NULL));
}
