/* store/faulty/disk.c — the simulated disk: names, doors, open files, and what is made to go wrong.
 *
 * One mutex for everything: the journal has threads of its own, and a test cuts the power in the middle of their
 * work. A door belongs to a life of the disk; kill and power cut end that life, so whoever still holds such a door gets
 * SL_ERR_IO and changes nothing, while the next door is as good as new. */
#include "store/faulty/content.h"
#include "store/faulty/faulty.h"

#include "base/list.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    NAME_BYTES_MAX = 64
};

typedef struct named {
    char name[NAME_BYTES_MAX];
    sl_content *content;
    uint64_t syncs;
    bool fail_sync;
} named;

struct sl_faulty {
    pthread_mutex_t mutex;
    named *files;
    size_t file_count, file_capacity;
    uint64_t life; /* doors of an earlier one are dead */
    size_t door_count;
    const void *locked_by; /* a door of this life */
    uint64_t calls, fail_at, cut_at, cut_seed;
    uint64_t bytes_read;
    sl_err fail_err;
    bool failed, full, is_dead;
    uint64_t slow_every, read_now_count, sync_us;
};

typedef struct door {
    sl_disk base;
    sl_faulty *disk;
    uint64_t life;
} door;

typedef struct handle {
    sl_file base;
    sl_content *content;
} handle;

static door *door_of(sl_disk *disk)
{
    return SL_CONTAINER_OF(disk, door, base);
}

static sl_content *content_of(sl_file *file)
{
    return SL_CONTAINER_OF(file, handle, base)->content;
}

static named *find(const sl_faulty *disk, const char *name)
{
    for (size_t i = 0; i < disk->file_count; i++)
        if (strcmp(disk->files[i].name, name) == 0)
            return &disk->files[i];
    return NULL;
}

/* The file that has this content now, under whatever name; NULL: it was removed. */
static named *find_content(const sl_faulty *disk, const sl_content *c)
{
    for (size_t i = 0; i < disk->file_count; i++)
        if (disk->files[i].content == c)
            return &disk->files[i];
    return NULL;
}

static named *add(sl_faulty *disk, const char *name, sl_content *c)
{
    assert(strlen(name) < NAME_BYTES_MAX);
    if (disk->file_count == disk->file_capacity) {
        disk->file_capacity = disk->file_capacity == 0 ? 16 : 2 * disk->file_capacity;
        disk->files = sl_content_resize(disk->files, disk->file_capacity * sizeof *disk->files);
    }
    disk->files[disk->file_count] = (named){ .content = c };
    snprintf(disk->files[disk->file_count].name, NAME_BYTES_MAX, "%s", name);
    return &disk->files[disk->file_count++];
}

static void drop(sl_faulty *disk, named *file)
{
    sl_content_drop(file->content);
    *file = disk->files[--disk->file_count];
}

static void end_life(sl_faulty *disk)
{
    disk->life++;
    disk->locked_by = NULL;
    disk->is_dead = true;
    disk->cut_at = UINT64_MAX;
}

static void cut_power(sl_faulty *disk, uint64_t seed)
{
    uint64_t dice = seed * 2 + 1;

    end_life(disk);
    for (size_t i = 0; i < disk->file_count; i++)
        sl_content_cut(disk->files[i].content, seed == 0 ? NULL : &dice);
}

/* Begins a call: the mutex is held from now on, also when this is the call that fails. */
static sl_err begin(sl_disk *disk, bool may_need_room)
{
    sl_faulty *const d = door_of(disk)->disk;

    pthread_mutex_lock(&d->mutex);
    if (door_of(disk)->life != d->life)
        return SL_ERR_IO;
    if (d->calls == d->cut_at) {
        cut_power(d, d->cut_seed);
        return SL_ERR_IO;
    }
    if (d->calls++ != d->fail_at)
        return SL_OK;
    d->failed = true;
    return d->fail_err == SL_ERR_NO_SPACE && !may_need_room ? SL_ERR_IO : d->fail_err;
}

