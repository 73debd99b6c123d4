/* tests/unit/server/test_definition.c — what a group is, as text and back; what may be asked for; what it means for the core. */
#include "groups_rig.h"

#include "base/support.h"

typedef struct kept {
    sl_arena arena;
    sl_str text;
    sl_group_definition back;
} kept;

static void kept_init(kept *k)
{
    *k = (kept){ 0 };
    sl_arena_init(&k->arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
}

static sl_err through_text(kept *k, const sl_group_definition *definition)
{
    const sl_err err = sl_group_definition_encode(definition, &k->arena, &k->text);

    return err == SL_OK ? sl_group_definition_decode(k->text, &k->arena, &k->back) : err;
}

static bool same_time(sl_wire_group_time a, sl_wire_group_time b)
{
    return a.given == b.given && (!a.given || (a.in_ticks == b.in_ticks && a.value == b.value));
}

static bool same_limit(sl_wire_group_limit a, sl_wire_group_limit b)
{
    return a.given == b.given && (!a.given || a.value == b.value);
}

static bool same_filter(const sl_wire_filter *a, const sl_wire_filter *b)
{
    if (a->kind != b->kind || a->kind != SL_WIRE_FILTER_GIVEN)
        return a->kind == b->kind;
    for (size_t i = 0; i < a->prefix_count && i < b->prefix_count; i++)
        if (!sl_str_equal(a->prefixes[i], b->prefixes[i]))
            return false;
    return a->on == b->on && sl_str_equal(a->regex, b->regex) && a->prefix_count == b->prefix_count;
}

static bool same_settings(const sl_wire_group_settings *a, const sl_wire_group_settings *b)
{
    return a->resolve_links == b->resolve_links && a->extra_statistics == b->extra_statistics &&
           same_time(a->message_timeout, b->message_timeout) &&
           same_time(a->checkpoint_after, b->checkpoint_after) && a->max_retry_count == b->max_retry_count &&
           a->min_checkpoint_count == b->min_checkpoint_count &&
           a->max_checkpoint_count == b->max_checkpoint_count &&
           a->max_subscriber_count == b->max_subscriber_count && a->live_buffer_size == b->live_buffer_size &&
           a->read_batch_size == b->read_batch_size && a->history_buffer_size == b->history_buffer_size &&
           same_limit(a->max_interrupts, b->max_interrupts) && same_limit(a->max_kills, b->max_kills) &&
           sl_str_equal(a->strategy, b->strategy);
}

static bool same(const sl_group_definition *a, const sl_group_definition *b)
{
    return a->of_all == b->of_all && sl_str_equal(a->stream, b->stream) && sl_str_equal(a->name, b->name) &&
           a->start == b->start && a->from == b->from && same_filter(&a->filter, &b->filter) &&
           same_settings(&a->settings, &b->settings);
}

static void expect_kept(const sl_group_definition *definition)
{
    kept k;

    kept_init(&k);
    EXPECT_OK(through_text(&k, definition));
    EXPECT(same(definition, &k.back));
    sl_arena_done(&k.arena);
}

/* --- there and back --- */

TEST(a_definition_comes_back_as_it_was)
{
    sl_group_definition d = groups_definition("orders", "g");

    expect_kept(&d);
    d.start = SL_WIRE_START_END;
    d.from = 17;
    expect_kept(&d);
    d.start = SL_WIRE_START_GIVEN;
    d.from = SL_REVISION_MAX;
    expect_kept(&d);
    d = groups_definition("$all", "g");
    d.start = SL_WIRE_START_GIVEN;
    d.from = UINT64_MAX;
    expect_kept(&d);
    d = groups_definition("Bestellungen \"\xc3\xa4\\\n\x01", "gr\xe2\x82\xac::\xf0\x9f\x98\x80");
    expect_kept(&d);
}

TEST(every_setting_comes_back_whatever_its_value)
{
    static const int32_t numbers[] = { 0, 1, -1, 500, INT32_MAX, INT32_MIN };
    static const int64_t times[] = { 0, 1, -1, 30000, INT64_MAX, INT64_MIN, (INT64_C(1) << 53) + 1 };
    sl_group_definition d = groups_definition("orders", "g");

    d.settings.resolve_links = d.settings.extra_statistics = true;
    d.settings.message_timeout.given = false;
    expect_kept(&d);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        d.settings.max_retry_count = numbers[i];
        d.settings.min_checkpoint_count = numbers[(i + 1) % 6];
        d.settings.max_checkpoint_count = numbers[(i + 2) % 6];
        d.settings.max_subscriber_count = numbers[(i + 3) % 6];
        d.settings.live_buffer_size = numbers[(i + 4) % 6];
        expect_kept(&d);
    }
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        d.settings.message_timeout = (sl_wire_group_time){ .given = true, .value = times[i] };
        d.settings.checkpoint_after = (sl_wire_group_time){ true, true, times[i] };
        expect_kept(&d);
    }
    d.settings.max_interrupts = (sl_wire_group_limit){ true, 0 };
    expect_kept(&d);
    d.settings.max_kills = (sl_wire_group_limit){ true, INT32_MAX };
    expect_kept(&d);
    d.settings.read_batch_size = INT32_MIN;
    d.settings.history_buffer_size = INT32_MAX;
    expect_kept(&d);
    for (int i = 0; i < SL_STRATEGY_COUNT_; i++) {
        d.settings.strategy = sl_str_from(sl_strategy_name((sl_strategy)i));
        expect_kept(&d);
    }
}

