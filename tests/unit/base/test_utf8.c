/* tests/unit/base/test_utf8.c — every character is read back, and everything else is refused. */
#include "support.h"

#include "base/cleanup.h"
#include "base/utf8.h"

/* A second way from number to bytes, for the way back. */
static size_t encode(uint32_t code, char *bytes)
{
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    const size_t count = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = count; --i > 0; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)((0xf00u >> count & 0xff) | code);
    return count;
}

TEST(every_character_of_unicode_is_read_and_surrogates_are_not)
{
    for (uint32_t code = 0; code <= 0x110fff; code++) {
        const bool is_character = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
        char bytes[4];
        uint32_t read = UINT32_MAX;
        const size_t count = encode(code, bytes);
        EXPECT_ROW(sl_utf8_first((sl_str){ bytes, count }, &read) == (is_character ? count : 0), code);
        EXPECT_ROW(read == (is_character ? code : UINT32_MAX), code);
        EXPECT_ROW(sl_utf8_first((sl_str){ bytes, count - 1 }, &read) == 0, code); /* broken off */
    }
}

TEST(what_is_not_utf8_is_refused)
{
    static const sl_str rows[] = {
        SL_STR_INIT("\x80"),                     /* a byte that only follows */
        SL_STR_INIT("\xbf"),                     /* the same */
        SL_STR_INIT("\xc0\x80"),                 /* zero in two bytes */
        SL_STR_INIT("\xc1\xbf"),                 /* U+007F in two */
        SL_STR_INIT("\xc0\xaf"),                 /* a slash in two */
        SL_STR_INIT("\xe0\x9f\xbf"),             /* U+07FF in three */
        SL_STR_INIT("\xf0\x8f\xbf\xbf"),         /* U+FFFF in four */
        SL_STR_INIT("\xed\xa0\x80"),             /* U+D800 */
        SL_STR_INIT("\xed\xbf\xbf"),             /* U+DFFF */
        SL_STR_INIT("\xf4\x90\x80\x80"),         /* U+110000 */
        SL_STR_INIT("\xf8\x88\x80\x80\x80"),     /* five bytes */
        SL_STR_INIT("\xfc\x84\x80\x80\x80\x80"), /* six */
        SL_STR_INIT("\xfe"),
        SL_STR_INIT("\xff"),
        SL_STR_INIT("\xc3"),     /* broken off */
        SL_STR_INIT("\xc3\x28"), /* followed by something else */
        SL_STR_INIT("\xe2\x82"),
        SL_STR_INIT("\xe2\x28\xa1"),
        SL_STR_INIT("\xe2\x82\x28"),
        SL_STR_INIT("\xe2\x82\xc0"),
        SL_STR_INIT("\xf0\x9f\x98"),
        SL_STR_INIT("\xf0\x9f\x98\x28"),
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        uint32_t code = 77;
        EXPECT_ROW(sl_utf8_first(rows[i], &code) == 0 && code == 77, i);
        EXPECT_ROW(!sl_utf8_valid(rows[i]), i);
    }
    EXPECT_EQ(sl_utf8_first((sl_str){ NULL, 0 }, &(uint32_t){ 0 }), 0);
}

TEST(a_text_is_valid_when_all_of_it_is)
{
    EXPECT(sl_utf8_valid(SL_STR("")));
    EXPECT(sl_utf8_valid((sl_str){ NULL, 0 }));
    EXPECT(sl_utf8_valid(SL_STR("a\0b")));
    EXPECT(sl_utf8_valid(SL_STR("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80")));
    EXPECT(!sl_utf8_valid(SL_STR("good \xff bad")));
    EXPECT(!sl_utf8_valid(SL_STR("good\xe2\x82")));
}
