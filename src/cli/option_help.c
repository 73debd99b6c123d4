/* cli/option_help.c — what is shown of a row: its label, its bounds, and the list that --help prints. */
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/print.h"

enum {
    HELP_BYTES = 1024
};

/* "sync or os", "text, json or auto" */
static void add_choices(sl_text *text, const char *choices)
{
    sl_str word;

    for (const char *rest = choices; sl_choice_next(&rest, &word);) {
        if (text->bytes > 0)
            sl_text_add(text, *rest == '\0' ? " or " : ", ");
        sl_text_add_str(text, word);
    }
}

static void add_limits(sl_text *text, const sl_option *row)
{
    void (*add)(sl_text * to, uint64_t value) =
        row->kind == SL_OPTION_DURATION ? sl_text_add_duration : sl_text_add_u64;

    add(text, row->min);
    sl_text_add(text, " to ");
    add(text, row->max);
    if (row->kind == SL_OPTION_TEXT)
        sl_text_add(text, " bytes");
}

const char *sl_option_bounds(const sl_option *row, char buffer[static SL_OPTION_BOUNDS_BYTES])
{
    sl_text text;

    sl_text_init(&text, buffer, SL_OPTION_BOUNDS_BYTES);
    if (row->kind == SL_OPTION_CHOICE)
        add_choices(&text, row->choices);
    else if (row->kind != SL_OPTION_FLAG)
        add_limits(&text, row);
    return buffer;
}

size_t sl_option_label(const sl_option *row, char text[static SL_OPTION_LABEL_BYTES])
{
    char letter[5] = "    ";

    if (row->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(text, SL_OPTION_LABEL_BYTES, "%s--%s%s%s", letter, row->name, row->argument == NULL ? "" : " ",
             row->argument == NULL ? "" : row->argument);
    return strlen(text);
}

/* The bytes of a text are so wide a limit that a reader has no use for them. */
static void add_facts(sl_text *text, const sl_option *row)
{
    char bounds[SL_OPTION_BOUNDS_BYTES];

    if (row->kind != SL_OPTION_FLAG && row->kind != SL_OPTION_TEXT) {
        sl_text_add(text, "; ");
        sl_text_add(text, sl_option_bounds(row, bounds));
    }
    if (row->repeats)
        sl_text_add(text, "; may be given several times");
    if (row->default_text != NULL) {
        sl_text_add(text, " [");
        sl_text_add(text, row->default_text);
        sl_text_add(text, "]");
    }
    if (row->environment != NULL) {
        sl_text_add(text, " ($");
        sl_text_add(text, row->environment);
        sl_text_add(text, ")");
    }
}

static void help_row(const sl_option *row, size_t label_width, FILE *out)
{
    char label[SL_OPTION_LABEL_BYTES], buffer[HELP_BYTES];
    sl_text text;

    sl_option_label(row, label);
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, row->help);
    add_facts(&text, row);
    sl_print_entry(out, label, label_width, buffer);
}

void sl_options_help(const sl_option_table *table, FILE *out)
{
    char text[SL_OPTION_LABEL_BYTES];
    size_t label_width = 0;

    for (size_t i = 0; i < table->row_count; i++) {
        const sl_option *row = &table->rows[i];
        const size_t width = sl_option_belongs(table, row) ? sl_option_label(row, text) : 0;
        label_width = width > label_width ? width : label_width;
    }
    for (size_t i = 0; i < table->row_count; i++) {
        if (sl_option_belongs(table, &table->rows[i]))
            help_row(&table->rows[i], label_width, out);
    }
}
