/* tests/faults/flips.c — a bit is changed, a file is cut short or gone: reading gives the truth or says "damaged".
 *
 * Segments are the truth itself: what is damaged in them is told, with the name of the file, and is there again when the bit
 * is as it was. Indexes and rolls are made from segments: without them everything can be read. */
#include "judge.h"
#include "report.h"
#include "suites.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECTOR = 512,
    NAME_MAX_BYTES = 64
};

static world whole; /* too large for a stack */
static struct {
    uint64_t told, harmless, caches, told_caches;
} totals;

/* --- choosing a file --- */

typedef struct choice {
    dice *d;
    const char *suffix;
    uint64_t count;
    char name[NAME_MAX_BYTES];
} choice;

static void consider(void *ctx, const char *name)
{
    choice *const c = ctx;

    if (strstr(name, c->suffix) != NULL && dice_one_in(c->d, ++c->count))
        snprintf(c->name, sizeof c->name, "%s", name);
}

/* False: there is no such file. */
static bool choose(world *w, const char *suffix, char name[NAME_MAX_BYTES])
{
    choice c = { .d = &w->timing, .suffix = suffix };

    sl_faulty_each(w->disk, consider, &c);
    snprintf(name, NAME_MAX_BYTES, "%s", c.name);
    return c.count > 0;
}

/* --- damage --- */

static void cut_short(world *w, const char *name)
{
    sl_disk *const door = sl_faulty_door(w->disk);
    sl_file *file = NULL;
    uint64_t bytes = 0;
    const uint8_t *const content = sl_faulty_content(w->disk, name, &bytes);
    const uint64_t kept = dice_pick(&w->timing, bytes);
    uint8_t *const copy = malloc(kept + 1);

    CHECK(copy != NULL, "no memory");
    memcpy(copy, content, kept);
    CHECK(door->ops->remove(door, name) == SL_OK &&
              door->ops->create(door, name, kept, NULL, &file) == SL_OK &&
              door->ops->write(file, 0, copy, kept) == SL_OK && door->ops->sync(file) == SL_OK,
          "the file can not be cut");
    door->ops->close(file);
    door->ops->free(door);
    free(copy);
}

static void remove_file(world *w, const char *name)
{
    sl_disk *const door = sl_faulty_door(w->disk);

    CHECK(door->ops->remove(door, name) == SL_OK, "the file can not be removed");
    door->ops->free(door);
}

/* Mostly where something stands, and often at the borders of things. */
static uint64_t choose_offset(world *w, const char *name)
{
    uint64_t bytes = 0, used;
    const uint8_t *const content = sl_faulty_content(w->disk, name, &bytes);

    CHECK(bytes > 0, "%s is empty", name);
    for (used = bytes; used > 1 && content[used - 1] == 0;)
        used--;
    if (dice_one_in(&w->timing, 6))
        return dice_pick(&w->timing, bytes < 64 ? bytes : 64);
    return dice_pick(&w->timing, dice_one_in(&w->timing, 10) ? bytes : used);
}

/* --- cases --- */

static void check_named(const world *w, const char *name)
{
    CHECK(strstr(w->words, name) != NULL, "%s is damaged, and it is said: \"%s\"", name, w->words);
    CHECK(strpbrk(strstr(w->words, name) + strlen(name), "0123456789") != NULL, "no offset is told: \"%s\"",
          w->words);
}

/* The sector as it is now; zeros where there is none any more. */
static void copy_sector(world *w, const char *name, uint64_t offset, uint8_t ret_sector[SECTOR])
{
    uint64_t bytes = 0;
    const uint8_t *const content = sl_faulty_content(w->disk, name, &bytes);
    const uint64_t left = content == NULL || bytes < offset ? 0 : bytes - offset;

    memset(ret_sector, 0, SECTOR);
    if (left > 0)
        memcpy(ret_sector, content + offset, left < SECTOR ? left : SECTOR);
}

