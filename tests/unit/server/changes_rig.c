/* tests/unit/server/changes_rig.c — see changes_rig.h. */
#include "changes_rig.h"

#include "read_rig.h"

void changes_note(void *ctx, sl_err err)
{
    changes_outcome *const outcome = ctx;

    outcome->is_done = true;
    outcome->times++;
    outcome->err = err;
}

sl_registry *changes_registry(groups *g)
{
    return g->rig.host->registry;
}

sl_err changes_wait(groups *g, sl_err begun, changes_outcome *outcome)
{
    if (begun != SL_OK) {
        EXPECT(!outcome->is_done);
        return begun;
    }
    server_rig_run_until(&g->rig, &outcome->is_done);
    server_rig_run(&g->rig);
    EXPECT_EQ(outcome->times, 1);
    return outcome->err;
}

sl_err changes_create(groups *g, const char *stream, const char *group)
{
    const sl_group_definition definition = groups_definition(stream, group);
    changes_outcome outcome = { 0 };

    return changes_wait(g, sl_registry_create(changes_registry(g), &definition, changes_note, &outcome),
                        &outcome);
}

static sl_err update(groups *g, const sl_group_definition *definition)
{
    changes_outcome outcome = { 0 };

    return changes_wait(g, sl_registry_update(changes_registry(g), definition, changes_note, &outcome),
                        &outcome);
}

sl_err changes_delete(groups *g, const char *stream, const char *group)
{
    changes_outcome outcome = { 0 };

    return changes_wait(g,
                        sl_registry_delete(changes_registry(g), sl_str_from(stream), sl_str_from(group),
                                           changes_note, &outcome),
                        &outcome);
}

static void add_key(void *ctx, sl_desk *desk)
{
    sl_text *const text = ctx;

    sl_text_add(text, text->bytes == 0 ? "" : " ");
    sl_text_add(text, sl_desk_key(desk));
}

const char *changes_listed(groups *g, const char *stream)
{
    static char words[4096];
    sl_text text;

    sl_text_init(&text, words, sizeof words);
    sl_registry_each(changes_registry(g), sl_str_from(stream), add_key, &text);
    return words;
}

bool changes_there(groups *g, const char *stream, const char *group)
{
    return sl_registry_find(changes_registry(g), sl_str_from(stream), sl_str_from(group)) != NULL;
}

int32_t changes_retries(groups *g, const char *stream, const char *group)
{
    return sl_desk_definition(groups_find(g, stream, group))->settings.max_retry_count;
}

sl_err changes_set_retries(groups *g, const char *stream, const char *group, int32_t retries)
{
    sl_group_definition definition = groups_definition(stream, group);

    definition.settings.max_retry_count = retries;
    return update(g, &definition);
}

/* Each group has acked another message, one was changed, one deleted. */
void changes_fill(groups *g)
{
    reads_append(&g->rig, "orders", 3);
    for (int i = 0; i < 3; i++) {
        char name[2] = { (char)('a' + i), 0 };
        server_call *call;

        EXPECT_OK(changes_create(g, "orders", name));
        call = groups_join(g, (groups_consumer){ .group = name });
        groups_ack(call, 1 + (size_t)i, 1);
        server_call_cancel(call);
        server_rig_run(&g->rig);
    }
    EXPECT_OK(changes_create(g, "$all", "d"));
    EXPECT_OK(changes_set_retries(g, "orders", "b", 42));
    EXPECT_OK(changes_delete(g, "$all", "d"));
}

void changes_expect_filled(groups *g)
{
    EXPECT_STR(changes_listed(g, ""), "orders::a orders::b orders::c");
    EXPECT_EQ(changes_retries(g, "orders", "b"), 42);
    EXPECT_EQ(changes_retries(g, "orders", "c"), 10);
    EXPECT_HEARD(groups_join(g, (groups_consumer){ .group = "a" }),
                 "confirmed:orders::a orders:1#1 orders:2#1");
    EXPECT_HEARD(groups_join(g, (groups_consumer){ .group = "b" }),
                 "confirmed:orders::b orders:0#1 orders:2#1");
    EXPECT_HEARD(groups_join(g, (groups_consumer){ .group = "c" }),
                 "confirmed:orders::c orders:0#1 orders:1#1");
    EXPECT_OK(changes_create(g, "$all", "d")); /* with a number that nobody has */
}
