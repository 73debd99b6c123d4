/* tests/unit/server/test_admin_groups.c — groups and consumers over HTTP: lists, stop and resume, and who may not. */
#include "operators_rig.h"
#include "read_rig.h"

#include "server/admin.h"
#include "server/admin_query.h"
#include "server/groups/group_metrics.h"

#include <stdio.h>
#include <string.h>

/* --- paths and parameters --- */

TEST(percent_encoding_is_read_and_nothing_else_passes)
{
    static const struct {
        const char *text, *wanted; /* NULL: refused */
    } rows[] = { { "orders", "orders" },
                 { "a%2Fb%2fc", "a/b/c" },
                 { "%C3%A9", "\xc3\xa9" },
                 { "a+b", "a b" },
                 { "%", NULL },
                 { "%4", NULL },
                 { "%zz", NULL },
                 { "a%00b", NULL },
                 { "%ff", NULL },
                 { "", "" },
                 { "%25", "%" } };
    sl_arena arena;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 256, 4096 });
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_str text;
        const sl_err err = sl_admin_decode(sl_str_from(rows[i].text), true, &arena, &text);

        EXPECT_EQ(err == SL_OK, rows[i].wanted != NULL);
        if (err == SL_OK)
            EXPECT(sl_str_equal(text, sl_str_from(rows[i].wanted)));
    }
    sl_arena_done(&arena);
}

TEST(patterns_of_paths_take_anything_for_capitals)
{
    sl_str parts[2] = { { 0 } };

    EXPECT(sl_admin_path_fits("/v1/groups/STREAM/GROUP", SL_STR("/v1/groups/a%2Fb/g"), parts));
    EXPECT(sl_str_equal(parts[0], SL_STR("a%2Fb")) && sl_str_equal(parts[1], SL_STR("g")));
    EXPECT(!sl_admin_path_fits("/v1/groups/STREAM/GROUP", SL_STR("/v1/groups/a"), parts));
    EXPECT(!sl_admin_path_fits("/v1/groups/STREAM/GROUP", SL_STR("/v1/groups/a/"), parts));
    EXPECT(!sl_admin_path_fits("/v1/groups/STREAM/GROUP", SL_STR("/v1/groups/a/b/c"), parts));
    EXPECT(!sl_admin_path_fits("/v1/groups", SL_STR("/v1/group"), parts));
    EXPECT(!sl_admin_path_fits("/v1/groups", SL_STR(""), parts));
}

/* --- pages --- */

typedef struct page {
    sl_pages_answer answer;
    bool is_ready; /* an answer that had to be waited for is there */
} page;

static void on_ready(void *ctx)
{
    ((page *)ctx)->is_ready = true;
}

static sl_server server_of(groups *g)
{
    return (sl_server){ .alloc = &sl_alloc_default,
                        .settings = &g->rig.settings,
                        .host = g->rig.host,
                        .stage = SL_STAGE_SERVING };
}

static void ask(sl_server *server, const sl_pages_question *question, page *p)
{
    *p = (page){ .answer = { .ready = on_ready, .ready_ctx = p } };
    sl_buf_init(&p->answer.body, &sl_alloc_default, SL_ADMIN_BODY_BYTES_MAX);
    sl_admin_ask(server, question, &p->answer);
}

static const char *body_of(page *p)
{
    if (p->answer.body.bytes == 0 || sl_buf_data(&p->answer.body)[p->answer.body.bytes - 1] != 0)
        EXPECT_OK(sl_buf_append_u8(&p->answer.body, 0));
    return (const char *)sl_buf_data(&p->answer.body);
}

static void expect_page(page *p, unsigned status, const char *text)
{
    if (p->answer.status != status || strstr(body_of(p), text) == NULL)
        fail_msg("%u %s, wanted %u with %s", p->answer.status, body_of(p), status, text);
    sl_buf_done(&p->answer.body);
}

