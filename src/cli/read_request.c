/* cli/read_request.c — see cli/read_request.h.
 *
 * --from names the first event that is shown, in both kinds of reading. A plain read is asked for that event; a subscription
 * begins behind the event that it is asked for, so it is asked for the one before. */
#include "cli/read_request.h"

#include <string.h>

enum {
    FILTER_WINDOW = 1000 /* after so many events that do not fit, the server tells how far it has looked */
};

/* --- what fits together --- */

static bool is_at_end(const sl_invocation *invocation)
{
    const sl_option_value *const values = invocation->values;

    return values[SL_OPT_START].text != NULL && strcmp(values[SL_OPT_START].text, "end") == 0 &&
           values[SL_OPT_FOLLOW].number == 0 && values[SL_OPT_BACKWARDS].number == 0;
}

static int check(const sl_invocation *invocation)
{
    const sl_option_value *const values = invocation->values;
    const bool is_all = values[SL_OPT_ALL].number != 0, is_follow = values[SL_OPT_FOLLOW].number != 0;
    const bool by_stream = values[SL_OPT_FILTER_STREAM].text != NULL,
               by_type = values[SL_OPT_FILTER_TYPE].text != NULL;

    if (is_all == (invocation->word_count == 1))
        return sl_cli_complain(invocation, "What is to be read is either the name of a STREAM or --all.");
    if (is_follow && values[SL_OPT_BACKWARDS].number != 0)
        return sl_cli_complain(invocation, "--follow goes forwards: it cannot be combined with --backwards.");
    if (is_at_end(invocation))
        return sl_cli_complain(invocation,
                               "Behind the end there is nothing yet: add --follow to wait for what comes, or "
                               "--backwards to read what was.");
    if ((by_stream || by_type) && !is_all)
        return sl_cli_complain(invocation, "Filters are for reading all streams: --all.");
    if (by_stream && by_type)
        return sl_cli_complain(invocation,
                               "There is one filter: --filter-stream or --filter-type, not both.");
    if (values[SL_OPT_REGEX].number != 0 && !by_stream && !by_type)
        return sl_cli_complain(
            invocation, "--regex says how a filter is meant: it needs --filter-stream or --filter-type.");
    return SL_EXIT_OK;
}

/* --- where to begin --- */

static void begin_given(sl_read_plan *plan, uint64_t from)
{
    sl_read_request *const request = &plan->request;

    if (plan->is_follow && from == 0) {
        request->start = SL_WIRE_START_BEGIN;
        return;
    }
    request->start = SL_WIRE_START_GIVEN;
    request->revision = plan->is_follow ? from - 1 : from;
    request->position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, request->revision, request->revision };
}

static int take_from(sl_read_plan *plan, const sl_invocation *invocation)
{
    const char *const text = invocation->values[SL_OPT_START].text;
    uint64_t from;

    if (text == NULL)
        plan->request.start = plan->is_backwards ? SL_WIRE_START_END : SL_WIRE_START_BEGIN;
    else if (strcmp(text, "start") == 0)
        plan->request.start = SL_WIRE_START_BEGIN;
    else if (strcmp(text, "end") == 0)
        plan->request.start = SL_WIRE_START_END;
    else if (sl_str_parse_u64(sl_str_from(text), &from) == SL_OK && from < INT64_MAX)
        begin_given(plan, from);
    else
        return sl_cli_complain(
            invocation, "--from needs start, end or a number: the revision of an event, with --all its "
                        "position.");
    return SL_EXIT_OK;
}

void sl_read_plan_move(sl_read_plan *plan, uint64_t revision, sl_wire_position position)
{
    plan->request.start = SL_WIRE_START_GIVEN;
    plan->request.revision = revision;
    plan->request.position = position;
}

/* --- what to leave out --- */

static int take_filter(sl_read_plan *plan, const sl_invocation *invocation)
{
    const sl_option_value *const values = invocation->values;
    const bool by_stream = values[SL_OPT_FILTER_STREAM].text != NULL,
               is_regex = values[SL_OPT_REGEX].number != 0;
    const sl_option_value *const filter = &values[by_stream ? SL_OPT_FILTER_STREAM : SL_OPT_FILTER_TYPE];
    sl_wire_filter *const into = &plan->request.filter;

    into->kind = filter->text == NULL ? SL_WIRE_FILTER_NONE : SL_WIRE_FILTER_GIVEN;
    if (filter->text == NULL)
        return SL_EXIT_OK;
    if (is_regex && filter->all != NULL && filter->all->next != NULL)
        return sl_cli_complain(invocation,
                               "There can be one regular expression only; it may have several parts: a|b.");
    into->on = by_stream ? SL_WIRE_FILTER_ON_STREAM : SL_WIRE_FILTER_ON_TYPE;
    into->window = SL_WIRE_WINDOW_MAX;
    into->window_max = FILTER_WINDOW;
    into->checkpoint_multiplier = 1;
    if (is_regex) {
        into->regex = sl_str_from(filter->text);
        return SL_EXIT_OK;
    }
    for (const sl_option_repeat *one = filter->all; one != NULL && into->prefix_count < SL_READ_PREFIXES_MAX;
         one = one->next)
        plan->prefixes[into->prefix_count++] = sl_str_from(one->text);
    into->prefixes = plan->prefixes;
    return SL_EXIT_OK;
}

int sl_read_plan_init(sl_read_plan *plan, const sl_invocation *invocation)
{
    const sl_option_value *const values = invocation->values;
    int code = check(invocation);

    if (code != SL_EXIT_OK)
        return code;
    memset(plan, 0, sizeof *plan);
    plan->is_all = values[SL_OPT_ALL].number != 0;
    plan->is_follow = values[SL_OPT_FOLLOW].number != 0;
    plan->is_backwards = values[SL_OPT_BACKWARDS].number != 0;
    plan->count = values[SL_OPT_EVENT_COUNT].text == NULL ? UINT64_MAX : values[SL_OPT_EVENT_COUNT].number;
    plan->request =
        (sl_read_request){ .source = plan->is_all ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM,
                           .stream = sl_str_from(plan->is_all ? NULL : invocation->words[0]),
                           .backwards = plan->is_backwards,
                           .resolve_links = values[SL_OPT_RESOLVE_LINKS].number != 0,
                           .extent = plan->is_follow ? SL_READ_EXTENT_SUBSCRIPTION : SL_READ_EXTENT_COUNT,
                           .count = plan->count > INT64_MAX ? INT64_MAX : plan->count,
                           .has_id_option = true,
                           .id_form = SL_WIRE_ID_STRUCTURED };
    code = take_from(plan, invocation);
    return code == SL_EXIT_OK ? take_filter(plan, invocation) : code;
}
