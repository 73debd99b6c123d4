/* tests/unit/server/test_recall.c — what becomes of calls that are open when their user changes (server/recall.h). */
#include "../base/support.h"
#include "auth_rig.h"
#include "read_rig.h"
#include "writes.h"

#include "base/cleanup.h"
#include "server/auth_inside.h"
#include "server/recall.h"
#include "server/reply.h"
#include "wire/server_control.h"
#include "wire/streams_control.h"

#define USERS "/event_store.client.users.Users/"

static const sl_str readers[] = { SL_STR_INIT("others"), SL_STR_INIT("readers") };

/* A server with the administrators root and ada, and bob, who is in the group "readers". */
static void start_with_users(writes *w)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 5, 6 } };

    writes_init(w);
    EXPECT_OK(sl_store_open_memory(&setup, &w->rig.store));
    auth_rig_user(w->rig.store, "root", "root-secret", "\"$admins\"");
    auth_rig_user(w->rig.store, "ada", "ada-secret", "\"$admins\"");
    auth_rig_user(w->rig.store, "bob", "bob-secret", "\"readers\"");
    server_rig_start(&w->rig);
}

static void end_with_users(writes *w)
{
    sl_store *const store = w->rig.store;

    writes_done(w);
    sl_store_close(store);
}

static void be(writes *w, const char *name)
{
    char password[64];

    (void)snprintf(password, sizeof password, "%s-secret", name);
    w->rig.authorization = auth_rig_basic(name, password);
}

/* --- calls that stay open --- */

static server_call *subscribe(writes *w, const char *name, const char *stream)
{
    const sl_read_request request = stream == NULL ? reads_from_end(reads_subscription_to_all())
                                                   : reads_from_end(reads_subscription(stream));
    server_call *call;

    be(w, name);
    call = reads_call(&w->rig, &request);
    server_rig_run_until_messages(&w->rig, call, 2);
    return call;
}

static server_call *open_batch(writes *w, const char *name)
{
    server_call *call;

    be(w, name);
    call = server_rig_call(&w->rig, WRITES_BATCH_PATH);
    writes_batch(w, call, 0, "orders", WRITES_ANY, 1, 1);
    server_rig_run_until_messages(&w->rig, call, 1);
    return call;
}

static void expect_recalled(const server_call *call)
{
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAUTHENTICATED);
    EXPECT_STR(call->message, SL_REPLY_REVOKED);
}

/* --- changes --- */

static server_call *ask_users(writes *w, const char *who, const char *method, sl_user_call kind,
                              const sl_user_request *request)
{
    char path[128];
    sl_str message;

    be(w, who);
    (void)snprintf(path, sizeof path, USERS "%s", method);
    EXPECT_OK(sl_user_request_encode(kind, request, &w->memory, &message));
    return server_rig_unary(&w->rig, path, message);
}

static void name_as_root(writes *w, const char *method, const char *name)
{
    EXPECT_CALL_STATUS(ask_users(w, "root", method, SL_USER_CALL_NAME_ONLY,
                                 &(sl_user_request){ .login_name = sl_str_from(name) }),
                       SL_STATUS_OK);
}

static void remove_user(writes *w, const char *name)
{
    name_as_root(w, "Delete", name);
}

static void disable_user(writes *w, const char *name)
{
    name_as_root(w, "Disable", name);
}

static void reset_password(writes *w, const char *name)
{
    EXPECT_CALL_STATUS(ask_users(w, "root", "ResetPassword", SL_USER_CALL_RESET_PASSWORD,
                                 &(sl_user_request){ .login_name = sl_str_from(name),
                                                     .new_password = SL_STR("another-secret") }),
                       SL_STATUS_OK);
}

/* Past the service, as whoever may write to the stream can. */
static void write_by_hand(writes *w, const char *name)
{
    char stream[64];

    (void)snprintf(stream, sizeof stream, "$user-%s", name);
    server_rig_append(&w->rig, stream, "$PasswordChanged", auth_rig_record(name, "other", "", false));
    server_rig_run(&w->rig);
}

static void damage(writes *w, const char *name)
{
    char stream[64];

    (void)snprintf(stream, sizeof stream, "$user-%s", name);
    server_rig_append(&w->rig, stream, "$UserUpdated", "no JSON");
    server_rig_run(&w->rig);
}

static void set_groups(writes *w, const char *name, size_t group_count)
{
    EXPECT_CALL_STATUS(ask_users(w, "root", "Update", SL_USER_CALL_UPDATE,
                                 &(sl_user_request){ .login_name = sl_str_from(name),
                                                     .full_name = SL_STR("Somebody"),
                                                     .groups = readers,
                                                     .group_count = group_count }),
                       SL_STATUS_OK);
    server_rig_run(&w->rig);
}

static void (*const changes[])(writes *w, const char *name) = { remove_user, disable_user, reset_password,
                                                                write_by_hand, damage };

