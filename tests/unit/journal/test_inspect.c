/* Looking at a journal: all damage, nothing but damage, in the right file. */
#include "inspect_rig.h"
#include "store/journal/log.h"
#include "store/journal/walk.h"

#include <inttypes.h>

enum {
    FILES_MAX = 64,
    LAST_FRAME_BYTES = SL_FRAME_HEADER_BYTES + SL_RECORD_HEADER_BYTES,
};

typedef struct names {
    char items[FILES_MAX][NAME_BYTES];
    size_t count;
} names;

static void add_name(void *ctx, const char *name)
{
    names *const n = ctx;

    EXPECT(n->count < FILES_MAX);
    snprintf(n->items[n->count++], NAME_BYTES, "%s", name);
}

static bool ends_with(const char *name, const char *suffix)
{
    const size_t bytes = strlen(name), suffix_bytes = strlen(suffix);

    return bytes >= suffix_bytes && strcmp(name + bytes - suffix_bytes, suffix) == 0;
}

TEST(verify_finds_nothing_in_a_journal_that_is_whole)
{
    world w = world_open();
    sl_verified verified;
    found f;

    fill(&w);
    f = verify(w.disk, &verified); /* while it is open */
    EXPECT_EQ(f.damages, 0);
    world_close(&w);
    EXPECT_EQ(verify(w.disk, &verified).damages, 0);
    EXPECT_OK(open_again(&w)); /* makes what was in the making when it was closed */
    world_close(&w);
    f = verify(w.disk, &verified);
    EXPECT_EQ(f.damages + f.notes, 0);
    EXPECT(verified.segments >= 3);
    EXPECT_EQ(verified.indexes, verified.segments - 1);
    EXPECT(verified.rolls >= 1);
    EXPECT_EQ(verified.records, verified.end - 1);
    world_free(&w);
}

/* How much of a file means something: of a segment up to its last frame, of a spare one the header. The very last frame of
 * a journal ("closed") is confirmed by nobody: damage there can not be told from a torn end. */
typedef struct extent {
    const char *name;
    uint64_t bytes;
} extent;

static sl_err measure(void *ctx, const sl_walked *walked)
{
    extent *const e = ctx;
    char name[SL_SEGMENT_NAME_BYTES];

    sl_segment_name(walked->segment.number, ".seg", name);
    if (strcmp(name, e->name) == 0)
        e->bytes = walked->used_bytes - (walked->is_open ? LAST_FRAME_BYTES : 0);
    return SL_OK;
}

static void ignore(void *ctx, const sl_finding *finding)
{
    (void)ctx;
    (void)finding;
}

static uint64_t meaningful_bytes(sl_faulty *disk, const char *name)
{
    extent e = { .name = name, .bytes = SL_SEGMENT_HEADER_BYTES };
    const sl_walk_visitor visitor = { .ctx = &e, .end = measure, .finding = ignore };
    sl_disk *const door = sl_faulty_door(disk);
    sl_walk walk;

    if (!ends_with(name, ".seg"))
        (void)sl_faulty_content(disk, name, &e.bytes);
    EXPECT_OK(sl_walk_init(&walk, door, &visitor));
    if (ends_with(name, ".seg"))
        EXPECT_OK(sl_walk_run(&walk));
    sl_walk_done(&walk);
    door->ops->free(door);
    return e.bytes;
}

static void flip_and_look(world *w, const char *name, dice *d, unsigned rounds)
{
    const uint64_t bytes = meaningful_bytes(w->disk, name);

    for (unsigned i = 0; i < rounds; i++) {
        const uint64_t offset = dice_pick(d, (size_t)bytes);
        const unsigned bit = (unsigned)dice_pick(d, 8);
        sl_verified verified;
        found f;

        EXPECT(sl_faulty_flip(w->disk, name, offset, bit));
        f = verify(w->disk, &verified);
        if (f.damages == 0 || strcmp(f.file, name) != 0 || f.several_files || f.offset > offset)
            fail_msg("%s byte %" PRIu64 " bit %u: %" PRIu64 " found, in %s at %" PRIu64, name, offset, bit,
                     f.damages, f.file, f.offset);
        EXPECT(sl_faulty_flip(w->disk, name, offset, bit));
    }
}

