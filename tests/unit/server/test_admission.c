/* tests/unit/server/test_admission.c — who may call what, and a call whose caller is not known yet. */
#include "../base/support.h"
#include "made.h"

#include "server/user_admin.h"

#define PASSWORD "open-sesame-1"
/* base64 of NAME:PASSWORD */
#define ADMIN    "Basic Ym9zczpvcGVuLXNlc2FtZS0x"
#define OPERATOR "Basic b3BzOm9wZW4tc2VzYW1lLTE="
#define READER   "Basic YW5uOm9wZW4tc2VzYW1lLTE="
#define WRONG    "Basic YW5uOndyb25nLXNlc2FtZQ=="

static void add_user(sl_store *store, sl_str name, sl_str group)
{
    char room[256];
    sl_text problem;

    sl_text_init(&problem, room, sizeof room);
    EXPECT_OK(
        sl_user_admin_add(store, name, SL_STR(""), &group, group.bytes > 0, SL_STR(PASSWORD), 1, &problem));
}

/* Hashing is slow on purpose, so the users are made once for each test, and there are few tests. */
static sl_store *store_with_users(void)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default };
    sl_store *store;

    EXPECT_OK(sl_store_open_memory(&setup, &store));
    add_user(store, SL_STR("boss"), SL_STR("$admins"));
    add_user(store, SL_STR("ops"), SL_STR("$ops"));
    add_user(store, SL_STR("ann"), SL_STR(""));
    return store;
}

static void start(server_rig *rig, bool anonymous)
{
    server_rig_init(rig);
    rig->store = store_with_users();
    rig->settings.anonymous = anonymous;
    made_start(rig);
}

static void finish(server_rig *rig)
{
    server_rig_done(rig);
    sl_store_close(rig->store);
}

static server_call *ask(server_rig *rig, const char *path, const char *authorization)
{
    rig->authorization = authorization;
    return server_rig_unary(rig, path, SL_STR("x"));
}

TEST(each_method_is_for_those_it_is_for)
{
    static const struct {
        const char *path;
        sl_status nobody, reader, operator, admin;
    } rows[] = {
        { MADE_ANYONE, SL_STATUS_OK, SL_STATUS_OK, SL_STATUS_OK, SL_STATUS_OK },
        { MADE_ECHO, SL_STATUS_PERMISSION_DENIED, SL_STATUS_OK, SL_STATUS_OK, SL_STATUS_OK },
        { MADE_OPERATORS, SL_STATUS_PERMISSION_DENIED, SL_STATUS_PERMISSION_DENIED, SL_STATUS_OK,
          SL_STATUS_OK },
        { MADE_ADMINS, SL_STATUS_PERMISSION_DENIED, SL_STATUS_PERMISSION_DENIED, SL_STATUS_PERMISSION_DENIED,
          SL_STATUS_OK },
    };
    server_rig rig;

    start(&rig, false);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_CALL_STATUS(ask(&rig, rows[i].path, NULL), rows[i].nobody);
        EXPECT_CALL_STATUS(ask(&rig, rows[i].path, READER), rows[i].reader);
        EXPECT_CALL_STATUS(ask(&rig, rows[i].path, OPERATOR), rows[i].operator);
        EXPECT_CALL_STATUS(ask(&rig, rows[i].path, ADMIN), rows[i].admin);
    }
    EXPECT_EQ(rig.host->counters.access_denied, 6);
    EXPECT_STR(server_call_trailer(ask(&rig, MADE_ADMINS, NULL), "exception"), "access-denied");
    finish(&rig);
}

TEST(a_caller_without_a_name_is_a_reader_where_that_is_allowed)
{
    server_rig rig;

    start(&rig, true);
    EXPECT_CALL_STATUS(ask(&rig, MADE_ECHO, NULL), SL_STATUS_OK);
    EXPECT_CALL_STATUS(ask(&rig, MADE_OPERATORS, NULL), SL_STATUS_PERMISSION_DENIED);
    EXPECT_CALL_STATUS(ask(&rig, MADE_ADMINS, NULL), SL_STATUS_PERMISSION_DENIED);
    finish(&rig);
}

