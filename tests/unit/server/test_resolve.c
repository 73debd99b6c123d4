/* tests/unit/server/test_resolve.c — links and what they point to (server/streams/resolve.h), and as readers see them. */
#include "../base/support.h"
#include "read_rig.h"

#include "server/streams/resolve.h"

#include <stdio.h>

static sl_event link_to(const char *data, uint64_t position)
{
    return (sl_event){ .position = position, .type = SL_STR("$>"), .data = sl_str_from(data) };
}

/* Whose rights are looked at, and who is run when they have come: find() asks again by itself. */
static const sl_identity everybody = { .name = SL_STR_INIT("somebody") };
static sl_reader_node reader;

static void do_nothing(void *ctx)
{
    (void)ctx;
}

static void start_resolver(sl_resolver *resolver, server_rig *rig, const sl_identity *identity)
{
    sl_reader_init(&reader, SL_STR(""), do_nothing, NULL);
    sl_resolver_init(resolver, rig->host, identity, &reader);
}

/* Asks until the disk has answered, as a reader would. */
static sl_err find(server_rig *rig, sl_resolver *resolver, const sl_event *link, sl_event *ret_target)
{
    sl_err err;

    while ((err = sl_resolver_find(resolver, link, rig->time.wall_ns, ret_target)) == SL_ERR_AGAIN) {
        server_rig_wait(rig);
        sl_host_poll(rig->host);
        sl_host_turn(rig->host); /* rights are read by a reader of their own */
    }
    sl_tail_forget(rig->host->tail, &reader);
    return err;
}

TEST(only_events_of_the_link_type_are_links)
{
    EXPECT(sl_event_is_link(&(sl_event){ .type = SL_STR("$>") }));
    EXPECT(!sl_event_is_link(&(sl_event){ .type = SL_STR("$@") }));
    EXPECT(!sl_event_is_link(&(sl_event){ .type = SL_STR("$>x") }));
    EXPECT(!sl_event_is_link(&(sl_event){ .type = SL_STR("$") }));
}

TEST(a_link_is_a_revision_an_at_and_a_stream)
{
    static const struct {
        const char *data;
        sl_err err;
    } rows[] = {
        { "0@a", SL_OK },
        { "2@a", SL_OK },
        { "002@a", SL_OK },
        { "0@a@b", SL_OK }, /* split at the first one */
        { "3@a", SL_ERR_NOT_FOUND },
        { "0@missing", SL_ERR_NOT_FOUND },
        { "0@", SL_ERR_NOT_FOUND },
        { "0", SL_ERR_NOT_FOUND },
        { "9223372036854775807@a", SL_ERR_NOT_FOUND },
        { "9223372036854775808@a", SL_ERR_INVALID },
        { "-1@a", SL_ERR_INVALID },
        { " 1@a", SL_ERR_INVALID },
        { "x@a", SL_ERR_INVALID },
        { "@a", SL_ERR_INVALID },
        { "", SL_ERR_INVALID },
    };
    sl_resolver resolver;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "a", 3);
    reads_append(&rig, "a@b", 1);
    start_resolver(&resolver, &rig, &everybody);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_event link = link_to(rows[i].data, 100 + i);
        sl_event target;
        const sl_err err = find(&rig, &resolver, &link, &target);

        if (err != rows[i].err)
            fail_msg("%s: %s", rows[i].data, sl_err_text(err));
    }
    sl_resolver_done(&resolver);
    server_rig_done(&rig);
}

TEST(a_stream_name_that_is_too_long_to_exist_resolves_to_nothing)
{
    char data[SL_STREAM_NAME_BYTES_MAX + 10];
    sl_resolver resolver;
    server_rig rig;
    sl_event target, link;

    reads_start(&rig, NULL);
    start_resolver(&resolver, &rig, &everybody);
    memset(data, 'n', sizeof data);
    memcpy(data, "0@", 2);
    data[sizeof data - 1] = 0;
    link = link_to(data, 1);
    EXPECT_ERR(find(&rig, &resolver, &link, &target), SL_ERR_NOT_FOUND);
    link.data.bytes = 2 + SL_STREAM_NAME_BYTES_MAX;
    EXPECT_ERR(find(&rig, &resolver, &link, &target), SL_ERR_NOT_FOUND);
    sl_resolver_done(&resolver);
    server_rig_done(&rig);
}