TEST(a_filter_comes_back_with_commas_quotes_and_a_thousand_prefixes)
{
    static const sl_str odd[] = { SL_STR_INIT("a,b"), SL_STR_INIT("\"\\"), SL_STR_INIT("\xc3\xa4") };
    static sl_str many[SL_FILTER_PREFIXES_MAX];
    sl_group_definition d = groups_definition("$all", "g");

    d.filter = (sl_wire_filter){
        .kind = SL_WIRE_FILTER_GIVEN, .on = SL_WIRE_FILTER_ON_TYPE, .prefixes = odd, .prefix_count = 3
    };
    expect_kept(&d);
    d.filter.on = SL_WIRE_FILTER_ON_STREAM;
    d.filter.regex = SL_STR("^[^$].*\\d+\"$");
    d.filter.prefix_count = 0;
    expect_kept(&d);
    for (size_t i = 0; i < SL_FILTER_PREFIXES_MAX; i++)
        many[i] = SL_STR("0123456789abcdef0123456789");
    d.filter = (sl_wire_filter){ .kind = SL_WIRE_FILTER_GIVEN,
                                 .on = SL_WIRE_FILTER_ON_TYPE,
                                 .prefixes = many,
                                 .prefix_count = SL_FILTER_PREFIXES_MAX };
    expect_kept(&d);
}

TEST(a_definition_that_the_store_would_not_take_is_too_large)
{
    static char long_text[62]; /* all together not too long for a filter */
    static sl_str many[SL_FILTER_PREFIXES_MAX];
    sl_group_definition d = groups_definition("$all", "g");
    kept k;

    kept_init(&k);
    memset(long_text, 'x', sizeof long_text);
    for (size_t i = 0; i < SL_FILTER_PREFIXES_MAX; i++)
        many[i] = (sl_str){ long_text, sizeof long_text };
    d.filter = (sl_wire_filter){ .kind = SL_WIRE_FILTER_GIVEN,
                                 .on = SL_WIRE_FILTER_ON_TYPE,
                                 .prefixes = many,
                                 .prefix_count = SL_FILTER_PREFIXES_MAX };
    EXPECT_ERR(through_text(&k, &d), SL_ERR_TOO_LARGE);
    sl_arena_done(&k.arena);
}

TEST(texts_that_would_not_come_back_are_not_written)
{
    sl_group_definition d = groups_definition("orders", "g");
    sl_str bad = SL_STR("a\0b"), prefixes[] = { SL_STR_INIT("a"), SL_STR_INIT("\xff") };
    kept k;

    kept_init(&k);
    d.name = bad;
    EXPECT_ERR(through_text(&k, &d), SL_ERR_INVALID);
    d = groups_definition("orders", "g");
    d.stream = SL_STR("\xc3");
    EXPECT_ERR(through_text(&k, &d), SL_ERR_INVALID);
    d = groups_definition("$all", "g");
    d.filter = (sl_wire_filter){
        .kind = SL_WIRE_FILTER_GIVEN, .on = SL_WIRE_FILTER_ON_TYPE, .prefixes = prefixes, .prefix_count = 2
    };
    EXPECT_ERR(through_text(&k, &d), SL_ERR_INVALID);
    d.filter.prefix_count = 1;
    EXPECT_OK(through_text(&k, &d));
    sl_arena_done(&k.arena);
}

