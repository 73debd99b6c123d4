/* cli/options.c — the reader that turns words into values by the rows of a table.
 *
 * Forms: --name value, --name=value, -n value, -nvalue. A flag takes no value, except that one which can be set elsewhere
 * can be switched off with --name=no: the command line has the last word. The steps are small and go one
 * way: find the row, find its argument, check kind and bounds (take), store. Defaults, files and environment
 * variables enter at "take", so they are checked like the rest; a bad default is a programmer's error and
 * asserted. */
#include "cli/options.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "cli/print.h"
#include "cli/suggest.h"

enum {
    NAME_BYTES = 64,
};

typedef struct reader {
    sl_option_reading *to;
    size_t at; /* the next word */
} reader;

__attribute__((format(printf, 2, 3))) static sl_err complain(sl_complaint *complaint, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(complaint->text, sizeof complaint->text, format, arguments);
    va_end(arguments);
    return SL_ERR_INVALID;
}

bool sl_option_belongs(const sl_option_table *table, const sl_option *row)
{
    return (row->commands & table->command) != 0;
}

bool sl_option_is_setting(const sl_option *row)
{
    return row->environment != NULL;
}

/* --- one value: kind and bounds --- */

#define FLAG_WORDS "1, true, yes, 0, false or no"

static sl_err parse_flag(const char *text, uint64_t *ret_number)
{
    static const char *const words[] = { "0", "1", "false", "true", "no", "yes" };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *ret_number = i % 2;
            return SL_OK;
        }
    }
    return SL_ERR_INVALID;
}

bool sl_choice_next(const char **rest, sl_str *ret_word)
{
    if (*rest == NULL || **rest == '\0')
        return false;
    *ret_word = (sl_str){ *rest, strcspn(*rest, "|") };
    *rest += ret_word->bytes + ((*rest)[ret_word->bytes] == '|');
    return true;
}

/* A choice that does not exist is out of bounds, so that the complaint lists those that do. */
static sl_err parse_choice(const sl_option *row, const char *text, uint64_t *ret_number)
{
    const char *rest = row->choices;
    sl_str word;

    for (uint64_t i = 0; sl_choice_next(&rest, &word); i++) {
        if (sl_str_equal(word, sl_str_from(text))) {
            *ret_number = i;
            return SL_OK;
        }
    }
    return SL_ERR_TOO_LARGE;
}

/* The bounds of the row come later, so that "too small" and "no duration" are two different complaints. */
static const sl_duration_bounds any_duration = { .min_ns = 0, .max_ns = UINT64_MAX };

static sl_err parse_kind(const sl_option *row, const char *text, uint64_t *ret_number)
{
    switch (row->kind) {
    case SL_OPTION_FLAG: return parse_flag(text, ret_number);
    case SL_OPTION_NUMBER: return sl_str_parse_u64(sl_str_from(text), ret_number);
    case SL_OPTION_DURATION: return sl_str_parse_duration(sl_str_from(text), any_duration, ret_number);
    case SL_OPTION_TEXT: *ret_number = strlen(text); return SL_OK;
    case SL_OPTION_CHOICE: return parse_choice(row, text, ret_number);
    }
    return SL_ERR_INVALID; /* not reached: the cases are complete */
}

static const char *kind_text(sl_option_kind kind)
{
    switch (kind) {
    case SL_OPTION_FLAG: return FLAG_WORDS;
    case SL_OPTION_NUMBER: return "a whole number";
    case SL_OPTION_DURATION: return "a duration with its unit, such as 30s or 250ms";
    case SL_OPTION_TEXT: return "text";
    case SL_OPTION_CHOICE: return "one of its words";
    }
    return "";
}

static bool in_bounds(const sl_option *row, uint64_t number)
{
    if (row->kind == SL_OPTION_FLAG || row->kind == SL_OPTION_CHOICE)
        return true;
    return number >= row->min && number <= row->max;
}

/* It is a number, but none below zero is ever in bounds. */
static bool is_negative(const sl_option *row, const char *text)
{
    uint64_t number;

    return (row->kind == SL_OPTION_NUMBER || row->kind == SL_OPTION_DURATION) && text[0] == '-' &&
           parse_kind(row, text + 1, &number) != SL_ERR_INVALID;
}

static sl_err check(const sl_option *row, const char *from, const char *text, uint64_t *ret_number,
                    sl_complaint *complaint)
{
    char bounds[SL_OPTION_BOUNDS_BYTES];
    const sl_err err = is_negative(row, text) ? SL_ERR_TOO_LARGE : parse_kind(row, text, ret_number);

    if (row->kind == SL_OPTION_TEXT && text[0] == '\0' && row->min > 0)
        return complain(complaint, "%s is empty: it needs %s.", from, row->argument);
    if (err == SL_ERR_INVALID)
        return complain(complaint, "%s needs %s, not '%s'.", from, kind_text(row->kind), sl_quote(text).text);
    if (err != SL_OK || !in_bounds(row, *ret_number))
        return complain(complaint, "%s must be %s, not '%s'.", from, sl_option_bounds(row, bounds),
                        sl_quote(text).text);
    return SL_OK;
}

