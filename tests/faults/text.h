/* tests/faults/text.h — what is written, made from a number: so that reading can compare every byte, and nothing has to be
 * kept. */
#ifndef SL_TESTS_FAULTS_TEXT_H
#define SL_TESTS_FAULTS_TEXT_H

#include "store/store.h"

enum {
    TEXT_DATA_BYTES_MAX = 8000, /* many sectors, and a good part of the smallest segment */
    TEXT_METADATA_BYTES_MAX = 64,
    TEXT_NAME_BYTES_MAX = 256,
    TEXT_DEFINITION_BYTES_MAX = 1500,
    TEXT_EVENT_BYTES_MAX = TEXT_DATA_BYTES_MAX + TEXT_METADATA_BYTES_MAX + 32,
};

sl_uuid text_id(uint64_t number);
uint64_t text_number(sl_uuid id); /* UINT64_MAX: none of ours */

/* How much data event `number` has: from nothing to TEXT_DATA_BYTES_MAX, mostly little. */
size_t text_data_bytes(uint64_t number);

/* The event; its texts stand in memory, TEXT_EVENT_BYTES_MAX of it. */
sl_event_in text_event(uint64_t number, char *memory);

/* Event `number` of a $$ stream, that says these two. */
sl_event_in text_metadata(uint64_t number, int64_t truncate_before, int64_t max_count, char *memory);

/* When the op that makes event `number` happens. */
uint64_t text_created_ns(uint64_t number);

/* "stream-7-xxxx" and "$$stream-7-xxxx"; good for ever. */
sl_str text_stream(int stream, bool is_metadata);

/* What a group is created or updated with. */
sl_str text_definition(uint64_t number, char memory[TEXT_DEFINITION_BYTES_MAX]);

/* A record of a group, of one of several kinds. */
sl_effect text_record(uint64_t number);

#endif