/* Forwards, backwards, from stream to stream, and the same link twice; on a disk that makes everybody wait. */
TEST(a_resolver_finds_each_target_whatever_it_found_before)
{
    slow_store slow = slow_store_open();
    uint64_t state = 7;
    sl_resolver resolver;
    server_rig rig;

    reads_start(&rig, slow.store);
    reads_append(&rig, "a", 50);
    reads_append(&rig, "b", 50);
    start_resolver(&resolver, &rig, &everybody);
    for (uint64_t i = 1; i < 400; i++) {
        const uint64_t next = i % 3 == 0 ? state : state + 1;
        const char *const stream = i % 5 == 0 ? "b" : "a";
        sl_event link, target;
        char data[32];

        state = i % 7 == 0 ? (i * 31) % 50 : next % 50;
        snprintf(data, sizeof data, "%u@%s", (unsigned)state, stream);
        link = link_to(data, i);
        for (unsigned twice = 0; twice < 2; twice++) {
            EXPECT_OK(find(&rig, &resolver, &link, &target));
            EXPECT_EQ(target.revision, state);
            EXPECT(sl_str_equal(target.stream, sl_str_from(stream)));
        }
    }
    sl_resolver_done(&resolver);
    server_rig_done(&rig);
    slow_store_close(&slow);
}

TEST(targets_that_a_reader_could_not_see_do_not_resolve)
{
    sl_resolver resolver;
    sl_event target, link;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "a", 4);
    reads_append(&rig, "gone", 1);
    reads_append(&rig, "dead", 2);
    start_resolver(&resolver, &rig, &everybody);

    link = link_to("0@dead", 1);
    EXPECT_OK(find(&rig, &resolver, &link, &target));
    reads_tombstone(&rig, "dead"); /* the resolver has a cursor there */
    link = link_to("1@dead", 2);
    EXPECT_ERR(find(&rig, &resolver, &link, &target), SL_ERR_NOT_FOUND);
    link = link_to("1@dead", 3);
    EXPECT_ERR(find(&rig, &resolver, &link, &target), SL_ERR_NOT_FOUND);

    reads_set_metadata(&rig, "a", "{\"$tb\":2}");
    link = link_to("1@a", 4);
    EXPECT_ERR(find(&rig, &resolver, &link, &target), SL_ERR_NOT_FOUND);
    EXPECT_ERR(find(&rig, &resolver, &link, &target), SL_ERR_NOT_FOUND);
    link = link_to("2@a", 5);
    EXPECT_OK(find(&rig, &resolver, &link, &target));
    reads_set_metadata(&rig, "a", "{\"$tb\":3}");
    link = link_to("2@a", 6); /* another link to what was found before */
    EXPECT_ERR(find(&rig, &resolver, &link, &target), SL_ERR_NOT_FOUND);

    reads_delete(&rig, "gone");
    link = link_to("0@gone", 7);
    EXPECT_ERR(find(&rig, &resolver, &link, &target), SL_ERR_NOT_FOUND);
    sl_resolver_done(&resolver);
    server_rig_done(&rig);
}

/* --- rights: a link gives none (docs/decisions/0013) --- */

static const sl_str admins[] = { SL_STR_INIT("$admins") };
static const sl_identity admin = {
    .name = SL_STR_INIT("root"), .groups = admins, .group_count = 1, .is_admin = true
};
static const sl_identity trusted = { .is_trusted = true };

static void write_secrets(server_rig *rig)
{
    reads_append(rig, "secret", 2);
    reads_set_metadata(rig, "secret", "{\"$acl\":{\"$r\":\"root\",\"$mr\":\"root\"}}");
    reads_append_typed(rig, "$user-root", "$UserCreated", "{\"hash\":\"$argon2id$\"}");
    reads_append(rig, "open", 1);
}

