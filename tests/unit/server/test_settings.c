/* tests/unit/server/test_settings.c — what a server can be told, and what is refused before it starts. */
#include "test.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/serve_command.h"
#include "core/budget.h"
#include "server/settings.h"

#define SECOND_NS UINT64_C(1000000000)

/* Refused, with a sentence that names these words. */
static void expect_refused(const sl_server_settings *settings, sl_err wanted, const char *words)
{
    char sentence[1024];
    sl_text problem;

    sl_text_init(&problem, sentence, sizeof sentence);
    EXPECT_ERR(sl_server_settings_check(settings, &problem), wanted);
    if (strstr(sentence, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", sentence, words);
}

static void expect_accepted(const sl_server_settings *settings)
{
    char sentence[1024];
    sl_text problem;

    sl_text_init(&problem, sentence, sizeof sentence);
    if (sl_server_settings_check(settings, &problem) != SL_OK)
        fail_msg("refused: %s", sentence);
    EXPECT_EQ(problem.bytes, 0);
}

TEST(the_default_settings_are_safe_and_complete)
{
    EXPECT(sl_address_is_loopback(sl_str_from(sl_server_settings_default.host)));
    EXPECT(sl_address_is_loopback(sl_str_from(sl_server_settings_default.admin_host)));
    EXPECT_EQ(sl_server_settings_default.port, 2113);
    EXPECT_EQ(sl_server_settings_default.admin_port, 2114);
    EXPECT(!sl_server_settings_default.insecure);
    EXPECT(!sl_server_settings_default.anonymous);
    EXPECT(!sl_server_settings_default.sync_by_os);
    expect_accepted(&sl_server_settings_default);
}

TEST(only_addresses_of_this_machine_are_loopback)
{
    static const struct {
        const char *host;
        bool wanted;
    } rows[] = {
        { "127.0.0.1", true },
        { "127.255.0.3", true },
        { "localhost", true },
        { "::1", true },
        { "::ffff:127.0.0.1", true },
        { "::ffff:10.0.0.1", false },
        { "0.0.0.0", false },
        { "::", false },
        { "", false },
        { "10.0.0.1", false },
        { "128.0.0.1", false },
        { "127.0.0.1.example.com", false },
        { "127.0.0", false },
        { "127.0.0.", false },
        { "127.0.0.256", false },
        { "127.0.0.0001", false },
        { "127.0.0.-1", false },
        { "12.7.0.1", false },
        { "localhost.example.com", false },
        { "example.com", false },
        { "::11", false },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        if (sl_address_is_loopback(sl_str_from(rows[i].host)) != rows[i].wanted)
            fail_msg("\"%s\" is %sloopback", rows[i].host, rows[i].wanted ? "" : "not ");
    }
}

TEST(only_the_names_of_all_addresses_mean_everywhere)
{
    static const char *const everywhere[] = { "", "0.0.0.0", "::", "[::]" };
    static const char *const somewhere[] = { "0.0.0.1", "::1", "127.0.0.1", "localhost", "[::1]", "0" };

    for (size_t i = 0; i < SL_COUNT_OF(everywhere); i++)
        EXPECT(sl_address_is_everywhere(sl_str_from(everywhere[i])));
    for (size_t i = 0; i < SL_COUNT_OF(somewhere); i++)
        EXPECT(!sl_address_is_everywhere(sl_str_from(somewhere[i])));
}

TEST(an_address_that_others_can_reach_needs_tls_or_insecure)
{
    sl_server_settings settings = sl_server_settings_default;

    settings.host = "0.0.0.0";
    expect_refused(&settings, SL_ERR_INVALID, "--tls-certificate");
    settings.insecure = true;
    expect_accepted(&settings);
    settings.insecure = false;
    settings.tls_certificate = "server.pem";
    settings.tls_key = "server.key";
    expect_accepted(&settings);
}

TEST(admin_pages_leave_this_machine_only_with_insecure)
{
    sl_server_settings settings = sl_server_settings_default;

    settings.admin_host = "0.0.0.0";
    expect_refused(&settings, SL_ERR_INVALID, "--admin-host");
    settings.tls_certificate = "server.pem";
    settings.tls_key = "server.key";
    expect_refused(&settings, SL_ERR_INVALID, "ask nobody");
    settings.insecure = true;
    expect_accepted(&settings);
}

TEST(half_of_tls_is_refused)
{
    sl_server_settings settings = sl_server_settings_default;

    settings.tls_certificate = "server.pem";
    expect_refused(&settings, SL_ERR_INVALID, "--tls-certificate is given without --tls-key");
    settings.tls_certificate = NULL;
    settings.tls_key = "server.key";
    expect_refused(&settings, SL_ERR_INVALID, "--tls-key is given without --tls-certificate");
}

TEST(two_ports_that_are_the_same_are_refused_unless_they_are_free_ones)
{
    sl_server_settings settings = sl_server_settings_default;

    settings.admin_port = settings.port;
    expect_refused(&settings, SL_ERR_INVALID, "both 2113");
    settings.port = settings.admin_port = 0;
    expect_accepted(&settings);
    settings.port = settings.admin_port = 2113;
    settings.admin_host = "127.0.0.2";
    expect_accepted(&settings);
}

TEST(texts_that_are_empty_too_long_or_hold_control_characters_are_refused)
{
    char long_host[300];
    sl_server_settings settings = sl_server_settings_default;

    settings.host = "";
    expect_refused(&settings, SL_ERR_INVALID, "--host is empty");
    memset(long_host, 'a', sizeof long_host - 1);
    long_host[sizeof long_host - 1] = '\0';
    settings.host = long_host;
    expect_refused(&settings, SL_ERR_INVALID, "more than 255 bytes");
    settings.host = "127.0.0.1";
    settings.data_folder = "a\nb";
    expect_refused(&settings, SL_ERR_INVALID, "--data holds a control character");
    settings.data_folder = NULL;
    expect_refused(&settings, SL_ERR_INVALID, "--data is empty");
}

TEST(numbers_of_a_server_have_bounds)
{
    sl_server_settings settings = sl_server_settings_default;

    settings.connections_max = 0;
    expect_refused(&settings, SL_ERR_INVALID, "--connections-max");
    settings = sl_server_settings_default;
    settings.event_bytes_max = settings.append_bytes_max + 1;
    expect_refused(&settings, SL_ERR_INVALID, "--event-bytes-max");
    settings = sl_server_settings_default;
    settings.append_bytes_max = 1000;
    expect_refused(&settings, SL_ERR_INVALID, "is above --append-bytes-max 1000");
    settings.event_bytes_max = 1000;
    expect_accepted(&settings);
    settings.write_timeout_ns = 0;
    expect_refused(&settings, SL_ERR_INVALID, "--write-timeout");
}

TEST(a_grace_that_holds_no_shutdown_is_refused_with_the_arithmetic_S3_32)
{
    sl_server_settings settings = sl_server_settings_default;

    settings.grace_ns = 200 * 1000 * 1000;
    expect_refused(&settings, SL_ERR_BUDGET, "does not fit into grace 200ms");
    for (uint64_t ms = SL_BUDGET_GRACE_LEAST_MS; ms < 40 * 1000; ms += 7) {
        settings.grace_ns = ms * 1000 * 1000;
        expect_accepted(&settings);
    }
    settings.grace_ns = SL_BUDGET_GRACE_MAX_NS;
    expect_accepted(&settings);
}

static const char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

static sl_server_settings read_options(char **words, size_t word_count, bool is_terminal)
{
    static sl_option_value values[SL_OPT_COUNT_];
    static sl_option_reading reading;
    const sl_option_table table = sl_command_options(&sl_command_serve);

    reading = (sl_option_reading){ .table = &table,
                                   .environment = no_environment,
                                   .words = words,
                                   .word_count = word_count,
                                   .values = values };
    if (sl_options_read(&reading) != SL_OK)
        fail_msg("%s", reading.complaint.text);
    return sl_serve_settings(values, is_terminal);
}

TEST(options_without_a_word_are_the_default_settings)
{
    const sl_server_settings read = read_options(NULL, 0, true), wanted = sl_server_settings_default;

    EXPECT_STR(read.host, wanted.host);
    EXPECT_STR(read.admin_host, wanted.admin_host);
    EXPECT_STR(read.data_folder, wanted.data_folder);
    EXPECT(read.advertise_host == NULL && read.tls_certificate == NULL && read.tls_key == NULL);
    EXPECT_EQ(read.port, wanted.port);
    EXPECT_EQ(read.admin_port, wanted.admin_port);
    EXPECT(!read.sync_by_os && !read.insecure && !read.anonymous);
    EXPECT_EQ(read.grace_ns, wanted.grace_ns);
    EXPECT_EQ(read.connections_max, wanted.connections_max);
    EXPECT_EQ(read.calls_per_connection_max, wanted.calls_per_connection_max);
    EXPECT_EQ(read.append_bytes_max, wanted.append_bytes_max);
    EXPECT_EQ(read.event_bytes_max, wanted.event_bytes_max);
    EXPECT_EQ(read.write_timeout_ns, wanted.write_timeout_ns);
    EXPECT_EQ(read.idle_timeout_ns, wanted.idle_timeout_ns);
    EXPECT_EQ(read.log_level, wanted.log_level);
    EXPECT_EQ(read.log_format, SL_LOG_FORMAT_TEXT);
}

TEST(options_of_serve_become_settings)
{
    char words[][40] = { "--host=10.0.0.1",
                         "--port=1",
                         "--admin-host=::1",
                         "--admin-port=2",
                         "--advertise-host=db.example.com",
                         "--data=here",
                         "--durability=os",
                         "--insecure",
                         "--anonymous",
                         "--tls-certificate=c",
                         "--tls-key=k",
                         "--grace=20s",
                         "--connections-max=3",
                         "--append-bytes-max=5",
                         "--event-bytes-max=4",
                         "--write-timeout=6s",
                         "--idle-timeout=7s",
                         "--log-level=warn",
                         "--log-format=text" };
    char *pointers[SL_COUNT_OF(words)];

    for (size_t i = 0; i < SL_COUNT_OF(words); i++)
        pointers[i] = words[i];
    const sl_server_settings read = read_options(pointers, SL_COUNT_OF(words), false);

    EXPECT_STR(read.host, "10.0.0.1");
    EXPECT_STR(read.admin_host, "::1");
    EXPECT_STR(read.advertise_host, "db.example.com");
    EXPECT_STR(read.data_folder, "here");
    EXPECT_STR(read.tls_certificate, "c");
    EXPECT_STR(read.tls_key, "k");
    EXPECT(read.port == 1 && read.admin_port == 2);
    EXPECT(read.sync_by_os && read.insecure && read.anonymous);
    EXPECT_EQ(read.grace_ns, 20 * SECOND_NS);
    EXPECT(read.connections_max == 3 && read.append_bytes_max == 5 && read.event_bytes_max == 4);
    EXPECT(read.write_timeout_ns == 6 * SECOND_NS && read.idle_timeout_ns == 7 * SECOND_NS);
    EXPECT_EQ(read.log_level, SL_LOG_WARN);
    EXPECT_EQ(read.log_format, SL_LOG_FORMAT_TEXT);
}

TEST(the_log_is_json_unless_it_goes_to_a_terminal)
{
    char json[] = "--log-format=json";
    char *words[] = { json };

    EXPECT_EQ(read_options(NULL, 0, false).log_format, SL_LOG_FORMAT_JSON);
    EXPECT_EQ(read_options(NULL, 0, true).log_format, SL_LOG_FORMAT_TEXT);
    EXPECT_EQ(read_options(words, 1, true).log_format, SL_LOG_FORMAT_JSON);
}
