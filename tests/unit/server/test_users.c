/* Users in memory and in the store: texts, records, news, the loader, and commands without a server. */
#include "test.h"

#include "base/support.h"
#include "server/auth.h"
#include "server/passwords.h"
#include "server/user_admin.h"
#include "server/user_change.h"
#include "server/user_loader.h"
#include "store/faulty/faulty.h"
#include "store/store.h"

#include <sodium.h>

#define HASH                                                                                                 \
    "$argon2id$v=19$m=65536,t=2,p=1$xT3Nod2qELB7cGr6gi/GFQ$ZvmLmgO6kc9jCvb2XePVhKw5u/+KOFF915tl+SOfTNM"

static const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };
static const sl_str admins[] = { SL_STR_INIT("$admins") };

static sl_store *memory_store(void)
{
    sl_store *store = NULL;

    EXPECT_OK(sl_store_open_memory(&setup, &store));
    return store;
}

static void note_commit(void *ctx, const sl_commit *commit)
{
    *(sl_err *)ctx = commit->err;
}

static void append(sl_store *store, const char *stream, const char *type, const char *data)
{
    static int64_t id; /* an id that is there already would be taken for a repetition */
    const sl_event_in event = { .id = sl_uuid_from_halves(++id, 1),
                                .type = sl_str_from(type),
                                .data = sl_str_from(data),
                                .created_ns = 1000 };
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { .stream = sl_str_from(stream), .events = &event, .event_count = 1 } };
    sl_err err = SL_ERR_AGAIN;

    EXPECT_OK(sl_store_submit(store, &(sl_batch){ .ops = &op, .op_count = 1 }, note_commit, &err));
    sl_store_turn(store);
    sl_store_poll(store);
    EXPECT_OK(err);
}

/* --- texts --- */

TEST(user_names_are_bounded_and_cannot_be_taken_for_something_else)
{
    static const struct {
        const char *name;
        bool allowed;
    } rows[] = {
        { "ada", true },
        { "a", true },
        { "ada.l@example.com", true },
        { "Zo\xc3\xab \xe6\x9d\x8e", true },
        { "a$", true },
        { "", false },
        { "$admins", false },
        { "$", false },
        { "a:b", false },
        { "a/b", false },
        { " ada", false },
        { "ada ", false },
        { "a\nb", false },
        { "a\tb", false },
        { "a\x7f", false },
        { "a\xc2\x85", false }, /* a control character of Latin-1 */
        { "a\xff", false },
        { "a\xc0\x80", false },
    };
    char long_name[SL_LOGIN_NAME_BYTES_MAX + 1];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT_ROW((sl_user_check_name(sl_str_from(rows[i].name), NULL) == SL_OK) == rows[i].allowed, i);
    EXPECT_ERR(sl_user_check_name((sl_str){ "a\0b", 3 }, NULL), SL_ERR_INVALID);
    memset(long_name, 'x', sizeof long_name);
    EXPECT_OK(sl_user_check_name((sl_str){ long_name, sizeof long_name - 1 }, NULL));
    EXPECT_ERR(sl_user_check_name((sl_str){ long_name, sizeof long_name }, NULL), SL_ERR_INVALID);
}

TEST(user_passwords_and_groups_are_bounded)
{
    sl_str groups[SL_USER_GROUPS_MAX + 1];
    char long_one[SL_PASSWORD_BYTES_MAX + 1], memory[128];
    sl_text problem;

    memset(long_one, 'x', sizeof long_one);
    sl_text_init(&problem, memory, sizeof memory);
    EXPECT_ERR(sl_user_check_password(SL_STR("1234567"), &problem), SL_ERR_INVALID);
    EXPECT_STR(memory, "The password is shorter than 8 bytes.");
    EXPECT_OK(sl_user_check_password(SL_STR("12345678"), NULL));
    EXPECT_OK(sl_user_check_password((sl_str){ long_one, sizeof long_one - 1 }, NULL));
    EXPECT_ERR(sl_user_check_password((sl_str){ long_one, sizeof long_one }, NULL), SL_ERR_INVALID);
    EXPECT_ERR(sl_user_check_password((sl_str){ "1234\0 5678", 10 }, NULL), SL_ERR_INVALID);
    for (size_t i = 0; i <= SL_USER_GROUPS_MAX; i++)
        groups[i] = SL_STR("g");
    EXPECT_OK(sl_user_check_groups(groups, SL_USER_GROUPS_MAX, NULL));
    EXPECT_ERR(sl_user_check_groups(groups, SL_USER_GROUPS_MAX + 1, NULL), SL_ERR_INVALID);
    groups[3] = (sl_str){ long_one, SL_USER_GROUP_BYTES_MAX + 1 };
    EXPECT_ERR(sl_user_check_groups(groups, 4, NULL), SL_ERR_INVALID);
    groups[3] = SL_STR("");
    EXPECT_ERR(sl_user_check_groups(groups, 4, NULL), SL_ERR_INVALID);
    EXPECT_ERR(sl_user_check_full_name((sl_str){ long_one, SL_FULL_NAME_BYTES_MAX + 1 }, NULL),
               SL_ERR_INVALID);
    EXPECT_OK(sl_user_check_full_name(SL_STR(""), NULL));
}

