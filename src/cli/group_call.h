/* cli/group_call.h — calls about one group, for the commands `group` and `parked`. Errors as in cli/client_session.h. */
#ifndef SL_CLI_GROUP_CALL_H
#define SL_CLI_GROUP_CALL_H

#include "cli/client_session.h"
#include "cli/fields.h"
#include "wire/persistent_client.h"

/* The words STREAM and GROUP; "$all" as STREAM means all streams. */
sl_wire_group_name sl_group_name_of(const sl_invocation *invocation);

/* `group "billing" on stream "orders"`, `... on all streams`. */
void sl_group_print_name(FILE *out, const sl_wire_group_name *name);

/* "stream" and "group". */
void sl_group_field_name(sl_fields *fields, const sl_wire_group_name *name);

/* A message that could not be encoded: memory was out. */
int sl_group_fail_encode(const sl_session *session);

/* METHOD of PersistentSubscriptions, with an answer that says nothing. */
int sl_group_ask(sl_session *session, const char *method, sl_str message);

/* What the server knows about the group; texts live in the arena of the session. */
int sl_group_look(sl_session *session, const sl_wire_group_name *name, sl_wire_group_info *ret_info);

/* The same for callers that look at the status themselves; the info is there when that is OK. End the answer with
 * sl_client_answer_done(). */
int sl_group_try_look(sl_session *session, const sl_wire_group_name *name, sl_client_answer *ret_answer,
                      sl_wire_group_info *ret_info);

/* An answer that is none. */
int sl_group_fail_answer(const sl_session *session, sl_err err, const char *malformed);

#endif
