/* tests/unit/cli/test_work_command.c — `sluice work` up to the moment where something would start: several workers from a file, and
 * --explain. */
#include "test.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/work_command.h"
#include "cli/work_deploy.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    WORDS_MAX = 24
};

typedef struct answer {
    int code;
    char *out, *err;
    size_t out_bytes, err_bytes;
} answer;

static const char *variable_name, *variable_text;

static const char *fake_environment(const char *name)
{
    return variable_name != NULL && strcmp(name, variable_name) == 0 ? variable_text : NULL;
}

/* The line may have a %s for the path of a file with this text. */
static answer ask(const char *line, const char *file_text)
{
    char path[] = "/tmp/sluice-work-XXXXXX", text[1024], copy[1200];
    char *words[WORDS_MAX] = { NULL };
    answer a = { 0 };
    FILE *const file = fdopen(mkstemp(path), "w");
    FILE *const out = open_memstream(&a.out, &a.out_bytes), *const err = open_memstream(&a.err, &a.err_bytes);
    int count = 0;

    EXPECT(file != NULL && fputs(file_text, file) >= 0 && fclose(file) == 0);
    snprintf(text, sizeof text, "sluice work %s", line);
    char *const place = strstr(text, "FILE");
    if (place != NULL)
        snprintf(copy, sizeof copy, "%.*s%s%s", (int)(place - text), text, path, place + 4);
    else
        snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        words[count++] = word;
    a.code = sl_cli_run(count, words, fake_environment, out, err);
    fclose(out);
    fclose(err);
    unlink(path);
    return a;
}

static void forget(answer *a)
{
    free(a->out);
    free(a->err);
}

static void expect_refused(const char *line, const char *file_text, const char *part)
{
    answer a = ask(line, file_text);

    if (a.code != SL_EXIT_USAGE || strstr(a.err, part) == NULL)
        fail_msg("'%s' is not in '%s' (%d)", part, a.err, a.code);
    EXPECT_STR(a.out, "");
    forget(&a);
}

/* --- several workers --- */

static const char two_workers[] = "slots = 3\n"
                                  "[work]\n"
                                  "grace = 20s\n"
                                  "http = http://localhost:8080/all\n"
                                  "header = X-All: yes\n"
                                  "[work billing]\n"
                                  "from = sluice://localhost:2113/orders/billing\n"
                                  "exec = ./charge\n"
                                  "slots = 9\n"
                                  "[work mail]\n"
                                  "from = sluice://localhost:2113/orders/mail\n";

static cJSON *explained(const char *line, const char *file_text)
{
    answer a = ask(line, file_text);
    cJSON *json;

    if (a.code != SL_EXIT_OK)
        fail_msg("%s", a.err);
    json = cJSON_Parse(a.out);
    EXPECT(json != NULL);
    forget(&a);
    return json;
}

static const cJSON *at(const cJSON *json, const char *path)
{
    char copy[128];

    snprintf(copy, sizeof copy, "%s", path);
    for (char *word = strtok(copy, "."); word != NULL; word = strtok(NULL, "."))
        json = word[0] >= '0' && word[0] <= '9' ? cJSON_GetArrayItem(json, atoi(word))
                                                : cJSON_GetObjectItemCaseSensitive(json, word);
    if (json == NULL)
        fail_msg("there is no '%s'", path);
    return json;
}

static const char *text_at(const cJSON *json, const char *path)
{
    return at(json, path)->valuestring;
}

static double number_at(const cJSON *json, const char *path)
{
    return at(json, path)->valuedouble;
}

TEST(each_section_of_a_file_is_a_worker_and_its_own_handler_replaces_the_one_for_all)
{
    cJSON *const json = explained("-c FILE --explain --json", two_workers);

    EXPECT_EQ(cJSON_GetArraySize(at(json, "workers")), 2);
    EXPECT_STR(text_at(json, "workers.0.name"), "billing");
    EXPECT_STR(text_at(json, "workers.0.handler.kind"), "exec");
    EXPECT_STR(text_at(json, "workers.0.handler.command"), "./charge");
    EXPECT_EQ(number_at(json, "workers.0.slots"), 9);
    EXPECT_EQ(number_at(json, "workers.0.window"), 18);
    EXPECT_STR(text_at(json, "workers.1.name"), "mail");
    EXPECT_STR(text_at(json, "workers.1.handler.address"), "http://localhost:8080/all");
    EXPECT_EQ(number_at(json, "workers.1.slots"), 3);
    EXPECT_EQ(number_at(json, "budget.grace_ns"), 20e9);
    cJSON_Delete(json);
}

