/* server/user_change.h — the rules by which users change, and the batch that makes a change last.
 *
 *      check() --> make() --> submit plan.batch --> end()
 *
 * One implementation for the service, which does this in several turns, and for commands on a data folder. A
 * change is checked twice, before its password is hashed and again when the batch is made, since others may have
 * come first. Between make() and end() the user is marked as changing, so that two changes that are each allowed
 * cannot together remove the last administrator; that nobody else has written meanwhile is seen to by the store,
 * which is told the expected revision. */
#ifndef SL_SERVER_USER_CHANGE_H
#define SL_SERVER_USER_CHANGE_H

#include "server/users.h"

typedef enum sl_user_change_kind {
    SL_USER_CREATE,
    SL_USER_UPDATE, /* full name and groups; the hash if there is one */
    SL_USER_DELETE,
    SL_USER_DISABLE,
    SL_USER_ENABLE,
    SL_USER_SET_PASSWORD,
} sl_user_change_kind;

typedef struct sl_user_change {
    sl_user_change_kind kind;
    sl_str login_name;
    sl_str full_name; /* this and the groups: CREATE and UPDATE */
    const sl_str *groups;
    size_t group_count;
    sl_str hash; /* CREATE, SET_PASSWORD, and perhaps UPDATE; not looked at by check() */
} sl_user_change;

typedef enum sl_user_verdict {
    SL_USER_CHANGE_ALLOWED,
    SL_USER_CHANGE_INVALID,   /* a text that is not allowed */
    SL_USER_CHANGE_NOT_FOUND, /* no such user */
    SL_USER_CHANGE_EXISTS,
    SL_USER_CHANGE_BUSY,       /* it is being changed, or looked at for the first time: try again */
    SL_USER_CHANGE_FULL,       /* SL_USERS_MAX */
    SL_USER_CHANGE_NO_ADMIN,   /* nobody would be left, or there, who may administrate */
    SL_USER_CHANGE_IS_DAMAGED, /* it can only be deleted */
} sl_user_verdict;

/* problem: gets a sentence on everything but ALLOWED. */
sl_user_verdict sl_user_change_check(const sl_users *users, const sl_user_change *change, sl_text *problem);

typedef struct sl_user_plan { /* must stay where it is from make() to end() */
    sl_users *users;
    sl_user *user; /* pinned */
    bool deletes;
    sl_user_record record; /* what it will be */
    uint64_t now_ns;
    sl_event_in events[2];
    sl_op ops[2];
    sl_batch batch; /* op 0 is that of $user-NAME: if it fails, somebody was faster */
} sl_user_plan;

/* For a change that is ALLOWED at this moment. now_ns: wall clock. What the batch points to is in the arena. SL_OK
 * or SL_ERR_NOMEM. */
sl_err sl_user_plan_make(sl_user_plan *plan, sl_users *users, const sl_store *store,
                         const sl_user_change *change, sl_arena *arena, uint64_t now_ns);

/* What became of it; NULL: it was not submitted. After SL_OK everybody in this process sees the change; without
 * memory for that it gives SL_ERR_NOMEM, and the user has to be read again (server/user_loader.h). Else the error
 * of the commit. */
sl_err sl_user_plan_end(sl_user_plan *plan, const sl_commit *commit);

#endif
