/* cli/config_text.h — one line of a configuration file, both ways. */
#ifndef SL_CLI_CONFIG_TEXT_H
#define SL_CLI_CONFIG_TEXT_H

#include <stdio.h>

/* Cuts a zero-terminated line in place.
 *   a comment or nothing   *ret_key stays NULL
 *   [section]              *ret_key is its name, *ret_value stays NULL
 *   key = value            both are set; quotation marks and escapes are undone
 * Returns NULL, or a sentence that says what is wrong with it.
 *
 * A comment begins with # or ; at the beginning of a line or behind a blank. In quotation marks nothing begins a comment, and \",
 * \\ and \xNN (any byte but zero) stand for what cannot be written otherwise. */
const char *sl_config_cut_line(char *line, char **ret_key, char **ret_value);

/* Writes a value so that the function above reads the same bytes; in quotation marks where it needs them. */
void sl_config_write_value(FILE *out, const char *value);

#endif
