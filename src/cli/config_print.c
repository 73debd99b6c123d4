/* cli/config_print.c — the settings in force, as a file that gives the same when it is read, but for a password in an address. */
#include "cli/config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/config_text.h"
#include "cli/print.h"

enum {
    SETTING_COLUMNS = 40, /* where the comments begin, when the value is not longer */
};

/* --- INI --- */

static void print_source(FILE *out, const sl_option *row, const sl_option_value *value, const char *path)
{
    switch (value->source) {
    case SL_OPTION_UNSET: fputs("not set", out); break;
    case SL_OPTION_FROM_DEFAULT: fputs("default", out); break;
    case SL_OPTION_FROM_FILE: fprintf(out, "%s, line %u", sl_quote(path).text, value->line); break;
    case SL_OPTION_FROM_ENVIRONMENT: fprintf(out, "$%s", row->environment); break;
    case SL_OPTION_FROM_COMMAND_LINE: fputs("command line", out); break;
    }
}

/* A flag is given as 1 on a command line; in a file it is a word. */
static const char *shown(const sl_option *row, const char *text, uint64_t number)
{
    if (row->kind == SL_OPTION_FLAG)
        return number != 0 ? "yes" : "no";
    return text;
}

/* --- passwords --- */

/* kurrentdb://anna:***@host: from the first colon behind the scheme to the last @, which may be in a password. What is shown is
 * meant for a terminal, a ticket, a chat. */
sl_shown_address sl_address_without_password(const char *text)
{
    const char *const scheme = strstr(text, "://");
    const char *const user = scheme == NULL ? text : scheme + 3;
    const char *const colon = strchr(user, ':'), *const at = strrchr(user, '@');
    sl_shown_address hidden;

    if (colon == NULL || at == NULL || at < colon)
        snprintf(hidden.text, sizeof hidden.text, "%s", text);
    else
        snprintf(hidden.text, sizeof hidden.text, "%.*s:***%s", (int)(colon - text), text, at);
    return hidden;
}

/* Written to memory first, because the comment stands in a column behind it. */
static void print_setting(FILE *out, const sl_option *row, const char *text, uint64_t number)
{
    char *line = NULL;
    size_t line_bytes = 0;
    FILE *const to = open_memstream(&line, &line_bytes);

    if (to == NULL)
        return;
    fprintf(to, "%s = ", row->name);
    sl_config_write_value(to, shown(row, text, number));
    fclose(to);
    fprintf(out, "%-*s # ", SETTING_COLUMNS, line);
    free(line);
}

static void print_row(FILE *out, const sl_option *row, const sl_option_value *value, const char *path)
{
    const sl_option_repeat *each = value->all;
    char name[SL_OPTION_LABEL_BYTES];

    if (value->source == SL_OPTION_UNSET) {
        snprintf(name, sizeof name, "# %s =", row->name);
        fprintf(out, "%-*s # not set\n", SETTING_COLUMNS, name);
        return;
    }
    do {
        const char *const text = each == NULL ? value->text : each->text;
        print_setting(out, row, row->is_address ? sl_address_without_password(text).text : text,
                      value->number);
        print_source(out, row, value, path);
        fputc('\n', out);
        each = each == NULL ? NULL : each->next;
    } while (each != NULL);
}

/* --- JSON --- */

static void print_json_value(FILE *out, const sl_option *row, const char *text, uint64_t number)
{
    if (row->kind == SL_OPTION_FLAG)
        fputs(number != 0 ? "true" : "false", out);
    else if (row->kind == SL_OPTION_NUMBER)
        fprintf(out, "%" PRIu64, number);
    else
        sl_print_json_text(out, row->is_address ? sl_address_without_password(text).text : text);
}

static void print_json_values(FILE *out, const sl_option *row, const sl_option_value *value)
{
    if (value->source == SL_OPTION_UNSET) {
        fputs("null", out);
        return;
    }
    if (!row->repeats) {
        print_json_value(out, row, value->text, value->number);
        return;
    }
    fputc('[', out);
    for (const sl_option_repeat *each = value->all; each != NULL; each = each->next) {
        print_json_value(out, row, each->text, each->number);
        fputs(each->next == NULL ? "" : ", ", out);
    }
    fputc(']', out);
}