TEST(the_command_line_wins_for_all_workers)
{
    cJSON *const json = explained("-c FILE --explain --json --slots 5 --grace 1m", two_workers);

    EXPECT_EQ(number_at(json, "workers.0.slots"), 5);
    EXPECT_EQ(number_at(json, "workers.1.slots"), 5);
    EXPECT_EQ(number_at(json, "deployment.kubernetes.terminationGracePeriodSeconds"), 60);
    cJSON_Delete(json);
}

TEST(what_makes_a_worker_itself_is_refused_outside_of_its_section)
{
    static const char *const options[] = { "--from x",   "--exec x", "--lines x",   "--http x",
                                           "--append x", "--name x", "--ack-file x" };
    char line[64];

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        snprintf(line, sizeof line, "-c FILE --explain %s", options[i]);
        expect_refused(line, two_workers,
                       "put it into the section of the worker that is meant, [work billing]");
    }
    variable_name = "SLUICE_FROM";
    variable_text = "x";
    expect_refused("-c FILE --explain", two_workers, "SLUICE_FROM would be the same for all workers");
    variable_name = NULL;
}

TEST(a_worker_of_a_file_that_is_wrong_is_named)
{
    expect_refused("-c FILE --explain", "[work a]\nfrom = schedule:every=1m\nexec = x\n[work b]\nexec = x\n",
                   "[work b]: --from is missing");
    expect_refused("-c FILE --explain", "[work a]\nfrom = schedule:every=1m\n",
                   "[work a]: there is no handler");
    expect_refused(
        "-c FILE --explain",
        "[work]\nfrom = sluice://h/s/g\nexec = x\n[work a]\nack-file = f\n[work b]\nack-file = f\n",
        "[work b]: the ack-file 'f' belongs to worker 'a' already");
    expect_refused("-c FILE --explain", "[work a]\nstatus-port = 1\n",
                   "line 2: 'status-port' is about all workers of the process together: put it into [work].");
    expect_refused("-c FILE --explain", "[work a]\ngrace = 1m\n", "put it into [work].");
    expect_refused("-c FILE --explain", "[work a]\nexplain = yes\n", "can be set on the command line only");
}

/* A file with two workers that have one name. */
static const char *with_one_name(const char *from_a, const char *from_b)
{
    static char text[256];

    snprintf(text, sizeof text, "[work]\nexec = x\nname = pod-7\n[work a]\nfrom = %s\n[work b]\nfrom = %s\n",
             from_a, from_b);
    return text;
}

TEST(two_workers_of_one_group_are_not_called_the_same_however_its_address_is_written)
{
    static const char *const same[] = { "sluice://host/s/g", "sluice://host:2113/s/g", "sluice://HOST/s/g",
                                        "esdb://anna@host/%73/g?tls=false" };
    static const char *const others[] = { "sluice://host/s/other", "sluice://host/other/g",
                                          "sluice://host:2114/s/g", "sluice://another/s/g",
                                          "schedule:every=1m" };

    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        expect_refused("-c FILE --explain", with_one_name(same[0], same[i]),
                       "[work b]: worker 'a' of the same source is called 'pod-7' already");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        cJSON_Delete(explained("-c FILE --explain --json", with_one_name(same[0], others[i])));
}

TEST(workers_of_sources_without_groups_may_have_one_name)
{
    cJSON_Delete(
        explained("-c FILE --explain --json", with_one_name("schedule:every=1m", "schedule:every=1m")));
}

TEST(a_file_without_such_sections_describes_a_single_worker)
{
    cJSON *const json = explained("-c FILE --explain --json --exec y",
                                  "[work]\nfrom = schedule:every=1m\nname = anna\ntimeout = 7s\n");

    EXPECT_EQ(cJSON_GetArraySize(at(json, "workers")), 1);
    EXPECT_STR(text_at(json, "workers.0.name"), "anna");
    EXPECT_EQ(number_at(json, "workers.0.timeout_ns"), 7e9);
    cJSON_Delete(json);
}

/* The variable of that name is about talks with a server, and a job may take longer. */
TEST(the_time_limit_of_a_job_is_not_taken_from_the_environment)
{
    variable_name = "SLUICE_TIMEOUT";
    variable_text = "1s";
    cJSON *const json = explained("--from schedule:every=1m --exec y --explain --json", "");
    variable_name = NULL;

    EXPECT_EQ(number_at(json, "workers.0.timeout_ns"), 60e9);
    cJSON_Delete(json);
}

/* --- a budget --- */

