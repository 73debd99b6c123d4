/* worker/ack_file.c — see ack_file.h.
 *
 *      |  header (one page): magic, version, source, consumer name, epoch, checksum  |  place 0  |  place 1  | ...
 *      place:  id, token, revision, park or ack, bytes of the reason,  seal,  unsure since,  the reason of a park
 *
 * The seal is one word: zero for an empty place, else the checksum of everything else that counts in it, of the place's own number and
 * of the file's epoch, beside a mark. It is stored last, and cleared first: whenever the process dies, a place is empty or whole. (What a killed
 * process has stored in a shared mapping is the system's, in the order of its stores; only the compiler must be kept from changing that
 * order.) A place whose seal is broken, by a disk or by somebody's editor, counts as empty.
 *
 * The header never changes in place: another source or name means a new file, written beside the old one and renamed over it. Who
 * writes PATH.new holds the lock of that name while doing so; who has the file open holds the lock of the file.
 *
 * All blocks are there before the file is mapped, because a full disk would otherwise be a SIGBUS at some store later. Somebody who
 * cuts the file short while it is mapped can still cause one: against that nothing helps but the rights of the folder.
 *
 * Numbers are in the order of this machine: the file is never carried to another. A foreign order fails the magic number. */
#include "worker/ack_file.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/crc32c.h"
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x534c61636b66696c) /* "SLackfil" */

enum {
    VERSION = 1,
    HEADER_BYTES = 4096,
    SOURCE_SHOWN_BYTES_MAX = 1000, /* of the text about the source, for people; the hash decides */
    SEAL_MARK = 1,
    PATH_BYTES_MAX = 4096,
    OPEN_TRIES_MAX = 10 /* another process may replace the file between our open and our lock */
};

typedef struct file_header {
    uint64_t magic;
    uint32_t version;
    uint32_t crc; /* of the header, with 0 here */
    uint32_t places;
    uint32_t name_bytes;
    uint64_t epoch;
    uint64_t source_hash[2];
    uint64_t source_bytes;
    char name[SL_ACK_FILE_NAME_BYTES_MAX];
    char source[SOURCE_SHOWN_BYTES_MAX];
} file_header;

typedef struct file_place {
    sl_uuid id;
    uint64_t token, revision;
    uint32_t is_park, reason_bytes;
    _Atomic uint64_t seal; /* within the first line of the cache: an ack touches no other */
    uint64_t
        unsure_s; /* since 1970: when the source could say nothing about it; 0: it was not asked. Not sealed */
    char reason[SL_ACK_FILE_REASON_BYTES_MAX + 1];
} file_place;

typedef struct file_image {
    union {
        file_header header;
        uint8_t page[HEADER_BYTES];
    };
    file_place places[SL_ACK_FILE_PLACES];
} file_image;

static_assert(sizeof(file_header) <= HEADER_BYTES, "the header has a page of its own");
static_assert(sizeof(file_place) == 192, "the layout of the file; another one is another version");
static_assert(offsetof(file_image, places) == HEADER_BYTES, "places begin behind the page");

struct sl_ack_file {
    int fd; /* kept: it holds the lock */
    file_image *image;
    size_t free_count;
    uint32_t free_places[SL_ACK_FILE_PLACES]; /* a stack */
    bool is_held[SL_ACK_FILE_PLACES];         /* somebody in this process will drop or keep it */
};

/* What opening needs to know. */
typedef struct opening {
    const char *path;
    sl_str source, name;
    sl_text *problem;
    char path_new[PATH_BYTES_MAX];
} opening;

/* --- sentences --- */

static sl_err refuse(const opening *o, sl_err err, const char *what)
{
    sl_text_add(o->problem, "The ack file ");
    sl_text_add(o->problem, o->path);
    sl_text_add(o->problem, " ");
    sl_text_add(o->problem, what);
    return err;
}

static sl_err refuse_call(const opening *o, const char *call, int number)
{
    char reason[128];
    const char *const text = strerror_r(number, reason, sizeof reason);

    (void)refuse(o, SL_ERR_IO, "cannot be used: ");
    sl_text_add(o->problem, call);
    sl_text_add(o->problem, " failed (");
    sl_text_add(o->problem, text);
    sl_text_add(o->problem, ").");
    if (number == ENOSPC || number == EDQUOT) {
        sl_text_add(o->problem, " Make room on that disk, or name a file on another one.");
        return SL_ERR_NO_SPACE;
    }
    return number == ENOMEM ? SL_ERR_NOMEM : SL_ERR_IO;
}

