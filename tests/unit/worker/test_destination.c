/* tests/unit/worker/test_destination.c — who may go now, with a breaker and a rate for each destination. */
#include "worker/destination.h"

#include "test.h"
#include "worker/destination_key.h"

#include <cjson/cJSON.h>
#include <stdio.h>

#define SECOND_NS UINT64_C(1000000000)
#define START_NS  (1000 * SECOND_NS)

static sl_destination_rules no_rules(void)
{
    return (sl_destination_rules){ 0 };
}

static sl_destination_rules by_stream(void)
{
    return (sl_destination_rules){ .key = SL_KEY_STREAM };
}

static sl_destination_rules with_breaker(void)
{
    return (sl_destination_rules){
        .key = SL_KEY_STREAM,
        .has_breaker = true,
        .breaker = { .failures_max = 2,
                     .bypasses_max = 2,
                     .cool_down_ns = 10 * SECOND_NS,
                     .cool_down_max_ns = 60 * SECOND_NS,
                     .probe_max_ns = 5 * SECOND_NS },
    };
}

static sl_destinations *new_all(sl_destination_rules rules)
{
    sl_destinations *all = NULL;

    EXPECT_OK(sl_destinations_new(&rules, &all));
    return all;
}

static sl_job *new_job(const char *stream, uint64_t number)
{
    sl_job *const job =
        sl_job_new(&(sl_job_message){ .stream = sl_str_from(stream), .revision = number, .attempt = 1 });

    assert_non_null(job);
    sl_list_init(&job->line);
    return job;
}

static void add(sl_destinations *all, const char *stream, uint64_t number)
{
    EXPECT_OK(sl_destinations_add(all, new_job(stream, number)));
}

static void end(sl_destinations *all, sl_job *job, sl_destination_result result, uint64_t now_ns)
{
    sl_destinations_ended(all, job, result, 0, now_ns);
    sl_job_free(job);
}

static sl_job *take(sl_destinations *all, uint64_t now_ns)
{
    uint64_t wake_ns;

    return sl_destinations_take(all, now_ns, NULL, &wake_ns);
}

/* Takes one, expects which, and says how it went. */
static void take_and_end(sl_destinations *all, uint64_t number, sl_destination_result result, uint64_t now_ns)
{
    sl_job *const job = take(all, now_ns);

    assert_non_null(job);
    EXPECT_EQ(job->message.revision, number);
    end(all, job, result, now_ns);
}

static void expect_wait(sl_destinations *all, uint64_t now_ns, uint64_t wake_ns)
{
    uint64_t is_ns = 0;

    assert_null(sl_destinations_take(all, now_ns, NULL, &is_ns));
    EXPECT_EQ(is_ns, wake_ns);
}

static size_t free_kept(sl_list *keeps)
{
    size_t count = 0;

    SL_LIST_EACH_SAFE (node, keeps) {
        sl_job *const job = SL_CONTAINER_OF(node, sl_job, line);

        assert_null(job->destination);
        sl_list_remove(&job->line);
        sl_job_free(job);
        count++;
    }
    return count;
}

static void empty(sl_destinations *all, uint64_t now_ns)
{
    sl_job *job;

    while ((job = take(all, now_ns)) != NULL)
        end(all, job, SL_DESTINATION_WORKED, now_ns);
    sl_destinations_free(all);
}

TEST(without_rules_jobs_go_in_order_and_at_once)
{
    sl_destinations *const all = new_all(no_rules());

    for (uint64_t i = 0; i < 100; i++)
        add(all, i % 2 == 0 ? "a" : "b", i);
    for (uint64_t i = 0; i < 100; i++)
        take_and_end(all, i, i % 3 == 0 ? SL_DESTINATION_FAILED : SL_DESTINATION_WORKED, START_NS);
    expect_wait(all, START_NS, UINT64_MAX);
    EXPECT_EQ(sl_destinations_count(all), 1);
    empty(all, START_NS);
}