sl_err sl_option_check(const sl_option *row, const char *from, const char *text, sl_complaint *ret_complaint)
{
    uint64_t number = 0;

    return check(row, from, text, &number, ret_complaint);
}

/* Behind the values of the same source; a stronger source begins anew. */
static sl_err add_repeat(sl_option_reading *reading, const char *from, sl_option_value *value,
                         const sl_option_repeat *first)
{
    if (reading->repeat_count == SL_OPTION_REPEATS_MAX)
        return complain(&reading->complaint, "%s: more than %d repeated values are too many.", from,
                        SL_OPTION_REPEATS_MAX);
    sl_option_repeat *const added = &reading->repeats[reading->repeat_count++];
    *added = (sl_option_repeat){ .text = value->text, .number = value->number };
    value->all = first == NULL ? added : first;
    if (first == NULL)
        return SL_OK;
    sl_option_repeat *last = &reading->repeats[first - reading->repeats];
    while (last->next != NULL)
        last = &reading->repeats[last->next - reading->repeats];
    last->next = added;
    return SL_OK;
}

sl_err sl_option_take(sl_option_reading *reading, const sl_option *row, const char *from, const char *text,
                      sl_option_source source)
{
    sl_option_value *const value = &reading->values[row - reading->table->rows];
    const sl_option_repeat *const first = value->source == source ? value->all : NULL;
    uint64_t number = 0;
    const sl_err err = check(row, from, text, &number, &reading->complaint);

    if (err != SL_OK)
        return err;
    *value = (sl_option_value){ .source = source, .text = text, .number = number };
    return row->repeats ? add_repeat(reading, from, value, first) : SL_OK;
}

/* --- the command line --- */

static const sl_option *find_name(const sl_option_table *table, const char *name, size_t name_bytes)
{
    for (size_t i = 0; i < table->row_count; i++) {
        const sl_option *row = &table->rows[i];
        if (sl_option_belongs(table, row) && strlen(row->name) == name_bytes &&
            memcmp(row->name, name, name_bytes) == 0)
            return row;
    }
    return NULL;
}

static const sl_option *find_letter(const sl_option_table *table, char letter)
{
    for (size_t i = 0; i < table->row_count; i++) {
        if (sl_option_belongs(table, &table->rows[i]) && table->rows[i].letter == letter)
            return &table->rows[i];
    }
    return NULL;
}

static sl_err complain_unknown(const reader *r, const char *word, const char *name)
{
    const sl_option_table *const table = r->to->table;
    const char *names[SL_OPTION_ROWS_MAX];

    for (size_t i = 0; i < table->row_count; i++)
        names[i] = sl_option_belongs(table, &table->rows[i]) ? table->rows[i].name : NULL;
    const char *nearest = name == NULL ? NULL : sl_suggest_nearest(name, names, table->row_count);
    if (nearest != NULL)
        return complain(&r->to->complaint, "there is no option '%s'. Did you mean '--%s'?",
                        sl_quote(word).text, nearest);
    return complain(&r->to->complaint, "there is no option '%s'.", sl_quote(word).text);
}

/* "-5s" is meant as a value, if a wrong one: no option of ours begins with a digit. "-" alone stands for the input. */
static bool looks_like_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && !(word[1] >= '0' && word[1] <= '9');
}

/* The argument stands in the same word (`inside`) or is the next one. A next word that looks like an option
 * is taken for a forgotten argument. */
static sl_err find_argument(reader *r, const char *from, const char *inside, const char **ret_text)
{
    if (inside != NULL) {
        *ret_text = inside;
        return SL_OK;
    }
    if (r->at == r->to->word_count || looks_like_option(r->to->words[r->at]))
        return complain(&r->to->complaint, "%s needs a value behind it.", from);
    *ret_text = r->to->words[r->at++];
    return SL_OK;
}

static sl_err read_row(reader *r, const sl_option *row, const char *inside)
{
    char from[SL_OPTION_LABEL_BYTES];
    const char *text = "1";
    sl_err err = SL_OK;

    snprintf(from, sizeof from, "--%s", row->name);
    if (row->kind != SL_OPTION_FLAG || inside != NULL)
        err = find_argument(r, from, inside, &text);
    if (err != SL_OK)
        return err;
    return sl_option_take(r->to, row, from, text, SL_OPTION_FROM_COMMAND_LINE);
}

