/* tests/unit/server/test_registry_load.c — groups that cannot be loaded, or for which there is no memory. */
#include "changes_rig.h"
#include "read_rig.h"

#include "base/support.h"

/* --- what cannot be loaded --- */

static void stored(void *ctx, const sl_commit *commit)
{
    *(sl_err *)ctx = commit->err;
}

static void store_group(sl_store *store, uint64_t number, const char *text)
{
    const sl_op op = { .kind = SL_OP_GROUP_CREATE, .group_create = { number, sl_str_from(text) } };
    sl_err err = SL_ERR_AGAIN;

    EXPECT_OK(sl_store_submit(store, &(sl_batch){ .ops = &op, .op_count = 1 }, stored, &err));
    sl_store_turn(store);
    sl_store_poll(store);
    EXPECT_OK(err);
}

/* Another host, on this store, beside one that works. */
static sl_err try_host(server_rig *rig, sl_store *store, const sl_alloc *alloc, sl_text *problem)
{
    sl_host *host = NULL;
    const sl_err err = sl_host_new(&(sl_host_setup){ .alloc = alloc,
                                                     .clock = &rig->clock,
                                                     .log = &rig->log,
                                                     .settings = &rig->settings,
                                                     .store = store,
                                                     .seed = { 1, 2 },
                                                     .wake = rig->host->wake,
                                                     .wake_ctx = rig,
                                                     .problem = problem },
                                   &host);

    sl_host_free(host);
    return err;
}

static sl_err load(sl_store *store, sl_text *problem)
{
    server_rig rig;
    sl_err err;

    server_rig_init(&rig);
    server_rig_start(&rig);
    err = try_host(&rig, store, &sl_alloc_default, problem);
    server_rig_done(&rig);
    return err;
}

static const char *text_of(const sl_group_definition *definition)
{
    static char text[2048];
    sl_arena arena;
    sl_str json;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    EXPECT_OK(sl_group_definition_encode(definition, &arena, &json));
    snprintf(text, sizeof text, "%.*s", (int)json.bytes, json.data);
    sl_arena_done(&arena);
    return text;
}

TEST(a_group_that_cannot_be_loaded_is_named)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };
    const sl_group_definition definition = groups_definition("orders", "g");
    char words[512];
    sl_text problem;
    sl_store *store;

    sl_text_init(&problem, words, sizeof words);
    EXPECT_OK(sl_store_open_memory(&setup, &store));
    store_group(store, 3, text_of(&definition));
    store_group(store, 8, "{\"version\":1}");
    EXPECT_ERR(load(store, &problem), SL_ERR_CORRUPT);
    EXPECT_STR(words,
               "The persistent subscription with the number 8 cannot be loaded: the stored data is damaged.");
    EXPECT_ERR(load(store, NULL), SL_ERR_CORRUPT);
    sl_store_close(store);
}

TEST(two_stored_groups_with_one_name_are_damage)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };
    const sl_group_definition one = groups_definition("a", "b::c"), two = groups_definition("a::b", "c");
    char words[512];
    sl_text problem;
    sl_store *store;

    sl_text_init(&problem, words, sizeof words);
    EXPECT_OK(sl_store_open_memory(&setup, &store));
    store_group(store, 1, text_of(&one));
    store_group(store, 2, text_of(&two));
    EXPECT_ERR(load(store, &problem), SL_ERR_CORRUPT);
    EXPECT(strstr(words, "number 2") != NULL);
    sl_store_close(store);
}

/* --- without memory --- */

static void start_with(groups *g, sl_store *store, const sl_alloc *alloc)
{
    server_rig_init(&g->rig);
    g->rig.alloc = alloc;
    g->rig.store = g->store = store;
    server_rig_start(&g->rig);
    server_rig_run(&g->rig);
}

static sl_store *memory_store(void)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };
    sl_store *store = NULL;

    EXPECT_OK(sl_store_open_memory(&setup, &store));
    return store;
}

