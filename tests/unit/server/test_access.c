/* May he: stream metadata, $settings and what is built in (shared semantics, section 25), also on a slow disk. */
#include "test.h"

#include "auth_rig.h"
#include "base/support.h"
#include "server/access.h"
#include "store/faulty/faulty.h"

static const sl_str ops_group[] = { SL_STR_INIT("$ops") };
static const sl_identity ada = {
    .name = SL_STR_INIT("ada"), .groups = ops_group, .group_count = 1, .is_operator = true
};
static const sl_identity bob = { .name = SL_STR_INIT("bob") };
static const sl_identity nobody = { 0 };
static const sl_identity admin = { .name = SL_STR_INIT("root"), .is_admin = true };
static const sl_identity trusted = { .is_trusted = true };

/* Somebody who asks, and asks again when he is told to. */
typedef struct asker {
    server_rig *rig;
    const sl_identity *identity;
    const char *stream;
    sl_action action;
    sl_reader_node reader;
    sl_access_verdict verdict;
    bool done;
    unsigned asked;
} asker;

static void ask_again(void *ctx)
{
    asker *const a = ctx;

    a->asked++;
    a->verdict =
        sl_access_check(a->rig->host->access, a->identity, sl_str_from(a->stream), a->action, &a->reader);
    a->done = a->verdict != SL_ACCESS_PENDING;
}

static void ask(server_rig *rig, asker *a, const sl_identity *identity, const char *stream, sl_action action)
{
    *a = (asker){ .rig = rig, .identity = identity, .stream = stream, .action = action };
    sl_reader_init(&a->reader, SL_STR(""), ask_again, a);
    ask_again(a);
}

static bool may(server_rig *rig, const sl_identity *identity, const char *stream, sl_action action)
{
    asker a;

    ask(rig, &a, identity, stream, action);
    if (!a.done)
        server_rig_run_until(rig, &a.done);
    EXPECT(a.verdict == SL_ACCESS_ALLOWED || a.verdict == SL_ACCESS_DENIED);
    return a.verdict == SL_ACCESS_ALLOWED;
}

static bool may_read(server_rig *rig, const sl_identity *identity, const char *stream)
{
    return may(rig, identity, stream, SL_ACTION_READ);
}

TEST(access_without_any_list_is_for_everybody_but_for_system_streams)
{
    static const struct {
        const char *stream;
        bool read, write, delete;
    } rows[] = {
        { "orders", true, true, true },
        { "a$b", true, true, true },
        { "$ce-orders", false, false, false },
        { "$settings", false, false, false },
        { "$users", false, false, false },
        { "$user-ada", false, false, false },
        { "$all", false, false, false },
        { "$$orders", true, true, false }, /* metadata cannot be deleted */
        { "$$$settings", false, false, false },
        { "$$$all", false, false, false },
        { "$$", true, true, false }, /* no stream; the store will say so */
        { "", true, true, true },
    };
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_ROW(may(&rig, &ada, rows[i].stream, SL_ACTION_READ) == rows[i].read, i);
        EXPECT_ROW(may(&rig, &ada, rows[i].stream, SL_ACTION_WRITE) == rows[i].write, i);
        EXPECT_ROW(may(&rig, &ada, rows[i].stream, SL_ACTION_DELETE) == rows[i].delete, i);
        EXPECT_ROW(may_read(&rig, &admin, rows[i].stream), i);
        EXPECT_ROW(may(&rig, &trusted, rows[i].stream, SL_ACTION_DELETE), i);
        EXPECT_ROW(!may_read(&rig, &nobody, rows[i].stream), i);
    }
    EXPECT(may(&rig, &admin, "$settings", SL_ACTION_DELETE));
    EXPECT(!may(&rig, &admin, "$all", SL_ACTION_WRITE)); /* nobody */
    EXPECT(!may(&rig, &admin, "$all", SL_ACTION_DELETE));
    EXPECT(!may(&rig, &admin, "$$orders", SL_ACTION_DELETE));
    server_rig_done(&rig);
}