TEST(the_open_calls_of_a_user_end_when_the_user_is_removed_disabled_or_has_another_password)
{
    for (size_t i = 0; i < SL_COUNT_OF(changes); i++) {
        server_call *subscription, *batch, *other;
        const char *stored;
        writes w;

        start_with_users(&w);
        subscription = subscribe(&w, "bob", "orders");
        other = subscribe(&w, "root", "orders");
        batch = open_batch(&w, "bob");
        stored = writes_stored(&w, "orders");
        changes[i](&w, "bob");
        expect_recalled(subscription); /* though nothing was written that it could have been sent */
        expect_recalled(batch);
        EXPECT_EQ(batch->message_count, 1);
        EXPECT_STR(writes_stored(&w, "orders"), stored);
        EXPECT_EQ(subscription->message_count, 3);
        EXPECT(!other->ended);
        end_with_users(&w);
    }
}

TEST(an_administrator_who_is_disabled_reads_nothing_more)
{
    server_call *all;
    writes w;

    start_with_users(&w);
    all = subscribe(&w, "ada", NULL);
    disable_user(&w, "ada");
    expect_recalled(all);
    EXPECT_EQ(w.rig.host->counters.subscriptions_now, 0);
    end_with_users(&w);
}

TEST(every_sort_of_call_that_stays_open_is_recalled)
{
    static const char *const paths[] = { WRITES_APPEND_PATH,
                                         "/kurrentdb.protocol.v2.streams.StreamsService/AppendSession",
                                         "/event_store.client.monitoring.Monitoring/Stats" };
    server_call *calls[SL_COUNT_OF(paths)];
    writes w;

    start_with_users(&w);
    for (size_t i = 0; i < SL_COUNT_OF(paths); i++) {
        be(&w, "bob");
        calls[i] = server_rig_call(&w.rig, paths[i]);
        if (i == 0)
            server_call_send(calls[i], writes_append_options(&w, SL_STR("orders"), WRITES_ANY));
        if (i == 2) {
            server_call_send(calls[i], SL_STR(""));
            server_call_half_close(calls[i]);
        }
    }
    server_rig_run_until_messages(&w.rig, calls[2], 1); /* all three were let in: they asked together */
    remove_user(&w, "bob");
    for (size_t i = 0; i < SL_COUNT_OF(paths); i++)
        expect_recalled(calls[i]);
    EXPECT_STR(writes_stored(&w, "orders"), "");
    end_with_users(&w);
}

/* As when the server stops: what is inside of the store is answered before the call ends, and nothing more is taken. */
TEST(what_was_accepted_before_the_user_was_removed_is_answered)
{
    server_call *batch;
    writes w;

    start_with_users(&w);
    batch = open_batch(&w, "bob");
    for (uint64_t i = 1; i < 5; i++)
        writes_batch(&w, batch, i, "orders", WRITES_ANY, 1 + i, 1);
    writes_deliver(&w);
    sl_recall_user(w.rig.host, sl_users_find(&w.rig.host->auth->users, SL_STR("bob")), false);
    EXPECT(!batch->ended);
    writes_batch(&w, batch, 9, "orders", WRITES_ANY, 10, 1);
    server_rig_run_until_ended(&w.rig, batch);
    expect_recalled(batch);
    EXPECT_EQ(batch->message_count, 5);
    EXPECT_STR(writes_stored(&w, "orders"), "0:t1 1:t2 2:t3 3:t4 4:t5");
    end_with_users(&w);
}

TEST(who_changes_the_own_password_hears_that_it_is_done_and_logs_in_anew)
{
    server_call *subscription;
    writes w;

    start_with_users(&w);
    subscription = subscribe(&w, "bob", "orders");
    EXPECT_CALL_STATUS(ask_users(&w, "bob", "ChangePassword", SL_USER_CALL_CHANGE_PASSWORD,
                                 &(sl_user_request){ .login_name = SL_STR("bob"),
                                                     .password = SL_STR("bob-secret"),
                                                     .new_password = SL_STR("another-secret") }),
                       SL_STATUS_OK);
    expect_recalled(subscription);
    end_with_users(&w);
}

static bool may_append(writes *w, server_call *batch)
{
    const size_t answered = batch->message_count;
    static uint64_t number = 1000;

    number++;
    writes_batch(w, batch, number, "sales", WRITES_ANY, number, 1);
    server_rig_run_until_messages(&w->rig, batch, answered + 1);
    return writes_batch_answer(batch, answered).kind == SL_BATCH_APPEND_RESPONSE_SUCCESS;
}

TEST(open_calls_go_on_with_the_groups_that_the_user_has_now)
{
    server_call *subscription, *batch;
    writes w;

    start_with_users(&w);
    server_rig_append(&w.rig, "$$sales", "$metadata", "{\"$acl\":{\"$r\":\"readers\",\"$w\":\"readers\"}}");
    subscription = subscribe(&w, "bob", "sales");
    batch = open_batch(&w, "bob");
    EXPECT(may_append(&w, batch));
    set_groups(&w, "bob", 1); /* "others" only */
    EXPECT(!batch->ended && !subscription->ended);
    EXPECT(!may_append(&w, batch));
    server_rig_append(&w.rig, "sales", "t", "{}");
    server_rig_run(&w.rig);
    EXPECT_CALL_STATUS(subscription, SL_STATUS_PERMISSION_DENIED);
    EXPECT_EQ(subscription->message_count, 3); /* confirmed, caught up, and the event from before */
    set_groups(&w, "bob", 2);
    EXPECT(may_append(&w, batch));
    end_with_users(&w);
}