/* --- records --- */

TEST(user_records_come_back_as_they_were_written)
{
    const sl_str groups[] = { SL_STR("$admins"), SL_STR("a \"quoted\" \\ group") };
    const sl_user_record record = { .login_name = SL_STR("ada@x"),
                                    .full_name = SL_STR("Ada \xf0\x9f\x9a\x80"),
                                    .hash = SL_STR(HASH),
                                    .groups = groups,
                                    .group_count = 2,
                                    .disabled = true };
    sl_user_record back;
    sl_arena arena;
    sl_str json;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 1024, 1 << 20 });
    EXPECT_OK(sl_user_record_encode(&record, &arena, &json));
    EXPECT_OK(sl_user_record_decode(json, &arena, &back));
    EXPECT(sl_str_equal(back.login_name, record.login_name));
    EXPECT(sl_str_equal(back.full_name, record.full_name));
    EXPECT(sl_str_equal(back.hash, record.hash));
    EXPECT_EQ(back.group_count, 2);
    EXPECT(sl_str_equal(back.groups[1], groups[1]));
    EXPECT(back.disabled);
    EXPECT(sl_user_record_has_group(&back, SL_STR("$admins")));
    EXPECT(!sl_user_record_is_admin(&back)); /* who cannot log in administrates nothing */
    sl_arena_done(&arena);
}

TEST(user_records_of_strangers_are_not_believed)
{
    static const char *const rows[] = {
        "",
        "{}",
        "[]",
        "not json",
        "{\"loginName\":\"a\",\"fullName\":\"\",\"groups\":[],\"hash\":\"" HASH "\"}",
        "{\"loginName\":\"a\",\"fullName\":\"\",\"groups\":[],\"hash\":\"" HASH "\",\"disabled\":0}",
        "{\"loginName\":\"a\",\"fullName\":\"\",\"groups\":[1],\"hash\":\"" HASH "\",\"disabled\":false}",
        "{\"loginName\":\"a\",\"fullName\":\"\",\"groups\":\"x\",\"hash\":\"" HASH "\",\"disabled\":false}",
        "{\"loginName\":\"a\",\"fullName\":7,\"groups\":[],\"hash\":\"" HASH "\",\"disabled\":false}",
        "{\"loginName\":\"a\",\"fullName\":\"\",\"groups\":[],\"hash\":\"\",\"disabled\":false}",
        "{\"loginName\":\"a\",\"fullName\":\"\",\"groups\":[],\"hash\":\"plain\",\"disabled\":false}",
        "{\"loginName\":\"$admins\",\"fullName\":\"\",\"groups\":[],\"hash\":\"" HASH
        "\",\"disabled\":false}",
        "{\"loginName\":\"a\",\"fullName\":\"\\u0007\",\"groups\":[],\"hash\":\"" HASH
        "\",\"disabled\":false}",
    };
    sl_user_record record;
    sl_arena arena;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 1024, 1 << 20 });
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT_ROW(sl_user_record_decode(sl_str_from(rows[i]), &arena, &record) == SL_ERR_INVALID, i);
    sl_arena_done(&arena);
}

/* --- news --- */

static void there(sl_users *users, const char *name, uint64_t revision, bool is_admin)
{
    sl_user *const user = sl_users_enter(users, sl_str_from(name));
    const sl_user_record record = {
        .login_name = sl_str_from(name), .hash = SL_STR(HASH), .groups = admins, .group_count = is_admin
    };

    assert_non_null(user);
    EXPECT_OK(sl_users_apply(
        users, user, &(sl_user_news){ .state = SL_USER_THERE, .record = &record, .revision = revision }));
    sl_users_unpin(users, user);
}

