/* Rules of cli/event_print.h. */
#include "base/support.h"

#include "cli/event_print.h"

#include <cjson/cJSON.h>

static sl_wire_recorded recorded(const char *data)
{
    return (sl_wire_recorded){ .id = { .uuid = sl_uuid_from_halves(1, 2), .form = SL_WIRE_ID_STRUCTURED },
                               .stream = SL_STR("orders"),
                               .revision = 7,
                               .commit_position = 42,
                               .prepare_position = 42,
                               .type = SL_STR("placed"),
                               .content_type = SL_STR("application/json"),
                               .created_ticks = 10000000, /* a second after 1970 began */
                               .data = sl_str_from(data) };
}

/* What is printed; the caller frees it. */
static char *print(const sl_wire_read_event *event, bool json, bool many_streams, size_t columns)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    sl_event_printer printer;

    sl_event_printer_init(&printer, out, json, many_streams);
    EXPECT_EQ(printer.columns, SIZE_MAX); /* no terminal */
    printer.columns = columns;
    EXPECT_OK(sl_event_print(&printer, event));
    sl_event_printer_done(&printer);
    fclose(out);
    return text;
}

static void expect_line(const sl_wire_read_event *event, bool many_streams, size_t columns,
                        const char *wanted)
{
    char *const text = print(event, false, many_streams, columns);

    EXPECT_STR(text, wanted);
    free(text);
}

TEST(an_event_is_one_line_for_people)
{
    sl_wire_read_event event = { .has_event = true, .event = recorded("{\n \"a\": 1 }") };

    expect_line(&event, false, SIZE_MAX, "7  1970-01-01T00:00:01.000Z  placed  {\"a\":1}\n");
    expect_line(&event, true, SIZE_MAX, "42  7@orders  1970-01-01T00:00:01.000Z  placed  {\"a\":1}\n");
    event.event.data = SL_STR("line\nesc\x1b[31m\xff\\");
    expect_line(&event, false, SIZE_MAX,
                "7  1970-01-01T00:00:01.000Z  placed  line\\x0aesc\\x1b[31m\\xff\\\\\n");
    event.event.type = SL_STR("\x1b"
                              "c");
    event.event.data = SL_STR("");
    expect_line(&event, false, SIZE_MAX, "7  1970-01-01T00:00:01.000Z  \\x1bc  \n");
}

TEST(on_a_terminal_a_line_is_cut_where_it_ends)
{
    sl_wire_read_event event = { .has_event = true,
                                 .event = recorded("0123456789012345678901234567890123456789") };

    expect_line(&event, false, 60,
                "7  1970-01-01T00:00:01.000Z  placed  01234567890123456789...\n"); /* 60 columns */
    event.event.data = SL_STR("{\"a\": "
                              "\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3"
                              "\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\"}");
    expect_line(
        &event, false, 57,
        "7  1970-01-01T00:00:01.000Z  placed  "
        "{\"a\":\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9..."
        "\n");
    expect_line(
        &event, false, 40, /* something of the data is always shown */
        "7  1970-01-01T00:00:01.000Z  placed  "
        "{\"a\":\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9..."
        "\n");
}

