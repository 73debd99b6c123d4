/* store/journal/format.c — segment, frame and record headers. Offsets stand in one table for each. */
#include "store/journal/format.h"

#include "base/crc32c.h"

#include <assert.h>
#include <string.h>

static const char segment_magic[8] = { 'S', 'l', 'u', 'i', 'c', 'e', 'J', '\n' };

#define FRAME_MAGIC UINT32_C(0x4d524c53) /* "SLRM" */

enum {                   /* segment header */
    SEGMENT_VERSION = 8, /* then four zeros */
    SEGMENT_NUMBER = 16,
    SEGMENT_BYTES = 24,
    SEGMENT_STORE = 32,
    SEGMENT_REWRITES = 48,
    SEGMENT_FIRST = 56,
    SEGMENT_END = 64,
    SEGMENT_GROUPS_FROM = 72,
    SEGMENT_CRC = 80,
};

enum { /* frame header */
    FRAME_MAGIC_AT = 0,
    FRAME_BYTES = 4,
    FRAME_FIRST = 8,
    FRAME_DURABLE = 16,
    FRAME_EPOCH = 24,
    FRAME_COUNT = 32,
    FRAME_FLAGS = 36, /* then four zeros */
    FRAME_CRC = 44,
};
#define FRAME_SPARSE UINT32_C(1)
static_assert(FRAME_CRC + 4 == SL_FRAME_HEADER_BYTES, "the checksum ends the header");

enum {              /* record header */
    RECORD_CRC = 0, /* of everything behind it */
    RECORD_BYTES = 4,
    RECORD_POSITION = 8,
    RECORD_PAYLOAD_BYTES = 16,
    RECORD_KIND = 20, /* one byte, three zeros */
};
static_assert(RECORD_KIND + 4 == SL_RECORD_HEADER_BYTES, "the payload follows");

uint32_t sl_segment_seed(sl_uuid store, uint64_t number)
{
    uint8_t bytes[8];

    sl_put_u64(bytes, number);
    return sl_crc32c(sl_crc32c(0, store.bytes, sizeof store.bytes), bytes, sizeof bytes);
}

void sl_segment_header_put(const sl_segment_header *header, uint8_t block[SL_SEGMENT_HEADER_BYTES])
{
    memset(block, 0, SL_SEGMENT_HEADER_BYTES);
    memcpy(block, segment_magic, sizeof segment_magic);
    sl_put_u32(block + SEGMENT_VERSION, header->version);
    sl_put_u64(block + SEGMENT_NUMBER, header->number);
    sl_put_u64(block + SEGMENT_BYTES, header->segment_bytes);
    memcpy(block + SEGMENT_STORE, header->store.bytes, sizeof header->store.bytes);
    sl_put_u64(block + SEGMENT_REWRITES, header->rewrites);
    sl_put_u64(block + SEGMENT_FIRST, header->first);
    sl_put_u64(block + SEGMENT_END, header->end);
    sl_put_u64(block + SEGMENT_GROUPS_FROM, header->groups_from);
    sl_put_u32(block + SEGMENT_CRC, sl_crc32c(0, block, SEGMENT_CRC));
}

sl_err sl_segment_header_get(const uint8_t block[SL_SEGMENT_HEADER_BYTES], sl_segment_header *ret_header)
{
    if (memcmp(block, segment_magic, sizeof segment_magic) != 0)
        return SL_ERR_CORRUPT;
    if (sl_get_u32(block + SEGMENT_CRC) != sl_crc32c(0, block, SEGMENT_CRC))
        return SL_ERR_CORRUPT;
    *ret_header = (sl_segment_header){ .version = sl_get_u32(block + SEGMENT_VERSION),
                                       .number = sl_get_u64(block + SEGMENT_NUMBER),
                                       .segment_bytes = sl_get_u64(block + SEGMENT_BYTES),
                                       .rewrites = sl_get_u64(block + SEGMENT_REWRITES),
                                       .first = sl_get_u64(block + SEGMENT_FIRST),
                                       .end = sl_get_u64(block + SEGMENT_END),
                                       .groups_from = sl_get_u64(block + SEGMENT_GROUPS_FROM) };
    memcpy(ret_header->store.bytes, block + SEGMENT_STORE, sizeof ret_header->store.bytes);
    return ret_header->version == SL_JOURNAL_VERSION ? SL_OK : SL_ERR_VERSION;
}

void sl_frame_header_put(const sl_frame_header *header, uint32_t seed, uint8_t *at)
{
    memset(at, 0, SL_FRAME_HEADER_BYTES);
    sl_put_u32(at + FRAME_MAGIC_AT, FRAME_MAGIC);
    sl_put_u32(at + FRAME_BYTES, header->bytes);
    sl_put_u64(at + FRAME_FIRST, header->first_position);
    sl_put_u64(at + FRAME_DURABLE, header->durable_below);
    sl_put_u64(at + FRAME_EPOCH, header->epoch);
    sl_put_u32(at + FRAME_COUNT, header->record_count);
    sl_put_u32(at + FRAME_FLAGS, header->sparse ? FRAME_SPARSE : 0);
    sl_put_u32(at + FRAME_CRC, sl_crc32c(seed, at, FRAME_CRC));
}

