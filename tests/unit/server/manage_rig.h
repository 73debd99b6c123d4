/* tests/unit/server/manage_rig.h — short words for tests of the calls that make, change, show and delete groups.
 *
 * Requests are those of the real clients: everything that a setting may say has a value. */
#ifndef SL_TESTS_UNIT_SERVER_MANAGE_RIG_H
#define SL_TESTS_UNIT_SERVER_MANAGE_RIG_H

#include "groups_rig.h"

#include "base/arena.h"
#include "wire/persistent_client.h"

#define MANAGE_PATH(name)  "/event_store.client.persistent_subscriptions.PersistentSubscriptions/" name
#define MANAGE_PARKED_OF_G "$persistentsubscription-orders::g-parked"

typedef struct manage {
    groups g;
    sl_arena arena; /* of requests, and of answers that were decoded */
} manage;

void manage_start(manage *m);
void manage_start_on(manage *m, sl_store *store);
void manage_done(manage *m);

/* From the start of the stream, with the settings that official clients have; "$all": everything, without a filter. */
sl_wire_group_request manage_request(const char *stream, const char *group);

sl_str manage_create_bytes(manage *m, const sl_wire_group_request *request);
server_call *manage_create(manage *m, const sl_wire_group_request *request);
server_call *manage_update(manage *m, const sl_wire_group_request *request);
server_call *manage_delete(manage *m, const char *stream, const char *group);
/* ret_info may be NULL; it is filled when the call succeeds. */
server_call *manage_info(manage *m, const char *stream, const char *group, sl_wire_group_info *ret_info);
/* stream NULL: all groups. */
server_call *manage_list(manage *m, const char *stream, sl_wire_group_infos *ret_infos);
/* stop_at NULL: no limit. */
server_call *manage_replay(manage *m, const char *stream, const char *group, const int64_t *stop_at);
server_call *manage_truncate(manage *m, const char *stream, const char *group, const int64_t *stop_at);
server_call *manage_restart(manage *m);

/* "orders::g" made, and it must succeed; the info of it, the same. */
void manage_make(manage *m, const sl_wire_group_request *request);
sl_wire_group_info manage_look(manage *m, const char *stream, const char *group);

/* Status, message and trailers of the five errors of groups; reason NULL: there is none. */
void manage_expect_missing(const server_call *call, const char *stream, const char *group);
void manage_expect_exists(const server_call *call, const char *stream, const char *group);
void manage_expect_failed(const server_call *call, const char *stream, const char *group, const char *reason);
void manage_expect_dropped(const server_call *call, const char *stream, const char *group);

#endif