static void flip_everywhere(world *w, uint64_t seed)
{
    dice d = dice_from(seed);
    names files = { .count = 0 };

    sl_faulty_each(w->disk, add_name, &files);
    for (size_t i = 0; i < files.count; i++)
        if (ends_with(files.items[i], ".seg") || ends_with(files.items[i], ".idx") ||
            ends_with(files.items[i], ".roll"))
            flip_and_look(w, files.items[i], &d, 25);
}

TEST(verify_finds_a_flipped_bit_in_any_file_and_names_that_file_B13)
{
    world w = world_open();

    fill(&w);
    world_close(&w);
    flip_everywhere(&w, 1);
    world_free(&w);
}

TEST(verify_finds_a_flipped_bit_in_rewritten_segments_B13)
{
    world w = world_open();
    sl_verified verified;

    fill(&w);
    scavenge(&w);
    EXPECT(w.scavenged.segments_rewritten >= 2);
    world_close(&w);
    EXPECT_EQ(verify(w.disk, &verified).damages, 0);
    flip_everywhere(&w, 2);
    world_free(&w);
}

/* What a scavenge has left out at the end of a segment is not lost with its header, and is no fault of the next segment. */
TEST(a_damaged_header_of_a_rewritten_segment_concerns_no_other)
{
    world w = world_open();

    fill(&w);
    scavenge(&w);
    EXPECT(w.scavenged.segments_rewritten >= 2);
    world_close(&w);
    for (uint64_t number = 1; number <= 3; number++) {
        char name[SL_SEGMENT_NAME_BYTES];
        sl_verified verified;
        found f;

        sl_segment_name(number, ".seg", name);
        EXPECT(sl_faulty_flip(w.disk, name, 40, 5));
        f = verify(w.disk, &verified);
        EXPECT_EQ(f.damages, 1);
        EXPECT_STR(f.file, name);
        EXPECT_EQ(verified.positions_lost, 0);
        EXPECT(sl_faulty_flip(w.disk, name, 40, 5));
    }
    world_free(&w);
}

static void forget_done(void *ctx, const sl_commit *commit)
{
    (void)ctx;
    (void)commit;
}

/* Several turns of which some are synced; the rest may be there or not. */
static void write_some(world *w, dice *d)
{
    for (size_t i = dice_pick(d, 12); i > 0; i--) {
        const sl_event_in event = event_of(w, dice_pick(d, 3000));
        const sl_op op = { .kind = SL_OP_APPEND, .append = { SL_STR("b"), { 0 }, &event, 1 } };
        const sl_batch batch = { .ops = &op, .op_count = 1 };

        EXPECT_OK(sl_store_submit(w->store, &batch, forget_done, NULL));
        if (dice_pick(d, 2) == 0)
            sl_store_turn(w->store);
    }
}

static void cut_power(world *w, uint64_t seed)
{
    sl_faulty_power_cut(w->disk, seed);
    world_close(w);
    sl_faulty_settle(w->disk);
}

/* What opening decides and what verify says are two ways to the same answer. */
TEST(verify_calls_no_power_cut_damage_and_agrees_with_opening)
{
    uint64_t torn = 0;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        world w = world_open();
        dice d = dice_from(seed);
        sl_verified verified;
        uint64_t end;
        found f;

        append(&w, "a", (uint32_t)dice_pick(&d, 60));
        end = sl_store_end(w.store);
        write_some(&w, &d);
        cut_power(&w, seed);
        f = verify(w.disk, &verified);
        EXPECT_RUN(f.damages == 0, seed, f.offset);
        EXPECT_RUN(verified.end >= end, seed, verified.end);
        torn += f.notes > 0;
        EXPECT_OK(open_again(&w));
        EXPECT_EQ(sl_store_end(w.store), verified.end + 1); /* with the record that says "opened" */
        world_free(&w);
    }
    EXPECT(torn > 3); /* how many depends on threads */
}

