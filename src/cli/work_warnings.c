/* cli/work_warnings.c — what will work, but probably not as it was meant: see work_settings.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/print.h"
#include "cli/work_settings.h"
#include "server/settings.h"

__attribute__((format(printf, 3, 4))) static void say(sl_work_warn_fn *warn, void *ctx, const char *format,
                                                      ...)
{
    char sentence[SL_COMPLAINT_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    warn(ctx, sentence);
}

/* Messages wait with their leases, which are not renewed for longer than --hold-max: who waits longer works for nothing. */
static void warn_about_leases(const sl_work_plan *plan, sl_work_warn_fn *warn, void *ctx)
{
    const sl_work_settings *const s = &plan->settings;
    const uint64_t turns = (plan->window + s->slots - 1) / s->slots;

    if (s->timeout_ns > s->hold_max_ns / turns)
        say(warn, ctx,
            "Note: the last of %u messages may wait for %u slots until after --hold-max %s, and is then "
            "given "
            "to somebody else. A lower --window, a shorter --timeout or a longer --hold-max helps.",
            plan->window, s->slots, sl_duration_in_words(s->hold_max_ns).text);
    if (s->destination.interval_ns > s->hold_max_ns / plan->window)
        say(warn, ctx,
            "Note: at this --rate the last of %u messages begins after --hold-max %s, when it was given to "
            "somebody else. A lower --window or a longer --hold-max helps.",
            plan->window, sl_duration_in_words(s->hold_max_ns).text);
    if (s->timeout_ns == 0)
        say(warn, ctx, "Note: with --timeout 0 work that hangs is not ended before --hold-max %s.",
            sl_duration_in_words(s->hold_max_ns).text);
    if (s->destination.has_breaker && s->destination.breaker.cool_down_ns >= s->hold_max_ns)
        say(warn, ctx,
            "Note: messages that wait for --cool-down %s are held for --hold-max %s only, and then given to "
            "somebody else.",
            sl_duration_in_words(s->destination.breaker.cool_down_ns).text,
            sl_duration_in_words(s->hold_max_ns).text);
}

/* --ca switches TLS on, but with --http it is meant for the destination. */
static bool shows_password(const sl_work_plan *plan, const char *server)
{
    sl_client_address address;
    char unused[8];
    sl_text problem;
    bool is_shown;

    sl_text_init(&problem, unused, sizeof unused);
    is_shown = sl_client_address_parse(sl_str_from(server), &problem, &address) == SL_OK && !address.tls &&
               (plan->ca_file == NULL || plan->handler == SL_WORK_BY_HTTP) &&
               (address.user[0] != '\0' || plan->user != NULL) &&
               !sl_address_is_loopback(sl_str_from(address.host));
    explicit_bzero(&address, sizeof address);
    return is_shown;
}

static void warn_about_passwords(const sl_work_plan *plan, sl_work_warn_fn *warn, void *ctx)
{
    const bool has_target = plan->handler == SL_WORK_BY_APPEND;

    if ((plan->source.kind == SL_SOURCE_KIND_CONSUMER && shows_password(plan, plan->source.server)) ||
        (has_target && shows_password(plan, plan->target.server)))
        say(warn, ctx, "Note: the password travels without encryption; with TLS it would not (?tls=true).");
}

static void warn_about_work(const sl_work_plan *plan, sl_work_warn_fn *warn, void *ctx)
{
    const sl_work_settings *const s = &plan->settings;

    if (s->timeout_ns != 0 && s->heartbeat_ns >= s->timeout_ns)
        say(warn, ctx, "Note: --heartbeat %s never counts, because --timeout %s ends the work before.",
            sl_duration_in_words(s->heartbeat_ns).text, sl_duration_in_words(s->timeout_ns).text);
    if (s->heartbeat_ns != 0 && (plan->handler == SL_WORK_BY_EXEC || plan->handler == SL_WORK_BY_APPEND))
        say(warn, ctx,
            "Note: a handler by --%s cannot give a sign of life, so that --heartbeat %s is a limit after "
            "which leases are not renewed. Without leases it is ended after twice as long.",
            sl_work_handler_name(plan->handler), sl_duration_in_words(s->heartbeat_ns).text);
    if (plan->password_file != NULL && plan->user == NULL && strchr(plan->from, '@') == NULL)
        say(warn, ctx, "Note: --password-file has no effect without --user.");
}

/* A copy in a stream of the same server is a message of $all as well. */
static void warn_about_copies(const sl_work_plan *plan, sl_work_warn_fn *warn, void *ctx)
{
    if (strcmp(plan->source.stream, "$all") == 0 && sl_work_appends_at_source(plan))
        say(warn, ctx,
            "Note: the group reads $all of the server that --append writes to, so it may get its own copies, "
            "and make copies of them. A filter of the group that leaves them out helps.");
}

/* --print-config writes defaults too: in a file that was begun so, they are no wish. */
static bool is_wish(const sl_option_value *value, const sl_option *row)
{
    return value->source > SL_OPTION_FROM_FILE ||
           (value->source == SL_OPTION_FROM_FILE &&
            (row->default_text == NULL || strcmp(value->text, row->default_text) != 0));
}

static void warn_unused(const sl_option_value *values, sl_option_id id, const char *why,
                        sl_work_warn_fn *warn, void *ctx)
{
    if (is_wish(&values[id], &sl_options[id]))
        say(warn, ctx, "Note: --%s has no effect %s.", sl_options[id].name, why);
}

static void warn_about_options(const sl_option_value *values, const sl_work_plan *plan, sl_work_warn_fn *warn,
                               void *ctx)
{
    const sl_retry_kind retry = plan->settings.retry.kind;

    if (retry == SL_RETRY_NONE) {
        warn_unused(values, SL_OPT_RETRY_FIRST, "with --retry none", warn, ctx);
        warn_unused(values, SL_OPT_RETRY_MAX, "with --retry none", warn, ctx);
    }
    if (retry != SL_RETRY_LINEAR)
        warn_unused(values, SL_OPT_RETRY_STEP, "without --retry linear", warn, ctx);
    if (!plan->settings.destination.has_breaker)
        warn_unused(values, SL_OPT_COOL_DOWN, "with --breaker-failures 0", warn, ctx);
}

void sl_work_plan_warn(const sl_option_value *values, const sl_work_plan *plan, sl_work_warn_fn *warn,
                       void *ctx)
{
    if (plan->source.kind == SL_SOURCE_KIND_CONSUMER) /* others have no leases to lose */
        warn_about_leases(plan, warn, ctx);
    warn_about_copies(plan, warn, ctx);
    warn_about_passwords(plan, warn, ctx);
    warn_about_work(plan, warn, ctx);
    warn_about_options(values, plan, warn, ctx);
}
