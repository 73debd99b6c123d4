/* server/acl.h — lists of who may: the `$acl` of stream metadata, the defaults in `$settings`, and the decision
 * between them.
 *
 *      {"$acl": {"$r": ["alice", "$ops"], "$w": "$admins", "$mw": []}}
 *
 * Each of the five rights stands for itself: one that a list does not name falls to the next list, and at the end
 * to what is built in (ordinary streams: everybody; those that begin with $: administrators). A name is that of a
 * user or a group, or $all. Pure: no store, no clock. */
#ifndef SL_SERVER_ACL_H
#define SL_SERVER_ACL_H

#include "base/alloc.h"
#include "base/str.h"
#include "server/identity.h"

typedef enum sl_right {
    SL_RIGHT_READ,
    SL_RIGHT_WRITE,
    SL_RIGHT_DELETE,
    SL_RIGHT_META_READ,
    SL_RIGHT_META_WRITE,
    SL_RIGHT_COUNT_
} sl_right;

typedef struct sl_acl_names {
    bool given;          /* false: the right is not named, ask the next list */
    const sl_str *names; /* none: nobody but administrators */
    size_t count;
} sl_acl_names;

typedef struct sl_acl { /* one block of memory with everything it points to */
    size_t bytes;
    sl_acl_names rights[SL_RIGHT_COUNT_];
} sl_acl;

/* The object that `json` has as its member `name`. Peers write this: a right that is neither a text nor an array
 * is given to nobody, because its author wanted to restrict something; what is no text in an array is skipped;
 * null is as if not there.
 *   SL_OK          *ret_acl, to be freed
 *   SL_ERR_EMPTY   no JSON object, or it has no such object
 *   SL_ERR_NOMEM */
sl_err sl_acl_parse(sl_str json, const char *name, const sl_alloc *alloc, sl_acl **ret_acl);

/* NULL is allowed. */
void sl_acl_free(const sl_alloc *alloc, sl_acl *acl);

typedef struct sl_acl_question {
    const sl_identity *identity;
    sl_right right;
    bool is_system;       /* the stream begins with $ */
    bool admit_anonymous; /* $all means callers without a name too */
} sl_acl_question;

/* Administrators and those who are trusted may everything. Both lists may be NULL. */
bool sl_acl_allows(const sl_acl_question *question, const sl_acl *own, const sl_acl *defaults);

/* Does the list decide this question, so that no other has to be looked at? */
static inline bool sl_acl_decides(const sl_acl *acl, sl_right right)
{
    return acl != NULL && acl->rights[right].given;
}

#endif