TEST(user_news_count_only_when_they_are_newer)
{
    sl_users users;
    sl_user *user;
    uint64_t generation;

    EXPECT_OK(sl_users_init(&users, &sl_alloc_default, setup.seed));
    there(&users, "ada", 5, true);
    user = sl_users_find(&users, SL_STR("ada"));
    generation = user->generation;
    EXPECT_EQ(users.count, 1);
    there(&users, "ada", 5, false);
    there(&users, "ada", 4, false);
    EXPECT_EQ(user->generation, generation);
    EXPECT_EQ(user->record.group_count, 1);
    there(&users, "ada", 6, false);
    EXPECT(user->generation > generation);
    EXPECT_EQ(user->record.group_count, 0);
    sl_user_pin(user);
    EXPECT_OK(sl_users_apply(&users, user, &(sl_user_news){ .state = SL_USER_GONE, .revision = 7 }));
    EXPECT_EQ(users.count, 0);
    EXPECT(sl_users_find_there(&users, SL_STR("ada")) == NULL);
    EXPECT(sl_users_find(&users, SL_STR("ada")) == user); /* somebody holds it */
    sl_users_unpin(&users, user);
    EXPECT(sl_users_find(&users, SL_STR("ada")) == NULL);
    sl_users_done(&users);
}

TEST(users_by_the_thousand_are_found_and_sorted)
{
    const sl_user *sorted[1000];
    sl_users users;
    char name[16];

    EXPECT_OK(sl_users_init(&users, &sl_alloc_default, setup.seed));
    for (int i = 999; i >= 0; i--) {
        (void)snprintf(name, sizeof name, "user-%03d", i);
        there(&users, name, 0, i == 7);
    }
    EXPECT_EQ(users.count, 1000);
    EXPECT_EQ(sl_users_admin_count(&users, NULL), 1);
    sl_users_sorted(&users, sorted);
    EXPECT(sl_str_equal(sorted[0]->name, SL_STR("user-000")));
    EXPECT(sl_str_equal(sorted[999]->name, SL_STR("user-999")));
    EXPECT(sl_users_find(&users, SL_STR("user-500")) == sorted[500]);
    EXPECT_EQ(sl_users_admin_count(&users, sorted[7]), 0);
    sl_users_done(&users);
}

/* --- changes --- */

static sl_user_verdict verdict_of(const sl_users *users, const sl_user_change *change)
{
    char memory[256];
    sl_text problem;
    sl_user_verdict verdict;

    sl_text_init(&problem, memory, sizeof memory);
    verdict = sl_user_change_check(users, change, &problem);
    EXPECT_EQ(verdict == SL_USER_CHANGE_ALLOWED, problem.bytes == 0); /* a sentence for each refusal */
    EXPECT(!problem.cut);
    return verdict;
}

static sl_user_verdict verdict_on(const sl_users *users, sl_user_change_kind kind, const char *name,
                                  bool is_admin)
{
    return verdict_of(users, &(sl_user_change){ .kind = kind,
                                                .login_name = sl_str_from(name),
                                                .groups = admins,
                                                .group_count = is_admin });
}

TEST(the_first_user_is_an_administrator_and_the_last_one_stays)
{
    sl_users users;

    EXPECT_OK(sl_users_init(&users, &sl_alloc_default, setup.seed));
    EXPECT_EQ(verdict_on(&users, SL_USER_CREATE, "bob", false), SL_USER_CHANGE_NO_ADMIN);
    EXPECT_EQ(verdict_on(&users, SL_USER_CREATE, "ada", true), SL_USER_CHANGE_ALLOWED);
    there(&users, "ada", 0, true);
    EXPECT_EQ(verdict_on(&users, SL_USER_CREATE, "bob", false), SL_USER_CHANGE_ALLOWED);
    there(&users, "bob", 0, false);
    EXPECT_EQ(verdict_on(&users, SL_USER_CREATE, "bob", true), SL_USER_CHANGE_EXISTS);
    EXPECT_EQ(verdict_on(&users, SL_USER_DELETE, "ada", false), SL_USER_CHANGE_NO_ADMIN);
    EXPECT_EQ(verdict_on(&users, SL_USER_DISABLE, "ada", false), SL_USER_CHANGE_NO_ADMIN);
    EXPECT_EQ(verdict_on(&users, SL_USER_UPDATE, "ada", false), SL_USER_CHANGE_NO_ADMIN);
    EXPECT_EQ(verdict_on(&users, SL_USER_UPDATE, "ada", true), SL_USER_CHANGE_ALLOWED);
    EXPECT_EQ(verdict_on(&users, SL_USER_SET_PASSWORD, "ada", false), SL_USER_CHANGE_ALLOWED);
    EXPECT_EQ(verdict_on(&users, SL_USER_DELETE, "bob", false), SL_USER_CHANGE_ALLOWED);
    there(&users, "bob", 1, true);
    EXPECT_EQ(verdict_on(&users, SL_USER_DELETE, "ada", false), SL_USER_CHANGE_ALLOWED);
    EXPECT_EQ(verdict_on(&users, SL_USER_DELETE, "eve", false), SL_USER_CHANGE_NOT_FOUND);
    EXPECT_EQ(verdict_on(&users, SL_USER_DELETE, "a/b", false), SL_USER_CHANGE_INVALID);
    sl_users_done(&users);
}

