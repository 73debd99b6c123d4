/* Failed log-ins: who waits, for how long, and who does not. Time by hand. */
#include "test.h"

#include "base/support.h"
#include "server/throttle.h"

#include <stdio.h>
#include <stdlib.h>

#define SECOND_NS UINT64_C(1000000000)

static sl_throttle *throttle_new(void)
{
    sl_throttle *const throttle = malloc(sizeof *throttle);

    assert_non_null(throttle);
    sl_throttle_init(throttle, (sl_hash_seed){ 1, 2 });
    return throttle;
}

static sl_throttle_key key_of(const sl_throttle *throttle, const char *user, const char *peer)
{
    return sl_throttle_key_of(throttle, sl_str_from(user), sl_str_from(peer));
}

static bool goes(sl_throttle *throttle, const char *user, const char *peer, uint64_t now_ns)
{
    return sl_throttle_try(throttle, key_of(throttle, user, peer), now_ns) == SL_THROTTLE_GO;
}

TEST(throttle_five_tries_then_waits_that_double_up_to_thirty_seconds)
{
    static const uint64_t waits_s[] = { 1, 2, 4, 8, 16, 30, 30, 30 };
    sl_throttle *const throttle = throttle_new();
    uint64_t now_ns = 0;

    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++)
        EXPECT(goes(throttle, "ada", "10.0.0.1:1", now_ns));
    for (size_t i = 0; i < sizeof waits_s / sizeof waits_s[0]; i++) {
        now_ns += waits_s[i] * SECOND_NS - 1;
        EXPECT_ROW(!goes(throttle, "ada", "10.0.0.1:1", now_ns), i); /* and what is refused is not counted */
        EXPECT_ROW(goes(throttle, "ada", "10.0.0.1:1", ++now_ns), i);
    }
    free(throttle);
}

TEST(throttle_counts_a_pair_not_a_user)
{
    sl_throttle *const throttle = throttle_new();

    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++)
        EXPECT(goes(throttle, "ada", "10.0.0.1:1", 0));
    EXPECT(!goes(throttle, "ada", "10.0.0.1:9", 0)); /* another port is no other address */
    EXPECT(goes(throttle, "ada", "10.0.0.2:1", 0));  /* its owner, elsewhere */
    EXPECT(goes(throttle, "bob", "10.0.0.1:1", 0));
    free(throttle);
}

static void shut_address(sl_throttle *throttle, const char *peer)
{
    char user[16];

    for (int i = 0; i < SL_THROTTLE_ADDRESS_TRIES; i++) {
        (void)snprintf(user, sizeof user, "u%d", i);
        EXPECT(goes(throttle, user, peer, 0));
    }
}

TEST(throttle_counts_the_address_over_all_users_who_then_share_four_tries_a_second)
{
    sl_throttle *const throttle = throttle_new();
    char user[16];
    size_t let_in = 0;

    shut_address(throttle, "10.0.0.1:1");
    EXPECT(goes(throttle, "ada", "10.0.0.1:1", 0));  /* the first one that shares it */
    EXPECT(!goes(throttle, "bob", "10.0.0.1:1", 0)); /* so soon after her */
    EXPECT(goes(throttle, "bob", "10.0.0.2:1", 0));
    for (int i = 1; i <= 60 * 1000; i++) { /* a minute of guesses, a new name each millisecond */
        (void)snprintf(user, sizeof user, "n%d", i);
        let_in += goes(throttle, user, "10.0.0.1:1", (uint64_t)i * SECOND_NS / 1000);
    }
    EXPECT(let_in <= 60 * SECOND_NS / SL_THROTTLE_SHARED_NS);
    EXPECT(let_in >= 60 * SECOND_NS / SL_THROTTLE_SHARED_NS - 4);
    free(throttle);
}

TEST(throttle_a_shut_pair_takes_no_try_of_those_that_share_its_address)
{
    sl_throttle *const throttle = throttle_new();
    uint64_t now_ns = SL_THROTTLE_SHARED_NS;

    shut_address(throttle, "10.0.0.1:1");
    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++, now_ns += SL_THROTTLE_SHARED_NS)
        EXPECT(goes(throttle, "old", "10.0.0.1:1", now_ns));
    now_ns -= SL_THROTTLE_SHARED_NS;
    for (int i = 0; i < 10 * 1000; i++) /* it tries a thousand times as often as the others */
        EXPECT(!goes(throttle, "old", "10.0.0.1:1", now_ns + SL_THROTTLE_SHARED_NS));
    EXPECT(goes(throttle, "ada", "10.0.0.1:1", now_ns + SL_THROTTLE_SHARED_NS));
    free(throttle);
}

