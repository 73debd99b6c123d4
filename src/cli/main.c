/* cli/main.c — the process around the commands: nothing is decided here, so nothing here needs a test of its
 * own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/environment.h"

static const char *read_environment(const char *name)
{
    return getenv(name);
}

/* Whoever starts us with a standard descriptor closed does not want what goes there. But the next file or socket would get its number: answers
 * would be written into that, and libuv ends a process that closes one of these numbers. */
static void fill_closed_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", O_RDWR); /* the lowest free number, which is this one */
    }
}

int main(int argc, char **argv)
{
    fill_closed_descriptors();
    sl_environment_warn(environ, stderr);
    const int code = sl_cli_run(argc, argv, read_environment, stdout, stderr);

    /* A full disk or a closed pipe shows itself here at the latest; half an answer must not look like
     * success. Why it failed is known only if it fails again now. */
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "sluice: cannot write the output%s%s.\n", errno == 0 ? "" : ": ",
                errno == 0 ? "" : strerror(errno));
        return code == SL_EXIT_OK ? SL_EXIT_FAILED : code;
    }
    return code;
}
