/* worker/handler/lines_answer.c — see lines_text.h: what a handler says.
 *
 * Nearly every answer is a flat object of short texts, which is read here without a tree. Whatever is not that goes to cJSON. Both ways end in
 * the same judge, so that an answer means the same whichever way it took. */
#include "base/cleanup.h"
#include "worker/handler/output.h"
#include "worker/lines_text.h"

#include <cjson/cJSON.h>

typedef enum field {
    FIELD_ID,
    FIELD_TYPE,
    FIELD_RESULT,
    FIELD_REASON,
    FIELD_RETRY_AFTER,
    FIELD_COUNT
} field;

static const sl_str field_names[FIELD_COUNT] = { SL_STR_INIT("id"), SL_STR_INIT("type"),
                                                 SL_STR_INIT("result"), SL_STR_INIT("reason"),
                                                 SL_STR_INIT("retry_after_ms") };

typedef enum value_kind {
    VALUE_ABSENT,
    VALUE_TEXT,
    VALUE_NUMBER,
    VALUE_OTHER
} value_kind;

typedef struct value {
    value_kind kind;
    sl_str text;
    double number;
} value;

typedef struct fields {
    value values[FIELD_COUNT];
    const char *repeated; /* the name of a field that came twice */
} fields;

static void take_field(fields *all, sl_str name, value is)
{
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (!sl_str_equal(name, field_names[i]))
            continue;
        if (all->values[i].kind != VALUE_ABSENT)
            all->repeated = field_names[i].data;
        all->values[i] = is;
    }
}

/* --- the short way --- */

static void skip_blanks(sl_str *rest)
{
    while (rest->bytes > 0 && (rest->data[0] == ' ' || rest->data[0] == '\t' || rest->data[0] == '\r'))
        *rest = (sl_str){ rest->data + 1, rest->bytes - 1 };
}

static bool skip_char(sl_str *rest, char wanted)
{
    skip_blanks(rest);
    if (rest->bytes == 0 || rest->data[0] != wanted)
        return false;
    *rest = (sl_str){ rest->data + 1, rest->bytes - 1 };
    skip_blanks(rest);
    return true;
}

/* A text without anything that would have to be translated. */
static bool read_text(sl_str *rest, sl_str *ret_text)
{
    size_t i = 1;

    if (rest->bytes == 0 || rest->data[0] != '"')
        return false;
    while (i < rest->bytes && rest->data[i] != '"' && rest->data[i] != '\\' && (uint8_t)rest->data[i] >= ' ')
        i++;
    if (i == rest->bytes || rest->data[i] != '"')
        return false;
    *ret_text = (sl_str){ rest->data + 1, i - 1 };
    *rest = (sl_str){ rest->data + i + 1, rest->bytes - i - 1 };
    return true;
}

static bool read_field(sl_str *rest, fields *all)
{
    value is = { .kind = VALUE_TEXT };
    sl_str name;

    if (!read_text(rest, &name) || !skip_char(rest, ':') || !read_text(rest, &is.text))
        return false;
    take_field(all, name, is);
    return true;
}

/* False: it takes the long way. */
static bool read_short(sl_str line, fields *all)
{
    sl_str rest = line;

    if (!skip_char(&rest, '{'))
        return false;
    do {
        if (!read_field(&rest, all))
            return false;
    } while (skip_char(&rest, ','));
    return skip_char(&rest, '}') && rest.bytes == 0;
}

/* --- the long way --- */

static value value_of(const cJSON *item)
{
    if (cJSON_IsString(item))
        return (value){ .kind = VALUE_TEXT, .text = sl_str_from(item->valuestring) };
    if (cJSON_IsNumber(item))
        return (value){ .kind = VALUE_NUMBER, .number = item->valuedouble };
    return (value){ .kind = VALUE_OTHER };
}

/* The tree must live as long as the fields. NULL: no object. A zero byte would end texts early for cJSON. */
static cJSON *read_long(sl_str line, fields *all)
{
    const char *end = NULL;
    cJSON *tree;

    if (sl_str_find(line, '\0') < line.bytes)
        return NULL;
    tree = cJSON_ParseWithLengthOpts(line.data, line.bytes, &end, false);
    if (tree == NULL)
        return NULL;
    if (!cJSON_IsObject(tree) ||
        sl_str_trim((sl_str){ end, (size_t)(line.data + line.bytes - end) }).bytes > 0) {
        cJSON_Delete(tree);
        return NULL;
    }
    for (const cJSON *item = tree->child; item != NULL; item = item->next)
        take_field(all, sl_str_from(item->string), value_of(item));
    return tree;
}

