/* tests/unit/server/test_read_filter.c — which events of $all a reader is shown, and what a filter may be
 * (shared kurrent-semantics 24, kurrent-wire 3.1). */
#include "read_rig.h"

#include <stdio.h>
#include <string.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* A read of $all, once, with this filter. */
static sl_read_request read_with(sl_wire_filter_on on, const char *regex, const sl_str *prefixes,
                                 size_t prefix_count)
{
    sl_read_request request = reads_of_all();

    request.filter = (sl_wire_filter){ .kind = SL_WIRE_FILTER_GIVEN,
                                       .on = on,
                                       .regex = sl_str_from(regex),
                                       .prefixes = prefixes,
                                       .prefix_count = prefix_count,
                                       .window = SL_WIRE_WINDOW_COUNT };
    return request;
}

static void write_some(server_rig *rig)
{
    reads_append_typed(rig, "order-1", "placed", "{}");
    reads_append_typed(rig, "user-1", "born", "{}");
    reads_append_typed(rig, "order-2", "paid", "{}");
    reads_append_typed(rig, "$ce-order", "$>", "0@order-1");
    reads_append_typed(rig, "заказ", "оплачен", "{}");
}

TEST(a_filter_looks_at_names_or_at_types_by_prefix_or_by_expression)
{
    static const sl_str orders[] = { SL_STR_INIT("order-") };
    static const sl_str both[] = { SL_STR_INIT("user-"), SL_STR_INIT("order-2") };
    static const sl_str p[] = { SL_STR_INIT("p") };
    static const sl_str everything[] = { SL_STR_INIT("") };
    static const struct {
        sl_wire_filter_on on;
        const char *regex;
        const sl_str *prefixes;
        size_t prefix_count;
        const char *said;
    } rows[] = {
        { SL_WIRE_FILTER_ON_STREAM, "", orders, 1, "order-1:0 order-2:0 OK" },
        { SL_WIRE_FILTER_ON_STREAM, "", both, 2, "user-1:0 order-2:0 OK" },
        { SL_WIRE_FILTER_ON_TYPE, "", p, 1, "order-1:0 order-2:0 OK" },
        { SL_WIRE_FILTER_ON_TYPE, "", orders, 1, "OK" },
        { SL_WIRE_FILTER_ON_STREAM, "", everything, 1,
          "order-1:0 user-1:0 order-2:0 $ce-order:0 заказ:0 OK" },
        { SL_WIRE_FILTER_ON_STREAM, "er-1", NULL, 0, "order-1:0 user-1:0 OK" }, /* not anchored */
        { SL_WIRE_FILTER_ON_STREAM, "ER-1", NULL, 0, "OK" },
        { SL_WIRE_FILTER_ON_STREAM, "^user", orders, 1, "user-1:0 OK" }, /* the expression wins */
        { SL_WIRE_FILTER_ON_STREAM, "^[^$].*", NULL, 0,
          "order-1:0 user-1:0 order-2:0 заказ:0 OK" },                                         /* Node */
        { SL_WIRE_FILTER_ON_TYPE, "^(?!(paid|born|\\$.+))", NULL, 0, "order-1:0 заказ:0 OK" }, /* Python */
        { SL_WIRE_FILTER_ON_TYPE, "^\\w+ен$", NULL, 0, "заказ:0 OK" },
    };
    server_rig rig;

    reads_start(&rig, NULL);
    write_some(&rig);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const sl_read_request request =
            read_with(rows[i].on, rows[i].regex, rows[i].prefixes, rows[i].prefix_count);
        const char *const said = reads_said(reads_do(&rig, request));

        if (strcmp(said, rows[i].said) != 0)
            fail_msg("row %zu: \"%s\", wanted \"%s\"", i, said, rows[i].said);
    }
    server_rig_done(&rig);
}

/* The window only says how large a page would be: the count is of events that match, and reading goes on until the end. */
TEST(a_filtered_read_gives_as_many_matches_as_were_asked_for)
{
    sl_read_request request = read_with(SL_WIRE_FILTER_ON_STREAM, "^b$", NULL, 0);
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "a", 3000);
    reads_append(&rig, "b", 2);
    reads_append(&rig, "a", 3000);
    reads_append(&rig, "b", 2);
    request.filter.window = SL_WIRE_WINDOW_MAX;
    request.filter.window_max = 1;
    EXPECT_SAID(reads_do(&rig, request), "b:0 b:1 b:2 b:3 OK");
    EXPECT_SAID(reads_do(&rig, reads_count(request, 3)), "b:0 b:1 b:2 OK");
    EXPECT_SAID(reads_do(&rig, reads_backwards(reads_from_end(request))), "b:3 b:2 b:1 b:0 OK");
    EXPECT_SAID(reads_do(&rig, reads_count(reads_backwards(reads_from_end(request)), 1)), "b:3 OK");
    server_rig_done(&rig);
}

