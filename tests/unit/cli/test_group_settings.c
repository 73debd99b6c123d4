/* Rules of cli/group_settings.h and cli/consumer_who.h: from words to a request, without a server. */
#include "base/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/consumer_who.h"
#include "cli/group_settings.h"

enum {
    GROUP_WORDS_MAX = 16
};

static const char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

/* A command line after its command has been found. One in a process: values point into it. */
typedef struct said {
    char line[256];
    char *words[GROUP_WORDS_MAX + 1];
    sl_option_value values[SL_OPT_COUNT_];
    sl_option_table table;
    sl_option_reading reading;
    sl_invocation invocation;
    char *out, *err;
    size_t out_bytes, err_bytes;
} said;
static said s;

static const sl_invocation *say(const char *command, const char *line)
{
    memset(&s, 0, sizeof s);
    snprintf(s.line, sizeof s.line, "%s", line);
    for (char *word = strtok(s.line, " "); word != NULL; word = strtok(NULL, " "))
        s.words[s.reading.word_count++] = word;
    s.invocation.command = sl_command_find(command);
    s.table = sl_command_options(s.invocation.command);
    s.reading.table = &s.table;
    s.reading.environment = no_environment;
    s.reading.words = s.words;
    s.reading.values = s.values;
    EXPECT_OK(sl_options_read(&s.reading));
    s.invocation.values = s.values;
    s.invocation.words = s.words;
    s.invocation.word_count = s.reading.plain_count;
    s.invocation.out = open_memstream(&s.out, &s.out_bytes);
    s.invocation.err = open_memstream(&s.err, &s.err_bytes);
    return &s.invocation;
}

/* What was complained about; to be called once for each say(). */
static bool ended_with(const char *part)
{
    bool found;

    fclose(s.invocation.out);
    fclose(s.invocation.err);
    found = part == NULL ? s.err_bytes == 0 : strstr(s.err, part) != NULL;
    free(s.out);
    free(s.err);
    return found;
}

static sl_group_plan plan;

TEST(a_new_group_has_the_defaults_of_clients_of_kurrentdb)
{
    const sl_wire_group_settings *const settings = &plan.request.settings;

    EXPECT_EQ(sl_group_plan_create(&plan, say("group create", "orders billing")), SL_EXIT_OK);
    EXPECT(plan.request.source == SL_WIRE_SOURCE_STREAM && plan.request.start == SL_WIRE_START_END);
    EXPECT(sl_str_equal(plan.request.stream, SL_STR("orders")));
    EXPECT(sl_str_equal(plan.request.group, SL_STR("billing")));
    EXPECT(plan.request.has_settings && !settings->resolve_links && !settings->extra_statistics);
    EXPECT(settings->message_timeout.given && !settings->message_timeout.in_ticks);
    EXPECT_EQ(settings->message_timeout.value, 30000);
    EXPECT_EQ(settings->checkpoint_after.value, 2000);
    EXPECT_EQ(settings->max_retry_count, 10);
    EXPECT(settings->max_interrupts.given && settings->max_interrupts.value == 20);
    EXPECT(settings->max_kills.given && settings->max_kills.value == 5);
    EXPECT_EQ(settings->min_checkpoint_count, 10);
    EXPECT_EQ(settings->max_checkpoint_count, 1000);
    EXPECT_EQ(settings->max_subscriber_count, 0);
    EXPECT_EQ(settings->live_buffer_size, 500);
    EXPECT_EQ(settings->history_buffer_size, 500);
    EXPECT_EQ(settings->read_batch_size, 20);
    EXPECT(sl_str_equal(settings->strategy, SL_STR("RoundRobin")));
    EXPECT(ended_with(NULL));
}

