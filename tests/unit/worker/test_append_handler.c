/* The append handler against the real server, in one process and on one loop; and against servers that misbehave. */
#include "worker/handled.h"

#include "base/cleanup.h"
#include "base/support.h"
#include "client/rig.h"
#include "net/rig.h"
#include "server/peer.h"
#include "server/read_rig.h"
#include "worker/append_handler.h"
#include "worker/handler/append_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

/* A server behind a socket, and a handler. */
typedef struct target {
    server_rig server;
    sl_loop *loop;
    sl_listener *listener;
    sl_peers peers;
    sl_timer guard;
    bool guard_rang;
    bool is_asleep; /* it takes calls, and writes nothing */
    unsigned accepts;
    uint16_t port; /* where it listened, when it left */
    handled h;
} target;

#define TARGET_UNTIL(t, fact)                                                                                \
    do {                                                                                                     \
        while (!(fact)) {                                                                                    \
            if ((t)->guard_rang)                                                                             \
                fail_msg("never came true: %s", #fact);                                                      \
            sl_loop_turn((t)->loop, true);                                                                   \
        }                                                                                                    \
    } while (0)

static void on_turn_end(void *ctx)
{
    target *const t = ctx;

    if (t->server.host == NULL)
        return;
    if (!t->is_asleep)
        server_rig_run(&t->server);
    sl_peers_settle(&t->peers);
}

static void on_accept(void *ctx, sl_socket *socket)
{
    target *const t = ctx;

    t->accepts++;
    sl_peers_accept(&t->peers, socket);
}

static void on_guard(void *ctx)
{
    ((target *)ctx)->guard_rang = true;
}

static void listen_at(target *t, uint16_t port)
{
    const sl_listen_options options = {
        .host = SL_STR("127.0.0.1"), .port = port, .on_accept = on_accept, .ctx = t
    };

    EXPECT_OK(sl_listener_new(t->loop, &options, NULL, &t->listener));
}

static void make(handled *h, sl_loop *loop, uint16_t port, const char *stream)
{
    sl_client_address address;
    sl_handler *handler = NULL;
    char text[64], problem[256];
    sl_text into;

    snprintf(text, sizeof text, "sluice://127.0.0.1:%u", port);
    sl_text_init(&into, problem, sizeof problem);
    EXPECT_OK(sl_client_address_parse(sl_str_from(text), &into, &address));
    const sl_append_handler_options options = {
        .address = &address, .stream = sl_str_from(stream), .slots = 64, .connect_timeout_ns = 5 * SECOND_NS
    };
    EXPECT_OK(sl_append_handler_new(loop, &options, &into, &handler));
    handled_use(h, handler);
}

static target *start(const char *stream)
{
    static const sl_loop_handler handler = { .on_turn_end = on_turn_end };
    target *const t = calloc(1, sizeof *t);

    EXPECT(t != NULL);
    EXPECT_OK(sl_loop_new(NULL, &handler, t, &t->loop));
    sl_timer_init(&t->guard, t->loop, on_guard, t);
    sl_timer_set(&t->guard, sl_loop_now_ns(t->loop) + 30 * SECOND_NS);
    server_rig_init(&t->server);
    t->server.settings.insecure = true;
    server_rig_start(&t->server);
    sl_peers_init(&t->peers, t->server.host, t->loop);
    listen_at(t, 0);
    make(&t->h, t->loop, sl_listener_port(t->listener), stream);
    return t;
}

static void finish(target *t)
{
    t->h.handler->class->free(t->h.handler, 0);
    sl_listener_free(t->listener);
    sl_peers_free(&t->peers);
    server_rig_done(&t->server);
    t->server.host = NULL;
    sl_timer_stop(&t->guard);
    sl_loop_free(t->loop);
    free(t);
}

static void append_one(target *t, const sl_job_message *message)
{
    sl_job *const job = handled_job_of(message);
    const unsigned finished = t->h.finished;

    handled_run(&t->h, job);
    TARGET_UNTIL(t, t->h.finished == finished + 1);
    EXPECT(t->h.last_job == job);
    EXPECT(job->handler_data == NULL);
    sl_job_free(job);
}

TEST(a_message_is_appended_with_its_type_data_and_metadata_B16)
{
    target *const t = start("copies");
    sl_job_message message = handled_message(4, "{\"a\":1}");
    char id[SL_UUID_TEXT_BYTES + 1], wanted[SL_UUID_TEXT_BYTES + 1];

    message.metadata = SL_STR("{\"m\":2}");
    append_one(t, &message);
    EXPECT_EQ(t->h.last.kind, SL_RESULT_DONE);
    server_call *const call = reads_do(&t->server, reads_of_stream("copies"));
    EXPECT_SAID(call, "copies:0 OK");
    const sl_read_response said = reads_message(call, 0);
    const sl_wire_recorded *const event = &said.event.event;
    EXPECT(sl_str_equal(event->type, SL_STR("placed")));
    EXPECT(sl_str_equal(event->data, SL_STR("{\"a\":1}")));
    EXPECT(sl_str_equal(event->custom_metadata, SL_STR("{\"m\":2}")));
    EXPECT(sl_str_equal(event->content_type, SL_STR("application/json")));
    sl_uuid_format(event->id.uuid, id);
    sl_uuid_format(sl_uuid_v5(message.id, "copies", 6), wanted);
    EXPECT_STR(id, wanted);
    finish(t);
}

TEST(a_message_that_is_delivered_twice_is_in_the_stream_once_B16)
{
    target *const t = start("copies");
    const sl_job_message first = handled_message(1, "a"), second = handled_message(2, "b");

    append_one(t, &first);
    append_one(t, &second);
    append_one(t, &first);
    append_one(t, &second);
    EXPECT_EQ(t->h.kinds[SL_RESULT_DONE], 4);
    EXPECT_SAID(reads_do(&t->server, reads_of_stream("copies")), "copies:0 copies:1 OK");
    finish(t);
}

/* The word about the first append is lost with its connection; the work is repeated over another one. */
TEST(an_append_whose_answer_was_lost_is_repeated_without_a_second_event_B16)
{
    target *const t = start("copies");
    const sl_job_message message = handled_message(1, "a");
    sl_job *const job = handled_job_of(&message);

    t->is_asleep = true;
    handled_run(&t->h, job);
    TARGET_UNTIL(t, t->accepts == 1 && sl_peers_call_count(&t->peers) == 1);
    server_rig_run(&t->server);
    sl_peers_cut_calls(&t->peers); /* before anything of the answer has left */
    t->is_asleep = false;
    TARGET_UNTIL(t, t->h.finished == 1);
    EXPECT_EQ(t->h.last.kind, SL_RESULT_RETRY);
    EXPECT(t->h.last.is_fault);
    EXPECT(t->h.last.retry_after_ns > 0 && t->h.last.retry_after_ns <= SECOND_NS);
    handled_run(&t->h, job); /* it waits for the next connection */
    TARGET_UNTIL(t, t->h.finished == 2);
    EXPECT_EQ(t->h.last.kind, SL_RESULT_DONE);
    EXPECT_EQ(t->accepts, 2);
    EXPECT_SAID(reads_do(&t->server, reads_of_stream("copies")), "copies:0 OK");
    sl_job_free(job);
    finish(t);
}

TEST(without_a_name_each_message_goes_to_the_stream_that_it_comes_from)
{
    target *const t = start("");
    sl_job_message message = handled_message(1, "a");

    append_one(t, &message);
    message.stream = SL_STR("other");
    message.content_type = SL_STR("text/plain");
    append_one(t, &message);
    EXPECT_SAID(reads_do(&t->server, reads_of_stream("orders")), "orders:0 OK");
    EXPECT_SAID(reads_do(&t->server, reads_of_stream("other")), "other:0 OK");
    finish(t);
}

TEST(many_appends_are_on_their_way_on_one_connection)
{
    target *const t = start("copies");
    sl_job *jobs[64];

    for (unsigned i = 0; i < 64; i++)
        handled_run(&t->h, jobs[i] = handled_job(i, "x"));
    TARGET_UNTIL(t, t->h.finished == 64);
    EXPECT_EQ(t->h.kinds[SL_RESULT_DONE], 64);
    EXPECT_EQ(t->accepts, 1);
    EXPECT_EQ(t->server.host->counters.calls_begun, 1);
    for (unsigned i = 0; i < 64; i++)
        sl_job_free(jobs[i]);
    finish(t);
}

/* Above what may wait for a peer: the rest goes when there is room. */
TEST(large_appends_wait_for_room_and_all_arrive)
{
    target *const t = start("copies");
    sl_job_message message = handled_message(1, "");
    const size_t bytes = 900 * 1000;
    char *const data = calloc(1, bytes);
    sl_job *jobs[24];

    EXPECT(data != NULL);
    message.data = (sl_str){ data, bytes };
    for (unsigned i = 0; i < 24; i++) {
        message.id = handled_message(i, "").id;
        handled_run(&t->h, jobs[i] = handled_job_of(&message));
    }
    TARGET_UNTIL(t, t->h.finished == 24);
    EXPECT_EQ(t->h.kinds[SL_RESULT_DONE], 24);
    for (unsigned i = 0; i < 24; i++)
        sl_job_free(jobs[i]);
    free(data);
    finish(t);
}

TEST(what_a_server_refuses_for_good_is_parked_in_its_words_S3_38)
{
    target *const t = start("");
    sl_job_message message = handled_message(1, "a");
    const size_t bytes = sl_server_settings_default.append_bytes_max + 1;
    char *const data = calloc(1, bytes);

    EXPECT(data != NULL);
    reads_append(&t->server, "gone", 1);
    reads_tombstone(&t->server, "gone");
    message.stream = SL_STR("gone");
    append_one(t, &message);
    EXPECT_EQ(t->h.last.kind, SL_RESULT_PARK);
    EXPECT(strstr(t->h.reason, "\"gone\": it was deleted for ever") != NULL);
    message = handled_message(1, "");
    message.data = (sl_str){ data, bytes };
    append_one(t, &message); /* more than the protocol can carry: it is not even sent */
    EXPECT_EQ(t->h.last.kind, SL_RESULT_PARK);
    EXPECT(strstr(t->h.reason, "too large for a server") != NULL);
    t->server.settings.event_bytes_max = 1000;
    message.data.bytes = 2000;
    append_one(t, &message);
    EXPECT_EQ(t->h.last.kind, SL_RESULT_PARK);
    EXPECT(strstr(t->h.reason, "larger than the server allows") != NULL);
    message = handled_message(1, "a");
    message.type = SL_STR("");
    append_one(t, &message);
    EXPECT_EQ(t->h.last.kind, SL_RESULT_PARK);
    EXPECT(strstr(t->h.reason, "type") != NULL);
    message = handled_message(1, "a");
    append_one(t, &message); /* and the call goes on */
    EXPECT_EQ(t->h.last.kind, SL_RESULT_DONE);
    EXPECT_EQ(t->accepts, 1);
    free(data);
    finish(t);
}

TEST(each_status_of_a_server_has_its_meaning)
{
    EXPECT_EQ(sl_append_judge(SL_STATUS_PERMISSION_DENIED).kind, SL_RESULT_PARK);
    EXPECT_EQ(sl_append_judge(SL_STATUS_NOT_FOUND).kind, SL_RESULT_PARK);
    EXPECT_EQ(sl_append_judge(SL_STATUS_UNAVAILABLE).kind, SL_RESULT_RETRY);
    EXPECT(sl_append_judge(SL_STATUS_UNAVAILABLE).is_fault);
    EXPECT_EQ(sl_append_judge(SL_STATUS_OK).kind, SL_RESULT_RETRY);
    EXPECT_EQ(sl_append_judge(SL_STATUS_UNAUTHENTICATED).kind, SL_RESULT_FAILED);
    EXPECT(sl_append_judge(SL_STATUS_UNAUTHENTICATED).is_fault);
}

TEST(a_killed_append_is_not_waited_for_and_its_late_answer_meets_nobody_S2_6)
{
    target *const t = start("copies");
    sl_job_message message = handled_message(1, "a");

    message.type =
        SL_STR(""); /* will be refused, and that must not be taken for the answer to the next one */
    sl_job *const job = handled_job_of(&message), *const next = handled_job(2, "b");
    t->is_asleep = true;
    handled_run(&t->h, job);
    EXPECT(t->h.handler->class->is_alive(t->h.handler, job));
    TARGET_UNTIL(t, sl_peers_call_count(&t->peers) == 1);
    EXPECT(!t->h.handler->class->is_unbegun(t->h.handler, job));
    t->h.handler->class->abort(t->h.handler, job);
    EXPECT_EQ(t->h.finished, 0);
    t->h.handler->class->kill(t->h.handler, job);
    EXPECT_EQ(t->h.last.kind, SL_RESULT_STOPPED);
    handled_run(&t->h, next); /* in the same slot */
    t->is_asleep = false;
    TARGET_UNTIL(t, t->h.finished == 2);
    EXPECT_EQ(t->h.last.kind, SL_RESULT_DONE);
    EXPECT(t->h.last_job == next);
    sl_loop_turn(t->loop, false);
    EXPECT_SAID(reads_do(&t->server, reads_of_stream("copies")), "copies:0 OK");
    sl_job_free(job);
    sl_job_free(next);
    finish(t);
}

/* Nobody listens any more at the port that the handler knows. */
static void leave(target *t)
{
    t->port = sl_listener_port(t->listener);
    sl_listener_free(SL_TAKE_PTR(t->listener));
}

static void run_jobs(target *t, sl_job **jobs, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        handled_run(&t->h, jobs[i] = handled_job(i, "x"));
}

static void free_jobs(sl_job **jobs, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sl_job_free(jobs[i]);
}

/* Away for less than the breaker minds: whatever began meanwhile arrives, and one message tells of each try. */
TEST(messages_that_begin_while_a_server_is_away_wait_for_it_B18)
{
    target *const t = start("copies");
    sl_job *jobs[32];

    leave(t);
    run_jobs(t, jobs, 32);
    EXPECT_EQ(t->h.finished, 0);
    TARGET_UNTIL(t, t->h.finished == 1);
    EXPECT(t->h.last_job == jobs[0]);
    EXPECT_EQ(t->h.last.kind, SL_RESULT_RETRY);
    EXPECT(t->h.last.is_fault);
    EXPECT(t->h.last.retry_after_ns > 0);
    EXPECT(strstr(t->h.reason, "refused") != NULL);
    listen_at(t, t->port);
    TARGET_UNTIL(t, t->h.finished == 32);
    EXPECT_EQ(t->h.kinds[SL_RESULT_DONE], 31);
    EXPECT_EQ(t->h.faults, 1);
    EXPECT_EQ(t->accepts, 1);
    free_jobs(jobs, 32);
    finish(t);
}

/* A fault for each try, with pauses between them that double: 100 + 200 + 400 + 800 ms. */
TEST(a_server_that_stays_away_is_a_fault_for_each_try_until_the_breaker_has_enough_B18)
{
    target *const t = start("copies");
    const uint64_t begin_ns = sl_loop_now_ns(t->loop);
    sl_job *jobs[8];

    leave(t);
    run_jobs(t, jobs, 8);
    TARGET_UNTIL(t, t->h.finished == 5);
    EXPECT_EQ(t->h.faults, 5);
    EXPECT_EQ(t->h.kinds[SL_RESULT_RETRY], 5);
    EXPECT(sl_loop_now_ns(t->loop) - begin_ns >= 3 * SECOND_NS / 2);
    finish(t);
    free_jobs(jobs, 8);
}

TEST(a_connection_that_breaks_under_many_appends_is_one_fault_B18)
{
    target *const t = start("copies");
    sl_job *jobs[16];

    t->is_asleep = true;
    run_jobs(t, jobs, 16);
    TARGET_UNTIL(t, sl_peers_call_count(&t->peers) == 1);
    sl_peers_cut_calls(&t->peers);
    TARGET_UNTIL(t, t->h.finished == 16);
    EXPECT_EQ(t->h.kinds[SL_RESULT_RETRY], 16);
    EXPECT_EQ(t->h.faults, 1);
    EXPECT(t->h.last.is_fault); /* none of the messages is to blame */
    free_jobs(jobs, 16);
    finish(t);
}

TEST(what_waits_for_a_server_is_called_off_at_once_and_uncharged_S3_6)
{
    target *const t = start("copies");
    sl_job *jobs[3];

    leave(t);
    run_jobs(t, jobs, 3);
    EXPECT(t->h.handler->class->is_alive(t->h.handler, jobs[1]));
    EXPECT(t->h.handler->class->is_unbegun(t->h.handler, jobs[1]));
    t->h.handler->class->abort(t->h.handler, jobs[0]);
    EXPECT_EQ(t->h.kinds[SL_RESULT_UNBEGUN], 1);
    EXPECT(strstr(t->h.reason, "has not taken the event yet") != NULL);
    TARGET_UNTIL(t, t->h.finished == 2); /* the second one told that nobody is there */
    t->h.handler->class->kill(t->h.handler, jobs[2]);
    EXPECT_EQ(t->h.kinds[SL_RESULT_UNBEGUN], 2);
    EXPECT(strstr(t->h.reason, "refused") != NULL);
    free_jobs(jobs, 3);
    finish(t);
}

/* One more try, at once; what it cannot send is handed back. */
TEST(a_server_that_is_away_does_not_eat_the_time_of_a_drain_S3_39)
{
    target *const t = start("copies");
    sl_job *jobs[8];

    leave(t);
    run_jobs(t, jobs, 8);
    TARGET_UNTIL(t, t->h.finished == 4); /* the next pause is one of 800 ms */
    const uint64_t begin_ns = sl_loop_now_ns(t->loop);
    t->h.handler->class->draining(t->h.handler, begin_ns + 30 * SECOND_NS);
    TARGET_UNTIL(t, t->h.finished == 8);
    EXPECT_EQ(t->h.faults, 5);
    EXPECT_EQ(t->h.kinds[SL_RESULT_UNBEGUN], 3);
    EXPECT(sl_loop_now_ns(t->loop) - begin_ns < 3 * SECOND_NS / 4);
    free_jobs(jobs, 8);
    finish(t);
}

/* It says goodbye: what it has taken is answered, and what comes then gets another connection, without a word of failure. */
TEST(a_server_that_says_goodbye_answers_what_it_has_and_is_left)
{
    target *const t = start("copies");
    sl_job *jobs[16], *late[16];

    t->is_asleep = true;
    run_jobs(t, jobs, 16);
    TARGET_UNTIL(t, sl_peers_call_count(&t->peers) == 1);
    sl_peers_shutdown(&t->peers);
    t->is_asleep = false;
    TARGET_UNTIL(t, t->h.finished > 0); /* the goodbye came before, in the same bytes or earlier */
    run_jobs(t, late, 16);
    TARGET_UNTIL(t, t->h.finished == 32);
    EXPECT_EQ(t->h.kinds[SL_RESULT_DONE], 32);
    EXPECT_EQ(t->accepts, 2);
    free_jobs(jobs, 16);
    free_jobs(late, 16);
    finish(t);
}

TEST(what_waits_for_a_server_that_leaves_has_a_reason_when_it_is_called_off)
{
    target *const t = start("copies");
    const sl_job_message message = handled_message(1, "a");
    sl_job *const job = handled_job(2, "b");

    append_one(t, &message);
    sl_peers_shutdown(&t->peers);
    TARGET_UNTIL(t, t->peers.count == 0);
    handled_run(&t->h, job);
    t->h.handler->class->abort(t->h.handler, job);
    EXPECT_EQ(t->h.last.kind, SL_RESULT_UNBEGUN);
    EXPECT(t->h.reason[0] != '\0');
    sl_job_free(job);
    finish(t);
}

TEST(close_from_inside_of_a_result_ends_the_connection_S3_24)
{
    target *const t = start("copies");
    const sl_job_message message = handled_message(1, "a");

    t->h.close_next = true;
    append_one(t, &message);
    TARGET_UNTIL(t, t->h.closed == 1);
    TARGET_UNTIL(t, t->peers.count == 0);
    finish(t);
}

TEST(free_in_the_middle_of_an_append_tells_nobody)
{
    target *const t = start("copies");
    sl_job *const job = handled_job(1, "a");

    t->is_asleep = true;
    handled_run(&t->h, job);
    TARGET_UNTIL(t, sl_peers_call_count(&t->peers) == 1);
    finish(t);
    sl_job_free(job);
}

/* Another service that ends, refuses or floods. */
TEST(a_server_of_another_kind_is_a_failure_and_not_a_crash)
{
    static client_rig r;
    handled h;
    sl_job *const job = handled_job(1, "a");

    client_rig_init(&r, NULL);
    make(&h, r.loop, sl_listener_port(r.listener), "copies");
    handled_run(&h, job);
    CLIENT_UNTIL(&r, r.server_calls == 1); /* it does not know the call, and says nothing */
    client_rig_server_cut(&r, 0);
    CLIENT_UNTIL(&r, h.finished == 1);
    EXPECT_EQ(h.last.kind, SL_RESULT_RETRY);
    h.handler->class->free(h.handler, 0);
    client_rig_done(&r);
    sl_job_free(job);
}
