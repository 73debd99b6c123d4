/* Who asks: headers, passwords, what is remembered and for how long, and who has to wait. */
#include "test.h"

#include "auth_rig.h"
#include "base/support.h"
#include "server/auth_inside.h"
#include "server/basic.h"
#include "server/passwords.h"
#include "server/remembered.h"
#include "server/throttle.h"
#include "store/faulty/faulty.h"

#include <sodium.h>

#define HERE      "10.0.0.1:1000"
#define SECOND_NS UINT64_C(1000000000)

/* By another way than the users service; the host finds out by itself. */
static void write_and_run(server_rig *rig, const char *stream, const char *type, const char *data)
{
    (void)server_rig_append(rig, stream, type, data);
    server_rig_run(rig);
}

/* --- the header --- */

static bool parses(const char *header)
{
    sl_credentials credentials;

    return sl_basic_parse(sl_str_from(header), &credentials);
}

TEST(basic_headers_give_a_name_and_a_password)
{
    static const struct {
        const char *name, *password;
    } rows[] = {
        { "ada", "secret" }, { "ada", "se:cr:et" }, { "a", "b" }, { "ad\xc3\xa4", "\xe6\x9d\x8e" },
        { "a", ":" },
    };
    sl_credentials credentials;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const header = auth_rig_basic(rows[i].name, rows[i].password);

        EXPECT_ROW(sl_basic_parse(sl_str_from(header), &credentials), i);
        EXPECT_ROW(sl_str_equal(credentials.name, sl_str_from(rows[i].name)), i);
        EXPECT_ROW(sl_str_equal(credentials.password, sl_str_from(rows[i].password)), i);
        sl_credentials_wipe(&credentials);
        EXPECT_ROW(credentials.memory[0] == 0, i);
    }
    EXPECT(parses("basic YTpi"));
    EXPECT(parses("BASIC   YTpi"));
}

TEST(basic_headers_that_are_not_exactly_right_are_refused)
{
    static const char *const rows[] = {
        "",
        "Basic",
        "Basic ",
        "BasicYTpi",
        "Bearer YTpi",
        "Digest a:b",
        "YTpi",
        "Basic\tYTpi",
        "Basic YTpi ",
        "Basic YT pi",
        "Basic YTpi=",
        "Basic YTpi\n",
        "Basic YTp",      /* padding is missing */
        "Basic YTpiYw",   /* the same */
        "Basic YTpiYx==", /* bits that belong to nothing */
        "Basic YTpi====",
        "Basic Y*pi",
        "Basic YTp_",     /* the alphabet for addresses */
        "Basic YWI=",     /* "ab": no colon */
        "Basic Og==",     /* ":" */
        "Basic YTo=",     /* "a:" */
        "Basic OmI=",     /* ":b" */
        "Basic YTr/",     /* no UTF-8 */
        "Basic YTpiAA==", /* a zero byte */
    };
    static char long_one[8192];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT_ROW(!parses(rows[i]), i);
    memset(long_one, 'a', sizeof long_one);
    memcpy(long_one, "Basic ", 6);
    long_one[sizeof long_one - 1] = 0;
    EXPECT(!parses(long_one));
}

TEST(basic_headers_have_names_and_passwords_up_to_their_limits)
{
    char name[SL_LOGIN_NAME_BYTES_MAX + 2] = { 0 }, password[SL_PASSWORD_BYTES_MAX + 2] = { 0 };

    memset(name, 'n', SL_LOGIN_NAME_BYTES_MAX);
    memset(password, 'p', SL_PASSWORD_BYTES_MAX);
    EXPECT(parses(auth_rig_basic(name, password)));
    name[SL_LOGIN_NAME_BYTES_MAX] = 'n';
    EXPECT(!parses(auth_rig_basic(name, "p")));
    password[SL_PASSWORD_BYTES_MAX] = 'p';
    EXPECT(!parses(auth_rig_basic("n", password)));
}

