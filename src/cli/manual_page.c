/* cli/manual_page.c — a row as roff, with the macros of man(7).
 *
 * Roff takes a dot or an apostrophe at the beginning of a line for a command, and a plain - for a hyphen that cannot be
 * copied to a shell. So every text goes through write_text(). */
#include <string.h>

#include <sluice.h>

#include "cli/manual.h"

enum {
    NAME_BYTES = 64
};

/* --- text --- */

static void write_char(FILE *out, char c)
{
    switch (c) {
    case '\\': fputs("\\e", out); break;
    case '-': fputs("\\-", out); break;
    case '\'': fputs("\\(aq", out); break;
    case '`': fputs("\\(ga", out); break;
    case '^': fputs("\\(ha", out); break;
    case '~': fputs("\\(ti", out); break;
    case '"': fputs("\\(dq", out); break;
    default: fputc(c, out); break;
    }
}

static void write_str(FILE *out, sl_str text)
{
    if (text.bytes > 0 && text.data[0] == '.')
        fputs("\\&", out);
    for (size_t i = 0; i < text.bytes; i++)
        write_char(out, text.data[i]);
}

static void write_text(FILE *out, const char *text)
{
    write_str(out, sl_str_from(text));
}

/* Paragraphs as in sl_command.details: an empty line begins one, a line that begins with a blank is shown as it is. */
static void write_paragraphs(FILE *out, const char *text)
{
    bool example = false;

    for (const char *line = text; *line != '\0';) {
        const size_t bytes = strcspn(line, "\n");
        const bool is_example = line[0] == ' ';

        if (is_example != example)
            fputs(is_example ? ".PP\n.RS 4\n.EX\n" : ".EE\n.RE\n", out);
        example = is_example;
        if (bytes == 0 && line[1] != '\0')
            fputs(".PP", out);
        if (bytes > 0)
            write_str(out, (sl_str){ line + 2 * is_example, bytes - 2 * is_example });
        fputs(bytes > 0 || line[1] != '\0' ? "\n" : "", out);
        line += bytes + (line[bytes] == '\n');
    }
    fputs(example ? ".EE\n.RE\n" : "", out);
}

/* --- parts of a page --- */

static void write_head(FILE *out, const char *name, const char *summary)
{
    char upper[NAME_BYTES];
    size_t i = 0;

    for (; name[i] != '\0' && i < sizeof upper - 1; i++)
        upper[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
    upper[i] = '\0';
    fprintf(out,
            ".\\\" Made by 'sluice manual' from the tables in src/cli.\n.TH \"%s\" 1 \"\" \"sluice %s\" "
            "\"Sluice\"\n",
            upper, sl_version());
    fputs(".SH NAME\n", out);
    write_text(out, name);
    fputs(" \\- ", out);
    write_text(out, summary);
    fputc('\n', out);
}

/* "sluice-journal-verify" */
static void page_name(const sl_command *command, char name[static NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "sluice-%s", command->name);
    for (char *c = name; *c != '\0'; c++)
        *c = *c == ' ' ? '-' : *c;
}

static void write_label(FILE *out, const sl_option *row)
{
    fputs(".TP\n", out);
    if (row->letter != 0)
        fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
    fputs("\\fB\\-\\-", out);
    write_text(out, row->name);
    fputs("\\fR", out);
    if (row->argument != NULL) {
        fputs(" \\fI", out);
        write_text(out, row->argument);
        fputs("\\fR", out);
    }
    fputc('\n', out);
}

/* A phrase of the table as a sentence: with a capital letter and a full stop. */
static void write_sentence(FILE *out, sl_str phrase)
{
    const char first = phrase.data[0];

    write_char(out, first >= 'a' && first <= 'z' ? (char)(first - 'a' + 'A') : first);
    write_str(out, (sl_str){ phrase.data + 1, phrase.bytes - 1 });
    fputs(".\n", out);
}

static void write_option(FILE *out, const sl_option *row)
{
    char bounds[SL_OPTION_BOUNDS_BYTES];

    write_label(out, row);
    write_sentence(out, sl_str_from(row->help));
    if (row->kind != SL_OPTION_FLAG && row->kind != SL_OPTION_TEXT) {
        fputs("Allowed: ", out);
        write_text(out, sl_option_bounds(row, bounds));
        fputs(".\n", out);
    }
    if (row->default_text != NULL) {
        fputs("Default: ", out);
        write_text(out, row->default_text);
        fputs(".\n", out);
    }
    if (row->repeats)
        fputs("May be given several times.\n", out);
    if (row->environment != NULL)
        fprintf(out, "Environment: \\fB%s\\fR.\n", row->environment);
    if (row->more != NULL) {
        fputs(".sp\n", out);
        write_text(out, row->more);
        fputc('\n', out);
    }
}

static void write_options(FILE *out, const sl_command *command)
{
    const sl_option_table table = sl_command_options(command);

    fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; i < table.row_count; i++) {
        if (sl_option_belongs(&table, &table.rows[i]))
            write_option(out, &table.rows[i]);
    }
}

