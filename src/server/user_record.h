/* server/user_record.h — one user as it is stored: the JSON in the events of $user-NAME.
 *
 *      {"loginName":"ada","fullName":"Ada L.","groups":["$admins"],"hash":"$argon2id$v=19$...","disabled":false}
 *
 *      stream       type               data
 *      $users       $User              the name, as plain text; once for each creation
 *      $user-NAME   $UserCreated       the whole user, as above
 *                   $UserUpdated       the whole user
 *                   $PasswordChanged   the whole user
 *                   $UserDeleted       the whole user but for the hash
 *
 * The last event counts and says everything, so finding a user is reading one event. */
#ifndef SL_SERVER_USER_RECORD_H
#define SL_SERVER_USER_RECORD_H

#include "base/arena.h"
#include "base/str.h"

#define SL_USERS_STREAM            "$users"
#define SL_USER_STREAM_PREFIX      "$user-"
#define SL_USER_EVENT_LISTED       "$User"
#define SL_USER_EVENT_CREATED      "$UserCreated"
#define SL_USER_EVENT_UPDATED      "$UserUpdated"
#define SL_USER_EVENT_NEW_PASSWORD "$PasswordChanged"
#define SL_USER_EVENT_DELETED      "$UserDeleted"

#define SL_GROUP_ADMINS    "$admins"
#define SL_GROUP_OPERATORS "$ops"

enum {
    SL_USER_GROUP_BYTES_MAX = 64,
    SL_USER_RECORD_BYTES_MAX = 64 * 1024, /* of the JSON, with every character escaped */
};

typedef struct sl_user_record {
    sl_str login_name, full_name, hash;
    const sl_str *groups;
    size_t group_count;
    bool disabled;
} sl_user_record;

bool sl_user_record_has_group(const sl_user_record *record, sl_str group);

/* An administrator who can log in. */
bool sl_user_record_is_admin(const sl_user_record *record);

/* JSON in the arena. The texts must be UTF-8 without zero bytes. SL_OK or SL_ERR_NOMEM. */
sl_err sl_user_record_encode(const sl_user_record *record, sl_arena *arena, sl_str *ret_json);

/* Texts in the arena. Somebody may have written it by hand: every text must obey the rules for new users
 * (below), and the hash must be one that can be checked.
 *   SL_OK
 *   SL_ERR_INVALID
 *   SL_ERR_NOMEM */
sl_err sl_user_record_decode(sl_str json, sl_arena *arena, sl_user_record *ret_record);

/* All of it in the arena. SL_OK or SL_ERR_NOMEM. */
sl_err sl_user_record_copy(const sl_user_record *from, sl_arena *arena, sl_user_record *ret_copy);

/* --- what texts are allowed; the sentence in `problem`, which may be NULL, says what is wrong. SL_OK or
 * SL_ERR_INVALID --- */

/* Not empty, not longer than SL_LOGIN_NAME_BYTES_MAX; UTF-8 without control characters; no colon, which "Basic"
 * cannot carry; no slash, since names become parts of paths; no blank at the ends; not beginning with $, or a user
 * could be called like a group. */
sl_err sl_user_check_name(sl_str name, sl_text *problem);

sl_err sl_user_check_full_name(sl_str full_name, sl_text *problem);
sl_err sl_user_check_groups(const sl_str *groups, size_t group_count, sl_text *problem);

/* At least 8 bytes: what can be guessed online at ten tries a second in years, not in an afternoon. More is not
 * asked for, because rules on characters make people choose worse ones. */
sl_err sl_user_check_password(sl_str password, sl_text *problem);

#endif
