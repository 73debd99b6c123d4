/* server/groups/operators_names.c — see operators.h: finding by name who was there before the server was started again.
 *
 * Leases outlive the process, and with them the session of their holder; its name does not. But a session is made of a user and a name,
 * so for a name that somebody asks for, the sessions of it under every user are made and looked for: the other way round is
 * impossible, and this one takes about a millisecond with ten thousand users. It is done only while there are such holders. */
#include "server/groups/operators_private.h"

#include "server/auth.h"
#include "server/groups/names.h"

#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    sl_uuid session;
    sl_str user;
} candidate;

typedef struct search {
    sl_str name;
    candidate *candidates; /* by session; NULL: they are only counted */
    size_t count;
} search;

/* --- is there anybody to find? --- */

static void note_one(void *ctx, sl_card *card)
{
    (void)card;
    *(bool *)ctx = true;
}

static void note_desk(void *ctx, sl_desk *desk)
{
    if (!*(bool *)ctx)
        sl_desk_unnamed_cards(desk, note_one, ctx);
}

static bool has_unnamed(const sl_host *host)
{
    bool has = false;

    sl_registry_each(host->registry, SL_STR(""), note_desk, &has);
    return has;
}

/* --- the sessions --- */

static void add_user(void *ctx, sl_str user)
{
    search *const s = ctx;

    if (s->candidates != NULL)
        s->candidates[s->count] = (candidate){ .session = sl_session_of(user, s->name), .user = user };
    s->count++;
}

static void add_everybody(const sl_host *host, search *s)
{
    s->count = 0;
    add_user(s, SL_STR("")); /* who gave no credentials */
    sl_auth_each_name(host->auth, add_user, s);
}

static int by_session(const void *a, const void *b)
{
    const candidate *const left = a, *const right = b;

    return memcmp(left->session.bytes, right->session.bytes, sizeof left->session.bytes);
}

static void try_card(void *ctx, sl_card *card)
{
    const search *const s = ctx;
    const candidate wanted = { .session = card->session };
    const candidate *const found =
        bsearch(&wanted, s->candidates, s->count, sizeof *s->candidates, by_session);

    if (found != NULL)
        sl_card_learn(card, s->name, found->user);
}

static void try_desk(void *ctx, sl_desk *desk)
{
    sl_desk_unnamed_cards(desk, try_card, ctx);
}

sl_err operators_recognise(sl_host *host, sl_str name)
{
    search s = { .name = sl_consumer_name_of(name) };
    size_t bytes;

    if (name.bytes == 0 || !has_unnamed(host))
        return SL_OK;
    if (!sl_auth_ready(host->auth))
        return SL_ERR_AGAIN;
    add_everybody(host, &s);
    bytes = s.count * sizeof *s.candidates;
    s.candidates = sl_alloc_take(host->alloc, bytes);
    if (s.candidates == NULL)
        return SL_ERR_NOMEM;
    add_everybody(host, &s);
    qsort(s.candidates, s.count, sizeof *s.candidates, by_session);
    sl_registry_each(host->registry, SL_STR(""), try_desk, &s);
    sl_alloc_give(host->alloc, s.candidates, bytes);
    return SL_OK;
}

bool operators_is_idle_away(const sl_consumer_info *info)
{
    return info->state == SL_CONSUMER_AWAY && info->in_flight == 0;
}

bool operators_is_ghost(const sl_card *card, const sl_consumer_info *info)
{
    return card->is_of_earlier_life && operators_is_idle_away(info);
}
