/* server/server.c — the turns of a running server, its signals, and its end.
 *
 * What happens in a turn, after everything that came in: the start goes on; the host writes once for all and answers what is
 * durable; peers are looked at, so that the answers leave in this turn; the shutdown goes on. All state is moved there, at one
 * place, so no callback can find the server half taken apart. */
#include "server/server_private.h"

#include "base/cleanup.h"
#include "server/admin.h"
#include "server/auth.h"

#include <assert.h>
#include <malloc.h>
#include <signal.h>
#include <sys/random.h>

/* --- what others ask --- */

const sl_server_counters *sl_server_counters_of(const sl_server *server)
{
    return server->host == NULL ? &server->counters : &server->host->counters;
}

static void say_stage(const sl_server *server, sl_text *why)
{
    switch (server->stage) {
    case SL_STAGE_OPENING:
        sl_text_add(why, "The store is being opened. ");
        if (server->storage != NULL)
            sl_storage_progress(server->storage, why);
        break;
    case SL_STAGE_LOADING: sl_text_add(why, "Users are being read."); break;
    case SL_STAGE_SERVING: sl_text_add(why, sl_store_problem(server->host->store)); break;
    case SL_STAGE_CLOSING:
    case SL_STAGE_ENDED: break;
    }
}

bool sl_server_is_ready(const sl_server *server, sl_text *why)
{
    const bool stopping = sl_shutdown_is_on(&server->shutdown);

    if (!stopping && server->stage == SL_STAGE_SERVING && sl_host_ready(server->host))
        return true;
    if (why == NULL)
        return false;
    if (stopping) {
        sl_text_add(why, "The server is shutting down: ");
        sl_text_add(why, sl_shutdown_reason(&server->shutdown));
    } else {
        say_stage(server, why);
    }
    return false;
}

/* --- the steps of a shutdown --- */

static void refuse(void *ctx, const char *reason)
{
    sl_server *const server = ctx;

    sl_listener_free(server->listener);
    server->listener = NULL;
    if (server->host == NULL)
        return;
    sl_host_stop(server->host, reason);
    sl_door_shut(server->host->door, reason);
    sl_loop_wake(
        server->loop); /* whoever was told may have handed in the rest: it is written in the next turn */
}

static void farewell(void *ctx)
{
    sl_server *const server = ctx;

    if (server->host == NULL)
        return;
    sl_peers_shutdown(&server->peers);
    sl_auth_stop(server->host->auth);
    server->is_leaving = true;
}

static void cut(void *ctx)
{
    sl_server *const server = ctx;

    if (server->host == NULL)
        return;
    sl_door_close(server->host->door, sl_shutdown_reason(&server->shutdown));
    sl_peers_cut_calls(&server->peers);
}

static sl_drain_held held(void *ctx)
{
    sl_server *const server = ctx;
    sl_drain_held now = { 0 };

    if (server->storage != NULL && server->stage == SL_STAGE_OPENING)
        now.gates = sl_storage_turn(server->storage) == SL_STORAGE_OPENING;
    if (server->host == NULL)
        return now;
    now.gates += !sl_door_is_shut(server->host->door);
    now.started = sl_door_inside(server->host->door) + server->host->counters.consumers_draining_now;
    now.unconfirmed = sl_peers_call_count(&server->peers);
    now.open = server->peers.count + (server->is_leaving && sl_auth_is_busy(server->host->auth));
    return now;
}

/* False: there was one before. */
static bool keep_failure(sl_server *server, const char *message, sl_err err, const char *sentences)
{
    if (server->err != SL_OK)
        return false;
    server->err = err;
    sl_text_add(server->problem, sentences);
    sl_log(&server->log, SL_LOG_ERROR, message, SL_LOG_STR("problem", sentences), SL_LOG_ERR("error", err));
    return true;
}

