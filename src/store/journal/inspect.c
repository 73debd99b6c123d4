/* store/journal/inspect.c — from a folder to the inspections, and sentences for what can go wrong.
 *
 * A backup is made in a folder beside its target, "TARGET.partial", which gets the name of the target when all of it is
 * there, verified and synced. Renaming a folder is one step, also onto an empty one, so nobody can find half a copy under
 * the name that he asked for: half of the segments would look like a whole journal that is shorter. */
#include "store/inspect.h"

#include "base/cleanup.h"
#include "store/journal/inspect_private.h"
#include "store/journal/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add_all(sl_text *text, const char *a, const char *b, const char *c)
{
    sl_text_add(text, a);
    sl_text_add(text, b);
    sl_text_add(text, c);
}

/* --- a folder to look at --- */

sl_err sl_inspect_open(const char *folder, sl_text *report, sl_disk **ret_disk)
{
    const sl_err err = sl_disk_open_folder_to_read(folder, ret_disk);

    if (err == SL_ERR_NOT_FOUND)
        add_all(report, "There is no folder ", folder, ". Name the data folder of a server");
    else if (err != SL_OK) {
        add_all(report, "The folder ", folder, " can not be read: ");
        add_all(report, err == SL_ERR_NOMEM ? "memory is out" : strerror(errno), "", "");
    }
    return err;
}

void sl_inspect_explain(sl_err err, const char *folder, sl_text *report)
{
    if (err == SL_ERR_NOT_FOUND)
        add_all(report, "There is no journal in ", folder,
                ": it has no file that ends with .seg. Name the data folder of a server");
    else if (err != SL_OK)
        add_all(report,
                err == SL_ERR_NOMEM ? "Memory is out while reading " : "The disk did not give what is in ",
                folder, err == SL_ERR_NOMEM ? "" : ". The system's log says more");
}

static void ignore(void *ctx, const sl_finding *finding)
{
    (void)ctx;
    (void)finding;
}

static uint64_t newest_size(const sl_walk *walk)
{
    for (size_t i = walk->head_count; i > 0; i--) {
        const sl_walk_head *const head = &walk->heads[i - 1];
        if (head->err == SL_OK && head->header.rewrites == 0)
            return head->header.segment_bytes;
    }
    return SL_SEGMENT_BYTES;
}

bool sl_journal_is_held(const char *folder, uint64_t *ret_pid)
{
    return sl_disk_folder_is_held(folder, ret_pid);
}

sl_err sl_journal_look(const char *folder, sl_text *report, uint64_t *ret_segment_bytes)
{
    const sl_walk_visitor visitor = { .finding = ignore };
    sl_disk *disk = NULL;
    sl_walk walk;
    sl_err err = sl_inspect_open(folder, report, &disk);

    if (err != SL_OK)
        return err;
    err = sl_walk_init(&walk, disk, &visitor);
    if (err == SL_OK)
        *ret_segment_bytes = newest_size(&walk);
    sl_walk_done(&walk);
    disk->ops->free(disk);
    sl_inspect_explain(err, folder, report);
    return err;
}

static sl_err finish(sl_disk *disk, sl_err err, const sl_inspection *how, sl_text *report)
{
    disk->ops->free(disk);
    sl_inspect_explain(err, how->folder, report);
    return err;
}

sl_err sl_journal_verify(const sl_inspection *how, sl_text *report, sl_verified *ret_verified)
{
    sl_disk *disk = NULL;
    const sl_err err = sl_inspect_open(how->folder, report, &disk);

    return err != SL_OK ? err : finish(disk, sl_verify_disk(disk, how, ret_verified), how, report);
}

sl_err sl_journal_dump(const sl_inspection *how, const sl_dump_range *range, sl_journal_record_fn *visit,
                       sl_text *report, uint64_t *ret_damages)
{
    sl_disk *disk = NULL;
    const sl_err err = sl_inspect_open(how->folder, report, &disk);

    return err != SL_OK ? err : finish(disk, sl_dump_disk(disk, how, range, visit, ret_damages), how, report);
}

sl_err sl_journal_stats_read(const sl_inspection *how, sl_text *report, sl_journal_stats *ret_stats)
{
    sl_disk *disk = NULL;
    const sl_err err = sl_inspect_open(how->folder, report, &disk);

    return err != SL_OK ? err : finish(disk, sl_stats_disk(disk, how, ret_stats), how, report);
}

/* --- a folder for a backup --- */

typedef struct place {
    char target[PATH_MAX]; /* without a slash at its end */
    char partial[PATH_MAX];
} place;

static const char partial_suffix[] = ".partial";

static bool is_empty(const char *path)
{
    DIR *const folder = opendir(path);
    const struct dirent *entry;
    bool empty = folder != NULL;

    while (empty && (entry = readdir(folder)) != NULL)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (folder != NULL)
        closedir(folder);
    return empty;
}

/* A mount point can not be replaced by a rename, and that should be known before hours of copying. */
static bool is_mount_point(const char *path, const struct stat *status)
{
    char parent[PATH_MAX];
    struct stat above;

    snprintf(parent, sizeof parent, "%.*s/..", (int)(sizeof parent - 4), path);
    return stat(parent, &above) == 0 && (above.st_dev != status->st_dev || above.st_ino == status->st_ino);
}

static sl_err check_existing(place *p, const char *target, const struct stat *status, sl_text *report)
{
    if (!S_ISDIR(status->st_mode) || !is_empty(target)) {
        add_all(report, "There is something in ", target,
                " already. Name a folder that does not exist or is empty: a backup never overwrites");
        return SL_ERR_EXISTS;
    }
    if (is_mount_point(target, status)) {
        add_all(report, target, " is a mount point, and the copy gets its name by a rename",
                ". Name a folder inside of it that does not exist");
        return SL_ERR_INVALID;
    }
    if (realpath(target, p->target) ==
        NULL) { /* so that ".", links and the like have a name to be replaced */
        add_all(report, target, " can not be used: ", strerror(errno));
        return SL_ERR_INVALID;
    }
    return SL_OK;
}

