/* tests/unit/cli/test_fields.c — names and values: readable for people, parseable for programs, harmless for terminals. */
#include "test.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fields.h"
#include "cli/print.h"

typedef struct line {
    char *text;
    size_t bytes;
    sl_fields fields;
} line;

static void line_begin(line *l, bool json)
{
    *l = (line){ 0 };
    l->fields = (sl_fields){ .out = open_memstream(&l->text, &l->bytes), .json = json };
    fputs(json ? "{" : "", l->fields.out);
}

static const char *line_end(line *l)
{
    fputs(l->fields.json ? "}" : "", l->fields.out);
    fclose(l->fields.out);
    return l->text;
}

TEST(fields_are_words_for_people)
{
    line l;

    line_begin(&l, false);
    sl_field_number(&l.fields, "position", 7);
    sl_field_text(&l.fields, "stream", SL_STR("a\"b\x1b[2J"));
    sl_field_bool(&l.fields, "json", true);
    sl_field_bool(&l.fields, "charged", false);
    sl_field_time(&l.fields, "created", UINT64_C(1700000000000000000));
    sl_field_time(&l.fields, "never", 0);
    sl_field_bytes(&l.fields, "data", SL_STR("\x00\xff"));
    EXPECT_STR(line_end(&l),
               "position=7 stream=\"a\\\"b\\x1b[2J\" json created=2023-11-14T22:13:20.000Z data_hex=00ff");
    free(l.text);
}

TEST(fields_are_json_for_programs)
{
    line l;

    line_begin(&l, true);
    sl_field_number(&l.fields, "position", UINT64_MAX);
    sl_field_text(&l.fields, "stream", (sl_str){ "a\0\"\n", 4 });
    sl_field_bool(&l.fields, "charged", false);
    sl_field_bytes(&l.fields, "data", SL_STR("\xff"));
    EXPECT_STR(
        line_end(&l),
        "{\"position\": 18446744073709551615, \"stream\": \"a\\u0000\\\"\\u000a\", \"charged\": false, "
        "\"data_hex\": \"ff\"}");
    free(l.text);
}

/* Each kind has its name and its fields, in both forms. */
TEST(fields_know_every_record_of_a_group)
{
    for (sl_effect_kind kind = 0; kind < SL_EFFECT_COUNT_; kind++) {
        const sl_effect effect = { .kind = kind };
        char name[64];
        cJSON *json;
        line l;

        if (!sl_effect_is_record(kind))
            continue;
        line_begin(&l, true);
        sl_field_effect(&l.fields, &effect);
        json = cJSON_Parse(line_end(&l));
        EXPECT(json != NULL);
        EXPECT_STR(cJSON_GetObjectItem(json, "record")->valuestring, sl_effect_name(kind));
        EXPECT(cJSON_GetArraySize(json) >= 2);
        cJSON_Delete(json);
        free(l.text);
        line_begin(&l, false);
        sl_field_effect(&l.fields, &effect);
        snprintf(name, sizeof name, "record=%s ", sl_effect_name(kind));
        EXPECT(strncmp(line_end(&l), name, strlen(name)) == 0);
        free(l.text);
    }
}

TEST(fields_of_a_settled_message_say_what_became_of_it)
{
    const sl_effect effect = {
        .kind = SL_EFFECT_SETTLE,
        .settle = { .place = { SL_LANE_PARKED, 5 }, .from = 5, .to = 6, .cause = SL_SETTLE_SKIPPED }
    };
    line l;

    line_begin(&l, false);
    sl_field_effect(&l.fields, &effect);
    EXPECT_STR(line_end(&l),
               "record=SETTLE lane=parked message=5 id=00000000-0000-0000-0000-000000000000 from=5 to=6 "
               "cause=skipped");
    free(l.text);
}

TEST(sizes_have_units_for_people)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = { { 0, "0 B" },
                  { 1023, "1023 B" },
                  { 1024, "1.0 KiB" },
                  { 64 * 1024 * 1024, "64.0 MiB" },
                  { UINT64_C(3) << 40, "3.0 TiB" } };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *out = open_memstream(&text, &bytes);

        sl_print_bytes(out, cases[i].bytes);
        fclose(out);
        EXPECT_STR(text, cases[i].text);
        free(text);
    }
}
