/* tests/unit/journal/rolls.c — see rolls.h. */
#include "rolls.h"

#include "store/journal/roll_build.h"

void rolls_begin(rolls *r)
{
    memset(r, 0, sizeof *r);
    r->faulty = sl_faulty_new();
    r->disk = sl_faulty_door(r->faulty);
    r->next_position = 1;
}

void rolls_end(rolls *r)
{
    r->disk->ops->free(r->disk);
    sl_faulty_free(r->faulty);
}

sl_str rolls_name(size_t word_number, char memory[SL_STREAM_NAME_BYTES_MAX])
{
    const int bytes = snprintf(memory, 32, "%ss%zu-", word_number % 2 ? "$$" : "", word_number / 2);
    const size_t padding = word_number % 9 * 100;

    memset(memory + bytes, 'x', padding);
    return (sl_str){ memory, (size_t)bytes + padding };
}

/* What the next event of a stream says; the model knows it from now on. `json` is its data. */
static uint64_t next_word(word *w, dice *d, size_t word_number, char json[64])
{
    const uint64_t max_count = 1 + dice_pick(d, 1000);

    snprintf(json, 64, "{\"$maxCount\":%llu,\"$tb\":%zu}", (unsigned long long)max_count, word_number);
    if (!w->is_there)
        *w = (word){ .is_there = true };
    else
        w->last = word_number % 2 == 0 && dice_pick(d, 50) == 0 ? SL_REVISION_MAX : w->last + 1;
    if (word_number % 2 == 1)
        w->keep = (sl_retention){ .max_count = max_count, .truncate_before = word_number };
    return w->last;
}

/* One that is not tombstoned. */
static size_t pick_word(const rolls *r, dice *d, size_t stream_count)
{
    size_t number = dice_pick(d, 2 * stream_count);

    while (r->model[number].last == SL_REVISION_MAX)
        number = dice_pick(d, 2 * stream_count);
    return number;
}

void rolls_add_segment(rolls *r, dice *d, size_t stream_count, size_t event_count)
{
    char memory[SL_STREAM_NAME_BYTES_MAX], json[64];
    made_segment made;
    uint64_t offset;

    made_init(&made, ++r->segment_count, r->next_position, 0);
    for (size_t i = 0; i < event_count; i++) {
        const size_t number = pick_word(r, d, stream_count);
        const uint64_t revision = next_word(&r->model[number], d, number, json);
        made_event(&made, number, rolls_name(number, memory), revision, sl_str_from(json));
        if (dice_pick(d, 4) == 0)
            made_end_frame(&made);
    }
    made_write(&made, r->disk);
    r->next_position = made.ref.end;
    EXPECT_OK(sl_roll_build(r->disk, &made.ref, &offset));
    made_done(&made);
}

void rolls_add_roll(rolls *r, dice *d, size_t stream_count, size_t event_count)
{
    const sl_segment_ref segment = { .store = made_store(), .number = ++r->segment_count };
    char memory[SL_STREAM_NAME_BYTES_MAX], json[64];
    sl_roll_builder builder;

    EXPECT_OK(sl_roll_builder_init(&builder, &segment));
    for (size_t i = 0; i < event_count; i++) {
        const size_t number = pick_word(r, d, stream_count);
        const uint64_t revision = next_word(&r->model[number], d, number, json);
        const sl_event event = { .stream = rolls_name(number, memory),
                                 .revision = revision,
                                 .data = sl_str_from(json) };
        EXPECT_OK(sl_roll_builder_event(&builder, sl_stream_hash(made_store(), event.stream), &event));
    }
    EXPECT_OK(sl_roll_builder_write(&builder, r->disk));
    sl_roll_builder_done(&builder);
}

static size_t word_of(sl_str name)
{
    char text[32] = { 0 };
    const size_t dollars = name.data[0] == '$' ? 2 : 0;

    memcpy(text, name.data + dollars + 1, sl_str_find(name, '-') - dollars - 1);
    return 2 * strtoull(text, NULL, 10) + (dollars > 0);
}

static sl_err load_entry(void *ctx, const sl_roll_entry *entry)
{
    rolls *const r = ctx;
    char memory[SL_STREAM_NAME_BYTES_MAX];
    const size_t number = word_of(entry->name);

    EXPECT(number < 2 * STREAMS_MAX);
    EXPECT(sl_str_equal(entry->name, rolls_name(number, memory)));
    EXPECT_EQ(entry->is_metadata, number % 2 == 1);
    r->loaded[number] = (word){ .is_there = true, .last = entry->last, .keep = entry->keep };
    return SL_OK;
}

sl_err rolls_load(rolls *r, uint64_t first)
{
    sl_roll_chain chain = { 0 };
    uint64_t number;
    sl_err err = sl_roll_chain_find(r->disk, made_store(), first, r->segment_count, &chain, &number);

    memset(r->loaded, 0, sizeof r->loaded);
    for (size_t i = 0; i < chain.count && err == SL_OK; i++)
        err = sl_roll_each(r->disk, made_store(), chain.rolls[i].to, load_entry, r);
    sl_roll_chain_done(&chain);
    return err;
}

bool rolls_like_model(const rolls *r)
{
    for (size_t i = 0; i < 2 * STREAMS_MAX; i++) {
        const word *const a = &r->model[i], *const b = &r->loaded[i];
        if (a->is_there != b->is_there || a->last != b->last || a->keep.max_count != b->keep.max_count ||
            a->keep.max_age_s != b->keep.max_age_s || a->keep.truncate_before != b->keep.truncate_before)
            return false;
    }
    return true;
}

static void count_roll(void *ctx, const char *name)
{
    *(unsigned *)ctx += strstr(name, ".roll") != NULL;
}

unsigned rolls_count(rolls *r)
{
    unsigned count = 0;

    sl_faulty_each(r->faulty, count_roll, &count);
    return count;
}
