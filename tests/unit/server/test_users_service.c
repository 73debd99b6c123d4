/* event_store.client.users.Users, as a client sees it: all eight methods, who may call them, and what they refuse. */
#include "test.h"

#include "auth_rig.h"
#include "base/support.h"
#include "server/door.h"
#include "server/throttle.h"
#include "wire/server_control.h"

#define USERS "/event_store.client.users.Users/"

static const sl_str admins[] = { SL_STR_INIT("$admins") };
static const sl_str sales[] = { SL_STR_INIT("sales"), SL_STR_INIT("$ops") };

static server_call *call_as(server_rig *rig, const char *who, const char *password, const char *method,
                            sl_user_call kind, const sl_user_request *request)
{
    char path[128];
    sl_arena arena;
    sl_str message;
    server_call *call;

    rig->authorization = who == NULL ? NULL : auth_rig_basic(who, password);
    (void)snprintf(path, sizeof path, USERS "%s", method);
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    EXPECT_OK(sl_user_request_encode(kind, request, &arena, &message));
    call = server_rig_unary(rig, path, message);
    sl_arena_done(&arena);
    return call;
}

static server_call *as_root(server_rig *rig, const char *method, sl_user_call kind,
                            const sl_user_request *request)
{
    return call_as(rig, "root", "root-secret", method, kind, request);
}

static server_call *create_as_root(server_rig *rig, const char *name, const char *password,
                                   const sl_str *groups, size_t group_count)
{
    return as_root(rig, "Create", SL_USER_CALL_CREATE,
                   &(sl_user_request){ .login_name = sl_str_from(name),
                                       .password = sl_str_from(password),
                                       .full_name = SL_STR("Somebody"),
                                       .groups = groups,
                                       .group_count = group_count });
}

static server_call *name_as_root(server_rig *rig, const char *method, const char *name)
{
    return as_root(rig, method, SL_USER_CALL_NAME_ONLY,
                   &(sl_user_request){ .login_name = sl_str_from(name) });
}

static bool can_log_in(server_rig *rig, const char *name, const char *password)
{
    const sl_auth_verdict verdict = auth_rig_check(rig, auth_rig_basic(name, password), "10.7.7.7:1").verdict;

    EXPECT(verdict == SL_AUTH_OK || verdict == SL_AUTH_REFUSED);
    return verdict == SL_AUTH_OK;
}

static void expect_exception(const server_call *call, const char *exception, const char *login_name)
{
    const char *value = server_call_trailer(call, "exception");

    assert_non_null(value);
    EXPECT_STR(value, exception);
    value = server_call_trailer(call, "login-name");
    assert_non_null(value);
    EXPECT_STR(value, login_name);
}

TEST(users_are_created_and_can_log_in_at_once)
{
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT_CALL_STATUS(create_as_root(&rig, "ada", "ada-secret", sales, 2), SL_STATUS_OK);
    EXPECT(can_log_in(&rig, "ada", "ada-secret"));
    EXPECT(!can_log_in(&rig, "ada", "ada-secreT"));
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), 2);
    EXPECT(server_rig_logged(&rig, "user created user=ada by=root"));
    EXPECT(!server_rig_logged(&rig, "ada-secret"));
    server_rig_run(&rig);
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), 2); /* those who watch the streams find nothing new */
    auth_rig_done(&rig);
}

TEST(users_are_there_after_a_restart)
{
    sl_store *store;
    server_rig rig;

    auth_rig_start(&rig);
    store = rig.store;
    EXPECT_CALL_STATUS(create_as_root(&rig, "ada", "ada-secret", sales, 2), SL_STATUS_OK);
    EXPECT_CALL_STATUS(create_as_root(&rig, "bob", "bob-secret", NULL, 0), SL_STATUS_OK);
    EXPECT_CALL_STATUS(name_as_root(&rig, "Delete", "bob"), SL_STATUS_OK);
    server_rig_done(&rig);
    server_rig_init(&rig);
    rig.store = store;
    server_rig_start(&rig);
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), 2);
    EXPECT(can_log_in(&rig, "ada", "ada-secret"));
    EXPECT(!can_log_in(&rig, "bob", "bob-secret"));
    auth_rig_done(&rig);
}