TEST(an_administrator_who_is_none_any_more_loses_everything_at_the_next_event)
{
    server_call *all;
    writes w;

    start_with_users(&w);
    all = subscribe(&w, "ada", NULL);
    set_groups(&w, "ada", 2);
    EXPECT_CALL_STATUS(all, SL_STATUS_PERMISSION_DENIED); /* the change itself is an event */
    end_with_users(&w);
}

/* An open call keeps its memory for weeks. */
TEST(groups_that_change_often_take_memory_once)
{
    sl_request *request;
    size_t given_bytes = 0;
    writes w;

    start_with_users(&w);
    (void)open_batch(&w, "bob");
    request = SL_CONTAINER_OF(sl_list_first(&w.rig.host->requests), sl_request, node);
    EXPECT(sl_str_equal(request->identity.name, SL_STR("bob")));
    for (size_t i = 0; i < 20; i++) {
        set_groups(&w, "bob", i % 3);
        EXPECT_EQ(request->identity.group_count, i % 3);
        if (i % 3 == 2)
            EXPECT(sl_str_equal(request->identity.groups[1], SL_STR("readers")));
        EXPECT(i < 2 || request->arena.given_bytes == given_bytes);
        given_bytes = request->arena.given_bytes;
    }
    end_with_users(&w);
}

TEST(the_first_user_ends_the_calls_of_an_open_server_but_not_of_an_insecure_one)
{
    for (int insecure = 0; insecure < 2; insecure++) {
        const sl_read_request request = reads_subscription("orders");
        server_call *subscription;
        writes w;

        writes_init(&w);
        w.rig.settings.insecure = insecure;
        server_rig_start(&w.rig);
        subscription = reads_call(&w.rig, &request);
        server_rig_run(&w.rig);
        EXPECT_SAID(subscription, "confirmed caught-up");
        EXPECT_CALL_STATUS(ask_users(&w, "nobody", "Create", SL_USER_CALL_CREATE,
                                     &(sl_user_request){ .login_name = SL_STR("root"),
                                                         .password = SL_STR("root-secret"),
                                                         .full_name = SL_STR("Root"),
                                                         .groups = &SL_STR("$admins"),
                                                         .group_count = 1 }),
                           SL_STATUS_OK);
        server_rig_run(&w.rig);
        if (insecure)
            EXPECT(!subscription->ended);
        else
            expect_recalled(subscription);
        writes_done(&w);
    }
}

/* --- unary calls that have to wait --- */

/* Not even an empty write fits. */
static void fill_store(writes *w)
{
    static char data[16 * 1000 * 1000];
    size_t bytes = sizeof data;

    for (uint64_t number = 1; bytes > 0;) {
        const sl_event_in event = { .id = { { 1, (uint8_t)number } },
                                    .type = SL_STR("t"),
                                    .data = { data, bytes } };
        const sl_op op = { .kind = SL_OP_APPEND,
                           .append = { .stream = SL_STR("large"), .events = &event, .event_count = 1 } };

        if (writes_submit(w, &op))
            number++;
        else
            bytes /= 2;
    }
}

TEST(a_unary_call_that_waits_at_the_door_does_nothing_for_a_user_who_is_gone)
{
    const sl_delete_request request = { SL_STR("orders"), WRITES_ANY };
    server_call *removal;
    sl_str message;
    writes w;

    start_with_users(&w);
    (void)open_batch(&w, "bob"); /* writes the event, and lets bob in at once the next time */
    EXPECT_OK(sl_delete_request_encode(&request, &w.memory, &message));
    fill_store(&w);
    removal = server_rig_call(&w.rig, WRITES_DELETE_PATH);
    server_call_send(removal, message);
    server_call_half_close(removal);
    writes_deliver(&w);
    sl_recall_user(w.rig.host, sl_users_find(&w.rig.host->auth->users, SL_STR("bob")), false);
    EXPECT(!removal->ended);
    server_rig_run(&w.rig);
    expect_recalled(removal);
    EXPECT_STR(writes_stored(&w, "orders"), "0:t1");
    end_with_users(&w);
}

TEST(an_identity_that_was_revoked_may_nothing_whoever_it_was)
{
    static const sl_identity was[] = { { .name = SL_STR_INIT("root"), .is_admin = true, .is_revoked = true },
                                       { .is_trusted = true, .is_revoked = true },
                                       { .name = SL_STR_INIT("bob"), .is_revoked = true } };
    sl_reader_node reader;
    writes w;

    writes_start(&w);
    sl_reader_init(&reader, SL_STR(""), NULL, NULL);
    for (size_t i = 0; i < SL_COUNT_OF(was); i++)
        for (sl_action action = SL_ACTION_READ; action <= SL_ACTION_DELETE; action++)
            EXPECT_EQ(sl_access_check(w.rig.host->access, &was[i], SL_STR("orders"), action, &reader),
                      SL_ACCESS_DENIED);
    writes_done(&w);
}
