/* tests/unit/base/test_log.c — log lines: what they look like, and that no value can do anything to them. */
#include "support.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/utf8.h"

typedef struct sink {
    char line[SL_LOG_LINE_BYTES_MAX + 1];
    size_t bytes, count;
} sink;

static sink got;
static sl_clock_manual now = { .wall_ns = 1794783212123456789 };

static void keep_line(void *ctx, const char *line, size_t line_bytes)
{
    sink *s = ctx;

    assert_true(line_bytes <= SL_LOG_LINE_BYTES_MAX);
    memcpy(s->line, line, line_bytes + 1);
    s->bytes = line_bytes;
    s->count++;
}

static sl_logger logger(sl_log_format format, const sl_clock *clock)
{
    got = (sink){ .count = 0 };
    return (sl_logger){ .format = format, .clock = clock, .sink = keep_line, .sink_ctx = &got };
}

#define WITH_LOG(name, wanted_format)                                                                        \
    const sl_clock name##_clock = sl_clock_manual_clock(&now);                                               \
    sl_logger name##_logger = logger(wanted_format, &name##_clock);                                          \
    sl_logger *const name = &name##_logger

TEST(a_line_without_fields_is_time_level_and_message)
{
    WITH_LOG(log, SL_LOG_FORMAT_TEXT);

    sl_log(log, SL_LOG_INFO, "server started");
    EXPECT_STR(got.line, "2026-11-15T22:53:32.123Z INFO  server started\n");
    sl_log(log, SL_LOG_DEBUG, "x");
    EXPECT_STR(got.line, "2026-11-15T22:53:32.123Z DEBUG x\n");
    sl_log(log, SL_LOG_WARN, "x");
    EXPECT_STR(got.line, "2026-11-15T22:53:32.123Z WARN  x\n");
    sl_log(log, SL_LOG_ERROR, "");
    EXPECT_STR(got.line, "2026-11-15T22:53:32.123Z ERROR \n");
    EXPECT_EQ(got.count, 4);
}

TEST(a_json_line_without_fields_is_an_object)
{
    WITH_LOG(log, SL_LOG_FORMAT_JSON);

    sl_log(log, SL_LOG_WARN, "server started");
    EXPECT_STR(got.line,
               "{\"time\":\"2026-11-15T22:53:32.123Z\",\"level\":\"warn\",\"message\":\"server started\"}\n");
}

static void log_every_kind(sl_logger *log)
{
    char array[] = "abc";
    const sl_uuid uuid = { { 1, 2, 3 } };

    sl_log(log, SL_LOG_INFO, "all", SL_LOG_STR("literal", "two words"), SL_LOG_STR("array", array),
           SL_LOG_STR("slice", ((sl_str){ "slice", 3 })), SL_LOG_STR("null", (const char *)NULL),
           SL_LOG_U64("u", UINT64_MAX), SL_LOG_I64("i", INT64_MIN), SL_LOG_BOOL("yes", true),
           SL_LOG_BOOL("no", false), SL_LOG_ERR("err", SL_ERR_LEASE_LOST), SL_LOG_DURATION("took", 1500000),
           SL_LOG_UUID("id", uuid));
}

TEST(every_kind_of_field_is_shown_in_text)
{
    WITH_LOG(log, SL_LOG_FORMAT_TEXT);

    log_every_kind(log);
    EXPECT_STR(got.line,
               "2026-11-15T22:53:32.123Z INFO  all literal=\"two words\" array=abc slice=sli null=\"\" "
               "u=18446744073709551615 i=-9223372036854775808 yes=true no=false err=LEASE_LOST took=1.5ms "
               "id=01020300-0000-0000-0000-000000000000\n");
}

TEST(every_kind_of_field_is_shown_in_json)
{
    WITH_LOG(log, SL_LOG_FORMAT_JSON);

    log_every_kind(log);
    EXPECT_STR(
        got.line,
        "{\"time\":\"2026-11-15T22:53:32.123Z\",\"level\":\"info\",\"message\":\"all\",\"literal\":\"two "
        "words\","
        "\"array\":\"abc\",\"slice\":\"sli\",\"null\":\"\",\"u\":18446744073709551615,"
        "\"i\":-9223372036854775808,\"yes\":true,\"no\":false,\"err\":\"LEASE_LOST\",\"took\":\"1.5ms\","
        "\"id\":\"01020300-0000-0000-0000-000000000000\"}\n");
}

TEST(lines_below_the_minimum_are_not_written_and_their_fields_not_evaluated)
{
    WITH_LOG(log, SL_LOG_FORMAT_TEXT);

    for (unsigned min = SL_LOG_DEBUG; min < SL_LOG_LEVEL_COUNT_; min++) {
        log->level_min = (sl_log_level)min;
        for (unsigned level = SL_LOG_DEBUG; level < SL_LOG_LEVEL_COUNT_; level++) {
            unsigned evaluated_count = 0;
            got.count = 0;
            sl_log(log, (sl_log_level)level, "x", SL_LOG_U64("n", ++evaluated_count));
            EXPECT_ROW(got.count == (level >= min ? 1 : 0), min);
            EXPECT_ROW(evaluated_count == got.count, min);
        }
    }
}

