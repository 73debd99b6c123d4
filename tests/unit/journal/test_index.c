/* tests/unit/journal/test_index.c — index files: found is what is there.
 *
 * The model of a lookup is a walk over all events of the segment. Segments are made with streams that share the 32 bits by
 * which an index knows them, because that is where entries of several streams mix. */
#include "base/cleanup.h"
#include "index_rig.h"
#include "store/journal/index_build.h"

#include <pthread.h>

enum {
    NAMES_MAX = 200000
};

/* --- the model --- */

static int ascending(const void *a, const void *b)
{
    const sl_index_entry *const left = a, *const right = b;

    if (left->revision != right->revision)
        return left->revision < right->revision ? -1 : 1;
    return left->offset < right->offset ? -1 : left->offset > right->offset;
}

static uint32_t model_find(const made_segment *made, const sl_index_query *query, sl_index_entry *entries,
                           uint32_t max)
{
    uint32_t count = 0;

    for (size_t i = 0; i < made->record_count; i++) {
        const made_record *const record = &made->records[i];
        const bool in_range =
            query->backwards ? record->revision <= query->revision : record->revision >= query->revision;
        if (record->is_event && (uint32_t)record->hash == query->hash && in_range)
            entries[count++] = (sl_index_entry){ record->revision, query->hash, record->place.offset };
    }
    qsort(entries, count, sizeof *entries, ascending);
    for (uint32_t i = 0; query->backwards && i < count / 2; i++) {
        const sl_index_entry entry = entries[i];
        entries[i] = entries[count - 1 - i];
        entries[count - 1 - i] = entry;
    }
    return count < max ? count : max;
}

static bool same_entries(const sl_index_entry *a, const sl_index_entry *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].revision != b[i].revision || a[i].hash != b[i].hash || a[i].offset != b[i].offset)
            return false;
    return true;
}

static void expect_like_model(const rig *r, dice *d, uint64_t seed, uint32_t hash)
{
    static sl_index_entry found[FOUND_MAX], wanted[FOUND_MAX];
    static const uint32_t maxima[] = { 1, 2, 7, 255, 256, 1000, FOUND_MAX };

    for (int i = 0; i < 6; i++) {
        const uint64_t revisions[] = { 0, UINT64_MAX, SL_REVISION_MAX, dice_pick(d, 50), dice_pick(d, 3000) };
        const sl_index_query query = { .hash = hash,
                                       .revision = revisions[dice_pick(d, SL_COUNT_OF(revisions))],
                                       .backwards = dice_pick(d, 2) };
        const uint32_t max = maxima[dice_pick(d, SL_COUNT_OF(maxima))];
        uint32_t count = UINT32_MAX;

        EXPECT_OK(rig_find(r->index, &query, found, max, &count));
        EXPECT_RUN(count == model_find(&r->made, &query, wanted, max), seed, i);
        EXPECT_RUN(same_entries(found, wanted, count), seed, i);
    }
}

/* --- lookups --- */

TEST(an_index_finds_what_a_walk_over_the_segment_finds)
{
    char memory[24];

    for (uint64_t seed = 1; seed <= 12; seed++) {
        const size_t stream_count = (size_t[]){ 1, 3, 40, 600 }[seed % 4];
        dice d = dice_from(seed);
        rig r;

        rig_begin(&r, seed % 3 == 0);
        rig_fill(&r, &d, stream_count, (size_t[]){ 1, 255, 256, 2000, 6000 }[seed % 5]);
        rig_build(&r);
        for (int i = 0; i < 40; i++)
            expect_like_model(
                &r, &d, seed,
                (uint32_t)sl_stream_hash(made_store(), rig_name(dice_pick(&d, stream_count + 1), memory)));
        expect_like_model(&r, &d, seed, 0);
        expect_like_model(&r, &d, seed, UINT32_MAX);
        rig_end(&r);
    }
}

/* Two names with the same low half of their hash: among so many there are some. */
static void find_twins(size_t ret_twins[2])
{
    uint64_t *const keys = malloc(NAMES_MAX * sizeof *keys);
    char memory[24];

    assert_non_null(keys);
    for (uint32_t i = 0; i < NAMES_MAX; i++)
        keys[i] = sl_stream_hash(made_store(), rig_name(i, memory)) << 32 | i;
    ret_twins[0] = ret_twins[1] = 0;
    for (size_t bucket = 0; bucket < 256 && ret_twins[1] == 0;
         bucket++) { /* by their first byte: smaller to compare */
        static uint64_t some[NAMES_MAX / 32];
        size_t count = 0;
        for (size_t i = 0; i < NAMES_MAX; i++)
            if (keys[i] >> 56 == bucket && count < SL_COUNT_OF(some))
                some[count++] = keys[i];
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < i; j++)
                if (some[i] >> 32 == some[j] >> 32) {
                    ret_twins[0] = (uint32_t)some[j];
                    ret_twins[1] = (uint32_t)some[i];
                }
    }
    free(keys);
    EXPECT(ret_twins[1] != 0);
}

