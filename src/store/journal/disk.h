/* store/journal/disk.h — the one place where the journal meets the operating system.
 *
 * A folder of files with few verbs, behind a table, so that a simulated disk (store/faulty: power cuts, torn pages,
 * full disks, errors at every call) runs the very same journal. All functions may be called from any thread; one file is
 * written by one thread at a time. Nothing here retries a failed sync, and nothing above may. */
#ifndef SL_STORE_JOURNAL_DISK_H
#define SL_STORE_JOURNAL_DISK_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_disk sl_disk;
typedef struct sl_file sl_file;

typedef void sl_name_fn(void *ctx, const char *name);

/* For a large file that nobody waits for: after each piece, which is on the disk then, rest() is called and may take its time. */
typedef struct sl_pace {
    void (*rest)(void *ctx, uint64_t done_bytes);
    void *ctx;
} sl_pace;

/* Each gives SL_OK or SL_ERR_IO; and where it says so SL_ERR_NO_SPACE, SL_ERR_NOT_FOUND, SL_ERR_LOCKED, SL_ERR_NOMEM. */
typedef struct sl_disk_ops {
    /* Only one process may have the folder: SL_ERR_LOCKED, with the number of the other one in *ret_pid (0: unknown).
     * SL_ERR_EXISTS: a file "lock" is there that no server made; it was left as it is. */
    sl_err (*lock)(sl_disk *disk, uint64_t *ret_pid);
    sl_err (*list)(sl_disk *disk, sl_name_fn *fn, void *ctx);

    /* For reading and writing. create: it must not exist, and is filled with `bytes` zero bytes that are on the disk
     * when this returns (SL_ERR_NO_SPACE), with 0 it grows as it is written; pace: NULL as fast as it can. open:
     * SL_ERR_NOT_FOUND. */
    sl_err (*open)(sl_disk *disk, const char *name, sl_file **ret_file);
    sl_err (*create)(sl_disk *disk, const char *name, uint64_t bytes, const sl_pace *pace,
                     sl_file **ret_file);
    void (*close)(sl_file *file);
    uint64_t (*size)(sl_file *file);

    /* All of the bytes or an error; SL_ERR_NO_SPACE for a write. */
    sl_err (*write)(sl_file *file, uint64_t offset, const void *data, size_t bytes);
    sl_err (*read)(sl_file *file, uint64_t offset, void *data, size_t bytes);
    sl_err (*sync)(sl_file *file);

    /* Only if that needs no waiting, else SL_ERR_AGAIN. (Nothing is mapped: a page that is not there would stop the loop,
     * and one that the disk cannot read would kill the process.) */
    sl_err (*read_now)(sl_file *file, uint64_t offset, void *data, size_t bytes);

    sl_err (*rename)(sl_disk *disk, const char *from,
                     const char *to);                  /* over what is there; durable when it returns */
    sl_err (*remove)(sl_disk *disk, const char *name); /* the same */
    void (*free)(sl_disk *disk);
} sl_disk_ops;

struct sl_disk {
    const sl_disk_ops *ops;
};

struct sl_file {
    sl_disk *disk;
};

/* A folder of the file system; it is made if it is not there. SL_ERR_IO with errno set, SL_ERR_NOMEM. */
sl_err sl_disk_open_folder(const char *path, sl_disk **ret_disk);

/* The same only for reading, also while a server uses it: nothing is made, locked or changed; what would do so gives
 * SL_ERR_IO. SL_ERR_NOT_FOUND, SL_ERR_IO with errno set, SL_ERR_NOMEM. */
sl_err sl_disk_open_folder_to_read(const char *path, sl_disk **ret_disk);

/* Does a process have the folder locked at this moment? *ret_pid: its number, 0 if that is unknown. Looks for an instant like
 * somebody who wants the lock, so it is not for a folder that others may be opening. */
bool sl_disk_folder_is_held(const char *path, uint64_t *ret_pid);

#endif