static sl_err end(sl_disk *disk, sl_err err)
{
    pthread_mutex_unlock(&door_of(disk)->disk->mutex);
    return err;
}

/* --- the verbs of disk.h --- */

static sl_err faulty_lock(sl_disk *disk, uint64_t *ret_pid)
{
    sl_faulty *const d = door_of(disk)->disk;
    bool taken;

    pthread_mutex_lock(&d->mutex);
    taken = d->locked_by != NULL && d->locked_by != disk;
    if (!taken && door_of(disk)->life == d->life)
        d->locked_by = disk;
    pthread_mutex_unlock(&d->mutex);
    if (taken)
        *ret_pid = 0;
    return taken ? SL_ERR_LOCKED : SL_OK;
}

/* The names are copied before anybody is told, because whoever is told may rename and remove. */
static char (*copy_names(const sl_faulty *disk, size_t *ret_count))[NAME_BYTES_MAX]
{
    char(*const names)[NAME_BYTES_MAX] = sl_content_resize(NULL, (disk->file_count + 1) * NAME_BYTES_MAX);

    for (size_t i = 0; i < disk->file_count; i++)
        memcpy(names[i], disk->files[i].name, NAME_BYTES_MAX);
    *ret_count = disk->file_count;
    return names;
}

static void tell_names(char (*names)[NAME_BYTES_MAX], size_t count, sl_name_fn *fn, void *ctx)
{
    for (size_t i = 0; i < count; i++)
        fn(ctx, names[i]);
    free(names);
}

static sl_err faulty_list(sl_disk *disk, sl_name_fn *fn, void *ctx)
{
    const sl_err err = begin(disk, false);
    char(*names)[NAME_BYTES_MAX] = NULL;
    size_t count = 0;

    if (err == SL_OK)
        names = copy_names(door_of(disk)->disk, &count);
    end(disk, err);
    tell_names(names, count, fn, ctx);
    return err;
}

static void open_content(sl_disk *disk, sl_content *c, sl_file **ret_file)
{
    handle *const h = sl_content_resize(NULL, sizeof *h);

    *h = (handle){ .base = { .disk = disk }, .content = sl_content_keep(c) };
    *ret_file = &h->base;
}

static sl_err faulty_open(sl_disk *disk, const char *name, sl_file **ret_file)
{
    const sl_err err = begin(disk, false);
    const named *const file = find(door_of(disk)->disk, name);

    if (err != SL_OK || file == NULL)
        return end(disk, err != SL_OK ? err : SL_ERR_NOT_FOUND);
    open_content(disk, file->content, ret_file);
    return end(disk, SL_OK);
}

static sl_err faulty_create(sl_disk *disk, const char *name, uint64_t bytes, const sl_pace *pace,
                            sl_file **ret_file)
{
    sl_faulty *const d = door_of(disk)->disk;
    sl_err err = begin(disk, true);

    (void)pace; /* one piece: what a power cut leaves of a half-made file is the same at any pace */
    if (err == SL_OK && find(d, name) != NULL)
        err = SL_ERR_IO;
    if (err == SL_OK && d->full)
        err = SL_ERR_NO_SPACE;
    if (err == SL_OK)
        open_content(disk, add(d, name, sl_content_new(bytes))->content, ret_file);
    return end(disk, err);
}

static void faulty_close(sl_file *file)
{
    sl_faulty *const d = door_of(file->disk)->disk;

    pthread_mutex_lock(&d->mutex);
    sl_content_drop(content_of(file));
    pthread_mutex_unlock(&d->mutex);
    free(SL_CONTAINER_OF(file, handle, base));
}

static uint64_t faulty_size(sl_file *file)
{
    sl_faulty *const d = door_of(file->disk)->disk;
    uint64_t bytes;

    pthread_mutex_lock(&d->mutex);
    bytes = sl_content_bytes(content_of(file));
    pthread_mutex_unlock(&d->mutex);
    return bytes;
}