TEST(access_denied_is_counted)
{
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    EXPECT(may_read(&rig, &ada, "orders"));
    EXPECT_EQ(rig.host->counters.access_denied, 0);
    EXPECT(!may_read(&rig, &ada, "$all"));
    EXPECT(!may(&rig, &admin, "$all", SL_ACTION_WRITE));
    EXPECT_EQ(rig.host->counters.access_denied, 2);
    server_rig_done(&rig);
}

TEST(access_follows_the_last_metadata_of_a_stream)
{
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    server_rig_append(&rig, "$$orders", "$metadata", "{\"$acl\":{\"$r\":\"ada\",\"$mw\":[\"bob\"]}}");
    EXPECT(may_read(&rig, &ada, "orders"));
    EXPECT(!may_read(&rig, &bob, "orders"));
    EXPECT(may(&rig, &bob, "orders", SL_ACTION_WRITE)); /* not named */
    EXPECT(may(&rig, &bob, "$$orders", SL_ACTION_READ));
    EXPECT(may(&rig, &bob, "$$orders", SL_ACTION_WRITE));
    EXPECT(!may(&rig, &ada, "$$orders", SL_ACTION_WRITE));
    EXPECT(may_read(&rig, &bob, "orders2"));
    server_rig_append(&rig, "$$orders", "$metadata", "{\"$acl\":{\"$r\":[\"bob\",\"$ops\"]}}");
    EXPECT(may_read(&rig, &ada, "orders")); /* by group */
    EXPECT(may_read(&rig, &bob, "orders"));
    server_rig_append(&rig, "$$orders", "$metadata", "{\"$acl\":{\"$r\":[]}}");
    EXPECT(!may_read(&rig, &ada, "orders"));
    EXPECT(may_read(&rig, &admin, "orders"));
    server_rig_append(&rig, "$$orders", "$metadata", "this is no JSON");
    EXPECT(may_read(&rig, &ada, "orders"));
    server_rig_append(&rig, "$$$ce-orders", "$metadata", "{\"$acl\":{\"$r\":\"$all\"}}");
    EXPECT(may_read(&rig, &ada, "$ce-orders"));
    EXPECT(!may(&rig, &ada, "$ce-orders", SL_ACTION_WRITE));
    server_rig_done(&rig);
}

TEST(access_to_everything_can_be_given_by_the_metadata_of_all)
{
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    EXPECT(!may_read(&rig, &ada, "$all"));
    server_rig_append(&rig, "$$$all", "$metadata", "{\"$acl\":{\"$r\":\"$ops\",\"$w\":\"$all\"}}");
    EXPECT(may_read(&rig, &ada, "$all"));
    EXPECT(!may_read(&rig, &bob, "$all"));
    EXPECT(!may(&rig, &ada, "$all", SL_ACTION_WRITE));
    server_rig_done(&rig);
}

TEST(access_falls_to_the_defaults_in_settings)
{
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    server_rig_append(&rig, "$settings", "settings",
                      "{\"$userStreamAcl\":{\"$r\":\"ada\",\"$w\":\"$admins\"},"
                      "\"$systemStreamAcl\":{\"$r\":\"bob\"}}");
    EXPECT(may_read(&rig, &ada, "orders"));
    EXPECT(!may_read(&rig, &bob, "orders"));
    EXPECT(!may(&rig, &ada, "orders", SL_ACTION_WRITE));
    EXPECT(may(&rig, &bob, "orders", SL_ACTION_DELETE)); /* not named */
    EXPECT(may_read(&rig, &bob, "$ce-x"));
    EXPECT(!may_read(&rig, &ada, "$ce-x"));
    EXPECT(!may(&rig, &bob, "$ce-x", SL_ACTION_WRITE));
    server_rig_append(&rig, "$$orders", "$metadata", "{\"$acl\":{\"$r\":\"bob\"}}");
    EXPECT(may_read(&rig, &bob, "orders")); /* the stream's own comes first */
    EXPECT(!may_read(&rig, &ada, "orders"));
    EXPECT(!may(&rig, &bob, "orders", SL_ACTION_WRITE)); /* which it does not name */
    server_rig_append(&rig, "$settings", "settings", "{}");
    EXPECT(may_read(&rig, &bob, "orders2"));
    EXPECT(!may_read(&rig, &bob, "$ce-x"));
    server_rig_done(&rig);
}

