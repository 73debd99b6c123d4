/* store/faulty/content.c — see content.h. */
#include "store/faulty/content.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECTOR = 512
};

/* A sector of which the platter has other bytes than a reader sees. */
typedef struct unsynced {
    uint32_t sector;
    bool lost;             /* a sync has failed: the next one does not save it */
    uint64_t written;      /* by the how-manieth write */
    bool has_begun;        /* it was written while a sync runs: */
    uint8_t begun[SECTOR]; /* what the sync has to save, at least */
    uint8_t platter[SECTOR];
} unsynced;

struct sl_content {
    unsigned holders;
    uint8_t *seen; /* zeros from `bytes` to `capacity` */
    uint64_t bytes, platter_bytes, capacity;
    uint32_t *unsynced_of; /* for each sector its place in `list` plus one; 0: it is synced */
    unsynced *list;        /* in the order in which they were first written */
    uint32_t count, list_capacity;
    uint64_t writes;
    uint64_t syncing; /* a sync runs that covers so many writes, plus one; 0: none does */
    uint64_t dice;    /* for what the system writes back by itself */
};

void *sl_content_resize(void *memory, size_t bytes)
{
    void *const m = realloc(memory, bytes);

    if (m == NULL)
        abort();
    return m;
}

uint32_t sl_content_draw(uint64_t *dice)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*dice >> 32);
}

/* Fresh zeros by calloc, because those of a large file cost nothing until they are touched. */
static void *zeros(uint64_t count, size_t bytes)
{
    void *const m = calloc(count, bytes);

    if (m == NULL)
        abort();
    return m;
}

static uint64_t sectors_in(uint64_t bytes)
{
    return (bytes + SECTOR - 1) / SECTOR;
}

static void make_room(sl_content *c, uint64_t bytes)
{
    const uint64_t capacity = sectors_in(bytes < 2 * c->capacity ? 2 * c->capacity : bytes) * SECTOR;
    uint8_t *const seen = zeros(capacity, 1);
    uint32_t *const unsynced_of = zeros(capacity / SECTOR, sizeof *unsynced_of);

    if (c->capacity > 0) {
        memcpy(seen, c->seen, c->capacity);
        memcpy(unsynced_of, c->unsynced_of, c->capacity / SECTOR * sizeof *unsynced_of);
    }
    free(c->seen);
    free(c->unsynced_of);
    c->seen = seen;
    c->unsynced_of = unsynced_of;
    c->capacity = capacity;
}

sl_content *sl_content_new(uint64_t bytes)
{
    sl_content *const c = zeros(1, sizeof *c);

    *c = (sl_content){ .holders = 1, .bytes = bytes, .platter_bytes = bytes, .dice = bytes };
    make_room(c, bytes > 0 ? bytes : SECTOR);
    return c;
}

sl_content *sl_content_keep(sl_content *c)
{
    c->holders++;
    return c;
}

void sl_content_drop(sl_content *c)
{
    if (--c->holders > 0)
        return;
    free(c->seen);
    free(c->unsynced_of);
    free(c->list);
    free(c);
}

uint64_t sl_content_bytes(const sl_content *c)
{
    return c->bytes;
}

const uint8_t *sl_content_seen(const sl_content *c)
{
    return c->seen;
}

/* Before a sector is changed: what the platter has is kept. */
static void remember(sl_content *c, uint32_t sector)
{
    const uint8_t *const seen = c->seen + (uint64_t)sector * SECTOR;
    unsynced *u;

    if (c->unsynced_of[sector] != 0) {
        u = &c->list[c->unsynced_of[sector] - 1];
        if (!u->lost && !u->has_begun && u->written < c->syncing) {
            memcpy(u->begun, seen, SECTOR);
            u->has_begun = true;
        }
        u->lost = false;
        u->written = c->writes;
        if (sl_content_draw(&c->dice) % 4 == 0)
            memcpy(u->platter, seen, SECTOR);
        return;
    }
    if (c->count == c->list_capacity) {
        c->list_capacity = c->list_capacity == 0 ? 16 : 2 * c->list_capacity;
        c->list = sl_content_resize(c->list, c->list_capacity * sizeof *c->list);
    }
    u = &c->list[c->count++];
    *u = (unsynced){ .sector = sector, .written = c->writes };
    memcpy(u->platter, seen, SECTOR);
    c->unsynced_of[sector] = c->count;
}

