/* server/auth_inside.h — what auth.c, login.c and the users service share; nobody else includes it.
 *
 *      auth.c            reads the users and keeps them current; looks at the header
 *      login.c           name and password --> remembered, throttled, or asked from the helper thread
 *      users_service.c   changes users */
#ifndef SL_SERVER_AUTH_INSIDE_H
#define SL_SERVER_AUTH_INSIDE_H

#include "server/auth.h"
#include "server/passwords.h"
#include "server/remembered.h"
#include "server/tail.h"
#include "server/throttle.h"
#include "server/user_loader.h"
#include "server/users.h"

struct sl_auth {
    sl_host *host;
    sl_users users;
    sl_user_loader loader;
    sl_reader_node worker;      /* takes the loader's steps */
    sl_reader_node names_watch; /* $users */
    sl_alarm retry;             /* after an error */
    bool ready;                 /* all users were read once */
    bool is_local;              /* only this machine can reach the server */
    uint64_t header_told_ns;    /* when a header that is not understood was logged last */
    sl_passwords *passwords;
    sl_list logins; /* being checked; server/login.c */
    sl_throttle throttle;
    sl_remembered remembered;
};

/* As sl_auth_check(), for a name and a password whatever the settings say: the current password of somebody who
 * wants a new one must be right on an open server too. Answers OK, REFUSED, TOO_OFTEN or NOT_READY. */
void sl_login_check(sl_auth *auth, sl_str name, sl_str password, sl_str peer, sl_auth_ticket *ticket,
                    sl_auth_fn *fn, void *ctx);

/* At the end: those who wait are not told. */
void sl_logins_free(sl_auth *auth);

#endif