TEST(access_for_callers_without_a_name_is_a_matter_of_the_settings)
{
    server_rig rig;

    server_rig_init(&rig);
    rig.settings.anonymous = true;
    server_rig_start(&rig);
    EXPECT(may_read(&rig, &nobody, "orders"));
    EXPECT(!may_read(&rig, &nobody, "$all"));
    server_rig_append(&rig, "$$orders", "$metadata", "{\"$acl\":{\"$r\":[\"ada\",\"\"]}}");
    EXPECT(!may_read(&rig, &nobody, "orders"));
    server_rig_done(&rig);
}

static void note_done(void *ctx, const sl_commit *commit)
{
    EXPECT_OK(commit->err);
    *(bool *)ctx = true;
}

/* The revision is known before the event can be read. */
TEST(access_follows_metadata_from_the_moment_on_that_it_is_durable)
{
    const sl_event_in event = { .id = { { 9 } },
                                .type = SL_STR("$metadata"),
                                .data = SL_STR("{\"$acl\":{\"$r\":\"bob\"}}"),
                                .created_ns = 1 };
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { .stream = SL_STR("$$orders"), .events = &event, .event_count = 1 } };
    bool done = false;
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    server_rig_append(&rig, "$$orders", "$metadata", "{\"$acl\":{\"$r\":\"ada\"}}");
    EXPECT(!may_read(&rig, &bob, "orders"));
    EXPECT_OK(sl_store_submit(rig.host->store, &(sl_batch){ .ops = &op, .op_count = 1 }, note_done, &done));
    EXPECT(!may_read(&rig, &bob, "orders"));
    EXPECT(may_read(&rig, &ada, "orders"));
    server_rig_run_until(&rig, &done);
    EXPECT(may_read(&rig, &bob, "orders"));
    EXPECT(!may_read(&rig, &ada, "orders"));
    server_rig_done(&rig);
}

/* The same when nothing is remembered: a list that is being replaced does not open its stream. */
TEST(access_waits_for_metadata_that_hides_what_was_there)
{
    const sl_event_in event = { .id = { { 9 } },
                                .type = SL_STR("$metadata"),
                                .data = SL_STR("{\"$acl\":{\"$r\":\"bob\"}}"),
                                .created_ns = 1 };
    const sl_op ops[] = {
        { .kind = SL_OP_APPEND,
          .append = { .stream = SL_STR("$$orders"), .events = &event, .event_count = 1 } },
        { .kind = SL_OP_APPEND, .append = { .stream = SL_STR("$$new"), .events = &event, .event_count = 1 } },
    };
    bool done = false;
    server_rig rig;
    asker a, b;

    server_rig_init(&rig);
    server_rig_start(&rig);
    server_rig_append(&rig, "$$orders", "$metadata", "{\"$acl\":{\"$r\":\"ada\"}}");
    EXPECT_OK(sl_store_submit(rig.host->store, &(sl_batch){ .ops = ops, .op_count = 2 }, note_done, &done));
    ask(&rig, &a, &ada, "orders", SL_ACTION_READ);
    ask(&rig, &b, &bob, "orders", SL_ACTION_READ);
    EXPECT(a.verdict == SL_ACCESS_PENDING && b.verdict == SL_ACCESS_PENDING);
    EXPECT(may_read(&rig, &ada, "new")); /* there was none before */
    server_rig_run_until(&rig, &a.done);
    server_rig_run_until(&rig, &b.done);
    EXPECT_EQ(a.verdict, SL_ACCESS_DENIED);
    EXPECT_EQ(b.verdict, SL_ACCESS_ALLOWED);
    server_rig_done(&rig);
}

TEST(access_is_bounded_whatever_streams_are_asked_for)
{
    char stream[64];
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    for (int i = 0; i < 9000; i++) { /* more than are remembered */
        (void)snprintf(stream, sizeof stream, "$$s%d", i);
        auth_rig_append(rig.host->store, stream, "$metadata",
                        i % 2 ? "{\"$acl\":{\"$r\":\"ada\"}}" : "{\"$acl\":{\"$r\":\"bob\"}}");
    }
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 9000; i++) {
            (void)snprintf(stream, sizeof stream, "s%d", i);
            EXPECT_ROW(may_read(&rig, &ada, stream) == (i % 2 == 1), i);
        }
    server_rig_done(&rig);
}