TEST(a_job_that_could_not_begin_keeps_its_turn_and_one_that_is_removed_never_comes)
{
    sl_destinations *const all = new_all(no_rules());
    sl_job *const removed = new_job("a", 3);
    sl_job *first;

    add(all, "a", 1);
    add(all, "a", 2);
    EXPECT_OK(sl_destinations_add(all, removed));
    first = take(all, START_NS);
    sl_destinations_put_back(all, first);
    sl_destinations_remove(all, removed);
    sl_job_free(removed);
    take_and_end(all, 1, SL_DESTINATION_WORKED, START_NS);
    take_and_end(all, 2, SL_DESTINATION_WORKED, START_NS);
    expect_wait(all, START_NS, UINT64_MAX);
    empty(all, START_NS);
}

TEST(destinations_are_served_in_turn_however_much_waits_for_one)
{
    sl_destinations *const all = new_all(by_stream());
    static const uint64_t wanted[] = { 0, 100, 200, 1, 101, 201, 2, 3, 4 };

    for (uint64_t i = 0; i < 5; i++)
        add(all, "busy", i);
    for (uint64_t i = 0; i < 2; i++) {
        add(all, "b", 100 + i);
        add(all, "c", 200 + i);
    }
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        take_and_end(all, wanted[i], SL_DESTINATION_WORKED, START_NS);
    empty(all, START_NS);
}

TEST(one_at_a_time_keeps_the_order_of_a_key_while_other_keys_go_on_S4_27)
{
    sl_destination_rules rules = by_stream();
    rules.concurrent_max = 1;
    sl_destinations *const all = new_all(rules);
    sl_job *a, *b;

    add(all, "a", 1);
    add(all, "a", 2);
    add(all, "b", 3);
    a = take(all, START_NS);
    b = take(all, START_NS);
    EXPECT_EQ(a->message.revision, 1);
    EXPECT_EQ(b->message.revision, 3);
    expect_wait(all, START_NS, UINT64_MAX);
    end(all, b, SL_DESTINATION_WORKED, START_NS);
    expect_wait(all, START_NS, UINT64_MAX);
    sl_destinations_put_back(all, a); /* also when it could not begin */
    take_and_end(all, 1, SL_DESTINATION_FAILED, START_NS);
    take_and_end(all, 2, SL_DESTINATION_WORKED, START_NS);
    empty(all, START_NS);
}

TEST(one_per_second_and_key_is_one_per_second_and_key)
{
    sl_destination_rules rules = by_stream();
    rules.interval_ns = SECOND_NS;
    sl_destinations *const all = new_all(rules);

    for (uint64_t i = 0; i < 3; i++) {
        add(all, "a", i);
        add(all, "b", 10 + i);
    }
    for (uint64_t i = 0; i < 3; i++) {
        const uint64_t now_ns = START_NS + i * SECOND_NS;

        if (i > 0)
            expect_wait(all, now_ns - 1, now_ns);
        take_and_end(all, i, SL_DESTINATION_WORKED, now_ns);
        take_and_end(all, 10 + i, SL_DESTINATION_WORKED, now_ns);
    }
    expect_wait(all, START_NS + 2 * SECOND_NS, UINT64_MAX);
    add(all, "a", 3); /* being empty for a moment is no way around the rate */
    expect_wait(all, START_NS + 2 * SECOND_NS, START_NS + 3 * SECOND_NS);
    empty(all, START_NS + 3 * SECOND_NS);
}

TEST(a_job_that_is_put_back_has_not_used_its_turn_in_the_rate)
{
    sl_destination_rules rules = by_stream();
    rules.interval_ns = SECOND_NS;
    sl_destinations *const all = new_all(rules);

    add(all, "a", 1);
    add(all, "a", 2);
    sl_destinations_put_back(all, take(all, START_NS));
    take_and_end(all, 1, SL_DESTINATION_WORKED, START_NS);
    expect_wait(all, START_NS, START_NS + SECOND_NS);
    empty(all, START_NS + SECOND_NS);
}