/* A bit of the last segment: what verify calls whole can be opened, and what can not be opened is damaged for verify. */
TEST(verify_and_opening_agree_on_flips_in_the_last_segment)
{
    uint64_t refused = 0;

    for (uint64_t seed = 1; seed <= 150; seed++) {
        world w = world_open();
        dice d = dice_from(seed);
        sl_verified verified;
        sl_err err;
        found f;

        append(&w, "a", 1 + (uint32_t)dice_pick(&d, 30));
        cut_power(&w, seed);
        EXPECT(sl_faulty_flip(w.disk, "0000000000000001.seg", 4096 + dice_pick(&d, 24000),
                              (unsigned)dice_pick(&d, 8)));
        f = verify(w.disk, &verified);
        err = open_again(&w);
        EXPECT_RUN(err == SL_OK || err == SL_ERR_CORRUPT, seed, err);
        EXPECT_RUN((err == SL_OK) == (f.damages == 0), seed, f.offset);
        refused += err != SL_OK;
        world_free(&w);
    }
    EXPECT(refused > 20 && refused < 130);
}

TEST(verify_goes_on_behind_damage_and_counts_what_is_lost)
{
    world w = world_open();
    sl_verified whole, verified;
    found f;

    fill(&w);
    world_close(&w);
    (void)verify(w.disk, &whole);
    EXPECT(sl_faulty_flip(w.disk, "0000000000000001.seg", 8000, 1));
    EXPECT(sl_faulty_flip(w.disk, "0000000000000001.seg", 16000, 2));
    EXPECT(sl_faulty_flip(w.disk, "0000000000000002.seg", 9000, 3));
    f = verify(w.disk, &verified);
    EXPECT_EQ(f.damages, 3);
    EXPECT_EQ(verified.positions_lost, 3); /* a frame of one event each */
    EXPECT_EQ(verified.records, whole.records - 3);
    EXPECT_EQ(verified.end, whole.end);
    world_free(&w);
}

TEST(verify_reads_frames_of_a_segment_whose_header_is_gone)
{
    world w = world_open();
    sl_verified whole, verified;
    found f;

    fill(&w);
    world_close(&w);
    (void)verify(w.disk, &whole);
    EXPECT(sl_faulty_flip(w.disk, "0000000000000002.seg", 20, 0));
    f = verify(w.disk, &verified);
    EXPECT_EQ(f.damages, 1);
    EXPECT_STR(f.file, "0000000000000002.seg");
    EXPECT_EQ(verified.records, whole.records);
    world_free(&w);
}

/* Segment 1 was rewritten; then those that hold what replaces its records of groups are taken away. */
TEST(verify_misses_the_states_of_groups_that_a_rewritten_segment_relies_on)
{
    world w = world_open();
    sl_verified verified;
    sl_disk *door;
    found f;

    fill(&w);
    scavenge(&w);
    world_close(&w);
    EXPECT_EQ(verify(w.disk, &verified).damages, 0);
    door = sl_faulty_door(w.disk);
    for (uint64_t number = verified.segments + 1; number > 1; number--) {
        char name[SL_SEGMENT_NAME_BYTES];
        sl_segment_name(number, ".seg", name);
        (void)door->ops->remove(door, name);
    }
    door->ops->free(door);
    f = verify(w.disk, &verified);
    EXPECT_EQ(f.damages, 1);
    EXPECT_STR(f.file, "0000000000000001.seg");
    world_free(&w);
}

/* Of a server that rewrites a segment the new index comes a little after the new segment. */
typedef struct swap {
    sl_faulty *disk;
    kept index; /* the new one */
    unsigned opens;
} swap;