static const char *string_of(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static double number_of(const cJSON *object, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static cJSON *print_json(const sl_wire_read_event *event)
{
    char *const text = print(event, true, true, SIZE_MAX);
    cJSON *const object = cJSON_Parse(text);

    EXPECT(object != NULL && strchr(text, '\n') == text + strlen(text) - 1);
    free(text);
    return object;
}

TEST(as_json_an_event_is_an_object_with_everything)
{
    sl_wire_read_event event = { .has_event = true, .event = recorded("{\"a\": [1, \"\\u00e9\"]}") };
    cJSON *object = print_json(&event);

    EXPECT_STR(string_of(object, "stream"), "orders");
    EXPECT(number_of(object, "revision") == 7 && number_of(object, "position") == 42);
    EXPECT_STR(string_of(object, "id"), "00000000-0000-0001-0000-000000000002");
    EXPECT_STR(string_of(object, "type"), "placed");
    EXPECT_STR(string_of(object, "created"), "1970-01-01T00:00:01.000Z");
    EXPECT_STR(string_of(object, "content_type"), "application/json");
    EXPECT_STR(string_of(object, "data_encoding"), "json");
    EXPECT(cJSON_IsObject(cJSON_GetObjectItem(object, "data")));
    EXPECT(cJSON_IsNull(cJSON_GetObjectItem(object, "metadata")));
    EXPECT(!cJSON_HasObjectItem(object, "link") && !cJSON_HasObjectItem(object, "prepare_position"));
    cJSON_Delete(object);
}

TEST(data_that_is_no_json_is_base64_and_says_so)
{
    static const struct {
        sl_str data;
        const char *coded;
    } rows[] = { { SL_STR_INIT("a"), "YQ==" },
                 { SL_STR_INIT("ab"), "YWI=" },
                 { SL_STR_INIT("abc"), "YWJj" },
                 { SL_STR_INIT("\xff\x00\n"), "/wAK" } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_wire_read_event event = { .has_event = true, .event = recorded("") };
        event.event.data = event.event.custom_metadata = rows[i].data;
        cJSON *const object = print_json(&event);
        EXPECT_STR(string_of(object, "data"), rows[i].coded);
        EXPECT_STR(string_of(object, "data_encoding"), "base64");
        EXPECT_STR(string_of(object, "metadata"), rows[i].coded);
        EXPECT_STR(string_of(object, "metadata_encoding"), "base64");
        cJSON_Delete(object);
    }
}

TEST(a_link_is_shown_beside_its_event_and_alone_when_that_is_gone)
{
    sl_wire_read_event event = {
        .has_event = true, .has_link = true, .event = recorded("1"), .link = recorded("7@orders")
    };
    cJSON *object;

    event.link.stream = SL_STR("all-orders");
    event.link.revision = 3;
    event.link.commit_position = 50;
    expect_line(&event, true, SIZE_MAX, "50  3@all-orders  1970-01-01T00:00:01.000Z  placed  1\n");
    object = print_json(&event);
    EXPECT_STR(string_of(object, "stream"), "orders");
    EXPECT_STR(string_of(cJSON_GetObjectItem(object, "link"), "stream"), "all-orders");
    EXPECT(number_of(cJSON_GetObjectItem(object, "link"), "revision") == 3);
    EXPECT(cJSON_IsTrue(cJSON_GetObjectItem(object, "resolved")));
    cJSON_Delete(object);
    event.has_event = false;
    object = print_json(&event);
    EXPECT_STR(string_of(object, "stream"), "all-orders");
    EXPECT(cJSON_IsFalse(cJSON_GetObjectItem(object, "resolved")));
    cJSON_Delete(object);
}

/* Whatever a peer puts into an event, a line stays one line, and JSON stays JSON. */
TEST(no_event_breaks_its_line)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        dice d = dice_from(seed);
        char bytes[48];
        sl_wire_read_event event = { .has_event = true, .event = recorded("") };

        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)dice_u64(&d);
        event.event.stream = (sl_str){ bytes, dice_pick(&d, 12) };
        event.event.type = (sl_str){ bytes + 12, dice_pick(&d, 12) };
        event.event.data = (sl_str){ bytes + 24, dice_pick(&d, 12) };
        event.event.custom_metadata = (sl_str){ bytes + 36, dice_pick(&d, 12) };
        cJSON_Delete(print_json(&event));
        char *const line = print(&event, false, true, 40 + dice_pick(&d, 60));
        for (const char *c = line; c[1] != '\0'; c++)
            EXPECT_RUN((unsigned char)*c >= 0x20 && *c != 0x7f, seed, c - line);
        free(line);
    }
}
