/* Rules of cli/json_value.h. */
#include "base/support.h"

#include "cli/json_value.h"

#include <cjson/cJSON.h>

TEST(json_that_is_an_object_is_told_from_other_values)
{
    EXPECT(sl_json_is_value(SL_STR("[{}]")));
    EXPECT(!sl_json_is_value(SL_STR("{")));
    EXPECT(sl_json_is_object(SL_STR(" {\"a\": 1} ")));
    EXPECT(!sl_json_is_object(SL_STR("[{}]")));
    EXPECT(!sl_json_is_object(SL_STR("{")));
    EXPECT(!sl_json_is_object(SL_STR("")));
}

TEST(json_that_is_nested_too_deep_is_none)
{
    char text[2 * SL_JSON_DEPTH_MAX + 3];

    memset(text, '[', SL_JSON_DEPTH_MAX);
    memset(text + SL_JSON_DEPTH_MAX, ']', SL_JSON_DEPTH_MAX);
    EXPECT(sl_json_is_value((sl_str){ text, 2 * SL_JSON_DEPTH_MAX }));
    memset(text, '[', SL_JSON_DEPTH_MAX + 1);
    memset(text + SL_JSON_DEPTH_MAX + 1, ']', SL_JSON_DEPTH_MAX + 1);
    EXPECT(!sl_json_is_value((sl_str){ text, 2 * SL_JSON_DEPTH_MAX + 2 }));
}

static void expect_compact(const char *text, const char *wanted)
{
    sl_buf into;

    sl_buf_init(&into, &sl_alloc_default, 1024);
    EXPECT_OK(sl_json_compact(sl_str_from(text), &into));
    EXPECT_OK(sl_buf_append_u8(&into, 0));
    EXPECT_STR((char *)sl_buf_data(&into), wanted);
    sl_buf_done(&into);
}

TEST(compact_json_has_no_blanks_between_its_parts_and_nothing_that_a_terminal_obeys)
{
    expect_compact(" {\n  \"a b\" : [ 1 , 2.50 ] ,\t\"c\":\"x \\\" y\" }\r\n",
                   "{\"a b\":[1,2.50],\"c\":\"x \\\" y\"}");
    expect_compact("\"\\\\\" ", "\"\\\\\"");
    expect_compact("[\"\\\\\", \" \"]",
                   "[\"\\\\\",\" \"]"); /* a backslash that does not escape the quotation mark */
    expect_compact("\"\x7f\xc2\x9b"
                   "31m\xc2\xa0\"",
                   "\"\\u007f\\u009b"
                   "31m\xc2\xa0\"");
    expect_compact("123456789012345678901234567890",
                   "123456789012345678901234567890"); /* nothing is rounded */
}

/* Random texts out of pieces: what we take for JSON cJSON can read, and compacting does not change what it says. */
TEST(what_is_taken_for_json_can_be_read_by_others_before_and_after_compacting)
{
    static const char *const pieces[] = { "{",     "}",        "[",  "]",       ",",    ":",
                                          "\"a\"", "\"\\\"\"", "1",  "-2.5e-3", "true", "null",
                                          " ",     "\n",       "\"", "\\",      "0" };
    uint64_t good = 0;

    for (uint64_t seed = 0; seed < 60000; seed++) {
        dice d = dice_from(seed);
        char text[128] = "";
        sl_buf into;

        for (size_t i = 1 + dice_pick(&d, 7); i > 0; i--)
            strcat(text, pieces[dice_pick(&d, sizeof pieces / sizeof pieces[0])]);
        if (!sl_json_is_value(sl_str_from(text)))
            continue;
        good++;
        sl_buf_init(&into, &sl_alloc_default, 1024);
        EXPECT_OK(sl_json_compact(sl_str_from(text), &into));
        EXPECT_RUN(sl_json_is_value((sl_str){ (char *)sl_buf_data(&into), into.bytes }), seed, 0);
        cJSON *const before = cJSON_Parse(text);
        cJSON *const after = cJSON_ParseWithLength((char *)sl_buf_data(&into), into.bytes);
        EXPECT_RUN(before != NULL && after != NULL && cJSON_Compare(before, after, true), seed, 1);
        cJSON_Delete(before);
        cJSON_Delete(after);
        sl_buf_done(&into);
    }
    EXPECT(good > 1000);
}