static void expect_get(groups *g, const char *path, const char *query, unsigned status, const char *text)
{
    sl_server server = server_of(g);
    page p;

    ask(&server, &(sl_pages_question){ .method = "GET", .path = path, .query = query }, &p);
    EXPECT(p.answer.job == NULL);
    expect_page(&p, status, text);
}

static void begin_post(groups *g, sl_server *server, const char *path, const char *query, page *p)
{
    *server = server_of(g);
    ask(server, &(sl_pages_question){ .method = "POST", .path = path, .query = query }, p);
    server_rig_run(&g->rig);
}

static void expect_post(groups *g, const char *path, const char *query, unsigned status, const char *text)
{
    sl_server server;
    page p;

    begin_post(g, &server, path, query, &p);
    EXPECT(p.answer.job == NULL);
    EXPECT_EQ(server.admin_job_count, 0);
    expect_page(&p, status, text);
}

static void begin(groups *g, unsigned events)
{
    groups_start(g);
    if (events > 0)
        reads_append(&g->rig, "orders", events);
    groups_plain(g);
}

static const sl_wire_label labels[] = { { SL_STR_INIT("version"), SL_STR_INIT("42") } };

TEST(groups_are_shown_over_http)
{
    const sl_group_definition odd = groups_definition("a/b", "g\"");
    groups g;

    begin(&g, 2);
    groups_create(&g, &odd);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });
    expect_get(&g, "/v1/groups", NULL, 200, "{\"groups\":[{\"stream\":\"a/b\",\"group\":\"g\\\"\"");
    expect_get(&g, "/v1/groups", "stream=orders", 200, "{\"groups\":[{\"stream\":\"orders\"");
    expect_get(&g, "/v1/groups", "stream=none", 200, "{\"groups\":[]}");
    expect_get(&g, "/v1/groups/orders/g", NULL, 200, "\"in_flight\":1,\"available\":1");
    expect_get(&g, "/v1/groups/orders/g", NULL, 200, "\"consumers\":[{\"labels\":{}");
    expect_get(&g, "/v1/groups/orders/g", NULL, 200, "\"message_timeout_ms\":30000");
    expect_get(&g, "/v1/groups/a%2Fb/g%22", NULL, 200, "\"stream\":\"a/b\"");
    expect_get(&g, "/v1/groups/orders/none", NULL, 404, "There is no such group.");
    expect_get(&g, "/v1/groups/orders/%zz", NULL, 400, "not percent-encoded");
    groups_done(&g);
}

/* B17: one question for an orchestrator. */
TEST(consumers_are_shown_over_http)
{
    groups g;
    server_call *call;

    begin(&g, 1);
    call = groups_join(
        &g, (groups_consumer){
                .name = "pod 1", .window = 1, .extensions = true, .labels = labels, .label_count = 1 });
    expect_get(&g, "/v1/consumers", NULL, 200, "\"name\":\"pod 1\"");
    expect_get(&g, "/v1/consumers", "label=version=42", 200, "\"labels\":{\"version\":\"42\"}");
    expect_get(&g, "/v1/consumers", NULL, 200, "\"removal_cost\":1000,\"cheapest_to_remove\":true}");
    expect_get(&g, "/v1/consumers", "label=version=41", 200, "{\"consumers\":[]}");
    expect_get(&g, "/v1/consumers", "stream=orders&group=g&name=pod+1", 200, "\"state\":\"active\"");
    expect_get(&g, "/v1/consumers/pod%201", NULL, 200, "\"safe_to_terminate\":false}");
    expect_get(&g, "/v1/consumers/pod2", NULL, 404, "There is no consumer of this name");
    expect_get(&g, "/v1/consumers", "group=g", 400, "together with its stream");
    expect_get(&g, "/v1/consumers", "label=version", 400, "key=value");
    expect_get(&g, "/v1/consumers", "colour=red", 400, "does not know");
    expect_get(&g, "/v1/consumers", "name=a&name=b", 400, "twice");
    groups_stop(call, false);
    groups_ack(call, 1, 1);
    expect_get(&g, "/v1/consumers/pod%201", NULL, 200, "\"name\":\"pod 1\",\"safe_to_terminate\":true}");
    expect_get(&g, "/v1/drains", NULL, 200, "{\"reports\":[{\"stream\":\"orders\"");
    expect_get(&g, "/v1/drains", NULL, 200, "\"settled\":1,\"released\":0,\"interrupted\":0,\"lost\":0}");
    server_call_cancel(call);
    server_rig_run(&g.rig);
    expect_get(&g, "/v1/consumers/pod%201", NULL, 200,
               "\"safe_to_terminate\":true}"); /* gone, and drained before */
    groups_done(&g);
}