TEST(streams_that_share_a_key_are_found_together_in_the_order_of_revisions)
{
    dice d = dice_from(77);
    size_t twins[2];
    char memory[24];
    rig r;

    find_twins(twins);
    rig_begin(&r, 0);
    for (uint64_t revision = 0; revision < 1500; revision++) /* all of one, then all of the other */
        made_event(&r.made, twins[0], rig_name(twins[0], memory), revision, SL_STR(""));
    for (uint64_t revision = 0; revision < 1500; revision++)
        made_event(&r.made, twins[1], rig_name(twins[1], memory), revision, SL_STR(""));
    rig_build(&r);
    for (int i = 0; i < 60; i++)
        expect_like_model(&r, &d, 77, (uint32_t)sl_stream_hash(made_store(), rig_name(twins[0], memory)));
    rig_end(&r);
}

/* Entries that no segment would give: few hashes, many equal revisions, so that equal keys go over the ends of blocks. */
TEST(equal_keys_that_go_over_several_blocks_are_all_found)
{
    static sl_index_entry found[FOUND_MAX];

    for (uint64_t seed = 1; seed <= 8; seed++) {
        dice d = dice_from(seed);
        uint32_t model[3][4] = { { 0 } };
        sl_index_builder builder;
        rig r;

        rig_begin(&r, 0);
        sl_index_builder_init(&builder, &r.made.ref);
        for (uint32_t i = 0; i < 3000; i++) {
            const uint32_t hash = (uint32_t)dice_pick(&d, 3), revision = (uint32_t)dice_pick(&d, 4);
            model[hash][revision]++;
            EXPECT_OK(sl_index_builder_event(&builder, (uint64_t)hash << 31, revision, i));
        }
        EXPECT_OK(sl_index_builder_finish(&builder));
        EXPECT_OK(sl_index_builder_write(&builder, r.disk));
        sl_index_builder_done(&builder);
        EXPECT_OK(sl_index_open(r.disk, &r.made.ref, &r.index));
        for (uint32_t revision = 0; revision < 4; revision++) {
            const sl_index_query up = { .hash = UINT32_C(1) << 31, .revision = revision };
            const sl_index_query down = { .hash = UINT32_C(1) << 31,
                                          .revision = revision,
                                          .backwards = true };
            uint32_t above = 0, below = 0, count;
            for (uint32_t i = 0; i < 4; i++) {
                above += i >= revision ? model[1][i] : 0;
                below += i <= revision ? model[1][i] : 0;
            }
            EXPECT_OK(rig_find(r.index, &up, found, FOUND_MAX, &count));
            EXPECT_RUN(count == above, seed, revision);
            EXPECT_OK(rig_find(r.index, &down, found, FOUND_MAX, &count));
            EXPECT_RUN(count == below, seed, revision);
        }
        rig_end(&r);
    }
}

TEST(a_lookup_of_few_entries_reads_few_blocks)
{
    dice d = dice_from(5);
    rig r;

    rig_begin(&r, 0);
    rig_fill(&r, &d, 2000, 20000);
    rig_build(&r);
    for (uint32_t i = 0; i < 200; i++) {
        const sl_index_query query = { .hash = (uint32_t)dice_u64(&d), .backwards = i % 2, .revision = i };
        plain_reader plain = { .reads = 0 };
        const sl_block_reader reader = { .ctx = &plain, .read = rig_read };
        sl_index_entry entry;
        uint32_t count;
        uint64_t offset;

        EXPECT_OK(sl_index_find(r.index, &query, &reader, &entry, 1, &count, &offset));
        EXPECT_ROW(plain.reads <= 2, i);
    }
    rig_end(&r);
}

TEST(places_lead_to_the_record_or_at_most_63_records_before_it)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        dice d = dice_from(seed);
        rig r;
        size_t before = 0;

        rig_begin(&r, seed % 2);
        rig_fill(&r, &d, 20, 300 * seed);
        rig_build(&r);
        for (uint64_t position = r.made.ref.first - 2; position < r.made.ref.end + 2; position++) {
            sl_index_place place;
            const made_record *wanted;
            while (before + 1 < r.made.record_count && r.made.records[before + 1].position <= position)
                before++;
            wanted = &r.made.records[before / SL_INDEX_PLACE_EVERY * SL_INDEX_PLACE_EVERY];
            EXPECT(sl_index_place_of(r.index, position, &place));
            EXPECT_RUN(place.position == wanted->position, seed, position);
            EXPECT_RUN(place.at.offset == wanted->place.offset, seed, position);
            EXPECT_RUN(place.at.frame_end == wanted->place.frame_end, seed, position);
        }
        rig_end(&r);
    }
}

