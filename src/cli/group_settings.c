/* cli/group_settings.c — see cli/group_settings.h. The options of both commands are in the same order, so that one walk serves both:
 * it begins at the first option of the one or of the other. */
#include "cli/group_settings.h"

#include <assert.h>
#include <string.h>

#include "cli/group_call.h"

#define MILLISECOND_NS UINT64_C(1000000)

enum {
    SETTING_COUNT = SL_OPT_UPDATE_START - SL_OPT_CREATE_START,
    FILTER_WINDOW = 1000 /* the server needs a number and does not use it for groups */
};

static_assert(SL_OPT_UPDATE_EXTRA_STATISTICS - SL_OPT_CREATE_EXTRA_STATISTICS == SETTING_COUNT,
              "both commands have the same settings");

/* The place of a setting among the options of a command. */
#define AT(setting) (SL_OPT_CREATE_##setting - SL_OPT_CREATE_START)

/* --- what is wrong --- */

static int check_time(const sl_invocation *invocation, const sl_option_value *value, const char *name)
{
    char sentence[128];

    if (value->text == NULL || value->number % MILLISECOND_NS == 0)
        return SL_EXIT_OK;
    snprintf(sentence, sizeof sentence, "--%s is counted in whole milliseconds.", name);
    return sl_cli_complain(invocation, sentence);
}

/* False: it is none of the three. */
static bool take_start(const char *text, sl_wire_group_request *into)
{
    uint64_t from;

    if (strcmp(text, "start") == 0) {
        into->start = SL_WIRE_START_BEGIN;
    } else if (strcmp(text, "end") == 0) {
        into->start = SL_WIRE_START_END;
    } else if (sl_str_parse_u64(sl_str_from(text), &from) == SL_OK && from <= INT64_MAX) {
        into->start = SL_WIRE_START_GIVEN;
        into->revision = from;
        into->position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, from, from };
    } else {
        return false;
    }
    return true;
}

static int check_values(const sl_invocation *invocation, const sl_option_value *values)
{
    sl_wire_group_request ignored;
    int code = SL_EXIT_OK;

    if (values[AT(START)].text != NULL && !take_start(values[AT(START)].text, &ignored))
        return sl_cli_complain(invocation,
                               "--start needs start, end or a number: the revision of an event, for $all its "
                               "position.");
    code = check_time(invocation, &values[AT(MESSAGE_TIMEOUT)], "message-timeout");
    if (code == SL_EXIT_OK)
        code = check_time(invocation, &values[AT(CHECKPOINT_AFTER)], "checkpoint-after");
    return code;
}

static int check_filter(const sl_invocation *invocation)
{
    const sl_option_value *const values = invocation->values;
    const bool is_all = strcmp(invocation->words[0], "$all") == 0;
    const bool by_stream = values[SL_OPT_FILTER_STREAM].text != NULL,
               by_type = values[SL_OPT_FILTER_TYPE].text != NULL, is_regex = values[SL_OPT_REGEX].number != 0;
    const sl_option_repeat *const all = values[by_stream ? SL_OPT_FILTER_STREAM : SL_OPT_FILTER_TYPE].all;

    if ((by_stream || by_type) && !is_all)
        return sl_cli_complain(invocation, "Filters are for groups on all streams: name $all as the STREAM.");
    if (by_stream && by_type)
        return sl_cli_complain(invocation,
                               "There is one filter: --filter-stream or --filter-type, not both.");
    if (is_regex && !by_stream && !by_type)
        return sl_cli_complain(
            invocation, "--regex says how a filter is meant: it needs --filter-stream or --filter-type.");
    if (is_regex && all != NULL && all->next != NULL)
        return sl_cli_complain(invocation,
                               "There can be one regular expression only; it may have several parts: a|b.");
    return SL_EXIT_OK;
}

int sl_group_plan_check_update(const sl_invocation *invocation)
{
    const sl_option_value *const values = &invocation->values[SL_OPT_UPDATE_START];

    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (values[i].source != SL_OPTION_UNSET)
            return check_values(invocation, values);
    }
    return sl_cli_complain(invocation, "What is to be changed? Name at least one setting; 'sluice help group "
                                       "update' shows them.");
}

/* --- what is given --- */

static void take_number(const sl_option_value *value, int32_t *into)
{
    if (value->source != SL_OPTION_UNSET)
        *into = (int32_t)value->number; /* the option's bounds are those of the type */
}

/* Sent only when it is named: a server that is asked to change the rest keeps what it has. */
static void take_limit(const sl_option_value *value, sl_wire_group_limit *into)
{
    into->given = value->source != SL_OPTION_UNSET;
    take_number(value, &into->value);
}

/* A flag, or no (0) and yes (1). */
static void take_flag(const sl_option_value *value, bool *into)
{
    if (value->source != SL_OPTION_UNSET)
        *into = value->number != 0;
}

static void take_time(const sl_option_value *value, sl_wire_group_time *into)
{
    if (value->source != SL_OPTION_UNSET)
        *into = (sl_wire_group_time){ .given = true, .value = (int64_t)(value->number / MILLISECOND_NS) };
}