TEST(basic_headers_of_random_bytes_do_no_harm)
{
    dice d = dice_from(11);
    char header[256];

    for (int run = 0; run < 20000; run++) {
        const size_t bytes = 6 + dice_pick(&d, sizeof header - 6);
        sl_credentials credentials;

        memcpy(header, "Basic ", 6);
        for (size_t i = 6; i < bytes; i++)
            header[i] = dice_pick(&d, 4) ? "ABCDwxyz0189+/=:"[dice_pick(&d, 16)] : (char)dice_pick(&d, 256);
        if (sl_basic_parse((sl_str){ header, bytes }, &credentials)) {
            EXPECT(credentials.name.bytes > 0 && credentials.password.bytes > 0);
        }
    }
}

/* --- who is let in --- */

TEST(a_server_without_users_trusts_everybody_and_one_that_is_insecure_too)
{
    server_rig rig;
    auth_seen seen;

    server_rig_init(&rig);
    server_rig_start(&rig);
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), 0);
    seen = auth_rig_check(&rig, "", HERE);
    EXPECT(seen.verdict == SL_AUTH_OK && seen.is_trusted);
    seen = auth_rig_check(&rig, "Bearer nonsense", HERE);
    EXPECT(seen.verdict == SL_AUTH_OK && seen.is_trusted);
    server_rig_done(&rig);

    auth_rig_start(&rig);
    seen = auth_rig_check(&rig, "", HERE);
    EXPECT(seen.verdict == SL_AUTH_OK && !seen.is_trusted && !seen.is_admin);
    rig.settings.insecure = true;
    seen = auth_rig_check(&rig, auth_rig_basic("root", "wrong"), HERE);
    EXPECT(seen.verdict == SL_AUTH_OK && seen.is_trusted);
    auth_rig_done(&rig);
}

TEST(right_passwords_tell_who_it_is_and_wrong_ones_nothing)
{
    server_rig rig;
    auth_seen seen;

    auth_rig_start(&rig);
    auth_rig_user(rig.store, "ada", "ada-secret", "\"$ops\",\"sales\"");
    write_and_run(&rig, "$users", "$User", "ada"); /* through the door: now it is noticed */
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), 2);
    seen = auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE);
    EXPECT_EQ(seen.verdict, SL_AUTH_OK);
    EXPECT_STR(seen.name, "root");
    EXPECT(seen.is_admin && seen.is_operator && !seen.is_trusted);
    seen = auth_rig_check(&rig, auth_rig_basic("ada", "ada-secret"), HERE);
    EXPECT_STR(seen.name, "ada");
    EXPECT(!seen.is_admin && seen.is_operator && seen.group_count == 2);
    EXPECT_EQ(rig.host->counters.logins_ok, 2);

    seen = auth_rig_check(&rig, auth_rig_basic("ada", "root-secret"), HERE);
    EXPECT_EQ(seen.verdict, SL_AUTH_REFUSED);
    EXPECT(seen.name[0] == 0 && !seen.is_operator && seen.group_count == 0);
    seen = auth_rig_check(&rig, auth_rig_basic("nobody", "x"), HERE);
    EXPECT_EQ(seen.verdict, SL_AUTH_REFUSED);
    seen = auth_rig_check(&rig, auth_rig_basic("Root", "root-secret"), HERE);
    EXPECT_EQ(seen.verdict, SL_AUTH_REFUSED);
    EXPECT_EQ(rig.host->counters.logins_refused, 3);
    seen = auth_rig_check(&rig, "Bearer abc", HERE);
    EXPECT_EQ(seen.verdict, SL_AUTH_REFUSED);
    EXPECT_EQ(rig.host->counters.logins_refused, 4);
    seen = auth_rig_check(&rig, "", HERE);
    EXPECT_EQ(seen.verdict, SL_AUTH_OK); /* nobody; what nobody may do is asked later */
    EXPECT(seen.name[0] == 0);
    auth_rig_done(&rig);
}