/* How much of a write gets through: half when it is made to fail, up to the end of the file when there is no room. */
static sl_err write_part(sl_faulty *disk, sl_file *file, uint64_t offset, size_t *bytes, sl_err err)
{
    const uint64_t end_of_file = sl_content_bytes(content_of(file));

    if (err != SL_OK)
        *bytes /= 2;
    if (!disk->full || offset + *bytes <= end_of_file)
        return err;
    *bytes = offset < end_of_file ? (size_t)(end_of_file - offset) : 0;
    return err == SL_OK ? SL_ERR_NO_SPACE : err;
}

static sl_err faulty_write(sl_file *file, uint64_t offset, const void *data, size_t bytes)
{
    const door *const from = door_of(file->disk);
    sl_err err = begin(file->disk, true);

    if (from->life == from->disk->life) {
        err = write_part(from->disk, file, offset, &bytes, err);
        sl_content_write(content_of(file), offset, data, bytes);
    }
    return end(file->disk, err);
}

static sl_err read_content(sl_file *file, uint64_t offset, void *data, size_t bytes)
{
    const sl_content *const c = content_of(file);

    if (offset > sl_content_bytes(c) || bytes > sl_content_bytes(c) - offset)
        return SL_ERR_IO;
    memcpy(data, sl_content_seen(c) + offset, bytes);
    door_of(file->disk)->disk->bytes_read += bytes;
    return SL_OK;
}

static sl_err faulty_read(sl_file *file, uint64_t offset, void *data, size_t bytes)
{
    const sl_err err = begin(file->disk, false);

    return end(file->disk, err != SL_OK ? err : read_content(file, offset, data, bytes));
}

static sl_err faulty_read_now(sl_file *file, uint64_t offset, void *data, size_t bytes)
{
    sl_faulty *const d = door_of(file->disk)->disk;
    sl_err err = begin(file->disk, false);

    if (err == SL_OK && d->slow_every > 0 && ++d->read_now_count % d->slow_every == 0)
        err = SL_ERR_AGAIN;
    return end(file->disk, err != SL_OK ? err : read_content(file, offset, data, bytes));
}

/* Whether this sync of the file is to fail. */
static sl_err begin_sync(sl_file *file)
{
    sl_faulty *const d = door_of(file->disk)->disk;
    sl_err err = begin(file->disk, true);
    named *const of = find_content(d, content_of(file));

    if (door_of(file->disk)->life != d->life || of == NULL)
        return err;
    of->syncs++;
    err = of->fail_sync ? SL_ERR_IO : err;
    of->fail_sync = false;
    return err;
}

/* Others go on while it takes its time. */
static void take_time(sl_faulty *disk)
{
    const uint64_t us = disk->sync_us;
    const struct timespec time = { .tv_nsec = (long)us * 1000 };

    if (us == 0)
        return;
    pthread_mutex_unlock(&disk->mutex);
    nanosleep(&time, NULL);
    pthread_mutex_lock(&disk->mutex);
}

static sl_err faulty_sync(sl_file *file)
{
    const door *const from = door_of(file->disk);
    sl_content *const c = content_of(file);
    sl_err err = begin_sync(file);
    const sl_content_mark begun = sl_content_sync_begin(c);

    take_time(from->disk);
    if (from->life != from->disk->life)
        err = SL_ERR_IO;
    else if (err == SL_OK)
        sl_content_sync_end(c, begun);
    else
        sl_content_sync_failed(c);
    return end(file->disk, err);
}