/* --- stop and resume --- */

/* B10: the answer comes when it is drained. */
TEST(a_stop_over_http_is_answered_when_everybody_is_drained)
{
    groups g;
    server_call *call;
    sl_server server;
    page p;

    begin(&g, 1);
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });
    begin_post(&g, &server, "/v1/consumers/a/stop", "wait=25s&reason=deploy+43&deadline=20s", &p);
    EXPECT(p.answer.job != NULL && !p.is_ready);
    EXPECT_HEARD_FROM(call, 2, "stop-requested stopped:1^operator");
    EXPECT(sl_str_equal(groups_message(call, 2).stop_requested.reason, SL_STR("deploy 43")));
    EXPECT_EQ(groups_message(call, 2).stop_requested.deadline_ms, 20000);
    groups_ack(call, 1, 1);
    EXPECT(p.answer.job == NULL && p.is_ready);
    expect_page(&p, 200,
                "\"meant\":1,\"drained\":1,\"in_flight\":0,\"went_away\":0,\"lost\":0,\"unlabelled\":0,"
                "\"rules\":1,\"done\":true");
    groups_done(&g);
}

TEST(a_stop_over_http_gives_504_with_the_state_when_its_time_is_over)
{
    groups g;
    sl_server server;
    page p;

    begin(&g, 1);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });
    begin_post(&g, &server, "/v1/groups/orders/g/stop", "wait=5s", &p);
    EXPECT(!p.is_ready);
    server_rig_advance(&g.rig, 6 * GROUPS_SECOND_NS);
    EXPECT(p.is_ready);
    EXPECT(strstr(body_of(&p), "\"state\":\"stopping\"") != NULL);
    expect_page(&p, 504,
                "\"meant\":1,\"drained\":0,\"in_flight\":1,\"went_away\":0,\"lost\":0,\"unlabelled\":0,"
                "\"rules\":1,\"done\":false,\"error\":");
    groups_done(&g);
}

TEST(stops_and_resumes_over_http)
{
    groups g;
    server_call *call;

    begin(&g, 1);
    call = groups_join(
        &g, (groups_consumer){
                .name = "a", .window = 1, .extensions = true, .labels = labels, .label_count = 1 });
    expect_post(&g, "/v1/stop", "label=version=42", 202, "\"meant\":1,\"drained\":0,\"in_flight\":1");
    EXPECT_STR(operators_list(&g, WHO(0)), "a=stopping:1^operator");
    expect_post(&g, "/v1/resume", "label=version=42", 200, "{\"resumed\":1,\"too_late\":0,\"rules\":1}");
    EXPECT_STR(operators_list(&g, WHO(0)), "a=active:1");
    expect_post(&g, "/v1/groups/orders/g/stop", "hand_back=true&once=true", 202, "\"in_flight\":1");
    EXPECT_HEARD_FROM(call, 4, "stop-requested+back stopped:1^operator");
    groups_release(call, 1, 1);
    expect_post(&g, "/v1/groups/orders/g/stop", "wait=1s&once=true", 200, "\"done\":true");
    expect_post(&g, "/v1/groups/orders/g/resume", NULL, 409,
                "\"too_late\":1,\"rules\":0,\"error\":\"Too late");
    groups_done(&g);
}

