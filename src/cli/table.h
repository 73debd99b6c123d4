/* cli/table.h — rows of short texts for people, in columns that line up.
 *
 * All cells are known before the first line is printed, so it is for answers that are in memory anyway. Cells are made safe for a
 * terminal and cut; programs get JSON instead. */
#ifndef SL_CLI_TABLE_H
#define SL_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

enum {
    SL_TABLE_COLUMNS_MAX = 12,
    SL_TABLE_CELL_COLUMNS = 64 /* a longer text is cut there and ends with "...". Names of pods fit */
};

typedef struct sl_table {
    size_t column_count, widths[SL_TABLE_COLUMNS_MAX];
    bool is_number[SL_TABLE_COLUMNS_MAX]; /* lined up at the right */
    char *text; /* cells, each with a closing zero, row after row, heads first; NULL: memory was out */
    size_t bytes, column;
    FILE *into;
} sl_table;

/* Heads as one text: "NAME|IN FLIGHT". */
void sl_table_begin(sl_table *table, const char *heads);

/* The next cell; the row is over with its last column. */
void sl_table_text(sl_table *table, sl_str text);
void sl_table_number(sl_table *table, int64_t value);
void sl_table_duration(sl_table *table, uint64_t duration_ms);

/* Prints and frees. */
void sl_table_end(sl_table *table, FILE *out);

#endif
