/* cli/print.h — how commands write: foreign words in safe quotation, text in lines that fit, JSON.
 *
 * Everything that comes from outside (argv, the environment) passes through sl_quote() or
 * sl_print_json_text() before it is shown: a control character in an argument could otherwise move the cursor,
 * change colours or rewrite what the terminal has shown before. */
#ifndef SL_CLI_PRINT_H
#define SL_CLI_PRINT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

enum {
    SL_PRINT_COLUMNS = 80,      /* where the width is not known: files, pipes */
    SL_PRINT_COLUMNS_MIN = 40,  /* in less, no layout helps */
    SL_PRINT_COLUMNS_MAX = 120, /* longer lines are hard to read, however wide the window is */
    SL_QUOTE_BYTES = 80,
    SL_DURATION_WORDS_BYTES = 40,
};

typedef struct sl_quoted {
    char text[SL_QUOTE_BYTES]; /* without the quotation marks */
} sl_quoted;

/* The word as it may be shown: control characters and bytes that are no UTF-8 as \x1b, a long one cut and ended
 * with "...". A backslash is doubled, so that a word cannot pretend to hold an escape. */
sl_quoted sl_quote(const char *word);

/* The same for sentences that hold such words; capacity of at least SL_QUOTE_BYTES. */
void sl_quote_into(char *buffer, size_t capacity, const char *word);

/* How wide lines may be: the width of the terminal between the two bounds, or SL_PRINT_COLUMNS. */
size_t sl_print_columns(FILE *out);

/* Prints `text` in lines of at most sl_print_columns(), broken at blanks, and ends the last one. Lines
 * after the first begin with `indent` blanks; `column` is where the first one begins. A line break in the text
 * is kept, and a line of it that begins with a blank is an example: it is printed as it is. */
typedef struct sl_print_place {
    size_t column, indent;
} sl_print_place;
void sl_print_wrapped(FILE *out, sl_print_place place, const char *text);

/* A row of a list: two blanks, the label padded to label_width, two blanks, the text beside it; on a narrow terminal the
 * text stands below. */
void sl_print_entry(FILE *out, const char *label, size_t label_width, const char *text);

/* "sluice: " and the sentences: in lines that fit when `err` is a terminal, on one line when it is a log. */
void sl_print_complaint(FILE *err, const char *sentences);

/* The text as a JSON string, with its quotation marks; the second one also with zero bytes in it. */
void sl_print_json_text(FILE *out, const char *text);
void sl_print_json_str(FILE *out, sl_str text);

/* All of the text between quotation marks, made safe as by sl_quote(), which cuts: for names and data in a listing. */
void sl_print_quoted(FILE *out, sl_str text);

/* The same without quotation marks, and cut behind columns_max characters, "..." included. Returns how many were printed. */
size_t sl_print_safe(FILE *out, sl_str text, size_t columns_max);

/* Problems are sentences with or without their full stop, as the part that tells them has it: with exactly one. Returns the text. */
const char *sl_print_stopped(sl_text *sentence);

/* "1m30s": for a place in the middle of a sentence or a table. */
typedef struct sl_duration_words {
    char text[SL_DURATION_WORDS_BYTES];
} sl_duration_words;
sl_duration_words sl_duration_in_words(uint64_t duration_ns);

/* "512 B", "64.0 MiB": for people; programs get the number. */
void sl_print_bytes(FILE *out, uint64_t bytes);

#endif
