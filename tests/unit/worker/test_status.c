/* tests/unit/worker/test_status.c — the status pages without HTTP: who may ask what, and what is said. */
#include "test.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "view_rig.h"
#include "worker/status.h"

typedef struct fake_crew {
    view_rig rig;
    uint32_t drains;
} fake_crew;

static const sl_crew_view *look_at_fake(void *ctx)
{
    return &((fake_crew *)ctx)->rig.view;
}

static void drain_fake(void *ctx)
{
    fake_crew *const crew = ctx;

    crew->drains++;
    view_rig_drain(&crew->rig);
}

static const sl_status_owner fake_owner = { .look = look_at_fake, .drain = drain_fake, .host = "127.0.0.1" };

typedef struct page_asked {
    unsigned status;
    const char *allow, *content_type;
    uint64_t wait_ns;
    char body[64 * 1024];
} page_asked;

static page_asked *ask_page(fake_crew *crew, const sl_pages_question *question)
{
    page_asked *const asked = calloc(1, sizeof *asked);
    sl_pages_answer answer = { 0 };

    EXPECT(asked != NULL);
    sl_buf_init(&answer.body, &sl_alloc_default, SL_STATUS_BODY_BYTES_MAX);
    sl_status_ask(&fake_owner, crew, question, &answer, &asked->wait_ns);
    EXPECT(answer.body.bytes < sizeof asked->body);
    if (answer.body.bytes > 0)
        memcpy(asked->body, sl_buf_data(&answer.body), answer.body.bytes);
    asked->status = answer.status;
    asked->allow = answer.allow;
    asked->content_type = answer.content_type;
    sl_buf_done(&answer.body);
    return asked;
}

/* The status; the body must have the words. */
static unsigned get_page(fake_crew *crew, const char *path, const char *words)
{
    const sl_pages_question question = { .method = "GET", .path = path, .host = "127.0.0.1:2115" };
    page_asked *const asked = ask_page(crew, &question);
    const unsigned status = asked->status;

    if (strstr(asked->body, words) == NULL)
        fail_msg("no \"%s\" in %s", words, asked->body);
    free(asked);
    return status;
}

static unsigned status_for(fake_crew *crew, const sl_pages_question *question)
{
    page_asked *const asked = ask_page(crew, question);
    const unsigned status = asked->status;

    free(asked);
    return status;
}

/* --- alive and ready --- */

TEST(alive_stays_true_in_a_drain_and_ready_does_not_S3_40)
{
    fake_crew crew = { 0 };

    view_rig_init(&crew.rig);
    EXPECT_EQ(get_page(&crew, "/livez", "\"alive\""), 200);
    EXPECT_EQ(get_page(&crew, "/readyz", "{\"ready\":true,\"draining\":false}"), 200);
    view_rig_drain(&crew.rig);
    EXPECT_EQ(get_page(&crew, "/livez", "\"draining\""), 200);
    EXPECT_EQ(get_page(&crew, "/readyz",
                       "{\"ready\":false,\"draining\":true,\"why\":\"All workers drain: SIGTERM\"}"),
              503);
}

TEST(a_worker_that_is_not_connected_is_the_reason_for_not_being_ready)
{
    fake_crew crew = { 0 };

    view_rig_init(&crew.rig);
    crew.rig.members[1].counts.is_up = false;
    EXPECT_EQ(get_page(&crew, "/readyz", "Worker mail is not connected"), 503);
    EXPECT_EQ(get_page(&crew, "/livez", "alive"), 200);
}

/* --- everything --- */

TEST(the_state_has_counts_budget_phase_and_whether_it_is_safe_to_terminate_B17)
{
    fake_crew crew = { 0 };

    view_rig_init(&crew.rig);
    EXPECT_EQ(get_page(&crew, "/v1/state", "\"safe_to_terminate\":true"), 200);
    view_rig_drain(&crew.rig);
    crew.rig.members[0].counts.acked = UINT64_C(9007199254740993); /* no double has it */
    EXPECT_EQ(get_page(&crew, "/v1/state", "\"draining\":true,\"reason\":\"SIGTERM\""), 200);
    (void)get_page(
        &crew, "/v1/state",
        "\"held\":3,\"safe_to_terminate\":false,\"remaining_seconds\":26.000000,\"removal_cost\":2001");
    (void)get_page(&crew, "/v1/state", "\"phase\":\"settling\"");
    (void)get_page(&crew, "/v1/state", "\"acked\":9007199254740993");
    (void)get_page(&crew, "/v1/state", "\"parts\":{\"fence\":2.000000,\"settle\":20.000000");
    (void)get_page(&crew, "/v1/state", "{\"waiting\":0,\"running\":2,\"delayed\":0,\"settling\":1}");
}

