/* server/user_change.c — what is allowed, and which events say it. */
#include "server/user_change.h"

#include "server/auth.h"

#include <assert.h>
#include <sodium.h>

/* --- what is allowed --- */

static sl_user_verdict refuse(sl_text *problem, sl_user_verdict verdict, const char *sentence)
{
    sl_text_add(problem, sentence);
    return verdict;
}

static bool sets_texts(const sl_user_change *change)
{
    return change->kind == SL_USER_CREATE || change->kind == SL_USER_UPDATE;
}

static sl_user_verdict check_texts(const sl_user_change *change, sl_text *problem)
{
    if (sl_user_check_name(change->login_name, problem) != SL_OK)
        return SL_USER_CHANGE_INVALID;
    if (!sets_texts(change))
        return SL_USER_CHANGE_ALLOWED;
    if (sl_user_check_full_name(change->full_name, problem) != SL_OK ||
        sl_user_check_groups(change->groups, change->group_count, problem) != SL_OK)
        return SL_USER_CHANGE_INVALID;
    return SL_USER_CHANGE_ALLOWED;
}

/* What the user will be; the texts belong to the change and to the user. */
static sl_user_record outcome_of(const sl_user_change *change, const sl_user *user)
{
    sl_user_record record = { .login_name = change->login_name };

    if (user != NULL && user->state == SL_USER_THERE)
        record = user->record;
    if (sets_texts(change)) {
        record.full_name = change->full_name;
        record.groups = change->groups;
        record.group_count = change->group_count;
    }
    if (change->kind == SL_USER_DELETE)
        record.hash = SL_STR("");
    else if (change->hash.bytes > 0)
        record.hash = change->hash;
    if (change->kind == SL_USER_DISABLE || change->kind == SL_USER_ENABLE)
        record.disabled = change->kind == SL_USER_DISABLE;
    return record;
}

static sl_user_verdict check_create(const sl_users *users, const sl_user_change *change, sl_text *problem)
{
    const sl_user *const user = sl_users_find(users, change->login_name);
    const sl_user_record record = outcome_of(change, NULL);

    if (user != NULL && (user->state == SL_USER_THERE || user->state == SL_USER_DAMAGED))
        return refuse(problem, SL_USER_CHANGE_EXISTS, "There is a user with that login name.");
    if (user != NULL && (user->changing || user->state == SL_USER_UNKNOWN))
        return refuse(problem, SL_USER_CHANGE_BUSY, "A user with that login name is being created.");
    if (users->count >= SL_USERS_MAX)
        return refuse(problem, SL_USER_CHANGE_FULL,
                      "There are 10000 users, which is the limit. Delete one that is not needed.");
    if (!sl_user_record_is_admin(&record) && sl_users_admin_count(users, NULL) == 0)
        return refuse(
            problem, SL_USER_CHANGE_NO_ADMIN,
            "The first user must be in the group $admins, or nobody could administrate this server.");
    return SL_USER_CHANGE_ALLOWED;
}

/* Only a change that takes an administrator away can leave none. */
static sl_user_verdict check_admins(const sl_users *users, const sl_user_change *change, const sl_user *user,
                                    sl_text *problem)
{
    const sl_user_record after = outcome_of(change, user);
    const bool is_admin = user->state == SL_USER_THERE && sl_user_record_is_admin(&user->record);
    const bool stays_admin = change->kind != SL_USER_DELETE && sl_user_record_is_admin(&after);

    if (is_admin && !stays_admin && sl_users_admin_count(users, user) == 0)
        return refuse(
            problem, SL_USER_CHANGE_NO_ADMIN,
            "This is the last administrator who can log in: without him nobody could administrate this "
            "server. Make another user an administrator first.");
    return SL_USER_CHANGE_ALLOWED;
}

sl_user_verdict sl_user_change_check(const sl_users *users, const sl_user_change *change, sl_text *problem)
{
    const sl_user_verdict texts = check_texts(change, problem);
    const sl_user *user;

    if (texts != SL_USER_CHANGE_ALLOWED)
        return texts;
    if (change->kind == SL_USER_CREATE)
        return check_create(users, change, problem);
    user = sl_users_find_there(users, change->login_name);
    if (user == NULL)
        return refuse(problem, SL_USER_CHANGE_NOT_FOUND, "There is no user with that login name.");
    if (user->changing)
        return refuse(problem, SL_USER_CHANGE_BUSY, "This user is being changed by somebody else.");
    if (user->state == SL_USER_DAMAGED && change->kind != SL_USER_DELETE)
        return refuse(
            problem, SL_USER_CHANGE_IS_DAMAGED,
            "What is stored about this user cannot be understood. Delete the user and create it anew.");
    return check_admins(users, change, user, problem);
}

