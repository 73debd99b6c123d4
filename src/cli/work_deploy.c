/* cli/work_deploy.c — see work_deploy.h. */
#include "cli/work_deploy.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/budget_command.h"
#include "cli/print.h"
#include "cli/work_steps.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    SNIPPET_BYTES = 1536,
    HOOK_WAIT_S = 10, /* for how long the preStop hook waits, on top of the grace */
    WATCHDOG_S = 30   /* a loop that has not turned for so long never will */
};

uint64_t sl_work_orchestrator_seconds(const sl_budget *budget)
{
    return (budget->grace_ns + SECOND_NS - 1) / SECOND_NS;
}

typedef enum hook_kind {
    HOOK_NONE,
    HOOK_STOP_VARIABLE, /* `consumer stop` of what SLUICE_NAME says */
    HOOK_STOP_NAME,     /* and of what --name says */
    HOOK_DRAIN          /* POST /v1/drain, for all workers of the process */
} hook_kind;

typedef struct deployment {
    uint64_t grace_s;
    bool has_status;
    uint64_t status_port;
    hook_kind hook;
    const char *name; /* HOOK_STOP_NAME */
} deployment;

/* May it stand in a line of a shell, and there in a text of YAML, as it is? */
static bool is_plain(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return name[0] != '-' && name[strspn(name, plain)] == '\0';
}

/* Only a Sluice server has operators who stop one of its consumers. A worker of a section has no SLUICE_NAME: it would be the name of all. */
static hook_kind hook_for(const sl_invocation *invocation, const sl_work_members *members, bool has_status)
{
    const bool has_sections = sl_config_member_count(invocation->config, invocation->command) > 0;
    const sl_work_member *const first = &members->all[0];
    const hook_kind drain = has_status ? HOOK_DRAIN : HOOK_NONE;

    if (members->count > 1)
        return drain;
    if (sl_work_origin_of(&first->plan) != SL_WORK_FROM_SLUICE)
        return HOOK_NONE;
    if (first->plan.consumer_name == NULL)
        return has_sections ? drain : HOOK_STOP_VARIABLE;
    if (first->values[SL_OPT_WORK_NAME].source == SL_OPTION_FROM_ENVIRONMENT)
        return HOOK_STOP_VARIABLE;
    return is_plain(first->plan.consumer_name) ? HOOK_STOP_NAME : drain;
}

static deployment deployment_of(const sl_invocation *invocation, const sl_work_members *members)
{
    const sl_option_value *const values = invocation->values;

    const bool has_status = values[SL_OPT_NO_STATUS].number == 0 && values[SL_OPT_STATUS_PORT].number != 0;

    return (deployment){ .grace_s = sl_work_orchestrator_seconds(&members->budget),
                         .has_status = has_status,
                         .status_port = values[SL_OPT_STATUS_PORT].number,
                         .hook = hook_for(invocation, members, has_status),
                         .name = members->all[0].plan.consumer_name };
}

typedef struct snippet {
    const char *name, *title; /* for programs and for people */
    const char *number;       /* the setting that has the grace */
    const char *unit;         /* behind the number */
    uint64_t hook_s;          /* on top of the grace */
    char text[SNIPPET_BYTES];
} snippet;

static void write_kubernetes(const deployment *d, sl_text *text)
{
    char buffer[SNIPPET_BYTES];

    sl_text_add(text, "spec:\n");
    snprintf(buffer, sizeof buffer, "  terminationGracePeriodSeconds: %" PRIu64 "\n", d->grace_s);
    sl_text_add(text, buffer);
    if (d->has_status) {
        snprintf(buffer, sizeof buffer,
                 "  containers:\n"
                 "    - name: worker     # with --status-host 0.0.0.0\n"
                 "      readinessProbe:\n"
                 "        httpGet: {path: /readyz, port: %" PRIu64 "}\n"
                 "      livenessProbe:\n"
                 "        httpGet: {path: /livez, port: %" PRIu64 "}\n",
                 d->status_port, d->status_port);
        sl_text_add(text, buffer);
    }
    sl_text_add(text, "  # No preStop hook is needed: SIGTERM begins the drain.\n");
}

static void write_hook(const deployment *d, char *buffer, size_t capacity)
{
    if (d->hook == HOOK_DRAIN)
        snprintf(buffer, capacity, "\"curl -s -X POST 'localhost:%" PRIu64 "/v1/drain?wait=%ds'\"",
                 d->status_port, HOOK_WAIT_S);
    else
        snprintf(buffer, capacity, "'sluice consumer stop %s --wait %ds'",
                 d->hook == HOOK_STOP_NAME ? d->name : "\"$SLUICE_NAME\"", HOOK_WAIT_S);
}

/* Kubernetes counts from the begin of the hook. When the hook waits in vain, because the server does not answer, the drain begins with
 * SIGTERM and needs all of the grace. */
static void write_prestop(const deployment *d, sl_text *text)
{
    static const char *const needs[] = { [HOOK_NONE] = "",
                                         [HOOK_STOP_VARIABLE] = "with SLUICE_NAME and SLUICE_SERVER",
                                         [HOOK_STOP_NAME] = "with SLUICE_SERVER",
                                         [HOOK_DRAIN] = "with curl in its image" };
    char buffer[SNIPPET_BYTES], command[SNIPPET_BYTES / 2];

    write_hook(d, command, sizeof command);
    snprintf(buffer, sizeof buffer,
             "# The hook runs before SIGTERM, within the same time: %" PRIu64
             "s of --grace + %ds of the hook.\n"
             "spec:\n"
             "  terminationGracePeriodSeconds: %" PRIu64 "\n"
             "  containers:\n"
             "    - name: worker     # %s\n"
             "      lifecycle:\n"
             "        preStop:\n"
             "          exec:\n"
             "            command: [sh, -c, %s]\n",
             d->grace_s, HOOK_WAIT_S, d->grace_s + HOOK_WAIT_S, needs[d->hook], command);
    sl_text_add(text, buffer);
}