/* A hook for a process that has gone already must not fail: as `sluice consumer stop`. */
TEST(a_stop_over_http_of_nobody_is_done)
{
    groups g;

    begin(&g, 0);
    expect_post(&g, "/v1/consumers/nobody/stop", "once=true&wait=25s", 200, "\"meant\":0,\"drained\":0");
    expect_post(&g, "/v1/consumers/nobody/stop", NULL, 200, "\"done\":true");
    groups_done(&g);
}

TEST(wrong_stops_over_http_get_a_sentence)
{
    groups g;

    begin(&g, 0);
    expect_post(&g, "/v1/stop", NULL, 400, "Say who is meant");
    expect_post(&g, "/v1/stop", "label=version=42&wait=soon", 400, "A time is written like");
    expect_post(&g, "/v1/stop", "label=version=42&wait=48h", 400, "A time is written like");
    expect_post(&g, "/v1/stop", "label=version=42&hand_back=yes", 400, "true or false");
    expect_post(&g, "/v1/stop", "stream=orders&group=none", 404, "no such group");
    expect_post(&g, "/v1/groups/orders/none/stop", NULL, 404, "no such group");
    expect_post(&g, "/v1/consumers/nobody/stop", "wait=soon", 400, "A time is written like");
    expect_get(&g, "/v1/stop", NULL, 405, "use POST");
    expect_post(&g, "/v1/consumers", NULL, 405, "GET or HEAD");
    groups_done(&g);
}

/* A page that somebody looks at must not be able to stop consumers by sending a form here. */
TEST(a_web_page_of_another_origin_cannot_stop_consumers)
{
    static const struct {
        const char *host, *origin, *site;
        unsigned status;
    } rows[] = {
        { "127.0.0.1:2114", NULL, NULL, 202 },
        { "127.0.0.1:2114", "http://127.0.0.1:2114", "same-origin", 202 },
        { "127.0.0.1:2114", "http://evil.example", NULL, 403 },
        { "127.0.0.1:2114", "http://127.0.0.1:8080", NULL, 403 },
        { "127.0.0.1:2114", "null", NULL, 403 },
        { "127.0.0.1:2114", "", NULL, 403 },
        { "127.0.0.1:2114", NULL, "cross-site", 403 },
        { "127.0.0.1:2114", NULL, "same-site", 403 },
        { NULL, "http://127.0.0.1:2114", NULL, 403 },
        { "evil.example", "http://evil.example", "same-origin", 421 },
    };
    groups g;

    begin(&g, 1);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_server server = server_of(&g);
        page p;

        ask(&server,
            &(sl_pages_question){ .method = "POST",
                                  .path = "/v1/consumers/a/stop",
                                  .host = rows[i].host,
                                  .origin = rows[i].origin,
                                  .fetch_site = rows[i].site },
            &p);
        server_rig_run(&g.rig);
        expect_page(&p, rows[i].status, "");
    }
    groups_done(&g);
}

TEST(jobs_of_admin_pages_are_bounded_and_end_with_the_host)
{
    groups g;
    sl_server server;
    page pages[SL_ADMIN_JOBS_MAX + 1];

    begin(&g, 1);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });
    server = server_of(&g);
    for (unsigned i = 0; i <= SL_ADMIN_JOBS_MAX; i++)
        ask(&server,
            &(sl_pages_question){ .method = "POST", .path = "/v1/consumers/a/stop", .query = "wait=1h" },
            &pages[i]);
    server_rig_run(&g.rig);
    expect_page(&pages[SL_ADMIN_JOBS_MAX], 503, "Too many wait here");
    sl_admin_give_up(&pages[0].answer); /* its client has gone */
    sl_buf_done(&pages[0].answer.body);
    EXPECT(!pages[0].is_ready);
    sl_admin_end_jobs(&server);
    for (unsigned i = 1; i < SL_ADMIN_JOBS_MAX; i++) {
        EXPECT(pages[i].is_ready);
        expect_page(&pages[i], 503, "The server ends.");
    }
    EXPECT_EQ(server.admin_job_count, 0);
    groups_done(&g);
}

