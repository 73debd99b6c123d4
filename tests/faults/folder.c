/* tests/faults/folder.c — see folder.h. */
#include "folder.h"

#include "report.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[512];

const char *folder_make(void)
{
    const char *const parent = getenv("TMPDIR");

    snprintf(path, sizeof path, "%s/sluice-faults-XXXXXX", parent == NULL ? P_tmpdir : parent);
    CHECK(mkdtemp(path) != NULL, "no folder can be made: %s", path);
    return path;
}

void folder_remove(void)
{
    DIR *const folder = opendir(path);
    struct dirent *entry;

    CHECK(folder != NULL, "%s is gone", path);
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    CHECK(rmdir(path) == 0, "%s can not be removed", path);
}