TEST(a_link_shows_nothing_that_its_reader_may_not_read)
{
    static const struct {
        const char *data;
        sl_err everybody, privileged;
    } rows[] = {
        { "0@secret", SL_ERR_NOT_FOUND, SL_OK },
        { "1@secret", SL_ERR_NOT_FOUND, SL_OK },
        { "0@$$secret", SL_ERR_NOT_FOUND, SL_OK },
        { "0@$user-root", SL_ERR_NOT_FOUND, SL_OK },
        { "9@secret", SL_ERR_NOT_FOUND, SL_ERR_NOT_FOUND },
        { "0@open", SL_OK, SL_OK },
        { "0@$all", SL_ERR_NOT_FOUND, SL_ERR_NOT_FOUND },
    };
    const sl_identity *const who[] = { &everybody, &admin, &trusted };
    slow_store slow = slow_store_open();
    uint64_t position = 1;
    server_rig rig;

    reads_start(&rig, slow.store);
    write_secrets(&rig);
    for (size_t w = 0; w < 3; w++) {
        sl_resolver resolver;

        start_resolver(&resolver, &rig, who[w]);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const sl_event link = link_to(rows[i].data, position++);
            sl_event target;

            for (unsigned twice = 0; twice < 2; twice++)
                EXPECT_ROW(find(&rig, &resolver, &link, &target) ==
                               (w == 0 ? rows[i].everybody : rows[i].privileged),
                           i);
        }
        sl_resolver_done(&resolver);
    }
    server_rig_done(&rig);
    slow_store_close(&slow);
}

TEST(a_target_whose_rights_are_taken_away_is_not_shown_again)
{
    sl_resolver resolver;
    sl_event link = link_to("0@open", 1), target;
    server_rig rig;

    reads_start(&rig, NULL);
    write_secrets(&rig);
    start_resolver(&resolver, &rig, &everybody);
    EXPECT_OK(find(&rig, &resolver, &link, &target));
    reads_set_metadata(&rig, "open", "{\"$acl\":{\"$r\":[]}}");
    EXPECT_ERR(find(&rig, &resolver, &link, &target),
               SL_ERR_NOT_FOUND); /* the same link, as after a full output */
    sl_resolver_done(&resolver);
    server_rig_done(&rig);
}

/* Rights and targets are all on a disk that lets everybody wait: nothing is missed, shown twice or out of order. */
static void expect_only_own(sl_store *store, bool subscribes)
{
    sl_read_request request = subscribes ? reads_subscription("links") : reads_of_stream("links");
    server_call *call;
    server_rig rig;

    reads_start(&rig, store);
    write_secrets(&rig);
    reads_append_typed(&rig, "links", "$>", "0@secret");
    reads_append_typed(&rig, "links", "$>", "0@open");
    reads_append_typed(&rig, "links", "$>", "0@$user-root");
    reads_append_typed(&rig, "links", "$>", "0@open");
    reads_append_typed(&rig, "links", "$>", "0@$$secret");
    reads_as_user(&rig, "eve");
    request.resolve_links = true;
    call = reads_call(&rig, &request);
    server_rig_run_until_messages(&rig, call, subscribes ? 7 : 5);
    if (!subscribes)
        server_rig_run_until_ended(&rig, call);
    EXPECT_SAID(
        call, subscribes ? "confirmed -<links:0 open:0<links:1 -<links:2 open:0<links:3 -<links:4 caught-up@4"
                         : "-<links:0 open:0<links:1 -<links:2 open:0<links:3 -<links:4 OK");
    server_rig_done(&rig);
}

TEST(readers_of_links_see_the_targets_that_they_may_read_and_no_others)
{
    for (unsigned subscribes = 0; subscribes < 2; subscribes++) {
        slow_store slow = slow_store_open();

        expect_only_own(NULL, subscribes);
        expect_only_own(slow.store, subscribes);
        slow_store_close(&slow);
    }
}

/* --- as readers see it --- */

