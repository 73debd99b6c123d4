/* tests/tools/held.c — the whole of sluice, with two of its slow places in the hands of a test: syncs of segments, and hashes
 * of passwords.
 *
 * The linker puts the functions below in front of the real ones. HELD names a folder; while it has a file "hold", whoever comes to
 * such a place says so with a letter on the pipe "entered", 's' or 'h', and waits for one from the pipe "go": 'g', and it goes on;
 * 'f', and it fails. So a test knows that the disk is at work, and decides when and how that ends: nobody has to sleep. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_crypto_pwhash_str_verify(const char *hash, const char *password,
                                    unsigned long long password_bytes);
int __wrap_crypto_pwhash_str_verify(const char *hash, const char *password,
                                    unsigned long long password_bytes);

static int open_in_folder(const char *name, int flags)
{
    const char *const folder = getenv("HELD");
    char path[4096];

    if (folder == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, flags | O_CLOEXEC);
}

static char swap_letters(char place)
{
    const int out = open_in_folder("entered", O_WRONLY), in = open_in_folder("go", O_RDONLY);
    char answer = 'f';

    if (write(out, &place, 1) != 1 || read(in, &answer, 1) != 1)
        abort(); /* the test has gone */
    close(out);
    close(in);
    return answer;
}

/* True: it shall fail. */
static bool is_to_fail(char place)
{
    const int hold = open_in_folder("hold", O_RDONLY);

    if (hold < 0)
        return false;
    close(hold);
    return swap_letters(place) == 'f';
}

/* What is made ahead of its time (next.tmp, caches) is synced by others, when they want. */
static bool is_segment(int fd)
{
    char link[64], path[4096];
    ssize_t bytes;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    bytes = readlink(link, path, sizeof path);
    return bytes > 4 && memcmp(path + bytes - 4, ".seg", 4) == 0;
}

int __wrap_fdatasync(int fd)
{
    if (!is_segment(fd) || !is_to_fail('s'))
        return __real_fdatasync(fd);
    errno = EIO;
    return -1;
}

int __wrap_crypto_pwhash_str_verify(const char *hash, const char *password, unsigned long long password_bytes)
{
    if (!is_to_fail('h'))
        return __real_crypto_pwhash_str_verify(hash, password, password_bytes);
    errno = EINVAL;
    return -1;
}
