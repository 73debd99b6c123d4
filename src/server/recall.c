/* server/recall.c — see recall.h.
 *
 * A call that ends does so as when the server stops: what it has accepted is answered first, nothing more is taken, and
 * unary calls finish what they do. Only the status is another one (server/reply.c looks at the identity). */
#include "server/recall.h"

#include "server/auth.h"
#include "server/dispatch.h"
#include "server/request.h"

/* --- ending --- */

/* One that is not told by its method, a unary call, may still have to ask for rights; it gets none. */
static void revoke(sl_request *request)
{
    request->identity.is_revoked = true;
    sl_dispatch_stop(request);
}

static void revoke_trusted(void *ctx, sl_request *request)
{
    (void)ctx;
    if (request->identity.is_trusted)
        revoke(request);
}

void sl_recall_trusted(sl_host *host)
{
    sl_host_each_request(host, revoke_trusted, NULL);
}

/* --- other groups --- */

struct sl_recall_room {
    sl_str groups[SL_USER_GROUPS_MAX];
    char texts[SL_USER_GROUPS_MAX * SL_USER_GROUP_BYTES_MAX];
};

typedef struct change {
    const sl_user *user;
    sl_identity now;
    bool keeps_credentials;
} change;

static bool same_groups(const sl_identity *a, const sl_identity *b)
{
    if (a->group_count != b->group_count)
        return false;
    for (size_t i = 0; i < a->group_count; i++)
        if (!sl_str_equal(a->groups[i], b->groups[i]))
            return false;
    return true;
}

/* The memory of a call goes with the call, so a user whose groups change every minute would make it grow. The first change takes
 * room for all groups that a user can have, and later ones use it again. */
static sl_recall_room *room_of(sl_request *request)
{
    if (request->groups == NULL)
        request->groups = sl_arena_alloc(&request->arena, sizeof *request->groups);
    return request->groups;
}

/* Without memory the call ends: it must not go on with rights that its user has lost. */
static void take_groups(sl_request *request, const sl_identity *now)
{
    sl_recall_room *const room = room_of(request);
    char *at;

    if (room == NULL) {
        revoke(request);
        return;
    }
    at = room->texts;
    for (size_t i = 0; i < now->group_count; i++) {
        const sl_str group = now->groups[i];

        memcpy(at, group.data, group.bytes);
        room->groups[i] = (sl_str){ at, group.bytes };
        at += group.bytes;
    }
    request->identity.groups = room->groups;
    request->identity.group_count = now->group_count;
    request->identity.is_admin = now->is_admin;
    request->identity.is_operator = now->is_operator;
}

static void tell(void *ctx, sl_request *request)
{
    const change *const c = ctx;
    const sl_identity *const identity = &request->identity;

    if (identity->is_trusted || identity->name.bytes == 0 || !sl_str_equal(identity->name, c->user->name))
        return;
    if (!c->keeps_credentials)
        revoke(request);
    else if (!same_groups(identity, &c->now))
        take_groups(request, &c->now);
}

void sl_recall_user(sl_host *host, const sl_user *user, bool keeps_credentials)
{
    change c = { .user = user, .keeps_credentials = keeps_credentials };

    if (keeps_credentials)
        c.now = sl_user_identity(user);
    sl_host_each_request(host, tell, &c);
}