static void write_exits(FILE *out, const char *exits)
{
    fputs(".SH EXIT STATUS\n", out);
    for (const char *line = exits; *line != '\0'; line += strcspn(line, "\n") + 1) {
        fprintf(out, ".TP\n\\fB%c\\fR\n", line[0]);
        write_sentence(out, (sl_str){ line + 2, strcspn(line + 2, "\n") });
    }
}

static void write_reference(FILE *out, const char *name, bool last)
{
    fputs(".BR ", out);
    write_text(out, name);
    fprintf(out, " (1)%s\n", last ? "" : ",");
}

/* --- pages --- */

static void write_command_page(const sl_command *command, FILE *out)
{
    char name[NAME_BYTES];

    page_name(command, name);
    write_head(out, name, command->summary);
    fputs(".SH SYNOPSIS\n\\fBsluice ", out);
    write_text(out, command->name);
    fputs("\\fR \\fI", out);
    write_text(out, command->words);
    fprintf(out, "\\fR%s[\\fIOPTION\\fR]...\n", command->words[0] == '\0' ? "" : " ");
    fputs(".SH DESCRIPTION\n", out);
    write_paragraphs(out, command->details);
    write_options(out, command);
    write_exits(out, command->exits == NULL ? SL_EXITS_USUAL : command->exits);
    if (command->examples != NULL) {
        fputs(".SH EXAMPLES\n", out);
        write_paragraphs(out, command->examples);
    }
    fputs(".SH SEE ALSO\n", out);
    write_reference(out, "sluice", true);
}

static void write_commands(FILE *out)
{
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; i < sl_command_count; i++) {
        fputs(".TP\n\\fB", out);
        write_text(out, sl_commands[i]->name);
        fputs("\\fR\n", out);
        write_sentence(out, sl_str_from(sl_commands[i]->summary));
    }
}

/* Rows of several commands may share a variable; the first one tells what it is. */
static bool is_told(size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (sl_options[i].environment != NULL &&
            strcmp(sl_options[i].environment, sl_options[index].environment) == 0)
            return true;
    }
    return false;
}

static void write_environment(FILE *out)
{
    fputs(".SH ENVIRONMENT\n"
          "Each variable is an option of the same name; an empty one counts as not set.\n",
          out);
    for (size_t i = 0; i < SL_OPT_COUNT_; i++) {
        if (sl_options[i].environment == NULL || is_told(i))
            continue;
        fprintf(out, ".TP\n\\fB%s\\fR\n", sl_options[i].environment);
        write_sentence(out, sl_str_from(sl_options[i].help));
    }
}

static const char file_text[] =
    "A file that --config or SLUICE_CONFIG names has a section for each command and lines with the names of "
    "the long "
    "options. A family of commands may have a section of its own, and lines before the first section are for "
    "all commands "
    "that have such an option:\n"
    "\n"
    "  json = yes\n"
    "  [budget]\n"
    "  grace = 45s    ; from SIGTERM to SIGKILL\n"
    "\n"
    "A comment begins with # or ; behind a blank. A value that has one of these, or blanks at its ends, "
    "stands in quotation "
    "marks; in these \\\", \\\\ and \\xNN are a quotation mark, a backslash and any other byte. A flag is "
    "yes or no. An option that "
    "may be given several times has several lines.\n"
    "\n"
    "Command line, environment, file, default: what comes first wins. The whole file is checked, also what "
    "is for other "
    "commands. With --print-config a command shows what it would use and where each value comes from.\n";

static void write_overview(FILE *out)
{
    char name[NAME_BYTES];

    write_head(out, "sluice", "message delivery that a deploy neither loses nor repeats");
    fputs(".SH SYNOPSIS\n\\fBsluice\\fR \\fICOMMAND\\fR [\\fIWORD\\fR]... [\\fIOPTION\\fR]...\n.SH "
          "DESCRIPTION\n",
          out);
    write_paragraphs(
        out,
        "The first word says what is done; each command has a page of its own. Whatever is not understood is "
        "answered with a sentence that names the nearest thing that exists, and nothing is done.\n");
    write_commands(out);
    fputs(".SH CONFIGURATION FILE\n", out);
    write_paragraphs(out, file_text);
    write_environment(out);
    write_exits(out, "0 done\n1 it did not work\n" SL_EXITS_USAGE
                     "3 the journal is damaged\n4 a consumer still holds messages\n");
    fputs(".SH SEE ALSO\n", out);
    for (size_t i = 0; i < sl_command_count; i++) {
        page_name(sl_commands[i], name);
        write_reference(out, name, i + 1 == sl_command_count);
    }
}

void sl_manual_page(const sl_command *command, FILE *out)
{
    if (command == NULL)
        write_overview(out);
    else
        write_command_page(command, out);
}