TEST(every_setting_of_a_new_group_goes_where_its_name_says)
{
    const sl_wire_group_settings *const settings = &plan.request.settings;

    EXPECT_EQ(sl_group_plan_create(&plan, say("group create",
                                              "$all g --start=7 --message-timeout=1ms --checkpoint-after=2ms "
                                              "--max-retry-count=3 --min-checkpoint-count=4 "
                                              "--max-checkpoint-count=5 --max-subscriber-count=6 "
                                              "--max-interrupts=0 --max-kills=1")),
              SL_EXIT_OK);
    EXPECT(plan.request.source == SL_WIRE_SOURCE_ALL && plan.request.start == SL_WIRE_START_GIVEN);
    EXPECT(plan.request.filter.kind == SL_WIRE_FILTER_NONE);
    EXPECT_EQ(plan.request.position.commit, 7);
    EXPECT_EQ(plan.request.position.prepare, 7);
    EXPECT_EQ(settings->message_timeout.value, 1);
    EXPECT_EQ(settings->checkpoint_after.value, 2);
    EXPECT_EQ(settings->max_retry_count, 3);
    EXPECT_EQ(settings->min_checkpoint_count, 4);
    EXPECT_EQ(settings->max_checkpoint_count, 5);
    EXPECT_EQ(settings->max_subscriber_count, 6);
    EXPECT(settings->max_interrupts.given && settings->max_interrupts.value == 0);
    EXPECT(settings->max_kills.given && settings->max_kills.value == 1);
    EXPECT(ended_with(NULL));
    EXPECT_EQ(sl_group_plan_create(&plan, say("group create",
                                              "s g --start=start --live-buffer-size=8 "
                                              "--history-buffer-size=9 --read-batch-size=7 --resolve-links "
                                              "--extra-statistics --strategy=PinnedByCorrelation")),
              SL_EXIT_OK);
    EXPECT(plan.request.start == SL_WIRE_START_BEGIN && settings->resolve_links &&
           settings->extra_statistics);
    EXPECT_EQ(settings->live_buffer_size, 8);
    EXPECT_EQ(settings->history_buffer_size, 9);
    EXPECT_EQ(settings->read_batch_size, 7);
    EXPECT(sl_str_equal(settings->strategy, SL_STR("PinnedByCorrelation")));
    EXPECT(ended_with(NULL));
}

TEST(a_group_on_all_streams_may_have_one_filter)
{
    const sl_wire_filter *const filter = &plan.request.filter;

    EXPECT_EQ(
        sl_group_plan_create(&plan, say("group create", "$all g --filter-stream a- --filter-stream b-")),
        SL_EXIT_OK);
    EXPECT(filter->kind == SL_WIRE_FILTER_GIVEN && filter->on == SL_WIRE_FILTER_ON_STREAM);
    EXPECT_EQ(filter->prefix_count, 2);
    EXPECT(sl_str_equal(filter->prefixes[1], SL_STR("b-")) && filter->regex.bytes == 0);
    EXPECT(ended_with(NULL));
    EXPECT_EQ(sl_group_plan_create(&plan, say("group create", "$all g --filter-type ^x --regex")),
              SL_EXIT_OK);
    EXPECT(filter->on == SL_WIRE_FILTER_ON_TYPE && sl_str_equal(filter->regex, SL_STR("^x")));
    EXPECT_EQ(filter->prefix_count, 0);
    EXPECT(ended_with(NULL));
}

TEST(what_cannot_be_a_new_group_is_refused_with_a_sentence)
{
    static const struct {
        const char *line, *part;
    } rows[] = {
        { "s g --start later", "--start needs start, end or a number" },
        { "s g --start -1", "--start needs start, end or a number" },
        { "s g --start 99999999999999999999", "--start needs start, end or a number" },
        { "s g --message-timeout 1.5ms", "--message-timeout is counted in whole milliseconds" },
        { "s g --checkpoint-after 1us", "--checkpoint-after is counted in whole milliseconds" },
        { "s g --filter-stream a", "name $all as the STREAM" },
        { "$all g --filter-stream a --filter-type b", "There is one filter" },
        { "$all g --regex", "it needs --filter-stream or --filter-type" },
        { "$all g --regex --filter-type a --filter-type b", "one regular expression only" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_ROW(sl_group_plan_create(&plan, say("group create", rows[i].line)) == SL_EXIT_USAGE, i);
        EXPECT_ROW(ended_with(rows[i].part), i);
    }
}

static const sl_wire_group_info present = {
    .start_from = SL_STR_INIT("12"),
    .strategy = SL_STR_INIT("Pinned"),
    .resolve_links = true,
    .extra_statistics = true,
    .message_timeout_ms = 1,
    .checkpoint_after_ms = 2,
    .max_retry_count = 3,
    .min_checkpoint_count = 4,
    .max_checkpoint_count = 5,
    .max_subscriber_count = 6,
    .live_buffer_size = 7,
    .read_batch_size = 8,
    .buffer_size = 9,
};

TEST(an_update_changes_what_is_named_and_keeps_the_rest)
{
    const sl_wire_group_settings *const settings = &plan.request.settings;
    const sl_invocation *const invocation =
        say("group update", "s g --max-retry-count 30 --resolve-links no --max-kills 0");

    EXPECT_EQ(sl_group_plan_check_update(invocation), SL_EXIT_OK);
    EXPECT(sl_group_plan_update(&plan, invocation, &present));
    EXPECT_EQ(settings->max_retry_count, 30);
    EXPECT(!settings->resolve_links && settings->extra_statistics);
    EXPECT(settings->max_kills.given && settings->max_kills.value == 0);
    EXPECT(!settings->max_interrupts.given); /* the server keeps it */
    EXPECT(plan.request.start == SL_WIRE_START_GIVEN && plan.request.revision == 12);
    EXPECT(sl_str_equal(settings->strategy, SL_STR("Pinned")));
    EXPECT(settings->message_timeout.given && settings->message_timeout.value == 1);
    EXPECT(settings->checkpoint_after.given && settings->checkpoint_after.value == 2);
    EXPECT_EQ(settings->min_checkpoint_count, 4);
    EXPECT_EQ(settings->max_checkpoint_count, 5);
    EXPECT_EQ(settings->max_subscriber_count, 6);
    EXPECT_EQ(settings->live_buffer_size, 7);
    EXPECT_EQ(settings->read_batch_size, 8);
    EXPECT_EQ(settings->history_buffer_size, 9);
    EXPECT(ended_with(NULL));
}

TEST(an_update_keeps_the_start_in_every_form_in_which_servers_tell_it)
{
    static const struct {
        const char *stream, *told;
        bool fits;
        sl_wire_start start;
        uint64_t commit, prepare;
    } rows[] = {
        { "s", "-1", true, SL_WIRE_START_END, 0, 0 },
        { "s", "0", true, SL_WIRE_START_GIVEN, 0, 0 },
        { "$all", "C:-1/P:-1", true, SL_WIRE_START_END, 0, 0 },
        { "$all", "C:7/P:5", true, SL_WIRE_START_GIVEN, 7, 5 },
        { "s", "C:7/P:5", false, SL_WIRE_START_UNSET, 0, 0 },
        { "$all", "C:7", false, SL_WIRE_START_UNSET, 0, 0 },
        { "$all", "C:7/5", false, SL_WIRE_START_UNSET, 0, 0 },
        { "s", "", false, SL_WIRE_START_UNSET, 0, 0 },
        { "s", "soon", false, SL_WIRE_START_UNSET, 0, 0 },
    };
    char line[64];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_wire_group_info info = present;
        snprintf(line, sizeof line, "%s g --extra-statistics yes", rows[i].stream);
        info.start_from = sl_str_from(rows[i].told);
        EXPECT_ROW(sl_group_plan_update(&plan, say("group update", line), &info) == rows[i].fits, i);
        EXPECT_ROW(!rows[i].fits || plan.request.start == rows[i].start, i);
        EXPECT_ROW(!rows[i].fits || plan.request.position.commit == rows[i].commit, i);
        EXPECT_ROW(!rows[i].fits || plan.request.position.prepare == rows[i].prepare, i);
        EXPECT_ROW(ended_with(NULL), i);
    }
}

