/* server/start.c — from nothing to ready, step by step, and what the log says about it.
 *
 *      certificate --> admin pages --> store (in another thread) --> host, users --> safe to listen? --> listener --> ready
 *
 * What can fail at once comes first: a bad certificate is told before minutes are spent on a large store. The admin pages come
 * before the store, so that an orchestrator can see that a long start is alive. Clients are let in last. */
#include "server/server_private.h"

#include "base/cleanup.h"
#include "core/budget.h"
#include "server/admin.h"
#include "server/auth.h"
#include "store/inspect.h"

#include <sluice.h>

#include <stdio.h>
#include <sys/resource.h>

enum {
    OTHER_FILES = 256 /* segments and indexes of the store, admin connections, what libraries need */
};

static void fail(sl_server *server, sl_err err, const char *sentences)
{
    sl_server_fail(server, SL_DRAIN_REASON_START_FAILED, err, sentences);
}

/* --- addresses as a client can use them --- */

static void make_address(char into[static SL_ADDRESS_TEXT_BYTES], const char *host, uint16_t port)
{
    const sl_str name = sl_address_is_everywhere(sl_str_from(host)) ? SL_STR("127.0.0.1") : sl_str_from(host);
    const bool is_six = sl_str_find(name, ':') < name.bytes;
    sl_text text;

    sl_text_init(&text, into, SL_ADDRESS_TEXT_BYTES);
    sl_text_add(&text, is_six ? "[" : "");
    sl_text_add_str(&text, name);
    sl_text_add(&text, is_six ? "]:" : ":");
    sl_text_add_u64(&text, port);
}

/* --- what the log says --- */

/* "grace 10s = fence 100ms + ...": the nesting that follows behind a semicolon is about handlers, which a server has not. */
static void tell_budget(const sl_server *server)
{
    const sl_budget_wish wish = sl_shutdown_wish(server->settings->grace_ns);
    char buffer[SL_SENTENCES_BYTES];
    sl_str parts, nesting;
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_budget_explain(&wish, &text);
    if (!sl_str_cut(sl_text_str(&text), ';', &parts, &nesting))
        parts = sl_text_str(&text);
    sl_log(&server->log, SL_LOG_INFO, "a shutdown will spend its grace like this",
           SL_LOG_STR("parts", parts));
}

static void tell_start(const sl_server *server)
{
    const sl_server_settings *const settings = server->settings;

    sl_log(&server->log, SL_LOG_INFO, "sluice starts", SL_LOG_STR("version", sl_version()),
           SL_LOG_STR("data", settings->data_folder),
           SL_LOG_STR("durability", settings->sync_by_os ? "os" : "sync"),
           SL_LOG_UUID("instance", server->instance));
    tell_budget(server);
    if (settings->sync_by_os)
        sl_log(&server->log, SL_LOG_WARN,
               "appends are confirmed before the disk has them: a power cut can lose the last second "
               "(--durability os)");
}

/* A connection is a descriptor, and so is every file of the store: strangers who only connect must not be able to take those that
 * the next segment needs. The soft limit is often 1,024 for the sake of programs that are older than epoll. */
static void share_open_files(sl_server *server)
{
    const uint64_t wanted = (uint64_t)server->settings->connections_max + OTHER_FILES;
    struct rlimit limit;

    server->connections_max = server->settings->connections_max;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* refused: then it stays as it is, and the line below says so */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    server->connections_max =
        (uint32_t)(limit.rlim_cur > 2 * OTHER_FILES ? limit.rlim_cur - OTHER_FILES : limit.rlim_cur / 2);
    sl_log(&server->log, SL_LOG_WARN,
           "the system allows fewer open files than --connections-max needs: raise it (ulimit -n)",
           SL_LOG_U64("allowed", limit.rlim_cur), SL_LOG_U64("needed", wanted),
           SL_LOG_U64("connections_max", server->connections_max));
}