/* --- seals --- */

static uint64_t seal_of(const file_image *image, uint32_t place)
{
    const file_place *const at = &image->places[place];
    const uint64_t rest[] = { at->token,        at->revision, at->is_park,
                              at->reason_bytes, place,        image->header.epoch };
    uint32_t crc = sl_crc32c(sl_crc32c(0, at->id.bytes, sizeof at->id.bytes), rest, sizeof rest);

    if (at->reason_bytes > 0)
        crc = sl_crc32c(crc, at->reason, sl_min_u64(at->reason_bytes, sizeof at->reason));
    return (uint64_t)crc << 32 | SEAL_MARK;
}

static bool is_whole(const file_image *image, uint32_t place)
{
    const uint64_t seal = atomic_load_explicit(&image->places[place].seal, memory_order_acquire);

    return seal != 0 && seal == seal_of(image, place) &&
           image->places[place].reason_bytes <= SL_ACK_FILE_REASON_BYTES_MAX;
}

/* A clock that was set back makes nothing old. */
static bool is_unsure_too_long(const file_place *at, uint64_t now_s)
{
    return at->unsure_s != 0 && at->unsure_s < now_s && now_s - at->unsure_s > SL_ACK_FILE_UNSURE_S;
}

static uint32_t header_crc(const file_header *header)
{
    file_header copy = *header;

    copy.crc = 0;
    return sl_crc32c(0, &copy, sizeof copy);
}

static size_t count_whole(const file_image *image)
{
    size_t count = 0;

    for (uint32_t i = 0; i < SL_ACK_FILE_PLACES; i++)
        count += is_whole(image, i) ? 1 : 0;
    return count;
}

/* --- headers --- */

static void hash_source(sl_str source, uint64_t hash[2])
{
    hash[0] = sl_hash((sl_hash_seed){ MAGIC, 1 }, source.data, source.bytes);
    hash[1] = sl_hash((sl_hash_seed){ MAGIC, 2 }, source.data, source.bytes);
}

static bool is_about(const file_header *header, sl_str source)
{
    uint64_t hash[2];

    hash_source(source, hash);
    return header->source_bytes == source.bytes && memcmp(hash, header->source_hash, sizeof hash) == 0;
}

static bool has_name(const file_header *header, sl_str name)
{
    return name.bytes == 0 || sl_str_equal(name, (sl_str){ header->name, header->name_bytes });
}

static sl_err invent_name(file_header *header)
{
    uint8_t random[16];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return SL_ERR_IO;
    memcpy(header->name, "worker-", 7);
    sl_uuid_format(sl_uuid_v4(random), header->name + 7);
    header->name_bytes = 7 + SL_UUID_TEXT_BYTES;
    return SL_OK;
}

/* old: whose name and epoch go on where nothing else is asked for; NULL: none. */
static sl_err make_header(const opening *o, const file_header *old, file_header *ret_header)
{
    file_header header = { .magic = MAGIC, .version = VERSION, .places = SL_ACK_FILE_PLACES };

    if (o->name.bytes > 0) {
        header.name_bytes = (uint32_t)o->name.bytes;
        memcpy(header.name, o->name.data, o->name.bytes);
    } else if (old != NULL) {
        header.name_bytes = old->name_bytes;
        memcpy(header.name, old->name, sizeof header.name);
    } else if (invent_name(&header) != SL_OK) {
        return refuse_call(o, "getrandom", errno);
    }
    header.epoch = old == NULL ? 0 : old->epoch;
    if (old == NULL && getrandom(&header.epoch, sizeof header.epoch, 0) != (ssize_t)sizeof header.epoch)
        return refuse_call(o, "getrandom", errno);
    header.source_bytes = o->source.bytes;
    hash_source(o->source, header.source_hash);
    if (o->source.bytes > 0)
        memcpy(header.source, o->source.data, sl_min_u64(o->source.bytes, sizeof header.source));
    header.crc = header_crc(&header);
    *ret_header = header;
    return SL_OK;
}

static sl_err check_header(const opening *o, const file_header *header)
{
    if (header->magic != MAGIC)
        return refuse(o, SL_ERR_INVALID, "is no ack file. Name another file, or move this one away.");
    if (header->version != VERSION)
        return refuse(
            o, SL_ERR_VERSION,
            "was written by another version. Run that version until its work is confirmed, or move the file "
            "away: unconfirmed work is then done again.");
    if (header->crc != header_crc(header) || header->places != SL_ACK_FILE_PLACES ||
        header->name_bytes == 0 || header->name_bytes > SL_ACK_FILE_NAME_BYTES_MAX)
        return refuse(
            o, SL_ERR_INVALID,
            "is damaged. Move it away: work that was finished and not confirmed is then done again.");
    return SL_OK;
}