static const char *source_name(sl_option_source source)
{
    switch (source) {
    case SL_OPTION_UNSET: return "unset";
    case SL_OPTION_FROM_DEFAULT: return "default";
    case SL_OPTION_FROM_FILE: return "file";
    case SL_OPTION_FROM_ENVIRONMENT: return "environment";
    case SL_OPTION_FROM_COMMAND_LINE: return "command line";
    }
    return "";
}

static void print_json_row(FILE *out, const sl_option *row, const sl_option_value *value)
{
    fprintf(out, "\"%s\": {\"value\": ", row->name);
    print_json_values(out, row, value);
    fprintf(out, ", \"source\": \"%s\"", source_name(value->source));
    if (value->source == SL_OPTION_FROM_FILE)
        fprintf(out, ", \"line\": %u", value->line);
    if (value->source == SL_OPTION_FROM_ENVIRONMENT)
        fprintf(out, ", \"variable\": \"%s\"", row->environment);
    fputc('}', out);
}

/* --- both --- */

/* A flag that nobody has set is off, and that is its default. */
static sl_option_value in_force(const sl_option *row, const sl_option_value *value)
{
    if (row->kind == SL_OPTION_FLAG && value->source == SL_OPTION_UNSET)
        return (sl_option_value){ .source = SL_OPTION_FROM_DEFAULT, .text = "no" };
    return *value;
}

static void print_head(const sl_invocation *invocation, const char *path)
{
    FILE *const out = invocation->out;

    if (!invocation->json) {
        fprintf(out, "# Settings of 'sluice %s'; strongest first: command line, environment, ",
                invocation->command->name);
        fprintf(out, "file (--config), default.\n[%s]\n", invocation->command->name);
        return;
    }
    fprintf(out, "{\"command\": \"%s\", \"file\": ", invocation->command->name);
    if (path == NULL)
        fputs("null", out);
    else
        sl_print_json_text(out, path);
    fputs(", \"settings\": {", out);
}

static void print_either(const sl_invocation *invocation, const sl_option *row, const sl_option_value *value,
                         const char *path, bool *any)
{
    if (!invocation->json) {
        print_row(invocation->out, row, value, path);
        return;
    }
    fputs(*any ? ", " : "", invocation->out);
    print_json_row(invocation->out, row, value);
    *any = true;
}

/* --- members --- */

/* Only what its own section has decided: the rest stands in the section of the command, with the same effect. */
static void print_member_rows(const sl_invocation *invocation, const sl_option_table *table, const char *path,
                              size_t index)
{
    sl_option_value values[SL_OPTION_ROWS_MAX];
    sl_option_reading reading = { .table = table, .values = values };
    bool any = false;

    memcpy(values, invocation->values, table->row_count * sizeof values[0]);
    (void)sl_config_apply_member(invocation->config, invocation->command, index,
                                 &reading); /* the file was checked */
    for (size_t i = 0; i < table->row_count; i++) {
        if (sl_option_belongs(table, &table->rows[i]) && values[i].source == SL_OPTION_FROM_FILE &&
            sl_config_member_sets(invocation->config, invocation->command, index, &table->rows[i]))
            print_either(invocation, &table->rows[i], &values[i], path, &any);
    }
}

static void print_members(const sl_invocation *invocation, const sl_option_table *table, const char *path)
{
    const size_t count = sl_config_member_count(invocation->config, invocation->command);
    FILE *const out = invocation->out;

    if (count > 0 && invocation->json)
        fprintf(out, ", \"%ss\": {", invocation->command->member);
    for (size_t i = 0; i < count; i++) {
        const char *const name = sl_config_member_name(invocation->config, invocation->command, i);
        if (invocation->json)
            fprintf(out, "%s\"%s\": {", i == 0 ? "" : ", ", name);
        else
            fprintf(out, "\n[%s %s]\n", invocation->command->name, name);
        print_member_rows(invocation, table, path, i);
        fputs(invocation->json ? "}" : "", out);
    }
    fputs(count > 0 && invocation->json ? "}" : "", out);
}

void sl_config_print(const sl_invocation *invocation, const sl_option_table *table, const char *path)
{
    bool any = false;

    print_head(invocation, path);
    for (size_t i = 0; i < table->row_count; i++) {
        const sl_option *const row = &table->rows[i];
        const sl_option_value value = in_force(row, &invocation->values[i]);
        if (sl_option_belongs(table, row) && sl_config_has(row))
            print_either(invocation, row, &value, path, &any);
    }
    fputs(invocation->json ? "}" : "", invocation->out);
    print_members(invocation, table, path);
    fputs(invocation->json ? "}\n" : "", invocation->out);
}
