/* cli/main.c — the process around the commands: nothing is decided here, so nothing here needs a test of its
 * own. */
#include <errno.h>
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

int main(int argc, char **argv)
{
    sl_environment_warn(environ, stderr);
    const int code = sl_cli_run(argc, argv, read_environment, stdout, stderr);

    /* A full disk or a closed pipe shows itself here at the latest; half an answer must not look like
     * success. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "sluice: cannot write the output: %s.\n", strerror(errno));
        return code == SL_EXIT_OK ? SL_EXIT_FAILED : code;
    }
    return code;
}