TEST(an_update_of_nothing_is_refused)
{
    EXPECT_EQ(sl_group_plan_check_update(say("group update", "s g")), SL_EXIT_USAGE);
    EXPECT(ended_with("Name at least one setting"));
    EXPECT_EQ(sl_group_plan_check_update(say("group update", "s g --start later")), SL_EXIT_USAGE);
    EXPECT(ended_with("--start needs start, end or a number"));
}

/* --- who --- */

TEST(who_is_meant_is_said_by_name_stream_group_and_label)
{
    sl_wire_who who;

    EXPECT_EQ(
        sl_consumer_who_named(say("consumer stop", "me --stream s --group g --label version=4=2"), &who),
        SL_EXIT_OK);
    EXPECT(sl_str_equal(who.consumer_name, SL_STR("me")) && sl_str_equal(who.stream, SL_STR("s")));
    EXPECT(sl_str_equal(who.group, SL_STR("g")) && sl_str_equal(who.label_key, SL_STR("version")));
    EXPECT(sl_str_equal(who.label_value, SL_STR("4=2")));
    EXPECT(ended_with(NULL));
    EXPECT_EQ(sl_consumer_who(say("consumer list", "--name you"), &who), SL_EXIT_OK);
    EXPECT(sl_str_equal(who.consumer_name, SL_STR("you")) && who.stream.bytes == 0);
    EXPECT(ended_with(NULL));
    EXPECT_EQ(sl_consumer_who(say("consumer list", ""), &who), SL_EXIT_OK);
    EXPECT(who.consumer_name.bytes == 0 && who.label_key.bytes == 0);
    EXPECT(ended_with(NULL));
}

TEST(whoever_changes_something_has_to_say_who_is_meant)
{
    static const struct {
        const char *command, *line, *part;
    } rows[] = {
        { "consumer stop", "", "Who is meant?" },
        { "consumer resume", "", "Who is meant?" },
        { "consumer stop", "--group g", "--group needs --stream" },
        { "consumer stop", "me --label version", "--label needs a key and a value" },
        { "consumer stop", "me --label =42", "--label needs a key and a value" },
        { "consumer stop", "me --label ab=", "--label needs a key and a value" },
    };
    sl_wire_who who;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_ROW(sl_consumer_who_named(say(rows[i].command, rows[i].line), &who) == SL_EXIT_USAGE, i);
        EXPECT_ROW(ended_with(rows[i].part), i);
    }
}