TEST(a_rate_heeds_a_retry_after_for_all_that_waits)
{
    sl_destination_rules rules = by_stream();
    rules.interval_ns = SECOND_NS;
    sl_destinations *const all = new_all(rules);
    sl_job *job;

    add(all, "a", 1);
    add(all, "a", 2);
    job = take(all, START_NS);
    sl_destinations_ended(all, job, SL_DESTINATION_FAILED, 7 * SECOND_NS, START_NS);
    sl_job_free(job);
    expect_wait(all, START_NS + SECOND_NS, START_NS + 7 * SECOND_NS);
    empty(all, START_NS + 7 * SECOND_NS);
}

/* Two failures in a row of one destination. */
static void break_it(sl_destinations *all, const char *stream)
{
    for (uint64_t i = 0; i < 2; i++) {
        add(all, stream, 900 + i);
        take_and_end(all, 900 + i, SL_DESTINATION_FAILED, START_NS);
    }
}

TEST(outside_of_a_drain_an_open_breaker_holds_its_destination_and_lets_one_probe_through_S3_19)
{
    const uint64_t rested_ns = START_NS + 10 * SECOND_NS;
    sl_destinations *const all = new_all(with_breaker());
    sl_job *probe;

    break_it(all, "dead");
    EXPECT_EQ(sl_destinations_open_count(all, START_NS), 1);
    for (uint64_t i = 0; i < 3; i++)
        add(all, "dead", i);
    add(all, "well", 10);
    take_and_end(all, 10, SL_DESTINATION_WORKED, START_NS);
    expect_wait(all, START_NS, rested_ns);
    probe = take(all, rested_ns);
    EXPECT_EQ(probe->message.revision, 0);
    expect_wait(all, rested_ns, rested_ns + 5 * SECOND_NS);
    end(all, probe, SL_DESTINATION_WORKED,
        rested_ns + 1); /* the answer wakes the others, before any time does */
    take_and_end(all, 1, SL_DESTINATION_WORKED, rested_ns + 1);
    take_and_end(all, 2, SL_DESTINATION_WORKED, rested_ns + 1);
    EXPECT_EQ(sl_destinations_open_count(all, rested_ns + 1), 0);
    empty(all, rested_ns + 1);
}

TEST(a_probe_that_is_put_back_or_says_nothing_makes_room_for_another)
{
    const uint64_t rested_ns = START_NS + 10 * SECOND_NS;
    sl_destinations *const all = new_all(with_breaker());

    break_it(all, "dead");
    add(all, "dead", 1);
    add(all, "dead", 2);
    sl_destinations_put_back(all, take(all, rested_ns));
    take_and_end(all, 1, SL_DESTINATION_UNKNOWN, rested_ns);
    take_and_end(all, 2, SL_DESTINATION_WORKED, rested_ns);
    empty(all, rested_ns);
}

TEST(accepted_jobs_pass_an_open_breaker_in_a_drain_and_one_success_lets_all_flow_S3_18)
{
    sl_destinations *const all = new_all(with_breaker());

    break_it(all, "dead");
    for (uint64_t i = 0; i < 5; i++)
        add(all, "dead", i);
    expect_wait(all, START_NS, START_NS + 10 * SECOND_NS);
    sl_destinations_drain(all, START_NS + 5 * SECOND_NS);
    for (uint64_t i = 0; i < 5; i++)
        take_and_end(all, i, SL_DESTINATION_WORKED, START_NS + i);
    sl_destinations_drain_end(all);
    empty(all, START_NS + 9);
}

