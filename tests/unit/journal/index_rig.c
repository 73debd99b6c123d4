/* tests/unit/journal/index_rig.c — see index_rig.h. */
#include "index_rig.h"

void rig_begin(rig *r, uint64_t rewrites)
{
    *r = (rig){ .faulty = sl_faulty_new() };
    r->disk = sl_faulty_door(r->faulty);
    made_init(&r->made, RIG_NUMBER, 1000, rewrites);
}

void rig_build(rig *r)
{
    uint64_t offset;

    made_write(&r->made, r->disk);
    EXPECT_OK(sl_index_build(r->disk, &r->made.ref, &offset));
    EXPECT_OK(sl_index_open(r->disk, &r->made.ref, &r->index));
}

void rig_end(rig *r)
{
    sl_index_close(r->index);
    made_done(&r->made);
    r->disk->ops->free(r->disk);
    sl_faulty_free(r->faulty);
}

sl_str rig_name(size_t stream, char memory[24])
{
    return (sl_str){ memory, (size_t)snprintf(memory, 24, "stream-%zu", stream) };
}

void rig_fill(rig *r, dice *d, size_t stream_count, size_t event_count)
{
    uint64_t *const next = calloc(stream_count, sizeof *next);
    char memory[24];

    assert_non_null(next);
    for (size_t i = 0; i < event_count; i++) {
        /* a third of all go to the first stream: it goes over many blocks */
        const size_t stream = dice_pick(d, 3) == 0 ? 0 : dice_pick(d, stream_count);
        made_event(&r->made, stream, rig_name(stream, memory), next[stream]++, SL_STR("data"));
        if (dice_pick(d, 5) == 0)
            made_other(&r->made);
        if (dice_pick(d, 7) == 0)
            made_end_frame(&r->made);
        if (r->made.ref.rewrites > 0 && dice_pick(d, 3) == 0)
            r->made.ref.end += dice_pick(d, 100);
    }
    free(next);
}

sl_err rig_read(void *ctx, sl_file *file, uint64_t offset, const uint8_t **ret_block)
{
    plain_reader *const p = ctx;
    const sl_disk_ops *const ops = file->disk->ops;

    p->reads++;
    *ret_block = p->block;
    return (p->must_not_wait ? ops->read_now : ops->read)(file, offset, p->block, sizeof p->block);
}

sl_err rig_find(const sl_index *index, const sl_index_query *query, sl_index_entry *entries, uint32_t max,
                uint32_t *ret_count)
{
    plain_reader plain = { .reads = 0 };
    const sl_block_reader reader = { .ctx = &plain, .read = rig_read };
    uint64_t offset;

    return sl_index_find(index, query, &reader, entries, max, ret_count, &offset);
}

sl_err rig_look_at_everything(rig *r)
{
    static sl_index_entry found[FOUND_MAX];
    sl_index *index = NULL;
    uint32_t count;
    sl_err err = sl_index_open(r->disk, &r->made.ref, &index);

    for (size_t i = 0; i < r->made.record_count && err == SL_OK; i++) {
        const sl_index_query query = { .hash = (uint32_t)r->made.records[i].hash };
        if (r->made.records[i].is_event && r->made.records[i].revision == 0)
            err = rig_find(index, &query, found, FOUND_MAX, &count);
    }
    sl_index_close(index);
    return err;
}