static sl_err faulty_rename(sl_disk *disk, const char *from, const char *to)
{
    sl_faulty *const d = door_of(disk)->disk;
    sl_err err = begin(disk, true);
    named *file = find(d, from);

    assert(strlen(to) < NAME_BYTES_MAX);
    if (err == SL_OK && file == NULL)
        err = SL_ERR_NOT_FOUND;
    if (err != SL_OK || strcmp(from, to) == 0)
        return end(disk, err);
    if (find(d, to) != NULL) {
        drop(d, find(d, to));
        file = find(d, from); /* it may have moved */
    }
    snprintf(file->name, NAME_BYTES_MAX, "%s", to);
    return end(disk, SL_OK);
}

static sl_err faulty_remove(sl_disk *disk, const char *name)
{
    sl_faulty *const d = door_of(disk)->disk;
    const sl_err err = begin(disk, false);
    named *const file = find(d, name);

    if (err == SL_OK && file != NULL)
        drop(d, file);
    return end(disk, err == SL_OK && file == NULL ? SL_ERR_NOT_FOUND : err);
}

static void faulty_free(sl_disk *disk)
{
    sl_faulty *const d = door_of(disk)->disk;

    pthread_mutex_lock(&d->mutex);
    d->door_count--;
    if (d->locked_by == disk)
        d->locked_by = NULL;
    pthread_mutex_unlock(&d->mutex);
    free(door_of(disk));
}

static const sl_disk_ops faulty_ops = {
    .lock = faulty_lock,
    .list = faulty_list,
    .open = faulty_open,
    .create = faulty_create,
    .close = faulty_close,
    .size = faulty_size,
    .write = faulty_write,
    .read = faulty_read,
    .sync = faulty_sync,
    .read_now = faulty_read_now,
    .rename = faulty_rename,
    .remove = faulty_remove,
    .free = faulty_free,
};

/* --- the hand of the test --- */

sl_faulty *sl_faulty_new(void)
{
    sl_faulty *const d = sl_content_resize(NULL, sizeof *d);

    *d = (sl_faulty){ .fail_at = UINT64_MAX, .cut_at = UINT64_MAX };
    pthread_mutex_init(&d->mutex, NULL);
    return d;
}

void sl_faulty_free(sl_faulty *disk)
{
    if (disk == NULL)
        return;
    while (disk->file_count > 0)
        drop(disk, &disk->files[0]);
    free(disk->files);
    pthread_mutex_destroy(&disk->mutex);
    free(disk);
}

sl_disk *sl_faulty_door(sl_faulty *disk)
{
    door *const d = sl_content_resize(NULL, sizeof *d);

    pthread_mutex_lock(&disk->mutex);
    *d = (door){ .base = { .ops = &faulty_ops }, .disk = disk, .life = disk->life };
    disk->door_count++;
    disk->is_dead = false;
    pthread_mutex_unlock(&disk->mutex);
    return &d->base;
}

void sl_faulty_kill(sl_faulty *disk)
{
    pthread_mutex_lock(&disk->mutex);
    end_life(disk);
    pthread_mutex_unlock(&disk->mutex);
}

void sl_faulty_power_cut(sl_faulty *disk, uint64_t seed)
{
    pthread_mutex_lock(&disk->mutex);
    cut_power(disk, seed);
    pthread_mutex_unlock(&disk->mutex);
}

void sl_faulty_cut_after(sl_faulty *disk, uint64_t calls, uint64_t seed)
{
    pthread_mutex_lock(&disk->mutex);
    disk->cut_at = calls == UINT64_MAX ? UINT64_MAX : disk->calls + calls;
    disk->cut_seed = seed;
    pthread_mutex_unlock(&disk->mutex);
}

bool sl_faulty_is_dead(sl_faulty *disk)
{
    bool is_dead;

    pthread_mutex_lock(&disk->mutex);
    is_dead = disk->is_dead;
    pthread_mutex_unlock(&disk->mutex);
    return is_dead;
}