TEST(users_that_exist_and_that_do_not_are_told_by_their_errors)
{
    static const char *const by_name[] = { "Delete", "Disable", "Enable", "Details" };
    server_call *call;
    server_rig rig;

    auth_rig_start(&rig);
    call = create_as_root(&rig, "root", "another-secret", NULL, 0);
    EXPECT_CALL_STATUS(call, SL_STATUS_FAILED_PRECONDITION);
    expect_exception(call, "user-conflict", "root");
    for (size_t i = 0; i < sizeof by_name / sizeof by_name[0]; i++) {
        call = name_as_root(&rig, by_name[i], "ghost");
        EXPECT_CALL_STATUS(call, SL_STATUS_NOT_FOUND);
        expect_exception(call, "user-not-found", "ghost");
    }
    call =
        as_root(&rig, "ResetPassword", SL_USER_CALL_RESET_PASSWORD,
                &(sl_user_request){ .login_name = SL_STR("ghost"), .new_password = SL_STR("long enough") });
    EXPECT_CALL_STATUS(call, SL_STATUS_NOT_FOUND);
    call = as_root(&rig, "ChangePassword", SL_USER_CALL_CHANGE_PASSWORD,
                   &(sl_user_request){ .login_name = SL_STR("ghost"),
                                       .password = SL_STR("x"),
                                       .new_password = SL_STR("long enough") });
    EXPECT_CALL_STATUS(call, SL_STATUS_NOT_FOUND);
    auth_rig_done(&rig);
}

TEST(users_are_updated_disabled_enabled_and_deleted)
{
    sl_user_request update = {
        .login_name = SL_STR("ada"), .full_name = SL_STR("Ada L."), .groups = admins, .group_count = 1
    };
    auth_seen seen;
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT_CALL_STATUS(create_as_root(&rig, "ada", "ada-secret", sales, 2), SL_STATUS_OK);
    EXPECT_CALL_STATUS(as_root(&rig, "Update", SL_USER_CALL_UPDATE, &update), SL_STATUS_OK);
    seen = auth_rig_check(&rig, auth_rig_basic("ada", "ada-secret"), "10.7.7.7:1"); /* the password stays */
    EXPECT(seen.verdict == SL_AUTH_OK && seen.is_admin && seen.group_count == 1);
    update.password = SL_STR("ada-new-secret");
    EXPECT_CALL_STATUS(as_root(&rig, "Update", SL_USER_CALL_UPDATE, &update), SL_STATUS_OK);
    EXPECT(can_log_in(&rig, "ada", "ada-new-secret"));
    EXPECT_CALL_STATUS(name_as_root(&rig, "Disable", "ada"), SL_STATUS_OK);
    EXPECT(!can_log_in(&rig, "ada", "ada-new-secret"));
    EXPECT_CALL_STATUS(name_as_root(&rig, "Enable", "ada"), SL_STATUS_OK);
    EXPECT(can_log_in(&rig, "ada", "ada-new-secret"));
    EXPECT_CALL_STATUS(name_as_root(&rig, "Delete", "ada"), SL_STATUS_OK);
    EXPECT(!can_log_in(&rig, "ada", "ada-new-secret"));
    EXPECT_CALL_STATUS(create_as_root(&rig, "ada", "ada-third-secret", NULL, 0),
                       SL_STATUS_OK); /* and again */
    EXPECT(can_log_in(&rig, "ada", "ada-third-secret"));
    EXPECT_CALL_STATUS(name_as_root(&rig, "Delete", "ada"), SL_STATUS_OK);
    auth_rig_done(&rig);
}