TEST(work_with_a_budget_that_does_not_fit_ends_with_2_and_the_arithmetic_S3_32_B7)
{
    expect_refused("--from schedule:every=1m --exec y --grace 10s --settle 20s", "",
                   "= 20.4s does not fit into grace 10s: raise grace to at least 20.4s");
}

/* --- what would happen --- */

TEST(explain_shows_source_handler_budget_steps_retries_and_breaker_S3_32)
{
    static const char *const wanted[] = {
        "worker worker\n",
        "sluice://anna:***@localhost:2113/orders/billing",
        "exec: ./charge",
        "8 at the same time; 16 messages are held",
        "after 1s, 2s, 4s, 8s",
        "to the dead letters after 10 attempts",
        "after 5 failures in a row nothing is sent for 1m",
        "budget of --grace 30s",
        "settle    20s         22s",
        "on SIGTERM",
        "22s  work that was begun may finish",
    };
    answer a = ask(
        "--from sluice://anna:secret@localhost:2113/orders/billing --exec ./charge --slots 8 --explain", "");

    EXPECT_EQ(a.code, SL_EXIT_OK);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (strstr(a.out, wanted[i]) == NULL)
            fail_msg("'%s' is not in %s", wanted[i], a.out);
    }
    EXPECT(strstr(a.out, "secret") == NULL);
    EXPECT(strstr(a.err, "other users of this machine can see the password in --from") != NULL);
    forget(&a);
}

TEST(numbers_for_orchestrators_are_made_from_the_grace_and_never_below_it_S3_30_S3_33)
{
    static const struct {
        const char *grace;
        int seconds;
    } cases[] = { { "30s", 30 }, { "500ms", 1 }, { "44.001s", 45 }, { "2m", 120 } };
    char line[128], wanted[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(line, sizeof line, "--from schedule:every=1m --exec y --explain --json --grace %s",
                 cases[i].grace);
        cJSON *const json = explained(line, "");
        const double seconds = number_at(json, "deployment.grace_seconds");

        EXPECT_EQ(seconds, cases[i].seconds);
        EXPECT(seconds * 1e9 >= number_at(json, "budget.grace_ns"));
        EXPECT_EQ(number_at(json, "deployment.kubernetes.terminationGracePeriodSeconds"), cases[i].seconds);
        EXPECT_EQ(number_at(json, "deployment.systemd.TimeoutStopSec"), cases[i].seconds);
        snprintf(wanted, sizeof wanted, "%ds", cases[i].seconds);
        EXPECT_STR(text_at(json, "deployment.compose.stop_grace_period"), wanted);
        snprintf(wanted, sizeof wanted, "TimeoutStopSec=%d\n", cases[i].seconds);
        EXPECT(strstr(text_at(json, "deployment.systemd.snippet"), wanted) != NULL);
        snprintf(wanted, sizeof wanted, "terminationGracePeriodSeconds: %d\n", cases[i].seconds);
        EXPECT(strstr(text_at(json, "deployment.kubernetes.snippet"), wanted) != NULL);
        cJSON_Delete(json);
    }
}

TEST(explain_advises_a_grace_when_parts_are_shorter_than_usual_S3_33)
{
    answer a = ask("--from schedule:every=1m --exec y --explain --grace 45s --settle 40s", "");

    EXPECT(strstr(a.out, "With --grace 50s each would have its usual") != NULL);
    forget(&a);
    a = ask("--from schedule:every=1m --exec y --explain --grace 50s --settle 40s", "");
    EXPECT(strstr(a.out, "Some parts are shorter") == NULL);
    forget(&a);
}

static void expect_words(const char *line, const char *file_text, const char *const *wanted,
                         const char *const *unwanted)
{
    answer a = ask(line, file_text);
    char *flat = a.out; /* lines are wrapped anywhere */

    EXPECT_EQ(a.code, SL_EXIT_OK);
    for (const char *from = a.out; *from != '\0'; from++) {
        const char byte = *from == '\n' ? ' ' : *from;
        if (byte != ' ' || flat == a.out || flat[-1] != ' ')
            *flat++ = byte;
    }
    *flat = '\0';
    for (; *wanted != NULL; wanted++)
        if (strstr(a.out, *wanted) == NULL)
            fail_msg("'%s' is not in %s", *wanted, a.out);
    for (; *unwanted != NULL; unwanted++)
        if (strstr(a.out, *unwanted) != NULL)
            fail_msg("'%s' is in %s", *unwanted, a.out);
    forget(&a);
}