static void swap_at_second(void *ctx, const char *name)
{
    swap *const s = ctx;

    if (strcmp(name, s->index.name) == 0 && ++s->opens == 2)
        put_file(s->disk, &s->index);
}

TEST(verify_looks_again_when_an_index_was_replaced_while_it_looked)
{
    world w = world_open();
    swap s = { .disk = w.disk };
    const hook h = { .ctx = &s, .open = swap_at_second };
    sl_verified verified;
    sl_disk *door;
    kept old;

    fill(&w);
    world_close(&w);
    EXPECT_OK(open_again(&w)); /* all indexes are there */
    old = keep_file(w.disk, "0000000000000001.idx");
    scavenge(&w);
    world_close(&w);
    s.index = keep_file(w.disk, "0000000000000001.idx");
    put_file(w.disk, &old);
    door = hooked_door(w.disk, &h);
    EXPECT_EQ(verify_door(door, &verified).damages, 0);
    EXPECT(s.opens > 2);
    door->ops->free(door);
    free(old.bytes);
    free(s.index.bytes);
    world_free(&w);
}

/* A frame of an earlier life that has the right position, behind the end: as an unlucky power cut can leave it. */
static void put_stale_frame(sl_faulty *disk, uint64_t offset, uint64_t position)
{
    kept file = keep_file(disk, "0000000000000001.seg");
    uint8_t *const at = file.bytes + offset;
    sl_segment_header segment;
    uint32_t seed;

    EXPECT_OK(sl_segment_header_get(file.bytes, &segment));
    seed = sl_segment_seed(segment.store, 1);
    sl_record_finish(at + SL_FRAME_HEADER_BYTES, position, SL_RECORD_OPEN, 0, seed);
    sl_frame_header_put(
        &(sl_frame_header){ .bytes = LAST_FRAME_BYTES, .record_count = 1, .first_position = position }, seed,
        at);
    put_file(disk, &file);
    free(file.bytes);
}

TEST(verify_takes_no_frame_of_an_earlier_life_for_a_later_one)
{
    world w = world_open();
    sl_verified before, after;
    found f;

    append(&w, "a", 3);
    world_close(&w);
    (void)verify(w.disk, &before);
    put_stale_frame(w.disk, SL_SEGMENT_HEADER_BYTES + before.bytes, before.end);
    f = verify(w.disk, &after);
    EXPECT(f.damages == 0 && f.notes == 1);
    EXPECT_EQ(after.end, before.end);
    EXPECT_OK(open_again(&w));
    EXPECT_EQ(sl_store_end(w.store), before.end + 1);
    world_free(&w);
}

/* Every call of the disk fails once: an answer or an error, and no read error is passed over in silence. */
TEST(verify_survives_every_read_error)
{
    world w = world_open();
    uint64_t calls = 0, findings = 0;
    bool failed = true;

    fill(&w);
    world_close(&w);
    for (; failed; calls++) {
        const sl_inspection how = { .ctx = NULL };
        sl_disk *const door = sl_faulty_door(w.disk);
        sl_verified verified;
        sl_err err;

        sl_faulty_fail_after(w.disk, calls, SL_ERR_IO);
        err = sl_verify_disk(door, &how, &verified);
        failed = sl_faulty_failed(w.disk);
        sl_faulty_fail_after(w.disk, UINT64_MAX, SL_OK);
        EXPECT(err == SL_OK || err == SL_ERR_IO);
        if (err == SL_OK)
            findings += verified.damages > 0;
        door->ops->free(door);
    }
    EXPECT(calls > 20 && findings > 10);
    world_free(&w);
}

/* --- dump --- */

typedef struct dumped {
    uint64_t count, events, checkpoints, updates, states, last;
    uint64_t groups_from, first_update; /* segments; 0: there was none */
    char definition[32];                /* of the group, at this place of the journal */
    bool in_order;
} dumped;

