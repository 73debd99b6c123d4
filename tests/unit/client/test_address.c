/* Rules of client/address.h. */
#include "base/support.h"

#include "client/address.h"

enum {
    CLIENT_PROBLEM_BYTES = 512
};

static sl_err parse(const char *text, sl_client_address *address, char problem[static CLIENT_PROBLEM_BYTES])
{
    sl_text into;

    sl_text_init(&into, problem, CLIENT_PROBLEM_BYTES);
    return sl_client_address_parse(sl_str_from(text), &into, address);
}

TEST(an_address_is_host_and_port_and_whether_there_is_tls)
{
    static const struct {
        const char *text, *host;
        uint16_t port;
        bool tls;
    } rows[] = {
        { "localhost", "localhost", 2113, false },
        { "10.0.0.1:99", "10.0.0.1", 99, false },
        { "[::1]", "::1", 2113, false },
        { "[::1]:65535", "::1", 65535, false },
        { " host:1 \n", "host", 1, false },
        { "sluice://h", "h", 2113, false },
        { "sluice://h:5/", "h", 5, false },
        { "sluice://h?tls=true", "h", 2113, true },
        { "SLUICE://h?TLS=True", "h", 2113, true },
        { "kurrentdb://h", "h", 2113, true },
        { "kdb://h", "h", 2113, true },
        { "kurrent://h", "h", 2113, true },
        { "esdb://h", "h", 2113, true },
        { "esdb://h:2114?tls=false", "h", 2114, false },
        { "kurrentdb://h/?tls=false&nodePreference=leader", "h", 2113, false },
        { "kurrentdb://[fe80::1]:7?tls=false", "fe80::1", 7, false },
    };
    sl_client_address address;
    char problem[CLIENT_PROBLEM_BYTES];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_ROW(parse(rows[i].text, &address, problem) == SL_OK, i);
        EXPECT_STR(address.host, rows[i].host);
        EXPECT_ROW(address.port == rows[i].port && address.tls == rows[i].tls, i);
        EXPECT_ROW(address.user[0] == '\0' && !address.has_password && address.note == NULL, i);
    }
}

TEST(credentials_and_names_are_percent_decoded)
{
    sl_client_address address;
    char problem[CLIENT_PROBLEM_BYTES];

    EXPECT_OK(parse(
        "esdb://ad%6Din:ch%40nge%3Ait%2f@h:1?connectionName=a%20b&tlsCAFile=%2Fca.pem&tlsVerifyCert=false",
        &address, problem));
    EXPECT_STR(address.user, "admin");
    EXPECT_STR(address.password, "ch@nge:it/");
    EXPECT_STR(address.connection_name, "a b");
    EXPECT_STR(address.ca_file, "/ca.pem");
    EXPECT(address.has_password && address.unverified && address.tls);
    EXPECT_OK(parse("sluice://me@h", &address, problem));
    EXPECT(!address.has_password && !address.unverified);
    EXPECT_OK(parse("sluice://me:@h", &address, problem));
    EXPECT(address.has_password && address.password[0] == '\0');
    EXPECT_OK(parse("sluice://me:a:b@c@h", &address, problem)); /* the first colon, the last @ */
    EXPECT_STR(address.password, "a:b@c");
    EXPECT_OK(parse("sluice://h?tlsVerifyCert=true", &address, problem));
    EXPECT(!address.unverified);
}

TEST(of_several_hosts_the_first_is_used_and_a_note_says_so)
{
    static const char *const texts[] = { "kurrentdb://a:1,b:2,c:3", "kurrentdb+discover://a:1",
                                         "esdb+discover://a:1,b" };
    sl_client_address address;
    char problem[CLIENT_PROBLEM_BYTES];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        EXPECT_ROW(parse(texts[i], &address, problem) == SL_OK, i);
        EXPECT_ROW(strcmp(address.host, "a") == 0 && address.port == 1 && address.note != NULL, i);
    }
}

