/* server/user_loader.h — from events to users: at the start all of them, later those that changed.
 *
 *      $users, forwards, a page at a time --> names --> of each the last event of $user-NAME --> sl_users_apply()
 *
 * It works in bounded steps and never waits: a server takes a step in a turn, a command takes one after the other.
 * The names of a page are resolved before the next page is read, so names of users that were deleted long ago need
 * no memory. */
#ifndef SL_SERVER_USER_LOADER_H
#define SL_SERVER_USER_LOADER_H

#include "base/clock.h"
#include "server/users.h"

enum {
    SL_USER_LOADER_PAGE = 64
};

typedef struct sl_user_loader {
    sl_store *store;
    sl_users *users;
    sl_list stale;       /* sl_user.stale: to be read; each is pinned */
    sl_cursor *names;    /* over $users, while there may be more */
    uint64_t names_next; /* revision of the first event that was not read */
    sl_cursor *last;     /* over the stream of the first stale user */
    bool names_lost;     /* $users was deleted: nobody knows who should be there */
    sl_err name_err;     /* a user could not be read: why, for the log; SL_OK: all could */
    sl_str damaged_name; /* ... and who; good until the next step */
} sl_user_loader;

void sl_user_loader_init(sl_user_loader *loader, sl_store *store, sl_users *users);
void sl_user_loader_done(sl_user_loader *loader);

/* The last event of this user is to be read again. */
void sl_user_loader_touch(sl_user_loader *loader, sl_user *user);

/* Up to work_max events. now_ns: wall clock.
 *   SL_OK           everything is known
 *   SL_ERR_FULL     there is more to do: call again when others had their turn
 *   SL_ERR_AGAIN    the disk is asked: call again after sl_store_poll()
 *   SL_ERR_NOMEM, SL_ERR_IO, SL_ERR_CORRUPT, SL_ERR_STORE_FAILED   call again later: it goes on where it was */
sl_err sl_user_loader_step(sl_user_loader *loader, uint32_t work_max, uint64_t now_ns);

#endif
