/* server/users.h — all users, in memory: what is known from the last event of each $user-NAME.
 *
 * An entry is there for each user that exists, and for a short time for names that are being looked at or created.
 * It carries the revision of the event that it comes from, so that whoever learns of a change, by whatever way,
 * can apply it in any order: only a newer one counts. Each change gives the user a new generation; what was
 * remembered about the old one is void.
 *
 * What cannot be understood or read is damaged, not gone: such a user cannot log in, but the server is not open
 * either. */
#ifndef SL_SERVER_USERS_H
#define SL_SERVER_USERS_H

#include "base/alloc.h"
#include "base/list.h"
#include "base/map.h"
#include "server/identity.h"
#include "server/tail.h"
#include "server/user_record.h"
#include "store/store.h"

typedef enum sl_user_state {
    SL_USER_UNKNOWN, /* nothing was read yet, or it is being created */
    SL_USER_THERE,
    SL_USER_DAMAGED,
    SL_USER_GONE, /* deleted */
} sl_user_state;

typedef struct sl_user {
    sl_map_node by_name;
    sl_list all;   /* users->all */
    sl_str stream; /* "$user-NAME", behind the struct */
    sl_str name;   /* its end */
    sl_user_state state;
    sl_user_record record; /* THERE; its texts are in the arena */
    sl_arena arena;
    uint64_t revision;   /* of the event that says so; SL_REVISION_NONE: none */
    uint64_t updated_ns; /* when it was written */
    uint64_t generation; /* another one after each change, of any user */
    uint32_t pins;       /* somebody holds a pointer: it stays in memory */
    /* A change was submitted and is not decided. Another one of the same user is refused meanwhile. */
    bool changing;
    bool stays_admin; /* after that change */
    /* For server/user_loader.h */
    sl_list stale;
    /* For server/auth.c */
    sl_reader_node watch;
    void *watcher;
} sl_user;

typedef struct sl_users {
    const sl_alloc *alloc;
    sl_hash_seed seed;
    sl_map map;
    size_t table_length;
    sl_list all;
    size_t count; /* THERE and DAMAGED */
    uint64_t generation;
    /* A user came to be there; one who could log in has changed, and keeps the password and may still log in, or not; an
     * entry goes. Each may be NULL. */
    void (*on_there)(void *ctx, sl_user *user);
    void (*on_change)(void *ctx, const sl_user *user, bool keeps_credentials);
    void (*on_drop)(void *ctx, sl_user *user);
    void *ctx;
} sl_users;

/* SL_OK or SL_ERR_NOMEM. Hooks are set by the caller afterwards. */
sl_err sl_users_init(sl_users *users, const sl_alloc *alloc, sl_hash_seed seed);

/* Also right for one that is all zero. Nothing may be pinned. */
void sl_users_done(sl_users *users);

/* NULL when there is no entry; one that is found may be in any state. */
sl_user *sl_users_find(const sl_users *users, sl_str name);

/* The same, but only a user that exists. */
sl_user *sl_users_find_there(const sl_users *users, sl_str name);

/* The entry of that name, made if it is not there; pinned. The name must be allowed. NULL: no memory. */
sl_user *sl_users_enter(sl_users *users, sl_str name);

void sl_user_pin(sl_user *user);

/* The entry goes with the last pin, unless the user is there or damaged. */
void sl_users_unpin(sl_users *users, sl_user *user);

/* What an event says. */
typedef struct sl_user_news {
    sl_user_state state;          /* THERE, DAMAGED or GONE */
    const sl_user_record *record; /* THERE; copied */
    uint64_t revision, created_ns;
} sl_user_news;

/* Older news than what is known change nothing. The user must be pinned.
 *   SL_OK
 *   SL_ERR_NOMEM   it is as it was */
sl_err sl_users_apply(sl_users *users, sl_user *user, const sl_user_news *news);

/* Who it is for those who ask; its texts are the user's, good until the next change. */
sl_identity sl_user_identity(const sl_user *user);

/* Administrators that can log in, and will when everything that was submitted is written; `without` may be NULL. */
size_t sl_users_admin_count(const sl_users *users, const sl_user *without);

/* All that are there or damaged, by name; users->count pointers into memory of the caller. */
void sl_users_sorted(const sl_users *users, const sl_user **sorted);

#endif
