/* server/settings.c — the defaults, each with its reason, and the check that a choice is complete and safe.
 *
 * What is safe: an address that only this machine can reach needs nothing. Any other needs a certificate, because passwords
 * travel on it, and users, because somebody has to be asked for one; or the word --insecure. Whether there are users is
 * known only when the store is open, so that half of the check is made by start.c.
 *
 * The admin pages ask nobody for a password and speak no TLS in this version, so they leave loopback only with --insecure. */
#include "server/settings.h"

#include "base/cleanup.h"
#include "core/budget.h"
#include "server/shutdown.h"
#include "store/store.h"

#include <stdarg.h>
#include <stdio.h>

#define SECOND_NS UINT64_C(1000000000)

enum {
    SENTENCE_BYTES = 512,
    HOST_BYTES_MAX = 255,       /* as names in DNS */
    PATH_BYTES_MAX = 4095,      /* as Linux has it */
    CONNECTIONS_MAX = 1000000,  /* beyond that memory ends first */
    CALLS_PER_CONNECTION = 4096 /* every subscription is a call that stays open */
};

const sl_server_settings sl_server_settings_default = {
    .host = "127.0.0.1",
    .port = 2113, /* as KurrentDB, so that existing connection strings fit */
    .admin_host = "127.0.0.1",
    .admin_port = 2114,
    .data_folder = "sluice-data",
    .grace_ns = 10 * SECOND_NS, /* what Docker gives, and the least of the orchestrators' defaults */
    .connections_max = 10000,
    .calls_per_connection_max = CALLS_PER_CONNECTION,
    .append_bytes_max = SL_BATCH_BYTES_MAX,
    .event_bytes_max = SL_EVENT_BYTES_MAX,
    .write_timeout_ns = 2 * SECOND_NS,  /* as KurrentDB */
    .idle_timeout_ns = 600 * SECOND_NS, /* a client that still lives reconnects without being noticed */
    .log_level = SL_LOG_INFO,
    .log_format = SL_LOG_FORMAT_TEXT,
};

/* --- addresses --- */

/* "127.0.0.1" and all others of 127/8, as four numbers and nothing else: "127.0.0.1.example.com" is a name. */
static bool is_loopback_four(sl_str host)
{
    sl_str part;
    uint64_t number;

    for (unsigned i = 0; i < 4; i++) {
        const bool last = i == 3;
        if (last)
            part = host;
        else if (!sl_str_cut(host, '.', &part, &host))
            return false;
        if (part.bytes > 3 || sl_str_parse_u64(part, &number) != SL_OK || number > 255)
            return false;
        if (i == 0 && number != 127)
            return false;
    }
    return true;
}

bool sl_address_is_loopback(sl_str host)
{
    static const sl_str mapped = SL_STR_INIT("::ffff:");

    if (sl_str_equal(host, SL_STR("localhost")) || sl_str_equal(host, SL_STR("::1")))
        return true;
    if (sl_str_starts_with(host, mapped))
        host = (sl_str){ host.data + mapped.bytes, host.bytes - mapped.bytes };
    return is_loopback_four(host);
}

bool sl_address_is_everywhere(sl_str host)
{
    return host.bytes == 0 || sl_str_equal(host, SL_STR("0.0.0.0")) || sl_str_equal(host, SL_STR("::")) ||
           sl_str_equal(host, SL_STR("[::]"));
}

/* --- the check: each function is about one thing and says one sentence --- */

__attribute__((format(printf, 2, 3))) static sl_err complain(sl_text *problem, const char *format, ...)
{
    char sentence[SENTENCE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    sl_text_add(problem, sentence);
    return SL_ERR_INVALID;
}

static sl_err check_text(const char *name, const char *text, size_t bytes_max, sl_text *problem)
{
    if (text == NULL || text[0] == '\0')
        return complain(problem, "%s is empty", name);
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return complain(problem, "%s holds a control character", name);
    }
    return strlen(text) <= bytes_max
               ? SL_OK
               : complain(problem, "%s has more than %zu bytes, which is no path and no name", name,
                          bytes_max);
}

static sl_err check_texts(const sl_server_settings *settings, sl_text *problem)
{
    const struct {
        const char *name, *text;
        size_t bytes_max;
        bool optional;
    } rows[] = {
        { "--host", settings->host, HOST_BYTES_MAX, false },
        { "--admin-host", settings->admin_host, HOST_BYTES_MAX, false },
        { "--advertise-host", settings->advertise_host, HOST_BYTES_MAX, true },
        { "--data", settings->data_folder, PATH_BYTES_MAX, false },
        { "--tls-certificate", settings->tls_certificate, PATH_BYTES_MAX, true },
        { "--tls-key", settings->tls_key, PATH_BYTES_MAX, true },
    };
    sl_err err = SL_OK;

    for (size_t i = 0; i < SL_COUNT_OF(rows) && err == SL_OK; i++) {
        if (rows[i].text != NULL || !rows[i].optional)
            err = check_text(rows[i].name, rows[i].text, rows[i].bytes_max, problem);
    }
    return err;
}