TEST(explain_of_a_schedule_tells_that_a_tick_is_cancelled_and_kept_by_nobody_S3_5_S3_32)
{
    static const char *const wanted[] = {
        "there is one tick at a time",
        "after 10 attempts the worker has failed: it is started again up to 5 times (--restarts); then the "
        "exit code is 6",
        "a tick that runs is cancelled at once, with SIGTERM, and 3s (abort) later with SIGKILL",
        "a tick needs no confirmation", NULL
    };
    static const char *const unwanted[] = { "dead letters",
                                            "handed back",
                                            "may finish",
                                            "consumer stop",
                                            "acknowledgements are confirmed by",
                                            NULL };
    static const char *const at_once[] = {
        "none: after a failure the worker has failed, and the exit code is 6", NULL
    };

    expect_words("--from schedule:every=30m --exec true --explain", "", wanted, unwanted);
    expect_words("--from schedule:every=30m --exec true --explain --retry none --restarts 0", "", at_once,
                 unwanted);
}

TEST(explain_of_KurrentDB_promises_no_confirmation_and_explain_of_memory_does_S3_32)
{
    static const char *const wanted[] = { "KurrentDB cannot confirm that nothing new comes",
                                          "what was not begun goes to others when the call ends",
                                          "KurrentDB reads the acknowledgements, and cannot confirm them",
                                          "work that was begun may finish", NULL };
    static const char *const unwanted[] = { "the source confirms that nothing new comes",
                                            "confirmed by the source", "uncharged", NULL };
    static const char *const confirmed[] = { "the source confirms that nothing new comes",
                                             "acknowledgements are confirmed by the source", NULL };
    static const char *const doubtful[] = { "KurrentDB", "tick", NULL };

    expect_words("--from kurrentdb://localhost:2113/orders/billing --exec true --explain", "", wanted,
                 unwanted);
    expect_words("--from memory:count=1 --exec true --explain", "", confirmed, doubtful);
}

TEST(explain_of_several_workers_has_the_steps_of_each_kind_once_S3_32)
{
    static const char file[] =
        "[work a]\nfrom = schedule:every=1m\nexec = x\n"
        "[work b]\nfrom = sluice://localhost/orders/b\nexec = x\n"
        "[work c]\nfrom = sluice://localhost/orders/c\nexec = x\nfinish-unstarted = yes\n";
    cJSON *const json = explained("-c FILE --explain --json", file);

    EXPECT_STR(
        text_at(json, "sigterm.0.what"),
        "not ready any more; a tick that runs is cancelled at once, with SIGTERM, and 3s (abort) later with "
        "SIGKILL; the source confirms that nothing new comes; what was not begun is handed back, uncharged; "
        "with --finish-unstarted what waits is kept and worked on");
    EXPECT_STR(text_at(json, "sigterm.1.what"),
               "the tick that was cancelled ends; work that was begun may finish");
    cJSON_Delete(json);
}

#define FROM_SERVER "--from sluice://localhost/orders/billing --exec x --explain --json "

/* NULL: none. */
static void expect_note(const char *line, const char *file_text, const char *note)
{
    cJSON *const json = explained(line, file_text);

    if (note == NULL)
        EXPECT(cJSON_IsNull(at(json, "note")));
    else
        EXPECT_STR(text_at(json, "note"), note);
    cJSON_Delete(json);
}

#define ENDED " in a drain: what takes longer is ended, and run again by the next worker."
#define ALL   " finishes everything that was begun."

TEST(explain_notes_that_work_may_take_longer_than_a_drain_and_which_grace_would_do_S3_32_S3_33)
{
    static const char *const flat[] = { "run again by the next worker. --grace 1m10s finishes everything",
                                        NULL };
    static const char *const none[] = { NULL };

    expect_note(FROM_SERVER, "",
                "Note: work may take 1m (--timeout) but has only 20s (settle)" ENDED " --grace 1m10s" ALL);
    expect_note(FROM_SERVER "--grace 1m10s", "", NULL);
    expect_note(FROM_SERVER "--timeout 20s", "", NULL);
    expect_note(FROM_SERVER "--timeout 0", "",
                "Note: work has no time limit (--timeout) but has only 20s (settle)" ENDED);
    expect_note(FROM_SERVER "--settle 15s", "",
                "Note: work may take 1m (--timeout) but has only 15s (settle)" ENDED
                " --grace 1m10s --settle 1m" ALL);
    expect_note(FROM_SERVER "--settle 15s --grace 2m", "",
                "Note: work may take 1m (--timeout) but has only 15s (settle)" ENDED " --settle 1m" ALL);
    expect_note(FROM_SERVER "--settle 1m --grace 1m10s", "", NULL);
    expect_words("--from sluice://localhost/orders/billing --exec x --explain", "", flat, none);
}

