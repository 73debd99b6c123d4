/* tests/unit/cli/test_work_settings.c — options of `sluice work` to settings, and what is refused before anything starts. */
#include "test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/work_command.h"
#include "cli/work_members.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    WORDS_MAX = 64
};

/* --- a line to a plan --- */

typedef struct planned {
    char line[1024];
    char *words[WORDS_MAX];
    sl_option_table table;
    sl_option_value values[SL_OPT_COUNT_];
    sl_option_reading reading;
    sl_budget budget;
    sl_work_plan plan;
    sl_complaint complaint;
    sl_err err;
} planned;

static const char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

static planned *plan_of(const char *line)
{
    static planned p;
    size_t count = 0;

    p = (planned){ .table = sl_command_options(&sl_command_work) };
    snprintf(p.line, sizeof p.line, "%s", line);
    for (char *word = strtok(p.line, " "); word != NULL; word = strtok(NULL, " "))
        p.words[count++] = word;
    p.reading = (sl_option_reading){ .table = &p.table,
                                     .environment = no_environment,
                                     .words = p.words,
                                     .word_count = count,
                                     .values = p.values };
    p.err = sl_options_read(&p.reading);
    p.complaint = p.reading.complaint;
    if (p.err == SL_OK)
        p.err = sl_work_budget_read(p.values, &p.budget, &p.complaint);
    if (p.err == SL_OK)
        p.err = sl_work_plan_read(p.values, NULL, &p.budget, &p.plan, &p.complaint);
    return &p;
}

#define SOURCE   "--from sluice://localhost:2113/orders/billing "
#define EXAMPLE  SOURCE "--exec ./charge "
#define REQUESTS SOURCE "--http http://localhost:8080/ "

TEST(a_worker_has_good_values_for_all_that_nobody_has_said)
{
    const planned *const p = plan_of(EXAMPLE);
    const sl_work_settings *const s = &p->plan.settings;

    EXPECT_OK(p->err);
    EXPECT_STR(p->plan.name, "worker");
    EXPECT(p->plan.consumer_name == NULL && p->plan.ack_file == NULL && p->plan.labels == NULL);
    EXPECT_EQ(p->plan.source.kind, SL_SOURCE_KIND_CONSUMER);
    EXPECT_STR(p->plan.source.server, "sluice://localhost:2113");
    EXPECT_STR(p->plan.source.stream, "orders");
    EXPECT_STR(p->plan.source.group, "billing");
    EXPECT_EQ(p->plan.handler, SL_WORK_BY_EXEC);
    EXPECT_STR(p->plan.handler_text, "./charge");
    EXPECT_EQ(s->slots, 4);
    EXPECT_EQ(p->plan.window, 8);
    EXPECT_EQ(s->timeout_ns, 60 * SECOND_NS);
    EXPECT_EQ(s->hold_max_ns, 600 * SECOND_NS);
    EXPECT_EQ(s->heartbeat_ns, 0);
    EXPECT(!s->finish_unstarted);
    EXPECT_EQ(s->retry.kind, SL_RETRY_EXPONENTIAL);
    EXPECT_EQ(s->retry.delay_first_ns, SECOND_NS);
    EXPECT_EQ(s->retry.delay_max_ns, 300 * SECOND_NS);
    EXPECT_EQ(s->retry.attempts_max, 10);
    EXPECT(s->destination.has_breaker && s->destination.key == SL_KEY_NONE);
    EXPECT_EQ(s->destination.breaker.failures_max, 5);
    EXPECT_EQ(s->destination.breaker.cool_down_ns, 60 * SECOND_NS);
    EXPECT_OK(sl_breaker_rules_validate(&s->destination.breaker));
    EXPECT_EQ(s->destination.interval_ns, 0);
    EXPECT_EQ(p->plan.reconnect_ns, 2 * SECOND_NS);
    EXPECT_EQ(p->plan.give_up_ns, 0);
}

