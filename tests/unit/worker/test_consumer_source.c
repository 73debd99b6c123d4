/* tests/unit/worker/test_consumer_source.c — what the sources sluice:// and kurrentdb:// do besides the contract of all sources. */
#include "source_contract_consumer.h"

#include "base/cleanup.h"
#include "worker/source/consumer_inside.h"

#include <cjson/cJSON.h>

#include <string.h>

#define MS_NS UINT64_C(1000000)

static consumer_world *world(source_contract *c)
{
    return c->world;
}

TEST(a_consumer_source_says_what_is_wrong_before_it_connects)
{
    static const struct {
        const char *address, *stream, *user;
    } wrong[] = {
        { "http://x", "s", NULL },        { "", "s", NULL },          { "sluice://h:0", "s", NULL },
        { "sluice://h/path", "s", NULL }, { "sluice://h", "", NULL }, { "sluice://h", NULL, NULL }
    };
    sl_loop *loop;

    EXPECT_OK(sl_loop_new(NULL, NULL, NULL, &loop));
    for (size_t i = 0; i < SL_COUNT_OF(wrong); i++) {
        const sl_consumer_source_options options = { .address = wrong[i].address,
                                                     .stream = wrong[i].stream,
                                                     .group = "g" };
        char problem[1024];
        sl_source *source = NULL;
        sl_text text;

        sl_text_init(&text, problem, sizeof problem);
        EXPECT_ERR(sl_consumer_source_new(loop, &options, &text, &source), SL_ERR_INVALID);
        EXPECT(text.bytes > 0);
        EXPECT(source == NULL);
    }
    sl_loop_free(loop);
}

TEST(a_consumer_source_has_the_name_of_what_its_address_means)
{
    static const struct {
        const char *address, *name;
    } rows[] = { { "h", "sluice" },
                 { "sluice://h?tls=true", "sluice" },
                 { "kurrentdb://h", "kurrentdb" },
                 { "ESDB://h?tls=false", "kurrentdb" },
                 { "kdb+discover://h", "kurrentdb" } };
    sl_loop *loop;

    EXPECT_OK(sl_loop_new(NULL, NULL, NULL, &loop));
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const sl_consumer_source_options options = { .address = rows[i].address,
                                                     .stream = "s",
                                                     .group = "g" };
        char problem[1024];
        sl_source *source;
        sl_text text;

        sl_text_init(&text, problem, sizeof problem);
        EXPECT_OK(sl_consumer_source_new(loop, &options, &text, &source));
        EXPECT_STR(source->class->name, rows[i].name);
        source->class->free(source);
    }
    sl_loop_free(loop);
}

TEST(a_job_of_a_consumer_source_has_what_its_event_had)
{
    source_contract *const c = source_contract_with(consumer_world_row(), 2);
    const sl_job *const job = c->jobs[1].job;

    EXPECT(sl_str_equal(job->message.stream, SL_STR("orders")));
    EXPECT(sl_str_equal(job->message.type, SL_STR("t")));
    EXPECT(sl_str_equal(job->message.data, SL_STR("{}")));
    EXPECT(sl_str_equal(job->message.group, SL_STR("g")));
    EXPECT_EQ(job->message.revision, 1);
    EXPECT_EQ(job->message.attempt, 1);
    EXPECT(job->message.token > c->jobs[0].token);
    EXPECT(job->message.created_ns > 0);
    EXPECT(job->lease_ns > 20000 * MS_NS && job->lease_ns <= 30000 * MS_NS); /* what was left of it */
    EXPECT(job->lease_until_ns > sl_loop_now_ns(c->loop) + 10000 * MS_NS);
    EXPECT(c->source->has_tokens);
    EXPECT(c->source->keeps_delays);
    source_contract_end(c);
    source_contract_free(c);
}

static cJSON *described(const source_contract *c)
{
    cJSON *const object = cJSON_CreateObject();

    c->source->class->describe(c->source, object);
    return object;
}

TEST(a_consumer_source_tells_people_where_it_is_and_no_password)
{
    source_contract *const c = source_contract_with(consumer_world_row(), 1);
    cJSON *const object = described(c);

    EXPECT_STR(cJSON_GetObjectItem(object, "group")->valuestring, "g");
    EXPECT(strncmp(cJSON_GetObjectItem(object, "address")->valuestring, "127.0.0.1:", 10) == 0);
    EXPECT(cJSON_IsTrue(cJSON_GetObjectItem(object, "connected")));
    EXPECT_EQ(cJSON_GetObjectItem(object, "out")->valueint, 1);
    cJSON_Delete(object);
    source_contract_free(c);
}