sl_err sl_frame_header_get(const uint8_t *at, size_t bytes_left, uint32_t seed, sl_frame_header *ret_header)
{
    if (bytes_left < SL_FRAME_HEADER_BYTES || sl_get_u32(at + FRAME_MAGIC_AT) != FRAME_MAGIC)
        return SL_ERR_CORRUPT;
    if (sl_get_u32(at + FRAME_CRC) != sl_crc32c(seed, at, FRAME_CRC))
        return SL_ERR_CORRUPT;
    *ret_header = (sl_frame_header){ .bytes = sl_get_u32(at + FRAME_BYTES),
                                     .record_count = sl_get_u32(at + FRAME_COUNT),
                                     .first_position = sl_get_u64(at + FRAME_FIRST),
                                     .durable_below = sl_get_u64(at + FRAME_DURABLE),
                                     .epoch = sl_get_u64(at + FRAME_EPOCH),
                                     .sparse = sl_get_u32(at + FRAME_FLAGS) == FRAME_SPARSE };
    return sl_get_u32(at + FRAME_FLAGS) <= FRAME_SPARSE ? SL_OK : SL_ERR_CORRUPT;
}

size_t sl_record_finish(uint8_t *at, uint64_t position, uint8_t kind, uint32_t payload_bytes, uint32_t seed)
{
    const size_t bytes = sl_record_size(payload_bytes);

    sl_put_u32(at + RECORD_BYTES, (uint32_t)bytes);
    sl_put_u64(at + RECORD_POSITION, position);
    sl_put_u32(at + RECORD_PAYLOAD_BYTES, payload_bytes);
    sl_put_u32(at + RECORD_KIND, kind);
    memset(at + SL_RECORD_HEADER_BYTES + payload_bytes, 0, bytes - SL_RECORD_HEADER_BYTES - payload_bytes);
    sl_put_u32(at + RECORD_CRC, sl_crc32c(seed, at + RECORD_BYTES, bytes - RECORD_BYTES));
    return bytes;
}

sl_record_view sl_record_peek(const uint8_t *at)
{
    return (sl_record_view){ .position = sl_get_u64(at + RECORD_POSITION),
                             .kind = at[RECORD_KIND],
                             .payload = at + SL_RECORD_HEADER_BYTES,
                             .payload_bytes = sl_get_u32(at + RECORD_PAYLOAD_BYTES),
                             .bytes = sl_get_u32(at + RECORD_BYTES) };
}

sl_err sl_record_get(const uint8_t *at, size_t bytes_left, uint32_t seed, sl_record_view *ret_view)
{
    sl_record_view view;

    if (bytes_left < SL_RECORD_HEADER_BYTES)
        return SL_ERR_CORRUPT;
    view = sl_record_peek(at);
    if (view.bytes > bytes_left || view.bytes != sl_record_size(view.payload_bytes))
        return SL_ERR_CORRUPT;
    if (sl_get_u32(at + RECORD_CRC) != sl_crc32c(seed, at + RECORD_BYTES, view.bytes - RECORD_BYTES))
        return SL_ERR_CORRUPT;
    *ret_view = view;
    return SL_OK;
}

static bool in_sequence(const sl_frame_header *header, uint64_t next, uint64_t position)
{
    return header->sparse ? position >= next && position < UINT64_MAX : position == next;
}

sl_err sl_frame_check(const uint8_t *at, size_t bytes_left, uint32_t seed, sl_frame_header *ret_header,
                      uint64_t *ret_end)
{
    size_t offset = SL_FRAME_HEADER_BYTES;
    sl_frame_header header;
    uint64_t next;

    if (sl_frame_header_get(at, bytes_left, seed, &header) != SL_OK)
        return SL_ERR_CORRUPT;
    if (header.bytes > bytes_left || header.bytes < SL_FRAME_HEADER_BYTES || header.record_count == 0)
        return SL_ERR_CORRUPT;
    next = header.first_position;
    for (uint32_t i = 0; i < header.record_count; i++) {
        sl_record_view record;
        if (sl_record_get(at + offset, header.bytes - offset, seed, &record) != SL_OK)
            return SL_ERR_CORRUPT;
        if (!in_sequence(&header, next, record.position))
            return SL_ERR_CORRUPT;
        next = record.position + 1;
        offset += record.bytes;
    }
    if (offset != header.bytes)
        return SL_ERR_CORRUPT;
    *ret_header = header;
    *ret_end = next;
    return SL_OK;
}