static void say_garbage(const sl_source *source, struct cJSON *object)
{
    (void)source;
    cJSON_AddStringToObject(object, "address", "\xff\xfe\"\n");
}

TEST(what_sources_say_about_themselves_cannot_break_the_page)
{
    static const sl_source_class source_class = { .name = "odd", .describe = say_garbage };
    static const sl_handler_class handler_class = { .name = "silent" };
    const sl_source source = { .class = &source_class };
    const sl_handler handler = { .class = &handler_class };
    fake_crew crew = { 0 };

    view_rig_init(&crew.rig);
    crew.rig.members[0].source = &source;
    crew.rig.members[0].handler = &handler;
    EXPECT_EQ(
        get_page(
            &crew, "/v1/state",
            "\"source\":{\"kind\":\"odd\",\"address\":\"?\?\\\"\\n\"},\"handler\":{\"kind\":\"silent\"}"),
        200);
}

/* --- memory --- */

static int allocations_left;

static void *scarce_malloc(size_t bytes)
{
    return allocations_left-- > 0 ? malloc(bytes) : NULL;
}

/* Whatever allocation fails, there is an answer, and it is either whole or says that there is no memory; a describe() that
 * gets no memory only shortens it. */
TEST(a_page_without_memory_is_an_answer_without_a_body)
{
    static const char *const paths[] = { "/livez", "/readyz", "/v1/state", "/v1/drain", "/nothing" };
    cJSON_Hooks hooks = { .malloc_fn = scarce_malloc, .free_fn = free };
    fake_crew crew = { 0 };

    view_rig_init(&crew.rig);
    view_rig_drain(&crew.rig);
    for (size_t i = 0; i < SL_COUNT_OF(paths); i++) {
        const sl_pages_question question = { .method = "GET", .path = paths[i] };
        bool was_whole = false;
        for (int limit = 0; !was_whole; limit++) {
            page_asked *asked;
            EXPECT(limit < 5000);
            allocations_left = limit;
            cJSON_InitHooks(&hooks);
            asked = ask_page(&crew, &question);
            cJSON_InitHooks(NULL);
            was_whole = allocations_left >= 0;
            EXPECT(asked->body[0] == '{' || asked->body[0] == '\0');
            free(asked);
        }
    }
}

/* --- who may ask --- */

TEST(unknown_pages_name_those_that_exist_and_reading_pages_can_only_be_read)
{
    fake_crew crew = { 0 };
    const sl_pages_question wrong = { .method = "POST", .path = "/livez" };
    const sl_pages_question head = { .method = "HEAD", .path = "/readyz" };
    page_asked *asked;

    view_rig_init(&crew.rig);
    EXPECT_EQ(
        get_page(&crew, "/nothing\"here", "There is no page /nothing\\\"here here. These exist: /livez ("),
        404);
    EXPECT_EQ(get_page(&crew, "/", "/v1/drain"), 404);
    EXPECT_EQ(get_page(&crew, "/metrics", "sluice_worker_ready 1\n"), 200);
    EXPECT_EQ(status_for(&crew, &head), 200);
    asked = ask_page(&crew, &wrong);
    EXPECT_EQ(asked->status, 405);
    EXPECT_STR(asked->allow, "GET, HEAD");
    free(asked);
}

TEST(status_pages_are_shown_under_the_names_of_this_machine_only)
{
    static const struct {
        const char *own, *header;
        bool wanted;
    } rows[] = {
        { "127.0.0.1", "127.0.0.1:2115", true },
        { "127.0.0.1", "LocalHost:1", true },
        { "127.0.0.1", "[::1]:2115", true },
        { "0.0.0.0", "10.1.2.3:2115", true }, /* a number cannot be rebound */
        { "::", "[fe80::1]", true },
        { "worker-0.example.com", "Worker-0.example.com:2115", true },
        { "127.0.0.1", "worker-0.example.com", false },
        { "127.0.0.1", "127.0.0.1.example.com", false },
        { "127.0.0.1", "bead", false },
        { "127.0.0.1", "", false },
        { "127.0.0.1", "[", false },
        { "127.0.0.1", ":2115", false },
        { "", ":2115", false },
        { "127.0.0.1", "10.1.2.3.", false },
    };
    fake_crew crew = { 0 };
    const sl_pages_question foreign = { .method = "GET", .path = "/livez", .host = "attacker.example" };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        if (sl_status_host_allowed(rows[i].own, sl_str_from(rows[i].header)) != rows[i].wanted)
            fail_msg("row %zu: \"%s\" at %s", i, rows[i].header, rows[i].own);
    view_rig_init(&crew.rig);
    EXPECT_EQ(status_for(&crew, &foreign), 421);
}

