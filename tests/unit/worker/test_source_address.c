/* tests/unit/worker/test_source_address.c — addresses of sources, right ones and hostile ones. */
#include "test.h"

#include "base/cleanup.h"
#include "worker/source_address.h"

#include <stdlib.h>
#include <string.h>

static sl_source_address parsed;
static char problem[1024];

static sl_err parse(const char *text)
{
    sl_text said;

    memset(&parsed, 0, sizeof parsed);
    sl_text_init(&said, problem, sizeof problem);
    return sl_source_address_parse(sl_str_from(text), &said, &parsed);
}

TEST(an_address_of_a_source_is_a_server_a_stream_and_a_group)
{
    static const struct {
        const char *text, *server, *stream, *group;
    } rows[] = {
        { "sluice://127.0.0.1:2113/orders/g", "sluice://127.0.0.1:2113", "orders", "g" },
        { " sluice://h/orders/g\n", "sluice://h", "orders", "g" },
        { "sluice://u:p%2F@h:1/a%2Fb/c%3Fd?tls=true", "sluice://u:p%2F@h:1?tls=true", "a/b", "c?d" },
        { "kurrentdb://h/$all/my%20group?tls=false", "kurrentdb://h?tls=false", "$all", "my group" },
        { "esdb://[::1]:2113/$ce-x/g?tls=false", "esdb://[::1]:2113?tls=false", "$ce-x", "g" },
        { "kdb://h/s/g", "kdb://h", "s", "g" },
        { "SLUICE://h/s/g", "SLUICE://h", "s", "g" },
        { "sluice://h/%C3%A9t%C3%A9/g%25", "sluice://h", "\xc3\xa9t\xc3\xa9", "g%" },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        EXPECT_OK(parse(rows[i].text));
        EXPECT_EQ(parsed.kind, SL_SOURCE_KIND_CONSUMER);
        EXPECT_STR(parsed.server, rows[i].server);
        EXPECT_STR(parsed.stream, rows[i].stream);
        EXPECT_STR(parsed.group, rows[i].group);
    }
}

/* These are in ack files that exist. */
TEST(a_source_is_shown_without_user_and_options_and_always_alike)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        { "sluice://127.0.0.1:2113/orders/g", "127.0.0.1:2113/orders/g" },
        { "sluice://u:p%2F@h:1/a%2Fb/c%3Fd?tls=true", "h:1/a/b/c?d" },
        { "kdb://h/$all/my%20group", "h:2113/$all/my group" },
        { "esdb://[::1]:65535/s/g?tls=false", "[::1]:65535/s/g" },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        char buffer[SL_SOURCE_SHOWN_BYTES_MAX + 1];
        sl_text shown, said;

        EXPECT_OK(parse(rows[i].text));
        sl_text_init(&shown, buffer, sizeof buffer);
        sl_text_init(&said, problem, sizeof problem);
        EXPECT_OK(sl_source_address_show(&parsed, &said, &shown));
        EXPECT_STR(buffer, rows[i].shown);
    }
}

TEST(the_longest_source_is_shown_whole)
{
    sl_source_address longest = { .kind = SL_SOURCE_KIND_CONSUMER };
    char buffer[SL_SOURCE_SHOWN_BYTES_MAX + 1];
    sl_text shown, said, server;

    sl_text_init(&server, longest.server, sizeof longest.server);
    sl_text_add(&server, "sluice://[");
    while (server.bytes < strlen("sluice://[") + SL_HOST_BYTES_MAX)
        sl_text_add(&server, ":");
    sl_text_add(&server, "]:65535");
    memset(longest.stream, 's', SL_CONSUMER_STREAM_BYTES_MAX);
    memset(longest.group, 'g', SL_CONSUMER_GROUP_BYTES_MAX);
    sl_text_init(&shown, buffer, sizeof buffer);
    sl_text_init(&said, problem, sizeof problem);
    EXPECT_OK(sl_source_address_show(&longest, &said, &shown));
    EXPECT(!shown.cut);
    EXPECT_EQ(shown.bytes, SL_SOURCE_SHOWN_BYTES_MAX);
}

