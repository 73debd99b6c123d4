/* cli/work_files.c — see work_files.h. */
#include "cli/work_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/print.h"
#include "cli/work_make.h"
#include "net/tls.h"

static sl_err refuse(sl_text *problem, const char *option, const char *path, const char *why,
                     const char *advice)
{
    sl_text_add(problem, "--");
    sl_text_add(problem, option);
    sl_text_add(problem, " ");
    sl_text_add(problem, path);
    sl_text_add(problem, " cannot be used: ");
    sl_text_add(problem, why);
    sl_text_add(problem, ". ");
    sl_text_add(problem, advice);
    return SL_ERR_IO;
}

/* --- files that are read --- */

static sl_err check_readable(const char *option, const char *path, sl_text *problem)
{
    static const char advice[] = "Name a file that is there and may be read";
    struct stat seen;

    if (path == NULL)
        return SL_OK;
    if (stat(path, &seen) != 0 || access(path, R_OK) != 0)
        return refuse(problem, option, path, strerror(errno), advice);
    return S_ISDIR(seen.st_mode) ? refuse(problem, option, path, strerror(EISDIR), advice) : SL_OK;
}

static bool has_certificates(const char *path)
{
    const sl_tls_client_options options = { .ca_file = path };
    sl_tls *tls = NULL;
    const sl_err err = sl_tls_client_new(&sl_alloc_default, &options, NULL, &tls);

    sl_tls_free(tls);
    return err != SL_ERR_INVALID;
}

/* With a file that has no certificate each message of --http would fail, and be charged for it. A pipe is not looked into: it can be
 * read once. */
static sl_err check_trust(const char *option, const char *path, sl_text *problem)
{
    const sl_err err = check_readable(option, path, problem);
    struct stat seen;

    if (err != SL_OK || path == NULL || stat(path, &seen) != 0 || !S_ISREG(seen.st_mode) ||
        has_certificates(path))
        return err;
    return refuse(problem, option, path, "no certificate could be read from it",
                  "Name a PEM file with the certificates of authorities");
}

/* Where neither source nor target takes the user, nobody needs his password. */
static bool needs_password(const sl_work_plan *plan)
{
    return plan->user != NULL &&
           (plan->source.kind == SL_SOURCE_KIND_CONSUMER ||
            (plan->handler == SL_WORK_BY_APPEND && strchr(plan->target.server, '@') == NULL));
}

static sl_err check_password(const sl_work_maker *maker, sl_text *problem)
{
    sl_password password = { "" };
    sl_err err;

    if (!needs_password(maker->plan))
        return SL_OK;
    err = sl_work_find_password(maker, problem, &password);
    explicit_bzero(&password, sizeof password);
    return err != SL_OK && maker->plan->password_file != NULL ? SL_ERR_IO : err;
}

/* server: an address that was parsed before. */
static sl_err check_authorities(const char *label, const char *server, sl_text *problem)
{
    sl_client_address address;
    sl_err err = sl_client_address_parse(sl_str_from(server), problem, &address);

    if (err == SL_OK && address.tls && address.ca_file[0] != '\0')
        err = check_trust(label, address.ca_file, problem);
    explicit_bzero(&address, sizeof address);
    return err;
}

static sl_err check_servers(const sl_work_plan *plan, sl_text *problem)
{
    sl_err err = SL_OK;

    if (plan->source.kind == SL_SOURCE_KIND_CONSUMER)
        err = check_authorities("from: tlsCAFile", plan->source.server, problem);
    if (err == SL_OK && plan->handler == SL_WORK_BY_APPEND)
        err = check_authorities("append: tlsCAFile", plan->target.server, problem);
    return err;
}

/* --- files that are written --- */

static sl_err check_folder(const char *option, const char *path, sl_text *problem)
{
    char folder[SL_CONFIG_PATH_BYTES_MAX + 1];
    const char *const slash = strrchr(path, '/');
    const int folder_bytes = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);

    snprintf(folder, sizeof folder, "%.*s", folder_bytes, slash == NULL ? "." : path);
    if (access(folder, W_OK | X_OK) == 0)
        return SL_OK;
    return refuse(problem, option, path, strerror(errno),
                  "Name a file in a folder that is there and may be written to");
}

/* replaced: a new file takes the place of the old one where the folder allows it, whoever may write to that. */
static sl_err check_writable(const char *option, const char *path, bool is_replaced, sl_text *problem)
{
    struct stat seen;

    if (path == NULL)
        return SL_OK;
    if (stat(path, &seen) != 0)
        return errno == ENOENT ? check_folder(option, path, problem)
                               : refuse(problem, option, path, strerror(errno), "Name another file");
    if (S_ISDIR(seen.st_mode))
        return refuse(problem, option, path, strerror(EISDIR), "Name a file in it");
    if (access(path, is_replaced ? W_OK : R_OK | W_OK) == 0)
        return SL_OK;
    if (is_replaced)
        return check_folder(option, path, problem);
    return refuse(problem, option, path, strerror(errno), "Name a file that may be read and written");
}

/* --- all of them --- */

static sl_err check_member(const sl_work_maker *maker, sl_text *problem)
{
    const sl_work_plan *const plan = maker->plan;
    sl_err err = check_password(maker, problem);

    if (err == SL_OK)
        err = check_servers(plan, problem);
    if (err == SL_OK)
        err = check_trust(sl_options[SL_OPT_CA].name, plan->ca_file, problem);
    if (err == SL_OK)
        err = check_writable(sl_options[SL_OPT_ACK_FILE].name, plan->ack_file, false, problem);
    return err;
}

sl_err sl_work_files_check(const sl_invocation *invocation, const sl_work_members *members, sl_text *problem)
{
    const char *const report = invocation->values[SL_OPT_REPORT].text;
    sl_err err = check_writable(sl_options[SL_OPT_REPORT].name, report, true, problem);

    for (size_t i = 0; err == SL_OK && i < members->count; i++)
        err = check_member(&(sl_work_maker){ &members->all[i].plan, invocation->environment }, problem);
    return err;
}