/* Those that were written before these limits could be set, and those of clients that do not know them. */
TEST(a_definition_without_limits_of_interruptions_and_kills_has_the_usual_ones_B6)
{
    sl_group_definition d = groups_definition("orders", "g");
    sl_settings settings;
    kept k;

    kept_init(&k);
    EXPECT_OK(through_text(&k, &d));
    EXPECT(strstr(k.text.data, "maxInterrupts") == NULL && strstr(k.text.data, "maxKills") == NULL);
    settings = sl_group_definition_settings(&k.back);
    EXPECT(settings.interrupts_max == 20 && settings.kills_max == 5);
    d.settings.max_interrupts = (sl_wire_group_limit){ true, 0 };
    d.settings.max_kills = (sl_wire_group_limit){ true, 1 };
    EXPECT_OK(through_text(&k, &d));
    settings = sl_group_definition_settings(&k.back);
    EXPECT(settings.interrupts_max == 0 && settings.kills_max == 1);
    sl_arena_done(&k.arena);
}

/* --- damage --- */

static sl_err decode(const char *text)
{
    kept k;
    sl_err err;

    kept_init(&k);
    err = sl_group_definition_decode(sl_str_from(text), &k.arena, &k.back);
    sl_arena_done(&k.arena);
    return err;
}

/* `with` in place of the first `part`. */
static sl_err decode_replaced(sl_str text, const char *part, const char *with)
{
    char copy[4096];
    const char *const at = strstr(text.data, part);

    assert_non_null(at);
    snprintf(copy, sizeof copy, "%.*s%s%s", (int)(at - text.data), text.data, with, at + strlen(part));
    return decode(copy);
}