TEST(a_retry_with_a_delay_is_kept_by_the_server)
{
    source_contract *const c = source_contract_with(consumer_world_row(), 1);
    const sl_settle later = { .kind = SL_SETTLE_RETRY,
                              .delay_ns = 60 * MS_NS,
                              .reason = SL_STR_INIT("busy\0now") };
    const uint64_t said_ns = sl_loop_now_ns(c->loop);

    EXPECT(source_contract_begin(c, 0));
    c->jobs[0].is_said = true;
    c->source->class->settle(c->source, c->jobs[0].job, &later);
    CONTRACT_UNTIL(c, source_contract_again(c, 0) != NULL);
    EXPECT(sl_loop_now_ns(c->loop) - said_ns >= 60 * MS_NS);
    EXPECT_EQ(c->jobs[0].how, SL_SETTLED_DONE);
    source_contract_free(c);
}

/* --- an operator takes back what this worker wants to finish --- */

static void settle_lost(source_contract *c, uint32_t count)
{
    EXPECT_EQ(c->losts, count);
    source_contract_settle_rest(c, SL_SETTLE_RELEASE);
    CONTRACT_UNTIL(c, c->settled_count == count);
    for (uint32_t i = 0; i < count; i++)
        EXPECT_EQ(c->jobs[i].how, SL_SETTLED_LOST);
}

TEST(what_an_operator_takes_back_is_lost_for_a_worker_that_would_have_finished_it_S3_8)
{
    source_contract *const c = source_contract_with(consumer_world_row(), 2);

    c->row->stop(c);
    CONTRACT_UNTIL(c, c->stops == 1);
    source_contract_close_gate(c, false); /* the worker begins its drain as soon as it hears of the stop */
    CONTRACT_UNTIL(c, c->losts == 2);
    EXPECT(!source_contract_begin(c, 0));
    settle_lost(c, 2);
    source_contract_end(c);
    source_contract_free(c);
}

TEST(what_an_operator_took_back_before_the_gate_was_closed_is_lost_then_S3_8)
{
    source_contract *const c = source_contract_with(consumer_world_row(), 2);

    c->row->stop(c);
    CONTRACT_UNTIL(c, c->stops == 1);
    source_contract_be_quiet(c);
    EXPECT_EQ(c->losts, 0); /* most workers hand back, and need not be told */
    source_contract_close_gate(c, false);
    settle_lost(c, 2);
    source_contract_end(c);
    source_contract_free(c);
}

/* --- links --- */

static source_contract *linked(void)
{
    source_contract *const c = source_contract_new(consumer_world_row());
    consumer_world *const w = world(c);
    sl_group_definition definition = groups_definition("links", "g");

    definition.settings.resolve_links = true;
    groups_create(&w->m.g, &definition);
    source_contract_free_source(c);
    w->stream = "links";
    source_contract_open_source(c);
    (void)server_rig_append(&w->m.g.rig, "orders", "order", "{\"n\":1}");
    (void)server_rig_append(&w->m.g.rig, "links", "$>", "7@orders");
    (void)server_rig_append(&w->m.g.rig, "links", "$>", "0@orders");
    source_contract_start(c);
    return c;
}

TEST(a_link_is_shown_as_its_event_and_one_that_points_to_nothing_is_acked_by_the_source)
{
    source_contract *const c = linked();
    sl_wire_group_info info;

    CONTRACT_UNTIL(c, c->job_count == 1);
    EXPECT(sl_str_equal(c->jobs[0].job->message.stream, SL_STR("orders")));
    EXPECT(sl_str_equal(c->jobs[0].job->message.type, SL_STR("order")));
    EXPECT_EQ(c->jobs[0].job->message.revision, 0);
    source_contract_begin_and_settle(c, 0, SL_SETTLE_ACK);
    CONTRACT_UNTIL(c, c->settled_count == 1);
    source_contract_be_quiet(c);
    info = manage_look(&world(c)->m, "links", "g");
    EXPECT_EQ(info.in_flight_count, 0);
    EXPECT_EQ(c->job_count, 1);
    source_contract_end(c);
    source_contract_free(c);
}

/* --- servers that go --- */

