/* Rules of cli/table.h and cli/parked_print.h: what people and programs see. */
#include "base/support.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "cli/parked_print.h"
#include "cli/table.h"

typedef struct page {
    char *text;
    size_t bytes;
    FILE *out;
} page;

static FILE *page_begin(page *p)
{
    *p = (page){ 0 };
    p->out = open_memstream(&p->text, &p->bytes);
    return p->out;
}

static void page_expect(page *p, const char *wanted)
{
    fclose(p->out);
    EXPECT_STR(p->text, wanted);
    free(p->text);
}

TEST(a_table_lines_texts_up_at_the_left_and_numbers_at_the_right)
{
    sl_table table;
    page p;

    sl_table_begin(&table, "NAME|N|LAST");
    sl_table_text(&table, SL_STR("a"));
    sl_table_number(&table, -1);
    sl_table_text(&table, SL_STR("x"));
    sl_table_text(&table, SL_STR("l\xc3\xa4nger"));
    sl_table_number(&table, 100);
    sl_table_text(&table, SL_STR(""));
    sl_table_text(&table, SL_STR(""));
    sl_table_number(&table, 7);
    sl_table_text(&table, SL_STR("y"));
    sl_table_end(&table, page_begin(&p));
    page_expect(&p, "NAME      N  LAST\n"
                    "a        -1  x\n"
                    "l\xc3\xa4nger  100\n"
                    "          7  y\n");
}

