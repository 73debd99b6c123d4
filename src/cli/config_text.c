/* cli/config_text.c — see cli/config_text.h. Reading and writing stand side by side, because each must undo the other. */
#include "cli/config_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cli/print.h"

static const char blanks[] = " \t\r";

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool begins_comment(char c)
{
    return c == '#' || c == ';';
}

static char *skip_blanks(char *at)
{
    return at + strspn(at, blanks);
}

static void cut_end(char *begin, char *end)
{
    while (end > begin && is_blank(end[-1]))
        end--;
    *end = '\0';
}

/* Is there nothing but a comment left? */
static bool is_rest(char *at)
{
    at = skip_blanks(at);
    return *at == '\0' || begins_comment(*at);
}

/* What stands behind a backslash; *at is moved behind it. False: no escape of ours. */
static bool read_escape(char **at, char *ret_byte)
{
    const char kind = (*at)[0];

    if (kind == '"' || kind == '\\') {
        *ret_byte = kind;
        *at += 1;
        return true;
    }
    if (kind != 'x')
        return false;
    const int byte = sl_str_hex_byte(sl_str_from(*at + 1));
    if (byte <= 0)
        return false;
    *ret_byte = (char)(unsigned char)byte;
    *at += 3;
    return true;
}

/* `at` is behind the opening mark. The text becomes shorter or stays as long, so it is written over itself. */
static const char *cut_quoted(char *at, char **ret_value)
{
    char *to = at;

    *ret_value = at;
    while (*at != '"') {
        if (*at == '\0')
            return "the quotation mark at the beginning has none at the end.";
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        at++;
        if (!read_escape(&at, to++))
            return "in quotation marks a backslash needs another one, a quotation mark or x and two digits "
                   "behind "
                   "it.";
    }
    if (!is_rest(at + 1))
        return "there is something behind the closing quotation mark.";
    *to = '\0';
    return NULL;
}

static void cut_plain(char *at, char **ret_value)
{
    char *end = at;

    while (*end != '\0' && !(begins_comment(*end) && (end == at || is_blank(end[-1]))))
        end++;
    cut_end(at, end);
    *ret_value = at;
}

static const char *cut_section(char *at, char **ret_name)
{
    char *const end = strchr(at, ']');

    if (end == NULL)
        return "a section needs a ] at its end.";
    if (!is_rest(end + 1))
        return "there is something behind the ].";
    *ret_name = skip_blanks(at);
    cut_end(*ret_name, end);
    return **ret_name == '\0' ? "a section needs a name between [ and ]." : NULL;
}

const char *sl_config_cut_line(char *line, char **ret_key, char **ret_value)
{
    char *const at = skip_blanks(line);
    char *equals;

    if (is_rest(at))
        return NULL;
    if (*at == '[')
        return cut_section(at + 1, ret_key);
    equals = strchr(at, '=');
    if (equals == NULL)
        return "this is neither NAME = VALUE nor [COMMAND].";
    if (equals == at)
        return "there is no name before the =.";
    cut_end(at, equals);
    *ret_key = at;
    char *const value = skip_blanks(equals + 1);
    if (*value == '"')
        return cut_quoted(value + 1, ret_value);
    cut_plain(value, ret_value);
    return NULL;
}

static bool needs_quotes(const char *value)
{
    const size_t bytes = strlen(value);

    if (bytes == 0 || is_blank(value[0]) || is_blank(value[bytes - 1]))
        return true;
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)value[i];
        if (c < ' ' || c > '~' || strchr("#;\"\\", c) != NULL)
            return true;
    }
    return false;
}

void sl_config_write_value(FILE *out, const char *value)
{
    if (needs_quotes(value))
        sl_print_quoted(out, sl_str_from(value));
    else
        fputs(value, out);
}
