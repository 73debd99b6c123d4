/* tests/unit/server/changes_rig.h — short words for tests of groups that are made, changed, deleted and loaded. */
#ifndef SL_TESTS_UNIT_SERVER_CHANGES_RIG_H
#define SL_TESTS_UNIT_SERVER_CHANGES_RIG_H

#include "groups_rig.h"

typedef struct changes_outcome {
    bool is_done;
    unsigned times;
    sl_err err;
} changes_outcome;

/* What sl_registry_create() and its sisters call; ctx is an outcome. */
void changes_note(void *ctx, sl_err err);
sl_registry *changes_registry(groups *g);

/* What became of it, whether it was said at once or later. */
sl_err changes_wait(groups *g, sl_err begun, changes_outcome *outcome);
sl_err changes_create(groups *g, const char *stream, const char *group);
sl_err changes_delete(groups *g, const char *stream, const char *group);
sl_err changes_set_retries(groups *g, const char *stream, const char *group, int32_t retries);

/* "orders::a orders::b"; stream "": all. Good until the next call. */
const char *changes_listed(groups *g, const char *stream);
bool changes_there(groups *g, const char *stream, const char *group);
int32_t changes_retries(groups *g, const char *stream, const char *group);

/* Three groups that differ, and whether they are as they were. */
void changes_fill(groups *g);
void changes_expect_filled(groups *g);

#endif