static void note_definition(dumped *d, const sl_journal_record *record)
{
    EXPECT_EQ(record->group, 7);
    EXPECT(record->definition.bytes > 0 && record->definition.bytes < sizeof d->definition);
    memset(d->definition, 0, sizeof d->definition);
    memcpy(d->definition, record->definition.data, record->definition.bytes);
    if (record->kind != SL_JOURNAL_GROUP_UPDATE)
        return;
    d->updates++;
    if (d->first_update == 0)
        d->first_update = record->segment;
}

/* A state is of the definition before it; when a dump begins behind that, it is the first to say so. */
static void note_state(dumped *d, const sl_journal_record *record)
{
    sl_str state = record->state;
    sl_effect effect;

    EXPECT_OK(sl_journal_state_next(&state, &effect));
    EXPECT_ERR(sl_journal_state_next(&state, &effect), SL_ERR_EMPTY);
    if (d->definition[0] == '\0')
        note_definition(d, record);
    EXPECT(sl_str_equal(record->definition, sl_str_from(d->definition)));
    d->states += effect.checkpoint.below == 7;
}

static void note_group_record(dumped *d, const sl_journal_record *record)
{
    sl_str rest = record->records;
    sl_effect effect;

    EXPECT_OK(sl_journal_record_next(&rest, &effect));
    EXPECT_ERR(sl_journal_record_next(&rest, &effect), SL_ERR_EMPTY);
    d->checkpoints += record->group == 7 && effect.kind == SL_EFFECT_CHECKPOINT;
}

static void note_record(void *ctx, const sl_journal_record *record)
{
    dumped *const d = ctx;

    d->in_order = d->count == 0 || (d->in_order && record->position > d->last);
    d->last = record->position;
    d->count++;
    EXPECT(!record->malformed);
    if (record->kind == SL_JOURNAL_EVENT) {
        d->events++;
        EXPECT(record->event.position == record->position && record->event.stream.bytes > 0);
    } else if (record->kind == SL_JOURNAL_GROUP) {
        note_group_record(d, record);
    } else if (record->kind == SL_JOURNAL_GROUP_STATE) {
        note_state(d, record);
    } else if (record->kind == SL_JOURNAL_GROUP_CREATE || record->kind == SL_JOURNAL_GROUP_UPDATE) {
        note_definition(d, record);
    } else if (record->kind == SL_JOURNAL_GROUPS_FROM) {
        d->groups_from = record->groups_from;
    }
}

static dumped dump(world *w, const sl_dump_range *range, uint64_t *ret_damages)
{
    dumped d = { .in_order = true };
    const sl_inspection how = { .ctx = &d };
    sl_disk *const door = sl_faulty_door(w->disk);

    EXPECT_OK(sl_dump_disk(door, &how, range, note_record, ret_damages));
    door->ops->free(door);
    return d;
}

TEST(dump_gives_every_record_decoded_and_in_order)
{
    world w = world_open();
    sl_verified verified;
    uint64_t damages;
    dumped d;

    fill(&w);
    world_close(&w);
    (void)verify(w.disk, &verified);
    d = dump(&w, &(sl_dump_range){ 0 }, &damages);
    EXPECT_EQ(damages, 0);
    EXPECT(d.in_order);
    EXPECT_EQ(d.count, verified.records);
    EXPECT_EQ(d.events, 40 + 80 + 1);
    EXPECT_EQ(d.checkpoints, 20);
    EXPECT_EQ(d.updates, 2);
    EXPECT_STR(d.definition, FILLED_DEFINITION);
    EXPECT(d.states >= 2);
    world_free(&w);
}

TEST(dump_keeps_to_its_range)
{
    world w = world_open();
    uint64_t damages;
    dumped d;

    fill(&w);
    world_close(&w);
    d = dump(&w, &(sl_dump_range){ .from = 50, .count = 4 }, &damages);
    EXPECT(d.count == 4 && d.last == 53);
    d = dump(&w, &(sl_dump_range){ .stream = SL_STR("b") }, &damages);
    EXPECT(d.count == 40 && d.events == 40);
    d = dump(&w, &(sl_dump_range){ .segment = 2, .count = 1 }, &damages);
    EXPECT(d.count == 1 && d.last > 10);
    d = dump(&w, &(sl_dump_range){ .from = 1000000 }, &damages);
    EXPECT_EQ(d.count, 0);
    world_free(&w);
}