/* A shutdown that is on already keeps its reason and its steps (S3.2, S3.22); only the exit code is another one now. */
void sl_server_fail(sl_server *server, sl_drain_reason reason, sl_err err, const char *sentences)
{
    const bool is_start = reason == SL_DRAIN_REASON_START_FAILED;
    char text[SL_SHUTDOWN_REASON_BYTES];
    sl_text made;

    if (!keep_failure(server, is_start ? "cannot start" : "cannot go on", err, sentences))
        return;
    sl_text_init(&made, text, sizeof text);
    sl_text_add(&made, is_start ? "start failed: " : "");
    sl_text_add(&made, sentences);
    (void)sl_shutdown_begin(&server->shutdown, reason, text, sl_loop_now_ns(server->loop));
    sl_loop_wake(server->loop);
}

/* --- after the shutdown --- */

/* S3.24. A hash may be as expensive as passwords.c allows, and nothing that it would still say is needed. */
static void leave_helper(sl_server *server)
{
    if (!sl_auth_is_busy(server->host->auth))
        return;
    sl_log(&server->log, SL_LOG_WARN,
           "a helper thread has not ended within its limit and is left to itself: it computes a hash and "
           "writes nothing",
           SL_LOG_STR("thread", "passwords"),
           SL_LOG_DURATION("limit", server->shutdown.drain.budget.part_ns[SL_BUDGET_CLOSE]));
    sl_auth_leave_helper(server->host->auth);
}

static void free_services(sl_server *server)
{
    server->tally = sl_door_since_shut(server->host->door);
    server->batches_left = sl_door_inside(server->host->door);
    server->consumers = sl_operators_tally_of(server->host);
    sl_admin_end_jobs(server);
    sl_peers_free(&server->peers);
    server->calls_cut = server->peers.calls_cut;
    server->counters = server->host->counters;
    leave_helper(server);
    sl_watch_free(server->store_watch);
    server->store_watch = NULL;
    sl_timer_stop(&server->alarm);
    sl_timer_stop(&server->again);
    sl_host_free(server->host);
    server->host = NULL;
}

/* From here on nothing is left that could write; the store brings to the disk what it has. */
static void begin_closing(sl_server *server)
{
    server->stage = SL_STAGE_CLOSING;
    sl_notices_stop(server);
    if (server->host != NULL)
        free_services(server);
}

/* A store that was still being opened when the signal came is closed as soon as it is open. */
static bool is_busy(sl_server *server)
{
    sl_storage_state state;

    if (server->storage == NULL)
        return false;
    if (sl_storage_turn(server->storage) == SL_STORAGE_OPEN)
        sl_storage_close(server->storage);
    state = sl_storage_turn(server->storage);
    return state == SL_STORAGE_OPENING || state == SL_STORAGE_CLOSING;
}

static void go_on_closing(sl_server *server)
{
    const bool busy = is_busy(server);
    const uint64_t end_ns = sl_shutdown_end_ns(&server->shutdown); /* sooner after a second signal */

    sl_timer_set(&server->shutdown_timer, end_ns);
    if (busy && sl_loop_now_ns(server->loop) < end_ns)
        return;
    if (busy)
        sl_log(
            &server->log, SL_LOG_WARN,
            "the store is not closed yet and is left to itself: what was confirmed is safe, the next start "
            "checks the rest",
            SL_LOG_DURATION("grace", server->settings->grace_ns));
    sl_timer_stop(&server->shutdown_timer);
    server->stage = SL_STAGE_ENDED;
    sl_loop_stop(server->loop);
}

static void go_on_ending(sl_server *server)
{
    const uint64_t now_ns = sl_loop_now_ns(server->loop);

    if (server->stage < SL_STAGE_CLOSING) {
        sl_timer_set(&server->shutdown_timer, sl_shutdown_turn(&server->shutdown, now_ns));
        if (!sl_shutdown_is_over(&server->shutdown))
            return;
        begin_closing(server);
    }
    if (server->stage == SL_STAGE_CLOSING)
        go_on_closing(server);
}

