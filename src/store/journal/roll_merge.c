/* store/journal/roll_merge.c — several rolls become one.
 *
 *      [1..3]  a    c d                  the smallest (hash, name) of all that are next is written; where several rolls
 *      [4]     a  b   d       -->        have it the newest word counts, and all of them go on
 *      [5]        b     e
 *
 * As many as MERGE_MAX rolls are merged at a time, so that memory and open files are bounded. A longer chain is merged in
 * runs, each of which ends as a roll of its own: after every step the chain is complete, only shorter. What is not on the
 * chain any more is removed when the whole is done. */
#include "base/alloc.h"
#include "store/array.h"
#include "store/journal/records.h"
#include "store/journal/roll_file.h"

enum {
    MERGE_MAX = 16 /* a part of 64 KiB is held for each */
};

/* One of the rolls, and its next entry. */
typedef struct source {
    sl_roll_reader reader;
    bool has_entry;
    uint64_t hash;
    sl_roll_entry entry;
} source;

typedef struct merge {
    sl_uuid store;
    source sources[MERGE_MAX]; /* oldest first */
    size_t count;
    sl_roll_writer writer;
} merge;

/* --- one run --- */

static int compare(const source *a, const source *b)
{
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return sl_str_compare(a->entry.name, b->entry.name);
}

/* Entries must ascend, or an older word could win over a newer one. That is made sure of by hash: the name before is gone by
 * now, and two streams with the same 64 bits are one chance in many thousand millions. */
static sl_err advance(sl_uuid store, source *s)
{
    const uint64_t before = s->has_entry ? s->hash : 0;
    const sl_err err = sl_roll_reader_next(&s->reader, &s->entry);

    s->has_entry = err == SL_OK;
    if (err != SL_OK)
        return err == SL_ERR_EMPTY ? SL_OK : err;
    s->hash = sl_stream_hash(store, s->entry.name);
    return s->hash >= before ? SL_OK : SL_ERR_CORRUPT;
}

/* The smallest entry that is next; of equal ones that of the newest roll. NULL: that is all. */
static const source *next_source(const merge *m)
{
    const source *best = NULL;

    for (size_t i = 0; i < m->count; i++) {
        const source *const s = &m->sources[i];
        if (s->has_entry && (best == NULL || compare(s, best) <= 0))
            best = s;
    }
    return best;
}

/* All that have the entry of `written`, that one last: its name is good until it goes on. */
static sl_err advance_equal(merge *m, const source *written)
{
    sl_err err = SL_OK;

    for (size_t i = 0; i < m->count && err == SL_OK; i++) {
        source *const s = &m->sources[i];
        const bool is_older = s < written && s->has_entry && compare(s, written) == 0;
        if (is_older || s == written)
            err = advance(m->store, s);
    }
    return err;
}

static sl_err open_sources(merge *m, sl_disk *disk, const sl_roll_info *rolls, size_t count)
{
    sl_err err = SL_OK;

    for (m->count = 0; m->count < count && err == SL_OK;) {
        source *const s = &m->sources[m->count++]; /* counted first: whatever was opened is closed */
        *s = (source){ .has_entry = false };
        err = sl_roll_reader_open(&s->reader, disk, m->store, rolls[m->count - 1].to);
        if (err == SL_OK)
            err = advance(m->store, s);
    }
    return err;
}

static void close_sources(merge *m)
{
    while (m->count > 0)
        sl_roll_reader_done(&m->sources[--m->count].reader);
}

static sl_err write_all(merge *m)
{
    const source *s;
    sl_err err = SL_OK;

    while (err == SL_OK && (s = next_source(m)) != NULL) {
        err = sl_roll_writer_add(&m->writer, &s->entry);
        if (err == SL_OK)
            err = advance_equal(m, s);
    }
    return err;
}

/* The sources are closed before one of them is replaced. */
static sl_err merge_run(sl_disk *disk, sl_uuid store, const sl_roll_info *rolls, size_t count)
{
    const uint64_t from = rolls[0].from, to = rolls[count - 1].to;
    merge m = { .store = store };
    sl_err err = open_sources(&m, disk, rolls, count);

    if (err == SL_OK) {
        err = sl_roll_writer_open(&m.writer, disk, store, from, to);
        if (err == SL_OK)
            err = write_all(&m);
        close_sources(&m);
        if (err == SL_OK)
            err = sl_roll_writer_commit(&m.writer);
        sl_roll_writer_done(&m.writer);
    }
    close_sources(&m);
    return err;
}

/* --- the whole chain --- */

/* Each run of rolls into one: the chain is that much shorter. */
static sl_err merge_runs(sl_disk *disk, sl_uuid store, const sl_roll_chain *chain)
{
    sl_err err = SL_OK;

    for (size_t i = 0; i < chain->count && err == SL_OK; i += MERGE_MAX) {
        const size_t left = chain->count - i, count = left < MERGE_MAX ? left : MERGE_MAX;
        if (count > 1)
            err = merge_run(disk, store, chain->rolls + i, count);
    }
    return err;
}

typedef struct leftovers {
    uint64_t below;
    uint64_t *numbers;
    size_t count, capacity;
    sl_err err;
} leftovers;

static void collect_leftover(void *ctx, const char *name)
{
    leftovers *const l = ctx;
    uint64_t number, *larger;

    if (!sl_cache_number(name, SL_ROLL_SUFFIX, &number) || number >= l->below)
        return;
    larger = sl_array_grow(&sl_alloc_default, l->numbers, &l->capacity, sizeof *larger, l->count + 1);
    if (larger == NULL) {
        l->err = SL_ERR_NOMEM;
        return;
    }
    l->numbers = larger;
    larger[l->count++] = number;
}

/* Rolls with a smaller number: what they say stands in the merged one. */
static sl_err remove_below(sl_disk *disk, uint64_t number)
{
    leftovers l = { .below = number };
    sl_err err = disk->ops->list(disk, collect_leftover, &l);

    if (err == SL_OK)
        err = l.err;
    for (size_t i = 0; i < l.count && err == SL_OK; i++)
        err = sl_cache_remove(disk, l.numbers[i], SL_ROLL_SUFFIX);
    sl_alloc_give(&sl_alloc_default, l.numbers, l.capacity * sizeof *l.numbers);
    return err;
}

sl_err sl_roll_merge(sl_disk *disk, sl_uuid store, uint64_t first_segment, uint64_t number)
{
    uint64_t missing;
    sl_err err;

    for (;;) {
        sl_roll_chain chain = { 0 };
        bool is_one;

        err = sl_roll_chain_find(disk, store, first_segment, number, &chain, &missing);
        if (err != SL_OK)
            return err;
        is_one = chain.count == 1;
        if (!is_one)
            err = merge_runs(disk, store, &chain);
        sl_roll_chain_done(&chain);
        if (err != SL_OK)
            return err;
        if (is_one)
            return remove_below(disk, number);
    }
}
