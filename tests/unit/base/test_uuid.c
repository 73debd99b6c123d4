/* tests/unit/base/test_uuid.c — identifiers in their three forms. */
#include "support.h"

#include "base/cleanup.h"
#include "base/uuid.h"

static const char example[] = "01234567-89ab-cdef-fedc-ba9876543210";
static const sl_uuid example_uuid = { { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba,
                                        0x98, 0x76, 0x54, 0x32, 0x10 } };

TEST(a_uuid_is_read_in_upper_and_lower_case_and_written_in_lower)
{
    static const char *const texts[] = { "01234567-89ab-cdef-fedc-ba9876543210",
                                         "01234567-89AB-CDEF-FEDC-BA9876543210",
                                         "01234567-89aB-CdEf-fEDc-Ba9876543210" };

    for (size_t i = 0; i < SL_COUNT_OF(texts); i++) {
        sl_uuid uuid;
        char text[SL_UUID_TEXT_BYTES + 1];
        EXPECT_OK(sl_uuid_parse(texts[i], SL_UUID_TEXT_BYTES, &uuid));
        EXPECT_MEM(uuid.bytes, example_uuid.bytes, 16);
        sl_uuid_format(uuid, text);
        EXPECT_STR(text, example);
    }
}

TEST(what_is_not_exactly_a_uuid_is_refused_and_nothing_is_written)
{
    static const char *const texts[] = {
        "",
        "01234567-89ab-cdef-fedc-ba987654321",
        "01234567-89ab-cdef-fedc-ba98765432100",
        "0123456789abcdeffedcba9876543210",
        "{01234567-89ab-cdef-fedc-ba987654321}",
        "01234567089ab-cdef-fedc-ba9876543210",
        "012345678-9ab-cdef-fedc-ba9876543210",
        "01234567-89ab-cdef-fedc_ba9876543210",
        "0123456/-89ab-cdef-fedc-ba9876543210",
        "0123456:-89ab-cdef-fedc-ba9876543210",
        "0123456@-89ab-cdef-fedc-ba9876543210",
        "0123456G-89ab-cdef-fedc-ba9876543210",
        "0123456`-89ab-cdef-fedc-ba9876543210",
        "0123456g-89ab-cdef-fedc-ba9876543210",
        "01234567-89ab-cdef-fedc-ba987654321 ",
        " 1234567-89ab-cdef-fedc-ba9876543210",
        "+1234567-89ab-cdef-fedc-ba9876543210",
    };

    for (size_t i = 0; i < SL_COUNT_OF(texts); i++) {
        sl_uuid uuid = example_uuid;
        EXPECT_ROW(sl_uuid_parse(texts[i], strlen(texts[i]), &uuid) == SL_ERR_INVALID, i);
        EXPECT_ROW(sl_uuid_equal(uuid, example_uuid), i);
    }
}

TEST(each_single_wrong_character_makes_a_uuid_invalid)
{
    for (size_t i = 0; i < SL_UUID_TEXT_BYTES; i++) {
        sl_uuid uuid;
        char text[SL_UUID_TEXT_BYTES + 1];
        memcpy(text, example, sizeof text);
        text[i] = 'x';
        EXPECT_ROW(sl_uuid_parse(text, SL_UUID_TEXT_BYTES, &uuid) == SL_ERR_INVALID, i);
        text[i] = '\0';
        EXPECT_ROW(sl_uuid_parse(text, SL_UUID_TEXT_BYTES, &uuid) == SL_ERR_INVALID, i);
    }
}

TEST(the_halves_of_a_uuid_are_its_first_and_last_eight_bytes)
{
    int64_t most = 0, least = 0;

    sl_uuid_to_halves(example_uuid, &most, &least);
    EXPECT(most == 0x0123456789abcdef);
    EXPECT(least == -0x123456789abcdf0);
    EXPECT(sl_uuid_equal(sl_uuid_from_halves(most, least), example_uuid));
}

TEST(halves_survive_the_way_there_and_back)
{
    static const int64_t halves[] = { 0, 1, -1, INT64_MIN, INT64_MAX, 0x80, -0x80, 0x7fffffff00000000 };

    for (size_t i = 0; i < SL_COUNT_OF(halves); i++) {
        for (size_t j = 0; j < SL_COUNT_OF(halves); j++) {
            int64_t most = 0, least = 0;
            sl_uuid_to_halves(sl_uuid_from_halves(halves[i], halves[j]), &most, &least);
            EXPECT_ROW(most == halves[i] && least == halves[j], i);
        }
    }
}

TEST(a_random_uuid_has_version_and_variant_and_keeps_the_other_122_bits)
{
    uint8_t random[16];

    for (unsigned fill = 0; fill < 256; fill++) {
        memset(random, (int)fill, sizeof random);
        const sl_uuid uuid = sl_uuid_v4(random);
        for (size_t i = 0; i < 16; i++) {
            const unsigned kept = i == 6 ? 0x0f : i == 8 ? 0x3f : 0xff;
            const unsigned set = i == 6 ? 0x40 : i == 8 ? 0x80 : 0;
            EXPECT_ROW(uuid.bytes[i] == ((fill & kept) | set), fill);
        }
    }
}

TEST(uuids_are_equal_only_in_all_bytes)
{
    EXPECT(sl_uuid_is_zero((sl_uuid){ { 0 } }));
    for (size_t i = 0; i < 16; i++) {
        sl_uuid uuid = { { 0 } };
        uuid.bytes[i] = 1;
        EXPECT_ROW(!sl_uuid_is_zero(uuid), i);
        EXPECT_ROW(!sl_uuid_equal(uuid, (sl_uuid){ { 0 } }), i);
        EXPECT_ROW(sl_uuid_equal(uuid, uuid), i);
    }
}

/* From uuid5() of another language; the last one needs more than two blocks of the hash. */
TEST(an_id_from_a_name_is_the_one_that_others_make_of_it_B16)
{
    static const struct {
        const char *space, *name, *wanted;
    } rows[] = {
        { "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "python.org", "886313e1-3b8a-5372-9b90-0c9aee199e5d" },
        { "6ba7b811-9dad-11d1-80b4-00c04fd430c8", "", "1b4db7eb-4057-5ddf-91e0-36dec72071f5" },
    };
    char text[SL_UUID_TEXT_BYTES + 1], name[200];
    sl_uuid space;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_OK(sl_uuid_parse(rows[i].space, SL_UUID_TEXT_BYTES, &space));
        sl_uuid_format(sl_uuid_v5(space, rows[i].name, strlen(rows[i].name)), text);
        EXPECT_STR(text, rows[i].wanted);
    }
    memset(name, 'a', sizeof name);
    EXPECT_OK(sl_uuid_parse(rows[0].space, SL_UUID_TEXT_BYTES, &space));
    sl_uuid_format(sl_uuid_v5(space, name, sizeof name), text);
    EXPECT_STR(text, "fe30bfa6-ef90-59b3-b108-118411d0f0ab");
}