/* --- files --- */

static bool is_still_named(int fd, const char *path)
{
    struct stat of_fd, of_path;

    return fstat(fd, &of_fd) == 0 && stat(path, &of_path) == 0 && of_fd.st_dev == of_path.st_dev &&
           of_fd.st_ino == of_path.st_ino;
}

/* Opens and locks. SL_ERR_AGAIN: it was replaced in between. SL_ERR_NOT_FOUND: it is not there. */
static sl_err open_locked(const opening *o, const char *path, int flags, int *ret_fd)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    sl_err err = SL_OK;

    if (fd < 0)
        return errno == ENOENT && flags == 0 ? SL_ERR_NOT_FOUND : refuse_call(o, "open", errno);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        err = errno == EWOULDBLOCK
                  ? refuse(o, SL_ERR_LOCKED,
                           "is in use by another process. Each worker process needs an ack file of "
                           "its own; if that is the old one of a restart, wait for its end.")
                  : refuse_call(o, "flock", errno);
    else if (!is_still_named(fd, path))
        err = SL_ERR_AGAIN;
    if (err != SL_OK)
        (void)close(fd);
    else
        *ret_fd = fd;
    return err;
}

static sl_err write_all(const opening *o, int fd, const void *data, size_t bytes, off_t at)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t wrote = pwrite(fd, (const char *)data + done, bytes - done, at + (off_t)done);

        if (wrote < 0 && errno != EINTR)
            return refuse_call(o, "write", errno);
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return SL_OK;
}

static sl_err fill(const opening *o, int fd, const file_header *header, const file_image *old)
{
    sl_err err;
    int number;

    if (ftruncate(fd, 0) < 0)
        return refuse_call(o, "ftruncate", errno);
    number = posix_fallocate(fd, 0, (off_t)sizeof(file_image));
    if (number != 0)
        return refuse_call(o, "posix_fallocate", number);
    err = write_all(o, fd, header, sizeof *header, 0);
    if (err == SL_OK && old != NULL)
        err = write_all(o, fd, old->places, sizeof old->places, HEADER_BYTES);
    return err;
}

/* A whole file beside the place where it shall be, then renamed to it. The lock on PATH.new makes sure that only one does so; is_new:
 * only if nobody else has made one meanwhile. */
static sl_err put_in_place(const opening *o, const file_header *header, const file_image *old, bool is_new,
                           int *ret_fd)
{
    int fd;
    sl_err err = open_locked(o, o->path_new, O_CREAT, &fd);

    if (err != SL_OK)
        return err;
    if (is_new && access(o->path, F_OK) == 0)
        err = SL_ERR_AGAIN;
    if (err == SL_OK)
        err = fill(o, fd, header, old);
    if (err == SL_OK && fsync(fd) < 0) /* else a power cut could leave the name without its header */
        err = refuse_call(o, "fsync", errno);
    if (err == SL_OK && rename(o->path_new, o->path) < 0)
        err = refuse_call(o, "rename", errno);
    if (err != SL_OK) {
        (void)unlink(o->path_new);
        (void)close(fd);
        return err;
    }
    *ret_fd = fd;
    return SL_OK;
}