typedef struct changing {
    sl_user_plan plan;
    sl_err result;
    bool done;
} changing;

static void end_plan(void *ctx, const sl_commit *commit)
{
    changing *const c = ctx;

    c->result = sl_user_plan_end(&c->plan, commit);
    c->done = true;
}

static void submit_change(sl_store *store, sl_users *users, const sl_user_change *change, sl_arena *arena,
                          changing *c)
{
    *c = (changing){ 0 };
    EXPECT_OK(sl_user_plan_make(&c->plan, users, store, change, arena, 5000));
    EXPECT_OK(sl_store_submit(store, &c->plan.batch, end_plan, c));
}

/* Each alone would be allowed. */
TEST(two_changes_at_once_cannot_remove_the_last_two_administrators)
{
    sl_store *const store = memory_store();
    const sl_user_change remove_ada = { .kind = SL_USER_DELETE, .login_name = SL_STR("ada") };
    const sl_user_change create_ada = { .kind = SL_USER_CREATE,
                                        .login_name = SL_STR("ada"),
                                        .groups = admins,
                                        .group_count = 1,
                                        .hash = SL_STR(HASH) };
    sl_user_change create_bob = create_ada;
    changing one, two;
    sl_users users;
    sl_arena arena;

    create_bob.login_name = SL_STR("bob");
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 1024, 1 << 20 });
    EXPECT_OK(sl_users_init(&users, &sl_alloc_default, setup.seed));
    submit_change(store, &users, &create_ada, &arena, &one);
    EXPECT_EQ(verdict_of(&users, &create_ada), SL_USER_CHANGE_BUSY); /* nobody else creates the same */
    EXPECT_EQ(users.count, 0);                                       /* not before it is durable */
    submit_change(store, &users, &create_bob, &arena, &two);
    sl_store_turn(store);
    sl_store_poll(store);
    EXPECT(one.done && two.done);
    EXPECT_EQ(users.count, 2);
    submit_change(store, &users, &remove_ada, &arena, &one);
    EXPECT_EQ(verdict_of(&users, &remove_ada), SL_USER_CHANGE_BUSY);
    EXPECT_EQ(verdict_on(&users, SL_USER_DELETE, "bob", false), SL_USER_CHANGE_NO_ADMIN);
    EXPECT_EQ(verdict_on(&users, SL_USER_DISABLE, "bob", false), SL_USER_CHANGE_NO_ADMIN);
    sl_store_turn(store);
    sl_store_poll(store);
    EXPECT_EQ(users.count, 1);
    EXPECT(sl_users_find(&users, SL_STR("ada")) == NULL);
    sl_users_done(&users);
    sl_arena_done(&arena);
    sl_store_close(store);
}