static sl_err choose_place(place *p, const char *target, sl_text *report)
{
    size_t length = strlen(target);
    struct stat status;
    sl_err err = SL_OK;

    while (length > 1 && target[length - 1] == '/')
        length--;
    if (length == 0 || length + sizeof partial_suffix > PATH_MAX) {
        sl_text_add(report, "The name of the target is empty or too long");
        return SL_ERR_INVALID;
    }
    memcpy(p->target, target, length);
    p->target[length] = '\0';
    if (lstat(p->target, &status) == 0 && stat(p->target, &status) == 0)
        err = check_existing(p, target, &status, report);
    if (err == SL_OK && strlen(p->target) + sizeof partial_suffix > PATH_MAX)
        err = SL_ERR_INVALID;
    if (err == SL_OK)
        snprintf(p->partial, sizeof p->partial, "%.*s%s", (int)(PATH_MAX - sizeof partial_suffix), p->target,
                 partial_suffix);
    return err;
}

static sl_err make_partial(const place *p, sl_text *report)
{
    if (mkdir(p->partial, 0700) == 0)
        return SL_OK;
    if (errno == EEXIST) {
        add_all(report, p->partial, " exists: another backup is making it, or was ended before it was done",
                ". Delete it if nobody is at work on it");
        return SL_ERR_EXISTS;
    }
    add_all(report, p->partial, " can not be made: ", strerror(errno));
    return errno == ENOSPC || errno == EDQUOT ? SL_ERR_NO_SPACE : SL_ERR_INVALID;
}

static void remove_partial(const place *p)
{
    DIR *const folder = opendir(p->partial);
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder != NULL)
        closedir(folder);
    (void)rmdir(p->partial);
}

static void sync_parent(const char *path)
{
    char parent[PATH_MAX];
    int fd;

    snprintf(parent, sizeof parent, "%.*s/..", (int)(sizeof parent - 4), path);
    fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd); /* a file system that can not do this has nothing that could be done instead */
    close(fd);
}

static sl_err give_name(const place *p, sl_text *report)
{
    if (rename(p->partial, p->target) < 0) {
        add_all(report, "The copy is complete and verified, but can not get its name: ", strerror(errno),
                ". It is ");
        add_all(report, p->partial, ": rename it", "");
        return SL_ERR_IO;
    }
    sync_parent(p->target);
    return SL_OK;
}

static void explain_backup(sl_err err, bool target_failed, const char *folder, const place *p,
                           sl_text *report)
{
    if (err == SL_ERR_CORRUPT)
        add_all(report, "The journal in ", folder,
                " is damaged, and a copy of it would be as well. `sluice journal verify` lists all damage");
    else if (err == SL_ERR_NO_SPACE)
        add_all(report, "There is no room for the copy beside ", p->target,
                ". Nothing is left of it; make room, or name a target on another disk");
    else if (err == SL_ERR_IO && target_failed)
        add_all(report, "The copy could not be written beside ", p->target,
                ". Nothing is left of it; the system's log says what is wrong with the disk or its limits");
    else
        sl_inspect_explain(err, folder, report);
}

/* The folder that the target will stand in is the journal's, or in it. */
static bool is_inside(const char *folder, const char *target)
{
    char parent[PATH_MAX], real_parent[PATH_MAX], real_folder[PATH_MAX];
    const char *const slash = strrchr(target, '/');
    size_t bytes;

    snprintf(parent, sizeof parent, "%.*s", slash == NULL ? 1 : (int)(slash - target + 1),
             slash == NULL ? "." : target);
    if (realpath(parent, real_parent) == NULL || realpath(folder, real_folder) == NULL)
        return false;
    bytes = strlen(real_folder);
    return strncmp(real_parent, real_folder, bytes) == 0 &&
           (real_parent[bytes] == '/' || real_parent[bytes] == '\0');
}

static sl_err copy_into(sl_disk *source, const sl_inspection *how, const place *p, sl_text *report,
                        sl_backed_up *ret_done)
{
    bool target_failed = false;
    sl_disk *target = NULL;
    sl_err err = make_partial(p, report);

    if (err != SL_OK)
        return err;
    err = sl_disk_open_folder(p->partial, &target);
    if (err == SL_OK) {
        err = sl_backup_disk(source, target, how, ret_done, &target_failed);
        target->ops->free(target);
    }
    if (err != SL_OK) {
        remove_partial(p);
        explain_backup(err, target_failed, how->folder, p, report);
        return err;
    }
    return give_name(p, report);
}

sl_err sl_journal_backup(const sl_inspection *how, const char *target, sl_text *report,
                         sl_backed_up *ret_done)
{
    sl_disk *source = NULL;
    place *const p = malloc(sizeof *p);
    uint64_t segment_bytes;
    sl_err err = p == NULL ? SL_ERR_NOMEM : sl_journal_look(how->folder, report, &segment_bytes);

    if (err == SL_OK)
        err = choose_place(p, target, report);
    if (err == SL_OK && is_inside(how->folder, p->target)) {
        add_all(report, p->target, " is in the folder that it is to be a copy of",
                ": whatever takes the one takes both");
        err = SL_ERR_INVALID;
    }
    if (err == SL_OK)
        err = sl_inspect_open(how->folder, report, &source);
    if (err == SL_OK)
        err = copy_into(source, how, p, report, ret_done);
    if (source != NULL)
        source->ops->free(source);
    free(p);
    return err;
}
