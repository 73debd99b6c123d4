/* server/auth.h — who is asking: users, their passwords, and a memory of those that were right.
 *
 * Users are events: $user-NAME holds one stream of changes for each ($UserCreated, $UserUpdated, $PasswordChanged,
 * $UserDeleted: JSON with name, full name, groups, hash, disabled), $users lists the names. So they are as durable as
 * everything else, a backup has them, and `sluice user --data DIR` writes them without a server. All of them are in memory.
 *
 * A password is checked with Argon2id, which is slow on purpose: in a helper thread, and only once. What was right is remembered as a keyed
 * hash (key made at start) until the user changes or some minutes have passed, so a call costs a hash of some hundred
 * nanoseconds. Wrong ones are counted by address, and by address and user; who fails too often waits, also with the right password. Comparisons take
 * the same time whatever the input, an unknown user costs as much as a known one, and no secret is logged. */
#ifndef SL_SERVER_AUTH_H
#define SL_SERVER_AUTH_H

#include "base/arena.h"
#include "server/host.h"
#include "server/identity.h"

enum {
    SL_LOGIN_NAME_BYTES_MAX = 64,
    SL_PASSWORD_BYTES_MAX = 1024,
    SL_USERS_MAX = 10 * 1000,
    SL_USER_GROUPS_MAX = 64,
    SL_FULL_NAME_BYTES_MAX = 256,
};

/* For host.c. Starts the helper thread; reading the users begins with the first turn. */
sl_err sl_auth_new(sl_host *host, sl_auth **ret_auth);
void sl_auth_free(sl_auth *auth);
/* For host.c, in each turn: answers of the helper thread, what was written to $user- streams. */
void sl_auth_turn(sl_auth *auth);
/* All users are read. */
bool sl_auth_ready(const sl_auth *auth);
/* Nothing is checked for anybody: --insecure, or no users and only this machine can ask. False until that is known. */
bool sl_auth_trusts_everybody(const sl_auth *auth);
/* 0: nobody is asked for a password when only this machine can reach the server; else nobody is let in. */
size_t sl_auth_user_count(const sl_auth *auth);
/* Every name that is known here, also of users that are being looked at or were deleted a moment ago. */
void sl_auth_each_name(const sl_auth *auth, void (*fn)(void *ctx, sl_str name), void *ctx);

/* The end of a server, which must not wait for one hash: from stop on the helper thread begins no other, and is busy as long as it
 * has one. With leave, when all connections are gone, sl_auth_free() will not wait for it. */
void sl_auth_stop(sl_auth *auth);
bool sl_auth_is_busy(const sl_auth *auth);
void sl_auth_leave_helper(sl_auth *auth);

typedef enum sl_auth_verdict {
    SL_AUTH_OK,
    SL_AUTH_REFUSED,   /* UNAUTHENTICATED */
    SL_AUTH_TOO_OFTEN, /* UNAUTHENTICATED as well, with another text: wait */
    SL_AUTH_NOT_READY, /* UNAVAILABLE */
} sl_auth_verdict;

/* identity: texts are good during the call; copy them with sl_identity_copy(). */
typedef void sl_auth_fn(void *ctx, sl_auth_verdict verdict, const sl_identity *identity);

/* header: the value of "authorization", empty when there is none (then it is nobody, and that is OK: whether nobody may do
 * something is asked later). fn comes once, before this returns or later; not after sl_auth_cancel(). */
void sl_auth_check(sl_auth *auth, sl_str header, sl_str peer, sl_auth_ticket *ticket, sl_auth_fn *fn,
                   void *ctx);
void sl_auth_cancel(sl_auth *auth, sl_auth_ticket *ticket);

/* SL_OK or SL_ERR_NOMEM. */
sl_err sl_identity_copy(const sl_identity *from, sl_arena *arena, sl_identity *ret_copy);

#endif