TEST(what_is_logged_about_a_log_in_has_no_secret)
{
    server_rig rig;

    auth_rig_start(&rig);
    (void)auth_rig_check(&rig, auth_rig_basic("ro\not", "hush-hush"), HERE);
    EXPECT(server_rig_logged(&rig, "log-in refused"));
    EXPECT(server_rig_logged(&rig, "user=\"ro\\not\""));
    EXPECT(server_rig_logged(&rig, "peer=10.0.0.1:1000"));
    EXPECT(!server_rig_logged(&rig, "hush"));
    EXPECT(!server_rig_logged(&rig, strrchr(auth_rig_basic("ro\not", "hush-hush"), ' ') + 1));
    (void)auth_rig_check(&rig, "Bearer hush-token", HERE);
    EXPECT(!server_rig_logged(&rig, "hush"));
    auth_rig_done(&rig);
}

TEST(headers_that_are_not_understood_are_logged_once_in_a_second)
{
    server_rig rig;
    size_t before;

    auth_rig_start(&rig);
    (void)auth_rig_check(&rig, "Bearer x", HERE);
    before = rig.log_bytes;
    for (int i = 0; i < 100; i++)
        (void)auth_rig_check(&rig, "Bearer x", HERE);
    EXPECT_EQ(rig.log_bytes, before);
    server_rig_advance(&rig, SECOND_NS);
    (void)auth_rig_check(&rig, "Bearer x", HERE);
    EXPECT(rig.log_bytes > before);
    auth_rig_done(&rig);
}

/* --- what is remembered --- */

/* Answered before sl_auth_check() returns: no helper thread was asked. */
static bool is_known_at_once(server_rig *rig, const char *name, const char *password, const char *peer)
{
    auth_seen seen;

    auth_rig_ask(rig, auth_rig_basic(name, password), peer, &seen);
    if (!seen.done)
        sl_auth_cancel(rig->host->auth, &seen.ticket);
    return seen.done && seen.verdict == SL_AUTH_OK;
}

TEST(a_right_password_is_remembered_for_five_minutes)
{
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT(!is_known_at_once(&rig, "root", "root-secret", HERE));
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE).verdict, SL_AUTH_OK);
    EXPECT(is_known_at_once(&rig, "root", "root-secret", HERE));
    EXPECT(is_known_at_once(&rig, "root", "root-secret", "10.0.0.2:7")); /* another connection */
    EXPECT(!is_known_at_once(&rig, "root", "root-secreT", HERE));
    server_rig_advance(&rig, SL_REMEMBERED_NS - 1);
    EXPECT(is_known_at_once(&rig, "root", "root-secret", HERE));
    EXPECT(is_known_at_once(&rig, "root", "root-secret", "10.0.0.3:7"));
    server_rig_advance(&rig, 1);
    EXPECT(
        !is_known_at_once(&rig, "root", "root-secret", HERE)); /* being used does not make it last longer */
    EXPECT(!is_known_at_once(&rig, "root", "root-secret", "10.0.0.3:7"));
    auth_rig_done(&rig);
}

TEST(what_is_remembered_ends_when_the_user_changes_in_any_way)
{
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE).verdict, SL_AUTH_OK);
    write_and_run(&rig, "$user-root", "$PasswordChanged",
                  auth_rig_record("root", "new-secret", "\"$admins\"", false));
    EXPECT(!is_known_at_once(&rig, "root", "root-secret", HERE));
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE).verdict, SL_AUTH_REFUSED);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "new-secret"), HERE).verdict, SL_AUTH_OK);
    write_and_run(&rig, "$user-root", "$UserUpdated", auth_rig_record("root", "new-secret", "", true));
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "new-secret"), HERE).verdict, SL_AUTH_REFUSED);
    write_and_run(&rig, "$user-root", "$UserDeleted", "{}");
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), 0);
    auth_rig_done(&rig);
}

TEST(a_password_that_changes_while_it_is_checked_is_not_right_any_more)
{
    server_rig rig;
    auth_seen seen;

    auth_rig_start(&rig);
    auth_rig_ask(&rig, auth_rig_basic("root", "root-secret"), HERE, &seen);
    EXPECT(!seen.done);
    write_and_run(&rig, "$user-root", "$PasswordChanged",
                  auth_rig_record("root", "new-secret", "\"$admins\"", false));
    if (!seen.done)
        server_rig_run_until(&rig, &seen.done);
    /* The helper may have been faster than the append; then it was right, but must not be remembered. */
    EXPECT(!is_known_at_once(&rig, "root", "root-secret", HERE));
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE).verdict, SL_AUTH_REFUSED);
    auth_rig_done(&rig);
}