TEST(a_worker_has_what_was_asked_for)
{
    const planned *p =
        plan_of(REQUESTS "--slots 8 --window 9 --timeout 5m --hold-max 20m --heartbeat 10s --name anna "
                         "--label version=42 --label zone=b --header=A:b --method PUT --finish-unstarted "
                         "--retry linear --retry-first 2s --retry-step 3s --retry-max 1m --attempts 4 "
                         "--breaker-failures 0 --rate 10/m --ack-file acks --give-up 1h");
    const sl_work_settings *const s = &p->plan.settings;

    EXPECT_OK(p->err);
    EXPECT_EQ(s->slots, 8);
    EXPECT_EQ(p->plan.window, 9);
    EXPECT_EQ(s->timeout_ns, 300 * SECOND_NS);
    EXPECT_EQ(s->heartbeat_ns, 10 * SECOND_NS);
    EXPECT_STR(p->plan.name, "anna");
    EXPECT_STR(p->plan.consumer_name, "anna");
    EXPECT_STR(p->plan.labels->next->text, "zone=b");
    EXPECT_STR(p->plan.method, "PUT");
    EXPECT(s->finish_unstarted);
    EXPECT_EQ(s->retry.kind, SL_RETRY_LINEAR);
    EXPECT_EQ(s->retry.delay_step_ns, 3 * SECOND_NS);
    EXPECT(!s->destination.has_breaker);
    EXPECT_EQ(s->destination.interval_ns, 6 * SECOND_NS);
    EXPECT_EQ(p->plan.give_up_ns, 3600 * SECOND_NS);
    p = plan_of(EXAMPLE "--cool-down 1h --timeout 5m");
    EXPECT_OK(p->err); /* limits that depend on others follow them */
    EXPECT_OK(sl_breaker_rules_validate(&p->plan.settings.destination.breaker));
    EXPECT_EQ(p->plan.settings.destination.breaker.probe_max_ns, 300 * SECOND_NS);
    p = plan_of(EXAMPLE "--key data.customer --concurrent-per-key 1");
    EXPECT_OK(p->err);
    EXPECT_EQ(p->plan.settings.destination.key, SL_KEY_DATA);
    EXPECT_STR(p->plan.settings.destination.field, "customer");
    EXPECT_EQ(p->plan.settings.destination.concurrent_max, 1);
    p = plan_of(EXAMPLE "--slots 4000");
    EXPECT_OK(p->err);
    EXPECT_EQ(p->plan.window, 4000);
}

typedef struct refusal {
    const char *line, *complaint;
} refusal;

static void expect_refused(const refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const planned *const p = plan_of(cases[i].line);
        EXPECT(strstr(p->complaint.text, "secret") == NULL && strstr(p->complaint.text, "..") == NULL);
        if (p->err != SL_ERR_INVALID || strstr(p->complaint.text, cases[i].complaint) == NULL)
            fail_msg("%s: '%s' is not in '%s'", cases[i].line, cases[i].complaint, p->complaint.text);
    }
}