TEST(throttle_a_pair_that_was_right_lately_is_not_shut_out_with_its_address)
{
    sl_throttle *const throttle = throttle_new();
    const sl_throttle_key ada = key_of(throttle, "ada", "10.0.0.1:1");

    EXPECT(goes(throttle, "ada", "10.0.0.1:1", 0));
    sl_throttle_right(throttle, ada);
    shut_address(throttle, "10.0.0.1:1");
    EXPECT(goes(throttle, "bob", "10.0.0.1:1", 0)); /* the try for all is taken */
    EXPECT(!goes(throttle, "eve", "10.0.0.1:1", 0));
    for (int i = 0; i < 100; i++) {
        EXPECT(goes(throttle, "ada", "10.0.0.1:1", 0));
        sl_throttle_right(throttle, ada);
    }
    EXPECT(!goes(throttle, "eve", "10.0.0.1:1", 0)); /* whom her right passwords open nothing */
    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++)
        EXPECT(goes(throttle, "ada", "10.0.0.1:1", 0));
    EXPECT(!goes(throttle, "ada", "10.0.0.1:1", 0)); /* guesses at her password are counted as ever */
    free(throttle);
}

TEST(throttle_looks_are_as_few_as_tries)
{
    sl_throttle *const throttle = throttle_new();
    const sl_throttle_key ada = key_of(throttle, "ada", "10.0.0.1:1");
    const sl_throttle_key eve = key_of(throttle, "eve", "10.0.0.1:1");

    shut_address(throttle, "10.0.0.1:1");
    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++)
        EXPECT(sl_throttle_look(throttle, ada, 0));
    EXPECT(!sl_throttle_look(throttle, ada, 0));
    sl_throttle_known(throttle, ada);
    EXPECT(sl_throttle_look(throttle, ada, 0));
    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++)
        (void)goes(throttle, "eve", "10.0.0.1:1", (uint64_t)i * SL_THROTTLE_SHARED_NS);
    EXPECT(!sl_throttle_look(throttle, eve, SECOND_NS)); /* who is shut has none at all */
    free(throttle);
}

TEST(throttle_a_right_password_clears_its_pair_and_gives_the_address_one_try_back)
{
    sl_throttle *const throttle = throttle_new();
    char user[16];

    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++)
        EXPECT(goes(throttle, "ada", "10.0.0.1:1", 0));
    sl_throttle_right(throttle, key_of(throttle, "ada", "10.0.0.1:1"));
    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++)
        EXPECT(goes(throttle, "ada", "10.0.0.1:1", 0));
    /* Nine of the address's tries are used: ten, and one back. */
    for (int i = 9; i < SL_THROTTLE_ADDRESS_TRIES; i++) {
        (void)snprintf(user, sizeof user, "u%d", i);
        EXPECT(goes(throttle, user, "10.0.0.1:1", 0));
    }
    EXPECT(goes(throttle, "amy", "10.0.0.1:1", 0)); /* the one try that all share */
    EXPECT(!goes(throttle, "bob", "10.0.0.1:1", 0));
    sl_throttle_right(throttle, key_of(throttle, "u9", "10.0.0.1:1"));
    EXPECT(!goes(throttle, "bob", "10.0.0.1:1", 0));
    sl_throttle_right(throttle, key_of(throttle, "amy", "10.0.0.1:1"));
    EXPECT(goes(throttle, "bob", "10.0.0.1:1", 0));
    EXPECT(!goes(throttle, "eve", "10.0.0.1:1", 0));
    free(throttle);
}

TEST(throttle_what_was_not_decided_is_not_counted)
{
    sl_throttle *const throttle = throttle_new();

    for (int i = 0; i < 1000; i++) {
        EXPECT(goes(throttle, "ada", "10.0.0.1:1", 0));
        sl_throttle_undone(throttle, key_of(throttle, "ada", "10.0.0.1:1"));
    }
    EXPECT_EQ(throttle->map.count, 0);
    free(throttle);
}