static void damage_segment(world *w, const char *name)
{
    const uint64_t offset = choose_offset(w, name), sector = offset / SECTOR * SECTOR;
    const unsigned bit = (unsigned)dice_pick(&w->timing, 8);
    uint8_t before[SECTOR], after[SECTOR];
    sl_err err;

    sl_faulty_flip(w->disk, name, offset, bit);
    copy_sector(w, name, sector, before);
    err = world_open_damaged(w);
    totals.told += err != SL_OK;
    totals.harmless += err == SL_OK;
    if (err != SL_OK)
        check_named(w, name);
    copy_sector(w, name, sector, after);
    if (memcmp(before, after, SECTOR) == 0) /* what was free may have been written to since, or be gone */
        sl_faulty_flip(w->disk, name, offset, bit);
    world_open(w);
    judge_all(w, JUDGE_STRICT);
    world_work(w, 10);
}

/* All that stands in it, to be freed; NULL: there is no such file. */
static uint8_t *copy_file(world *w, const char *name, uint64_t *ret_bytes)
{
    const uint8_t *const content = sl_faulty_content(w->disk, name, ret_bytes);
    uint8_t *const copy = content == NULL ? NULL : malloc(*ret_bytes + 1);

    if (content != NULL) {
        CHECK(copy != NULL, "no memory");
        memcpy(copy, content, *ret_bytes);
    }
    return copy;
}

static bool is_unchanged(world *w, const char *name, const uint8_t *before, uint64_t before_bytes)
{
    uint64_t bytes = 0;
    const uint8_t *const content = sl_faulty_content(w->disk, name, &bytes);

    return before != NULL && content != NULL && bytes == before_bytes && memcmp(content, before, bytes) == 0;
}

/* What is read later than at the start is told, as for segments. What was not read yet may be told of by any later reader, and which
 * place that is depends on threads: so the damage goes before everything has to be right, and what was made anew stays. */
static void open_with_damaged_cache(world *w, const char *name)
{
    uint64_t bytes = 0;
    uint8_t *const damaged = copy_file(w, name, &bytes);

    if (world_open_damaged(w) != SL_OK) {
        check_named(w, name);
        remove_file(w, name);
        totals.told_caches++;
    } else if (is_unchanged(w, name, damaged, bytes)) {
        remove_file(w, name);
    }
    free(damaged);
}

static void damage_cache(world *w, const char *name)
{
    const uint64_t what = dice_pick(&w->timing, 10);

    totals.caches++;
    if (what == 0)
        remove_file(w, name);
    else if (what < 3)
        cut_short(w, name);
    else
        sl_faulty_flip(w->disk, name, choose_offset(w, name), (unsigned)dice_pick(&w->timing, 8));
    open_with_damaged_cache(w, name);
    world_open(w);
    judge_all(w, JUDGE_STRICT);
    world_work(w, 30);
}

static void run(uint64_t seed, const suite_options *options)
{
    static const char *const suffixes[] = { ".seg", ".seg", ".idx", ".roll" };
    world *const w = &whole;
    char name[NAME_MAX_BYTES];
    const char *suffix;

    (void)options;
    model_begin(false);
    world_init(w, seed);
    w->disk = sl_faulty_new();
    w->options = (sl_journal_options){ .segment_bytes = 32 * 1024 };
    for (uint64_t i = 0, lives = 1 + dice_pick(&w->timing, 3); i < lives; i++) {
        world_open(w);
        world_work(w, 60 + dice_pick(&w->timing, 150));
        world_crash(w, WORLD_CLOSED, 0);
    }
    suffix = suffixes[dice_pick(&w->timing, 4)];
    if (!choose(w, suffix, name)) /* too short for an index */
        world_open(w);
    else if (strcmp(suffix, ".seg") == 0)
        damage_segment(w, name);
    else
        damage_cache(w, name);
    world_crash(w, WORLD_CLOSED, 0);
    world_open(w);
    world_crash(w, WORLD_CLOSED, 0);
    world_done(w);
}

void suite_flips(const suite_options *options)
{
    memset(&totals, 0, sizeof totals);
    suite_run(options, "flips", 60, run);
    tap_note("segments: %" PRIu64 " times told, %" PRIu64 " times nothing was hit; %" PRIu64
             " damaged caches, %" PRIu64 " of them told by a reader",
             totals.told, totals.harmless, totals.caches, totals.told_caches);
}
