/* server/identity.h — who asks. */
#ifndef SL_SERVER_IDENTITY_H
#define SL_SERVER_IDENTITY_H

#include "base/list.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sl_identity {
    sl_str name; /* empty: nobody, the caller gave no credentials */
    const sl_str *groups;
    size_t group_count; /* "$admins", "$ops" and any others */
    bool is_admin, is_operator;
    bool is_trusted; /* nothing is checked: --insecure, or a server without users on loopback */
    /* While the call was open, the user was removed, disabled or got another password: it may nothing more. */
    bool is_revoked;
} sl_identity;

/* A question about credentials that is being answered; inside of whoever asked. */
typedef struct sl_auth_ticket {
    void *job; /* NULL: nothing is on its way */
} sl_auth_ticket;

#endif