void sl_content_write(sl_content *c, uint64_t offset, const void *data, size_t bytes)
{
    if (bytes == 0)
        return;
    if (offset + bytes > c->capacity)
        make_room(c, offset + bytes);
    c->writes++;
    for (uint64_t sector = offset / SECTOR; sector <= (offset + bytes - 1) / SECTOR; sector++)
        remember(c, (uint32_t)sector);
    memcpy(c->seen + offset, data, bytes);
    if (offset + bytes > c->bytes)
        c->bytes = offset + bytes;
}

/* A sector that was written again while the sync ran: what it had when that began is on the platter now, at least. */
static void save_begun(unsynced *u)
{
    if (u->has_begun)
        memcpy(u->platter, u->begun, SECTOR);
    u->has_begun = false;
}

/* Takes out of the list what was written up to a write, in place; what is lost stays. */
static void forget(sl_content *c, uint64_t writes)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < c->count; i++) {
        if (c->list[i].lost || c->list[i].written > writes) {
            save_begun(&c->list[i]);
            c->unsynced_of[c->list[i].sector] = kept + 1;
            if (kept != i)
                c->list[kept] = c->list[i];
            kept++;
        } else {
            c->unsynced_of[c->list[i].sector] = 0;
        }
    }
    c->count = kept;
}

sl_content_mark sl_content_sync_begin(sl_content *c)
{
    c->syncing = c->writes + 1;
    return (sl_content_mark){ c->writes, c->bytes };
}

void sl_content_sync_end(sl_content *c, sl_content_mark begun)
{
    forget(c, begun.writes);
    c->syncing = 0;
    if (begun.bytes > c->platter_bytes)
        c->platter_bytes = begun.bytes;
}

static void forget_all(sl_content *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        c->unsynced_of[c->list[i].sector] = 0;
    c->count = 0;
}

void sl_content_sync_failed(sl_content *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        c->list[i].lost = true;
        c->list[i].has_begun = false;
    }
    c->syncing = 0;
}

static void put_back(sl_content *c, const unsynced *u)
{
    memcpy(c->seen + (uint64_t)u->sector * SECTOR, u->platter, SECTOR);
}

/* Independent coins alone would hardly ever keep all of many sectors, or just the first ones: so all are kept, none is,
 * those before or behind a place are, or each by a coin that may be loaded. */
static void decide(sl_content *c, uint64_t *dice)
{
    const uint32_t how = sl_content_draw(dice) % 8, place = sl_content_draw(dice) % (c->count + 1);
    const uint32_t keep_of_8 = how == 0 ? 1 : how == 1 ? 7 : 4;

    for (uint32_t i = 0; i < c->count; i++) {
        const bool coin = sl_content_draw(dice) % 8 < keep_of_8;
        const bool kept = how == 2   ? true
                          : how == 3 ? false
                          : how == 4 ? i < place
                          : how == 5 ? i >= place
                                     : coin;
        if (!kept || c->list[i].lost)
            put_back(c, &c->list[i]);
    }
}

/* Any length that it had or passed. */
static uint64_t decide_length(const sl_content *c, uint64_t *dice)
{
    const uint64_t grown = c->bytes - c->platter_bytes;
    const uint32_t how = sl_content_draw(dice) % 4;
    const uint64_t random = sl_content_draw(dice) % (grown + 1);

    return how == 0 ? c->bytes : how == 1 ? c->platter_bytes : c->platter_bytes + random;
}

static void lose_all(sl_content *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        put_back(c, &c->list[i]);
}

static void shorten(sl_content *c, uint64_t bytes)
{
    memset(c->seen + bytes, 0, c->bytes - bytes);
    c->bytes = c->platter_bytes = bytes;
}

void sl_content_cut(sl_content *c, uint64_t *dice)
{
    if (dice == NULL)
        lose_all(c);
    else
        decide(c, dice);
    shorten(c, dice == NULL ? c->platter_bytes : decide_length(c, dice));
    forget_all(c);
}

void sl_content_flip(sl_content *c, uint64_t offset, unsigned bit)
{
    const uint32_t place = c->unsynced_of[offset / SECTOR];
    const uint8_t mask = (uint8_t)(1u << bit % 8);

    assert(offset < c->bytes);
    c->seen[offset] ^= mask;
    if (place != 0)
        c->list[place - 1].platter[offset % SECTOR] ^= mask;
}