TEST(a_wrong_password_is_refused_and_too_many_have_to_wait)
{
    server_rig rig;
    server_call *call;

    start(&rig, true);
    for (int i = 0; i < 5; i++) {
        call = ask(&rig, MADE_ECHO, WRONG);
        EXPECT_CALL_STATUS(call, SL_STATUS_UNAUTHENTICATED);
        EXPECT(strstr(call->message, "Too many") == NULL);
    }
    call = ask(&rig, MADE_ECHO, WRONG);
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAUTHENTICATED);
    EXPECT_STR(call->message, "Too many failed log-ins. Wait a moment and try again.");
    EXPECT_STR(made_story, ""); /* no method has seen any of them */
    finish(&rig);
}

TEST(before_the_users_are_known_nobody_is_let_in)
{
    server_rig rig;
    server_call *call;

    server_rig_init(&rig);
    rig.store = store_with_users();
    server_rig_open(&rig);
    rig.host->find_method = made_find;
    call = server_rig_unary(&rig, MADE_ANYONE, SL_STR("x"));
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAVAILABLE);
    EXPECT_STR(call->message, "Server not ready");
    EXPECT_STR(server_call_trailer(call, "grpc-retry-pushback-ms"), "-1");
    finish(&rig);
}

/* The messages wait in the engine until the helper thread has said who it is, and then until begin has returned. */
TEST(a_call_waits_until_it_is_known_who_asks)
{
    static const struct {
        const char *path, *authorization;
    } rows[] = { { MADE_TALK, READER }, { MADE_HASTY, OPERATOR } };
    server_rig rig;

    start(&rig, false);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_call *call;

        made_forget();
        rig.authorization = rows[i].authorization;
        call = server_rig_call(&rig, rows[i].path);
        server_call_send(call, SL_STR("a"));
        server_call_half_close(call);
        server_rig_turn(&rig);
        EXPECT_STR(made_story, "");
        EXPECT_EQ(rig.host->counters.calls_now, 1);
        server_rig_run_until_ended(&rig, call);
        EXPECT_CALL_STATUS(call, SL_STATUS_OK);
        EXPECT_EQ(call->message_count, 1);
        EXPECT_STR(made_story, "begin;message a;half-close;end;");
    }
    finish(&rig);
}

TEST(a_call_may_end_in_any_way_before_it_is_known_who_asks)
{
    server_rig rig;
    server_call *cancelled, *late, *lost, *stopped;

    start(&rig, false);
    rig.authorization = READER;
    cancelled = server_rig_call(&rig, MADE_ECHO);
    late = server_rig_call_with(&rig, &(server_call_options){ .path = MADE_ECHO, .timeout_ns = 1000 });
    lost = server_rig_call_with(
        &rig, &(server_call_options){ .path = MADE_ECHO, .peer = server_rig_connect(&rig, "127.0.0.1:1") });
    stopped = server_rig_call(&rig, MADE_ECHO);
    server_rig_turn(&rig);
    EXPECT_EQ(rig.host->counters.calls_now, 4);
    server_call_cancel(cancelled);
    server_rig_break(lost->peer);
    server_rig_advance(&rig, 1000);
    EXPECT_CALL_STATUS(late, SL_STATUS_DEADLINE_EXCEEDED);
    EXPECT_EQ(rig.host->counters.calls_now, 1);
    sl_host_stop(rig.host, "SIGTERM");
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(stopped, SL_STATUS_UNAVAILABLE);
    EXPECT_EQ(rig.host->counters.calls_now, 0);
    EXPECT_STR(made_story, ""); /* neither begin nor end */
    finish(&rig);
}