TEST(other_kinds_of_sources_are_told_by_their_first_word)
{
    EXPECT_OK(parse("schedule:every 5m"));
    EXPECT_EQ(parsed.kind, SL_SOURCE_KIND_SCHEDULE);
    EXPECT(sl_str_equal(parsed.rest, SL_STR("every 5m")));
    EXPECT_OK(parse("memory:"));
    EXPECT_EQ(parsed.kind, SL_SOURCE_KIND_MEMORY);
    EXPECT_EQ(parsed.rest.bytes, 0);
}

TEST(what_is_no_address_of_a_source_is_refused_with_a_sentence)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "", "is empty" },
        { "   ", "is empty" },
        { "127.0.0.1:2113/orders/g", "'127.0.0.1:2113/orders/g' is no source: a source is sluice://" },
        { "http://h/s/g", "'http://h/s/g' is no source: a source is sluice://" },
        { "http://u:secret@h/s/g", "'http://...' is no source: a source is sluice://" },
        { "u:secret@h/s/g", "'...' is no source: a source is sluice://" },
        { "amqp://h/q",
          "'amqp://h/q' is no source: workers do not speak to RabbitMQ yet; a source is sluice://" },
        { "schedule", "'schedule' is no source: a source is sluice://" },
        { "sluice://", "has no host" },
        { "sluice://h", "the stream is missing" },
        { "sluice://h/", "the stream is missing" },
        { "sluice://h/s", "the group is missing" },
        { "sluice://h/s/", "the group is missing" },
        { "sluice://h//g", "the stream is missing" },
        { "sluice://h/s/g/", "two parts" },
        { "sluice://h/a/b/c", "two parts" },
        { "sluice://h/s%/g", "the stream has a %" },
        { "sluice://h/s%2/g", "the stream has a %" },
        { "sluice://h/s/%zz", "the group has a %" },
        { "sluice://h/s/%00", "the group has a %" },
        { "sluice://h/s/%ff", "the group is not UTF-8" },
        { "sluice://h:0/s/g", "the port" },
        { "sluice://h/s/g?x=1", "there is no option 'x': the options of an address" },
        { "sluice://u:1?secret=1@h/s/g", "the options of an address" },
        { "sluice://u:secret/word@h/s/g", "port" },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        EXPECT_ERR(parse(rows[i].text), SL_ERR_INVALID);
        if (strstr(problem, rows[i].says) == NULL)
            fail_msg("\"%s\" gave \"%s\"", rows[i].text, problem);
        EXPECT(strstr(problem, "secret") == NULL);
        EXPECT_EQ(parsed.server[0], '\0');
    }
}

static sl_err parse_long(const char *before, size_t bytes, const char *behind)
{
    char *const text = calloc(1, strlen(before) + bytes + strlen(behind) + 1);
    sl_err err;

    EXPECT(text != NULL);
    strcpy(text, before);
    memset(text + strlen(before), 'x', bytes);
    strcat(text, behind);
    err = parse(text);
    free(text);
    return err;
}

TEST(parts_of_an_address_have_their_limits)
{
    EXPECT_OK(parse_long("sluice://h/", SL_CONSUMER_STREAM_BYTES_MAX, "/g"));
    EXPECT_ERR(parse_long("sluice://h/", SL_CONSUMER_STREAM_BYTES_MAX + 1, "/g"), SL_ERR_TOO_LARGE);
    EXPECT_OK(parse_long("sluice://h/s/", SL_CONSUMER_GROUP_BYTES_MAX, ""));
    EXPECT_ERR(parse_long("sluice://h/s/", SL_CONSUMER_GROUP_BYTES_MAX + 1, ""), SL_ERR_TOO_LARGE);
    EXPECT_ERR(parse_long("sluice://", 100000, "/s/g"), SL_ERR_TOO_LARGE);
    EXPECT_ERR(parse_long("sluice://h/s/g?tlsCAFile=", 100000, ""), SL_ERR_TOO_LARGE);
}

/* Every beginning of a text is answered, with a sentence or an address. */
TEST(no_beginning_of_an_address_is_left_without_an_answer)
{
    static const char whole[] =
        "kurrentdb+discover://u%41:p@[::1]:21/%24all/%C3%A9?tls=false&connectionName=%20";

    for (size_t bytes = 0; bytes < sizeof whole; bytes++) {
        sl_text said;

        sl_text_init(&said, problem, sizeof problem);
        EXPECT(sl_source_address_parse((sl_str){ whole, bytes }, &said, &parsed) == SL_OK || said.bytes > 0);
    }
}
