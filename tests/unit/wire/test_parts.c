/* tests/unit/wire/test_parts.c — the small parts: codings, metadata, rates, ledgers, status, spare memory. */
#include "../base/support.h"

#include "base/cleanup.h"
#include "wire/coding.h"
#include "wire/ledger.h"
#include "wire/limits.h"
#include "wire/memory.h"
#include "wire/metadata.h"
#include "wire/rate.h"
#include "wire/status.h"

typedef sl_err code_fn(sl_buf *buf, sl_str text);

static const char *coded(code_fn *code, sl_str text)
{
    static char shown[256];
    sl_buf buf;

    sl_buf_init(&buf, &sl_alloc_default, 200);
    if (code(&buf, text) != SL_OK)
        return "error";
    snprintf(shown, sizeof shown, "%.*s", (int)buf.bytes, buf.bytes == 0 ? "" : (char *)sl_buf_data(&buf));
    sl_buf_done(&buf);
    return shown;
}

TEST(wire_base64_is_written_without_padding_and_read_with_and_without)
{
    static const struct {
        const char *bytes, *text, *padded;
    } rows[] = { { "", "", "" },
                 { "f", "Zg", "Zg==" },
                 { "fo", "Zm8", "Zm8=" },
                 { "foo", "Zm9v", "Zm9v" },
                 { "foob", "Zm9vYg", "Zm9vYg==" },
                 { "fooba", "Zm9vYmE", "Zm9vYmE=" },
                 { "foobar", "Zm9vYmFy", "Zm9vYmFy" },
                 { "\xff\xfe\xfd?>", "//79Pz4", "//79Pz4=" } };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        EXPECT_STR(coded(sl_base64_append, sl_str_from(rows[i].bytes)), rows[i].text);
        EXPECT_STR(coded(sl_base64_append_decoded, sl_str_from(rows[i].text)), rows[i].bytes);
        EXPECT_STR(coded(sl_base64_append_decoded, sl_str_from(rows[i].padded)), rows[i].bytes);
    }
}

TEST(wire_what_is_not_base64_is_refused)
{
    static const char *const texts[] = { "Z",   "Zm9vY", "Z===",  "=",    "====", "Zg=",
                                         "Z g", "Zg==x", "Zm9v=", "Zm8-", "a=bc" };

    for (size_t i = 0; i < SL_COUNT_OF(texts); i++)
        EXPECT_ROW(strcmp(coded(sl_base64_append_decoded, sl_str_from(texts[i])), "error") == 0, i);
}

TEST(wire_base64_survives_every_byte)
{
    dice d = dice_from(7);

    for (size_t bytes = 0; bytes < 100; bytes++) {
        uint8_t data[100];
        sl_buf text, back;
        sl_buf_init(&text, &sl_alloc_default, 1000);
        sl_buf_init(&back, &sl_alloc_default, 1000);
        for (size_t i = 0; i < bytes; i++)
            data[i] = (uint8_t)dice_u64(&d);
        EXPECT_OK(sl_base64_append(&text, (sl_str){ (char *)data, bytes }));
        EXPECT_OK(sl_base64_append_decoded(&back, (sl_str){ (char *)sl_buf_data(&text), text.bytes }));
        EXPECT_EQ(back.bytes, bytes);
        if (bytes > 0)
            EXPECT_MEM(sl_buf_data(&back), data, bytes);
        sl_buf_done(&text);
        sl_buf_done(&back);
    }
}

TEST(wire_messages_are_written_in_printable_ascii)
{
    static const struct {
        const char *plain, *sent;
    } rows[] = { { "", "" },
                 { "plain text", "plain text" },
                 { "100%", "100%25" },
                 { " both ends ", "%20both ends%20" },
                 { " ", "%20" },
                 { "\r\n\t~\x7f", "%0D%0A%09~%7F" },
                 { "\xc3\xbc", "%C3%BC" } };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        EXPECT_STR(coded(sl_percent_append, sl_str_from(rows[i].plain)), rows[i].sent);
        EXPECT_STR(coded(sl_percent_append_decoded, sl_str_from(rows[i].sent)), rows[i].plain);
    }
    EXPECT_STR(coded(sl_percent_append_decoded, SL_STR("%")), "%");
    EXPECT_STR(coded(sl_percent_append_decoded, SL_STR("%4")), "%4");
    EXPECT_STR(coded(sl_percent_append_decoded, SL_STR("%4g%41%")), "%4gA%");
    EXPECT_STR(coded(sl_percent_append_decoded, SL_STR("%c3%BC")), "\xc3\xbc");
}