TEST(passwords_are_changed_by_their_owner_who_knows_the_current_one)
{
    sl_user_request change = { .login_name = SL_STR("ada"),
                               .password = SL_STR("ada-secret"),
                               .new_password = SL_STR("ada-new-secret") };
    server_call *call;
    server_rig rig;

    auth_rig_start(&rig);
    auth_rig_user(rig.store, "ada", "ada-secret", "");
    auth_rig_user(rig.store, "bob", "bob-secret", "");
    server_rig_append(&rig, "$users", "$User", "bob");
    server_rig_run(&rig);
    call = call_as(&rig, "bob", "bob-secret", "ChangePassword", SL_USER_CALL_CHANGE_PASSWORD, &change);
    EXPECT_CALL_STATUS(call, SL_STATUS_PERMISSION_DENIED); /* not his */
    change.password = SL_STR("ada-secreT");
    call = call_as(&rig, "ada", "ada-secret", "ChangePassword", SL_USER_CALL_CHANGE_PASSWORD, &change);
    EXPECT_CALL_STATUS(call, SL_STATUS_PERMISSION_DENIED); /* the current one is wrong */
    call = call_as(&rig, "root", "root-secret", "ChangePassword", SL_USER_CALL_CHANGE_PASSWORD, &change);
    EXPECT_CALL_STATUS(call, SL_STATUS_PERMISSION_DENIED); /* an administrator has to know it too */
    EXPECT(!can_log_in(&rig, "ada", "ada-new-secret"));
    change.password = SL_STR("ada-secret");
    call = call_as(&rig, "ada", "ada-secret", "ChangePassword", SL_USER_CALL_CHANGE_PASSWORD, &change);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT(can_log_in(&rig, "ada", "ada-new-secret"));
    EXPECT(!can_log_in(&rig, "ada", "ada-secret"));
    change.password = SL_STR("ada-new-secret");
    change.new_password = SL_STR("short");
    call = call_as(&rig, "ada", "ada-new-secret", "ChangePassword", SL_USER_CALL_CHANGE_PASSWORD, &change);
    EXPECT_CALL_STATUS(call, SL_STATUS_INVALID_ARGUMENT);
    EXPECT_STR(call->message, "The password is shorter than 8 bytes.");
    auth_rig_done(&rig);
}

TEST(current_passwords_cannot_be_guessed_by_changing_them)
{
    sl_user_request change = { .login_name = SL_STR("root"), .new_password = SL_STR("ada-new-secret") };
    char guess[32];
    server_call *call;
    server_rig rig;

    auth_rig_start(&rig);
    for (int i = 0; i < SL_THROTTLE_PAIR_TRIES; i++) {
        (void)snprintf(guess, sizeof guess, "guess %d", i);
        change.password = sl_str_from(guess);
        call = as_root(&rig, "ChangePassword", SL_USER_CALL_CHANGE_PASSWORD, &change);
        EXPECT_CALL_STATUS(call, SL_STATUS_PERMISSION_DENIED);
    }
    change.password = SL_STR("root-secreT");
    call = as_root(&rig, "ChangePassword", SL_USER_CALL_CHANGE_PASSWORD, &change);
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAUTHENTICATED);
    auth_rig_done(&rig);
}

TEST(passwords_are_reset_by_administrators)
{
    const sl_user_request reset = { .login_name = SL_STR("root"), .new_password = SL_STR("a new secret") };
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT_CALL_STATUS(as_root(&rig, "ResetPassword", SL_USER_CALL_RESET_PASSWORD, &reset), SL_STATUS_OK);
    EXPECT(can_log_in(&rig, "root", "a new secret"));
    EXPECT(!can_log_in(&rig, "root", "root-secret"));
    auth_rig_done(&rig);
}

TEST(users_are_the_business_of_administrators)
{
    static const struct {
        const char *method;
        sl_user_call kind;
    } rows[] = {
        { "Create", SL_USER_CALL_CREATE },
        { "Update", SL_USER_CALL_UPDATE },
        { "Delete", SL_USER_CALL_NAME_ONLY },
        { "Disable", SL_USER_CALL_NAME_ONLY },
        { "Enable", SL_USER_CALL_NAME_ONLY },
        { "Details", SL_USER_CALL_NAME_ONLY },
        { "ResetPassword", SL_USER_CALL_RESET_PASSWORD },
        { "ChangePassword", SL_USER_CALL_CHANGE_PASSWORD },
    };
    const sl_user_request request = { .login_name = SL_STR("root"),
                                      .password = SL_STR("some secret"),
                                      .new_password = SL_STR("some secret") };
    server_rig rig;

    auth_rig_start(&rig);
    auth_rig_user(rig.store, "ada", "ada-secret", "\"$ops\"");
    server_rig_append(&rig, "$users", "$User", "ada");
    server_rig_run(&rig);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_CALL_STATUS(call_as(&rig, "ada", "ada-secret", rows[i].method, rows[i].kind, &request),
                           SL_STATUS_PERMISSION_DENIED);
        EXPECT_CALL_STATUS(call_as(&rig, NULL, NULL, rows[i].method, rows[i].kind, &request),
                           SL_STATUS_PERMISSION_DENIED);
    }
    rig.settings.anonymous = true; /* then they come as far as the service */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT_CALL_STATUS(call_as(&rig, NULL, NULL, rows[i].method, rows[i].kind, &request),
                           SL_STATUS_PERMISSION_DENIED);
    EXPECT_CALL_STATUS(call_as(&rig, NULL, NULL, "Details", SL_USER_CALL_NAME_ONLY, &(sl_user_request){ 0 }),
                       SL_STATUS_PERMISSION_DENIED);
    EXPECT(can_log_in(&rig, "root", "root-secret"));
    auth_rig_done(&rig);
}