TEST(a_hundred_calls_with_the_same_password_ask_the_slow_question_once)
{
    static auth_seen seen[200];
    server_rig rig;
    char peer[32];

    auth_rig_start(&rig);
    for (size_t i = 0; i < 200; i++) {
        (void)snprintf(peer, sizeof peer, "10.0.0.1:%zu", 1000 + i);
        auth_rig_ask(&rig, auth_rig_basic("root", "root-secret"), peer, &seen[i]);
    }
    for (size_t i = 0; i < 200; i += 3) /* some clients go away; the others must not notice */
        sl_auth_cancel(rig.host->auth, &seen[i].ticket);
    for (size_t i = 0; i < 200; i++) {
        if (i % 3 != 0)
            server_rig_run_until(&rig, &seen[i].done);
        EXPECT_EQ(seen[i].calls, i % 3 != 0);
        EXPECT(i % 3 == 0 || seen[i].verdict == SL_AUTH_OK);
    }
    EXPECT_EQ(rig.host->counters.logins_ok, 1);
    EXPECT_EQ(rig.host->counters.logins_throttled, 0);
    auth_rig_done(&rig);
}

/* --- who has to wait --- */

static void fail_times(server_rig *rig, const char *name, const char *peer, int count)
{
    char password[32];

    for (int i = 0; i < count; i++) {
        (void)snprintf(password, sizeof password, "guess %d", i);
        EXPECT_EQ(auth_rig_check(rig, auth_rig_basic(name, password), peer).verdict, SL_AUTH_REFUSED);
    }
}

TEST(who_fails_too_often_waits_also_with_the_right_password)
{
    server_rig rig;

    auth_rig_start(&rig);
    fail_times(&rig, "root", HERE, SL_THROTTLE_PAIR_TRIES);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "guess"), HERE).verdict, SL_AUTH_TOO_OFTEN);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE).verdict, SL_AUTH_TOO_OFTEN);
    EXPECT_EQ(rig.host->counters.logins_throttled, 2);
    EXPECT(server_rig_logged(&rig, "log-ins throttled"));
    /* Its owner, elsewhere, is not disturbed. */
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), "10.9.9.9:1").verdict, SL_AUTH_OK);
    /* And what is remembered from elsewhere does not help here. */
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE).verdict, SL_AUTH_TOO_OFTEN);
    server_rig_advance(&rig, SECOND_NS);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE).verdict, SL_AUTH_OK);
    auth_rig_done(&rig);
}

TEST(users_that_do_not_exist_are_throttled_like_others)
{
    server_rig rig;

    auth_rig_start(&rig);
    fail_times(&rig, "ghost", HERE, SL_THROTTLE_PAIR_TRIES);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("ghost", "guess"), HERE).verdict, SL_AUTH_TOO_OFTEN);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE).verdict, SL_AUTH_OK);
    auth_rig_done(&rig);
}

/* A program with an old password at the same address must not stop the one that is at work. */
TEST(a_connection_that_was_let_in_is_not_disturbed_by_others_failures)
{
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), "10.0.0.1:1").verdict, SL_AUTH_OK);
    fail_times(&rig, "root", "10.0.0.1:2", SL_THROTTLE_PAIR_TRIES);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "guess"), "10.0.0.1:2").verdict, SL_AUTH_TOO_OFTEN);
    EXPECT(is_known_at_once(&rig, "root", "root-secret", "10.0.0.1:1"));
    EXPECT(!is_known_at_once(&rig, "root", "root-secret", "10.0.0.1:3"));
    auth_rig_done(&rig);
}