TEST(a_server_that_is_restarted_does_not_stop_the_worker)
{
    source_contract *const c = source_contract_with(consumer_world_row(), 2);

    EXPECT(source_contract_begin(c, 0));
    EXPECT(source_contract_begin(c, 1));
    source_contract_be_quiet(c);
    sl_host_stop(world(c)->m.g.rig.host, "restart");
    source_contract_settle(c, 0, SL_SETTLE_ACK); /* before it goes */
    CONTRACT_UNTIL(c, c->settled_count == 1);
    consumer_world_kill_server(c);
    CONTRACT_UNTIL(c, c->ups == 2);
    source_contract_settle(c, 1, SL_SETTLE_ACK); /* after it came back */
    CONTRACT_UNTIL(c, c->settled_count == 2);
    EXPECT_EQ(c->jobs[0].how, SL_SETTLED_DONE);
    EXPECT_EQ(c->jobs[1].how, SL_SETTLED_DONE);
    EXPECT_EQ(c->stops, 0);
    EXPECT_EQ(c->failures, 0);
    c->row->put(c, 1);
    CONTRACT_UNTIL(c, c->job_count == 3); /* and goes on */
    source_contract_end(c);
    source_contract_free(c);
}

/* It comes back to finish what it held and is stopped by the server, because another one has its place. When that leaves, it goes on. */
TEST(a_source_whose_place_in_the_group_was_taken_goes_on_when_it_is_free_again)
{
    source_contract *const c = source_contract_new(consumer_world_row());
    consumer_world *const w = world(c);
    sl_group_definition definition = groups_definition("orders", "narrow");
    server_call *thief;

    definition.settings.max_subscriber_count = 1;
    groups_create(&w->m.g, &definition);
    source_contract_free_source(c);
    w->group = "narrow";
    source_contract_open_source(c);
    c->row->put(c, 1);
    source_contract_start(c);
    CONTRACT_UNTIL(c, c->job_count == 1);
    EXPECT(source_contract_begin(c, 0));
    source_contract_be_quiet(c);
    c->row->set_down(c, true);
    thief = groups_join(&w->m.g, (groups_consumer){ .group = "narrow", .extensions = true, .name = "thief" });
    c->row->set_down(c, false);
    CONTRACT_UNTIL(c, c->ups == 2);
    source_contract_settle(c, 0, SL_SETTLE_ACK);
    CONTRACT_UNTIL(c, c->settled_count == 1);
    EXPECT_EQ(c->jobs[0].how, SL_SETTLED_DONE);
    EXPECT_EQ(c->stops, 0);
    server_call_cancel(thief);
    c->row->put(c, 1);
    CONTRACT_UNTIL(c, c->job_count == 2);
    source_contract_free(c);
}

TEST(a_group_that_does_not_exist_is_a_refusal)
{
    source_contract *const c = source_contract_new(consumer_world_row());

    source_contract_free_source(c);
    world(c)->group = "nobody";
    source_contract_open_source(c);
    source_contract_start(c);
    CONTRACT_UNTIL(c, c->failures == 1);
    EXPECT_EQ(c->failure, SL_SOURCE_REFUSED);
    EXPECT_EQ(c->ups, 0);
    source_contract_end(c);
    source_contract_free(c);
}

/* Nobody has answered, so nobody may say that it is over: the ack file still has it. */
TEST(finished_work_without_an_answer_is_left_to_the_next_process_when_the_server_is_gone_B3)
{
    source_contract *const c = source_contract_new(consumer_world_row());

    source_contract_free_source(c);
    world(c)->give_up_ms = 50;
    source_contract_open_source(c);
    c->row->put(c, 3);
    source_contract_start(c);
    CONTRACT_UNTIL(c, c->job_count == 3);
    EXPECT(source_contract_begin(c, 0));
    EXPECT(source_contract_begin(c, 1));
    EXPECT(source_contract_begin(c, 2));
    source_contract_be_quiet(c);
    c->row->set_down(c, true);
    source_contract_settle(c, 0, SL_SETTLE_ACK);
    CONTRACT_UNTIL(c, c->failures == 1);
    EXPECT_EQ(c->failure, SL_SOURCE_LOST);
    EXPECT(c->jobs[0].job != NULL);
    EXPECT(!c->jobs[1].is_lost); /* nobody knows: it may finish, and the next process says so */
    source_contract_settle(c, 1, SL_SETTLE_ACK); /* finished while the end came: as good as finished before */
    source_contract_settle(c, 2, SL_SETTLE_RELEASE);
    EXPECT(c->jobs[1].job != NULL);
    EXPECT_EQ(c->jobs[2].how, SL_SETTLED_LOST);
    source_contract_close_gate(c, true);
    source_contract_close_source(c);
    EXPECT_EQ(c->fences, 1);
    EXPECT_EQ(c->closes, 1);
    EXPECT(c->jobs[0].job != NULL && c->jobs[1].job != NULL);
    source_contract_free(c);
}

