/* cli/options.c — the reader that turns words into values by the rows of a table.
 *
 * Forms: --name value, --name=value, -n value, -nvalue; flags take no value. The steps are small and go one
 * way: find the row, find its argument, check kind and bounds (take), store. Defaults and environment
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
    ROWS_MAX = 128,
    LABEL_BYTES = 48,
    BOUNDS_BYTES = 80,
    HELP_BYTES = 512
};

typedef struct reader {
    const sl_option_table *table;
    char **words;
    size_t word_count, at, plain_count;
    sl_option_value *values;
    sl_complaint *complaint;
} reader;

__attribute__((format(printf, 2, 3))) static sl_err complain(sl_complaint *complaint, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(complaint->text, sizeof complaint->text, format, arguments);
    va_end(arguments);
    return SL_ERR_INVALID;
}

static bool belongs(const sl_option_table *table, const sl_option *row)
{
    return (row->commands & table->command) != 0;
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

/* The bounds of the row come later, so that "too small" and "no duration" are two different complaints. */
static const sl_duration_bounds any_duration = { .min_ns = 0, .max_ns = UINT64_MAX };

static sl_err parse_kind(const sl_option *row, const char *text, uint64_t *ret_number)
{
    switch (row->kind) {
    case SL_OPTION_FLAG: return parse_flag(text, ret_number);
    case SL_OPTION_NUMBER: return sl_str_parse_u64(sl_str_from(text), ret_number);
    case SL_OPTION_DURATION: return sl_str_parse_duration(sl_str_from(text), any_duration, ret_number);
    case SL_OPTION_TEXT: *ret_number = strlen(text); return SL_OK;
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
    }
    return "";
}

/* "1s to 5m", "1 to 64 bytes": the bounds as a user would type them. */
static const char *bounds_text(const sl_option *row, char buffer[static BOUNDS_BYTES])
{
    void (*add)(sl_text * text, uint64_t value) =
        row->kind == SL_OPTION_DURATION ? sl_text_add_duration : sl_text_add_u64;
    sl_text text;

    sl_text_init(&text, buffer, BOUNDS_BYTES);
    add(&text, row->min);
    sl_text_add(&text, " to ");
    add(&text, row->max);
    if (row->kind == SL_OPTION_TEXT)
        sl_text_add(&text, " bytes");
    return buffer;
}

static bool in_bounds(const sl_option *row, uint64_t number)
{
    return row->kind == SL_OPTION_FLAG || (number >= row->min && number <= row->max);
}

/* `from` is how the user knows the option: "--grace", or the variable's name. */
static sl_err take(const sl_option *row, const char *from, const char *text, sl_option_source source,
                   sl_option_value *value, sl_complaint *complaint)
{
    uint64_t number = 0;
    char bounds[BOUNDS_BYTES];
    const sl_err err = parse_kind(row, text, &number);

    if (err == SL_ERR_INVALID)
        return complain(complaint, "%s needs %s, not '%s'.", from, kind_text(row->kind), sl_quote(text).text);
    if (err != SL_OK || !in_bounds(row, number))
        return complain(complaint, "%s must be %s, not '%s'.", from, bounds_text(row, bounds),
                        sl_quote(text).text);
    *value = (sl_option_value){ .source = source, .text = text, .number = number };
    return SL_OK;
}

/* --- the command line --- */

static const sl_option *find_name(const sl_option_table *table, const char *name, size_t name_bytes)
{
    for (size_t i = 0; i < table->row_count; i++) {
        const sl_option *row = &table->rows[i];
        if (belongs(table, row) && strlen(row->name) == name_bytes &&
            memcmp(row->name, name, name_bytes) == 0)
            return row;
    }
    return NULL;
}

static const sl_option *find_letter(const sl_option_table *table, char letter)
{
    for (size_t i = 0; i < table->row_count; i++) {
        if (belongs(table, &table->rows[i]) && table->rows[i].letter == letter)
            return &table->rows[i];
    }
    return NULL;
}

static sl_err complain_unknown(const reader *r, const char *word, const char *name)
{
    const char *names[ROWS_MAX];

    for (size_t i = 0; i < r->table->row_count; i++)
        names[i] = belongs(r->table, &r->table->rows[i]) ? r->table->rows[i].name : NULL;
    const char *nearest = name == NULL ? NULL : sl_suggest_nearest(name, names, r->table->row_count);
    if (nearest != NULL)
        return complain(r->complaint, "there is no option '%s'. Did you mean '--%s'?", sl_quote(word).text,
                        nearest);
    return complain(r->complaint, "there is no option '%s'.", sl_quote(word).text);
}

/* "-5s" is meant as a value, if a wrong one: no option of ours begins with a digit. */
static bool looks_like_option(const char *word)
{
    return word[0] == '-' && !(word[1] >= '0' && word[1] <= '9');
}

/* The argument stands in the same word (`inside`) or is the next one. A next word that looks like an option
 * is taken for a forgotten argument. */
static sl_err find_argument(reader *r, const char *from, const char *inside, const char **ret_text)
{
    if (inside != NULL) {
        *ret_text = inside;
        return SL_OK;
    }
    if (r->at == r->word_count || looks_like_option(r->words[r->at]))
        return complain(r->complaint, "%s needs a value behind it.", from);
    *ret_text = r->words[r->at++];
    return SL_OK;
}

static sl_err read_row(reader *r, const sl_option *row, const char *inside)
{
    char from[LABEL_BYTES];
    const char *text = "1";

    snprintf(from, sizeof from, "--%s", row->name);
    if (row->kind == SL_OPTION_FLAG && inside != NULL)
        return complain(r->complaint, "%s takes no value.", from);
    if (row->kind != SL_OPTION_FLAG) {
        const sl_err err = find_argument(r, from, inside, &text);
        if (err != SL_OK)
            return err;
    }
    return take(row, from, text, SL_OPTION_FROM_COMMAND_LINE, &r->values[row - r->table->rows], r->complaint);
}