TEST(the_sieve_never_denies_a_stream_and_lets_few_others_through)
{
    dice d = dice_from(9);
    unsigned let_through = 0;
    char memory[24];
    rig r;

    rig_begin(&r, 0);
    rig_fill(&r, &d, 1024,
             9000); /* a power of two is the fullest that a sieve gets: eight bits for each stream */
    rig_build(&r);
    for (size_t i = 0; i < r.made.record_count; i++)
        if (r.made.records[i].is_event)
            EXPECT_ROW(sl_index_may_have(r.index, r.made.records[i].hash), i);
    for (size_t i = 0; i < 10000; i++)
        let_through += sl_index_may_have(r.index, sl_stream_hash(made_store(), rig_name(100000 + i, memory)));
    EXPECT(let_through > 0 && let_through < 700); /* (1 - e^(-2/8))^2 is one in twenty */
    rig_end(&r);
}

TEST(a_segment_without_events_has_an_index_without_entries)
{
    const sl_index_query queries[] = { { .hash = 0 },
                                       { .hash = UINT32_MAX, .revision = 9, .backwards = true } };
    sl_index_entry entry;
    sl_index_place place;
    uint32_t count = 9;
    rig r;

    rig_begin(&r, 0);
    made_other(&r.made);
    rig_build(&r);
    EXPECT(!sl_index_may_have(r.index, 0));
    EXPECT(sl_index_place_of(r.index, 0, &place) && place.position == 1000);
    for (size_t i = 0; i < SL_COUNT_OF(queries); i++) {
        EXPECT_OK(rig_find(r.index, &queries[i], &entry, 1, &count));
        EXPECT_EQ(count, 0);
    }
    rig_end(&r);

    rig_begin(&r, 1); /* rewritten, and nothing is left */
    rig_build(&r);
    EXPECT(!sl_index_place_of(r.index, 1000, &place));
    rig_end(&r);
}

/* --- waiting and threads --- */

/* The reader keeps nothing, so an answer must be had from fewer blocks than the disk gives without a pause. */
TEST(a_lookup_that_must_not_wait_is_asked_again_and_gives_the_same)
{
    static sl_index_entry found[FOUND_MAX], wanted[FOUND_MAX];
    dice d = dice_from(12);
    plain_reader plain = { .must_not_wait = true };
    const sl_block_reader reader = { .ctx = &plain, .read = rig_read };
    char memory[24];
    const sl_index_query query = { .hash = (uint32_t)sl_stream_hash(made_store(), rig_name(1, memory)) };
    unsigned again = 0;
    uint64_t offset;
    rig r;

    rig_begin(&r, 0);
    rig_fill(&r, &d, 5, 4000);
    rig_build(&r);
    sl_faulty_slow_reads(r.faulty, 5);
    for (int i = 0; i < 10; i++) {
        uint32_t count = 0;
        sl_err err;
        while ((err = sl_index_find(r.index, &query, &reader, found, FOUND_MAX, &count, &offset)) ==
               SL_ERR_AGAIN)
            again++;
        EXPECT_OK(err);
        EXPECT_EQ(count, model_find(&r.made, &query, wanted, FOUND_MAX));
        EXPECT(count > 300 && same_entries(found, wanted, count));
    }
    EXPECT(again > 0);
    rig_end(&r);
}

typedef struct seeker {
    const rig *rig;
    uint64_t seed;
    unsigned found;
} seeker;

static void *seek(void *ctx)
{
    seeker *const s = ctx;
    dice d = dice_from(s->seed);
    sl_index_entry entries[16];

    for (int i = 0; i < 500; i++) {
        const made_record *const record = &s->rig->made.records[dice_pick(&d, s->rig->made.record_count)];
        const sl_index_query query = { .hash = (uint32_t)record->hash,
                                       .revision = record->revision,
                                       .backwards = i % 2 };
        sl_index_place place;
        uint32_t count = 0;

        if (!sl_index_place_of(s->rig->index, record->position, &place) || !record->is_event)
            continue;
        if (!sl_index_may_have(s->rig->index, record->hash))
            continue;
        if (rig_find(s->rig->index, &query, entries, SL_COUNT_OF(entries), &count) != SL_OK)
            continue;
        for (uint32_t k = 0; k < count; k++)
            s->found += entries[k].offset == record->place.offset;
    }
    return NULL;
}

TEST(two_threads_look_into_one_index_at_once)
{
    dice d = dice_from(13);
    pthread_t threads[2];
    seeker seekers[2];
    rig r;

    rig_begin(&r, 0);
    rig_fill(&r, &d, 50, 3000);
    rig_build(&r);
    for (unsigned i = 0; i < 2; i++) {
        seekers[i] = (seeker){ .rig = &r, .seed = i };
        EXPECT_EQ(pthread_create(&threads[i], NULL, seek, &seekers[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        EXPECT(seekers[i].found > 300);
    }
    rig_end(&r);
}