static void write_links(server_rig *rig)
{
    reads_append(rig, "a", 3);
    reads_append(rig, "dead", 1);
    reads_tombstone(rig, "dead");
    reads_append_typed(rig, "links", "$>", "1@a");
    reads_append_typed(rig, "links", "t", "2@a"); /* looks like one but is none */
    reads_append_typed(rig, "links", "$>", "0@dead");
    reads_append_typed(rig, "links", "$>", "9@a");
    reads_append_typed(rig, "links", "$>", "nonsense");
    reads_append_typed(rig, "links", "$>", "0@links"); /* a link to a link */
}

static void expect_links(sl_store *store)
{
    sl_read_request request = reads_of_stream("links");
    server_call *call;
    server_rig rig;

    reads_start(&rig, store);
    write_links(&rig);
    EXPECT_SAID(reads_do(&rig, request), "links:0 links:1 links:2 links:3 links:4 links:5 OK");
    request.resolve_links = true;
    EXPECT_SAID(reads_do(&rig, request),
                "a:1<links:0 links:1 -<links:2 -<links:3 links:4 links:0<links:5 OK");
    EXPECT_SAID(reads_do(&rig, reads_count(reads_backwards(reads_from_end(request)), 2)),
                "links:0<links:5 links:4 OK");
    request.extent = SL_READ_EXTENT_SUBSCRIPTION;
    call = reads_call(&rig, &request);
    server_rig_run_until_messages(&rig, call, 8);
    EXPECT_SAID(call,
                "confirmed a:1<links:0 links:1 -<links:2 -<links:3 links:4 links:0<links:5 caught-up@5");
    server_rig_done(&rig);
}

TEST(links_are_resolved_one_level_deep_and_only_when_asked)
{
    slow_store slow = slow_store_open();

    expect_links(NULL);
    expect_links(slow.store);
    slow_store_close(&slow);
}

TEST(a_resolved_event_has_its_own_positions_and_the_commit_position_of_its_link)
{
    sl_read_request request = reads_of_stream("links");
    const server_call *call;
    sl_read_response response;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "a", 3);                           /* positions 1 to 3 */
    reads_append_typed(&rig, "links", "$>", "1@a");       /* position 4 */
    reads_append_typed(&rig, "links", "$>", "0@nowhere"); /* position 5 */
    request.resolve_links = true;
    call = reads_do(&rig, request);
    response = reads_message(call, 0);
    EXPECT_EQ(response.event.event.commit_position, 2);
    EXPECT_EQ(response.event.event.prepare_position, 2);
    EXPECT_EQ(response.event.link.commit_position, 4);
    EXPECT_EQ(response.event.position_kind, SL_WIRE_POSITION_GIVEN);
    EXPECT_EQ(response.event.commit_position, 4);
    EXPECT(sl_str_equal(response.event.link.data, SL_STR("1@a")));
    response = reads_message(call, 1);
    EXPECT_EQ(response.event.position_kind, SL_WIRE_POSITION_GIVEN);
    EXPECT_EQ(response.event.commit_position, 5);
    server_rig_done(&rig);
}

/* A page of links is longer than the output of a call holds; the client takes nothing until it is full. */
TEST(a_reader_of_links_that_has_no_room_goes_on_where_it_was)
{
    enum {
        LINKS = 600
    };
    sl_read_request request = reads_of_stream("links");
    server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    for (unsigned i = 0; i < LINKS; i++) {
        char data[32];

        reads_append_bytes(&rig, "a", 4000);
        snprintf(data, sizeof data, "%u@a", i);
        reads_append_typed(&rig, "links", "$>", data);
    }
    request.resolve_links = true;
    call = reads_call(&rig, &request);
    call->slow = true;
    server_rig_run(&rig);
    EXPECT(call->message_count < LINKS && !call->ended);
    server_call_read_on(call);
    server_rig_run_until_ended(&rig, call);
    EXPECT_EQ(call->message_count, LINKS);
    for (unsigned i = 0; i < LINKS; i++) {
        const sl_read_response response = reads_message(call, i);

        EXPECT(response.event.has_event && response.event.has_link);
        EXPECT_EQ(response.event.event.revision, i);
        EXPECT_EQ(response.event.link.revision, i);
    }
    server_rig_done(&rig);
}