TEST(texts_that_are_not_allowed_are_refused_with_a_sentence)
{
    static const struct {
        const char *name, *password, *sentence;
    } rows[] = {
        { "", "long enough", "The login name is empty." },
        { "$admins", "long enough",
          "The login name begins with $, which is kept for groups such as $admins." },
        { "a:b", "long enough",
          "The login name has a character that is not allowed: a colon, a slash, a control "
          "character, or bytes that are no UTF-8." },
        { "ada", "", "The password is shorter than 8 bytes." },
        { "ada", "1234567", "The password is shorter than 8 bytes." },
    };
    server_rig rig;

    auth_rig_start(&rig);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const server_call *const call = create_as_root(&rig, rows[i].name, rows[i].password, NULL, 0);

        EXPECT_CALL_STATUS(call, SL_STATUS_INVALID_ARGUMENT);
        EXPECT_STR(call->message, rows[i].sentence);
    }
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), 1);
    auth_rig_done(&rig);
}

TEST(messages_that_are_no_requests_are_refused)
{
    static const char *const methods[] = { "Create", "Update",  "Delete",        "Disable",
                                           "Enable", "Details", "ResetPassword", "ChangePassword" };
    char path[128];
    server_rig rig;

    auth_rig_start(&rig);
    rig.authorization = auth_rig_basic("root", "root-secret");
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        (void)snprintf(path, sizeof path, USERS "%s", methods[i]);
        EXPECT_CALL_STATUS(server_rig_unary(&rig, path, SL_STR("\xff\xff\xff")), SL_STATUS_INVALID_ARGUMENT);
        EXPECT_CALL_STATUS(server_rig_unary(&rig, path, SL_STR("\x0a\x7f")), SL_STATUS_INVALID_ARGUMENT);
    }
    auth_rig_done(&rig);
}

TEST(the_last_administrator_cannot_be_lost)
{
    const sl_user_request demote = { .login_name = SL_STR("root"), .groups = sales, .group_count = 2 };
    server_call *call;
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT_CALL_STATUS(create_as_root(&rig, "ada", "ada-secret", sales, 2), SL_STATUS_OK);
    call = name_as_root(&rig, "Delete", "root");
    EXPECT_CALL_STATUS(call, SL_STATUS_FAILED_PRECONDITION);
    EXPECT(strstr(call->message, "last administrator") != NULL);
    EXPECT_CALL_STATUS(name_as_root(&rig, "Disable", "root"), SL_STATUS_FAILED_PRECONDITION);
    EXPECT_CALL_STATUS(as_root(&rig, "Update", SL_USER_CALL_UPDATE, &demote), SL_STATUS_FAILED_PRECONDITION);
    EXPECT_CALL_STATUS(create_as_root(&rig, "eve", "eve-secret", admins, 1), SL_STATUS_OK);
    EXPECT_CALL_STATUS(name_as_root(&rig, "Delete", "root"), SL_STATUS_OK); /* by himself */
    EXPECT_CALL_STATUS(name_as_root(&rig, "Delete", "eve"), SL_STATUS_UNAUTHENTICATED);
    auth_rig_done(&rig);
}