TEST(a_worker_that_cannot_work_is_refused_with_what_to_do_before_anything_starts)
{
    static const refusal cases[] = {
        { "--exec x", "--from is missing: say where messages come from, for example" },
        { "--exec x --from tcp://x",
          "--from: 'tcp://x' is no source: a source is sluice://HOST:PORT/STREAM/GROUP" },
        { SOURCE "--exec=", "--exec is empty: it needs COMMAND." },
        { "--exec x --from sluice://anna:secret@h/s", "--from: the group is missing" },
        { "--exec x --from schedule:evry=1m", "--from: " },
        { "--exec x --from memory:cnt=1", "--from: The memory source does not understand" },
        { "--exec x --from schedule:every=1m --ack-file f", "--ack-file is for messages of a server" },
        { SOURCE, "there is no handler: say what is done with a message, by one of --exec, --lines, --http" },
        { EXAMPLE "--append localhost/x", "--exec and --append are two handlers: give only one of them." },
        { EXAMPLE "--slots 5 --window 4",
          "--window 4 is less than --slots 5, so some slots would never have work: "
          "give at least --window 5, or leave it out for 10." },
        { EXAMPLE "--slots 4001", "--slots must be 1 to 4000, not '4001'." },
        { EXAMPLE "--slots 0", "--slots must be 1 to 4000" },
        { EXAMPLE "--window 4001", "--window must be 1 to 4000" },
        { EXAMPLE "--timeout 11m", "--timeout 11m is longer than --hold-max 10m" },
        { EXAMPLE "--header=A:b", "--header is for --http, and the handler is --exec." },
        { EXAMPLE "--method PUT", "--method is for --http, and the handler is --exec." },
        { EXAMPLE "--label =", "--label needs KEY=VALUE" },
        { EXAMPLE "--label =42", "--label needs KEY=VALUE" },
        { EXAMPLE "--label a=b --label c=b --label a=c",
          "--label a=c: its key is given twice, and can have only one value." },
        { EXAMPLE "--slots -3", "--slots must be 1 to 4000, not '-3'." },
        { EXAMPLE "--label vers", "--label needs KEY=VALUE" },
        { EXAMPLE
          "--label a=1 --label b=1 --label c=1 --label d=1 --label e=1 --label f=1 --label g=1 --label "
          "h=1 --label i=1",
          "more than 8 labels are too many" },
        { EXAMPLE "--rate fast",
          "--rate needs COUNT/TIME such as 1/s, 10/m or 1/30s, at most 1000000/s, not 'fast'." },
        { EXAMPLE "--key colour", "--key needs stream, type, data.NAME or metadata.NAME, not 'colour'." },
        { EXAMPLE "--key data.", "--key needs stream, type, data.NAME or metadata.NAME" },
        { EXAMPLE "--key stream --concurrent-per-key 4001", "--concurrent-per-key must be 0 to 4000" },
        { EXAMPLE "--concurrent-per-key 1", "--concurrent-per-key needs --key" },
        { EXAMPLE "--retry-first 6m",
          "--retry-first 6m is longer than --retry-max 5m: give at least --retry-max 6m." },
        { EXAMPLE "--retry-first 0", "--retry-first 0 cannot grow with --retry exponential" },
        { EXAMPLE "--retry often", "--retry must be none, constant, linear or exponential" },
        { EXAMPLE "--hold-max 0", "--hold-max must be 1s to 24h" },
        { EXAMPLE "--attempt 3", "there is no option '--attempt'. Did you mean '--attempts'?" },
    };

    expect_refused(cases, sizeof cases / sizeof cases[0]);
}

TEST(an_address_or_a_header_that_cannot_work_is_refused_before_anything_starts)
{
    static const refusal cases[] = {
        { SOURCE "--append localhost:2113", "--append needs an address with a stream behind it" },
        { SOURCE "--append localhost/a/b", "--append needs an address with a stream behind it" },
        { SOURCE "--append sluice://localhost:2113/$all",
          "--append: $all is all streams together, and nothing can be written to it. Name one stream." },
        { SOURCE "--append sluice://localhost:2113/orders",
          "--append writes to the stream that --from reads: each message would make another one, for ever. "
          "Name another stream." },
        { SOURCE "--append kurrentdb://anna:b@LOCALHOST/orders", "--append writes to the stream" },
        { REQUESTS "--header=Abc", "--header needs 'Name: value'" },
        { REQUESTS "--header=A\nb:c", "--header needs 'Name: value'" },
        { REQUESTS "--header=A:b\rc", "--header needs 'Name: value'" },
        { REQUESTS "--header=A", "--header needs 'Name: value'" },
        { SOURCE "--http localhost:8080",
          "--http needs an address such as http://localhost:8080/charge or https://HOST/PATH, not "
          "'localhost:8080'." },
        { SOURCE "--http ftp://localhost/", "--http needs an address such as" },
        { SOURCE "--http ftp://anna:secret@localhost/", "--http needs an address such as" },
        { SOURCE "--http http:///path", "--http needs an address such as" },
        { SOURCE "--http https://", "--http needs an address such as" },
        { SOURCE "--http http://localhost:99999/",
          "--http: the address of the web service cannot be used: " },
        { SOURCE "--http http://anna:secret@localhost:99999/", "--http: the address of the web service" },
        { REQUESTS "--header=Sluice-Id:5", "--http: Content-Length, Transfer-Encoding, Idempotency-Key and" },
    };

    expect_refused(cases, sizeof cases / sizeof cases[0]);
}