static sl_err read_long(reader *r, const char *word)
{
    char name[LABEL_BYTES];
    const size_t name_bytes = strcspn(word + 2, "=");
    const sl_option *row = find_name(r->table, word + 2, name_bytes);

    if (row == NULL) {
        snprintf(name, sizeof name, "%.*s", (int)name_bytes, word + 2);
        return complain_unknown(r, word, name);
    }
    return read_row(r, row, word[2 + name_bytes] == '=' ? word + 2 + name_bytes + 1 : NULL);
}

static sl_err read_short(reader *r, const char *word)
{
    const sl_option *row = find_letter(r->table, word[1]);

    if (row == NULL)
        return complain_unknown(r, word, NULL);
    return read_row(r, row, word[2] != '\0' ? word + 2 : NULL);
}

static sl_err read_words(reader *r)
{
    bool options_ended = false;

    while (r->at < r->word_count) {
        char *word = r->words[r->at++];
        sl_err err = SL_OK;
        if (options_ended || word[0] != '-' || word[1] == '\0')
            r->words[r->plain_count++] = word;
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

static sl_err fill_value(const sl_option *row, sl_option_environment *environment, sl_option_value *value,
                         sl_complaint *complaint)
{
    const char *text = row->environment == NULL ? NULL : environment(row->environment);

    if (text != NULL && *text != '\0') /* an empty variable is an unset one: the usual way to switch it off */
        return take(row, row->environment, text, SL_OPTION_FROM_ENVIRONMENT, value, complaint);
    if (row->default_text == NULL)
        return SL_OK;
    const sl_err err = take(row, row->name, row->default_text, SL_OPTION_FROM_DEFAULT, value, complaint);
    assert(err == SL_OK);
    return err;
}

/* The command line has the last word, so a variable that it overrules is not even looked at. */
static sl_err fill_gaps(const reader *r, sl_option_environment *environment)
{
    for (size_t i = 0; i < r->table->row_count; i++) {
        if (!belongs(r->table, &r->table->rows[i]) || r->values[i].source != SL_OPTION_UNSET)
            continue;
        const sl_err err = fill_value(&r->table->rows[i], environment, &r->values[i], r->complaint);
        if (err != SL_OK)
            return err;
    }
    return SL_OK;
}

sl_err sl_options_read(const sl_option_table *table, sl_option_environment *environment, char **words,
                       size_t word_count, sl_option_value *values, size_t *ret_plain_count,
                       sl_complaint *ret_complaint)
{
    reader r = {
        .table = table, .words = words, .word_count = word_count, .values = values, .complaint = ret_complaint
    };

    assert(table->row_count <= ROWS_MAX);
    for (size_t i = 0; i < table->row_count; i++)
        values[i] = (sl_option_value){ .source = SL_OPTION_UNSET };
    sl_err err = read_words(&r);
    if (err == SL_OK)
        err = fill_gaps(&r, environment);
    if (err == SL_OK)
        *ret_plain_count = r.plain_count;
    return err;
}

/* --- before anything is read --- */

bool sl_options_asks_for(const sl_option *flag, sl_option_environment *environment, char *const *words,
                         size_t word_count)
{
    const char letter_form[] = { '-', flag->letter, '\0' };
    const char *text = flag->environment == NULL ? NULL : environment(flag->environment);
    uint64_t number = 0;

    for (size_t i = 0; i < word_count && strcmp(words[i], "--") != 0; i++) {
        const bool named = strncmp(words[i], "--", 2) == 0 && strcmp(words[i] + 2, flag->name) == 0;
        if (named || (flag->letter != 0 && strcmp(words[i], letter_form) == 0))
            return true;
    }
    return text != NULL && parse_flag(text, &number) == SL_OK && number != 0;
}

/* --- help --- */

static size_t label(const sl_option *row, char text[static LABEL_BYTES])
{
    char letter[5] = "    ";

    if (row->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(text, LABEL_BYTES, "%s--%s%s%s", letter, row->name, row->argument == NULL ? "" : " ",
             row->argument == NULL ? "" : row->argument);
    return strlen(text);
}

static void help_row(const sl_option *row, size_t label_width, FILE *out)
{
    char name[LABEL_BYTES], bounds[BOUNDS_BYTES], buffer[HELP_BYTES];
    sl_text text;

    label(row, name);
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, row->help);
    if (row->kind == SL_OPTION_NUMBER || row->kind == SL_OPTION_DURATION) {
        sl_text_add(&text, "; ");
        sl_text_add(&text, bounds_text(row, bounds));
    }
    if (row->default_text != NULL) {
        sl_text_add(&text, " [");
        sl_text_add(&text, row->default_text);
        sl_text_add(&text, "]");
    }
    if (row->environment != NULL) {
        sl_text_add(&text, " ($");
        sl_text_add(&text, row->environment);
        sl_text_add(&text, row->kind == SL_OPTION_FLAG ? ": " FLAG_WORDS ")" : ")");
    }
    sl_print_entry(out, name, label_width, buffer);
}

void sl_options_help(const sl_option_table *table, FILE *out)
{
    char text[LABEL_BYTES];
    size_t label_width = 0;

    for (size_t i = 0; i < table->row_count; i++) {
        const size_t width = belongs(table, &table->rows[i]) ? label(&table->rows[i], text) : 0;
        label_width = width > label_width ? width : label_width;
    }
    for (size_t i = 0; i < table->row_count; i++) {
        if (belongs(table, &table->rows[i]))
            help_row(&table->rows[i], label_width, out);
    }
}