/* Whoever makes the first user shuts the server for everybody else, and must not shut himself out. */
TEST(the_first_user_of_an_open_server_is_an_administrator)
{
    const sl_user_request bob = { .login_name = SL_STR("bob"), .password = SL_STR("bob-secret") };
    sl_user_request root = {
        .login_name = SL_STR("root"), .password = SL_STR("root-secret"), .groups = admins, .group_count = 1
    };
    server_call *call;
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    call = call_as(&rig, NULL, NULL, "Create", SL_USER_CALL_CREATE, &bob);
    EXPECT_CALL_STATUS(call, SL_STATUS_FAILED_PRECONDITION);
    EXPECT(strstr(call->message, "$admins") != NULL);
    EXPECT_CALL_STATUS(call_as(&rig, NULL, NULL, "Create", SL_USER_CALL_CREATE, &root), SL_STATUS_OK);
    EXPECT_CALL_STATUS(call_as(&rig, NULL, NULL, "Create", SL_USER_CALL_CREATE, &bob),
                       SL_STATUS_PERMISSION_DENIED);
    EXPECT_CALL_STATUS(as_root(&rig, "Create", SL_USER_CALL_CREATE, &bob), SL_STATUS_OK);
    server_rig_done(&rig);
}

/* --- details --- */

static void expect_details(const server_call *call, size_t index, const char *name, bool disabled)
{
    const char *reason;
    sl_user_details details;
    sl_arena arena;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    EXPECT(index < call->message_count);
    EXPECT_OK(sl_user_details_decode(call->messages[index], &arena, &details, &reason));
    EXPECT(sl_str_equal(details.login_name, sl_str_from(name)));
    EXPECT_EQ(details.disabled, disabled);
    EXPECT(details.updated_ticks > 0);
    sl_arena_done(&arena);
}

TEST(details_tell_one_user_or_all_by_name)
{
    server_call *call;
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT_CALL_STATUS(create_as_root(&rig, "bob", "bob-secret", NULL, 0), SL_STATUS_OK);
    EXPECT_CALL_STATUS(create_as_root(&rig, "ada", "ada-secret", sales, 2), SL_STATUS_OK);
    EXPECT_CALL_STATUS(name_as_root(&rig, "Disable", "bob"), SL_STATUS_OK);
    call = name_as_root(&rig, "Details", "");
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 3);
    expect_details(call, 0, "ada", false);
    expect_details(call, 1, "bob", true);
    expect_details(call, 2, "root", false);
    call = name_as_root(&rig, "Details", "ada");
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 1);
    expect_details(call, 0, "ada", false);
    EXPECT(memmem(call->messages[0].data, call->messages[0].bytes, "argon2", 6) == NULL);
    call = call_as(&rig, "ada", "ada-secret", "Details", SL_USER_CALL_NAME_ONLY,
                   &(sl_user_request){ .login_name = SL_STR("ada") });
    EXPECT_CALL_STATUS(call, SL_STATUS_OK); /* oneself */
    call = call_as(&rig, "ada", "ada-secret", "Details", SL_USER_CALL_NAME_ONLY,
                   &(sl_user_request){ .login_name = SL_STR("ghost") });
    EXPECT_CALL_STATUS(call, SL_STATUS_PERMISSION_DENIED); /* not even whether somebody exists */
    call = call_as(&rig, "ada", "ada-secret", "Details", SL_USER_CALL_NAME_ONLY, &(sl_user_request){ 0 });
    EXPECT_CALL_STATUS(call, SL_STATUS_PERMISSION_DENIED);
    auth_rig_done(&rig);
}

TEST(details_of_many_users_wait_for_a_client_that_reads_slowly)
{
    enum {
        USERS_MADE = 2000
    };
    char name[16], stream[32], record[512];
    const char *made = auth_rig_record("@", "some secret", "\"a group\"", false);
    char hash[160];
    server_call *call;
    server_rig rig;

    (void)snprintf(hash, sizeof hash, "%.*s", (int)strcspn(strstr(made, "$argon2id"), "\""),
                   strstr(made, "$argon2id"));
    server_rig_init(&rig);
    EXPECT_OK(sl_store_open_memory(&(sl_store_setup){ .alloc = &sl_alloc_default }, &rig.store));
    auth_rig_user(rig.store, "root", "root-secret", "\"$admins\"");
    for (int i = 0; i < USERS_MADE; i++) {
        (void)snprintf(name, sizeof name, "u%05d", i);
        (void)snprintf(stream, sizeof stream, "$user-%s", name);
        (void)snprintf(
            record, sizeof record,
            "{\"loginName\":\"%s\",\"fullName\":\"\",\"groups\":[],\"hash\":\"%s\",\"disabled\":true}", name,
            hash);
        auth_rig_append(rig.store, stream, "$UserCreated", record);
        auth_rig_append(rig.store, "$users", "$User", name);
    }
    server_rig_start(&rig);
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), USERS_MADE + 1);
    rig.authorization = auth_rig_basic("root", "root-secret");
    call = server_rig_call(&rig, USERS "Details");
    call->slow = true;
    server_call_send(call, SL_STR(""));
    server_call_half_close(call);
    server_rig_run_until_messages(&rig, call, 1);
    server_rig_run(&rig);
    auth_rig_append(rig.store, "$user-u01999", "$UserDeleted", "{}"); /* and meanwhile ... */
    server_call_read_on(call);
    server_rig_run_until_ended(&rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, USERS_MADE + 1);
    expect_details(call, 0, "root", false);
    expect_details(call, USERS_MADE, "u01999", true);
    auth_rig_done(&rig);
}