/* Somebody else has written to the stream, and our memory does not know it yet. */
TEST(a_change_of_what_is_not_current_is_refused_by_the_store)
{
    sl_store *const store = memory_store();
    const sl_user_change create = { .kind = SL_USER_CREATE,
                                    .login_name = SL_STR("ada"),
                                    .groups = admins,
                                    .group_count = 1,
                                    .hash = SL_STR(HASH) };
    const sl_user_change update = {
        .kind = SL_USER_UPDATE, .login_name = SL_STR("ada"), .groups = admins, .group_count = 1
    };
    changing c;
    sl_users users;
    sl_arena arena;
    sl_stream_info info;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 1024, 1 << 20 });
    EXPECT_OK(sl_users_init(&users, &sl_alloc_default, setup.seed));
    submit_change(store, &users, &create, &arena, &c);
    append(store, "$user-ada", "$UserUpdated", "{}"); /* also carries out what was submitted */
    EXPECT_OK(c.result);
    submit_change(store, &users, &update, &arena, &c);
    sl_store_turn(store);
    sl_store_poll(store);
    EXPECT_ERR(c.result, SL_ERR_WRONG_REVISION);
    EXPECT(!sl_users_find(&users, SL_STR("ada"))->changing);
    sl_store_stream(store, SL_STR("$users"), &info);
    EXPECT_EQ(info.revision, 0); /* listed once */
    sl_users_done(&users);
    sl_arena_done(&arena);
    sl_store_close(store);
}

/* --- the loader --- */

#define RECORD(name, groups)                                                                                 \
    "{\"loginName\":\"" name "\",\"fullName\":\"\",\"groups\":[" groups "],\"hash\":\"" HASH                 \
    "\",\"disabled\":false}"

typedef struct library {
    sl_store *store;
    sl_users users;
    sl_user_loader loader;
} library;

static void library_open(library *lib)
{
    lib->store = memory_store();
    EXPECT_OK(sl_users_init(&lib->users, &sl_alloc_default, setup.seed));
    sl_user_loader_init(&lib->loader, lib->store, &lib->users);
}

static void library_close(library *lib)
{
    sl_user_loader_done(&lib->loader);
    sl_users_done(&lib->users);
    sl_store_close(lib->store);
}

static size_t load(library *lib)
{
    size_t damaged = 0;
    sl_err err;

    while ((err = sl_user_loader_step(&lib->loader, 3, 2000)) != SL_OK) {
        damaged += lib->loader.name_err != SL_OK;
        sl_store_turn(lib->store);
        sl_store_poll(lib->store);
        EXPECT(err == SL_ERR_FULL || err == SL_ERR_AGAIN);
    }
    return damaged;
}

TEST(the_loader_finds_the_last_state_of_each_user)
{
    library lib;

    library_open(&lib);
    EXPECT_EQ(load(&lib), 0);
    EXPECT_EQ(lib.users.count, 0);
    append(lib.store, "$user-ada", "$UserCreated", RECORD("ada", ""));
    append(lib.store, "$users", "$User", "ada");
    append(lib.store, "$user-ada", "$UserUpdated", RECORD("ada", "\"$admins\""));
    append(lib.store, "$user-bob", "$UserCreated", RECORD("bob", ""));
    append(lib.store, "$users", "$User", "bob");
    append(lib.store, "$user-bob", "$UserDeleted", "{}");
    append(lib.store, "$users", "$User", "ghost"); /* has no stream */
    append(lib.store, "$users", "$User", "a/b");   /* cannot be a user */
    append(lib.store, "$users", "$User", "ada");   /* listed twice */
    EXPECT_EQ(load(&lib), 0);
    EXPECT_EQ(lib.users.count, 1);
    EXPECT_EQ(sl_users_admin_count(&lib.users, NULL), 1);
    EXPECT_EQ(lib.users.map.count, 1); /* nothing is kept of the others */
    EXPECT_EQ(sl_users_find(&lib.users, SL_STR("ada"))->revision, 1);
    EXPECT_EQ(sl_users_find(&lib.users, SL_STR("ada"))->updated_ns, 1000);
    append(lib.store, "$user-ada", "$UserDeleted", "{}");
    sl_user_loader_touch(&lib.loader, sl_users_find(&lib.users, SL_STR("ada")));
    EXPECT_EQ(load(&lib), 0);
    EXPECT_EQ(lib.users.count, 0);
    library_close(&lib);
}