static sl_err complain_value(const reader *r, const sl_option *row)
{
    return complain(&r->to->complaint, "--%s takes no value.", row->name);
}

static sl_err read_long(reader *r, const char *word)
{
    char name[NAME_BYTES];
    const size_t name_bytes = strcspn(word + 2, "=");
    const sl_option *row = find_name(r->to->table, word + 2, name_bytes);
    const char *const inside = word[2 + name_bytes] == '=' ? word + 2 + name_bytes + 1 : NULL;

    if (row == NULL) {
        snprintf(name, sizeof name, "%.*s", (int)name_bytes, word + 2);
        return complain_unknown(r, word, name);
    }
    if (row->kind == SL_OPTION_FLAG && inside != NULL && !sl_option_is_setting(row))
        return complain_value(r, row); /* nobody but the command line can set it: nothing to switch off */
    return read_row(r, row, inside);
}

static sl_err read_short(reader *r, const char *word)
{
    const sl_option *row = find_letter(r->to->table, word[1]);

    if (row == NULL)
        return complain_unknown(r, word, NULL);
    if (row->kind == SL_OPTION_FLAG && word[2] != '\0')
        return complain_value(r, row);
    return read_row(r, row, word[2] != '\0' ? word + 2 : NULL);
}

static sl_err read_words(reader *r)
{
    sl_option_reading *const to = r->to;
    bool options_ended = false;

    while (r->at < to->word_count) {
        char *word = to->words[r->at++];
        sl_err err = SL_OK;
        if (options_ended || word[0] != '-' || word[1] == '\0')
            to->words[to->plain_count++] = word;
        else if (strcmp(word, "--") == 0)
            options_ended = true;
        else
            err = word[1] == '-' ? read_long(r, word) : read_short(r, word);
        if (err != SL_OK)
            return err;
    }
    return SL_OK;
}

/* --- environment and defaults --- */

static sl_err fill_value(sl_option_reading *reading, const sl_option *row)
{
    const char *text = row->environment == NULL ? NULL : reading->environment(row->environment);

    if (text != NULL && *text != '\0') /* an empty variable is an unset one: the usual way to switch it off */
        return sl_option_take(reading, row, row->environment, text, SL_OPTION_FROM_ENVIRONMENT);
    if (row->default_text == NULL)
        return SL_OK;
    const sl_err err = sl_option_take(reading, row, row->name, row->default_text, SL_OPTION_FROM_DEFAULT);
    assert(err == SL_OK);
    return err;
}

/* The command line has the last word, so a variable that it overrules is not even looked at. */
static sl_err fill_gaps(sl_option_reading *reading)
{
    const sl_option_table *const table = reading->table;

    for (size_t i = 0; i < table->row_count; i++) {
        if (!sl_option_belongs(table, &table->rows[i]) || reading->values[i].source != SL_OPTION_UNSET)
            continue;
        const sl_err err = fill_value(reading, &table->rows[i]);
        if (err != SL_OK)
            return err;
    }
    return SL_OK;
}

sl_err sl_options_read(sl_option_reading *reading)
{
    reader r = { .to = reading };
    sl_err err;

    assert(reading->table->row_count <= SL_OPTION_ROWS_MAX);
    for (size_t i = 0; i < reading->table->row_count; i++)
        reading->values[i] = (sl_option_value){ .source = SL_OPTION_UNSET };
    reading->plain_count = 0;
    reading->repeat_count = 0;
    err = read_words(&r);
    return err == SL_OK ? fill_gaps(reading) : err;
}

/* --- before anything is read --- */

/* "--json" and, for what can be set elsewhere, "--json=no". */
static bool names_flag(const sl_option *flag, const char *word, uint64_t *ret_number)
{
    const char letter_form[] = { '-', flag->letter, '\0' };
    const size_t name_bytes = strlen(flag->name);

    *ret_number = 1;
    if (flag->letter != 0 && strcmp(word, letter_form) == 0)
        return true;
    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, flag->name, name_bytes) != 0)
        return false;
    if (word[2 + name_bytes] == '=' && sl_option_is_setting(flag))
        return parse_flag(word + 2 + name_bytes + 1, ret_number) == SL_OK;
    return word[2 + name_bytes] == '\0';
}

bool sl_options_asks_for(const sl_option *flag, sl_option_environment *environment, char *const *words,
                         size_t word_count)
{
    const char *text = flag->environment == NULL ? NULL : environment(flag->environment);
    uint64_t number = 0;

    for (size_t i = 0; i < word_count && strcmp(words[i], "--") != 0; i++) {
        if (names_flag(flag, words[i], &number))
            return number != 0;
    }
    return text != NULL && parse_flag(text, &number) == SL_OK && number != 0;
}