/* mixed: by default systemd sends SIGTERM to the handlers too, which ends what was to be finished. */
static void write_systemd(const deployment *d, sl_text *text)
{
    char buffer[SNIPPET_BYTES];

    snprintf(buffer, sizeof buffer,
             "[Service]\n"
             "Type=notify\n"
             "ExecStart=/usr/local/bin/sluice work --notify ...\n"
             "# SIGTERM is for sluice alone: it tells its handlers itself.\n"
             "KillMode=mixed\n"
             "TimeoutStopSec=%" PRIu64 "\n"
             "WatchdogSec=%d\n"
             "Restart=on-failure\n"
             "RestartPreventExitStatus=2\n",
             d->grace_s, WATCHDOG_S);
    sl_text_add(text, buffer);
}

static void write_compose(const deployment *d, sl_text *text)
{
    char buffer[SNIPPET_BYTES];

    snprintf(buffer, sizeof buffer,
             "services:\n"
             "  worker:\n"
             "    stop_signal: SIGTERM\n"
             "    stop_grace_period: %" PRIu64 "s\n",
             d->grace_s);
    sl_text_add(text, buffer);
}

enum {
    SNIPPET_COUNT = 4
};

static void make_snippets(const deployment *d, snippet snippets[static SNIPPET_COUNT])
{
    static const struct {
        const char *name, *title, *number, *unit;
        uint64_t hook_s;
        void (*write)(const deployment *d, sl_text *text);
    } kinds[SNIPPET_COUNT] = {
        { "kubernetes", "kubernetes", "terminationGracePeriodSeconds", "", 0, write_kubernetes },
        { "kubernetes_prestop", "kubernetes, with a preStop hook", "terminationGracePeriodSeconds", "",
          HOOK_WAIT_S, write_prestop },
        { "systemd", "systemd", "TimeoutStopSec", "", 0, write_systemd },
        { "compose", "compose", "stop_grace_period", "s", 0, write_compose },
    };

    for (size_t i = 0; i < SNIPPET_COUNT; i++) {
        sl_text text;
        snippets[i] = (snippet){ .name = kinds[i].name,
                                 .title = kinds[i].title,
                                 .number = kinds[i].number,
                                 .unit = kinds[i].unit,
                                 .hook_s = kinds[i].hook_s };
        sl_text_init(&text, snippets[i].text, sizeof snippets[i].text);
        kinds[i].write(d, &text);
    }
}

static bool is_meant(const deployment *d, const snippet *s)
{
    return s->hook_s == 0 || d->hook != HOOK_NONE;
}

static void print_indented(FILE *out, const char *text)
{
    bool at_begin = true;

    for (; *text != '\0'; text++) {
        fputs(at_begin ? "  " : "", out);
        fputc(*text, out);
        at_begin = *text == '\n';
    }
}

void sl_work_deploy_print(const sl_invocation *invocation, const sl_work_members *members)
{
    const deployment d = deployment_of(invocation, members);
    snippet snippets[SNIPPET_COUNT];

    make_snippets(&d, snippets);
    for (size_t i = 0; i < SNIPPET_COUNT; i++) {
        if (!is_meant(&d, &snippets[i]))
            continue;
        fprintf(invocation->out, "\n%s\n", snippets[i].title);
        print_indented(invocation->out, snippets[i].text);
    }
}

/* A number stays one; with a unit it is a text, as the file has it. */
static void print_json_number(FILE *out, const snippet *s, uint64_t grace_s)
{
    if (s->unit[0] == '\0')
        fprintf(out, "\"%s\": %" PRIu64, s->number, grace_s + s->hook_s);
    else
        fprintf(out, "\"%s\": \"%" PRIu64 "%s\"", s->number, grace_s + s->hook_s, s->unit);
    if (s->hook_s > 0)
        fprintf(out, ", \"hook_seconds\": %" PRIu64, s->hook_s);
}

static void print_json_snippet(FILE *out, const snippet *s, const deployment *d)
{
    fprintf(out, ", \"%s\": ", s->name);
    if (!is_meant(d, s)) {
        fputs("null", out);
        return;
    }
    fputc('{', out);
    print_json_number(out, s, d->grace_s);
    fputs(", \"snippet\": ", out);
    sl_print_json_text(out, s->text);
    fputc('}', out);
}

void sl_work_deploy_print_json(const sl_invocation *invocation, const sl_work_members *members)
{
    const sl_budget_wish wish = sl_budget_wish_read(invocation->values);
    const deployment d = deployment_of(invocation, members);
    snippet snippets[SNIPPET_COUNT];

    make_snippets(&d, snippets);
    fprintf(invocation->out,
            ", \"deployment\": {\"grace_seconds\": %" PRIu64 ", \"comfortable_grace_seconds\": %" PRIu64
            ", \"watchdog_seconds\": %d",
            d.grace_s, sl_budget_comfortable_grace_seconds(&wish), WATCHDOG_S);
    for (size_t i = 0; i < SNIPPET_COUNT; i++)
        print_json_snippet(invocation->out, &snippets[i], &d);
    fputc('}', invocation->out);
}