TEST(a_worker_whose_budget_does_not_fit_is_refused_with_the_arithmetic_S3_32_B7)
{
    const planned *p = plan_of(EXAMPLE "--grace 30s --settle 40s");

    EXPECT_ERR(p->err, SL_ERR_INVALID);
    EXPECT(strstr(p->complaint.text, "settle 40s") != NULL);
    EXPECT(strstr(p->complaint.text, "= 40.4s does not fit into grace 30s: raise grace to at least 40.4s") !=
           NULL);
    EXPECT_EQ(p->complaint.text[strlen(p->complaint.text) - 1], '.');
    p = plan_of(EXAMPLE "--grace 45s --settle 30s --close 5s");
    EXPECT_OK(p->err);
    EXPECT_EQ(p->plan.settings.budget.part_ns[SL_BUDGET_SETTLE], 30 * SECOND_NS);
}

TEST(times_of_a_drain_take_fractions_and_have_lower_bounds_S3_29)
{
    const planned *p = plan_of(EXAMPLE "--grace 2.5s --settle 1.25s --close 0.5s");

    EXPECT_OK(p->err);
    EXPECT_EQ(p->plan.settings.budget.grace_ns, 2500000000);
    EXPECT_EQ(p->plan.settings.budget.part_ns[SL_BUDGET_SETTLE], 1250000000);
    EXPECT_EQ(p->plan.settings.budget.part_ns[SL_BUDGET_CLOSE], 500000000);
    EXPECT_ERR(plan_of(EXAMPLE "--settle 99ms")->err, SL_ERR_INVALID);
    EXPECT_ERR(plan_of(EXAMPLE "--close 49ms")->err, SL_ERR_INVALID);
    EXPECT_ERR(plan_of(EXAMPLE "--grace 499ms")->err, SL_ERR_INVALID);
}

TEST(a_rate_is_a_count_in_a_time)
{
    static const struct {
        const char *text;
        uint64_t interval_ns; /* 0: refused */
    } cases[] = {
        { "1/s", SECOND_NS },
        { "10/m", 6 * SECOND_NS },
        { "100/h", 36 * SECOND_NS },
        { "1/30s", 30 * SECOND_NS },
        { "3/1.5m", 30 * SECOND_NS },
        { "1000000/s", 1000 },
        { "1000001/s", 0 },
        { "0/s", 0 },
        { "/s", 0 },
        { "1/", 0 },
        { "1", 0 },
        { "", 0 },
        { "-1/s", 0 },
        { "1/0", 0 },
        { "1/0s", 0 },
        { "1/25h", 0 },
        { "1/s/s", 0 },
        { "1/x", 0 },
        { "99999999999999999999/s", 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t interval_ns = 0;
        const sl_err err = sl_work_rate_parse(sl_str_from(cases[i].text), &interval_ns);
        if ((err == SL_OK) != (cases[i].interval_ns != 0) || interval_ns != cases[i].interval_ns)
            fail_msg("'%s' gave %" PRIu64, cases[i].text, interval_ns);
    }
}

TEST(an_address_to_append_to_is_a_server_and_a_stream)
{
    static const struct {
        const char *text, *server, *stream;
    } cases[] = {
        { "sluice://h:1/orders", "sluice://h:1", "orders" },
        { "h:1/orders", "sluice://h:1", "orders" },
        { "kurrentdb://a:b@h/a%2Fb?tls=false", "kurrentdb://a:b@h?tls=false", "a/b" },
    };
    char buffer[256];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_source_address target;
        sl_text problem;
        sl_text_init(&problem, buffer, sizeof buffer);
        EXPECT_OK(sl_work_target_parse(cases[i].text, &problem, &target));
        EXPECT_STR(target.server, cases[i].server);
        EXPECT_STR(target.stream, cases[i].stream);
    }
}

/* --- warnings --- */

static void count_warning(void *ctx, const char *sentence)
{
    char *const all = ctx;

    EXPECT(strncmp(sentence, "Note: ", 6) == 0 && sentence[strlen(sentence) - 1] == '.');
    strncat(all, sentence, 1023 - strlen(all));
}