static sl_err check_ports(const sl_server_settings *settings, sl_text *problem)
{
    if (settings->port == 0 || settings->port != settings->admin_port ||
        strcmp(settings->host, settings->admin_host) != 0)
        return SL_OK;
    return complain(problem,
                    "--port and --admin-port are both %u: clients and the admin pages need a port each",
                    settings->port);
}

static sl_err check_tls(const sl_server_settings *settings, sl_text *problem)
{
    const bool certificate = settings->tls_certificate != NULL, key = settings->tls_key != NULL;

    if (certificate == key)
        return SL_OK;
    return complain(problem, "%s is given without %s: TLS needs both, each the name of a PEM file",
                    certificate ? "--tls-certificate" : "--tls-key",
                    certificate ? "--tls-key" : "--tls-certificate");
}

static sl_err check_reach(const sl_server_settings *settings, sl_text *problem)
{
    if (settings->insecure)
        return SL_OK;
    if (!sl_address_is_loopback(sl_str_from(settings->host)) && settings->tls_certificate == NULL)
        return complain(
            problem,
            "Other machines can reach %s, and without TLS everybody on the way can read passwords and "
            "events. Give --tls-certificate and --tls-key and add a user, or stay on 127.0.0.1, or say "
            "--insecure if the network itself is protected",
            settings->host);
    if (!sl_address_is_loopback(sl_str_from(settings->admin_host)))
        return complain(
            problem,
            "Other machines can reach %s, and the admin pages ask nobody for a password. Leave "
            "--admin-host at 127.0.0.1 and put a proxy with TLS and a password in front of it, or say "
            "--insecure if the network itself is protected",
            settings->admin_host);
    return SL_OK;
}

typedef struct bounds {
    const char *name;
    uint64_t value, min, max;
} bounds;

static sl_err check_numbers(const sl_server_settings *settings, sl_text *problem)
{
    const bounds rows[] = {
        { "--connections-max", settings->connections_max, 1, CONNECTIONS_MAX },
        { "the calls of one connection", settings->calls_per_connection_max, 1, CONNECTIONS_MAX },
        { "--append-bytes-max", settings->append_bytes_max, 1, SL_BATCH_BYTES_MAX },
        { "--event-bytes-max", settings->event_bytes_max, 1, SL_EVENT_BYTES_MAX },
        { "--write-timeout in nanoseconds", settings->write_timeout_ns, 1, 3600 * SECOND_NS },
        { "--idle-timeout in nanoseconds", settings->idle_timeout_ns, 0, 30 * 24 * 3600 * SECOND_NS },
        { "the log level", settings->log_level, 0, SL_LOG_LEVEL_COUNT_ - 1 },
        { "the log format", settings->log_format, 0, SL_LOG_FORMAT_COUNT_ - 1 },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        if (rows[i].value < rows[i].min || rows[i].value > rows[i].max)
            return complain(problem, "%s must be from %llu to %llu, not %llu", rows[i].name,
                            (unsigned long long)rows[i].min, (unsigned long long)rows[i].max,
                            (unsigned long long)rows[i].value);
    }
    return SL_OK;
}

static sl_err check_sizes(const sl_server_settings *settings, sl_text *problem)
{
    if (settings->event_bytes_max <= settings->append_bytes_max)
        return SL_OK;
    return complain(
        problem,
        "--event-bytes-max %lu is above --append-bytes-max %lu, but one event is the least that an "
        "append can hold",
        (unsigned long)settings->event_bytes_max, (unsigned long)settings->append_bytes_max);
}

static sl_err check_grace(const sl_server_settings *settings, sl_text *problem)
{
    const sl_budget_wish wish = sl_shutdown_wish(settings->grace_ns);
    sl_budget budget;
    const sl_err err = sl_budget_make(&wish, &budget);

    if (err != SL_OK) {
        sl_text_add(problem, "--grace does not hold a shutdown: ");
        sl_budget_explain(&wish, problem);
    }
    return err;
}

sl_err sl_server_settings_check(const sl_server_settings *settings, sl_text *problem)
{
    static sl_err (*const checks[])(const sl_server_settings *, sl_text *) = {
        check_texts, check_ports, check_tls, check_reach, check_numbers, check_sizes, check_grace,
    };
    sl_err err = SL_OK;

    for (size_t i = 0; i < SL_COUNT_OF(checks) && err == SL_OK; i++)
        err = checks[i](settings, problem);
    return err;
}