/* One program with an old password, or a stranger with many names, behind the address of a whole company. */
TEST(a_shut_address_lets_in_who_was_right_lately_and_some_others)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 5, 6 } };
    server_rig rig;
    char name[32];

    server_rig_init(&rig);
    EXPECT_OK(sl_store_open_memory(&setup, &rig.store));
    auth_rig_user(rig.store, "root", "root-secret", "\"$admins\"");
    auth_rig_user(rig.store, "amy", "amy-secret", "");
    server_rig_start(&rig);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), "10.9.9.9:1").verdict, SL_AUTH_OK);
    for (int i = 0; i < SL_THROTTLE_ADDRESS_TRIES + 1; i++) { /* the last is the first that shares it */
        (void)snprintf(name, sizeof name, "ghost%d", i);
        fail_times(&rig, name, "10.0.0.1:1", 1);
    }
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("eve", "guess"), "10.0.0.1:2").verdict, SL_AUTH_TOO_OFTEN);
    EXPECT(is_known_at_once(&rig, "root", "root-secret", "10.0.0.1:3")); /* remembered from elsewhere */
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("amy", "amy-secret"), "10.0.0.1:4").verdict,
              SL_AUTH_TOO_OFTEN);
    server_rig_advance(&rig, SL_THROTTLE_SHARED_NS);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("amy", "amy-secret"), "10.0.0.1:4").verdict, SL_AUTH_OK);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("eve", "guess"), "10.0.0.1:2").verdict, SL_AUTH_TOO_OFTEN);
    EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("amy", "amy-secret"), "10.0.0.1:5").verdict, SL_AUTH_OK);
    auth_rig_done(&rig);
}

TEST(many_guesses_at_once_are_no_way_around)
{
    static auth_seen seen[50];
    server_rig rig;
    char password[32];
    size_t refused = 0, throttled = 0;

    auth_rig_start(&rig);
    for (int i = 0; i < 50; i++) {
        (void)snprintf(password, sizeof password, "guess %d", i);
        auth_rig_ask(&rig, auth_rig_basic("root", password), HERE, &seen[i]);
    }
    for (int i = 0; i < 50; i++) {
        if (!seen[i].done)
            server_rig_run_until(&rig, &seen[i].done);
        refused += seen[i].verdict == SL_AUTH_REFUSED;
        throttled += seen[i].verdict == SL_AUTH_TOO_OFTEN;
    }
    EXPECT_EQ(refused, SL_THROTTLE_PAIR_TRIES);
    EXPECT_EQ(throttled, 50 - SL_THROTTLE_PAIR_TRIES);
    auth_rig_done(&rig);
}

TEST(a_full_queue_of_passwords_makes_others_wait_and_counts_as_nothing)
{
    static auth_seen seen[SL_PASSWORD_JOBS_MAX], late;
    server_rig rig;
    char peer[32], name[32], password[32];

    auth_rig_start(&rig);
    for (int i = 0; i < SL_PASSWORD_JOBS_MAX; i++) { /* each from somewhere else, for somebody else */
        (void)snprintf(peer, sizeof peer, "10.0.%d.1:1", i);
        (void)snprintf(name, sizeof name, "u%d", i);
        auth_rig_ask(&rig, auth_rig_basic(name, "guess"), peer, &seen[i]);
        EXPECT(!seen[i].done);
    }
    for (int i = 0; i < 3 * SL_THROTTLE_PAIR_TRIES; i++) {
        (void)snprintf(password, sizeof password, "guess %d", i);
        auth_rig_ask(&rig, auth_rig_basic("late", password), HERE, &late);
        EXPECT(late.done && late.verdict == SL_AUTH_TOO_OFTEN);
    }
    server_rig_run_until(&rig, &seen[0].done);
    EXPECT_EQ(seen[0].verdict, SL_AUTH_REFUSED);
    auth_rig_ask(&rig, auth_rig_basic("late", "guess"), HERE, &late);
    EXPECT(!late.done);  /* in the queue: none of the others was counted */
    auth_rig_done(&rig); /* with all of them inside */
}