/* Nothing is left to be done: the dead can not read any more, so the cut has put back at once what is lost. */
void sl_faulty_settle(sl_faulty *disk)
{
    pthread_mutex_lock(&disk->mutex);
    assert(disk->door_count == 0);
    pthread_mutex_unlock(&disk->mutex);
}

bool sl_faulty_flip(sl_faulty *disk, const char *name, uint64_t offset, unsigned bit)
{
    const named *file;
    bool done;

    pthread_mutex_lock(&disk->mutex);
    file = find(disk, name);
    done = file != NULL && offset < sl_content_bytes(file->content);
    if (done)
        sl_content_flip(file->content, offset, bit);
    pthread_mutex_unlock(&disk->mutex);
    return done;
}

void sl_faulty_fail_after(sl_faulty *disk, uint64_t calls, sl_err err)
{
    pthread_mutex_lock(&disk->mutex);
    disk->fail_at = calls == UINT64_MAX ? UINT64_MAX : disk->calls + calls;
    disk->fail_err = err;
    disk->failed = false;
    pthread_mutex_unlock(&disk->mutex);
}

uint64_t sl_faulty_calls(sl_faulty *disk)
{
    uint64_t calls;

    pthread_mutex_lock(&disk->mutex);
    calls = disk->calls;
    pthread_mutex_unlock(&disk->mutex);
    return calls;
}

uint64_t sl_faulty_bytes_read(sl_faulty *disk)
{
    uint64_t bytes;

    pthread_mutex_lock(&disk->mutex);
    bytes = disk->bytes_read;
    pthread_mutex_unlock(&disk->mutex);
    return bytes;
}

bool sl_faulty_failed(sl_faulty *disk)
{
    bool failed;

    pthread_mutex_lock(&disk->mutex);
    failed = disk->failed;
    pthread_mutex_unlock(&disk->mutex);
    return failed;
}

void sl_faulty_slow_reads(sl_faulty *disk, uint64_t every)
{
    pthread_mutex_lock(&disk->mutex);
    disk->slow_every = every;
    pthread_mutex_unlock(&disk->mutex);
}

void sl_faulty_slow_syncs(sl_faulty *disk, uint64_t microseconds)
{
    pthread_mutex_lock(&disk->mutex);
    disk->sync_us = microseconds;
    pthread_mutex_unlock(&disk->mutex);
}

void sl_faulty_fail_sync(sl_faulty *disk, const char *name)
{
    pthread_mutex_lock(&disk->mutex);
    assert(find(disk, name) != NULL);
    find(disk, name)->fail_sync = true;
    pthread_mutex_unlock(&disk->mutex);
}

uint64_t sl_faulty_syncs(sl_faulty *disk, const char *name)
{
    const named *file;
    uint64_t syncs;

    pthread_mutex_lock(&disk->mutex);
    file = find(disk, name);
    syncs = file == NULL ? 0 : file->syncs;
    pthread_mutex_unlock(&disk->mutex);
    return syncs;
}

void sl_faulty_set_full(sl_faulty *disk, bool full)
{
    pthread_mutex_lock(&disk->mutex);
    disk->full = full;
    pthread_mutex_unlock(&disk->mutex);
}

void sl_faulty_each(sl_faulty *disk, sl_name_fn *fn, void *ctx)
{
    char(*names)[NAME_BYTES_MAX];
    size_t count;

    pthread_mutex_lock(&disk->mutex);
    names = copy_names(disk, &count);
    pthread_mutex_unlock(&disk->mutex);
    tell_names(names, count, fn, ctx);
}

const uint8_t *sl_faulty_content(sl_faulty *disk, const char *name, uint64_t *ret_bytes)
{
    const named *file;
    const uint8_t *seen = NULL;

    pthread_mutex_lock(&disk->mutex);
    file = find(disk, name);
    if (file != NULL) {
        seen = sl_content_seen(file->content);
        *ret_bytes = sl_content_bytes(file->content);
    }
    pthread_mutex_unlock(&disk->mutex);
    return seen;
}
