/* Access lists: what JSON means, and who is let in (shared semantics, section 25). */
#include "test.h"

#include "base/support.h"
#include "server/acl.h"

static const sl_str ada_groups[] = { SL_STR_INIT("$ops"), SL_STR_INIT("sales") };
static const sl_identity ada = {
    .name = SL_STR_INIT("ada"), .groups = ada_groups, .group_count = 2, .is_operator = true
};
static const sl_identity bob = { .name = SL_STR_INIT("bob") };
static const sl_identity nobody = { 0 };
static const sl_identity admin = { .name = SL_STR_INIT("root"), .is_admin = true };
static const sl_identity trusted = { .is_trusted = true };

static sl_acl *acl_of(const char *json)
{
    sl_acl *acl = NULL;

    EXPECT_OK(sl_acl_parse(sl_str_from(json), "$acl", &sl_alloc_default, &acl));
    return acl;
}

static bool allows(const char *json, const sl_identity *identity, sl_right right)
{
    const sl_acl_question question = { .identity = identity, .right = right };
    sl_acl *const acl = acl_of(json);
    const bool allowed = sl_acl_allows(&question, acl, NULL);

    sl_acl_free(&sl_alloc_default, acl);
    return allowed;
}

TEST(acl_names_are_users_groups_or_everybody)
{
    static const struct {
        const char *json;
        bool ada, bob, nobody;
    } rows[] = {
        { "{\"$acl\":{\"$r\":\"ada\"}}", true, false, false },
        { "{\"$acl\":{\"$r\":[\"ada\",\"bob\"]}}", true, true, false },
        { "{\"$acl\":{\"$r\":\"sales\"}}", true, false, false },
        { "{\"$acl\":{\"$r\":[\"x\",\"$ops\"]}}", true, false, false },
        { "{\"$acl\":{\"$r\":\"$all\"}}", true, true, false },
        { "{\"$acl\":{\"$r\":\"$admins\"}}", false, false, false },
        { "{\"$acl\":{\"$r\":[]}}", false, false, false },
        { "{\"$acl\":{\"$r\":\"\"}}", false, false, false },
        { "{\"$acl\":{\"$r\":[\"\"]}}", false, false, false },
        { "{\"$acl\":{\"$r\":[\"ADA\",\"ad\",\"adaa\"]}}", false, false, false },
        { "{\"$acl\":{\"$r\":\"bob\",\"$r\":\"ada\"}}", true, false, false }, /* the last one counts */
        { "{\"$acl\":{\"$w\":\"ada\"}}", true, true, false },                 /* not named: the default */
        { "{\"$acl\":{\"$r\":null}}", true, true, false },
        { "{\"$acl\":{\"$r\":5}}", false, false, false }, /* not understood: nobody */
        { "{\"$acl\":{\"$r\":{\"a\":1}}}", false, false, false },
        { "{\"$acl\":{\"$r\":[1,null,\"bob\",[\"ada\"]]}}", false, true, false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_ROW(allows(rows[i].json, &ada, SL_RIGHT_READ) == rows[i].ada, i);
        EXPECT_ROW(allows(rows[i].json, &bob, SL_RIGHT_READ) == rows[i].bob, i);
        EXPECT_ROW(allows(rows[i].json, &nobody, SL_RIGHT_READ) == rows[i].nobody, i);
        EXPECT_ROW(allows(rows[i].json, &admin, SL_RIGHT_READ), i);
        EXPECT_ROW(allows(rows[i].json, &trusted, SL_RIGHT_READ), i);
    }
}

TEST(acl_each_right_stands_for_itself)
{
    static const char json[] =
        "{\"$acl\":{\"$r\":\"a\",\"$w\":\"b\",\"$d\":\"c\",\"$mr\":\"d\",\"$mw\":[\"e\",\"f\"]}}";
    static const char *const names[SL_RIGHT_COUNT_] = { "a", "b", "c", "d", "f" };

    for (size_t who = 0; who < SL_RIGHT_COUNT_; who++)
        for (size_t right = 0; right < SL_RIGHT_COUNT_; right++) {
            const sl_identity identity = { .name = sl_str_from(names[who]) };

            EXPECT_EQ(allows(json, &identity, (sl_right)right), who == right);
        }
}

TEST(acl_without_an_object_is_no_list)
{
    static const char *const rows[] = {
        "",
        "x",
        "[]",
        "{}",
        "{\"$acl\":1}",
        "{\"$acl\":null}",
        "{\"$acl\":[\"$r\"]}",
        "{\"$acl\":{}} trailing",
        "{\"$acl\":{\"$r\":\"a\"}",
        "\"$acl\"",
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_acl *acl = NULL;

        EXPECT_ROW(sl_acl_parse(sl_str_from(rows[i]), "$acl", &sl_alloc_default, &acl) == SL_ERR_EMPTY, i);
        EXPECT_ROW(acl == NULL, i);
    }
}

TEST(acl_falls_from_the_stream_to_the_defaults_to_what_is_built_in)
{
    sl_acl *const own = acl_of("{\"$acl\":{\"$r\":\"ada\"}}");
    sl_acl *const defaults = acl_of("{\"$acl\":{\"$r\":\"bob\",\"$w\":\"bob\"}}");
    sl_acl_question q = { .identity = &bob, .right = SL_RIGHT_READ };

    EXPECT(!sl_acl_allows(&q, own, defaults)); /* the stream's own says ada */
    EXPECT(sl_acl_allows(&q, NULL, defaults));
    q.right = SL_RIGHT_WRITE;
    EXPECT(sl_acl_allows(&q, own, defaults));
    q.identity = &ada;
    EXPECT(!sl_acl_allows(&q, own, defaults));
    q.right = SL_RIGHT_DELETE; /* named by none */
    EXPECT(sl_acl_allows(&q, own, defaults));
    q.is_system = true;
    EXPECT(!sl_acl_allows(&q, own, defaults));
    EXPECT(!sl_acl_allows(&q, NULL, NULL));
    q.identity = &admin;
    EXPECT(sl_acl_allows(&q, own, defaults));
    sl_acl_free(&sl_alloc_default, own);
    sl_acl_free(&sl_alloc_default, defaults);
}

TEST(acl_admits_callers_without_a_name_only_where_the_server_does)
{
    sl_acl *const everybody = acl_of("{\"$acl\":{\"$r\":\"$all\",\"$w\":[\"ada\",\"\"]}}");
    sl_acl_question q = { .identity = &nobody, .right = SL_RIGHT_READ };

    EXPECT(!sl_acl_allows(&q, everybody, NULL));
    EXPECT(!sl_acl_allows(&q, NULL, NULL));
    q.admit_anonymous = true;
    EXPECT(sl_acl_allows(&q, everybody, NULL));
    EXPECT(sl_acl_allows(&q, NULL, NULL));
    q.right = SL_RIGHT_WRITE; /* an empty name is not the name of nobody */
    EXPECT(!sl_acl_allows(&q, everybody, NULL));
    q.right = SL_RIGHT_READ;
    q.is_system = true;
    EXPECT(!sl_acl_allows(&q, NULL, NULL));
    sl_acl_free(&sl_alloc_default, everybody);
}
