/* tests/unit/journal/sim_disk.c — see sim_disk.h. */
#include "sim_disk.h"

#include "base/list.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILES_MAX = 64,
    SECTOR = 512
};

typedef struct content {
    char name[64];
    uint8_t *seen, *platter;
    uint64_t bytes, syncs;
    bool fail_sync;
} content;

struct sim_disk {
    pthread_mutex_t mutex; /* the log syncs and makes segments in threads of its own */
    content *files[FILES_MAX];
    unsigned file_count;
    uint64_t calls, fail_at;
    sl_err fail_err;
    bool full, dead; /* dead: the power is gone; nothing that is still running changes anything */
};

typedef struct door {
    sl_disk base;
    sim_disk *disk;
} door;

typedef struct handle {
    sl_file base;
    content *content;
} handle;

static sim_disk *disk_of(sl_disk *disk)
{
    return SL_CONTAINER_OF(disk, door, base)->disk;
}

static content *content_of(sl_file *file)
{
    return SL_CONTAINER_OF(file, handle, base)->content;
}

static content *find(sim_disk *disk, const char *name)
{
    for (unsigned i = 0; i < disk->file_count; i++)
        if (strcmp(disk->files[i]->name, name) == 0)
            return disk->files[i];
    return NULL;
}

/* Counts a call and says whether it is the one that fails. */
static sl_err step(sim_disk *disk)
{
    if (disk->dead)
        return SL_ERR_IO;
    return disk->calls++ == disk->fail_at ? disk->fail_err : SL_OK;
}

static sl_err sim_lock(sl_disk *disk, uint64_t *ret_pid)
{
    (void)disk;
    (void)ret_pid;
    return SL_OK;
}

static sl_err sim_list(sl_disk *disk, sl_name_fn *fn, void *ctx)
{
    sim_disk *const d = disk_of(disk);

    pthread_mutex_lock(&d->mutex);
    for (unsigned i = 0; i < d->file_count; i++)
        fn(ctx, d->files[i]->name);
    pthread_mutex_unlock(&d->mutex);
    return SL_OK;
}

static sl_err open_content(sl_disk *disk, content *c, sl_file **ret_file)
{
    handle *const h = malloc(sizeof *h);

    *h = (handle){ .base = { .disk = disk }, .content = c };
    *ret_file = &h->base;
    return SL_OK;
}

static sl_err sim_open(sl_disk *disk, const char *name, sl_file **ret_file)
{
    sim_disk *const d = disk_of(disk);
    content *c;

    pthread_mutex_lock(&d->mutex);
    c = find(d, name);
    pthread_mutex_unlock(&d->mutex);
    return c == NULL ? SL_ERR_NOT_FOUND : open_content(disk, c, ret_file);
}

static sl_err sim_create(sl_disk *disk, const char *name, uint64_t bytes, sl_file **ret_file)
{
    sim_disk *const d = disk_of(disk);
    content *c = NULL;
    sl_err err;

    pthread_mutex_lock(&d->mutex);
    err = step(d);
    if (err == SL_OK && d->full)
        err = SL_ERR_NO_SPACE;
    if (err == SL_OK && (find(d, name) != NULL || d->file_count == FILES_MAX))
        err = SL_ERR_IO;
    if (err == SL_OK) {
        c = calloc(1, sizeof *c);
        snprintf(c->name, sizeof c->name, "%s", name);
        c->bytes = bytes;
        c->seen = calloc(1, bytes);
        c->platter = calloc(1, bytes);
        d->files[d->file_count++] = c;
        err = open_content(disk, c, ret_file);
    }
    pthread_mutex_unlock(&d->mutex);
    return err;
}

static void sim_close(sl_file *file)
{
    free(SL_CONTAINER_OF(file, handle, base));
}

static uint64_t sim_size(sl_file *file)
{
    return content_of(file)->bytes;
}

static sl_err sim_write(sl_file *file, uint64_t offset, const void *data, size_t bytes)
{
    sim_disk *const d = disk_of(file->disk);
    sl_err err;

    pthread_mutex_lock(&d->mutex);
    err = step(d);
    if (!d->dead)
        memcpy(content_of(file)->seen + offset, data, err == SL_OK ? bytes : bytes / 2);
    pthread_mutex_unlock(&d->mutex);
    return err;
}

static sl_err sim_read(sl_file *file, uint64_t offset, void *data, size_t bytes)
{
    memcpy(data, content_of(file)->seen + offset, bytes);
    return SL_OK;
}

static sl_err sim_sync(sl_file *file)
{
    sim_disk *const d = disk_of(file->disk);
    content *const c = content_of(file);
    sl_err err;

    pthread_mutex_lock(&d->mutex);
    err = step(d);
    c->syncs++;
    if (c->fail_sync)
        err = SL_ERR_IO;
    c->fail_sync = false;
    if (err == SL_OK)
        memcpy(c->platter, c->seen, c->bytes);
    pthread_mutex_unlock(&d->mutex);
    return err;
}

static sl_err sim_map(sl_file *file, const uint8_t **ret_bytes)
{
    *ret_bytes = content_of(file)->seen;
    return SL_OK;
}