TEST(log_ins_survive_without_memory)
{
    bool ran_through = false;

    for (size_t fail_at = 1; !ran_through; fail_at++) {
        test_alloc failing = { 0 };
        const sl_alloc alloc = test_alloc_use(&failing);
        sl_store *store;
        server_rig rig;
        auth_seen seen;

        server_rig_init(&rig);
        rig.alloc = &alloc;
        EXPECT_OK(sl_store_open_memory(&(sl_store_setup){ .alloc = &sl_alloc_default }, &rig.store));
        store = rig.store;
        auth_rig_user(store, "root", "root-secret", "\"$admins\"");
        server_rig_start(&rig);
        failing.fail_at = failing.call_count + fail_at;
        seen = auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE);
        ran_through = failing.call_count < failing.fail_at;
        EXPECT_EQ(seen.verdict, ran_through ? SL_AUTH_OK : SL_AUTH_NOT_READY);
        failing.fail_at = 0;
        EXPECT_EQ(auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE).verdict, SL_AUTH_OK);
        server_rig_done(&rig);
        EXPECT_EQ(failing.block_count, 0);
        sl_store_close(store);
    }
}

/* --- start --- */

TEST(nobody_is_let_in_before_the_users_are_read)
{
    server_rig rig;
    auth_seen seen;

    server_rig_init(&rig);
    server_rig_open(&rig);
    EXPECT(!sl_auth_ready(rig.host->auth));
    auth_rig_ask(&rig, "", HERE, &seen);
    EXPECT(seen.done && seen.verdict == SL_AUTH_NOT_READY);
    server_rig_run(&rig);
    EXPECT(sl_auth_ready(rig.host->auth));
    EXPECT(server_rig_logged(&rig, "users read users=0"));
    auth_rig_ask(&rig, "", HERE, &seen);
    EXPECT(seen.done && seen.verdict == SL_AUTH_OK && seen.is_trusted);
    server_rig_done(&rig);
}

static sl_store *store_on(sl_faulty *disk)
{
    const sl_journal_options options = { 0 };
    char memory[256];
    sl_store *store = NULL;
    sl_text report;

    sl_text_init(&report, memory, sizeof memory);
    EXPECT_OK(sl_store_open_faulty(&(sl_store_setup){ .alloc = &sl_alloc_default }, &options, disk, &report,
                                   &store));
    return store;
}

/* Whichever read fails, the users are there in the end, and nobody is let in before. */
TEST(users_are_read_from_a_slow_disk_that_fails_now_and_then)
{
    bool failed = true;

    for (uint64_t good_calls = 0; failed; good_calls++) {
        sl_faulty *const disk = sl_faulty_new();
        server_rig rig;

        server_rig_init(&rig);
        rig.store = store_on(disk);
        auth_rig_user(rig.store, "root", "root-secret", "\"$admins\"");
        auth_rig_user(rig.store, "ada", "ada-secret", "");
        sl_faulty_slow_reads(disk, 1);
        sl_faulty_fail_after(disk, good_calls, SL_ERR_IO);
        server_rig_open(&rig);
        while (!sl_auth_ready(rig.host->auth)) {
            auth_seen seen;

            auth_rig_ask(&rig, "", HERE, &seen);
            EXPECT_EQ(seen.verdict, SL_AUTH_NOT_READY);
            if (sl_host_due_ns(rig.host) != UINT64_MAX)
                server_rig_advance(&rig, SECOND_NS); /* it is tried again */
            else if (!server_rig_turn(&rig))
                server_rig_wait(&rig);
        }
        failed = sl_faulty_failed(disk);
        EXPECT_EQ(sl_auth_user_count(rig.host->auth), 2);
        auth_rig_done(&rig);
        sl_faulty_free(disk);
    }
}

static void note_nothing(void *ctx, const sl_commit *commit)
{
    (void)ctx;
    EXPECT_OK(commit->err);
}

/* Whoever deletes the list does not open the server by it. */
TEST(a_server_whose_list_of_users_was_deleted_is_not_open)
{
    const sl_op op = { .kind = SL_OP_TOMBSTONE,
                       .remove = { .stream = SL_STR("$users"), .id = { { 1 } }, .created_ns = 1 } };
    server_rig rig;
    auth_seen seen;

    server_rig_init(&rig);
    EXPECT_OK(sl_store_open_memory(&(sl_store_setup){ .alloc = &sl_alloc_default }, &rig.store));
    auth_rig_user(rig.store, "root", "root-secret", "\"$admins\"");
    EXPECT_OK(sl_store_submit(rig.store, &(sl_batch){ .ops = &op, .op_count = 1 }, note_nothing, NULL));
    sl_store_turn(rig.store);
    sl_store_poll(rig.store);
    server_rig_start(&rig);
    seen = auth_rig_check(&rig, "", HERE);
    EXPECT(seen.verdict == SL_AUTH_OK && !seen.is_trusted);
    auth_rig_done(&rig);
}