/* --- the judge --- */

static bool is_text(const value *is, sl_str wanted)
{
    return is->kind == VALUE_TEXT && sl_str_equal(is->text, wanted);
}

static sl_err wrong(sl_text *problem, const char *what)
{
    sl_text_add(problem, what);
    return SL_ERR_INVALID;
}

static sl_err judge_result(const value *is, sl_lines_answer *answer, sl_text *problem)
{
    static const struct {
        sl_str name;
        sl_result_kind kind;
    } rows[] = { { SL_STR_INIT("ack"), SL_RESULT_DONE },
                 { SL_STR_INIT("retry"), SL_RESULT_RETRY },
                 { SL_STR_INIT("failed"), SL_RESULT_FAILED },
                 { SL_STR_INIT("park"), SL_RESULT_PARK } };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        if (is_text(is, rows[i].name)) {
            answer->result = rows[i].kind;
            return SL_OK;
        }
    }
    return wrong(problem, "its \"result\" is none of \"ack\", \"retry\", \"failed\", \"park\"");
}

static sl_err judge_details(const fields *all, sl_lines_answer *answer, sl_text *problem)
{
    const value *after = &all->values[FIELD_RETRY_AFTER], *reason = &all->values[FIELD_REASON];
    sl_text text;

    if (reason->kind != VALUE_ABSENT && reason->kind != VALUE_TEXT)
        return wrong(problem, "its \"reason\" is no text");
    if (after->kind != VALUE_ABSENT) {
        if (after->kind != VALUE_NUMBER ||
            !(after->number >= 0 && after->number <= SL_LINES_RETRY_AFTER_MS_MAX))
            return wrong(problem, "its \"retry_after_ms\" is no number from 0 to 604800000 (7 days)");
        answer->retry_after_ms = (uint64_t)after->number;
    }
    sl_text_init(&text, answer->reason, sizeof answer->reason);
    sl_output_add_printable(
        &text, (sl_str){ reason->text.data, sl_min_u64(reason->text.bytes, sizeof answer->reason) });
    return SL_OK;
}

static sl_err judge(const fields *all, sl_lines_answer *answer, sl_text *problem)
{
    const value *id = &all->values[FIELD_ID], *type = &all->values[FIELD_TYPE];
    sl_err err;

    if (all->repeated != NULL) {
        sl_text_add(problem, "it says twice what \"");
        sl_text_add(problem, all->repeated);
        return wrong(problem, "\" is");
    }
    if (id->kind != VALUE_TEXT || sl_uuid_parse(id->text.data, id->text.bytes, &answer->id) != SL_OK)
        return wrong(problem, id->kind == VALUE_ABSENT ? "its answer has no \"id\""
                                                       : "the \"id\" of its answer is not that of a message");
    answer->is_progress = is_text(type, SL_STR("progress"));
    if (type->kind != VALUE_ABSENT && !answer->is_progress && !is_text(type, SL_STR("result")))
        return wrong(problem, "its \"type\" is neither \"result\" nor \"progress\"");
    if (answer->is_progress && all->values[FIELD_RESULT].kind != VALUE_ABSENT)
        return wrong(problem, "its answer is of type \"progress\" and has a \"result\"");
    if (answer->is_progress)
        return SL_OK;
    err = judge_result(&all->values[FIELD_RESULT], answer, problem);
    return err == SL_OK ? judge_details(all, answer, problem) : err;
}

sl_err sl_lines_answer_parse(sl_str line, sl_lines_answer *ret_answer, sl_text *problem)
{
    fields all = { .repeated = NULL };
    cJSON *tree = NULL;
    sl_lines_answer answer;
    sl_err err;

    answer.reason[0] = '\0';
    answer.retry_after_ms = 0;
    answer.result = SL_RESULT_DONE;
    if (!read_short(line, &all)) {
        all = (fields){ .repeated = NULL };
        tree = read_long(line, &all);
        if (tree == NULL)
            return wrong(problem, "a line on its standard output is no JSON object");
    }
    err = judge(&all, &answer, problem);
    cJSON_Delete(tree);
    if (err == SL_OK)
        *ret_answer = answer;
    return err;
}
