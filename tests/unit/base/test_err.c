/* tests/unit/base/test_err.c — the one list of errors. */
#include "test.h"

#include "base/err.h"

#include <string.h>

TEST(every_error_has_a_name_and_a_sentence_without_a_full_stop)
{
    for (unsigned i = 0; i < SL_ERR_COUNT_; i++) {
        const char *text = sl_err_text((sl_err)i);
        EXPECT(strlen(text) > 0);
        EXPECT(text[strlen(text) - 1] != '.');
        EXPECT(strlen(sl_err_name((sl_err)i)) > 0);
    }
}

TEST(no_two_errors_share_a_name_or_a_text)
{
    for (unsigned i = 0; i < SL_ERR_COUNT_; i++) {
        for (unsigned j = 0; j < i; j++) {
            EXPECT(strcmp(sl_err_name((sl_err)i), sl_err_name((sl_err)j)) != 0);
            EXPECT(strcmp(sl_err_text((sl_err)i), sl_err_text((sl_err)j)) != 0);
        }
    }
}

TEST(an_error_is_named_as_in_the_list)
{
    EXPECT_STR(sl_err_name(SL_OK), "OK");
    EXPECT_STR(sl_err_name(SL_ERR_LEASE_LOST), "LEASE_LOST");
    EXPECT_STR(sl_err_name(SL_ERR_IO), "IO");
    EXPECT_STR(sl_err_text(SL_ERR_NOMEM), "out of memory");
}

TEST(an_error_may_be_retried_only_when_nothing_but_time_must_change)
{
    EXPECT(!sl_err_may_retry(SL_OK));
    EXPECT(sl_err_may_retry(SL_ERR_DRAINING));
    EXPECT(sl_err_may_retry(SL_ERR_FULL));
    EXPECT(!sl_err_may_retry(SL_ERR_LEASE_LOST));
    EXPECT(!sl_err_may_retry(SL_ERR_INVALID));
}

TEST(a_number_that_is_no_error_is_still_answered)
{
    static const int numbers[] = { SL_ERR_COUNT_, SL_ERR_COUNT_ + 1, 1 << 30, -1 };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        EXPECT_STR(sl_err_name((sl_err)numbers[i]), "UNKNOWN");
        EXPECT(strlen(sl_err_text((sl_err)numbers[i])) > 0);
        EXPECT(!sl_err_may_retry((sl_err)numbers[i]));
    }
}