/* A server whose only user cannot be understood must not be open to everybody. */
TEST(users_that_cannot_be_understood_are_damaged_and_not_gone)
{
    library lib;
    sl_user *user;

    library_open(&lib);
    append(lib.store, "$user-ada", "$UserCreated", "{\"loginName\":\"ada\"}");
    append(lib.store, "$users", "$User", "ada");
    append(lib.store, "$user-bob", "$UserCreated", RECORD("ada", "")); /* of somebody else */
    append(lib.store, "$users", "$User", "bob");
    EXPECT_EQ(load(&lib), 2);
    EXPECT_EQ(lib.users.count, 2);
    user = sl_users_find_there(&lib.users, SL_STR("bob"));
    EXPECT_EQ(user->state, SL_USER_DAMAGED);
    EXPECT_EQ(verdict_on(&lib.users, SL_USER_SET_PASSWORD, "bob", false), SL_USER_CHANGE_IS_DAMAGED);
    EXPECT_EQ(verdict_on(&lib.users, SL_USER_DELETE, "bob", false), SL_USER_CHANGE_ALLOWED);
    EXPECT_EQ(verdict_on(&lib.users, SL_USER_CREATE, "eve", false), SL_USER_CHANGE_NO_ADMIN);
    append(lib.store, "$user-bob", "$UserUpdated", RECORD("bob", ""));
    sl_user_loader_touch(&lib.loader, user);
    EXPECT_EQ(load(&lib), 0);
    EXPECT_EQ(user->state, SL_USER_THERE);
    library_close(&lib);
}

TEST(the_loader_reads_many_names_in_pages)
{
    library lib;
    char stream[32], record[512], name[16];

    library_open(&lib);
    for (int i = 0; i < 3 * SL_USER_LOADER_PAGE + 1; i++) {
        (void)snprintf(name, sizeof name, "u%d", i);
        (void)snprintf(stream, sizeof stream, "$user-u%d", i);
        (void)snprintf(record, sizeof record,
                       "{\"loginName\":\"u%d\",\"fullName\":\"\",\"groups\":[],\"hash\":\"" HASH
                       "\",\"disabled\":false}",
                       i);
        append(lib.store, stream, i % 2 ? "$UserDeleted" : "$UserCreated", record);
        append(lib.store, "$users", "$User", name);
    }
    EXPECT_EQ(load(&lib), 0);
    EXPECT_EQ(lib.users.count, (3 * SL_USER_LOADER_PAGE + 2) / 2);
    library_close(&lib);
}

TEST(the_loader_goes_on_after_a_lack_of_memory)
{
    bool ran_through = false;

    for (size_t fail_at = 1; !ran_through; fail_at++) {
        test_alloc failing = { .fail_at = 0 };
        const sl_alloc alloc = test_alloc_use(&failing);
        sl_store *const store = memory_store();
        sl_user_loader loader;
        sl_users users;
        sl_err err;
        bool failed = false;

        append(store, "$user-ada", "$UserCreated", RECORD("ada", "\"x\""));
        append(store, "$users", "$User", "ada");
        EXPECT_OK(sl_users_init(&users, &alloc, setup.seed));
        sl_user_loader_init(&loader, store, &users);
        failing.fail_at = failing.call_count + fail_at;
        while ((err = sl_user_loader_step(&loader, 10, 0)) != SL_OK) {
            failed = failed || err == SL_ERR_NOMEM;
            EXPECT(err == SL_ERR_NOMEM || err == SL_ERR_FULL);
        }
        ran_through = !failed;
        EXPECT_EQ(users.count, 1);
        EXPECT_EQ(sl_users_find(&users, SL_STR("ada"))->state, SL_USER_THERE);
        sl_user_loader_done(&loader);
        sl_users_done(&users);
        EXPECT_EQ(failing.block_count, 0);
        sl_store_close(store);
    }
}

/* --- without a server --- */

typedef struct listed {
    char text[512];
    sl_text names;
} listed;

static void list_one(void *ctx, const sl_user_admin_entry *entry)
{
    listed *const l = ctx;

    sl_text_add_str(&l->names, entry->name);
    for (size_t i = 0; i < entry->group_count; i++) {
        sl_text_add(&l->names, "+");
        sl_text_add_str(&l->names, entry->groups[i]);
    }
    sl_text_add(&l->names, entry->disabled ? "(disabled) " : " ");
}

static const char *list_all(sl_store *store, listed *l)
{
    char memory[256];
    sl_text problem;

    sl_text_init(&problem, memory, sizeof memory);
    sl_text_init(&l->names, l->text, sizeof l->text);
    EXPECT_OK(sl_user_admin_list(store, list_one, l, &problem));
    return l->text;
}

