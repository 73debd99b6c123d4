/* The index in memory: every revision is found, whatever the chain looks like, and what is cut is gone. */
#include "../test.h"
#include "store/journal/recent.h"
#include "store/store.h"

#include <stdlib.h>

enum {
    STREAMS = 7,
    EVENTS = 3000
};

typedef struct fact { /* what was put in, in order */
    uint32_t stream;
    uint64_t revision, position;
    uint32_t offset;
} fact;

static fact facts[EVENTS];

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Streams that begin anywhere: their older events are in other segments. */
static void fill(sl_recent *recent, uint64_t seed)
{
    uint64_t revisions[STREAMS];

    for (uint32_t i = 0; i < STREAMS; i++)
        revisions[i] = next_random(&seed) % 100;
    for (uint32_t i = 0; i < EVENTS; i++) {
        const uint32_t stream = (uint32_t)(next_random(&seed) % STREAMS);

        facts[i] = (fact){ stream, revisions[stream]++, 1000 + i, 4096 + 64 * i };
        EXPECT_OK(sl_recent_record(recent, facts[i].position, facts[i].offset));
        EXPECT_OK(sl_recent_event(recent, stream, facts[i].revision, facts[i].position, facts[i].offset));
        if (i % 10 == 9)
            sl_recent_frame(recent, facts[i].offset + 64);
    }
}

/* The same question, answered by looking at every fact. */
static uint32_t find_slowly(const sl_recent_query *q, uint32_t *offsets, uint32_t max)
{
    uint32_t count = 0;

    for (uint32_t n = 0; n < EVENTS && count < max; n++) {
        const fact *const f = &facts[q->backwards ? EVENTS - 1 - n : n];
        const bool wanted = q->backwards ? f->revision <= q->revision : f->revision >= q->revision;

        if (f->stream == q->stream && wanted && f->position < q->below)
            offsets[count++] = f->offset;
    }
    return count;
}

TEST(any_revision_of_a_recent_segment_is_found_upwards_and_downwards)
{
    sl_recent recent = { 0 };
    uint64_t seed = 5;

    fill(&recent, 99);
    for (int round = 0; round < 4000; round++) {
        const sl_recent_query query = { .stream = (uint32_t)(next_random(&seed) % (STREAMS + 1)),
                                        .revision = next_random(&seed) % 700,
                                        .backwards = next_random(&seed) % 2,
                                        .below = 1000 + next_random(&seed) % (EVENTS + 10) };
        const uint32_t max = 1 + (uint32_t)(next_random(&seed) % 20);
        sl_index_entry entries[20];
        uint32_t offsets[20];
        const uint32_t wanted = find_slowly(&query, offsets, max);

        EXPECT_EQ(sl_recent_find(&recent, &query, entries, max), wanted);
        for (uint32_t i = 0; i < wanted; i++)
            EXPECT_EQ(entries[i].offset, offsets[i]);
    }
    sl_recent_done(&recent);
}

/* Revisions of a stream have no gaps but this one. */
TEST(a_tombstone_above_a_gap_is_found)
{
    sl_recent recent = { 0 };
    sl_index_entry entries[4];

    for (uint64_t i = 0; i < 10; i++)
        EXPECT_OK(sl_recent_event(&recent, 3, i, 1 + i, 4096 + 8 * (uint32_t)i));
    EXPECT_OK(sl_recent_event(&recent, 3, SL_REVISION_MAX, 20, 9000));
    EXPECT_EQ(sl_recent_find(&recent, &(sl_recent_query){ 3, 10, false, UINT64_MAX }, entries, 4), 1);
    EXPECT_EQ(entries[0].offset, 9000);
    EXPECT_EQ(
        sl_recent_find(&recent, &(sl_recent_query){ 3, SL_REVISION_MAX, false, UINT64_MAX }, entries, 4), 1);
    EXPECT_EQ(sl_recent_find(&recent, &(sl_recent_query){ 3, 8, false, UINT64_MAX }, entries, 4), 2);
    EXPECT_EQ(sl_recent_find(&recent, &(sl_recent_query){ 3, 10, false, 20 }, entries, 4), 0);
    sl_recent_done(&recent);
}

TEST(what_is_cut_was_never_there)
{
    sl_recent recent = { 0 };
    sl_index_entry entry;
    sl_index_place place;

    fill(&recent, 7);
    sl_recent_cut(&recent, 1500);
    for (uint32_t i = 0; i < EVENTS; i++) {
        const sl_recent_query query = { facts[i].stream, facts[i].revision, true, UINT64_MAX };
        const bool is_there =
            sl_recent_find(&recent, &query, &entry, 1) == 1 && entry.offset == facts[i].offset;

        EXPECT_EQ(is_there, facts[i].position < 1500);
    }
    EXPECT(sl_recent_place_of(&recent, UINT64_MAX, &place));
    EXPECT(place.position < 1500);
    EXPECT_OK(sl_recent_event(&recent, 2, 5000, 1500, 77)); /* and it goes on */
    EXPECT_EQ(sl_recent_find(&recent, &(sl_recent_query){ 2, 5000, true, UINT64_MAX }, &entry, 1), 1);
    EXPECT_EQ(entry.offset, 77);
    sl_recent_done(&recent);
}

/* Readers begin at a place and walk: it is never above the position, nor further below than places are apart. */
TEST(places_are_close_to_every_position)
{
    sl_recent recent = { 0 };
    sl_index_place place;

    EXPECT(!sl_recent_place_of(&recent, 5, &place));
    fill(&recent, 3);
    EXPECT(sl_recent_place_of(&recent, 1, &place));
    EXPECT_EQ(place.position, 1000); /* before the first: the first */
    for (uint64_t position = 1000; position < 1000 + EVENTS; position++) {
        EXPECT(sl_recent_place_of(&recent, position, &place));
        EXPECT(place.position <= position && position - place.position < SL_INDEX_PLACE_EVERY);
        EXPECT_EQ(place.at.offset, 4096 + 64 * (uint32_t)(place.position - 1000));
        EXPECT(place.at.frame_end > place.at.offset);
    }
    sl_recent_done(&recent);
}