TEST(access_to_names_that_are_too_long_for_metadata_is_the_default)
{
    static char stream[4000];
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    memset(stream, 'x', sizeof stream - 1);
    EXPECT(may_read(&rig, &ada, stream));
    for (size_t bytes = 1020; bytes < 1027; bytes++) {
        stream[bytes] = 0;
        EXPECT(may_read(&rig, &ada, stream));
        stream[bytes] = 'x';
    }
    stream[0] = '$';
    EXPECT(!may_read(&rig, &ada, stream));
    server_rig_done(&rig);
}

/* --- a slow disk --- */

typedef struct slow_rig {
    sl_faulty *disk;
    server_rig rig;
} slow_rig;

static void slow_start(slow_rig *slow)
{
    static const sl_journal_options options = { .segment_bytes = 0 };
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 7, 8 } };
    char memory[256];
    sl_text report;

    sl_text_init(&report, memory, sizeof memory);
    slow->disk = sl_faulty_new();
    server_rig_init(&slow->rig);
    EXPECT_OK(sl_store_open_faulty(&setup, &options, slow->disk, &report, &slow->rig.store));
    server_rig_start(&slow->rig);
    sl_faulty_slow_reads(slow->disk, 1);
}

static void slow_done(slow_rig *slow)
{
    auth_rig_done(&slow->rig);
    sl_faulty_free(slow->disk);
}

TEST(access_waits_for_a_slow_disk_and_then_remembers)
{
    slow_rig slow;
    asker first, second;

    slow_start(&slow);
    server_rig_append(&slow.rig, "$$orders", "$metadata", "{\"$acl\":{\"$r\":\"ada\"}}");
    ask(&slow.rig, &first, &ada, "orders", SL_ACTION_READ);
    ask(&slow.rig, &second, &bob, "orders", SL_ACTION_READ); /* shares the reading */
    EXPECT(first.verdict == SL_ACCESS_PENDING && second.verdict == SL_ACCESS_PENDING);
    server_rig_run_until(&slow.rig, &first.done);
    server_rig_run_until(&slow.rig, &second.done);
    EXPECT_EQ(first.verdict, SL_ACCESS_ALLOWED);
    EXPECT_EQ(second.verdict, SL_ACCESS_DENIED);
    ask(&slow.rig, &second, &bob, "orders", SL_ACTION_READ);
    EXPECT_EQ(second.verdict, SL_ACCESS_DENIED); /* at once */
    slow_done(&slow);
}

TEST(access_readings_go_on_when_the_one_who_asked_is_gone)
{
    slow_rig slow;
    asker a;

    slow_start(&slow);
    server_rig_append(&slow.rig, "$$orders", "$metadata", "{\"$acl\":{\"$r\":\"ada\"}}");
    server_rig_append(&slow.rig, "$$other", "$metadata", "{\"$acl\":{\"$r\":\"ada\"}}");
    ask(&slow.rig, &a, &bob, "orders", SL_ACTION_READ);
    EXPECT_EQ(a.verdict, SL_ACCESS_PENDING);
    sl_tail_forget(slow.rig.host->tail, &a.reader);
    EXPECT(!may_read(&slow.rig, &bob, "other"));
    server_rig_run(&slow.rig);
    ask(&slow.rig, &a, &bob, "orders", SL_ACTION_READ);
    if (!a.done)
        server_rig_run_until(&slow.rig, &a.done);
    EXPECT_EQ(a.verdict, SL_ACCESS_DENIED);
    ask(&slow.rig, &a, &bob, "other", SL_ACTION_READ);
    ask(&slow.rig, &a, &bob, "orders", SL_ACTION_READ);
    slow_done(&slow);
}