TEST(a_damaged_definition_is_corrupt_and_not_something_else)
{
    static const struct {
        const char *part, *with;
    } rows[] = {
        { "\"version\":1", "\"version\":2" },
        { "\"version\":1", "\"version\":\"1\"" },
        { "\"all\":true", "\"all\":1" },
        { "\"all\":true", "\"all\":false" },
        { "\"stream\":\"$all\"", "\"stream\":\"\"" },
        { "\"stream\":\"$all\"", "\"stream\":7" },
        { "\"group\":\"g\"", "\"group\":\"\"" },
        { "\"group\":\"g\"", "\"grupp\":\"g\"" },
        { "\"start\":\"begin\"", "\"start\":\"\"" },
        { "\"start\":\"begin\"", "\"start\":\"middle\"" },
        { "\"from\":\"0\"", "\"from\":0" },
        { "\"from\":\"0\"", "\"from\":\"-1\"" },
        { "\"from\":\"0\"", "\"from\":\"18446744073709551616\"" },
        { "\"on\":\"type\"", "\"on\":\"both\"" },
        { "\"regex\":\"\"", "\"regex\":null" },
        { "\"regex\":\"\"", "\"regex\":\"(\"" },
        { "[\"a\"]", "[1]" },
        { "[\"a\"]", "[]" },
        { "[\"a\"]", "\"a\"" },
        { "\"30000 ms\"", "\"30000\"" },
        { "\"30000 ms\"", "\"30000 s\"" },
        { "\"30000 ms\"", "\"9223372036854775808 ms\"" },
        { "\"30000 ms\"", "\"-9223372036854775809 ms\"" },
        { "\"30000 ms\"", "30000" },
        { "\"RoundRobin\"", "\"Robin\"" },
        { "\"resolveLinkTos\":false", "\"resolveLinkTos\":0" },
        { "\"maxRetryCount\":10", "\"maxRetryCount\":10.5" },
        { "\"maxRetryCount\":10", "\"maxRetryCount\":2147483648" },
        { "\"maxRetryCount\":10", "\"maxRetryCount\":1e999" },
        { "\"historyBufferSize\":500", "\"historyBufferSize\":20" },
        { "\"maxRetryCount\":10", "\"maxRetryCount\":10,\"maxKills\":-1" },
        { "\"maxRetryCount\":10", "\"maxRetryCount\":10,\"maxKills\":null" },
        { "\"maxRetryCount\":10", "\"maxRetryCount\":10,\"maxInterrupts\":\"1\"" },
        { "\"maxRetryCount\":10", "\"maxRetryCount\":10,\"maxInterrupts\":1.5" },
        { "\"settings\":", "\"setings\":" },
    };
    const sl_str prefixes[] = { SL_STR_INIT("a") };
    sl_group_definition d = groups_definition("$all", "g");
    kept k;

    kept_init(&k);
    d.filter = (sl_wire_filter){
        .kind = SL_WIRE_FILTER_GIVEN, .on = SL_WIRE_FILTER_ON_TYPE, .prefixes = prefixes, .prefix_count = 1
    };
    EXPECT_OK(through_text(&k, &d));
    EXPECT_OK(decode_replaced(k.text, "{", "{"));
    EXPECT_OK(decode_replaced(k.text, "{", "{\"later\":[1,2],"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT_ROW(decode_replaced(k.text, rows[i].part, rows[i].with) == SL_ERR_CORRUPT, i);
    sl_arena_done(&k.arena);
}

TEST(every_beginning_of_a_definition_is_corrupt)
{
    const sl_group_definition d = groups_definition("orders", "g");
    sl_group_definition back;
    kept k;

    kept_init(&k);
    EXPECT_OK(through_text(&k, &d));
    for (size_t bytes = 0; bytes < k.text.bytes; bytes++)
        EXPECT_ROW(sl_group_definition_decode((sl_str){ k.text.data, bytes }, &k.arena, &back) ==
                       SL_ERR_CORRUPT,
                   bytes);
    sl_arena_done(&k.arena);
}

TEST(bytes_that_change_give_a_definition_that_is_right_or_corrupt)
{
    const sl_group_definition d = groups_definition("orders", "g");
    const char *reason;
    char copy[2048];
    kept k;

    kept_init(&k);
    EXPECT_OK(through_text(&k, &d));
    EXPECT(k.text.bytes < sizeof copy);
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        dice d6 = dice_from(seed);
        sl_err err;

        memcpy(copy, k.text.data, k.text.bytes);
        copy[dice_pick(&d6, k.text.bytes)] = (char)dice_pick(&d6, 256);
        copy[dice_pick(&d6, k.text.bytes)] = "\"{}[]:,0-9\\"[dice_pick(&d6, 11)];
        sl_arena_reset(&k.arena);
        err = sl_group_definition_decode((sl_str){ copy, k.text.bytes }, &k.arena, &k.back);
        EXPECT_RUN(err == SL_OK || err == SL_ERR_CORRUPT, seed, 0);
        EXPECT_RUN(err != SL_OK || sl_group_definition_check(&k.back, &reason) == SL_OK, seed, 1);
        sl_arena_reset(&k.arena); /* the text was in it */
        EXPECT_OK(sl_group_definition_encode(&d, &k.arena, &k.text));
    }
    sl_arena_done(&k.arena);
}

TEST(without_memory_a_definition_is_neither_written_nor_read)
{
    const sl_str prefixes[] = { SL_STR_INIT("a"), SL_STR_INIT("b") };
    sl_group_definition d = groups_definition("$all", "g"), back;
    sl_str text;
    kept k;

    kept_init(&k);
    d.filter = (sl_wire_filter){
        .kind = SL_WIRE_FILTER_GIVEN, .on = SL_WIRE_FILTER_ON_TYPE, .prefixes = prefixes, .prefix_count = 2
    };
    EXPECT_OK(through_text(&k, &d));
    for (size_t limit = 0; limit < 1200; limit += 16) {
        sl_arena small;
        sl_err err;

        sl_arena_init(&small, &sl_alloc_default, (sl_arena_sizes){ 256, limit });
        err = sl_group_definition_encode(&d, &small, &text);
        EXPECT_ROW(err == SL_OK || err == SL_ERR_NOMEM, limit);
        EXPECT_ROW(limit >= 256 || err == SL_ERR_NOMEM, limit);
        sl_arena_reset(&small);
        err = sl_group_definition_decode(k.text, &small, &back);
        EXPECT_ROW(err == SL_OK || err == SL_ERR_NOMEM, limit);
        EXPECT_ROW(limit >= 64 || err == SL_ERR_NOMEM, limit);
        sl_arena_done(&small);
    }
    sl_arena_done(&k.arena);
}

/* --- what may be asked for --- */

static const char *wrong_with(const sl_group_definition *definition)
{
    const char *reason = NULL;
    const sl_err err = sl_group_definition_check(definition, &reason);

    EXPECT(err == SL_OK || (err == SL_ERR_INVALID && reason != NULL));
    return err == SL_OK ? "" : reason;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* kurrent-semantics 2.1 */
TEST(a_definition_is_checked_in_the_order_of_the_real_server)
{
    sl_group_definition d = groups_definition("", "");

    d.settings.strategy = SL_STR("Nobody");
    d.start = SL_WIRE_START_GIVEN;
    d.from = SL_REVISION_MAX + 1;
    d.settings.read_batch_size = 500;
    EXPECT_STR(wrong_with(&d), "Bad stream name.");
    d.stream = SL_STR("$all");
    EXPECT_STR(wrong_with(&d),
               "Persistent subscriptions to $all are only supported over gRPC through gRPC clients");
    d.stream = SL_STR("orders");
    EXPECT(begins(wrong_with(&d), "Bad group name"));
    d.name = SL_STR("g");
    EXPECT_STR(wrong_with(&d), "Consumer strategy Nobody does not exist.");
    d.settings.strategy = SL_STR("Pinned");
    EXPECT(begins(wrong_with(&d), "Invalid Start From position:"));
    d.from = SL_REVISION_MAX;
    EXPECT(begins(wrong_with(&d), "The read batch size must be smaller"));
    d.settings.read_batch_size = 499;
    EXPECT_STR(wrong_with(&d), "");
    d.start = SL_WIRE_START_UNSET;
    EXPECT(begins(wrong_with(&d), "Invalid Start From position:"));
}

TEST(a_strategy_is_called_by_its_exact_name)
{
    static char long_name[4096];
    sl_group_definition d = groups_definition("orders", "g");

    d.settings.strategy = SL_STR("roundrobin");
    EXPECT_STR(wrong_with(&d), "Consumer strategy roundrobin does not exist.");
    d.settings.strategy = SL_STR("");
    EXPECT_STR(wrong_with(&d), "Consumer strategy  does not exist.");
    memset(long_name, 'x', sizeof long_name);
    d.settings.strategy = (sl_str){ long_name, sizeof long_name };
    EXPECT_STR(wrong_with(&d), "Consumer strategy of this name does not exist.");
    d.settings.strategy = SL_STR("a\nb\xff");
    EXPECT_STR(wrong_with(&d), "Consumer strategy of this name does not exist.");
}

TEST(names_are_so_short_that_the_parked_stream_has_a_name)
{
    static char name[2048];
    const size_t around = strlen("$$$persistentsubscription-::-parked");
    sl_group_definition d = groups_definition("orders", "g");

    memset(name, 'n', sizeof name);
    d.name = (sl_str){ name, SL_GROUP_NAME_BYTES_MAX };
    EXPECT_STR(wrong_with(&d), "");
    d.name.bytes++;
    EXPECT(begins(wrong_with(&d), "Bad group name"));
    d.name.bytes = 100;
    d.stream = (sl_str){ name, SL_STREAM_NAME_BYTES_MAX - around - 100 };
    EXPECT_STR(wrong_with(&d), "");
    d.stream.bytes++;
    EXPECT(begins(wrong_with(&d), "The names of stream and group are too long together"));
    d.stream.bytes = SL_STREAM_NAME_BYTES_MAX + 1;
    EXPECT(begins(wrong_with(&d), "Bad stream name"));
    d.stream = SL_STR("a\0b");
    EXPECT(begins(wrong_with(&d), "Bad stream name"));
    d = groups_definition("orders", "\xff");
    EXPECT(begins(wrong_with(&d), "Bad group name"));
}

TEST(a_filter_must_be_one)
{
    static char long_text[SL_FILTER_EXPRESSION_BYTES_MAX + 1];
    const sl_str prefixes[] = { SL_STR_INIT("a"), SL_STR_INIT("b\xff") };
    sl_group_definition d = groups_definition("$all", "g");

    d.filter.kind = SL_WIRE_FILTER_GIVEN;
    EXPECT(begins(wrong_with(&d), "The filter must say"));
    d.filter.on = SL_WIRE_FILTER_ON_TYPE;
    EXPECT(begins(wrong_with(&d), "The filter has neither"));
    d.filter.prefixes = prefixes;
    d.filter.prefix_count = 2;
    EXPECT(begins(wrong_with(&d), "A prefix of the filter"));
    d.filter.prefix_count = 1;
    EXPECT_STR(wrong_with(&d), "");
    d.filter.regex = SL_STR("[");
    EXPECT(begins(wrong_with(&d), "The filter is no valid regular expression"));
    memset(long_text, 'x', sizeof long_text);
    d.filter.regex = (sl_str){ long_text, sizeof long_text };
    EXPECT(begins(wrong_with(&d), "The filter is too long"));
    d.filter.regex = SL_STR("x\0y");
    EXPECT(begins(wrong_with(&d), "The filter's expression"));
    d.filter.regex = SL_STR("^x");
    EXPECT_STR(wrong_with(&d), "");
    d.of_all = false;
    d.stream = SL_STR("orders");
    EXPECT(begins(wrong_with(&d), "Only a subscription to $all"));
}

/* --- what it means --- */

static uint64_t lease_of(bool in_ticks, int64_t value)
{
    sl_group_definition d = groups_definition("orders", "g");

    d.settings.message_timeout = (sl_wire_group_time){ true, in_ticks, value };
    return sl_group_definition_settings(&d).lease_ns;
}

/* kurrent-semantics 2.2 */
TEST(a_timeout_has_a_meaning_whatever_it_is)
{
    sl_group_definition d = groups_definition("orders", "g");

    EXPECT_EQ(lease_of(false, 30000), 30 * GROUPS_SECOND_NS);
    EXPECT_EQ(lease_of(true, 300000000), 30 * GROUPS_SECOND_NS);
    EXPECT_EQ(lease_of(true, 1), 1000000);
    EXPECT_EQ(lease_of(false, 0), GROUPS_SECOND_NS);
    EXPECT_EQ(lease_of(false, -5), GROUPS_SECOND_NS);
    EXPECT_EQ(lease_of(true, INT64_MIN), GROUPS_SECOND_NS);
    EXPECT_EQ(lease_of(true, INT64_MAX), SL_LEASE_NS_MAX);
    EXPECT_EQ(lease_of(false, INT64_MAX), SL_LEASE_NS_MAX);
    d.settings.message_timeout.given = false;
    EXPECT_EQ(sl_group_definition_settings(&d).lease_ns, GROUPS_SECOND_NS);
}

TEST(settings_reach_the_core)
{
    sl_group_definition d = groups_definition("orders", "g");
    sl_settings settings;

    d.settings.max_subscriber_count = 7;
    d.settings.strategy = SL_STR("PinnedByCorrelation");
    d.settings.max_retry_count = 3;
    d.settings.history_buffer_size = 77;
    settings = sl_group_definition_settings(&d);
    EXPECT_EQ(settings.strategy, SL_STRATEGY_PINNED_BY_CORRELATION);
    EXPECT_EQ(settings.retries_max, 3);
    EXPECT_EQ(settings.buffer_max, 77);
    EXPECT_EQ(settings.consumers_max, 7);
    EXPECT_EQ(settings.checkpoint_after_ns, 2 * GROUPS_SECOND_NS);
    EXPECT_EQ(settings.checkpoint_count_min, 10);
    EXPECT_EQ(settings.checkpoint_count_max, 1000);
    d.settings.max_subscriber_count = -1;
    EXPECT_EQ(sl_group_definition_settings(&d).consumers_max, 0); /* no limit */
}

TEST(odd_settings_never_make_the_core_refuse)
{
    static const int32_t numbers[] = { 0, 1, -1, INT32_MAX, INT32_MIN, 500 };
    static const int64_t times[] = { 0, 1, -1, INT64_MAX, INT64_MIN, 2000 };

    for (uint64_t seed = 1; seed <= 500; seed++) {
        sl_group_definition d = groups_definition("orders", "g");
        dice d6 = dice_from(seed);
        sl_settings settings;
        const char *field;

        d.settings.message_timeout =
            (sl_wire_group_time){ dice_pick(&d6, 2) == 0, dice_pick(&d6, 2) == 0, times[dice_pick(&d6, 6)] };
        d.settings.checkpoint_after =
            (sl_wire_group_time){ dice_pick(&d6, 2) == 0, dice_pick(&d6, 2) == 0, times[dice_pick(&d6, 6)] };
        d.settings.max_retry_count = numbers[dice_pick(&d6, 6)];
        d.settings.min_checkpoint_count = numbers[dice_pick(&d6, 6)];
        d.settings.max_checkpoint_count = numbers[dice_pick(&d6, 6)];
        d.settings.max_subscriber_count = numbers[dice_pick(&d6, 6)];
        d.settings.history_buffer_size = numbers[dice_pick(&d6, 6)];
        settings = sl_group_definition_settings(&d);
        EXPECT_RUN(sl_settings_validate(&settings, &field) == SL_OK, seed, 0);
        EXPECT_RUN(settings.buffer_max >= 1 && settings.buffer_max <= SL_DESK_MESSAGES_MAX, seed, 1);
    }
}
