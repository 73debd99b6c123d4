/* Stream metadata: what the JSON means, what it does not, and how "$tb" is put into it. */
#include "../base/support.h"

#include "base/cleanup.h"
#include "store/metadata.h"
#include "store/store.h"

#define MAX SL_REVISION_MAX

TEST(metadata_is_read_as_far_as_it_is_valid)
{
    static const struct {
        const char *json;
        sl_retention wanted;
    } rows[] = {
        { "{}", { 0, 0, 0 } },
        { "{\"$maxCount\":1,\"$maxAge\":2,\"$tb\":3}", { 1, 2, 3 } },
        { " \t\r\n{ \"$maxCount\" : 7 } \n", { 7, 0, 0 } },
        { "\xef\xbb\xbf{\"$tb\":3}", { 0, 0, 3 } },
        { "{\"$maxCount\":1.0e2}", { 100, 0, 0 } },
        { "{\"$maxCount\":9007199254740992}", { 9007199254740992, 0, 0 } },
        { "{\"$tb\":9223372036854775807}", { 0, 0, MAX } },
        { "{\"$tb\":9223372036854773760}", { 0, 0, UINT64_C(9223372036854773760) } },
        { "{\"$tb\":18446744073709551615}", { 0, 0, 0 } },
        { "{\"$tb\":1e19}", { 0, 0, 0 } },
        { "{\"$tb\":1e999}", { 0, 0, 0 } },
        { "{\"$tb\":-0.5}", { 0, 0, 0 } },
        { "{\"$tb\":0.5}", { 0, 0, 0 } },
        { "{\"$maxCount\":0,\"$maxAge\":0}", { 0, 0, 0 } },
        { "{\"$maxCount\":-5,\"$maxAge\":-5,\"$tb\":-5}", { 0, 0, 0 } },
        { "{\"$maxCount\":true,\"$maxAge\":null,\"$tb\":[3]}", { 0, 0, 0 } },
        { "{\"$maxcount\":5,\"$TB\":5}", { 0, 0, 0 } },
        { "{\"$maxCount\":5,\"$maxCount\":6}", { 6, 0, 0 } },
        { "{\"$maxCount\":5,\"$maxCount\":\"x\"}", { 5, 0, 0 } },
        { "{\"deep\":{\"$tb\":5}}", { 0, 0, 0 } },
        { "{\"\\u0024tb\":5}", { 0, 0, 5 } },
        { "[]", { 0, 0, 0 } },
        { "3", { 0, 0, 0 } },
        { "\"$tb\"", { 0, 0, 0 } },
        { "null", { 0, 0, 0 } },
        { "", { 0, 0, 0 } },
        { "{\"$tb\":5", { 0, 0, 0 } },
        { "{\"$tb\":5}}", { 0, 0, 0 } },
        { "{\"$tb\":5} x", { 0, 0, 0 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_retention is = sl_metadata_parse(sl_str_from(rows[i].json));

        EXPECT_ROW(is.max_count == rows[i].wanted.max_count, i);
        EXPECT_ROW(is.max_age_s == rows[i].wanted.max_age_s, i);
        EXPECT_ROW(is.truncate_before == rows[i].wanted.truncate_before, i);
    }
}

TEST(deep_long_and_broken_metadata_is_empty_and_harmless)
{
    static char text[SL_METADATA_BYTES_MAX + 1024];
    const sl_str all = { text, sizeof text };

    memset(text, '[', sizeof text);
    EXPECT_EQ(sl_metadata_parse((sl_str){ text, SL_METADATA_BYTES_MAX }).truncate_before, 0);
    EXPECT_EQ(sl_metadata_parse(all).truncate_before, 0);
    for (size_t i = 0; i < sizeof text; i += 5)
        memcpy(text + i, "{\"a\":", sizeof text - i < 5 ? sizeof text - i : 5);
    EXPECT_EQ(sl_metadata_parse((sl_str){ text, SL_METADATA_BYTES_MAX }).truncate_before, 0);
    memset(text, ' ', sizeof text);
    memcpy(text, "{\"$tb\":5}", 9);
    EXPECT_EQ(sl_metadata_parse((sl_str){ text, SL_METADATA_BYTES_MAX }).truncate_before, 5);
    EXPECT_EQ(sl_metadata_parse(all).truncate_before, 0); /* longer than anything that is let in */
}

static const char *undeleted(const char *json, uint64_t truncate_before)
{
    static char text[256];
    SL_CLEANUP(sl_buf_done) sl_buf out;

    sl_buf_init(&out, &sl_alloc_default, sizeof text - 1);
    EXPECT_OK(sl_metadata_undelete(sl_str_from(json), truncate_before, &out));
    memcpy(text, sl_buf_data(&out), out.bytes);
    text[out.bytes] = '\0';
    return text;
}

TEST(undeleting_changes_tb_and_nothing_else)
{
    static const struct {
        const char *json, *wanted;
    } rows[] = {
        { "{}", "{\"$tb\":7}" },
        { " { } ", "{\"$tb\":7}" },
        { "{\"$tb\":9223372036854775807}", "{\"$tb\":7}" },
        { "{\"$tb\":1,\"$tb\":2}", "{\"$tb\":7}" },
        { "{\"a\":12345678901234567890,\"$tb\":1}", "{\"a\":12345678901234567890,\"$tb\":7}" },
        { "{\"$tb\":1 , \"a\" : [1,{\"$tb\":2},\"}\"] }", "{\"a\" : [1,{\"$tb\":2},\"}\"] ,\"$tb\":7}" },
        { "{\"a\\\"b\":\"c\\\\\",\"$tb\":3,\"d\":\"{,\"}", "{\"a\\\"b\":\"c\\\\\",\"d\":\"{,\",\"$tb\":7}" },
        { "\xef\xbb\xbf{\"a\":1}", "{\"a\":1,\"$tb\":7}" },
        { "not json", "{\"$tb\":7}" },
        { "[1]", "{\"$tb\":7}" },
        { "", "{\"$tb\":7}" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_STR(undeleted(rows[i].json, 7), rows[i].wanted);
        EXPECT_ROW(sl_metadata_parse(sl_str_from(rows[i].wanted)).truncate_before == 7, i);
    }
    EXPECT_STR(undeleted("{}", UINT64_MAX), "{\"$tb\":18446744073709551615}");
}

TEST(an_escaped_tb_loses_against_the_new_one)
{
    EXPECT_EQ(
        sl_metadata_parse(sl_str_from(undeleted("{\"\\u0024tb\":9223372036854775807}", 4))).truncate_before,
        4);
}

/* The largest metadata that is let in still counts after "$tb" was added to it. */
TEST(undeleting_never_makes_metadata_too_long_to_count)
{
    static char text[SL_METADATA_BYTES_MAX + 1];
    SL_CLEANUP(sl_buf_done) sl_buf out;

    memset(text, 'x', sizeof text);
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + SL_METADATA_BYTES_MAX - 2, "\"}", 2);
    sl_buf_init(&out, &sl_alloc_default, 2 * sizeof text);
    EXPECT_OK(sl_metadata_undelete((sl_str){ text, SL_METADATA_BYTES_MAX }, MAX - 1, &out));
    EXPECT(out.bytes > SL_METADATA_BYTES_MAX);
    EXPECT(sl_metadata_parse((sl_str){ (const char *)sl_buf_data(&out), out.bytes }).truncate_before > 0);
}

TEST(undeleting_without_room_says_so)
{
    for (size_t limit = 0; limit < 17; limit++) {
        SL_CLEANUP(sl_buf_done) sl_buf out;

        sl_buf_init(&out, &sl_alloc_default, limit);
        EXPECT_ERR(sl_metadata_undelete(SL_STR("{\"a\":1}"), 7, &out), limit < 15 ? SL_ERR_TOO_LARGE : SL_OK);
    }
}

TEST(a_metadata_stream_belongs_to_the_rest_of_its_name)
{
    sl_str owner = SL_STR("untouched");

    EXPECT(!sl_metadata_owner(SL_STR("$x"), &owner));
    EXPECT(!sl_metadata_owner(SL_STR("x$$"), &owner));
    EXPECT(sl_str_equal(owner, SL_STR("untouched")));
    EXPECT(sl_metadata_owner(SL_STR("$$$x"), &owner));
    EXPECT(sl_str_equal(owner, SL_STR("$x")));
}
