/* server/link.c — see link.h. */
#include "server/link.h"

#include "server/dispatch.h"

/* What the settings say; the rest, windows above all, is the engine's own choice. */
static sl_wire_limits limits_from(const sl_server_settings *settings)
{
    sl_wire_limits limits = sl_wire_limits_default;

    limits.calls_max = settings->calls_per_connection_max;
    limits.idle_timeout_ns = settings->idle_timeout_ns;
    return limits;
}

static void copy_peer(sl_link *link, sl_str peer)
{
    sl_text text;

    sl_text_init(&text, link->peer, sizeof link->peer);
    sl_text_add_str(&text, peer);
    link->owner.peer = sl_text_str(&text);
}

/* Gracefully: a log-in that is being checked is answered. */
static void on_newcomer(void *ctx)
{
    sl_link *const link = ctx;

    sl_connection_shutdown(link->connection);
    link->owner.touch(link->owner.ctx);
}

void sl_link_admit(sl_link *link)
{
    sl_alarm_stop(link->host, &link->newcomer);
}

sl_err sl_link_new(sl_host *host, const sl_link_owner *owner, sl_link **ret_link)
{
    const sl_wire_limits limits = limits_from(host->settings);
    sl_link *const link = sl_alloc_take(host->alloc, sizeof *link);
    const sl_connection_options options = { .role = SL_ROLE_SERVER,
                                            .alloc = host->alloc,
                                            .limits = &limits,
                                            .handler = &sl_dispatch_handler,
                                            .ctx = link,
                                            .counters = &host->counters.wire,
                                            .input = &host->input };
    sl_err err;

    if (link == NULL)
        return SL_ERR_NOMEM;
    *link = (sl_link){ .host = host, .owner = *owner, .newcomer = { .fn = on_newcomer, .ctx = link } };
    copy_peer(link, owner->peer);
    err = sl_connection_new(&options, sl_clock_mono_ns(host->clock), &link->connection);
    if (err != SL_OK) {
        sl_alloc_give(host->alloc, link, sizeof *link);
        return err;
    }
    sl_alarm_set(host, &link->newcomer, sl_clock_mono_ns(host->clock) + SL_LINK_NEWCOMER_NS);
    sl_list_push_back(&host->links, &link->node);
    *ret_link = link;
    return SL_OK;
}

void sl_link_free(sl_link *link)
{
    if (link == NULL)
        return;
    sl_connection_free(link->connection); /* on_end of its calls still uses the link */
    sl_alarm_stop(link->host, &link->newcomer);
    sl_list_remove(&link->node);
    sl_alloc_give(link->host->alloc, link, sizeof *link);
}