TEST(what_a_dead_destination_does_not_take_in_a_drain_is_kept_S3_39)
{
    sl_destinations *const all = new_all(with_breaker());
    sl_job *first, *second;
    uint64_t wake_ns = 0;
    sl_list keeps;

    sl_list_init(&keeps);
    break_it(all, "dead");
    for (uint64_t i = 0; i < 6; i++)
        add(all, "dead", i);
    add(all, "well", 10);
    sl_destinations_drain(all, START_NS + 5 * SECOND_NS);
    first = sl_destinations_take(all, START_NS, &keeps, &wake_ns);
    take_and_end(all, 10, SL_DESTINATION_WORKED, START_NS);
    second = sl_destinations_take(all, START_NS, &keeps, &wake_ns);
    assert_null(sl_destinations_take(all, START_NS, &keeps, &wake_ns)); /* both tries are out */
    EXPECT(sl_list_empty(&keeps));
    end(all, first, SL_DESTINATION_FAILED, START_NS + 1);
    assert_null(sl_destinations_take(all, START_NS + 1, &keeps, &wake_ns));
    EXPECT(sl_list_empty(&keeps));
    end(all, second, SL_DESTINATION_FAILED, START_NS + 2);
    assert_null(sl_destinations_take(all, START_NS + 2, &keeps, &wake_ns));
    EXPECT_EQ(SL_CONTAINER_OF(keeps.next, sl_job, line)->message.revision, 2);
    EXPECT_EQ(free_kept(&keeps), 4);
    EXPECT_EQ(wake_ns, UINT64_MAX);
    empty(all, START_NS + 2);
}

TEST(a_drain_does_not_sleep_for_turns_that_come_too_late_S3_37)
{
    sl_destination_rules rules = by_stream();
    rules.interval_ns = SECOND_NS;
    sl_destinations *const all = new_all(rules);
    uint64_t wake_ns = 0;
    sl_list keeps;

    sl_list_init(&keeps);
    for (uint64_t i = 0; i < 10; i++)
        add(all, "a", i);
    sl_destinations_drain(all, START_NS + 2 * SECOND_NS + 1); /* turns now, after 1 s and after 2 s */
    take_and_end(all, 0, SL_DESTINATION_WORKED,
                 START_NS); /* nobody wants kept ones yet: none is lost by that */
    assert_null(sl_destinations_take(all, START_NS, &keeps, &wake_ns));
    EXPECT_EQ(wake_ns, START_NS + SECOND_NS);
    EXPECT_EQ(SL_CONTAINER_OF(keeps.next, sl_job, line)->message.revision, 3);
    EXPECT_EQ(free_kept(&keeps), 7);
    take_and_end(all, 1, SL_DESTINATION_WORKED, START_NS + SECOND_NS);
    expect_wait(all, START_NS + SECOND_NS, START_NS + 2 * SECOND_NS);
    take_and_end(all, 2, SL_DESTINATION_WORKED, START_NS + 2 * SECOND_NS);
    expect_wait(all, START_NS + 2 * SECOND_NS, UINT64_MAX);
    empty(all, START_NS);
}

TEST(a_retry_after_beyond_the_drain_keeps_what_waits_S3_37)
{
    sl_destination_rules rules = by_stream();
    rules.interval_ns = SECOND_NS;
    sl_destinations *const all = new_all(rules);
    uint64_t wake_ns = 0;
    sl_job *job;
    sl_list keeps;

    sl_list_init(&keeps);
    add(all, "a", 1);
    add(all, "a", 2);
    job = take(all, START_NS);
    sl_destinations_drain(all, START_NS + 10 * SECOND_NS);
    sl_destinations_ended(all, job, SL_DESTINATION_FAILED, 60 * SECOND_NS, START_NS);
    sl_job_free(job);
    assert_null(sl_destinations_take(all, START_NS, &keeps, &wake_ns));
    EXPECT_EQ(free_kept(&keeps), 1);
    EXPECT_EQ(wake_ns, UINT64_MAX);
    empty(all, START_NS);
}