TEST(wire_a_timeout_is_one_to_eight_digits_and_a_unit)
{
    static const struct {
        const char *text;
        sl_err err;
        uint64_t ns;
    } rows[] = {
        { "1n", SL_OK, 1 },
        { "1u", SL_OK, 1000 },
        { "1m", SL_OK, 1000000 },
        { "10S", SL_OK, 10000000000 },
        { "1M", SL_OK, 60000000000 },
        { "2562047H", SL_OK, 2562047 * UINT64_C(3600000000000) },
        { "99999999H", SL_OK, UINT64_MAX },
        { "00000001S", SL_OK, 1000000000 },
        { "0S", SL_OK, 0 },
        { "000000001S", SL_ERR_INVALID, 0 },
        { "", SL_ERR_INVALID, 0 },
        { "S", SL_ERR_INVALID, 0 },
        { "10", SL_ERR_INVALID, 0 },
        { "10s", SL_ERR_INVALID, 0 },
        { "-1S", SL_ERR_INVALID, 0 },
        { " 1S", SL_ERR_INVALID, 0 },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        uint64_t ns = 0;
        EXPECT_ROW(sl_timeout_parse(sl_str_from(rows[i].text), &ns) == rows[i].err, i);
        EXPECT_ROW(ns == rows[i].ns, i);
    }
}

TEST(wire_a_timeout_never_becomes_shorter_on_its_way)
{
    static const uint64_t values[] = {
        1,           999,         99999999,          100000000,      100000001, 10000000000,
        99999999999, 99999999001, 99999999000000001, UINT64_MAX - 1, UINT64_MAX
    };

    for (size_t i = 0; i < SL_COUNT_OF(values); i++) {
        char text[SL_TIMEOUT_CHARS_MAX];
        uint64_t back;
        sl_timeout_format(values[i], text);
        EXPECT_ROW(sl_timeout_parse(sl_str_from(text), &back) == SL_OK, i);
        EXPECT_ROW(back >= values[i], i);
        EXPECT_ROW(back - values[i] <= values[i] / 10000, i);
    }
}

TEST(wire_a_rate_allows_its_burst_and_then_its_pace)
{
    const sl_rate rate = { 5, 10 };
    sl_bucket bucket = { 0 };
    uint64_t now_ns = 1000;

    for (int i = 0; i < 5; i++)
        EXPECT(sl_bucket_take(&bucket, rate, now_ns));
    EXPECT(!sl_bucket_take(&bucket, rate, now_ns));
    EXPECT(!sl_bucket_take(&bucket, rate, now_ns + 99999999));
    EXPECT(sl_bucket_take(&bucket, rate, now_ns + 100000000));
    EXPECT(!sl_bucket_take(&bucket, rate, now_ns + 100000000));
    now_ns += 60000000000; /* a long rest allows one burst, not sixty */
    for (int i = 0; i < 5; i++)
        EXPECT(sl_bucket_take(&bucket, rate, now_ns));
    EXPECT(!sl_bucket_take(&bucket, rate, now_ns));
}

/* A model that knows nothing of debts: what the peer may send is the window, plus all credit, minus all that came. */
TEST(wire_a_ledger_never_lets_more_in_than_the_window_and_one_message)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        dice d = dice_from(seed);
        sl_ledger ledger = { 0 };
        const size_t window = 100, message_max = 1000;
        size_t may_send = window, message_left = 0, done = 0;

        for (unsigned step = 0; step < 2000; step++) {
            if (message_left == 0)
                message_left = 1 + dice_pick(&d, dice_pick(&d, 5) == 0 ? message_max : 60);
            if (dice_pick(&d, 3) > 0 && may_send > 0) {
                const size_t bytes = 1 + dice_pick(&d, may_send < message_left ? may_send : message_left);
                may_send -= bytes;
                message_left -= bytes;
                may_send += sl_ledger_partial(&ledger, bytes);
                if (message_left == 0)
                    sl_ledger_complete(&ledger, ledger.partial);
            } else if (ledger.held > 0) {
                const size_t bytes = dice_pick(&d, 2) ? ledger.held : 1 + dice_pick(&d, ledger.held);
                may_send += sl_ledger_consume(&ledger, bytes);
                done += bytes;
            }
            EXPECT_RUN(ledger.held + ledger.partial <= window + message_max, seed, step);
            EXPECT_RUN(ledger.held > 0 || may_send == window, seed, step); /* nothing held: nothing is owed */
        }
        EXPECT_RUN(done > 5000, seed, 0);
    }
}

