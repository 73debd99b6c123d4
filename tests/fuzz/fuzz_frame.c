/* tests/fuzz/fuzz_frame.c — hostile bytes as a frame of the journal.
 *
 * The first byte chooses the segment, the rest is where a frame should stand. Whatever is there, nothing behind its end
 * is read, and what is accepted can be walked record by record up to exactly its size. Checksums would stop a fuzzer
 * at the door, so the input is also tried with its checksums put right. */
#include "base/crc32c.h"
#include "store/journal/format.h"
#include "store/journal/records.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

static bool is_inside(const sl_record_view *record, sl_str text)
{
    const char *const payload = (const char *)record->payload;

    return text.bytes == 0 ||
           (text.data >= payload && text.data + text.bytes <= payload + record->payload_bytes);
}

/* Whatever a payload says, all that is read of it lies inside it. */
static void check_payload(const sl_record_view *record)
{
    sl_group_state state;
    uint64_t group;
    sl_event event;
    sl_str rest;

    if (sl_event_get(record, &event) == SL_OK)
        assert(is_inside(record, event.stream) && is_inside(record, event.type) &&
               is_inside(record, event.data) && is_inside(record, event.metadata));
    if (sl_group_get(record, &group, &rest) == SL_OK)
        assert(is_inside(record, rest));
    if (sl_group_state_get(record, &state) == SL_OK)
        assert(is_inside(record, state.definition) &&
               is_inside(record, (sl_str){ (const char *)state.bytes, state.byte_count }));
}

static void check(const uint8_t *at, size_t bytes, uint32_t seed)
{
    sl_frame_header header;
    size_t offset = SL_FRAME_HEADER_BYTES;
    uint64_t end, next;

    if (sl_frame_check(at, bytes, seed, &header, &end) != SL_OK)
        return;
    next = header.first_position;
    assert(header.bytes <= bytes);
    for (uint32_t i = 0; i < header.record_count; i++) {
        sl_record_view record;
        const sl_err err = sl_record_get(at + offset, header.bytes - offset, seed, &record);
        assert(err == SL_OK && record.payload_bytes <= record.bytes);
        assert(header.sparse ? record.position >= next : record.position == next);
        next = record.position + 1;
        check_payload(&record);
        offset += record.bytes;
    }
    assert(offset == header.bytes && next == end);
}

/* As if whoever made these bytes knew the seed. */
static void repair(uint8_t *at, size_t bytes, uint32_t seed)
{
    size_t offset = SL_FRAME_HEADER_BYTES;

    if (bytes < SL_FRAME_HEADER_BYTES)
        return;
    sl_put_u32(at + 44, sl_crc32c(seed, at, 44));
    while (bytes - offset >= SL_RECORD_HEADER_BYTES) {
        const uint32_t record_bytes = sl_get_u32(at + offset + 4);
        if (record_bytes < SL_RECORD_HEADER_BYTES || record_bytes > bytes - offset)
            return;
        sl_put_u32(at + offset, sl_crc32c(seed, at + offset + 4, record_bytes - 4));
        offset += record_bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    uint32_t seed;
    uint8_t *copy;

    if (data_bytes == 0)
        return 0;
    seed = sl_segment_seed((sl_uuid){ { data[0] } }, data[0]);
    check(data + 1, data_bytes - 1, seed);
    copy = malloc(data_bytes);
    memcpy(copy, data + 1, data_bytes - 1);
    repair(copy, data_bytes - 1, seed);
    check(copy, data_bytes - 1, seed);
    free(copy);
    return 0;
}