TEST(a_table_shows_nothing_that_a_terminal_would_obey_and_cuts_what_is_long)
{
    char longer[100];
    sl_table table;
    page p;

    memset(longer, 'x', sizeof longer);
    sl_table_begin(&table, "A|FOR");
    sl_table_text(&table, SL_STR("\x1b[2J\n\0z"));
    sl_table_duration(&table, 1500);
    sl_table_text(&table, (sl_str){ longer, sizeof longer });
    sl_table_duration(&table, 61999);
    sl_table_end(&table, page_begin(&p));
    page_expect(&p, "A                                                                  FOR\n"
                    "\\x1b[2J\\x0a\\x00z                                                  1.5s\n"
                    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...  1m1s\n");
}

/* --- parked messages --- */

static sl_wire_read_event parked_event(const char *metadata)
{
    return (sl_wire_read_event){
        .has_event = true,
        .has_link = true,
        .event = { .id = { .uuid = sl_uuid_from_halves(1, 2), .form = SL_WIRE_ID_STRUCTURED },
                   .stream = SL_STR("orders"),
                   .revision = 5,
                   .type = SL_STR("placed"),
                   .content_type = SL_STR("application/json"),
                   .created_ticks = 10000000,
                   .data = SL_STR("{\"n\": 1}") },
        .link = { .stream = SL_STR("$parked"),
                  .revision = 3,
                  .type = SL_STR("$>"),
                  .created_ticks = 20000000,
                  .custom_metadata = sl_str_from(metadata),
                  .data = SL_STR("5@orders") },
    };
}

static void print_parked(const sl_wire_read_event *event, bool json, bool in_full, page *p)
{
    sl_parked_printer printer;

    sl_parked_printer_init(&printer, page_begin(p), json, in_full);
    EXPECT_OK(sl_parked_print(&printer, event));
    sl_parked_printer_done(&printer);
}

TEST(a_parked_message_is_shown_with_its_number_its_event_and_its_reason)
{
    sl_wire_read_event event =
        parked_event("{\"reason\": \"Client explicitly NAK'ed message.\\nbad \\u001b[2J\"}");
    page p;

    print_parked(&event, false, false, &p);
    page_expect(&p, "3  1970-01-01T00:00:02.000Z  5@orders  placed  Client explicitly NAK'ed message. bad "
                    "\\x1b[2J\n");
    event.has_event = false;
    print_parked(&event, false, false, &p);
    page_expect(&p, "3  1970-01-01T00:00:02.000Z  5@orders  (gone)  Client explicitly NAK'ed message. bad "
                    "\\x1b[2J\n");
}

TEST(a_parked_message_in_full_has_its_data_and_who_had_it)
{
    sl_wire_read_event event = parked_event("{\"reason\": \"r\", \"consumer\": \"me\"}");
    page p;

    print_parked(&event, false, true, &p);
    page_expect(&p, "parked message 3\n"
                    "  parked    1970-01-01T00:00:02.000Z\n"
                    "  reason    r\n"
                    "  consumer  me\n"
                    "  event     5@orders\n"
                    "  type      placed\n"
                    "  created   1970-01-01T00:00:01.000Z\n"
                    "  data      {\"n\": 1}\n");
    event.has_event = false;
    print_parked(&event, false, true, &p);
    page_expect(&p, "parked message 3\n"
                    "  parked    1970-01-01T00:00:02.000Z\n"
                    "  reason    r\n"
                    "  consumer  me\n"
                    "  event     5@orders\n"
                    "  the event itself is gone\n");
}

#define PAST                                                                                                 \
    "{\"reason\": \"r\", \"attempts\": 2, \"deliveries\": 3, \"interrupts\": 1, \"kills\": 0, \"history\": " \
    "["                                                                                                      \
    "{\"attempt\": 1, \"time\": \"2026-11-16T09:00:00.000Z\", \"reason\": \"a\\nb\"}, "                      \
    "{\"attempt\": 2, \"time\": \"2026-11-16T09:00:01.000Z\", \"reason\": \"c \\u001b[2J\"}]}"

TEST(a_parked_message_in_full_has_its_failures_B15)
{
    sl_wire_read_event event = parked_event(PAST);
    page p;

    event.has_event = false;
    print_parked(&event, false, true, &p);
    page_expect(&p, "parked message 3\n"
                    "  parked    1970-01-01T00:00:02.000Z\n"
                    "  reason    r\n"
                    "  attempts  2\n"
                    "  failed    1  2026-11-16T09:00:00.000Z  a b\n"
                    "  failed    2  2026-11-16T09:00:01.000Z  c \\x1b[2J\n"
                    "  event     5@orders\n"
                    "  the event itself is gone\n");
    print_parked(&event, false, false, &p);
    page_expect(&p, "3  1970-01-01T00:00:02.000Z  5@orders  (gone)  r\n");
}

TEST(programs_get_counts_and_history_of_a_parked_message_B15)
{
    const sl_wire_read_event event = parked_event(PAST);
    page p;

    print_parked(&event, true, false, &p);
    fclose(p.out);
    EXPECT(
        strstr(p.text,
               "\"attempts\": 2, \"deliveries\": 3, \"interrupts\": 1, \"kills\": 0, \"history\": ["
               "{\"attempt\": 1, \"time\": \"2026-11-16T09:00:00.000Z\", \"reason\": \"a b\"}, "
               "{\"attempt\": 2, \"time\": \"2026-11-16T09:00:01.000Z\", \"reason\": \"c \\u001b[2J\"}], ") !=
        NULL);
    free(p.text);
}

/* Somebody may have appended an event there that is no link. */
TEST(an_event_among_parked_messages_that_is_no_link_points_to_nothing)
{
    sl_wire_read_event event = parked_event("{}");
    page p;

    event.has_link = false;
    print_parked(&event, false, false, &p);
    page_expect(&p, "5  1970-01-01T00:00:01.000Z  {\"n\": 1}  (gone)  \n");
}

/* Whoever may write the stream may have written anything. */
TEST(a_parked_message_with_strange_metadata_is_still_json)
{
    static const char *const strange[] = {
        "",
        "{",
        "[]",
        "{\"reason\": 7}",
        "\xff",
        "{\"reason\": null}",
        "{\"attempts\": -1, \"history\": {}}",
        "{\"history\": [7, {}, {\"attempt\": \"x\", \"time\": [], \"reason\": \"\xff\"}]}",
    };
    page p;

    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        const sl_wire_read_event event = parked_event(strange[i]);
        print_parked(&event, true, i % 2 == 0, &p);
        fclose(p.out);
        cJSON *const object = cJSON_Parse(p.text);
        EXPECT_ROW(object != NULL, i);
        EXPECT_ROW(cJSON_GetObjectItem(object, "number")->valueint == 3, i);
        EXPECT_ROW(strcmp(cJSON_GetObjectItem(object, "reason")->valuestring, "") == 0, i);
        EXPECT_ROW(cJSON_HasObjectItem(cJSON_GetObjectItem(object, "event"), "data") == (i % 2 == 0), i);
        cJSON_Delete(object);
        free(p.text);
    }
}