/* --- the batch --- */

static sl_str event_type_of(sl_user_change_kind kind)
{
    switch (kind) {
    case SL_USER_CREATE: return SL_STR(SL_USER_EVENT_CREATED);
    case SL_USER_DELETE: return SL_STR(SL_USER_EVENT_DELETED);
    case SL_USER_SET_PASSWORD: return SL_STR(SL_USER_EVENT_NEW_PASSWORD);
    case SL_USER_UPDATE:
    case SL_USER_DISABLE:
    case SL_USER_ENABLE: break;
    }
    return SL_STR(SL_USER_EVENT_UPDATED);
}

static sl_event_in event_of(sl_str type, sl_str data, bool is_json, uint64_t now_ns)
{
    uint8_t random[16];

    randombytes_buf(random, sizeof random);
    return (sl_event_in){
        .id = sl_uuid_v4(random), .type = type, .data = data, .is_json = is_json, .created_ns = now_ns
    };
}

/* A name that was used before goes on where its stream ended. */
static sl_expected expected_of(const sl_store *store, const sl_user *user)
{
    sl_stream_info info;

    if (user->state == SL_USER_THERE || user->state == SL_USER_DAMAGED)
        return (sl_expected){ .kind = SL_EXPECT_EXACT, .revision = user->revision };
    sl_store_stream(store, user->stream, &info);
    if (info.revision == SL_REVISION_NONE)
        return (sl_expected){ .kind = SL_EXPECT_NO_STREAM };
    return (sl_expected){ .kind = SL_EXPECT_EXACT, .revision = info.revision };
}

static void fill_batch(sl_user_plan *plan, sl_expected expected, bool lists_name)
{
    plan->ops[0] = (sl_op){ .kind = SL_OP_APPEND,
                            .append = { .stream = plan->user->stream,
                                        .expected = expected,
                                        .events = &plan->events[0],
                                        .event_count = 1 } };
    plan->ops[1] = (sl_op){
        .kind = SL_OP_APPEND,
        .append = { .stream = SL_STR(SL_USERS_STREAM), .events = &plan->events[1], .event_count = 1 }
    };
    plan->batch = (sl_batch){ .ops = plan->ops, .op_count = lists_name ? 2 : 1 };
}

sl_err sl_user_plan_make(sl_user_plan *plan, sl_users *users, const sl_store *store,
                         const sl_user_change *change, sl_arena *arena, uint64_t now_ns)
{
    sl_user *const user = sl_users_enter(users, change->login_name);
    sl_user_record outcome;
    sl_str json;
    sl_err err;

    if (user == NULL)
        return SL_ERR_NOMEM;
    assert(!user->changing);
    *plan = (sl_user_plan){ .users = users, .user = user, .now_ns = now_ns };
    plan->deletes = change->kind == SL_USER_DELETE;
    outcome = outcome_of(change, user);
    err = sl_user_record_copy(&outcome, arena, &plan->record);
    if (err == SL_OK)
        err = sl_user_record_encode(&plan->record, arena, &json);
    if (err != SL_OK) {
        sl_users_unpin(users, user);
        return err;
    }
    plan->events[0] = event_of(event_type_of(change->kind), json, true, now_ns);
    plan->events[1] = event_of(SL_STR(SL_USER_EVENT_LISTED), user->name, false, now_ns);
    fill_batch(plan, expected_of(store, user), change->kind == SL_USER_CREATE);
    user->changing = true;
    user->stays_admin = !plan->deletes && sl_user_record_is_admin(&plan->record);
    return SL_OK;
}

sl_err sl_user_plan_end(sl_user_plan *plan, const sl_commit *commit)
{
    sl_user_news news = { .state = plan->deletes ? SL_USER_GONE : SL_USER_THERE,
                          .record = &plan->record,
                          .created_ns = plan->now_ns };
    sl_err err = commit == NULL ? SL_OK : commit->err;

    plan->user->changing = false;
    if (commit != NULL && err == SL_OK) {
        news.revision = commit->results[0].revision;
        err = sl_users_apply(plan->users, plan->user, &news);
    }
    sl_users_unpin(plan->users, plan->user);
    return err;
}