/* Whoever can write to the stream of the last user does not open the server to the network by it. */
TEST(a_server_that_others_can_reach_is_not_opened_by_the_end_of_its_last_user)
{
    static const char *const hosts[] = { "127.0.0.1", "0.0.0.0", "192.168.1.7" };
    auth_seen nobody, root;

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        server_rig rig;

        server_rig_init(&rig);
        EXPECT_OK(sl_store_open_memory(&(sl_store_setup){ .alloc = &sl_alloc_default }, &rig.store));
        auth_rig_user(rig.store, "root", "root-secret", "\"$admins\"");
        rig.settings.host = hosts[i];
        server_rig_start(&rig);
        server_rig_append(&rig, "$user-root", "$UserDeleted", "{}");
        server_rig_run(&rig);
        EXPECT_EQ(sl_auth_user_count(rig.host->auth), 0);
        nobody = auth_rig_check(&rig, "", HERE);
        EXPECT(nobody.verdict == SL_AUTH_OK && nobody.is_trusted == (i == 0) && nobody.is_admin == (i == 0));
        root = auth_rig_check(&rig, auth_rig_basic("root", "root-secret"), HERE);
        EXPECT_EQ(root.verdict, i == 0 ? SL_AUTH_OK : SL_AUTH_REFUSED);
        auth_rig_done(&rig);
    }
}

static void note_answer(void *ctx, sl_auth_verdict verdict, const sl_identity *identity)
{
    (void)identity;
    *(sl_auth_verdict *)ctx = verdict;
}

/* With a name that nobody can have: it is refused without a look, and counted and told like any other. */
static sl_auth_verdict log_in_at_once(server_rig *rig)
{
    char name[SL_LOGIN_NAME_BYTES_MAX + 1];
    sl_auth_verdict verdict = SL_AUTH_OK;
    sl_auth_ticket ticket;

    memset(name, 'x', sizeof name);
    sl_login_check(rig->host->auth, (sl_str){ name, sizeof name }, SL_STR("any"), SL_STR(HERE), &ticket,
                   note_answer, &verdict);
    return verdict;
}

/* A stranger decides how often he fails, and must not decide how long our log is. */
TEST(log_ins_that_are_refused_have_so_many_lines_and_not_more)
{
    server_rig rig;
    size_t lines = 0;

    auth_rig_start(&rig);
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(log_in_at_once(&rig), SL_AUTH_REFUSED);
    for (const char *at = rig.log_lines; (at = strstr(at, "log-in refused")) != NULL; at++)
        lines++;
    EXPECT_EQ(lines, SL_SELDOM_LINES);
    EXPECT_EQ(rig.host->counters.logins_refused, 1000);
    server_rig_advance(&rig, SL_SELDOM_NS);
    EXPECT_EQ(log_in_at_once(&rig), SL_AUTH_REFUSED);
    EXPECT(server_rig_logged(&rig, "others_before=990"));
    auth_rig_done(&rig);
}

TEST(identities_are_copied_whole)
{
    const sl_str groups[] = { SL_STR("a"), SL_STR("b") };
    const sl_identity identity = {
        .name = SL_STR("ada"), .groups = groups, .group_count = 2, .is_operator = true
    };
    sl_identity copy;
    sl_arena arena;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 1024, 4096 });
    EXPECT_OK(sl_identity_copy(&identity, &arena, &copy));
    EXPECT(sl_str_equal(copy.name, identity.name) && copy.name.data != identity.name.data);
    EXPECT(copy.groups != groups && sl_str_equal(copy.groups[1], groups[1]));
    EXPECT(copy.is_operator && !copy.is_admin);
    sl_arena_done(&arena);
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 1024, 16 });
    EXPECT_ERR(sl_identity_copy(&identity, &arena, &copy), SL_ERR_NOMEM);
    sl_arena_done(&arena);
}