/* The exact command that changes it, as it works while this server runs. */
static void tell_command(const sl_server *server, const char *message)
{
    char command[SL_ADDRESS_TEXT_BYTES + 64];

    snprintf(command, sizeof command, "sluice user add NAME --admin --server %s%s",
             server->tls == NULL ? "" : "kurrentdb://", server->address); /* a scheme that means TLS */
    sl_log(&server->log, SL_LOG_WARN, message, SL_LOG_STR("close_it_with", command));
}

/* In plain words: who can do what to this server now. */
static void tell_what_is_open(const sl_server *server)
{
    const sl_server_settings *const settings = server->settings;
    const bool is_local = sl_address_is_loopback(sl_str_from(settings->host));
    const size_t users = sl_auth_user_count(server->host->auth);

    if (settings->insecure)
        sl_log(&server->log, SL_LOG_WARN,
               "--insecure: nobody is asked for a password, and whoever reaches these addresses can read, "
               "write and delete everything",
               SL_LOG_STR("grpc", server->address), SL_LOG_STR("admin", server->admin_address));
    else if (users == 0)
        tell_command(server, "No users exist: everybody on this machine can do everything");
    else if (settings->anonymous)
        sl_log(&server->log, SL_LOG_WARN,
               "--anonymous: callers without a password can do what stream ACLs allow to everybody",
               SL_LOG_U64("users", users));
    else
        sl_log(&server->log, SL_LOG_INFO, "only users can read and write", SL_LOG_U64("users", users));
    if (server->tls == NULL && is_local && users > 0)
        sl_log(&server->log, SL_LOG_INFO, "without TLS: passwords travel in the open, on this machine only");
}

static void tell_ready(sl_server *server)
{
    sl_log(&server->log, SL_LOG_INFO, "ready", SL_LOG_STR("grpc", server->address),
           SL_LOG_STR("admin", server->admin_address), SL_LOG_BOOL("tls", server->tls != NULL),
           SL_LOG_U64("users", sl_auth_user_count(server->host->auth)),
           SL_LOG_DURATION("took", sl_loop_now_ns(server->loop) - server->started_ns));
    if (server->hooks->on_ready != NULL)
        server->hooks->on_ready(server->hooks->ctx, server->address, server->admin_address);
}

/* --- TLS --- */

static bool load_tls(sl_server *server)
{
    const sl_tls_server_options options = { .certificate_file = server->settings->tls_certificate,
                                            .key_file = server->settings->tls_key,
                                            .http1_allowed = true };
    char sentences[SL_SENTENCES_BYTES];
    sl_text text;
    sl_err err;

    if (options.certificate_file == NULL)
        return true;
    sl_text_init(&text, sentences, sizeof sentences);
    sl_text_add(&text, "The certificate for TLS cannot be used: ");
    err = sl_tls_server_new(server->alloc, &options, &text, &server->tls);
    if (err == SL_OK)
        return true;
    sl_text_add(&text, ". Nothing was started. --tls-certificate and --tls-key name PEM files that belong "
                       "together, the key without a passphrase");
    fail(server, err, sentences);
    return false;
}

void sl_start_reload_tls(sl_server *server)
{
    char sentences[SL_SENTENCES_BYTES];
    sl_text text;

    sl_text_init(&text, sentences, sizeof sentences);
    if (server->tls == NULL)
        sl_log(&server->log, SL_LOG_INFO, "SIGHUP: there is no certificate to read again");
    else if (sl_tls_reload(server->tls, &text) == SL_OK)
        sl_log(&server->log, SL_LOG_INFO, "SIGHUP: new connections get the certificate as it is now",
               SL_LOG_STR("certificate", server->settings->tls_certificate));
    else
        sl_log(&server->log, SL_LOG_ERROR,
               "SIGHUP: the certificate stays as it was, the files cannot be used",
               SL_LOG_STR("problem", sentences));
}

/* --- admin pages and store --- */

/* What listening failed with, what that means, what to do. */
static void explain_address(sl_text *text, sl_err err, const char *port_option, const char *host_option)
{
    if (err == SL_ERR_EXISTS) {
        sl_text_add(text, ". Another process listens there: end it, or choose another port with ");
        sl_text_add(text, port_option);
    } else if (err == SL_ERR_INVALID) {
        sl_text_add(text, ". The address must be one of this machine, see ");
        sl_text_add(text, host_option);
        sl_text_add(text, "; ports below 1024 need a right of their own");
    }
}