TEST(wire_a_ledger_moves_held_bytes_back_when_a_pause_ends)
{
    sl_ledger ledger = { 0 };

    EXPECT_EQ(sl_ledger_partial(&ledger, 10), 10);
    sl_ledger_hold(&ledger, 50); /* came while paused */
    sl_ledger_complete(&ledger, 10);
    EXPECT_EQ(sl_ledger_consume(&ledger, 40), 30);
    EXPECT_EQ(sl_ledger_reopen(&ledger, 20), 20);
    EXPECT_EQ(ledger.held, 0);
    EXPECT_EQ(ledger.partial, 20);
}

TEST(wire_metadata_keys_that_belong_to_the_protocol_are_not_for_applications)
{
    static const struct {
        const char *key;
        bool allowed;
    } rows[] = { { "exception", true },
                 { "x.y_z-9", true },
                 { "grpc-retry-pushback-ms", true },
                 { "grpc-status-details-bin", true },
                 { "grpc-status", false },
                 { "grpc-anything", false },
                 { ":path", false },
                 { "te", false },
                 { "content-type", false },
                 { "connection", false },
                 { "Upper", false },
                 { "a b", false },
                 { "", false } };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_ROW(sl_metadata_key_allowed(sl_str_from(rows[i].key)) == rows[i].allowed, i);
}

TEST(wire_a_binary_value_of_several_parts_becomes_several_rows)
{
    sl_metadata_list list;

    sl_metadata_list_init(&list, &sl_alloc_default);
    EXPECT_OK(sl_metadata_list_add_received(&list, SL_STR("k-bin"), SL_STR("Zg==, Zm8,Zm9v")));
    const size_t text_bytes = list.text.bytes;
    EXPECT_ERR(sl_metadata_list_add_received(&list, SL_STR("k-bin"), SL_STR("Z")), SL_ERR_INVALID);
    EXPECT_EQ(list.text.bytes, text_bytes); /* a failed row leaves nothing behind */
    EXPECT_OK(sl_metadata_list_add_received(&list, SL_STR("k"), SL_STR("a,b")));
    EXPECT_EQ(sl_metadata_list_count(&list), 4);
    EXPECT(sl_str_equal(sl_metadata_list_at(&list, 1).value, SL_STR("fo")));
    EXPECT(sl_str_equal(sl_metadata_list_at(&list, 2).value, SL_STR("foo")));
    EXPECT(sl_str_equal(sl_metadata_list_at(&list, 3).value, SL_STR("a,b")));
    sl_metadata_list_done(&list);
}

TEST(wire_every_status_has_a_name_and_strange_numbers_are_unknown)
{
    sl_status status = SL_STATUS_OK;

    EXPECT_STR(sl_status_name(SL_STATUS_UNAUTHENTICATED), "UNAUTHENTICATED");
    EXPECT_STR(sl_status_name((sl_status)99), "UNKNOWN");
    EXPECT(sl_status_text((sl_status)99) != NULL);
    EXPECT(sl_status_parse(SL_STR("16"), &status) && status == SL_STATUS_UNAUTHENTICATED);
    EXPECT(sl_status_parse(SL_STR("17"), &status) && status == SL_STATUS_UNKNOWN);
    EXPECT(sl_status_parse(SL_STR("99999999999999999999999"), &status) && status == SL_STATUS_UNKNOWN);
    EXPECT(!sl_status_parse(SL_STR("x"), &status));
    EXPECT_EQ(sl_status_from_http(503), SL_STATUS_UNAVAILABLE);
    EXPECT_EQ(sl_status_from_http(418), SL_STATUS_UNKNOWN);
}

TEST(wire_spare_memory_is_bounded_and_used_again)
{
    test_alloc counter = { 0 };
    const sl_alloc alloc = test_alloc_use(&counter);
    sl_spares spares;
    sl_buf buf;

    sl_spares_init(&spares, &alloc);
    for (int i = 0; i < 50; i++) {
        sl_buf_init(&buf, &alloc, SIZE_MAX / 4);
        EXPECT_OK(sl_buf_reserve(&buf, 1 << 20));
        sl_spares_collect(&spares, &buf);
    }
    EXPECT_EQ(counter.byte_count, SL_SPARE_BYTES_MAX);
    sl_spares_lend(&spares, &buf);
    EXPECT(buf.capacity >= 1 << 20);
    sl_buf_done(&buf);
    sl_spares_clear(&spares);
    EXPECT_EQ(counter.block_count, 0);
}