TEST(jobs_to_keep_that_nobody_wanted_wait_and_come_back_when_the_drain_is_taken_back_S4_20)
{
    sl_destinations *const all = new_all(by_stream());

    add(all, "a", 1);
    sl_destinations_drain(all, START_NS);
    expect_wait(all, START_NS, UINT64_MAX);
    sl_destinations_drain_end(all);
    take_and_end(all, 1, SL_DESTINATION_WORKED, START_NS);
    empty(all, START_NS);
}

TEST(jobs_to_keep_that_nobody_wanted_are_given_to_the_first_who_does_S3_37)
{
    sl_destinations *const all = new_all(by_stream());
    uint64_t wake_ns = 0;
    sl_list keeps;

    sl_list_init(&keeps);
    add(all, "a", 1);
    sl_destinations_drain(all, START_NS);
    expect_wait(all, START_NS, UINT64_MAX);
    assert_null(sl_destinations_take(all, START_NS, &keeps, &wake_ns));
    EXPECT_EQ(free_kept(&keeps), 1);
    empty(all, START_NS);
}

TEST(destinations_and_jobs_that_come_during_a_drain_are_judged_as_the_others_S3_39)
{
    sl_destinations *const all = new_all(with_breaker());
    uint64_t wake_ns = 0;
    sl_list keeps;

    sl_list_init(&keeps);
    sl_destinations_drain(all, START_NS + 5 * SECOND_NS);
    for (uint64_t i = 0; i < 5;
         i++) /* on its way when the gate was closed; two failures open, two tries end it */
        add(all, "new", i);
    for (uint64_t i = 0; i < 4; i++)
        take_and_end(all, i, SL_DESTINATION_FAILED, START_NS);
    assert_null(sl_destinations_take(all, START_NS, &keeps, &wake_ns));
    EXPECT_EQ(free_kept(&keeps), 1);
    add(all, "well", 10);
    take_and_end(all, 10, SL_DESTINATION_WORKED, START_NS);
    empty(all, START_NS);
}

/* --- keys --- */

TEST(a_key_is_named_in_words_and_nothing_else_is_taken)
{
    static const char *const wrong[] = {
        "", "stream ", "streams", "data", "data.", "metadata.", "Data.x", "x"
    };
    char longest[6 + 64] = "data.";
    sl_destination_rules rules = { 0 };

    EXPECT_OK(sl_key_parse(SL_STR("stream"), &rules));
    EXPECT_EQ(rules.key, SL_KEY_STREAM);
    EXPECT_OK(sl_key_parse(SL_STR("metadata.customer.id"), &rules));
    EXPECT_EQ(rules.key, SL_KEY_METADATA);
    EXPECT_STR(rules.field, "customer.id");
    EXPECT_OK(sl_key_parse(SL_STR("type"), &rules));
    EXPECT_STR(rules.field, "");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        EXPECT_ERR(sl_key_parse(sl_str_from(wrong[i]), &rules), SL_ERR_INVALID);
    EXPECT_ERR(sl_key_parse(SL_STR("data.a\0b"), &rules), SL_ERR_INVALID);
    memset(longest + 5, 'n', 63);
    EXPECT_OK(sl_key_parse(sl_str_from(longest), &rules));
    longest[5 + 63] = 'n';
    EXPECT_ERR(sl_key_parse((sl_str){ longest, 69 }, &rules), SL_ERR_INVALID);
}