TEST(a_worker_that_may_lose_leases_or_shows_a_password_gets_a_warning)
{
    static const struct {
        const char *line, *warning;
    } cases[] = {
        { EXAMPLE, "" },
        { EXAMPLE "--timeout 5m", "" },
        { EXAMPLE "--timeout 6m", "the last of 8 messages may wait for 4 slots until after --hold-max 10m" },
        { EXAMPLE "--rate 1/m --window 11", "at this --rate the last of 11 messages begins after" },
        { EXAMPLE "--cool-down 10m",
          "messages that wait for --cool-down 10m are held for --hold-max 10m only" },
        { EXAMPLE "--cool-down 10m --breaker-failures 0",
          "--cool-down has no effect with --breaker-failures 0." },
        { EXAMPLE "--breaker-failures 0", "" },
        { EXAMPLE "--retry none", "" },
        { EXAMPLE "--retry none --retry-first 2s", "--retry-first has no effect with --retry none." },
        { EXAMPLE "--retry none --retry-max 2m", "--retry-max has no effect with --retry none." },
        { EXAMPLE "--retry constant --retry-first 2s", "" },
        { EXAMPLE "--retry-step 2s", "--retry-step has no effect without --retry linear." },
        { EXAMPLE "--retry linear --retry-step 2s", "" },
        { EXAMPLE "--timeout 0", "with --timeout 0 work that hangs is not ended before --hold-max 10m" },
        { "--from schedule:every=1h --exec x --timeout 6m", "" }, /* no leases */
        { EXAMPLE "--heartbeat 60s", "--heartbeat 1m never counts" },
        { EXAMPLE "--heartbeat 10s", "a handler by --exec cannot give a sign of life" },
        { "--from sluice://h/s/g --lines x --heartbeat 10s", "" },
        { EXAMPLE "--password-file p", "--password-file has no effect without --user" },
        { "--exec x --from sluice://far/s/g --user anna", "the password travels without encryption" },
        { "--exec x --from sluice://anna:b@far/s/g", "the password travels without encryption" },
        { "--exec x --from sluice://localhost/s/g --user anna", "" },
        { "--exec x --from sluice://far/s/g?tls=true --user anna", "" },
        { "--exec x --from kurrentdb://far/s/g --user anna", "" },
        { "--exec x --from sluice://far/s/g --user anna --ca f", "" },
        { "--http http://x/ --from sluice://far/s/g --user anna --ca f",
          "the password travels without encryption" },
        { "--from sluice://h/$all/g --append h:2113/s", "it may get its own copies" },
        { "--from sluice://h/$all/g --append other/s", "" },
        { "--from sluice://h/$all/g --exec x", "" },
        { SOURCE "--append localhost:2114/orders", "" },
        { SOURCE "--append localhost/others", "" },
        { "--from memory:count=1 --append far/s --user anna", "the password travels without encryption" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const planned *const p = plan_of(cases[i].line);
        char all[1024] = "";
        EXPECT_OK(p->err);
        sl_work_plan_warn(p->values, &p->plan, count_warning, all);
        if (strstr(all, cases[i].warning) == NULL || (cases[i].warning[0] == '\0') != (all[0] == '\0'))
            fail_msg("%s: '%s'", cases[i].line, all);
    }
}

/* --- the process --- */

TEST(status_pages_are_on_a_port_on_any_port_or_off)
{
    EXPECT_EQ(sl_work_crew_settings(plan_of(EXAMPLE)->values, false).status_port, 2115);
    EXPECT_EQ(sl_work_crew_settings(plan_of(EXAMPLE "--status-port 0")->values, false).status_port, 0);
    EXPECT_EQ(sl_work_crew_settings(plan_of(EXAMPLE "--no-status")->values, false).status_port, -1);
    EXPECT_STR(sl_work_crew_settings(plan_of(EXAMPLE)->values, false).status_host, "127.0.0.1");
    EXPECT_EQ(sl_work_crew_settings(plan_of(EXAMPLE)->values, false).restarts_max, 5);
    EXPECT_EQ(sl_work_crew_settings(plan_of(EXAMPLE)->values, false).log_format, SL_LOG_FORMAT_JSON);
    EXPECT_EQ(sl_work_crew_settings(plan_of(EXAMPLE)->values, true).log_format, SL_LOG_FORMAT_TEXT);
}
