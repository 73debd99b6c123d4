/* client/address.h — where a server is, and how to speak to it, from one line of text.
 *
 *      HOST    HOST:PORT    [IPV6]:PORT
 *      SCHEME://[USER[:PASSWORD]@]HOST[:PORT][/][?OPTION=VALUE[&OPTION=VALUE]...]
 *
 * SCHEME is `sluice`, or one that clients of KurrentDB use: kurrentdb, kdb, kurrent, esdb. With those TLS is on unless the
 * address says tls=false, as their users expect; with `sluice` and without a scheme it is off unless it says tls=true. USER,
 * PASSWORD and values may hold %XX. No message shows a part that could be a password. */
#ifndef SL_CLIENT_ADDRESS_H
#define SL_CLIENT_ADDRESS_H

#include "base/err.h"
#include "base/str.h"
#include "net/socket.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SL_CLIENT_PORT = 2113,              /* when the address names none; that of KurrentDB */
    SL_CLIENT_ADDRESS_BYTES_MAX = 4096, /* longer ones are mistakes */
    SL_CLIENT_USER_BYTES_MAX = 256,
    SL_CLIENT_PASSWORD_BYTES_MAX = 1024,
    SL_CLIENT_NAME_BYTES_MAX = 256,
    SL_CLIENT_FILE_BYTES_MAX = 1024,
};

typedef struct sl_client_address {
    char host[SL_HOST_BYTES_MAX + 1]; /* without brackets */
    uint16_t port;
    bool is_kurrentdb; /* its scheme is one of theirs */
    bool tls;
    bool unverified;                            /* any certificate will do */
    char ca_file[SL_CLIENT_FILE_BYTES_MAX + 1]; /* empty: whom the system trusts */
    char user[SL_CLIENT_USER_BYTES_MAX + 1];    /* empty: nobody in particular */
    bool has_password;                          /* an empty one may be meant */
    char password[SL_CLIENT_PASSWORD_BYTES_MAX + 1];
    char
        connection_name[SL_CLIENT_NAME_BYTES_MAX + 1]; /* how the server lists this client; empty: not said */
    const char
        *note; /* NULL, or a sentence without a full stop about a part of the address that is left unused */
} sl_client_address;

/* What is wrong is said in `problem`, as a sentence without a full stop.
 *   SL_OK
 *   SL_ERR_INVALID    not an address, or one that asks for what is not supported
 *   SL_ERR_TOO_LARGE  a part of it is longer than its limit */
sl_err sl_client_address_parse(sl_str text, sl_text *problem, sl_client_address *ret_address);

/* Copies `text` without its %XX, which may say any byte but zero, and with a closing zero. `what` names it in `problem`, which never
 * shows its content: it may be a password. As above. */
sl_err sl_client_address_decode(const char *what, sl_str text, sl_text *problem, char *into, size_t capacity);

/* "127.0.0.1:2113", "[::1]:2113": what may be shown, and what HTTP/2 calls the authority. */
void sl_client_address_show(const sl_client_address *address, sl_text *text);

#endif