static bool password_is(sl_store *store, const char *name, sl_str password)
{
    char stream[64], hash[SL_PASSWORD_HASH_BYTES] = { 0 };
    const sl_str named = { stream, (size_t)snprintf(stream, sizeof stream, "$user-%s", name) };
    const sl_read how = { .stream = named, .backwards = true, .from = SL_REVISION_MAX };
    sl_cursor *cursor;
    sl_user_record record;
    sl_event event;
    sl_arena arena;
    uint32_t count;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 1024, 1 << 20 });
    EXPECT_OK(sl_store_read(store, &how, &cursor));
    EXPECT_OK(sl_cursor_next(cursor, &event, 1, &count));
    EXPECT_OK(sl_user_record_decode(event.data, &arena, &record));
    EXPECT(memmem(event.data.data, event.data.bytes, password.data, password.bytes) ==
           NULL); /* never in clear */
    memcpy(hash, record.hash.data, record.hash.bytes);
    sl_cursor_close(cursor);
    sl_arena_done(&arena);
    return crypto_pwhash_str_verify(hash, password.data, password.bytes) == 0;
}

TEST(users_can_be_added_changed_listed_and_removed_without_a_server)
{
    sl_store *const store = memory_store();
    const sl_str ops[] = { SL_STR("$ops") };
    char memory[256];
    sl_text problem;
    listed l;

    sl_text_init(&problem, memory, sizeof memory);
    EXPECT_STR(list_all(store, &l), "");
    EXPECT_ERR(sl_user_admin_add(store, SL_STR("bob"), SL_STR(""), ops, 1, SL_STR("password1"), 7, &problem),
               SL_ERR_INVALID);
    EXPECT(strstr(memory, "$admins") != NULL);
    EXPECT_OK(
        sl_user_admin_add(store, SL_STR("eve"), SL_STR("Eve"), admins, 1, SL_STR("password1"), 7, &problem));
    EXPECT_OK(sl_user_admin_add(store, SL_STR("bob"), SL_STR(""), ops, 1, SL_STR("password2"), 8, &problem));
    EXPECT_STR(list_all(store, &l), "bob+$ops eve+$admins ");
    EXPECT(password_is(store, "bob", SL_STR("password2")));
    EXPECT(!password_is(store, "bob", SL_STR("password1")));
    EXPECT_ERR(sl_user_admin_add(store, SL_STR("bob"), SL_STR(""), ops, 1, SL_STR("password2"), 8, &problem),
               SL_ERR_EXISTS);
    EXPECT_OK(sl_user_admin_set_password(store, SL_STR("bob"), SL_STR("password3"), 9, &problem));
    EXPECT(password_is(store, "bob", SL_STR("password3")));
    EXPECT_ERR(sl_user_admin_set_password(store, SL_STR("bob"), SL_STR("short"), 9, &problem),
               SL_ERR_INVALID);
    EXPECT_ERR(sl_user_admin_set_password(store, SL_STR("ghost"), SL_STR("password3"), 9, &problem),
               SL_ERR_NOT_FOUND);
    EXPECT_ERR(sl_user_admin_remove(store, SL_STR("eve"), 9, &problem), SL_ERR_INVALID);
    EXPECT_OK(sl_user_admin_remove(store, SL_STR("bob"), 9, &problem));
    EXPECT_STR(list_all(store, &l), "eve+$admins ");
    EXPECT_OK(sl_user_admin_add(store, SL_STR("bob"), SL_STR(""), NULL, 0, SL_STR("password4"), 8, &problem));
    EXPECT_STR(list_all(store, &l), "bob eve+$admins ");
    sl_store_close(store);
}

TEST(users_are_listed_from_a_slow_disk_without_a_server)
{
    const sl_journal_options options = { 0 };
    sl_faulty *const disk = sl_faulty_new();
    sl_store *store = NULL;
    char memory[256];
    sl_text problem;
    listed l;

    sl_text_init(&problem, memory, sizeof memory);
    EXPECT_OK(sl_store_open_faulty(&setup, &options, disk, &problem, &store));
    sl_faulty_slow_reads(disk, 1);
    EXPECT_OK(
        sl_user_admin_add(store, SL_STR("eve"), SL_STR("Eve"), admins, 1, SL_STR("password1"), 7, &problem));
    EXPECT_STR(list_all(store, &l), "eve+$admins ");
    sl_faulty_kill(disk);
    sl_text_init(&problem, memory, sizeof memory);
    EXPECT_ERR(sl_user_admin_list(store, list_one, &l, &problem), SL_ERR_IO);
    EXPECT(problem.bytes > 0);
    sl_store_close(store);
    sl_faulty_free(disk);
}
