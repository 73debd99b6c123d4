/* server/notices.c — what the log says while the server runs: trouble with the store when it comes and goes, and connections that
 * were refused or ended for a bad reason, as a summary now and then.
 *
 * A line for each would let a stranger fill the disk with our log. So every ten seconds the counters are compared with what was
 * told, and each reason that has grown gets one line with how often. */
#include "server/server_private.h"

#define EVERY_NS UINT64_C(10000000000)

/* How connections end when all is well; or what the other side does every day: restarts, networks. */
static bool is_usual_net(sl_net_end end)
{
    return end == SL_NET_END_NONE || end == SL_NET_END_CLOSED || end == SL_NET_END_PEER_CLOSED ||
           end == SL_NET_END_RESET || end == SL_NET_END_TLS_CUT;
}

static bool is_usual_wire(sl_end end)
{
    return end == SL_END_NONE || end == SL_END_CLOSED || end == SL_END_SHUTDOWN || end == SL_END_IDLE;
}

static void tell(const sl_server *server, const char *name, const char *text, uint64_t times)
{
    sl_log(&server->log, SL_LOG_WARN, "connections refused or ended", SL_LOG_STR("cause", name),
           SL_LOG_STR("meaning", text), SL_LOG_U64("times", times), SL_LOG_DURATION("within", EVERY_NS));
}

static void compare(sl_server *server)
{
    const sl_server_counters *const counters = sl_server_counters_of(server);
    sl_notices *const notices = &server->notices;

    for (unsigned i = 0; i < SL_NET_END_COUNT_; i++) {
        if (server->net.ended[i] > notices->net_told[i] && !is_usual_net((sl_net_end)i))
            tell(server, sl_net_end_name((sl_net_end)i), sl_net_end_text((sl_net_end)i),
                 server->net.ended[i] - notices->net_told[i]);
        notices->net_told[i] = server->net.ended[i];
    }
    for (unsigned i = 0; i < SL_END_COUNT_; i++) {
        const uint64_t now = counters->wire.connections_ended[i];
        if (now > notices->wire_told[i] && !is_usual_wire((sl_end)i))
            tell(server, sl_end_name((sl_end)i), sl_end_text((sl_end)i), now - notices->wire_told[i]);
        notices->wire_told[i] = now;
    }
}

static void on_timer(void *ctx)
{
    sl_server *const server = ctx;

    compare(server);
    sl_timer_set(&server->notices.timer, sl_loop_now_ns(server->loop) + EVERY_NS);
}

/* A full disk is no failure, so the server goes on, and whoever looks only at the log would not know why appends are refused. */
void sl_notices_turn(sl_server *server)
{
    const char *const problem = sl_store_problem(server->host->store);
    const bool is_wrong = problem[0] != '\0';

    if (is_wrong == server->notices.store_told)
        return;
    server->notices.store_told = is_wrong;
    if (is_wrong)
        sl_log(&server->log, SL_LOG_WARN, "something is wrong with the store",
               SL_LOG_STR("problem", problem));
    else
        sl_log(&server->log, SL_LOG_INFO, "the store works again");
}

void sl_notices_start(sl_server *server)
{
    sl_timer_init(&server->notices.timer, server->loop, on_timer, server);
    sl_timer_set(&server->notices.timer, sl_loop_now_ns(server->loop) + EVERY_NS);
}

/* What was not told yet is told now. */
void sl_notices_stop(sl_server *server)
{
    compare(server);
    sl_timer_stop(&server->notices.timer);
}
