/* tests/unit/worker/test_status_http.c — the status pages over a real socket: a client in a thread, the pages on a loop. */
#include "test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "crew_rig.h"
#include "view_rig.h"

typedef struct served {
    sl_loop *loop;
    sl_status_pages *pages;
    view_rig rig;
    uint32_t drains;
    pthread_t client;
    void (*run)(struct served *served);
    atomic_bool is_done;
    http_asked asked;
    http_asked many[SL_STATUS_WAITERS_MAX + 1];
} served;

static const sl_crew_view *look_at_served(void *ctx)
{
    return &((served *)ctx)->rig.view;
}

static void drain_served(void *ctx)
{
    served *const s = ctx;

    s->drains++;
    view_rig_drain(&s->rig);
}

static const sl_status_owner served_owner = { .look = look_at_served,
                                              .drain = drain_served,
                                              .host = "127.0.0.1" };

static served *serve(void)
{
    served *const s = calloc(1, sizeof *s);
    char problem[256];
    sl_text text;

    EXPECT(s != NULL);
    sl_text_init(&text, problem, sizeof problem);
    view_rig_init(&s->rig);
    EXPECT_OK(sl_loop_new(NULL, &(sl_loop_handler){ 0 }, NULL, &s->loop));
    EXPECT_OK(sl_status_pages_new(s->loop, &served_owner, s, 0, &text, &s->pages));
    return s;
}

static void unserve(served *s)
{
    sl_status_pages_free(s->pages);
    sl_loop_free(s->loop);
    free(s);
}

static void *client_main(void *ctx)
{
    served *const s = ctx;

    s->run(s);
    atomic_store(&s->is_done, true);
    sl_loop_wake(s->loop);
    return NULL;
}

static void begin_client(served *s, void (*run)(served *served))
{
    s->run = run;
    atomic_store(&s->is_done, false);
    EXPECT_EQ(pthread_create(&s->client, NULL, client_main, s), 0);
}

static void with_client(served *s, void (*run)(served *served))
{
    begin_client(s, run);
    while (!atomic_load(&s->is_done))
        sl_loop_turn(s->loop, true);
    EXPECT_EQ(pthread_join(s->client, NULL), 0);
}

static void ask_live(served *s)
{
    (void)crew_http_ask(sl_status_pages_port(s->pages), "GET", "/livez?x=y", "", &s->asked);
}

static void ask_head(served *s)
{
    (void)crew_http_ask(sl_status_pages_port(s->pages), "HEAD", "/readyz", "", &s->asked);
}

static void ask_with_body(served *s)
{
    (void)crew_http_ask(sl_status_pages_port(s->pages), "POST", "/v1/drain", "Content-Length: 1000000000\r\n",
                        &s->asked);
}

static void ask_from_a_page(served *s)
{
    (void)crew_http_ask(sl_status_pages_port(s->pages), "POST", "/v1/drain",
                        "Origin: http://attacker.example\r\nSec-Fetch-Site: cross-site\r\n", &s->asked);
}

TEST(status_pages_are_served_over_http)
{
    served *const s = serve();

    with_client(s, ask_live);
    EXPECT_EQ(s->asked.status, 200);
    EXPECT_STR(s->asked.body, "{\"status\":\"alive\"}\n");
    EXPECT(strstr(s->asked.text, "Cache-Control: no-store\r\n") != NULL);
    with_client(s, ask_head);
    EXPECT_EQ(s->asked.status, 200);
    EXPECT_STR(s->asked.body, "");
    EXPECT(strstr(s->asked.text, "Content-Length: 32\r\n") != NULL);
    unserve(s);
}

TEST(a_body_that_no_page_takes_is_not_waited_for)
{
    served *const s = serve();

    with_client(s, ask_with_body);
    EXPECT_EQ(s->asked.status, 202); /* a client on loopback may do this, with or without a body */
    EXPECT_EQ(s->drains, 1);
    unserve(s);
}

TEST(a_web_page_cannot_begin_a_drain)
{
    served *const s = serve();

    with_client(s, ask_from_a_page);
    EXPECT_EQ(s->asked.status, 403);
    EXPECT_EQ(s->drains, 0);
    unserve(s);
}

static void ask_and_wait_briefly(served *s)
{
    (void)crew_http_ask(sl_status_pages_port(s->pages), "GET", "/v1/drain?wait=20ms", "", &s->asked);
}

static void ask_and_wait(served *s)
{
    (void)crew_http_ask(sl_status_pages_port(s->pages), "POST", "/v1/drain?wait=60s", "", &s->asked);
}

TEST(who_waits_in_vain_for_a_drain_is_told_after_his_time)
{
    served *const s = serve();

    view_rig_drain(&s->rig);
    with_client(s, ask_and_wait_briefly);
    EXPECT_EQ(s->asked.status, 504);
    EXPECT(strstr(s->asked.body, "\"held\":3") != NULL);
    unserve(s);
}

TEST(who_waits_for_a_drain_hears_when_nothing_is_held_any_more_B17)
{
    served *const s = serve();

    begin_client(s, ask_and_wait);
    while (s->drains == 0)
        sl_loop_turn(s->loop, true);
    sl_loop_turn(s->loop, false);
    s->rig.members[0].counts.running = s->rig.members[0].counts.settling = 0;
    while (!atomic_load(&s->is_done))
        sl_loop_turn(s->loop, true);
    EXPECT_EQ(pthread_join(s->client, NULL), 0);
    EXPECT_EQ(s->asked.status, 200);
    EXPECT(strstr(s->asked.body, "\"done\":true") != NULL);
    unserve(s);
}

/* The members have ended and the pages go: nobody is left without an answer. */
TEST(who_still_waits_when_the_pages_go_is_answered_S3_21_S3_40)
{
    served *const s = serve();

    begin_client(s, ask_and_wait);
    while (s->drains == 0)
        sl_loop_turn(s->loop, true);
    view_rig_end(&s->rig);
    sl_status_pages_free(s->pages);
    s->pages = NULL;
    EXPECT_EQ(pthread_join(s->client, NULL), 0);
    EXPECT_EQ(s->asked.status, 200);
    EXPECT(strstr(s->asked.body, "\"done\":true") != NULL);
    unserve(s);
}

typedef struct one_of_many {
    served *s;
    size_t index;
} one_of_many;

static void *wait_as_one(void *ctx)
{
    const one_of_many *const one = ctx;

    (void)crew_http_ask(sl_status_pages_port(one->s->pages), "GET", "/v1/drain?wait=2s", "",
                        &one->s->many[one->index]);
    return NULL;
}

static void ask_too_many(served *s)
{
    pthread_t clients[SL_STATUS_WAITERS_MAX + 1];
    one_of_many ones[SL_STATUS_WAITERS_MAX + 1];

    for (size_t i = 0; i < SL_COUNT_OF(clients); i++) {
        ones[i] = (one_of_many){ s, i };
        if (pthread_create(&clients[i], NULL, wait_as_one, &ones[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < SL_COUNT_OF(clients); i++)
        pthread_join(clients[i], NULL);
}

TEST(only_so_many_may_wait_at_a_time)
{
    served *const s = serve();
    uint32_t refused = 0, waited = 0;

    view_rig_drain(&s->rig);
    with_client(s, ask_too_many);
    for (size_t i = 0; i < SL_COUNT_OF(s->many); i++) {
        refused += s->many[i].status == 503;
        waited += s->many[i].status == 504;
    }
    EXPECT_EQ(waited + refused, SL_STATUS_WAITERS_MAX + 1);
    EXPECT(refused >= 1);
    unserve(s);
}