static void take_values(const sl_option_value *values, sl_wire_group_request *into)
{
    sl_wire_group_settings *const s = &into->settings;

    if (values[AT(START)].text != NULL)
        (void)take_start(values[AT(START)].text, into);
    if (values[AT(STRATEGY)].text != NULL)
        s->strategy = sl_str_from(values[AT(STRATEGY)].text);
    take_time(&values[AT(MESSAGE_TIMEOUT)], &s->message_timeout);
    take_number(&values[AT(MAX_RETRY_COUNT)], &s->max_retry_count);
    take_limit(&values[AT(MAX_INTERRUPTS)], &s->max_interrupts);
    take_limit(&values[AT(MAX_KILLS)], &s->max_kills);
    take_number(&values[AT(MAX_SUBSCRIBER_COUNT)], &s->max_subscriber_count);
    take_flag(&values[AT(RESOLVE_LINKS)], &s->resolve_links);
    take_number(&values[AT(HISTORY_BUFFER_SIZE)], &s->history_buffer_size);
    take_number(&values[AT(LIVE_BUFFER_SIZE)], &s->live_buffer_size);
    take_number(&values[AT(READ_BATCH_SIZE)], &s->read_batch_size);
    take_time(&values[AT(CHECKPOINT_AFTER)], &s->checkpoint_after);
    take_number(&values[AT(MIN_CHECKPOINT_COUNT)], &s->min_checkpoint_count);
    take_number(&values[AT(MAX_CHECKPOINT_COUNT)], &s->max_checkpoint_count);
    take_flag(&values[AT(EXTRA_STATISTICS)], &s->extra_statistics);
}

static void take_name(sl_group_plan *plan, const sl_invocation *invocation)
{
    const sl_wire_group_name name = sl_group_name_of(invocation);

    memset(plan, 0, sizeof *plan);
    plan->request.source = name.source;
    plan->request.stream = name.stream;
    plan->request.group = name.group;
    plan->request.has_settings = true;
}

/* --- a new group --- */

static void take_filter(sl_group_plan *plan, const sl_invocation *invocation)
{
    const sl_option_value *const values = invocation->values;
    const bool by_stream = values[SL_OPT_FILTER_STREAM].text != NULL;
    const sl_option_value *const given = &values[by_stream ? SL_OPT_FILTER_STREAM : SL_OPT_FILTER_TYPE];
    sl_wire_filter *const into = &plan->request.filter;

    into->kind = given->text == NULL ? SL_WIRE_FILTER_NONE : SL_WIRE_FILTER_GIVEN;
    if (given->text == NULL)
        return;
    into->on = by_stream ? SL_WIRE_FILTER_ON_STREAM : SL_WIRE_FILTER_ON_TYPE;
    into->window = SL_WIRE_WINDOW_MAX;
    into->window_max = FILTER_WINDOW;
    into->checkpoint_multiplier = 1;
    if (values[SL_OPT_REGEX].number != 0) {
        into->regex = sl_str_from(given->text);
        return;
    }
    for (const sl_option_repeat *one = given->all; one != NULL && into->prefix_count < SL_GROUP_PREFIXES_MAX;
         one = one->next)
        plan->prefixes[into->prefix_count++] = sl_str_from(one->text);
    into->prefixes = plan->prefixes;
}

int sl_group_plan_create(sl_group_plan *plan, const sl_invocation *invocation)
{
    const sl_option_value *const values = &invocation->values[SL_OPT_CREATE_START];
    int code = check_values(invocation, values);

    if (code == SL_EXIT_OK)
        code = check_filter(invocation);
    if (code != SL_EXIT_OK)
        return code;
    take_name(plan, invocation);
    take_filter(plan, invocation);
    take_values(values, &plan->request);
    return SL_EXIT_OK;
}

/* --- a group that is there --- */

/* "-1" for the end, "7", or for all streams "C:7/P:7". */
static bool take_present_start(sl_str text, sl_wire_group_request *into)
{
    sl_str commit = text, prepare = text;
    uint64_t number, second;

    if (into->source == SL_WIRE_SOURCE_ALL && sl_str_starts_with(text, SL_STR("C:"))) {
        if (!sl_str_cut((sl_str){ text.data + 2, text.bytes - 2 }, '/', &commit, &prepare) ||
            !sl_str_starts_with(prepare, SL_STR("P:")))
            return false;
        prepare = (sl_str){ prepare.data + 2, prepare.bytes - 2 };
    }
    if (sl_str_equal(commit, SL_STR("-1"))) {
        into->start = SL_WIRE_START_END;
        return true;
    }
    if (sl_str_parse_u64(commit, &number) != SL_OK || sl_str_parse_u64(prepare, &second) != SL_OK)
        return false;
    into->start = SL_WIRE_START_GIVEN;
    into->revision = number;
    into->position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, number, second };
    return true;
}

bool sl_group_plan_update(sl_group_plan *plan, const sl_invocation *invocation,
                          const sl_wire_group_info *info)
{
    const sl_option_value *const values = &invocation->values[SL_OPT_UPDATE_START];

    take_name(plan, invocation);
    plan->request.settings = (sl_wire_group_settings){
        .resolve_links = info->resolve_links,
        .extra_statistics = info->extra_statistics,
        .message_timeout = { .given = true, .value = info->message_timeout_ms },
        .checkpoint_after = { .given = true, .value = info->checkpoint_after_ms },
        .max_retry_count = info->max_retry_count,
        .min_checkpoint_count = info->min_checkpoint_count,
        .max_checkpoint_count = info->max_checkpoint_count,
        .max_subscriber_count = info->max_subscriber_count,
        .live_buffer_size = info->live_buffer_size,
        .read_batch_size = info->read_batch_size,
        .history_buffer_size = info->buffer_size,
        .strategy = info->strategy,
    };
    if (values[AT(START)].text == NULL && !take_present_start(info->start_from, &plan->request))
        return false;
    take_values(values, &plan->request);
    return true;
}
