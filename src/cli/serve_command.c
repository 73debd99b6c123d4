/* cli/serve_command.c — see serve_command.h. Everything else is in src/server. */
#include "cli/serve_command.h"

#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/log_sink.h"
#include "cli/print.h"
#include "server/server.h"

enum {
    PROBLEM_BYTES = 2048,
    LOG_FORMAT_AUTO = 0, /* the places in "auto|text|json" */
    LOG_FORMAT_JSON = 2,
    DURABILITY_OS = 1 /* in "sync|os" */
};

sl_log_format sl_log_format_option(uint64_t choice, bool is_terminal)
{
    if (choice == LOG_FORMAT_AUTO)
        return is_terminal ? SL_LOG_FORMAT_TEXT : SL_LOG_FORMAT_JSON;
    return choice == LOG_FORMAT_JSON ? SL_LOG_FORMAT_JSON : SL_LOG_FORMAT_TEXT;
}

/* An option without a default has no text unless it was given; the numbers were checked against the table's bounds. */
sl_server_settings sl_serve_settings(const sl_option_value *values, bool is_terminal)
{
    sl_server_settings settings = sl_server_settings_default;

    settings.host = values[SL_OPT_HOST].text;
    settings.port = (uint16_t)values[SL_OPT_PORT].number;
    settings.admin_host = values[SL_OPT_ADMIN_HOST].text;
    settings.admin_port = (uint16_t)values[SL_OPT_ADMIN_PORT].number;
    settings.advertise_host = values[SL_OPT_ADVERTISE_HOST].text;
    settings.data_folder = values[SL_OPT_DATA_FOLDER].text;
    settings.sync_by_os = values[SL_OPT_DURABILITY].number == DURABILITY_OS;
    settings.insecure = values[SL_OPT_INSECURE].number != 0;
    settings.anonymous = values[SL_OPT_ANONYMOUS].number != 0;
    settings.tls_certificate = values[SL_OPT_TLS_CERTIFICATE].text;
    settings.tls_key = values[SL_OPT_TLS_KEY].text;
    settings.grace_ns = values[SL_OPT_SERVE_GRACE].number;
    settings.connections_max = (uint32_t)values[SL_OPT_CONNECTIONS_MAX].number;
    settings.append_bytes_max = (uint32_t)values[SL_OPT_APPEND_BYTES_MAX].number;
    settings.event_bytes_max = (uint32_t)values[SL_OPT_EVENT_BYTES_MAX].number;
    settings.write_timeout_ns = values[SL_OPT_WRITE_TIMEOUT].number;
    settings.idle_timeout_ns = values[SL_OPT_IDLE_TIMEOUT].number;
    settings.log_level = (sl_log_level)values[SL_OPT_LOG_LEVEL].number;
    settings.log_format = sl_log_format_option(values[SL_OPT_LOG_FORMAT].number, is_terminal);
    return settings;
}

typedef struct running {
    const sl_invocation *invocation;
    sl_log_sink log;
} running;

static void write_line(void *ctx, const char *line, size_t line_bytes)
{
    sl_log_sink_write(&((running *)ctx)->log, line, line_bytes);
}

/* One line and no more: scripts wait for it. */
static void say_ready(void *ctx, const char *address, const char *admin_address)
{
    const sl_invocation *const invocation = ((const running *)ctx)->invocation;

    if (invocation->json) {
        fputs("{\"ready\":true,\"grpc\":", invocation->out);
        sl_print_json_text(invocation->out, address);
        fputs(",\"admin\":", invocation->out);
        sl_print_json_text(invocation->out, admin_address);
        fputs("}\n", invocation->out);
    } else {
        fprintf(invocation->out, "ready grpc=%s admin=%s\n", address, admin_address);
    }
    (void)fflush(invocation->out);
}

void sl_serve_ignore_signals(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}

static int run_serve(const sl_invocation *invocation)
{
    const sl_server_settings settings =
        sl_serve_settings(invocation->values, isatty(fileno(invocation->err)) == 1);
    running r = { .invocation = invocation };
    const sl_server_hooks hooks = { .log_sink = write_line, .on_ready = say_ready, .ctx = &r };
    char sentences[PROBLEM_BYTES];
    sl_server_report report;
    sl_text problem;
    sl_err err;

    sl_text_init(&problem, sentences, sizeof sentences);
    err = sl_server_settings_check(&settings, &problem);
    if (err != SL_OK)
        return sl_cli_fail(invocation, sentences);
    sl_serve_ignore_signals();
    sl_log_sink_begin(&r.log, invocation->err, settings.log_format);
    err = sl_server_run(&sl_alloc_default, &settings, &hooks, &problem, &report);
    sl_log_sink_end(&r.log);
    if (err == SL_OK)
        return SL_EXIT_OK;
    (void)sl_cli_fail(invocation, sentences);
    return err == SL_ERR_CORRUPT ? SL_EXIT_DAMAGE : SL_EXIT_FAILED;
}

static const char serve_details[] =
    "Runs the server on a data folder of its own; no database is needed. Clients for KurrentDB and "
    "EventStoreDB connect to it "
    "unmodified: esdb://127.0.0.1:2113?tls=false or kurrentdb://127.0.0.1:2113?tls=false.\n\n"
    "When it accepts, one line is printed: \"ready grpc=ADDRESS admin=ADDRESS\", with --json the same as an "
    "object. Everything "
    "else is the log, on the error output. The first lines say in plain words what is open, and how to close "
    "it.\n\n"
    "Without users, only this machine can reach it and nobody is asked for a password. 'sluice user add' "
    "changes that. An "
    "address that other machines can reach needs a certificate and a user, or --insecure.\n\n"
    "SIGTERM and SIGINT end it in order: nothing new is accepted, what was accepted is finished and "
    "answered, clients are told "
    "to go, the disk is flushed. A second signal ends all waiting. SIGHUP reads the certificate again.\n\n"
    "The admin pages are /livez, /readyz, /metrics and /v1/info on the admin port.\n";

const sl_command sl_command_serve = {
    .name = "serve",
    .bit = SL_COMMAND_SERVE,
    .words = "",
    .words_min = 0,
    .words_max = 0,
    .run = run_serve,
    .summary = "run the server",
    .details = serve_details,
    .examples = "On two ports that are free, in a folder of your choice:\n"
                "  sluice serve --data ./data --port 0 --admin-port 0\n"
                "For other machines:\n"
                "  sluice user add anna --admin --data d\n"
                "  sluice serve --data d --host 0.0.0.0 --tls-certificate a.pem --tls-key a.key\n",
    .exits = "0 it ended as asked, also when a second signal ended it\n"
             "1 it could not start, or the store failed\n" SL_EXITS_USAGE "3 the journal is damaged\n",
};