static sl_err sim_rename(sl_disk *disk, const char *from, const char *to)
{
    sim_disk *const d = disk_of(disk);
    content *c;
    sl_err err;

    pthread_mutex_lock(&d->mutex);
    err = step(d);
    c = find(d, from);
    if (err == SL_OK && c == NULL)
        err = SL_ERR_NOT_FOUND;
    if (err == SL_OK)
        snprintf(c->name, sizeof c->name, "%s", to);
    pthread_mutex_unlock(&d->mutex);
    return err;
}

static void drop(sim_disk *disk, unsigned index)
{
    content *const c = disk->files[index];

    free(c->seen);
    free(c->platter);
    free(c);
    disk->files[index] = disk->files[--disk->file_count];
}

static sl_err sim_remove(sl_disk *disk, const char *name)
{
    sim_disk *const d = disk_of(disk);
    sl_err err;

    pthread_mutex_lock(&d->mutex);
    err = step(d);
    for (unsigned i = 0; err == SL_OK && i < d->file_count; i++) {
        if (strcmp(d->files[i]->name, name) == 0) {
            drop(d, i);
            pthread_mutex_unlock(&d->mutex);
            return SL_OK;
        }
    }
    pthread_mutex_unlock(&d->mutex);
    return err == SL_OK ? SL_ERR_NOT_FOUND : err;
}

static void sim_free(sl_disk *disk)
{
    free(SL_CONTAINER_OF(disk, door, base));
}

static const sl_disk_ops sim_ops = { .lock = sim_lock,
                                     .list = sim_list,
                                     .open = sim_open,
                                     .create = sim_create,
                                     .close = sim_close,
                                     .size = sim_size,
                                     .write = sim_write,
                                     .read = sim_read,
                                     .sync = sim_sync,
                                     .map = sim_map,
                                     .rename = sim_rename,
                                     .remove = sim_remove,
                                     .free = sim_free };

sim_disk *sim_disk_new(void)
{
    sim_disk *const d = calloc(1, sizeof *d);

    pthread_mutex_init(&d->mutex, NULL);
    d->fail_at = UINT64_MAX;
    return d;
}

void sim_disk_free(sim_disk *disk)
{
    while (disk->file_count > 0)
        drop(disk, 0);
    pthread_mutex_destroy(&disk->mutex);
    free(disk);
}

sl_disk *sim_disk_door(sim_disk *disk)
{
    door *const d = malloc(sizeof *d);

    *d = (door){ .base = { .ops = &sim_ops }, .disk = disk };
    disk->dead = false;
    return &d->base;
}

static bool coin(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 63;
}

static void tear(content *c, uint64_t *state)
{
    for (uint64_t at = 0; at < c->bytes; at += SECTOR) {
        const size_t bytes = c->bytes - at < SECTOR ? (size_t)(c->bytes - at) : SECTOR;
        if (memcmp(c->platter + at, c->seen + at, bytes) != 0 && coin(state))
            memcpy(c->platter + at, c->seen + at, bytes);
    }
}

void sim_disk_power_cut(sim_disk *disk, uint64_t seed)
{
    uint64_t state = seed * 2 + 1;

    pthread_mutex_lock(&disk->mutex);
    disk->dead = true;
    for (unsigned i = 0; i < disk->file_count; i++)
        tear(disk->files[i], &state);
    pthread_mutex_unlock(&disk->mutex);
}

void sim_disk_settle(sim_disk *disk)
{
    for (unsigned i = 0; i < disk->file_count; i++)
        memcpy(disk->files[i]->seen, disk->files[i]->platter, disk->files[i]->bytes);
}

void sim_disk_flip(sim_disk *disk, const char *name, uint64_t offset, unsigned bit)
{
    content *const c = find(disk, name);

    c->seen[offset] ^= (uint8_t)(1u << bit);
    c->platter[offset] ^= (uint8_t)(1u << bit);
}

void sim_disk_fail_after(sim_disk *disk, uint64_t calls, sl_err err)
{
    pthread_mutex_lock(&disk->mutex);
    disk->fail_at = calls == UINT64_MAX ? UINT64_MAX : disk->calls + calls;
    disk->fail_err = err;
    pthread_mutex_unlock(&disk->mutex);
}

void sim_disk_fail_sync(sim_disk *disk, const char *name)
{
    pthread_mutex_lock(&disk->mutex);
    find(disk, name)->fail_sync = true;
    pthread_mutex_unlock(&disk->mutex);
}

uint64_t sim_disk_syncs(sim_disk *disk, const char *name)
{
    uint64_t syncs;

    pthread_mutex_lock(&disk->mutex);
    syncs = find(disk, name)->syncs;
    pthread_mutex_unlock(&disk->mutex);
    return syncs;
}

uint64_t sim_disk_calls(sim_disk *disk)
{
    uint64_t calls;

    pthread_mutex_lock(&disk->mutex);
    calls = disk->calls;
    pthread_mutex_unlock(&disk->mutex);
    return calls;
}

void sim_disk_set_full(sim_disk *disk, bool full)
{
    pthread_mutex_lock(&disk->mutex);
    disk->full = full;
    pthread_mutex_unlock(&disk->mutex);
}
