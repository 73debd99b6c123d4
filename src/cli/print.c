/* cli/print.c — see cli/print.h.
 *
 * A column is a byte here. Help texts are ASCII; a quoted word of a user may not be, and then a line is a
 * little shorter than it could be, never longer. */
#include "cli/print.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"
#include "base/utf8.h"

enum {
    ESCAPE_BYTES = 5,        /* \xNN and the closing zero */
    BESIDE_COLUMNS_MIN = 30, /* text beside a label needs so much room, or it goes below */
    BELOW_INDENT = 6,
};
static const char cut_mark[] = "...";

/* C0, DEL and C1: what a terminal obeys instead of showing it. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* --- quoting --- */

/* The next piece of a quoted word: a character as it is, or one byte as an escape. Returns the bytes used. */
static size_t next_piece(sl_str word, char escape[static ESCAPE_BYTES], sl_str *ret_piece)
{
    uint32_t code = 0;
    const size_t bytes = sl_utf8_first(word, &code);

    if (bytes != 0 && !is_control(code) && code != '\\') {
        *ret_piece = (sl_str){ word.data, bytes };
        return bytes;
    }
    if (word.data[0] == '\\')
        snprintf(escape, ESCAPE_BYTES, "\\\\");
    else
        snprintf(escape, ESCAPE_BYTES, "\\x%02x", (unsigned char)word.data[0]);
    *ret_piece = sl_str_from(escape);
    return 1;
}

void sl_quote_into(char *buffer, size_t capacity, const char *word)
{
    const size_t room = capacity - sizeof cut_mark;
    sl_text text;
    sl_str rest = sl_str_from(word), piece;
    char escape[ESCAPE_BYTES];

    sl_text_init(&text, buffer, capacity);
    while (rest.bytes > 0) {
        const size_t used = next_piece(rest, escape, &piece);
        if (text.bytes + piece.bytes > room) {
            sl_text_add(&text, cut_mark);
            break;
        }
        sl_text_add_str(&text, piece);
        rest = (sl_str){ rest.data + used, rest.bytes - used };
    }
}

sl_quoted sl_quote(const char *word)
{
    sl_quoted quoted;

    sl_quote_into(quoted.text, sizeof quoted.text, word);
    return quoted;
}

/* The quotation mark itself is escaped, so that the end of the text can be seen. */
void sl_print_quoted(FILE *out, sl_str text)
{
    char escape[ESCAPE_BYTES];
    sl_str piece;

    fputc('"', out);
    while (text.bytes > 0) {
        const size_t used = next_piece(text, escape, &piece);
        if (piece.bytes == 1 && piece.data[0] == '"')
            fputc('\\', out);
        fwrite(piece.data, 1, piece.bytes, out);
        text = (sl_str){ text.data + used, text.bytes - used };
    }
    fputc('"', out);
}

/* A character is a column, an escape as many as it has letters. */
static size_t columns_of(sl_str piece)
{
    return (unsigned char)piece.data[0] < 0x80 ? piece.bytes : 1;
}

/* How much of the text, in bytes, fits into so many columns. */
static size_t fitting_bytes(sl_str text, size_t columns_max)
{
    char escape[ESCAPE_BYTES];
    sl_str rest = text, piece;
    size_t columns = 0;

    while (rest.bytes > 0) {
        const size_t used = next_piece(rest, escape, &piece);
        columns += columns_of(piece);
        if (columns > columns_max)
            break;
        rest = (sl_str){ rest.data + used, rest.bytes - used };
    }
    return text.bytes - rest.bytes;
}

size_t sl_print_safe(FILE *out, sl_str text, size_t columns_max)
{
    const size_t mark_columns = sizeof cut_mark - 1;
    const bool is_cut = fitting_bytes(text, columns_max) < text.bytes;
    char escape[ESCAPE_BYTES];
    size_t columns = 0;
    sl_str piece;

    if (is_cut)
        text.bytes = columns_max <= mark_columns ? 0 : fitting_bytes(text, columns_max - mark_columns);
    while (text.bytes > 0) {
        const size_t used = next_piece(text, escape, &piece);
        fwrite(piece.data, 1, piece.bytes, out);
        columns += columns_of(piece);
        text = (sl_str){ text.data + used, text.bytes - used };
    }
    fputs(is_cut ? cut_mark : "", out);
    return columns + (is_cut ? mark_columns : 0);
}