TEST(pages_about_groups_wait_for_the_store)
{
    sl_server server = { .settings = &sl_server_settings_default };
    page p;

    ask(&server, &(sl_pages_question){ .method = "GET", .path = "/v1/groups" }, &p);
    expect_page(&p, 503, "does not serve clients");
}

/* --- metrics --- */

static const char *metrics_of(groups *g, sl_buf *buf)
{
    sl_buf_init(buf, &sl_alloc_default, SL_ADMIN_BODY_BYTES_MAX);
    EXPECT_OK(sl_group_metrics_write(g->rig.host, buf));
    EXPECT_OK(sl_buf_append_u8(buf, 0));
    return (const char *)sl_buf_data(buf);
}

TEST(metrics_show_each_group)
{
    const sl_group_definition odd = groups_definition("a\\b\n", "g\"");
    groups g;
    server_call *call;
    const char *text;
    sl_buf buf;

    begin(&g, 3);
    groups_create(&g, &odd);
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 2, .extensions = true });
    groups_ack(call, 1, 1);
    groups_nack(call, 2, 1, SL_WIRE_NACK_PARK, "");
    text = metrics_of(&g, &buf);
    EXPECT(strstr(text, "\nsluice_group_consumers{stream=\"orders\",group=\"g\",state=\"active\"} 1\n") !=
           NULL);
    EXPECT(strstr(text, "\nsluice_group_consumers{stream=\"orders\",group=\"g\",state=\"away\"} 0\n") !=
           NULL);
    EXPECT(strstr(text, "\nsluice_group_in_flight_messages{stream=\"orders\",group=\"g\"} 1\n") != NULL);
    EXPECT(strstr(text, "\nsluice_group_delivered_messages_total{stream=\"orders\",group=\"g\"} 3\n") !=
           NULL);
    EXPECT(strstr(text, "\nsluice_group_settled_messages_total{stream=\"orders\",group=\"g\"} 1\n") != NULL);
    EXPECT(strstr(text, "\nsluice_group_parked_messages_total{stream=\"orders\",group=\"g\"} 1\n") != NULL);
    EXPECT(strstr(text, "\nsluice_group_parked_messages{stream=\"orders\",group=\"g\"} 1\n") != NULL);
    EXPECT(strstr(text, "\nsluice_group_checkpoint_position{stream=\"orders\",group=\"g\"} 2\n") != NULL);
    EXPECT(strstr(text, "\nsluice_group_last_known_position{stream=\"orders\",group=\"g\"} 3\n") != NULL);
    EXPECT(strstr(text, "\nsluice_group_stop_rules{stream=\"orders\",group=\"g\"} 0\n") != NULL);
    EXPECT(strstr(text, "{stream=\"a\\\\b\\n\",group=\"g\\\"\"} 0\n") != NULL);
    EXPECT(strstr(text, "\n# TYPE sluice_group_settled_messages_total counter\n") != NULL);
    EXPECT_EQ(sl_group_metrics_count(g.rig.host), 2);
    sl_buf_done(&buf);
    groups_done(&g);
}

TEST(metrics_show_a_bounded_number_of_groups)
{
    char long_name[300];
    groups g;
    const char *text;
    unsigned shown = 0;
    sl_buf buf;

    groups_start(&g);
    memset(long_name, 'a', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    for (unsigned i = 0; i < SL_GROUP_METRICS_GROUPS_MAX + 5; i++) {
        char name[16];
        sl_group_definition definition;

        snprintf(name, sizeof name, "g%u", i);
        definition = groups_definition(i == 0 ? long_name : "orders", name);
        groups_create(&g, &definition);
    }
    text = metrics_of(&g, &buf);
    for (const char *at = text; (at = strstr(at, "\nsluice_group_in_flight_messages{")) != NULL; at++)
        shown++;
    EXPECT_EQ(shown, SL_GROUP_METRICS_GROUPS_MAX);
    EXPECT(strstr(text, "stream=\"aaa") == NULL);
    sl_buf_done(&buf);
    groups_done(&g);
}