/* Two servers with the same settings meet at the port first, but it is the folder that they must not share. */
static bool explain_second(const sl_server *server, sl_text *text)
{
    uint64_t pid = 0;

    if (!sl_journal_is_held(server->settings->data_folder, &pid))
        return false;
    sl_text_add(text, ". A server runs on the data folder ");
    sl_text_add(text, server->settings->data_folder);
    sl_text_add(text, " already: process ");
    sl_text_add_u64(text, pid);
    sl_text_add(text, ". Use that one, or stop it first");
    return true;
}

static bool open_admin(sl_server *server)
{
    char sentences[SL_SENTENCES_BYTES];
    sl_text text;
    sl_err err;

    sl_text_init(&text, sentences, sizeof sentences);
    sl_text_add(&text, "The admin pages cannot listen at port ");
    sl_text_add_u64(&text, server->settings->admin_port);
    sl_text_add(&text, ": ");
    err = sl_admin_new(server, &text, &server->admin);
    if (err != SL_OK) {
        if (err != SL_ERR_EXISTS || !explain_second(server, &text))
            explain_address(&text, err, "--admin-port", "--admin-host");
        fail(server, err, sentences);
        return false;
    }
    make_address(server->admin_address, server->settings->admin_host, sl_pages_port(server->admin));
    return true;
}

static void open_store(sl_server *server)
{
    const sl_storage_setup setup = { .alloc = server->alloc,
                                     .loop = server->loop,
                                     .log = &server->log,
                                     .settings = server->settings,
                                     .seed = server->seed };
    const sl_err err = sl_storage_new(&setup, &server->storage);

    if (err != SL_OK)
        fail(server, err, "There is no memory or no thread to open the store with");
}

void sl_start_begin(sl_server *server)
{
    tell_start(server);
    share_open_files(server);
    sl_notices_start(server);
    if (load_tls(server) && open_admin(server))
        open_store(server);
}

/* --- host, users --- */

static void on_store_readable(void *ctx)
{
    sl_server *const server = ctx;

    sl_host_poll(server->host);
}

static void on_alarm(void *ctx)
{
    sl_server *const server = ctx;

    sl_host_tick(server->host, sl_loop_now_ns(server->loop));
}

/* Operations.Shutdown. The end of this turn goes on with it. */
static void on_asked(void *ctx, const char *reason)
{
    sl_server *const server = ctx;

    (void)sl_shutdown_begin(&server->shutdown, SL_DRAIN_REASON_OPERATOR, reason,
                            sl_loop_now_ns(server->loop));
}

/* From any thread. */
static void wake(void *ctx)
{
    sl_loop_wake(ctx);
}

static sl_err make_host(sl_server *server, sl_text *problem)
{
    const sl_host_setup setup = { .alloc = server->alloc,
                                  .clock = sl_loop_clock(server->loop),
                                  .stopwatch = sl_loop_stopwatch(),
                                  .log = &server->log,
                                  .settings = server->settings,
                                  .store = sl_storage_store(server->storage),
                                  .seed = server->seed,
                                  .instance = server->instance,
                                  .patience_ns = SL_HOST_PATIENCE_NS,
                                  .wake = wake,
                                  .wake_ctx = server->loop,
                                  .problem = problem };
    const sl_err err = sl_host_new(&setup, &server->host);

    if (err != SL_OK)
        return err;
    server->host->shutdown = on_asked;
    server->host->shutdown_ctx = server;
    sl_peers_init(&server->peers, server->host, server->loop);
    sl_timer_init(&server->alarm, server->loop, on_alarm, server);
    return sl_watch_new(server->loop, sl_store_wait_fd(setup.store), on_store_readable, server,
                        &server->store_watch);
}

