/* server/groups/definition.h — what a persistent subscription is, apart from what became of its messages.
 *
 * The definition is one text (JSON) in the store, written by Create and Update, read at start. What clients see of settings (GetInfo)
 * is here as they gave it; what the core needs of them is derived, in one place. */
#ifndef SL_SERVER_GROUPS_DEFINITION_H
#define SL_SERVER_GROUPS_DEFINITION_H

#include "base/arena.h"
#include "core/settings.h"
#include "store/filter.h"
#include "wire/persistent_control.h"

enum {
    SL_GROUP_NAME_BYTES_MAX = 512,
    SL_GROUP_KEY_BYTES_MAX = 1024, /* "STREAM::GROUP", as part of a stream name */
};

typedef struct sl_group_definition {
    bool of_all;   /* $all and not one stream */
    sl_str stream; /* "$all" for all */
    sl_str name;
    sl_wire_start start; /* BEGIN, END, GIVEN */
    uint64_t from; /* GIVEN: revision or position, inclusive. For END: what the end was when it was made */
    sl_wire_filter filter;
    sl_wire_group_settings settings; /* as given; strategy is always filled in */
} sl_group_definition;

/* Texts of the result are in the arena. What concerns only readers of a stream (window, checkpoint multiplier) is not kept.
 * SL_OK, SL_ERR_NOMEM, SL_ERR_TOO_LARGE, SL_ERR_INVALID (encode: a text has a zero byte or is no UTF-8), SL_ERR_CORRUPT (decode: no
 * such text, or one that sl_group_definition_check() would refuse). */
sl_err sl_group_definition_encode(const sl_group_definition *definition, sl_arena *arena, sl_str *ret_text);
sl_err sl_group_definition_decode(sl_str text, sl_arena *arena, sl_group_definition *ret_definition);

/* Checks in the order of kurrent-semantics 2.1. On SL_ERR_INVALID *ret_reason is the text of the trailer `reason`,
 * good until the next call. SL_OK, SL_ERR_INVALID, SL_ERR_NOMEM. */
sl_err sl_group_definition_check(const sl_group_definition *definition, const char **ret_reason);

/* The same in two parts: between them a Create looks whether the group exists. */
sl_err sl_group_definition_check_first(const sl_group_definition *definition, const char **ret_reason);
sl_err sl_group_definition_check_rest(const sl_group_definition *definition, const char **ret_reason);

/* The same in two parts: between them Create looks whether the group exists. */
sl_err sl_group_definition_check_first(const sl_group_definition *definition, const char **ret_reason);
sl_err sl_group_definition_check_rest(const sl_group_definition *definition, const char **ret_reason);

/* For the core: odd values get the meaning of kurrent-semantics 2.2, bounded by the core's own limits. */
sl_settings sl_group_definition_settings(const sl_group_definition *definition);

/* "STREAM::GROUP": the subscription id, and the middle of the names of its streams. */
void sl_group_definition_key(const sl_group_definition *definition, sl_text *key);

#endif
