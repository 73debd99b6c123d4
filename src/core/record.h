/* core/record.h — records of a group as bytes, for whatever store keeps them.
 *
 * One byte of kind, then the fields of that kind in the order of core/effect.h, little-endian, each at its
 * full width: booleans, enums and lanes one byte, uuids sixteen. No length and no checksum: the store frames
 * what it writes. The layout of a kind never changes; a new need is a new kind. */
#ifndef SL_CORE_RECORD_H
#define SL_CORE_RECORD_H

#include "core/effect.h"

#include <stddef.h>

enum {
    SL_RECORD_BYTES_MAX = 128
};

/* Writes at most SL_RECORD_BYTES_MAX bytes and returns how many. The effect must be a record. */
size_t sl_record_encode(const sl_effect *record, uint8_t bytes[SL_RECORD_BYTES_MAX]);

/* Reads one record from the front of `bytes`.
 *   SL_OK            *ret_used bytes were it
 *   SL_ERR_CORRUPT   an unknown kind, a value that no record can have, or cut short */
sl_err sl_record_decode(const uint8_t *bytes, size_t byte_count, sl_effect *ret_record, size_t *ret_used);

#endif