/* --- at the wrong moment --- */

static server_call *begin_create(server_rig *rig, const char *name)
{
    const sl_user_request request = {
        .login_name = sl_str_from(name), .password = SL_STR("long enough"), .groups = admins, .group_count = 1
    };
    sl_arena arena;
    sl_str message;
    server_call *call;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    EXPECT_OK(sl_user_request_encode(SL_USER_CALL_CREATE, &request, &arena, &message));
    rig->authorization = auth_rig_basic("root", "root-secret");
    call = server_rig_call(rig, USERS "Create");
    server_call_send(call, message);
    server_call_half_close(call);
    sl_arena_done(&arena);
    return call;
}

TEST(of_two_creations_at_once_one_wins)
{
    server_call *one, *two;
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT(can_log_in(&rig, "root", "root-secret"));
    one = begin_create(&rig, "ada");
    two = begin_create(&rig, "ada");
    server_rig_run_until_ended(&rig, one);
    server_rig_run_until_ended(&rig, two);
    EXPECT_CALL_STATUS(one, SL_STATUS_OK);
    EXPECT_CALL_STATUS(two, SL_STATUS_FAILED_PRECONDITION);
    expect_exception(two, "user-conflict", "ada");
    auth_rig_done(&rig);
}

/* Both come in one turn, and the first is inside of the door when the second is looked at. */
TEST(of_two_changes_of_a_user_at_once_the_second_is_told_to_try_again)
{
    const sl_user_request request = { .login_name = SL_STR("ada") };
    server_call *calls[2];
    server_rig rig;
    sl_arena arena;
    sl_str message;

    auth_rig_start(&rig);
    server_rig_append(&rig, "$user-ada", "$UserCreated",
                      auth_rig_record("ada", "long enough", "\"x\"", false));
    server_rig_append(&rig, "$users", "$User", "ada");
    EXPECT(can_log_in(&rig, "root", "root-secret"));
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    EXPECT_OK(sl_user_request_encode(SL_USER_CALL_NAME_ONLY, &request, &arena, &message));
    rig.authorization = auth_rig_basic("root", "root-secret");
    for (int i = 0; i < 2; i++) {
        calls[i] = server_rig_call(&rig, i == 0 ? USERS "Disable" : USERS "Enable");
        server_call_send(calls[i], message);
        server_call_half_close(calls[i]);
    }
    server_rig_run_until_ended(&rig, calls[0]);
    server_rig_run_until_ended(&rig, calls[1]);
    EXPECT_CALL_STATUS(calls[0], SL_STATUS_OK);
    EXPECT_CALL_STATUS(calls[1], SL_STATUS_DEADLINE_EXCEEDED);
    expect_exception(calls[1], "user-conflict", "ada");
    sl_arena_done(&arena);
    auth_rig_done(&rig);
}

TEST(a_creation_whose_client_goes_away_before_it_is_written_does_not_happen)
{
    server_call *call;
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT(can_log_in(&rig, "root", "root-secret"));
    call = begin_create(&rig, "ada");
    server_rig_run(&rig); /* its password is being hashed */
    EXPECT(!call->ended);
    server_call_cancel(call);
    server_rig_run(&rig);
    EXPECT(!can_log_in(&rig, "ada", "long enough")); /* behind it in the queue of the helper */
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), 1);
    call = begin_create(&rig, "bob");
    server_rig_run(&rig);
    server_rig_break(call->peer); /* the same with the whole connection */
    rig.first = NULL;
    server_rig_run(&rig);
    EXPECT(!can_log_in(&rig, "bob", "long enough"));
    auth_rig_done(&rig);
}

