/* server/user_admin.h — users without a server: for `sluice user --data DIR`, on a store that nobody else has open.
 *
 * The same rules and the same events as the service (server/user_change.h, server/user_record.h). Every function
 * reads all users first and waits for the disk; a password costs the time of one Argon2id hash. The store stays
 * the caller's.
 *
 * Errors of all functions; `problem` then has a sentence on what is wrong and what to do:
 *   SL_ERR_INVALID      a name, group or password that is not allowed, or a change that would leave no administrator
 *   SL_ERR_NOT_FOUND    no such user
 *   SL_ERR_EXISTS       add: there is one with that name
 *   SL_ERR_FULL         add: SL_USERS_MAX are there
 *   SL_ERR_NO_SPACE, SL_ERR_STORE_FAILED, SL_ERR_CORRUPT, SL_ERR_IO, SL_ERR_NOMEM   the store, or the machine */
#ifndef SL_SERVER_USER_ADMIN_H
#define SL_SERVER_USER_ADMIN_H

#include "base/str.h"
#include "store/store.h"

/* Must be in the group "$admins" as long as nobody else is: somebody has to administrate. */
sl_err sl_user_admin_add(sl_store *store, sl_str name, sl_str full_name, const sl_str *groups,
                         size_t group_count, sl_str password, uint64_t now_ns, sl_text *problem);

sl_err sl_user_admin_set_password(sl_store *store, sl_str name, sl_str password, uint64_t now_ns,
                                  sl_text *problem);

/* The last administrator cannot be removed. */
sl_err sl_user_admin_remove(sl_store *store, sl_str name, uint64_t now_ns, sl_text *problem);

typedef struct sl_user_admin_entry { /* texts are good during the call */
    sl_str name, full_name;
    const sl_str *groups;
    size_t group_count;
    uint64_t updated_ns; /* wall clock */
    bool disabled;
    bool
        damaged; /* what is stored about this user cannot be understood: it cannot log in, remove and add it */
} sl_user_admin_entry;

typedef void sl_user_admin_fn(void *ctx, const sl_user_admin_entry *entry);

/* All users, by name. */
sl_err sl_user_admin_list(sl_store *store, sl_user_admin_fn *fn, void *ctx, sl_text *problem);

#endif