TEST(the_note_is_about_the_worker_that_takes_longest_and_not_about_ticks_S3_32)
{
    expect_note("--from schedule:every=1m --exec x --explain --json", "", NULL);
    expect_note("-c FILE --explain --json",
                "[work a]\nfrom = schedule:every=1m\nexec = x\ntimeout = 5m\n"
                "[work b]\nfrom = sluice://localhost/orders/b\nexec = x\ntimeout = 30s\n"
                "[work c]\nfrom = sluice://localhost/orders/c\nexec = x\ntimeout = 40s\n",
                "Note: work may take 40s (--timeout) but has only 20s (settle)" ENDED " --grace 50s" ALL);
}

/* Ends the JSON. NULL: there is to be no hook. */
static void expect_hook(const char *line, const char *file_text, const char *command)
{
    cJSON *const json = explained(line, file_text);
    const cJSON *const prestop = at(json, "deployment.kubernetes_prestop");

    if (command == NULL)
        EXPECT(cJSON_IsNull(prestop));
    else if (strstr(text_at(prestop, "snippet"), command) == NULL)
        fail_msg("'%s' is not in %s", command, text_at(prestop, "snippet"));
    cJSON_Delete(json);
}

TEST(the_preStop_hook_stops_the_worker_that_is_meant_S3_33_B7)
{
    static const char named[] = "[work a]\nfrom = sluice://localhost/orders/a\nexec = x\nname = anna\n";
    const char *const variable = "'sluice consumer stop \"$SLUICE_NAME\" --wait 10s'";

    expect_hook(FROM_SERVER, "", variable);
    expect_hook(FROM_SERVER "--name foo", "", "'sluice consumer stop foo --wait 10s'");
    expect_hook(FROM_SERVER "--name it's", "", "localhost:2115/v1/drain");
    expect_hook("-c FILE --explain --json", named, "'sluice consumer stop anna --wait 10s'");
    variable_name = "SLUICE_NAME";
    variable_text = "pod-1";
    expect_hook(FROM_SERVER, "", variable);
    variable_name = NULL;
}

TEST(the_preStop_hook_of_several_workers_drains_the_process_S3_33_B7)
{
    static const char first_is_named[] =
        "[work]\nexec = x\n[work a]\nfrom = sluice://localhost/orders/a\nname = anna\n"
        "[work b]\nfrom = sluice://localhost/orders/b\n";
    static const char unnamed[] = "[work a]\nfrom = sluice://localhost/orders/a\nexec = x\n";

    expect_hook("-c FILE --explain --json --status-port 3000", two_workers,
                "\"curl -s -X POST 'localhost:3000/v1/drain?wait=10s'\"");
    expect_hook("-c FILE --explain --json", unnamed, "localhost:2115/v1/drain");
    expect_hook("-c FILE --explain --json", first_is_named, "localhost:2115/v1/drain");
    expect_hook("-c FILE --explain --json --no-status", two_workers, NULL);
    expect_hook("-c FILE --explain --json --status-port 0", two_workers, NULL);
}

TEST(a_source_without_operators_gets_no_preStop_hook_S3_33)
{
    static const char *const none[] = { NULL }, *const hook[] = { "preStop:", "consumer stop", "/v1/drain",
                                                                  NULL };

    expect_hook("--from schedule:every=1m --exec x --explain --json", "", NULL);
    expect_hook("--from memory:count=1 --exec x --explain --json", "", NULL);
    expect_hook("--from kurrentdb://localhost/orders/billing --exec x --explain --json", "", NULL);
    expect_hook("--from esdb://localhost/orders/billing --exec x --explain --json", "", NULL);
    expect_words("--from schedule:every=1m --exec x --explain", "", none, hook);
}

TEST(explain_of_a_series_that_has_no_end_or_no_beginning_says_so)
{
    answer a = ask("--from memory:count=1 --exec y --explain --retry none --breaker-failures 0", "");

    EXPECT(strstr(a.out, "none: what fails goes to the dead letters at once") != NULL);
    EXPECT(strstr(a.out, "breaker   none") != NULL);
    forget(&a);
    a = ask("--from memory:count=1 --exec y --explain --retry constant --retry-first 0 --attempts 0", "");
    EXPECT(strstr(a.out, "after 0s, 0s, ") != NULL && strstr(a.out, "and so on") != NULL);
    EXPECT(strstr(a.out, "the source decides when it is enough") != NULL);
    forget(&a);
    a = ask("--from schedule:every=1m --exec y --explain --attempts 0", "");
    EXPECT(strstr(a.out, "until the next tick is due") != NULL);
    forget(&a);
}