TEST(groups_that_get_no_memory_when_they_are_loaded_leave_nothing_behind)
{
    sl_err err = SL_ERR_NOMEM;
    char words[512];
    server_rig rig;
    groups g;

    groups_start(&g);
    changes_fill(&g);
    server_rig_init(&rig);
    server_rig_start(&rig);
    for (size_t fail_at = 1; err != SL_OK; fail_at++) {
        test_alloc memory = { .fail_at = fail_at };
        const sl_alloc alloc = test_alloc_use(&memory);
        sl_text problem;

        sl_text_init(&problem, words, sizeof words);
        err = try_host(&rig, g.store, &alloc, &problem);
        EXPECT_ROW(err == SL_OK || err == SL_ERR_NOMEM, fail_at);
        EXPECT_ROW(memory.block_count == 0, fail_at);
    }
    EXPECT_STR(words, "");
    server_rig_done(&rig);
    groups_kill(&g);
    changes_expect_filled(&g);
    groups_done(&g);
}

typedef enum deed {
    CREATED,
    UPDATED,
    DELETED,
    RESTARTED,
    DEED_COUNT
} deed;

static sl_err act(groups *g, deed what)
{
    switch (what) {
    case CREATED: return changes_create(g, "orders", "h");
    case UPDATED: return changes_set_retries(g, "orders", "g", 3);
    case DELETED: return changes_delete(g, "orders", "g");
    case RESTARTED: return sl_registry_restart(changes_registry(g));
    case DEED_COUNT: break;
    }
    return SL_ERR_INVALID;
}

/* False: no allocation has failed. */
static bool act_without_memory(deed what, size_t fail_at, bool stays_out)
{
    test_alloc memory = { .stays_out = stays_out };
    const sl_alloc alloc = test_alloc_use(&memory);
    bool has_failed;
    sl_err err;
    groups g;

    start_with(&g, memory_store(), &alloc);
    reads_append(&g.rig, "orders", 2);
    EXPECT_OK(changes_create(&g, "orders", "g"));
    groups_ack(groups_join(&g, (groups_consumer){ .name = "w" }), 1, 1);
    memory.call_count = 0;
    memory.fail_at = fail_at;
    err = act(&g, what);
    server_rig_run(&g.rig);
    has_failed = memory.call_count >= fail_at;
    memory.fail_at = 0;
    EXPECT_ROW(err == SL_OK || (has_failed && err == SL_ERR_NOMEM), fail_at);
    EXPECT_ROW(changes_there(&g, "orders", "h") == (what == CREATED && err == SL_OK), fail_at);
    EXPECT_ROW(changes_there(&g, "orders", "g") == (what != DELETED || err != SL_OK), fail_at);
    g.rig.host->stopping = true;
    server_rig_done(&g.rig);
    EXPECT_ROW(memory.block_count == 0, fail_at);
    EXPECT_OK(sl_store_memory_restart(g.store, SL_RESTART_POWER_CUT));
    start_with(&g, g.store, &alloc);
    EXPECT_ROW(changes_there(&g, "orders", "h") == (what == CREATED && err == SL_OK), fail_at);
    EXPECT_ROW(changes_there(&g, "orders", "g") == (what != DELETED || err != SL_OK), fail_at);
    if (changes_there(&g, "orders", "g") && err == SL_OK)
        EXPECT_ROW(changes_retries(&g, "orders", "g") == (what == UPDATED ? 3 : 10), fail_at);
    groups_done(&g);
    return has_failed;
}

/* Whatever allocation fails: it is done or it is not, now and after a restart, and nothing is left behind. */
TEST(a_change_that_gets_no_memory_is_refused_or_done)
{
    for (deed what = CREATED; what < DEED_COUNT; what++) {
        size_t fail_at = 1;

        while (act_without_memory(what, fail_at, false))
            fail_at += SWEEP_STEP;
        EXPECT_ROW(fail_at > 3, what);
        for (fail_at = 1; act_without_memory(what, fail_at, true);)
            fail_at += SWEEP_STEP;
    }
}
