/* cli/fields.h — names and values on one line: `name=value` for people, `"name": value` for programs. */
#ifndef SL_CLI_FIELDS_H
#define SL_CLI_FIELDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"
#include "base/uuid.h"
#include "core/effect.h"

typedef struct sl_fields {
    FILE *out;
    bool json;
    bool any; /* something was written: a separator comes before the next */
} sl_fields;

/* Only the name, for a value that the caller writes. */
void sl_field_name(sl_fields *fields, const char *name);

void sl_field_number(sl_fields *fields, const char *name, uint64_t value);
void sl_field_bool(sl_fields *fields, const char *name,
                   bool value); /* for people only what is true is shown */
void sl_field_word(sl_fields *fields, const char *name, const char *word);
void sl_field_text(sl_fields *fields, const char *name, sl_str text); /* any bytes */
void sl_field_uuid(sl_fields *fields, const char *name, sl_uuid value);
void sl_field_time(sl_fields *fields, const char *name, uint64_t wall_ns); /* since 1970; 0: not shown */

/* Bytes that may be anything: text where they are UTF-8, else hexadecimal under NAME_hex. */
void sl_field_bytes(sl_fields *fields, const char *name, sl_str bytes);

/* The name of a record of a group and all its fields (core/effect.h). */
void sl_field_effect(sl_fields *fields, const sl_effect *effect);

#endif
