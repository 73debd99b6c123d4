/* net/tls.h — who we are and whom we trust: contexts that connections are made with.
 *
 * TLS 1.2 and 1.3, no renegotiation, no compression, no session tickets (connections live for hours, so there is
 * little to save and one secret less to rotate). All problems are told as sentences. */
#ifndef SL_NET_TLS_H
#define SL_NET_TLS_H

#include "base/alloc.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

typedef struct sl_tls sl_tls; /* opaque */

typedef struct sl_tls_server_options {
    const char *certificate_file; /* PEM: the certificate, then the chain up to but without the root */
    const char *key_file;         /* PEM, without a passphrase */
    bool http1_allowed; /* a client that offers http/1.1 but not h2 gets it; the owner decides what then */
    bool alpn_required; /* a client that offers no protocol at all is refused */
} sl_tls_server_options;

/* The texts are copied. What went wrong is said in `problem`, which may be NULL.
 *   SL_OK
 *   SL_ERR_INVALID  a file is missing, is not what it should be, or the two do not belong together
 *   SL_ERR_NOMEM */
sl_err sl_tls_server_new(const sl_alloc *alloc, const sl_tls_server_options *options, sl_text *problem,
                         sl_tls **ret_tls);

/* Reads the files again: connections that come from now on get the new certificate, existing ones keep theirs. On
 * failure everything stays as it was. Codes as sl_tls_server_new(). Only for servers. */
sl_err sl_tls_reload(sl_tls *tls, sl_text *problem);

typedef struct sl_tls_client_options {
    const char *ca_file; /* PEM: trust these and no others. NULL: what the system trusts */
    bool unverified;     /* trust anybody, whatever the name: for tests and for people who say so aloud */
    bool http1_only;     /* offers http/1.1 instead of h2 */
} sl_tls_client_options;

/* The name that the certificate must be for is the host that the socket connects to. Codes as above. */
sl_err sl_tls_client_new(const sl_alloc *alloc, const sl_tls_client_options *options, sl_text *problem,
                         sl_tls **ret_tls);

/* Connections that exist go on. NULL is allowed. */
void sl_tls_free(sl_tls *tls);

#endif