TEST(throttle_forgets_a_quarter_of_an_hour_after_the_last_try)
{
    sl_throttle *const throttle = throttle_new();
    uint64_t now_ns = 7;

    for (int i = 0; i < 10; i++, now_ns += SL_THROTTLE_DELAY_MAX_NS)
        EXPECT(goes(throttle, "ada", "10.0.0.1:1", now_ns));
    now_ns -= SL_THROTTLE_DELAY_MAX_NS;
    EXPECT(!goes(throttle, "ada", "10.0.0.1:1", now_ns + SL_THROTTLE_DELAY_MAX_NS - 1));
    now_ns += SL_THROTTLE_FORGET_NS;
    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++)
        EXPECT(goes(throttle, "ada", "10.0.0.1:1", now_ns));
    EXPECT(!goes(throttle, "ada", "10.0.0.1:1", now_ns));
    free(throttle);
}

TEST(throttle_says_once_that_somebody_has_to_wait)
{
    sl_throttle *const throttle = throttle_new();
    const sl_throttle_key key = key_of(throttle, "ada", "10.0.0.1:1");

    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++)
        EXPECT_EQ(sl_throttle_try(throttle, key, 0), SL_THROTTLE_GO);
    EXPECT_EQ(sl_throttle_try(throttle, key, 0), SL_THROTTLE_WAIT);
    EXPECT_EQ(sl_throttle_try(throttle, key, 0), SL_THROTTLE_AGAIN);
    EXPECT_EQ(sl_throttle_try(throttle, key, SECOND_NS), SL_THROTTLE_GO);
    EXPECT_EQ(sl_throttle_try(throttle, key, SECOND_NS), SL_THROTTLE_WAIT);
    free(throttle);
}

TEST(throttle_is_bounded_and_a_flood_of_names_does_not_hide_its_address)
{
    sl_throttle *const throttle = throttle_new();
    uint64_t now_ns = 0;
    char text[32];
    size_t let_in = 0;

    for (int i = 0; i < 3 * SL_THROTTLE_ENTRIES_MAX; i++) {
        (void)snprintf(text, sizeof text, "user-%d", i);
        let_in += goes(throttle, text, "10.0.0.1:1", now_ns);
        (void)snprintf(text, sizeof text, "10.%d.%d.%d:1", 1 + (i >> 16), (i >> 8) & 255, i & 255);
        EXPECT(goes(throttle, "x", text, now_ns)); /* one try of each of many others */
        now_ns += SECOND_NS / 1000;
    }
    EXPECT(throttle->map.count <= SL_THROTTLE_ENTRIES_MAX);
    /* 24.6 seconds: the free tries, then what all names share. */
    EXPECT(let_in >= SL_THROTTLE_ADDRESS_TRIES + 96);
    EXPECT(let_in <= SL_THROTTLE_ADDRESS_TRIES + 99);
    free(throttle);
}

TEST(throttle_takes_the_first_half_of_an_ipv6_address_and_all_of_an_ipv4_address)
{
    static const struct {
        const char *peer, *network;
    } rows[] = {
        { "127.0.0.1:40000", "127.0.0.1" },
        { "127.0.0.1", "127.0.0.1" },
        { "[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2:" },
        { "[2001:db8:1:2::6]:99", "2001:db8:1:2:" },
        { "[2001:db8::6]:99", "2001:db8:0:0:" },
        { "[::1]:99", "0:0:0:0:" },
        { "[::]:99", "0:0:0:0:" },
        { "[1::]:99", "1:0:0:0:" },
        { "[::2:3:4:5:6:7:8]:99", "0:2:3:4:" },
        { "[a::4:5:6:7:8]:99", "a:0:0:4:" },
        { "[fe80::1%eth0]:99", "fe80:0:0:0:" },
        { "[::ffff:10.0.0.1]:99", "::ffff:10.0.0.1" }, /* never shown like that; then as it is */
        { "[1:2:3]:9", "1:2:3" },
        { "[1:2:3:4:5:6:7:8:9]:9", "1:2:3:4:5:6:7:8:9" },
        { "[", "" },
        { "[]", "" },
        { "", "" },
        { "?", "?" },
        { ":", "" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char memory[SL_THROTTLE_NETWORK_BYTES];
        sl_text network;

        sl_text_init(&network, memory, sizeof memory);
        sl_throttle_network(sl_str_from(rows[i].peer), &network);
        EXPECT_ROW(strcmp(memory, rows[i].network) == 0, i);
    }
}