TEST(what_is_no_address_is_refused_with_a_sentence)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "", "empty" },
        { "   ", "empty" },
        { "http://h", "begins with" },
        { "://h", "begins with" },
        { "sluice://", "no host" },
        { ":2113", "no host" },
        { "h:0", "1 to 65535" },
        { "h:65536", "1 to 65535" },
        { "h:", "1 to 65535" },
        { "h:1x", "1 to 65535" },
        { "::1", "brackets" },
        { "fe80::1:2113", "brackets" },
        { "[::1", "no ]" },
        { "[::1]x", "only :PORT" },
        { "[]:1", "no host" },
        { "h h", "character" },
        { "h\x1b", "character" },
        { "me:secret@h", "scheme" },
        { "sluice://@h", "no user" },
        { "sluice://:secret@h", "no user" },
        { "sluice://me:%zz@h", "%25" },
        { "sluice://me:%4@h", "%25" },
        { "sluice://me:%00@h", "zero" },
        { "sluice://me:pa/ss@h", "%2F" },
        { "sluice://h/path", "no path" },
        { "sluice://h?tls", "?tls=true" },
        { "sluice://h?tls=maybe", "true or false" },
        { "sluice://h?tlsVerifyCert=1", "true or false" },
        { "sluice://h?color=red", "there is no option 'color': the options of an address are tls, " },
        { "sluice://me:1?secret=1@h", "the options of an address are tls, " }, /* a ? in a password */
        { "sluice://h?averylongnameofanoptionwithasecret=1", "the options of an address are tls, " },
        { "kurrentdb://h?userCertFile=x", "not supported" },
    };
    char problem[CLIENT_PROBLEM_BYTES];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_client_address address = { .port = 77 };
        EXPECT_ROW(parse(rows[i].text, &address, problem) == SL_ERR_INVALID, i);
        if (strstr(problem, rows[i].says) == NULL)
            fail_msg("'%s' does not say '%s' about '%s'", problem, rows[i].says, rows[i].text);
        EXPECT_ROW(strstr(problem, "secret") == NULL, i);
        EXPECT_ROW(address.port == 77, i);
    }
}

/* A prefix, so many letters, a suffix. */
static sl_err parse_long(const char *before, size_t letters, const char *after,
                         char problem[static CLIENT_PROBLEM_BYTES])
{
    char text[2 * SL_CLIENT_ADDRESS_BYTES_MAX];
    sl_client_address address;
    const size_t before_bytes = strlen(before);

    memcpy(text, before, before_bytes);
    memset(text + before_bytes, 'x', letters);
    memcpy(text + before_bytes + letters, after, strlen(after) + 1);
    return parse(text, &address, problem);
}

TEST(every_part_of_an_address_has_a_limit)
{
    static const struct {
        const char *before, *after;
        size_t max;
    } rows[] = {
        { "sluice://", ":1", SL_HOST_BYTES_MAX },
        { "sluice://", "@h", SL_CLIENT_USER_BYTES_MAX },
        { "sluice://u:", "@h", SL_CLIENT_PASSWORD_BYTES_MAX },
        { "sluice://h?connectionName=", "&tls=true", SL_CLIENT_NAME_BYTES_MAX },
        { "sluice://h?tlsCAFile=", "", SL_CLIENT_FILE_BYTES_MAX },
    };
    char problem[CLIENT_PROBLEM_BYTES];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_ROW(parse_long(rows[i].before, rows[i].max, rows[i].after, problem) == SL_OK, i);
        EXPECT_ROW(parse_long(rows[i].before, rows[i].max + 1, rows[i].after, problem) == SL_ERR_TOO_LARGE,
                   i);
        EXPECT_ROW(strstr(problem, "too long") != NULL, i);
    }
    EXPECT_ERR(parse_long("sluice://h?nodePreference=", SL_CLIENT_ADDRESS_BYTES_MAX, "", problem),
               SL_ERR_TOO_LARGE);
}

TEST(an_address_is_shown_without_its_secrets)
{
    sl_client_address address;
    char problem[CLIENT_PROBLEM_BYTES], shown[64];
    sl_text text;

    EXPECT_OK(parse("sluice://me:secret@[::1]:9", &address, problem));
    sl_text_init(&text, shown, sizeof shown);
    sl_client_address_show(&address, &text);
    EXPECT_STR(shown, "[::1]:9");
    EXPECT_OK(parse("sluice://me:secret@h", &address, problem));
    sl_text_init(&text, shown, sizeof shown);
    sl_client_address_show(&address, &text);
    EXPECT_STR(shown, "h:2113");
}

/* Whatever the bytes are, it ends, and what it accepts can be shown and read again. */
TEST(no_bytes_make_the_parser_go_wrong)
{
    static const char *const pieces[] = { "sluice://", "esdb+discover://",
                                          "@",         ":",
                                          "%",         "%41",
                                          "/",         "?",
                                          "&",         "=",
                                          "tls",       "true",
                                          "[",         "]",
                                          "::1",       "host",
                                          "2113",      ",",
                                          "\xff",      "connectionName",
                                          "\n",        " " };

    for (uint64_t seed = 0; seed < 20000; seed++) {
        dice d = dice_from(seed);
        char text[256] = "", problem[CLIENT_PROBLEM_BYTES], shown[SL_HOST_BYTES_MAX + 16];
        sl_client_address address, again;
        sl_text into;

        for (size_t i = dice_pick(&d, 8); i > 0; i--)
            strcat(text, pieces[dice_pick(&d, sizeof pieces / sizeof pieces[0])]);
        if (parse(text, &address, problem) != SL_OK) {
            EXPECT_RUN(problem[0] != '\0', seed, 0);
            continue;
        }
        sl_text_init(&into, shown, sizeof shown);
        sl_client_address_show(&address, &into);
        EXPECT_RUN(parse(shown, &again, problem) == SL_OK, seed, 1);
        EXPECT_RUN(strcmp(again.host, address.host) == 0 && again.port == address.port, seed, 2);
    }
}