static void fail_open(sl_server *server)
{
    char sentences[SL_SENTENCES_BYTES];
    sl_text text;

    sl_text_init(&text, sentences, sizeof sentences);
    sl_text_add(&text, "The data folder ");
    sl_text_add(&text, server->settings->data_folder);
    sl_text_add(&text, " cannot be used: ");
    sl_text_add(&text, sl_storage_report(server->storage));
    fail(server, sl_storage_err(server->storage), sentences);
}

static void go_on_opening(sl_server *server)
{
    const sl_storage_state state = sl_storage_turn(server->storage);
    char sentences[SL_SENTENCES_BYTES];
    sl_text problem;
    sl_err err;

    if (state == SL_STORAGE_FAILED)
        fail_open(server);
    if (state != SL_STORAGE_OPEN)
        return;
    sl_text_init(&problem, sentences, sizeof sentences);
    err = make_host(server, &problem);
    server->stage = SL_STAGE_LOADING;
    if (err != SL_OK && problem.bytes == 0)
        sl_text_add(&problem, "There is no memory, no thread or no descriptor for the services");
    if (err != SL_OK)
        fail(server, err, sentences);
}

/* --- listening --- */

static void on_accept(void *ctx, sl_socket *socket)
{
    sl_server *const server = ctx;

    sl_peers_accept(&server->peers, socket);
}

/* The half of the check that settings.c could not make: users are in the store. */
static bool is_safe(sl_server *server)
{
    char sentences[SL_SENTENCES_BYTES];

    if (server->settings->insecure || sl_address_is_loopback(sl_str_from(server->settings->host)) ||
        sl_auth_user_count(server->host->auth) > 0)
        return true;
    snprintf(sentences, sizeof sentences,
             "Other machines can reach %.255s, and no users exist: anybody could do everything. Add one "
             "first: sluice user add NAME --admin --data %.512s; or stay on 127.0.0.1, or say --insecure",
             server->settings->host, server->settings->data_folder);
    fail(server, SL_ERR_INVALID, sentences);
    return false;
}

static bool listen_for_clients(sl_server *server)
{
    sl_net_limits limits = sl_net_limits_default;
    const sl_listen_options options = { .host = sl_str_from(server->settings->host),
                                        .port = server->settings->port,
                                        .limits = &limits,
                                        .counters = &server->net,
                                        .tls = server->tls,
                                        .on_accept = on_accept,
                                        .ctx = server };
    char sentences[SL_SENTENCES_BYTES];
    sl_text text;
    sl_err err;

    limits.connections_max = server->connections_max;
    sl_text_init(&text, sentences, sizeof sentences);
    sl_text_add(&text, "Clients cannot be listened for at port ");
    sl_text_add_u64(&text, server->settings->port);
    sl_text_add(&text, ": ");
    err = sl_listener_new(server->loop, &options, &text, &server->listener);
    if (err != SL_OK) {
        explain_address(&text, err, "--port", "--host");
        fail(server, err, sentences);
    }
    return err == SL_OK;
}

/* Nobody writes yet, so a problem now is one of reading: without all users nobody can be told from anybody. Groups have asked for room by
 * now, so the store may also say that it is full: that is none, and settling goes on. */
static bool is_readable(sl_server *server)
{
    const char *const problem = sl_store_problem(server->host->store);
    char sentences[SL_SENTENCES_BYTES];

    if (problem[0] == '\0' || sl_store_is_full(server->host->store))
        return true;
    snprintf(sentences, sizeof sentences, "The users cannot be read: %s", problem);
    fail(server, SL_ERR_CORRUPT, sentences);
    return false;
}

static void go_on_loading(sl_server *server)
{
    if (!is_readable(server) || !sl_auth_ready(server->host->auth) || !is_safe(server) ||
        !listen_for_clients(server))
        return;
    server->host->port = sl_listener_port(server->listener);
    make_address(server->address, server->settings->host, sl_listener_port(server->listener));
    server->stage = SL_STAGE_SERVING;
    tell_what_is_open(server);
    tell_ready(server);
}

void sl_start_turn(sl_server *server)
{
    if (sl_shutdown_is_on(&server->shutdown))
        return;
    if (server->stage == SL_STAGE_OPENING)
        go_on_opening(server);
    else
        go_on_loading(server);
}