TEST(records_of_groups_on_all_and_of_elections_are_shown_to_nobody)
{
    static const struct {
        const char *stream;
        bool shown;
    } rows[] = {
        { "$epoch-information", false },
        { "$persistentsubscription-$all::g-checkpoint", false },
        { "$persistentsubscription-$all::g-parked", false },
        { "$persistentsubscription-$all::-parked", false },
        { "$persistentsubscription-$all::g-other", true },
        { "$persistentsubscription-$all:g-parked", true },
        { "$persistentsubscription-orders::g-checkpoint", true },
        { "$persistentsubscription-orders::g-parked", true },
        { "$epoch-information-2", true },
        { "$persistentSubscriptionConfig", true },
        { "$settings", true },
        { "$", true },
        { "$$described", true },
        { "epoch-information", true },
    };
    static const sl_str everything[] = { SL_STR_INIT("") };
    sl_read_request filtered = read_with(SL_WIRE_FILTER_ON_STREAM, "", everything, 1);
    server_rig rig;

    for (size_t i = 0; i < ROWS(rows); i++) {
        char wanted[128] = "OK";

        reads_start(&rig, NULL);
        reads_append_typed(&rig, rows[i].stream, "t", "{}");
        if (rows[i].shown)
            (void)snprintf(wanted, sizeof wanted, "%s:0 OK", rows[i].stream);
        EXPECT_SAID(reads_do(&rig, reads_of_all()), wanted);
        EXPECT_SAID(reads_do(&rig, reads_backwards(reads_from_end(reads_of_all()))), wanted);
        EXPECT_SAID(reads_do(&rig, filtered), wanted);
        (void)snprintf(wanted, sizeof wanted, "%s:0 OK", rows[i].stream); /* by its name everybody sees it */
        EXPECT_SAID(reads_do(&rig, reads_of_stream(rows[i].stream)), wanted);
        server_rig_done(&rig);
    }
}

TEST(a_hidden_event_counts_for_nothing)
{
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append_typed(&rig, "$epoch-information", "t", "{}");
    reads_append(&rig, "a", 2);
    EXPECT_SAID(reads_do(&rig, reads_count(reads_of_all(), 1)), "a:0 OK");
    EXPECT_SAID(reads_begin(&rig, reads_subscription_to_all()), "confirmed a:0 a:1 caught-up@3");
    server_rig_done(&rig);
}

TEST(a_filter_that_cannot_be_used_is_refused_with_a_reason)
{
    static char longest[4097];
    static sl_str many[1025];
    static const sl_str one[] = { SL_STR_INIT("a") };
    const struct {
        const char *what;
        sl_wire_filter filter;
        const char *text;
    } rows[] = {
        { "on nothing",
          { .window = SL_WIRE_WINDOW_COUNT, .prefixes = one, .prefix_count = 1 },
          "event_type" },
        { "no window", { .on = SL_WIRE_FILTER_ON_TYPE, .prefixes = one, .prefix_count = 1 }, "window" },
        { "empty", { .on = SL_WIRE_FILTER_ON_TYPE, .window = SL_WIRE_WINDOW_COUNT }, "filter" },
        { "broken",
          { .on = SL_WIRE_FILTER_ON_TYPE, .window = SL_WIRE_WINDOW_COUNT, .regex = SL_STR_INIT("a(b") },
          "filter cannot be used" },
        { "too many",
          { .on = SL_WIRE_FILTER_ON_TYPE,
            .window = SL_WIRE_WINDOW_COUNT,
            .prefixes = many,
            .prefix_count = 1025 },
          "too large" },
        { "too long",
          { .on = SL_WIRE_FILTER_ON_TYPE,
            .window = SL_WIRE_WINDOW_COUNT,
            .regex = { longest, sizeof longest } },
          "too large" },
    };
    server_rig rig;

    memset(longest, 'a', sizeof longest);
    for (size_t i = 0; i < ROWS(many); i++)
        many[i] = SL_STR("a");
    reads_start(&rig, NULL);
    for (size_t i = 0; i < ROWS(rows); i++) {
        sl_read_request request = reads_of_all();
        const server_call *call;

        request.filter = rows[i].filter;
        request.filter.kind = SL_WIRE_FILTER_GIVEN;
        call = reads_do(&rig, request);
        if (call->status != SL_STATUS_INVALID_ARGUMENT || strstr(call->message, rows[i].text) == NULL)
            fail_msg("%s: %s \"%s\"", rows[i].what, sl_status_name(call->status), call->message);
    }
    server_rig_done(&rig);
}