TEST(a_log_call_is_one_statement)
{
    WITH_LOG(log, SL_LOG_FORMAT_TEXT);

    if (log->level_min == SL_LOG_DEBUG)
        sl_log(log, SL_LOG_INFO, "then");
    else
        sl_log(log, SL_LOG_INFO, "else");
    EXPECT(strstr(got.line, "then") != NULL);
    EXPECT_EQ(got.count, 1);
}

/* Values and how they stand in text (with quotes where they need them) and in JSON (always with quotes). */
static const struct {
    sl_str value;
    const char *text, *json;
} values[] = {
    { SL_STR_INIT("plain-1.2/x:y"), "plain-1.2/x:y", "\"plain-1.2/x:y\"" },
    { SL_STR_INIT(""), "\"\"", "\"\"" },
    { SL_STR_INIT("two words"), "\"two words\"", "\"two words\"" },
    { SL_STR_INIT("a=b"), "\"a=b\"", "\"a=b\"" },
    { SL_STR_INIT("say \"hi\""), "\"say \\\"hi\\\"\"", "\"say \\\"hi\\\"\"" },
    { SL_STR_INIT("back\\slash"), "\"back\\\\slash\"", "\"back\\\\slash\"" },
    { SL_STR_INIT("a\nb\r\tc"), "\"a\\nb\\r\\tc\"", "\"a\\nb\\r\\tc\"" },
    { SL_STR_INIT("\0"), "\"\\u0000\"", "\"\\u0000\"" },
    { SL_STR_INIT("\x1b[31m"), "\"\\u001b[31m\"", "\"\\u001b[31m\"" },
    { SL_STR_INIT("\x1f\x7f~"), "\"\\u001f\\u007f~\"", "\"\\u001f\\u007f~\"" },
    { SL_STR_INIT("\xc2\x85\xc2\x9b\xc2\xa0"), "\"\\u0085\\u009b\xc2\xa0\"", "\"\\u0085\\u009b\xc2\xa0\"" },
    { SL_STR_INIT("\xe2\x80\xa8\xe2\x80\xa9"), "\"\\u2028\\u2029\"", "\"\\u2028\\u2029\"" },
    { SL_STR_INIT("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"", "\"gr\xc3\xbc\xc3\x9f\"" },
    { SL_STR_INIT("\xf0\x9f\x98\x80"), "\"\xf0\x9f\x98\x80\"", "\"\xf0\x9f\x98\x80\"" },
    { SL_STR_INIT("a\xff"
                  "b"),
      "\"a\xef\xbf\xbd"
      "b\"",
      "\"a\xef\xbf\xbd"
      "b\"" },
    { SL_STR_INIT("\xc3"), "\"\xef\xbf\xbd\"", "\"\xef\xbf\xbd\"" },
    { SL_STR_INIT("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"",
      "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
};

TEST(values_are_quoted_and_escaped_where_they_need_it)
{
    for (unsigned format = 0; format < SL_LOG_FORMAT_COUNT_; format++) {
        WITH_LOG(log, (sl_log_format)format);
        for (size_t i = 0; i < SL_COUNT_OF(values); i++) {
            const bool json = format == SL_LOG_FORMAT_JSON;
            sl_log(log, SL_LOG_INFO, "m", SL_LOG_STR("key", values[i].value));
            const char *shown = strstr(got.line, json ? "\"key\":" : "key=");
            EXPECT_ROW(shown != NULL, i);
            shown += json ? 6 : 4;
            const char *wanted = json ? values[i].json : values[i].text;
            EXPECT_ROW(strncmp(shown, wanted, strlen(wanted)) == 0, i);
            EXPECT_STR(shown + strlen(wanted), json ? "}\n" : "\n");
        }
    }
}

TEST(keys_that_come_from_a_peer_are_escaped_too)
{
    WITH_LOG(json, SL_LOG_FORMAT_JSON);
    sl_log(json, SL_LOG_INFO, "m", SL_LOG_U64("a\"\n", 1));
    EXPECT(strstr(got.line, "\"a\\\"\\n\":1}\n") != NULL);
    WITH_LOG(text, SL_LOG_FORMAT_TEXT);
    sl_log(text, SL_LOG_INFO, "m", SL_LOG_U64("a\n", 1));
    EXPECT(strstr(got.line, " a\\n=1\n") != NULL);
}

TEST(a_message_cannot_forge_a_second_line)
{
    for (unsigned format = 0; format < SL_LOG_FORMAT_COUNT_; format++) {
        WITH_LOG(log, (sl_log_format)format);
        sl_log(log, SL_LOG_INFO, "ok\n2026-11-15T22:53:32.123Z ERROR \"forged\"\r\x0b\x0c\xc2\x85");
        EXPECT(strchr(got.line, '\n') == got.line + got.bytes - 1);
        EXPECT(strpbrk(got.line, "\r\x0b\x0c") == NULL);
        EXPECT(strstr(got.line, "\xc2\x85") == NULL);
        EXPECT(strstr(got.line, "ok\\n2026") != NULL);
    }
}

/* A reader of JSON, as strict as the standard, for the flat objects that a log line may be. Each function
 * takes its part from the front and gives NULL when it is not there. */
static const char *read_string(const char *at)
{
    if (at == NULL || *at++ != '"')
        return NULL;
    while (*at != '"') {
        if ((unsigned char)*at < 0x20)
            return NULL;
        if (*at++ != '\\')
            continue;
        if (*at == 'u' && strspn(at + 1, "0123456789abcdefABCDEF") >= 4)
            at += 5;
        else if (*at != '\0' && strchr("\"\\/bfnrt", *at) != NULL)
            at++;
        else
            return NULL;
    }
    return at + 1;
}

static const char *read_word(const char *at, const char *word)
{
    return at != NULL && strncmp(at, word, strlen(word)) == 0 ? at + strlen(word) : NULL;
}

static const char *read_number(const char *at)
{
    const char *digits = *at == '-' ? at + 1 : at;
    const size_t count = strspn(digits, "0123456789");

    return count > 0 && (count == 1 || *digits != '0') ? digits + count : NULL;
}

static const char *read_value(const char *at)
{
    if (at == NULL)
        return NULL;
    if (*at == '"')
        return read_string(at);
    if (*at == 't')
        return read_word(at, "true");
    return *at == 'f' ? read_word(at, "false") : read_number(at);
}

static bool is_json_line(const char *line)
{
    const char *at = read_word(line, "{");

    while (at != NULL) {
        at = read_value(read_word(read_string(at), ":"));
        if (at == NULL || *at != ',')
            break;
        at++;
    }
    at = read_word(at, "}\n");
    return at != NULL && *at == '\0' && sl_utf8_valid(sl_str_from(line));
}

TEST(the_reader_that_judges_json_refuses_what_is_wrong)
{
    static const char *const wrong[] = { "{}\n",
                                         "{\"a\":1}",
                                         "{\"a\":1,}\n",
                                         "{\"a\":01}\n",
                                         "{\"a\":\"\n\"}\n",
                                         "{\"a\":\"\\x\"}\n",
                                         "{\"a\":\"\\u12\"}\n",
                                         "{\"a\":\"b}\n",
                                         "{\"a\":1}\n\n",
                                         "{\"a\":\"\xff\"}\n",
                                         "{\"a\"1}\n",
                                         "{\"a\":tru}\n" };

    for (size_t i = 0; i < SL_COUNT_OF(wrong); i++)
        EXPECT_ROW(!is_json_line(wrong[i]), i);
    EXPECT(is_json_line("{\"a\":1,\"b\":\"\\u00ff\\\\\",\"c\":true,\"d\":-7}\n"));
}

/* What every line must be, whatever went into it. */
static bool is_one_good_line(sl_log_format format)
{
    const bool ends_once = got.bytes > 0 && memchr(got.line, '\n', got.bytes) == got.line + got.bytes - 1;

    return ends_once && strlen(got.line) == got.bytes && sl_utf8_valid((sl_str){ got.line, got.bytes }) &&
           (format == SL_LOG_FORMAT_TEXT || is_json_line(got.line));
}

/* Logs a field of `count` times `unit`, with two short ones behind it. True when the line was cut. */
static bool log_long(sl_logger *log, const char *unit, size_t count)
{
    static char value[2 * SL_LOG_LINE_BYTES_MAX];
    const size_t unit_bytes = strlen(unit);
    const bool json = log->format == SL_LOG_FORMAT_JSON;

    EXPECT(count * unit_bytes <= sizeof value);
    for (size_t i = 0; i < count; i++)
        memcpy(value + i * unit_bytes, unit, unit_bytes);
    sl_log(log, SL_LOG_INFO, "m", SL_LOG_STR("big", ((sl_str){ value, count * unit_bytes })),
           SL_LOG_U64("after", 12345), SL_LOG_STR("last", "z"));
    EXPECT_ROW(is_one_good_line(log->format), count);
    const bool whole = strstr(got.line, json ? "\"last\":\"z\"}\n" : " last=z\n") != NULL;
    const bool marked = strstr(got.line, json ? "\"cut\":true}\n" : "...") != NULL;
    EXPECT_ROW(whole != marked, count);
    EXPECT_ROW(whole || got.bytes >= SL_LOG_LINE_BYTES_MAX - 60, count); /* no room is thrown away */
    return marked;
}

TEST(a_long_line_is_cut_visibly_at_every_length)
{
    static const struct {
        const char *unit;
        size_t shown_bytes;
    } rows[] = { { "x", 1 },   { "\n", 2 },           { "\x01", 6 },
                 { "\"", 2 },  { "\xe2\x82\xac", 3 }, { "\xf0\x9f\x98\x80", 4 },
                 { "\xff", 3 } };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        for (unsigned format = 0; format < SL_LOG_FORMAT_COUNT_; format++) {
            const size_t from = (SL_LOG_LINE_BYTES_MAX - 200) / rows[i].shown_bytes;
            const size_t to = (SL_LOG_LINE_BYTES_MAX + 20) / rows[i].shown_bytes;
            bool was_cut = false;
            WITH_LOG(log, (sl_log_format)format);
            EXPECT_ROW(!log_long(log, rows[i].unit, from), i);
            for (size_t count = from; count <= to; count++) {
                const bool cut = log_long(log, rows[i].unit, count);
                EXPECT_ROW(cut || !was_cut, i); /* once too long, longer is too long as well */
                was_cut = cut;
            }
            EXPECT_ROW(was_cut, i);
        }
    }
}

TEST(a_long_message_is_cut_and_no_field_follows)
{
    static char message[2 * SL_LOG_LINE_BYTES_MAX];

    memset(message, 'm', sizeof message - 1);
    WITH_LOG(text, SL_LOG_FORMAT_TEXT);
    sl_log(text, SL_LOG_INFO, message, SL_LOG_U64("n", 1));
    EXPECT_STR(got.line + got.bytes - 6, "mm...\n");
    EXPECT(strstr(got.line, "n=1") == NULL);
    WITH_LOG(json, SL_LOG_FORMAT_JSON);
    sl_log(json, SL_LOG_INFO, message, SL_LOG_U64("n", 1));
    EXPECT_STR(got.line + got.bytes - 19, "mm...\",\"cut\":true}\n");
    EXPECT_EQ(got.bytes, SL_LOG_LINE_BYTES_MAX);
}

static size_t occurrences(const char *line, const char *wanted)
{
    size_t count = 0;

    for (const char *at = line; (at = strstr(at, wanted)) != NULL; at += strlen(wanted))
        count++;
    return count;
}

TEST(many_fields_are_cut_only_when_some_do_not_fit)
{
    enum {
        FIELDS_MAX = 700
    };
    for (unsigned format = 0; format < SL_LOG_FORMAT_COUNT_; format++) {
        static sl_log_field fields[FIELDS_MAX + 1];
        const bool json = format == SL_LOG_FORMAT_JSON;
        size_t cut_count = 0;
        WITH_LOG(log, (sl_log_format)format);
        for (size_t count = 0; count <= FIELDS_MAX; count += 7) {
            for (size_t i = 0; i < count; i++)
                fields[i] = i % 3 == 0 ? SL_LOG_STR("key", "v w") : SL_LOG_U64("key", i * 1000003);
            fields[count] = (sl_log_field){ .kind = SL_LOG_KIND_END };
            sl_log_write(log, SL_LOG_INFO, "many", fields);
            EXPECT_ROW(is_one_good_line((sl_log_format)format), count);
            const bool cut = strstr(got.line, json ? "\"cut\":true}" : " ...") != NULL;
            EXPECT_ROW(cut == (occurrences(got.line, json ? "\"key\":" : "key=") < count), count);
            cut_count += cut;
        }
        EXPECT(cut_count > 10 && cut_count < FIELDS_MAX / 7 - 10);
    }
}

TEST(random_bytes_make_one_good_line)
{
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        dice d = dice_from(seed);
        char bytes[3][2000];
        size_t counts[3];
        const sl_log_format format = (sl_log_format)dice_pick(&d, SL_LOG_FORMAT_COUNT_);
        WITH_LOG(log, format);

        for (size_t i = 0; i < 3; i++) {
            counts[i] = dice_pick(&d, dice_pick(&d, 3) == 0 ? sizeof bytes[i] : 20);
            for (size_t j = 0; j < counts[i]; j++)
                bytes[i][j] = (char)(dice_pick(&d, 2) == 0 ? dice_pick(&d, 256) : dice_pick(&d, 128));
            bytes[i][counts[i]] = '\0';
        }
        sl_log(log, SL_LOG_INFO, bytes[0], SL_LOG_STR(bytes[1], ((sl_str){ bytes[2], counts[2] })),
               SL_LOG_STR("c", ((sl_str){ bytes[0], counts[0] })));
        EXPECT_RUN(is_one_good_line(format), seed, 0);
    }
}