void sl_print_bytes(FILE *out, uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    fprintf(out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

/* --- lines --- */

size_t sl_print_columns(FILE *out)
{
    const int descriptor = fileno(out);
    struct winsize size = { 0 };

    if (descriptor < 0 || !isatty(descriptor) || ioctl(descriptor, TIOCGWINSZ, &size) != 0 ||
        size.ws_col == 0)
        return SL_PRINT_COLUMNS;
    if (size.ws_col < SL_PRINT_COLUMNS_MIN)
        return SL_PRINT_COLUMNS_MIN;
    return size.ws_col > SL_PRINT_COLUMNS_MAX ? SL_PRINT_COLUMNS_MAX : size.ws_col;
}

static void begin_line(FILE *out, size_t indent)
{
    fprintf(out, "\n%*s", (int)indent, "");
}

/* One paragraph, broken at its blanks. */
static void print_paragraph(FILE *out, sl_print_place place, sl_str text)
{
    const size_t columns = sl_print_columns(out);
    size_t column = place.column;
    bool first = true;

    while (text.bytes > 0) {
        const size_t word_bytes = sl_str_find(text, ' ');
        const size_t step = word_bytes < text.bytes ? word_bytes + 1 : word_bytes;

        if (!first && column + 1 + word_bytes > columns) {
            begin_line(out, place.indent);
            column = place.indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fwrite(text.data, 1, word_bytes, out);
        column += word_bytes;
        first = false;
        text = (sl_str){ text.data + step, text.bytes - step };
    }
}

void sl_print_wrapped(FILE *out, sl_print_place place, const char *text)
{
    sl_str rest = sl_str_from(text);

    for (;;) {
        const size_t line_bytes = sl_str_find(rest, '\n');
        const sl_str line = { rest.data, line_bytes };

        if (line_bytes > 0 && line.data[0] == ' ')
            fwrite(line.data, 1, line_bytes, out);
        else
            print_paragraph(out, place, line);
        if (line_bytes == rest.bytes)
            break;
        rest = (sl_str){ rest.data + line_bytes + 1, rest.bytes - line_bytes - 1 };
        fputc('\n', out);
        place.column = 0;
        if (rest.bytes > 0 && rest.data[0] != '\n' && place.indent > 0) {
            fprintf(out, "%*s", (int)place.indent, "");
            place.column = place.indent;
        }
    }
    fputc('\n', out);
}

void sl_print_entry(FILE *out, const char *label, size_t label_width, const char *text)
{
    size_t column = 2 + label_width + 2;

    if (column + BESIDE_COLUMNS_MIN > sl_print_columns(out)) {
        column = BELOW_INDENT;
        fprintf(out, "  %s\n%*s", label, BELOW_INDENT, "");
    } else {
        fprintf(out, "  %-*s  ", (int)label_width, label);
    }
    sl_print_wrapped(out, (sl_print_place){ .column = column, .indent = column }, text);
}

void sl_print_complaint(FILE *err, const char *sentences)
{
    static const char name[] = "sluice: ";

    fputs(name, err);
    if (isatty(fileno(err)))
        sl_print_wrapped(err, (sl_print_place){ .column = sizeof name - 1, .indent = 0 }, sentences);
    else
        fprintf(err, "%s\n", sentences);
}

/* --- JSON --- */

/* Bytes that are no UTF-8 cannot be in JSON at all; they become the character that says so, U+FFFD. */
static size_t print_json_piece(FILE *out, sl_str text)
{
    uint32_t code = 0;
    const size_t bytes = sl_utf8_first(text, &code);

    if (bytes == 0)
        fputs("\\ufffd", out);
    else if (is_control(code))
        fprintf(out, "\\u%04x", (unsigned)code);
    else if (code == '"' || code == '\\')
        fprintf(out, "\\%c", (char)code);
    else
        fwrite(text.data, 1, bytes, out);
    return bytes == 0 ? 1 : bytes;
}

void sl_print_json_str(FILE *out, sl_str text)
{
    fputc('"', out);
    while (text.bytes > 0) {
        const size_t used = print_json_piece(out, text);
        text = (sl_str){ text.data + used, text.bytes - used };
    }
    fputc('"', out);
}

void sl_print_json_text(FILE *out, const char *text)
{
    sl_print_json_str(out, sl_str_from(text));
}

sl_duration_words sl_duration_in_words(uint64_t duration_ns)
{
    sl_duration_words words;
    sl_text text;

    sl_text_init(&text, words.text, sizeof words.text);
    sl_text_add_duration(&text, duration_ns);
    return words;
}

const char *sl_print_stopped(sl_text *sentence)
{
    const char last = sentence->bytes == 0 ? '\0' : sentence->data[sentence->bytes - 1];

    if (last != '.' && last != '?')
        sl_text_add_char(sentence, '.');
    return sentence->data;
}