/* Another data folder, a new password: what answers there knows nothing of us, and is no word about what was finished. */
TEST(finished_work_without_an_answer_is_left_to_the_next_process_when_the_server_refuses_B3)
{
    source_contract *const c = source_contract_new(consumer_world_row());

    c->row->put(c, 2);
    source_contract_start(c);
    CONTRACT_UNTIL(c, c->job_count == 2);
    EXPECT(source_contract_begin(c, 0));
    EXPECT(source_contract_begin(c, 1));
    source_contract_be_quiet(c);
    c->row->set_down(c, true);
    source_contract_settle(c, 0, SL_SETTLE_ACK);
    c->row->break_for_good(c);
    c->row->set_down(c, false);
    CONTRACT_UNTIL(c, c->failures == 1);
    EXPECT_EQ(c->failure, SL_SOURCE_REFUSED);
    EXPECT(!c->jobs[1].is_lost);
    source_contract_settle(c, 1, SL_SETTLE_PARK);
    source_contract_close_gate(c, true);
    source_contract_close_source(c);
    EXPECT_EQ(c->closes, 1);
    EXPECT(c->jobs[0].job != NULL && c->jobs[1].job != NULL); /* there was no settled() for them */
    source_contract_free(c);
}

/* --- without answers --- */

TEST(a_server_without_extensions_is_found_out_and_declared_S1_28)
{
    source_contract *const c = source_contract_with(kurrent_world_row(), 1);

    EXPECT(!c->source->confirms && !c->source->has_tokens && !c->source->keeps_delays);
    EXPECT_EQ(c->jobs[0].token, 0);
    EXPECT_EQ(c->jobs[0].job->lease_until_ns, UINT64_MAX);
    source_contract_end(c);
    source_contract_free(c);
}

/* The engine's words by hand. */

static void give(source_contract *c, uint8_t id, uint64_t revision)
{
    sl_consumer_event event = { .id = { { id } }, .has_event = 1, .revision = revision };

    consumer_source_handler.event(c->source, &event);
}

TEST(a_server_without_answers_makes_every_word_unsure_and_has_no_leases)
{
    source_contract *const c = source_contract_new(consumer_world_row());
    const sl_consumer_connected connected = { .nth = 1 };

    source_contract_start(c);
    consumer_source_handler.connected(c->source, &connected);
    EXPECT(!c->source->has_tokens);
    EXPECT(!c->source->keeps_delays);
    give(c, 1, 0);
    give(c, 2, 1);
    EXPECT_EQ(c->jobs[0].job->lease_until_ns, UINT64_MAX);
    source_contract_settle(c, 0, SL_SETTLE_ACK);
    source_contract_settle(c, 1, SL_SETTLE_RELEASE);
    consumer_source_handler.settled(c->source, (sl_consumer_id){ { 1 } }, SL_CONSUMER_SENT);
    consumer_source_handler.settled(c->source, (sl_consumer_id){ { 2 } }, SL_CONSUMER_RELEASED);
    EXPECT_EQ(c->jobs[0].how, SL_SETTLED_UNSURE);
    EXPECT_EQ(c->jobs[1].how, SL_SETTLED_UNSURE);
    source_contract_free(c);
}

/* Two messages may have one id: the answer is to what was said first. */
TEST(of_two_jobs_with_one_id_the_one_that_was_said_first_is_answered_first)
{
    source_contract *const c = source_contract_new(consumer_world_row());

    source_contract_start(c);
    consumer_source_handler.connected(c->source, &(sl_consumer_connected){ .nth = 1, .extensions = 1 });
    give(c, 1, 0);
    give(c, 1, 5);
    give(c, 1, 9);
    source_contract_settle(c, 1, SL_SETTLE_ACK);
    source_contract_settle(c, 0, SL_SETTLE_ACK);
    consumer_source_handler.settled(c->source, (sl_consumer_id){ { 1 } }, SL_CONSUMER_SETTLED);
    EXPECT(c->jobs[1].job == NULL);
    EXPECT(c->jobs[0].job != NULL);
    consumer_source_handler.settled(c->source, (sl_consumer_id){ { 1 } }, SL_CONSUMER_SETTLED);
    EXPECT(c->jobs[0].job == NULL);
    consumer_source_handler.settled(c->source, (sl_consumer_id){ { 1 } }, SL_CONSUMER_LOST);
    EXPECT(c->jobs[2].is_lost);
    consumer_source_handler.settled(c->source, (sl_consumer_id){ { 1 } }, SL_CONSUMER_LOST); /* of nobody */
    source_contract_free(c);
}