TEST(dump_passes_damage_and_goes_on)
{
    world w = world_open();
    uint64_t damages;
    dumped d;

    fill(&w);
    world_close(&w);
    EXPECT(sl_faulty_flip(w.disk, "0000000000000001.seg", 8000, 1));
    d = dump(&w, &(sl_dump_range){ 0 }, &damages);
    EXPECT_EQ(damages, 1);
    EXPECT_EQ(d.events, 40 + 80 + 1 - 1);
    world_free(&w);
}

/* Updates go with the other records of groups, and what they said is in the states that stay. */
TEST(a_scavenge_drops_updates_that_states_replace)
{
    world w = world_open();
    sl_verified verified;
    uint64_t damages;
    dumped before, after;

    fill(&w);
    before = dump(&w, &(sl_dump_range){ 0 }, &damages);
    EXPECT(before.first_update < before.groups_from); /* else there would be nothing to drop */
    scavenge(&w);
    after = dump(&w, &(sl_dump_range){ 0 }, &damages);
    EXPECT(after.updates < before.updates);
    EXPECT(after.updates == 0 || after.first_update >= before.groups_from);
    EXPECT_STR(after.definition, FILLED_DEFINITION);
    world_close(&w);
    EXPECT_EQ(verify(w.disk, &verified).damages, 0);
    EXPECT_OK(open_again(&w));
    expect_definition(&w, FILLED_DEFINITION);
    world_free(&w);
}

/* Nobody tells states here: then a group is what all of its records say, and none of them may go. */
TEST(a_scavenge_keeps_updates_that_no_state_replaces)
{
    world w = world_open();
    uint64_t damages;
    dumped before, after;

    sl_store_on_snapshot(w.store, NULL, NULL);
    fill(&w);
    before = dump(&w, &(sl_dump_range){ 0 }, &damages);
    scavenge(&w);
    EXPECT(w.scavenged.segments_rewritten >= 2);
    after = dump(&w, &(sl_dump_range){ 0 }, &damages);
    EXPECT(before.updates == 2 && after.updates == 2 && after.checkpoints == before.checkpoints);
    world_close(&w);
    EXPECT_OK(open_again(&w));
    expect_definition(&w, FILLED_DEFINITION);
    world_free(&w);
}

/* --- stats --- */

TEST(stats_count_streams_groups_and_what_is_hidden)
{
    const sl_op drop = { .kind = SL_OP_GROUP_DELETE, .group_delete = { 7 } };
    const sl_inspection how = { 0 };
    world w = world_open();
    sl_journal_stats stats;
    sl_disk *door;

    fill(&w);
    door = sl_faulty_door(w.disk);
    EXPECT_OK(sl_stats_disk(door, &how, &stats));
    EXPECT_EQ(stats.groups, 1);
    EXPECT_EQ(stats.streams, 4); /* a, b, gone, $$gone */
    EXPECT_EQ(stats.soft_deleted, 1);
    EXPECT_EQ(stats.hidden_events, 40);
    EXPECT_EQ(stats.records[SL_JOURNAL_EVENT], 121);
    EXPECT_EQ(stats.records[SL_JOURNAL_GROUP_UPDATE], 2);
    EXPECT_EQ(stats.record_bytes[SL_JOURNAL_GROUP_UPDATE], 2 * sl_record_size(sizeof(uint64_t) + 16));
    EXPECT_EQ(stats.largest_count, 4);
    EXPECT(stats.largest[0].events == 40 && stats.largest[3].events == 1);
    commit(&w, &drop);
    EXPECT_OK(sl_stats_disk(door, &how, &stats));
    EXPECT_EQ(stats.groups, 0);
    door->ops->free(door);
    world_free(&w);
}