/* --- turns --- */

/* A failed sync is final (store.h): nobody knows what the disk has, so going on would mean to guess. */
static void check_store(sl_server *server)
{
    char sentences[SL_SENTENCES_BYTES];
    sl_text text;

    if (!sl_door_store_failed(server->host->door) || server->err != SL_OK)
        return;
    sl_text_init(&text, sentences, sizeof sentences);
    sl_text_add(&text, "the store failed: ");
    sl_text_add(&text, sl_store_problem(server->host->store));
    sl_text_add(&text, ". Appends that were not confirmed may or may not be there. Look at the disk, then "
                       "start the server again: it checks what is there");
    sl_server_fail(server, SL_DRAIN_REASON_FAILED, SL_ERR_STORE_FAILED, sentences);
}

static void turn_host(sl_server *server)
{
    server->host->counters.net = server->net;
    if (sl_host_turn(server->host)) /* a timer that is due costs no system call, waking the loop does */
        sl_timer_set(&server->again, sl_loop_now_ns(server->loop));
    sl_notices_turn(server);
    check_store(server);
}

static void set_alarm(sl_server *server)
{
    const uint64_t due_ns = sl_host_due_ns(server->host);

    if (!server->alarm.is_set || server->alarm.at_ns != due_ns)
        sl_timer_set(&server->alarm, due_ns);
}

static void on_turn_end(void *ctx)
{
    sl_server *const server = ctx;

    if (server->stage < SL_STAGE_SERVING)
        sl_start_turn(server);
    if (server->host != NULL)
        turn_host(server);
    if (server->stage == SL_STAGE_LOADING) /* users read in this turn: nothing else may bring the next one */
        sl_start_turn(server);
    if (sl_shutdown_is_on(&server->shutdown) && server->stage != SL_STAGE_ENDED)
        go_on_ending(server);
    if (server->host != NULL) {
        sl_peers_settle(&server->peers);
        set_alarm(server);
    }
}

/* It was only to have a turn. */
static void on_time(void *ctx)
{
    (void)ctx; /* the end of the turn looks at everything */
}

/* SIGHUP is no wish to end. Of the others the first begins the shutdown, the second ends all waiting. */
static void on_signal(void *ctx, int signal_number, uint32_t nth)
{
    sl_server *const server = ctx;
    const sl_drain_reason reason =
        signal_number == SIGTERM ? SL_DRAIN_REASON_SIGTERM : SL_DRAIN_REASON_SIGINT;

    (void)nth; /* counts SIGHUP as well */
    if (signal_number == SIGHUP) {
        sl_start_reload_tls(server);
        return;
    }
    sl_log(&server->log, SL_LOG_INFO, "signal", SL_LOG_STR("name", sl_drain_reason_name(reason)));
    if (!sl_shutdown_begin(&server->shutdown, reason, NULL, sl_loop_now_ns(server->loop)))
        sl_shutdown_insist(&server->shutdown, sl_loop_now_ns(server->loop));
}

/* --- from beginning to end --- */

