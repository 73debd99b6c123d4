/* tests/unit/server/auth_rig.h — what the tests of log-ins, access and users share: users with cheap hashes,
 * headers, answers. */
#ifndef SL_TESTS_UNIT_SERVER_AUTH_RIG_H
#define SL_TESTS_UNIT_SERVER_AUTH_RIG_H

#include "rig.h"

#include "server/access.h"
#include "server/auth.h"

/* An event past all services, waited for. */
void auth_rig_append(sl_store *store, const char *stream, const char *type, const char *data);

/* The JSON of a user; groups as in JSON: "\"$ops\",\"x\"". The hash is the cheapest there is: eight times faster
 * than a real one. */
const char *auth_rig_record(const char *name, const char *password, const char *groups, bool disabled);

/* A user as `sluice user add` would leave it. */
void auth_rig_user(sl_store *store, const char *name, const char *password, const char *groups);

/* The value of an "authorization" header; good until the next call of this. */
const char *auth_rig_basic(const char *name, const char *password);

/* What sl_auth_check() has said. */
typedef struct auth_seen {
    unsigned calls;
    bool done;
    sl_auth_verdict verdict;
    char name[SL_LOGIN_NAME_BYTES_MAX + 1];
    size_t group_count;
    bool is_admin, is_operator, is_trusted;
    sl_auth_ticket ticket;
} auth_seen;

void auth_rig_ask(server_rig *rig, const char *header, const char *peer, auth_seen *seen);
/* ... and waits for the answer. */
auth_seen auth_rig_check(server_rig *rig, const char *header, const char *peer);

/* A rig on a memory store with the administrator "root", password "root-secret". */
void auth_rig_start(server_rig *rig);
void auth_rig_done(server_rig *rig);

#endif