TEST(a_key_out_of_json_survives_whatever_is_there_instead)
{
    static const struct {
        const char *data, *key;
    } rows[] = {
        { "{\"to\":\"anna\"}", "anna" },
        { "{\"to\":7}", "7" },
        { "{\"to\":true}", "true" },
        { "{\"to\":null}", "" },
        { "{\"to\":{\"to\":\"x\"}}", "" },
        { "{\"To\":\"anna\"}", "" },
        { "[\"to\"]", "" },
        { "{\"to\":", "" },
        { "\xff\xfe", "" },
        { "", "" },
    };
    const sl_destination_rules rules = { .key = SL_KEY_DATA, .field = "to" };
    sl_key_room room;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_job_message message = { .data = sl_str_from(rows[i].data) };
        const sl_str key = sl_destination_key_of(&rules, &message, &room);

        if (!sl_str_equal(key, sl_str_from(rows[i].key)))
            fail_msg("row %zu gave \"%.*s\"", i, (int)key.bytes, key.data);
    }
}

TEST(hostile_keys_are_cut_and_shown_as_text)
{
    static char longer[100000];
    sl_destinations *const all = new_all(by_stream());
    cJSON *const array = cJSON_CreateArray();
    char *shown;

    memset(longer, 0xC3, sizeof longer - 1);
    add(all, longer, 1);
    longer[SL_DESTINATION_KEY_BYTES_MAX] = 'x'; /* alike for as long as anybody looks */
    add(all, longer, 2);
    add(all, "\"}\n", 3);
    EXPECT_EQ(sl_destinations_count(all), 2);
    sl_destinations_describe(all, START_NS, array);
    EXPECT_EQ(cJSON_GetArraySize(array), 2);
    shown = cJSON_PrintUnformatted(array);
    EXPECT(strstr(shown, "\xC3") == NULL);
    EXPECT(strstr(shown, "\"\\\"}?\"") != NULL);
    cJSON_free(shown);
    cJSON_Delete(array);
    empty(all, START_NS);
}

TEST(destinations_with_nothing_to_remember_are_forgotten_when_there_are_many)
{
    sl_destinations *const all = new_all(with_breaker());
    char stream[32];

    break_it(all, "dead");
    for (uint64_t i = 0; i < 20000; i++) {
        (void)snprintf(stream, sizeof stream, "s-%u", (unsigned)i);
        add(all, stream, i);
        take_and_end(all, i, SL_DESTINATION_WORKED, START_NS);
    }
    EXPECT(sl_destinations_count(all) <= 1001);
    EXPECT_EQ(sl_destinations_open_count(all, START_NS), 1); /* this one had something to remember */
    empty(all, START_NS);
}

TEST(keys_beyond_the_limit_share_one_destination_and_keep_their_order)
{
    sl_destinations *const all = new_all(by_stream());
    char stream[32];
    uint64_t last = 0, seen = 0;
    sl_job *job;

    for (uint64_t i = 0; i < SL_DESTINATIONS_MAX + 100; i++) {
        (void)snprintf(stream, sizeof stream, "s-%u", (unsigned)i);
        add(all, stream, i);
    }
    add(all, "late", 1000001);
    EXPECT_EQ(sl_destinations_count(all), SL_DESTINATIONS_MAX);
    for (int i = 0; i < 5000; i++) /* makes room */
        end(all, take(all, START_NS), SL_DESTINATION_WORKED, START_NS);
    add(all, "late", 1000002);
    add(all, "late", 1000003);
    while ((job = take(all, START_NS)) != NULL) {
        if (sl_str_equal(job->message.stream, SL_STR("late"))) {
            EXPECT(job->message.revision > last);
            last = job->message.revision;
            seen++;
        }
        end(all, job, SL_DESTINATION_WORKED, START_NS);
    }
    EXPECT_EQ(seen, 3);
    add(all, "late", 1000004); /* nothing of it waits any more: it has its own again */
    EXPECT(sl_destinations_count(all) < SL_DESTINATIONS_MAX);
    empty(all, START_NS);
}

TEST(rules_of_a_breaker_that_make_no_sense_are_refused)
{
    sl_destination_rules rules = with_breaker();
    sl_destinations *all = NULL;

    rules.breaker.failures_max = 0;
    EXPECT_ERR(sl_destinations_new(&rules, &all), SL_ERR_INVALID);
    assert_null(all);
}