static sl_err make_secrets(sl_server *server)
{
    uint8_t random[16];

    if (getrandom(&server->seed, sizeof server->seed, 0) != (ssize_t)sizeof server->seed ||
        getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return SL_ERR_IO;
    server->instance = sl_uuid_v4(random);
    return SL_OK;
}

static sl_err prepare(sl_server *server)
{
    static const sl_loop_handler handler = { .on_turn_end = on_turn_end, .on_signal = on_signal };
    static const sl_shutdown_steps steps = {
        .refuse = refuse, .farewell = farewell, .cut = cut, .held = held
    };
    sl_err err = make_secrets(server);

    if (err == SL_OK)
        err = sl_loop_new(server->alloc, &handler, server, &server->loop);
    if (err != SL_OK)
        return err;
    server->log = (sl_logger){ .level_min = server->settings->log_level,
                               .format = server->settings->log_format,
                               .clock = sl_loop_clock(server->loop),
                               .sink = server->hooks->log_sink,
                               .sink_ctx = server->hooks->ctx };
    server->started_ns = sl_loop_now_ns(server->loop);
    sl_timer_init(&server->shutdown_timer, server->loop, on_time, server);
    sl_timer_init(&server->again, server->loop, on_time, server);
    sl_shutdown_init(&server->shutdown, server->settings->grace_ns, &steps, server, &server->log);
    return sl_loop_catch_signals(server->loop);
}

static void fill_report(const sl_server *server, sl_server_report *report)
{
    const uint64_t now_ns = sl_loop_now_ns(server->loop);
    sl_text reason;

    *report = (sl_server_report){
        .uptime_ns = now_ns - server->started_ns,
        .shutdown_ns = now_ns - server->shutdown.drain.began_ns,
        .batches_finished = server->tally.finished,
        .batches_failed = server->tally.failed,
        .batches_left = server->batches_left,
        .batches_refused = server->tally.refused,
        .calls_refused = server->counters.calls_refused,
        .calls_cut = server->calls_cut,
        .consumers_drained = server->consumers.drained,
        .consumers_left = server->consumers.left_consumers,
        .messages_left = server->consumers.left_leased,
        .forced = server->shutdown.insisted || server->batches_left > 0 || server->calls_cut > 0,
    };
    sl_text_init(&reason, report->reason, sizeof report->reason);
    sl_text_add(&reason, sl_shutdown_reason(&server->shutdown));
}

/* S3.27: the last line. */
static void tell_end(const sl_server *server, const sl_server_report *report)
{
    sl_log(&server->log, SL_LOG_INFO, "server stopped", SL_LOG_STR("reason", report->reason),
           SL_LOG_BOOL("forced", report->forced), SL_LOG_U64("batches_finished", report->batches_finished),
           SL_LOG_U64("batches_failed", report->batches_failed),
           SL_LOG_U64("batches_left", report->batches_left),
           SL_LOG_U64("batches_refused", report->batches_refused),
           SL_LOG_U64("calls_refused", report->calls_refused), SL_LOG_U64("calls_cut", report->calls_cut),
           SL_LOG_U64("consumers_drained", report->consumers_drained),
           SL_LOG_U64("consumers_left", report->consumers_left),
           SL_LOG_U64("messages_left_leased", report->messages_left),
           SL_LOG_DURATION("uptime", report->uptime_ns), SL_LOG_DURATION("shutdown", report->shutdown_ns));
}

/* Left to itself, glibc takes the largest block that was ever given back for a sign that such blocks come often, and from then on
 * keeps memory of that size for good. Blocks from here on are a burst's (buffers, read-ahead of groups): they go back to the system
 * as soon as they are given back. What is below stays with the process, up to a few MB at the end of its heap. */
static void tell_malloc(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 4 * 1024 * 1024);
#endif
}

sl_err sl_server_run(const sl_alloc *alloc, const sl_server_settings *settings, const sl_server_hooks *hooks,
                     sl_text *problem, sl_server_report *ret_report)
{
    sl_server server = { .alloc = alloc, .settings = settings, .hooks = hooks, .problem = problem };
    const sl_err err = prepare(&server);

    tell_malloc();
    if (err != SL_OK) {
        sl_text_add(problem, "The system gave no event loop or no random numbers: ");
        sl_text_add(problem, sl_err_text(err));
        sl_loop_free(server.loop);
        return err;
    }
    sl_start_begin(&server);
    sl_loop_run(server.loop);
    assert(server.stage == SL_STAGE_ENDED);
    sl_pages_free(server.admin); /* S3.40: the last that goes */
    sl_storage_free(server.storage);
    sl_tls_free(server.tls);
    fill_report(&server, ret_report);
    tell_end(&server, ret_report);
    sl_loop_free(server.loop);
    return server.err;
}
