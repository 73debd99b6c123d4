/* cli/user_draft.h — what a command about users wants, and the two ways to do it: by a running server, or in a data folder
 * that no server has open. */
#ifndef SL_CLI_USER_DRAFT_H
#define SL_CLI_USER_DRAFT_H

#include "base/str.h"
#include "cli/client_session.h"
#include "cli/password.h"
#include "server/auth.h"

#include <stdio.h>

typedef enum sl_user_verb {
    SL_USER_VERB_ADD,
    SL_USER_VERB_PASSWD,
    SL_USER_VERB_LIST,
    SL_USER_VERB_REMOVE,
} sl_user_verb;

typedef struct sl_user_draft {
    sl_user_verb verb;
    sl_str name, full_name;
    sl_str groups[SL_USER_GROUPS_MAX];
    size_t group_count;
    sl_password password; /* of the user that is added or changed */
} sl_user_draft;

/* A user as it is shown. */
typedef struct sl_user_shown {
    sl_str name, full_name;
    const sl_str *groups;
    size_t group_count;
    uint64_t updated_ns; /* wall clock */
    bool disabled, damaged;
} sl_user_shown;

/* The list of users, kept until it is complete: half of it would be no answer, and no JSON. */
typedef struct sl_user_list {
    FILE *out; /* writes to `text` */
    char *text;
    size_t bytes;
    bool json;
    uint64_t count;
} sl_user_list;

/* One more of them. */
void sl_user_show(sl_user_list *list, const sl_user_shown *user);

/* An exit code; everything but the answer is said. */
int sl_user_online(const sl_invocation *invocation, sl_user_draft *draft, sl_user_list *list);
int sl_user_offline(const sl_invocation *invocation, sl_user_draft *draft, sl_user_list *list);

/* Asks for the password of the user in the draft. */
int sl_user_ask_password(const sl_invocation *invocation, sl_user_draft *draft);

#endif
