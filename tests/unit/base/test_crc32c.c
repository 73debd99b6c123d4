/* tests/unit/base/test_crc32c.c — both ways of computing the checksum, against published values and each other. */
#include "support.h"

#include "base/crc32c.h"

#include <string.h>

TEST(crc32c_has_the_published_values)
{
    uint8_t zeros[32] = { 0 }, ones[32], counting[32];

    memset(ones, 0xff, sizeof ones);
    for (uint8_t i = 0; i < 32; i++)
        counting[i] = i;
    EXPECT_EQ(sl_crc32c(0, "123456789", 9), 0xe3069283);
    EXPECT_EQ(sl_crc32c(0, zeros, 32), 0x8a9136aa); /* these three are in RFC 3720, appendix B.4 */
    EXPECT_EQ(sl_crc32c(0, ones, 32), 0x62a8ab43);
    EXPECT_EQ(sl_crc32c(0, counting, 32), 0x46dd794e);
    EXPECT_EQ(sl_crc32c(7, "", 0), 7);
}

TEST(crc32c_by_instruction_and_by_table_are_the_same_at_every_length_and_offset)
{
    static uint8_t data[10000];
    uint64_t random = 1;

    for (size_t i = 0; i < sizeof data; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        data[i] = (uint8_t)(random >> 56);
    }
    for (size_t bytes = 0; bytes < sizeof data - 8; bytes += bytes < 200 ? 1 : 61)
        for (size_t offset = 0; offset < 8; offset += 3)
            EXPECT_EQ(sl_crc32c(5, data + offset, bytes), sl_crc32c_by_table(5, data + offset, bytes));
}

TEST(crc32c_goes_on_where_it_stopped)
{
    static const char text[] = "a lease that ran out is the holder's until another takes it";

    for (size_t cut = 0; cut <= sizeof text; cut++)
        EXPECT_EQ(sl_crc32c(sl_crc32c(0, text, cut), text + cut, sizeof text - cut),
                  sl_crc32c(0, text, sizeof text));
}
