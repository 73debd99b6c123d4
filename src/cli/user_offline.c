/* cli/user_offline.c — users in a data folder that no server has open: before the first start, or when nobody knows a
 * password any more. */
#include "cli/user_draft.h"

#include <sys/random.h>
#include <time.h>

#include "cli/print.h"
#include "server/user_admin.h"
#include "store/inspect.h"
#include "store/store.h"

enum {
    REPORT_BYTES = 1024
};

static uint64_t wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Only `add` makes a folder: a first user may come before the first start, other changes to nothing are mistakes. */
static sl_err open_store(const char *folder, bool may_make, sl_text *report, bool *ret_made,
                         sl_store **ret_store)
{
    sl_store_setup setup = { .alloc = &sl_alloc_default };
    sl_journal_options options = { .folder = folder };
    sl_err err = sl_journal_look(folder, report, &options.segment_bytes);

    *ret_made = err == SL_ERR_NOT_FOUND && may_make;
    if (*ret_made) {
        sl_text_init(report, report->data, report->capacity);
        options.segment_bytes = 0;
        err = SL_OK;
    }
    if (err != SL_OK)
        return err;
    if (getrandom(&setup.seed, sizeof setup.seed, 0) != (ssize_t)sizeof setup.seed)
        return SL_ERR_IO;
    err = sl_store_open_journal(&setup, &options, report, ret_store);
    if (err == SL_ERR_LOCKED)
        sl_text_add(report, ". Or leave --data out and let that server do it (--server)");
    return err;
}

static void on_entry(void *ctx, const sl_user_admin_entry *entry)
{
    const sl_user_shown user = { .name = entry->name,
                                 .full_name = entry->full_name,
                                 .groups = entry->groups,
                                 .group_count = entry->group_count,
                                 .updated_ns = entry->updated_ns,
                                 .disabled = entry->disabled,
                                 .damaged = entry->damaged };

    sl_user_show(ctx, &user);
}

static sl_err carry_out(sl_store *store, const sl_user_draft *draft, sl_user_list *list, sl_text *problem)
{
    const sl_str password = sl_str_from(draft->password.text);

    switch (draft->verb) {
    case SL_USER_VERB_ADD:
        return sl_user_admin_add(store, draft->name,
                                 draft->full_name.bytes > 0 ? draft->full_name : draft->name, draft->groups,
                                 draft->group_count, password, wall_ns(), problem);
    case SL_USER_VERB_PASSWD:
        return sl_user_admin_set_password(store, draft->name, password, wall_ns(), problem);
    case SL_USER_VERB_REMOVE: return sl_user_admin_remove(store, draft->name, wall_ns(), problem);
    case SL_USER_VERB_LIST: return sl_user_admin_list(store, on_entry, list, problem);
    }
    return SL_ERR_INVALID; /* not reached: the cases are complete */
}

/* Reports are whole sentences; the last full stop is added when they are shown. */
static int fail(const sl_invocation *invocation, sl_err err, sl_text *report)
{
    if (report->bytes > 0 && report->data[report->bytes - 1] == '.')
        report->data[--report->bytes] = '\0';
    return sl_cli_fail(invocation, report->bytes > 0 ? report->data : sl_err_text(err));
}

/* A mistyped folder would have a user that no server knows. */
static void say_new(const sl_invocation *invocation, const char *folder)
{
    char sentences[REPORT_BYTES];

    snprintf(sentences, sizeof sentences,
             "There was no journal in %s: a new one was made. Start the server with --data %s.",
             sl_quote(folder).text, sl_quote(folder).text);
    sl_print_complaint(invocation->err, sentences);
}

int sl_user_offline(const sl_invocation *invocation, sl_user_draft *draft, sl_user_list *list)
{
    const char *const folder = invocation->values[SL_OPT_USER_FOLDER].text;
    char buffer[REPORT_BYTES];
    sl_store *store = NULL;
    bool is_new = false;
    sl_text report;
    sl_err err;
    int code = sl_user_ask_password(invocation, draft);

    if (code != SL_EXIT_OK)
        return code;
    sl_text_init(&report, buffer, sizeof buffer);
    err = open_store(folder, draft->verb == SL_USER_VERB_ADD, &report, &is_new, &store);
    if (err == SL_OK) {
        sl_text_init(&report, buffer, sizeof buffer); /* what opening found is a matter of the server */
        err = carry_out(store, draft, list, &report);
    }
    if (err != SL_OK)
        code = fail(invocation, err, &report);
    else if (is_new)
        say_new(invocation, folder);
    if (store != NULL)
        sl_store_close(store);
    return err == SL_ERR_CORRUPT ? SL_EXIT_DAMAGE : code;
}