/* What a reading that began earlier shows is not the last word. */
TEST(access_readings_that_are_out_of_date_are_done_again)
{
    static const char *const streams[] = { "$$orders", "$settings" };
    static const char *const lists[] = { "$acl", "$userStreamAcl" };
    char json[128];

    for (size_t i = 0; i < 2; i++) {
        slow_rig slow;
        asker a;

        slow_start(&slow);
        (void)snprintf(json, sizeof json, "{\"%s\":{\"$r\":\"ada\"}}", lists[i]);
        server_rig_append(&slow.rig, streams[i], "x", json);
        ask(&slow.rig, &a, &bob, "orders", SL_ACTION_READ);
        EXPECT_EQ(a.verdict, SL_ACCESS_PENDING);
        (void)snprintf(json, sizeof json, "{\"%s\":{\"$r\":\"bob\"}}", lists[i]);
        auth_rig_append(slow.rig.store, streams[i], "x", json); /* the host had no turn meanwhile */
        EXPECT(may_read(&slow.rig, &bob, "orders"));
        EXPECT(!may_read(&slow.rig, &ada, "orders"));
        sl_tail_forget(slow.rig.host->tail, &a.reader);
        slow_done(&slow);
    }
}

TEST(access_has_a_limit_on_readings_and_everybody_gets_an_answer)
{
    enum {
        ASKERS = 200
    };
    static char names[ASKERS][16];
    static asker askers[ASKERS];
    slow_rig slow;
    char stream[32];

    slow_start(&slow);
    for (int i = 0; i < ASKERS; i++) {
        (void)snprintf(stream, sizeof stream, "$$s%d", i);
        server_rig_append(&slow.rig, stream, "$metadata",
                          i % 2 ? "{\"$acl\":{\"$r\":\"ada\"}}" : "{\"$acl\":{\"$r\":\"bob\"}}");
    }
    for (int i = 0; i < ASKERS; i++) {
        (void)snprintf(names[i], sizeof names[i], "s%d", i);
        ask(&slow.rig, &askers[i], &ada, names[i], SL_ACTION_READ);
    }
    for (int i = 0; i < ASKERS; i++) {
        if (!askers[i].done)
            server_rig_run_until(&slow.rig, &askers[i].done);
        EXPECT_ROW(askers[i].verdict == (i % 2 ? SL_ACCESS_ALLOWED : SL_ACCESS_DENIED), i);
    }
    slow_done(&slow);
}

TEST(access_fails_when_the_list_cannot_be_read)
{
    slow_rig slow;
    asker a;

    slow_start(&slow);
    server_rig_append(&slow.rig, "$$orders", "$metadata", "{\"$acl\":{\"$r\":\"ada\"}}");
    sl_faulty_kill(slow.disk); /* from now on every call fails */
    ask(&slow.rig, &a, &ada, "orders", SL_ACTION_READ);
    if (!a.done)
        server_rig_run_until(&slow.rig, &a.done);
    EXPECT_EQ(a.verdict, SL_ACCESS_FAILED); /* and not allowed */
    slow_done(&slow);
}

TEST(access_survives_without_memory)
{
    bool ran_through = false;

    for (size_t fail_at = 1; !ran_through; fail_at++) {
        test_alloc failing = { 0 };
        const sl_alloc alloc = test_alloc_use(&failing);
        server_rig rig;
        asker a;

        server_rig_init(&rig);
        rig.alloc = &alloc;
        server_rig_start(&rig);
        auth_rig_append(rig.host->store, "$$orders", "$metadata", "{\"$acl\":{\"$w\":\"ada\"}}");
        auth_rig_append(rig.host->store, "$settings", "x", "{\"$userStreamAcl\":{\"$r\":\"bob\"}}");
        failing.fail_at = failing.call_count + fail_at;
        ask(&rig, &a, &ada, "orders", SL_ACTION_READ);
        ran_through = failing.call_count < failing.fail_at;
        EXPECT_EQ(a.verdict, ran_through ? SL_ACCESS_DENIED : SL_ACCESS_FAILED);
        failing.fail_at = 0;
        EXPECT(!may_read(&rig, &ada, "orders"));
        EXPECT(may_read(&rig, &bob, "orders"));
        server_rig_done(&rig);
        EXPECT_EQ(failing.block_count, 0);
    }
}
