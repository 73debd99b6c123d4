/* server/basic.h — the value of an "authorization" header: "Basic " and base64 of name, colon, password.
 *
 * Strict, because a lenient reader and a strict proxy in front of it may see two different users in one header. */
#ifndef SL_SERVER_BASIC_H
#define SL_SERVER_BASIC_H

#include "server/auth.h"

typedef struct sl_credentials {
    sl_str name, password; /* in memory; the name has no colon, the password may have */
    char memory[SL_LOGIN_NAME_BYTES_MAX + 1 + SL_PASSWORD_BYTES_MAX];
} sl_credentials;

/* False: another scheme, no canonical base64, no colon, an empty or too long part, no UTF-8, a zero byte. Nothing
 * is left in *ret_credentials then. Both parts are not checked against the rules for new users. */
bool sl_basic_parse(sl_str header, sl_credentials *ret_credentials);

void sl_credentials_wipe(sl_credentials *credentials);

#endif
