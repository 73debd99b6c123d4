/* server/settings.h — everything that can be chosen about a server, and the check that the choice is safe.
 *
 * Safe by default: loopback, and who wants to be reached from elsewhere needs TLS and users, or says --insecure. */
#ifndef SL_SERVER_SETTINGS_H
#define SL_SERVER_SETTINGS_H

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_server_settings {
    const char *host;          /* to listen at; "127.0.0.1" by default */
    uint16_t port, admin_port; /* 0: any that is free */
    const char *admin_host;
    const char *advertise_host; /* what gossip tells clients to connect to; NULL: derived from host */
    const char *data_folder;
    bool sync_by_os; /* durability "os" */
    bool insecure;   /* nobody is asked for anything */
    bool anonymous;  /* callers without credentials may do what ACLs allow to everybody */
    const char *tls_certificate, *tls_key; /* both or none */
    uint64_t grace_ns;                     /* the whole time for a shutdown: what the orchestrator gives */
    uint32_t connections_max;
    uint32_t calls_per_connection_max;
    uint32_t append_bytes_max; /* all events of one append */
    uint32_t event_bytes_max;  /* one event: data, metadata, type */
    uint64_t
        write_timeout_ns; /* an append that is not durable by then is answered with a timeout; 2 s as KurrentDB */
    uint64_t idle_timeout_ns;
    sl_log_level log_level;
    sl_log_format log_format;
} sl_server_settings;

extern const sl_server_settings sl_server_settings_default;

/* Is it complete and safe? The sentence in `problem` says what is wrong and how to put it right.
 *   SL_OK, SL_ERR_INVALID, SL_ERR_BUDGET */
sl_err sl_server_settings_check(const sl_server_settings *settings, sl_text *problem);

/* Can only this machine reach that address? */
bool sl_address_is_loopback(sl_str host);

/* Does listening there mean all addresses of this machine? Then it is none that a client could use. */
bool sl_address_is_everywhere(sl_str host);

#endif
