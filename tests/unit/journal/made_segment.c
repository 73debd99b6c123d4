/* tests/unit/journal/made_segment.c — see made_segment.h. */
#include "made_segment.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sl_uuid made_store(void)
{
    return (sl_uuid){ { 0x5a, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } };
}

void made_init(made_segment *made, uint64_t number, uint64_t first, uint64_t rewrites)
{
    *made = (made_segment){ .used = SL_SEGMENT_HEADER_BYTES };
    made->ref = (sl_segment_ref){ .store = made_store(),
                                  .number = number,
                                  .rewrites = rewrites,
                                  .first = first,
                                  .end = first,
                                  .seed = sl_segment_seed(made_store(), number) };
}

void made_done(made_segment *made)
{
    if (made->ref.file != NULL)
        made->ref.file->disk->ops->close(made->ref.file);
    free(made->bytes);
    free(made->records);
}

static uint8_t *room(made_segment *made, size_t bytes)
{
    if (made->used + bytes > made->capacity) {
        made->capacity = 2 * (made->used + bytes);
        made->bytes = realloc(made->bytes, made->capacity);
        assert_non_null(made->bytes);
    }
    return made->bytes + made->used;
}

static void begin_frame(made_segment *made)
{
    if (made->frame_at != 0)
        return;
    (void)room(made, SL_FRAME_HEADER_BYTES);
    made->frame_at = made->used;
    made->frame_first = made->ref.end;
    made->used += SL_FRAME_HEADER_BYTES;
}

static void add_record(made_segment *made, uint8_t kind, uint32_t payload_bytes, made_record record)
{
    if (made->record_count == made->record_capacity) {
        made->record_capacity = 2 * made->record_capacity + 16;
        made->records = realloc(made->records, made->record_capacity * sizeof *made->records);
        assert_non_null(made->records);
    }
    record.position = made->ref.end;
    record.place.offset = (uint32_t)made->used;
    made->records[made->record_count++] = record;
    made->used +=
        sl_record_finish(made->bytes + made->used, made->ref.end++, kind, payload_bytes, made->ref.seed);
}

void made_event(made_segment *made, size_t stream, sl_str name, uint64_t revision, sl_str data)
{
    const sl_event event = {
        .revision = revision, .id = { { 1 } }, .stream = name, .type = SL_STR("t"), .data = data
    };
    const uint32_t payload_bytes = (uint32_t)sl_event_payload_bytes(&event);

    begin_frame(made);
    sl_event_put(&event, room(made, sl_record_size(payload_bytes)) + SL_RECORD_HEADER_BYTES);
    add_record(made, SL_RECORD_EVENT, payload_bytes,
               (made_record){ .is_event = true,
                              .hash = sl_stream_hash(made_store(), name),
                              .revision = revision,
                              .stream = stream });
}

void made_other(made_segment *made)
{
    begin_frame(made);
    sl_group_put(7, SL_STR("x"),
                 room(made, sl_record_size(SL_GROUP_HEAD_BYTES + 1)) + SL_RECORD_HEADER_BYTES);
    add_record(made, SL_RECORD_GROUP, SL_GROUP_HEAD_BYTES + 1, (made_record){ .is_event = false });
}

void made_end_frame(made_segment *made)
{
    sl_frame_header header = { .bytes = (uint32_t)(made->used - made->frame_at),
                               .first_position = made->frame_first,
                               .epoch = 1,
                               .sparse = made->ref.rewrites > 0 };

    if (made->frame_at == 0)
        return;
    for (size_t i = made->record_count; i > 0 && made->records[i - 1].place.frame_end == 0; i--) {
        made->records[i - 1].place.frame_end = (uint32_t)made->used;
        header.record_count++;
    }
    sl_frame_header_put(&header, made->ref.seed, made->bytes + made->frame_at);
    made->frame_at = 0;
}

void made_write(made_segment *made, sl_disk *disk)
{
    char name[32];

    made_end_frame(made);
    (void)room(made, 0);
    memset(made->bytes, 0, SL_SEGMENT_HEADER_BYTES); /* nobody here looks at it */
    made->ref.size_bytes = made->used;
    snprintf(name, sizeof name, "%016llx.seg", (unsigned long long)made->ref.number);
    EXPECT_OK(disk->ops->create(disk, name, made->used, NULL, &made->ref.file));
    EXPECT_OK(disk->ops->write(made->ref.file, 0, made->bytes, made->used));
    EXPECT_OK(disk->ops->sync(made->ref.file));
}