/* --- the drain --- */

TEST(only_a_program_on_this_machine_may_begin_a_drain)
{
    const sl_pages_question local = { .method = "POST", .path = "/v1/drain", .is_local = true };
    sl_pages_question other = local;
    fake_crew crew = { 0 };

    view_rig_init(&crew.rig);
    other.is_local = false;
    EXPECT_EQ(status_for(&crew, &other), 403);
    other = local;
    other.origin = "http://attacker.example";
    EXPECT_EQ(status_for(&crew, &other), 403);
    other = local;
    other.fetch_site = "cross-site";
    EXPECT_EQ(status_for(&crew, &other), 403);
    other = local;
    other.method = "GET"; /* a link or an image must not do it */
    EXPECT_EQ(status_for(&crew, &other), 409);
    EXPECT_EQ(crew.drains, 0);
    EXPECT_EQ(status_for(&crew, &local), 202);
    EXPECT_EQ(crew.drains, 1);
    other.is_local = false;
    EXPECT_EQ(status_for(&crew, &other), 202); /* everybody may look */
}

static uint64_t wait_of(const char *query, unsigned status)
{
    const sl_pages_question question = { .method = "GET", .path = "/v1/drain", .query = query };
    fake_crew crew = { 0 };
    page_asked *asked;
    uint64_t wait_ns;

    view_rig_init(&crew.rig);
    view_rig_drain(&crew.rig);
    asked = ask_page(&crew, &question);
    wait_ns = asked->wait_ns;
    EXPECT_EQ(asked->status, status);
    free(asked);
    return wait_ns;
}

TEST(who_waits_for_a_drain_says_how_long)
{
    EXPECT_EQ(wait_of(NULL, 202), 0);
    EXPECT_EQ(wait_of("wait=25s", 202), UINT64_C(25000000000));
    EXPECT_EQ(wait_of("wait=25", 202), UINT64_C(25000000000));
    EXPECT_EQ(wait_of("wait=0", 202), 0);
    EXPECT_EQ(wait_of("wait=25h", 400), 0);
    EXPECT_EQ(wait_of("wait=999999999999999999", 400), 0);
    EXPECT_EQ(wait_of("wait=soon", 400), 0);
    EXPECT_EQ(wait_of("wait=", 400), 0);
    EXPECT_EQ(wait_of("weight=25s", 400), 0);
}

TEST(a_drain_is_done_when_nothing_is_held_and_a_wait_in_vain_is_an_error_B17)
{
    sl_pages_answer answer = { 0 };
    view_rig rig;

    view_rig_init(&rig);
    sl_buf_init(&answer.body, &sl_alloc_default, SL_STATUS_BODY_BYTES_MAX);
    EXPECT(!sl_status_show_drain(&rig.view, SL_STATUS_WAITS, &answer)); /* it has not even begun */
    view_rig_drain(&rig);
    EXPECT(!sl_status_show_drain(&rig.view, SL_STATUS_WAITS, &answer));
    EXPECT(sl_status_show_drain(&rig.view, SL_STATUS_IN_VAIN, &answer));
    EXPECT_EQ(answer.status, 504);
    rig.members[0].counts.running = rig.members[0].counts.settling = 0;
    rig.members[1].phase = SL_DRAIN_FENCING; /* something may still come */
    EXPECT(!sl_status_show_drain(&rig.view, SL_STATUS_WAITS, &answer));
    rig.members[1].phase = SL_DRAIN_SETTLING;
    EXPECT(sl_status_show_drain(&rig.view, SL_STATUS_WAITS, &answer));
    EXPECT_EQ(answer.status, 200);
    sl_buf_done(&answer.body);
}
