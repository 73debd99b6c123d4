/* tests/unit/server/test_groups_names.c — the numbers that names give, which are in the records of every data folder. */
#include "test.h"

#include "server/groups/names.h"

#include <stdio.h>
#include <string.h>

static const char *session_text(const char *user, const char *name)
{
    static char text[SL_UUID_TEXT_BYTES + 1];

    sl_uuid_format(sl_session_of(sl_str_from(user), sl_str_from(name)), text);
    return text;
}

/* Another number would mean that a consumer does not find its leases again after an upgrade. */
TEST(a_name_gives_the_same_session_for_ever)
{
    EXPECT_STR(session_text("", "worker-1"), "6ff2807f-756f-419c-aff8-bd06c1ec320f");
    EXPECT_STR(session_text("alice", "worker-1"), "01d267f6-e203-405d-9be6-b0a4feaaa1ab");
    EXPECT_EQ(sl_tag_of_name(SL_STR("worker-1")), UINT64_C(0x6e9fe09eb5190fd9));
    EXPECT_EQ(sl_tag_of_label(SL_STR("version"), SL_STR("42")), UINT64_C(0x219033cbe3cebc99));
    EXPECT_EQ(sl_key_of(SL_STR("orders")), UINT64_C(0xfa32574048d2ed3f));
}

TEST(parts_of_names_are_not_mixed_up)
{
    EXPECT(
        !sl_uuid_equal(sl_session_of(SL_STR("ab"), SL_STR("c")), sl_session_of(SL_STR("a"), SL_STR("bc"))));
    EXPECT(sl_tag_of_label(SL_STR("ab"), SL_STR("c")) != sl_tag_of_label(SL_STR("a"), SL_STR("bc")));
    EXPECT(sl_tag_of_name(SL_STR("a")) != sl_tag_of_label(SL_STR("a"), SL_STR("")));
}

/* Lists, sessions and tags are made of the same, and a list shows no half characters. */
TEST(names_that_are_too_long_are_cut_between_characters)
{
    static const struct {
        const char *at_254; /* what is there from that byte on */
        size_t bytes;
    } rows[] = {
        { "ab", 256 },
        { "abc", 256 },
        { "a\xc3\xa4z", 255 },
        { "\xc3\xa4z", 256 },
        { "\xe2\x82\xac", 254 },
        { "a\xe2\x82\xac", 255 },
        { "\xf0\x9f\x98\x80", 254 },
        { "\x80\x80\x80\x80", 256 },
    };
    char text[300];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(text, i == 7 ? '\x80' : 'n', 254);
        snprintf(text + 254, sizeof text - 254, "%s", rows[i].at_254);
        EXPECT_EQ(sl_consumer_name_of(sl_str_from(text)).bytes, rows[i].bytes);
    }
    EXPECT_EQ(sl_consumer_name_of(SL_STR("")).bytes, 0);
}
