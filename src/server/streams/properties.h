/* server/streams/properties.h — the properties of a record as the JSON that every other reader knows as the event's metadata.
 *
 *      {"a property":1,...,"$schema.name":"order-placed","$schema.format":"Json","$schema.id":"..."} */
#ifndef SL_SERVER_STREAMS_PROPERTIES_H
#define SL_SERVER_STREAMS_PROPERTIES_H

#include "base/buf.h"
#include "wire/multi_append.h"

/* Appends the JSON to `out`. Properties are sorted by name, since a map on the wire has no order; of two with one name the last
 * counts, and the schema goes before properties that have its names. What has no value becomes null.
 *   SL_OK
 *   SL_ERR_INVALID    a number that JSON has no word for, or a schema format that nobody knows
 *   SL_ERR_TOO_LARGE  the limit of `out`
 *   SL_ERR_NOMEM */
sl_err sl_properties_write(const sl_multi_record *record, sl_arena *scratch, sl_buf *out);

/* "Json", "Protobuf", "Avro", "Bytes"; NULL for anything else. */
const char *sl_schema_format_name(int32_t format);

#endif
