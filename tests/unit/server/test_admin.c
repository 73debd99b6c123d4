/* tests/unit/server/test_admin.c — who may ask the admin pages, and what is said to a wrong question. */
#include "test.h"

#include <string.h>

#include "base/cleanup.h"
#include "server/admin.h"

typedef struct asked {
    unsigned status;
    const char *allow;
    char body[4096];
} asked;

/* A server that has only settings is enough for everything but the pages about its state. */
static asked ask(const char *method, const char *path, const char *host)
{
    sl_server server = { .settings = &sl_server_settings_default };
    const sl_pages_question question = { .method = method, .path = path, .host = host };
    sl_pages_answer answer = { 0 };
    asked result = { 0 };

    sl_buf_init(&answer.body, &sl_alloc_default, SL_ADMIN_BODY_BYTES_MAX);
    sl_admin_ask(&server, &question, &answer);
    EXPECT(answer.body.bytes < sizeof result.body);
    memcpy(result.body, sl_buf_data(&answer.body), answer.body.bytes);
    result.status = answer.status;
    result.allow = answer.allow;
    sl_buf_done(&answer.body);
    return result;
}

TEST(a_page_that_does_not_exist_names_those_that_do)
{
    const asked result = ask("GET", "/nothing\"here", "127.0.0.1:2114");

    EXPECT_EQ(result.status, 404);
    EXPECT(strncmp(result.body, "{\"error\":\"There is no page /nothing\\\"here", 40) == 0);
    for (size_t i = 0; i < sl_admin_route_count; i++)
        EXPECT(strstr(result.body, sl_admin_routes[i].path) != NULL);
}

TEST(admin_pages_can_only_be_read)
{
    static const char *const methods[] = { "POST", "PUT", "DELETE", "OPTIONS", "get", "" };

    for (size_t i = 0; i < SL_COUNT_OF(methods); i++) {
        const asked result = ask(methods[i], "/livez", "localhost");
        EXPECT_EQ(result.status, 405);
        EXPECT_STR(result.allow, "GET, HEAD");
    }
    EXPECT_EQ(ask("GET", "/livez", "localhost").status, 200);
    EXPECT_EQ(ask("HEAD", "/livez", "localhost").status, 200);
}

TEST(a_foreign_host_name_is_refused_before_anything_is_looked_at)
{
    const asked result = ask("GET", "/v1/info", "attacker.example:2114");

    EXPECT_EQ(result.status, 421);
    EXPECT(strstr(result.body, "127.0.0.1") != NULL);
    EXPECT_EQ(ask("POST", "/nothing", "attacker.example").status, 421);
    EXPECT_EQ(ask("GET", "/livez", NULL).status, 200); /* HTTP/1.0; a browser always sends one */
}

TEST(host_headers_are_held_against_the_names_of_this_machine)
{
    static const struct {
        const char *admin_host, *header;
        bool wanted;
    } rows[] = {
        { "127.0.0.1", "127.0.0.1:2114", true },
        { "127.0.0.1", "127.0.0.1", true },
        { "127.0.0.1", "LocalHost:1", true },
        { "127.0.0.1", "[::1]:2114", true },
        { "127.0.0.1", "[::1]", true },
        { "127.0.0.1", "", false },
        { "127.0.0.1", "[", false },
        { "127.0.0.1", "[::1", false },
        { "127.0.0.1", ":2114", false },
        { "127.0.0.1", "127.0.0.1.example.com", false },
        { "127.0.0.1", "localhost.example.com:2114", false },
        { "127.0.0.1", "10.1.2.3:2114", false },
        { "10.1.2.3", "10.1.2.3:2114", true },
        { "ops.example.com", "OPS.example.com:2114", true },
        { "ops.example.com", "ops.example.com.evil.net", false },
        { "0.0.0.0", "10.1.2.3:2114", true }, /* a number cannot be rebound */
        { "::", "[fe80::1]:2114", true },
        { "0.0.0.0", "cafe.example", false },
        { "0.0.0.0", "bead", false }, /* hexadecimal letters are a name without a colon */
        { "0.0.0.0", "10.1.2.3.", false },
        { "0.0.0.0", "public.example.com:1", true }, /* --advertise-host */
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        sl_server_settings settings = sl_server_settings_default;
        settings.admin_host = rows[i].admin_host;
        settings.advertise_host = "public.example.com";
        if (sl_admin_host_allowed(&settings, sl_str_from(rows[i].header)) != rows[i].wanted)
            fail_msg("row %zu: \"%s\" at %s", i, rows[i].header, rows[i].admin_host);
    }
}
