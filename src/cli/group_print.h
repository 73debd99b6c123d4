/* cli/group_print.h — what is known about a group: as JSON, in lines for people, on one line for those who watch. */
#ifndef SL_CLI_GROUP_PRINT_H
#define SL_CLI_GROUP_PRINT_H

#include <stdio.h>

#include "cli/fields.h"
#include "wire/persistent_client.h"

/* All fields, without the braces around them. */
void sl_group_print_json(sl_fields *fields, const sl_wire_group_info *info);

/* Several lines, consumers in a table. */
void sl_group_print_lines(FILE *out, const sl_wire_group_info *info);

/* `Live  consumers 2  in flight 3 ...`, without an end of line. */
void sl_group_print_figures(FILE *out, const sl_wire_group_info *info);

#endif