static sl_err map(const opening *o, int fd, file_image **ret_image)
{
    void *const mapped = mmap(NULL, sizeof(file_image), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (mapped == MAP_FAILED)
        return refuse_call(o, "mmap", errno);
    *ret_image = mapped;
    return SL_OK;
}

/* A copy of the file may have holes that the file had not. */
static sl_err check_size(const opening *o, int fd, bool *ret_is_empty)
{
    struct stat stat;
    int number;

    if (fstat(fd, &stat) < 0)
        return refuse_call(o, "fstat", errno);
    if (!S_ISREG(stat.st_mode))
        return refuse(o, SL_ERR_INVALID, "is no plain file. Name another one.");
    *ret_is_empty = stat.st_size == 0;
    if (*ret_is_empty)
        return SL_OK;
    if (stat.st_size != (off_t)sizeof(file_image))
        return refuse(o, SL_ERR_INVALID,
                      "has the wrong size: it is no ack file, or was cut short. Name another file, or move "
                      "this one away.");
    number = posix_fallocate(fd, 0, (off_t)sizeof(file_image));
    return number == 0 ? SL_OK : refuse_call(o, "posix_fallocate", number);
}

/* --- opening --- */

/* Replaces the file behind *fd and *image by one with another header; both are changed. */
static sl_err replace(const opening *o, const file_header *header, const file_image *keeps, int *fd,
                      file_image **image)
{
    int fd_new;
    file_image *image_new = NULL;
    sl_err err = put_in_place(o, header, keeps, false, &fd_new);

    if (err != SL_OK)
        return err;
    err = map(o, fd_new, &image_new);
    if (err != SL_OK) {
        (void)close(fd_new);
        return err;
    }
    if (*image != NULL)
        (void)munmap(*image, sizeof **image);
    (void)close(*fd);
    *fd = fd_new;
    *image = image_new;
    return SL_OK;
}

/* The file is there, mapped and locked: is it ours, or can it become so? */
static sl_err adopt(const opening *o, int *fd, file_image **image)
{
    const file_header *const old = &(*image)->header;
    file_header header;
    sl_err err = check_header(o, old);

    if (err != SL_OK || (is_about(old, o->source) && has_name(old, o->name)))
        return err;
    if (!is_about(old, o->source) && count_whole(*image) > 0)
        return refuse(
            o, SL_ERR_INVALID,
            "has finished work of another source that is not confirmed. Run the worker of that source once "
            "more, or name another file.");
    err = make_header(o, is_about(old, o->source) ? old : NULL, &header);
    return err != SL_OK ? err : replace(o, &header, is_about(old, o->source) ? *image : NULL, fd, image);
}

static sl_err make_new(const opening *o, int *ret_fd, file_image **ret_image)
{
    file_header header;
    int fd;
    sl_err err = make_header(o, NULL, &header);

    if (err == SL_OK)
        err = put_in_place(o, &header, NULL, true, &fd);
    if (err != SL_OK)
        return err;
    err = map(o, fd, ret_image);
    if (err != SL_OK)
        (void)close(fd);
    else
        *ret_fd = fd;
    return err;
}

static sl_err open_old(const opening *o, int fd, int *ret_fd, file_image **ret_image)
{
    file_image *image = NULL;
    file_header header;
    bool is_empty = false;
    sl_err err = check_size(o, fd, &is_empty);

    if (err == SL_OK && is_empty) {
        err = make_header(o, NULL, &header);
        if (err == SL_OK)
            err = replace(o, &header, NULL, &fd, &image);
    } else if (err == SL_OK) {
        err = map(o, fd, &image);
        if (err == SL_OK)
            err = adopt(o, &fd, &image);
    }
    if (err != SL_OK) {
        if (image != NULL)
            (void)munmap(image, sizeof *image);
        (void)close(fd);
        return err;
    }
    *ret_fd = fd;
    *ret_image = image;
    return SL_OK;
}

static sl_err open_any(const opening *o, int *ret_fd, file_image **ret_image)
{
    for (int i = 0; i < OPEN_TRIES_MAX; i++) {
        int fd;
        sl_err err = open_locked(o, o->path, 0, &fd);

        if (err == SL_OK)
            err = open_old(o, fd, ret_fd, ret_image);
        else if (err == SL_ERR_NOT_FOUND)
            err = make_new(o, ret_fd, ret_image);
        if (err != SL_ERR_AGAIN)
            return err;
    }
    return refuse(o, SL_ERR_LOCKED,
                  "is being replaced by other processes all the time. Give each worker its own.");
}

/* Broken places are cleared, so that none of them can become believable by a later change. What somebody holds stays: he will drop it,
 * and would drop what had been put there meanwhile. */
void sl_ack_file_forget(sl_ack_file *file, uint64_t now_s)
{
    file->free_count = 0;
    for (uint32_t place = SL_ACK_FILE_PLACES; place-- > 0;) {
        file_place *const at = &file->image->places[place];

        if (file->is_held[place] || (is_whole(file->image, place) && !is_unsure_too_long(at, now_s)))
            continue;
        atomic_store_explicit(&at->seal, 0, memory_order_release);
        atomic_signal_fence(memory_order_seq_cst);
        file->free_places[file->free_count++] = place;
    }
}

sl_err sl_ack_file_open(const char *path, sl_str source, sl_str name, sl_text *problem,
                        sl_ack_file **ret_file)
{
    opening o = { .path = path, .source = source, .name = name, .problem = problem };
    const int bytes = snprintf(o.path_new, sizeof o.path_new, "%s.new", path);
    sl_ack_file *file;
    sl_err err;

    if (bytes < 0 || (size_t)bytes >= sizeof o.path_new)
        return refuse(&o, SL_ERR_INVALID, "has a path that is too long.");
    if (name.bytes > SL_ACK_FILE_NAME_BYTES_MAX)
        return refuse(&o, SL_ERR_INVALID, "cannot keep this consumer name: 256 bytes are the limit.");
    file = sl_alloc_take(&sl_alloc_default, sizeof *file);
    if (file == NULL)
        return refuse_call(&o, "malloc", ENOMEM);
    err = open_any(&o, &file->fd, &file->image);
    if (err != SL_OK) {
        sl_alloc_give(&sl_alloc_default, file, sizeof *file);
        return err;
    }
    memset(file->is_held, 0, sizeof file->is_held);
    sl_ack_file_forget(file, sl_ack_file_clock_s());
    *ret_file = file;
    return SL_OK;
}

void sl_ack_file_close(sl_ack_file *file)
{
    if (file == NULL)
        return;
    (void)munmap(file->image, sizeof *file->image);
    (void)close(file->fd);
    sl_alloc_give(&sl_alloc_default, file, sizeof *file);
}

/* --- in use --- */

sl_str sl_ack_file_name(const sl_ack_file *file)
{
    return (sl_str){ file->image->header.name, file->image->header.name_bytes };
}

size_t sl_ack_file_left(sl_ack_file *file, sl_ack_entry *entries, uint32_t *places, size_t entries_max)
{
    size_t count = 0;

    for (uint32_t place = 0; place < SL_ACK_FILE_PLACES && count < entries_max; place++) {
        const file_place *const at = &file->image->places[place];

        if (!is_whole(file->image, place))
            continue;
        entries[count] = (sl_ack_entry){
            at->id, at->token, at->revision, at->is_park != 0, { at->reason, at->reason_bytes }
        };
        file->is_held[place] = true;
        places[count++] = place;
    }
    return count;
}

/* Byte by byte into the place: whoever is killed meanwhile has not sealed it. */
static void put_reason(file_place *at, sl_str reason)
{
    sl_text text;

    sl_text_init(&text, at->reason, sizeof at->reason);
    sl_text_add_str(&text, reason);
    at->reason_bytes = (uint32_t)text.bytes;
}

sl_err sl_ack_file_put(sl_ack_file *file, const sl_ack_entry *entry, uint32_t *ret_place)
{
    uint32_t place;
    file_place *at;

    if (file->free_count == 0)
        sl_ack_file_forget(file, UINT64_MAX);
    if (file->free_count == 0)
        return SL_ERR_FULL;
    place = file->free_places[--file->free_count];
    at = &file->image->places[place];
    at->id = entry->id;
    at->token = entry->token;
    at->revision = entry->revision;
    at->is_park = entry->is_park ? 1 : 0;
    at->unsure_s = 0;
    at->reason_bytes = 0;
    if (entry->reason.bytes > 0)
        put_reason(at, entry->reason);
    atomic_store_explicit(&at->seal, seal_of(file->image, place), memory_order_release);
    file->is_held[place] = true;
    *ret_place = place;
    return SL_OK;
}

void sl_ack_file_drop(sl_ack_file *file, uint32_t place)
{
    file_place *const at = &file->image->places[place];

    assert(place < SL_ACK_FILE_PLACES);
    file->is_held[place] = false;
    if (atomic_load_explicit(&at->seal, memory_order_relaxed) == 0)
        return; /* dropped before: it must not become free twice */
    atomic_store_explicit(&at->seal, 0, memory_order_release);
    /* The next user of the place writes into it: not before the seal is gone, as far as the compiler is concerned. */
    atomic_signal_fence(memory_order_seq_cst);
    file->free_places[file->free_count++] = place;
}

uint64_t sl_ack_file_clock_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec < 0 ? 0 : (uint64_t)now.tv_sec;
}

void sl_ack_file_keep(sl_ack_file *file, uint32_t place, uint64_t now_s)
{
    file_place *const at = &file->image->places[place];

    assert(place < SL_ACK_FILE_PLACES);
    file->is_held[place] = false;
    if (at->unsure_s == 0)
        at->unsure_s = sl_max_u64(now_s, 1);
}

size_t sl_ack_file_count(const sl_ack_file *file)
{
    return SL_ACK_FILE_PLACES - file->free_count;
}