static server_call *begin_delete(server_rig *rig, const char *name)
{
    sl_arena arena;
    sl_str message;
    server_call *call;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    EXPECT_OK(sl_user_request_encode(
        SL_USER_CALL_NAME_ONLY, &(sl_user_request){ .login_name = sl_str_from(name) }, &arena, &message));
    call = server_rig_call(rig, USERS "Delete");
    server_call_send(call, message);
    server_call_half_close(call);
    sl_arena_done(&arena);
    return call;
}

/* Whatever the client is told, nothing is lost, and what was written is seen in the end. */
TEST(changes_survive_without_memory)
{
    bool ran_through = false;

    for (size_t fail_at = 1; !ran_through; fail_at++) {
        test_alloc failing = { 0 };
        const sl_alloc alloc = test_alloc_use(&failing);
        sl_store *store;
        sl_stream_info info;
        server_rig rig;
        server_call *call;

        server_rig_init(&rig);
        rig.alloc = &alloc;
        EXPECT_OK(sl_store_open_memory(&(sl_store_setup){ .alloc = &sl_alloc_default }, &rig.store));
        store = rig.store;
        auth_rig_user(store, "root", "root-secret", "\"$admins\"");
        auth_rig_user(store, "ada", "ada-secret", "");
        server_rig_start(&rig);
        rig.authorization = auth_rig_basic("root", "root-secret");
        EXPECT(can_log_in(&rig, "root", "root-secret"));
        call = begin_delete(&rig, "ada");
        failing.fail_at = failing.call_count + fail_at;
        server_rig_run(&rig); /* the engine may lose the whole connection */
        ran_through = failing.call_count < failing.fail_at;
        failing.fail_at = 0;
        server_rig_advance(&rig, UINT64_C(2000000000)); /* what could not be read is tried again */
        sl_store_stream(store, SL_STR("$user-ada"), &info);
        EXPECT_EQ(sl_auth_user_count(rig.host->auth), info.revision == 0 ? 2 : 1);
        EXPECT(!call->ended || call->status != SL_STATUS_OK || info.revision == 1);
        server_rig_done(&rig);
        EXPECT_EQ(failing.block_count, 0);
        sl_store_close(store);
    }
}

/* Who is not asked for a password gets as far as the service before the users are read. */
TEST(changes_are_refused_before_the_users_are_read)
{
    server_call *call;
    server_rig rig;

    server_rig_init(&rig);
    rig.settings.insecure = true;
    server_rig_open(&rig);
    call = begin_create(&rig, "ada");
    server_rig_run_until_ended(&rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAVAILABLE);
    call = begin_create(&rig, "ada");
    server_rig_run_until_ended(&rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    server_rig_done(&rig);
}

TEST(changes_are_refused_when_the_door_is_shut)
{
    server_call *call;
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT(can_log_in(&rig, "root", "root-secret"));
    sl_door_shut(rig.host->door, "maintenance");
    call = begin_create(&rig, "ada");
    server_rig_run_until_ended(&rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAVAILABLE);
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), 1);
    auth_rig_done(&rig);
}

static void expect_done(void *ctx, const sl_commit *commit)
{
    (void)ctx;
    EXPECT_OK(commit->err);
}

TEST(a_name_that_is_deleted_for_ever_cannot_be_used_again)
{
    const sl_op op = { .kind = SL_OP_TOMBSTONE,
                       .remove = { .stream = SL_STR("$user-ada"), .id = { { 5 } }, .created_ns = 1 } };
    server_call *call;
    server_rig rig;

    auth_rig_start(&rig);
    EXPECT_CALL_STATUS(create_as_root(&rig, "ada", "ada-secret", NULL, 0), SL_STATUS_OK);
    EXPECT_OK(sl_door_submit(rig.host->door, &(sl_batch){ .ops = &op, .op_count = 1 }, expect_done, NULL));
    server_rig_run(&rig);
    EXPECT_EQ(sl_auth_user_count(rig.host->auth), 1); /* the stream is gone, and so is the user */
    call = create_as_root(&rig, "ada", "ada-secret", NULL, 0);
    EXPECT_CALL_STATUS(call, SL_STATUS_FAILED_PRECONDITION);
    EXPECT_CALL_STATUS(create_as_root(&rig, "eve", "eve-secret", NULL, 0), SL_STATUS_OK);
    auth_rig_done(&rig);
}
