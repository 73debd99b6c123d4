/* cli/table.c — see cli/table.h. */
#include "cli/table.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/print.h"

enum {
    NUMBER_BYTES = 32,
    GAP = 2,
};

static void finish_cell(sl_table *table, size_t columns)
{
    fputc('\0', table->into);
    if (columns > table->widths[table->column])
        table->widths[table->column] = columns;
    table->column = (table->column + 1) % table->column_count;
}

void sl_table_text(sl_table *table, sl_str text)
{
    if (table->into == NULL)
        return;
    finish_cell(table, sl_print_safe(table->into, text, SL_TABLE_CELL_COLUMNS));
}

void sl_table_number(sl_table *table, int64_t value)
{
    char buffer[NUMBER_BYTES];

    snprintf(buffer, sizeof buffer, "%" PRId64, value);
    table->is_number[table->column] = true;
    sl_table_text(table, sl_str_from(buffer));
}

/* Exact below a minute; above it nobody wants to read milliseconds. */
void sl_table_duration(sl_table *table, uint64_t duration_ms)
{
    const uint64_t shown_ms = duration_ms < 60 * 1000 ? duration_ms : duration_ms - duration_ms % 1000;
    char buffer[NUMBER_BYTES * 2];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_duration(&text, shown_ms > UINT64_MAX / 1000000 ? UINT64_MAX : shown_ms * 1000000);
    table->is_number[table->column] = true;
    sl_table_text(table, sl_text_str(&text));
}

void sl_table_begin(sl_table *table, const char *heads)
{
    sl_str rest = sl_str_from(heads), head;

    *table = (sl_table){ .column_count = 1 };
    for (const char *c = heads; *c != '\0'; c++)
        table->column_count += *c == '|';
    assert(table->column_count <= SL_TABLE_COLUMNS_MAX);
    table->into = open_memstream(&table->text, &table->bytes);
    while (sl_str_cut(rest, '|', &head, &rest))
        sl_table_text(table, head);
    sl_table_text(table, rest);
}

static size_t columns_of(const char *cell)
{
    sl_str rest = sl_str_from(cell);
    size_t columns = 0;
    uint32_t code;

    while (rest.bytes > 0) {
        const size_t bytes = sl_utf8_first(rest, &code);
        rest = (sl_str){ rest.data + (bytes == 0 ? 1 : bytes), rest.bytes - (bytes == 0 ? 1 : bytes) };
        columns++;
    }
    return columns;
}

/* Blanks wait for a cell that is not empty, so that none stand at the end of a line. Returns those that wait. */
static size_t print_cell(const sl_table *table, size_t column, const char *cell, size_t blanks, FILE *out)
{
    const size_t columns = columns_of(cell);
    const size_t padding = columns < table->widths[column] ? table->widths[column] - columns : 0;
    const size_t before = table->is_number[column] ? padding : 0;

    if (columns == 0)
        return blanks + table->widths[column] + GAP;
    fprintf(out, "%*s%s", (int)(blanks + before), "", cell);
    return padding - before + GAP;
}

void sl_table_end(sl_table *table, FILE *out)
{
    size_t column = 0, blanks = 0;

    if (table->into == NULL)
        return;
    assert(table->column == 0);
    if (fclose(table->into) == 0) {
        for (const char *cell = table->text; cell < table->text + table->bytes; cell += strlen(cell) + 1) {
            blanks = print_cell(table, column, cell, blanks, out);
            column = (column + 1) % table->column_count;
            if (column == 0)
                fputc('\n', out);
            blanks = column == 0 ? 0 : blanks;
        }
    }
    free(table->text);
}