TEST(a_window_of_nothing_is_refused_where_it_means_something)
{
    sl_read_request request = reads_filtered("a", 1, 1);
    server_rig rig;

    reads_start(&rig, NULL);
    request.filter.window_max = 0;
    EXPECT_SAID(reads_do(&rig, request), "INVALID_ARGUMENT");
    request.extent = SL_READ_EXTENT_COUNT;
    request.filter.checkpoint_multiplier = 0; /* reads ignore both */
    EXPECT_SAID(reads_do(&rig, request), "OK");
    server_rig_done(&rig);
}

TEST(there_are_no_secondary_indexes)
{
    static const sl_str index[] = { SL_STR_INIT("$idx-ce-order") };
    static const sl_str several[] = { SL_STR_INIT("a"), SL_STR_INIT("$idx-all") };
    const server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    call = reads_do(&rig, read_with(SL_WIRE_FILTER_ON_STREAM, "", index, 1));
    EXPECT_CALL_STATUS(call, SL_STATUS_NOT_FOUND);
    EXPECT_STR(server_call_trailer(call, "exception"), "index-not-found");
    EXPECT_STR(server_call_trailer(call, "index-name"), "$idx-ce-order");
    call = reads_do(&rig, read_with(SL_WIRE_FILTER_ON_STREAM, "", several, 2));
    EXPECT_CALL_STATUS(call, SL_STATUS_INVALID_ARGUMENT);
    EXPECT_SAID(reads_do(&rig, read_with(SL_WIRE_FILTER_ON_TYPE, "", index, 1)), "OK");
    EXPECT_SAID(reads_do(&rig, read_with(SL_WIRE_FILTER_ON_STREAM, "x", index, 1)), "OK"); /* an expression */
    server_rig_done(&rig);
}

/* --- expressions that would take for ever --- */

enum {
    HOSTILE_BYTES = 900
};

/* An event that nobody can judge with this expression, between two that everybody can. */
static sl_read_request write_hostile(server_rig *rig)
{
    static char name[HOSTILE_BYTES + 1];

    memset(name, 'a', HOSTILE_BYTES);
    reads_start(rig, NULL);
    reads_append(rig, "aab", 1); /* position 1 */
    reads_append(rig, name, 1);
    reads_append(rig, "ab", 1);
    return read_with(SL_WIRE_FILTER_ON_STREAM, "(a+)+[^a]", NULL, 0);
}

TEST(an_expression_that_gives_up_ends_the_read_and_names_the_event)
{
    server_rig rig;
    const sl_read_request request = write_hostile(&rig);
    const server_call *call = reads_do(&rig, request);

    EXPECT_SAID(call, "aab:0 INVALID_ARGUMENT");
    EXPECT(strstr(call->message, "position 2") != NULL);
    EXPECT(strstr(call->message, "10000 steps") != NULL);
    EXPECT(server_rig_logged(&rig, "too many steps"));
    call = reads_do(&rig, reads_backwards(reads_from_end(request)));
    EXPECT_SAID(call, "ab:0 INVALID_ARGUMENT");
    EXPECT_SAID(reads_do(&rig, reads_count(request, 1)), "aab:0 OK"); /* not looked at */
    EXPECT_SAID(reads_do(&rig, reads_from(request, 3)),
                "ab:0 OK"); /* going on behind it is the client's choice */
    server_rig_done(&rig);
}

TEST(an_expression_that_gives_up_ends_a_subscription_before_anything_is_said_of_the_event)
{
    server_rig rig;
    sl_read_request request = write_hostile(&rig);
    const server_call *call;

    request.extent = SL_READ_EXTENT_SUBSCRIPTION;
    request.filter.window = SL_WIRE_WINDOW_MAX;
    request.filter.window_max = 1;
    request.filter.checkpoint_multiplier = 1;
    call = reads_do(&rig, request);
    EXPECT_SAID(call, "confirmed aab:0 checkpoint@1 INVALID_ARGUMENT");
    EXPECT(strstr(call->message, "position 2") != NULL);
    EXPECT_EQ(rig.host->counters.subscriptions_now, 0);
    server_rig_done(&rig);
}

TEST(a_live_subscription_ends_when_an_event_comes_that_its_expression_cannot_judge)
{
    char name[HOSTILE_BYTES + 1];
    sl_read_request request = reads_filtered("", 32, 1000);
    const server_call *call;
    server_rig rig;

    memset(name, 'a', HOSTILE_BYTES);
    name[HOSTILE_BYTES] = 0;
    reads_start(&rig, NULL);
    request.filter.prefix_count = 0;
    request.filter.regex = SL_STR("(a+)+[^a]");
    call = reads_begin(&rig, request);
    EXPECT_SAID(call, "confirmed caught-up");
    reads_append(&rig, "ab", 1);
    EXPECT_SAID(call, "confirmed caught-up ab:0");
    reads_append(&rig, name, 1);
    EXPECT_SAID(call, "confirmed caught-up ab:0 INVALID_ARGUMENT");
    server_rig_done(&rig);
}
