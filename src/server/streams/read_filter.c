/* server/streams/read_filter.c — which events of $all a client is shown.
 *
 * Some records of the server itself are shown to nobody, with a filter of the client or without one; everything else that
 * begins with a $ is: metadata, links, and the checkpoints and parked messages of groups on ordinary streams.
 *
 * Events are looked at here, one by one, and not by the cursor: a subscription counts those that it passes over and says
 * after how many of them it is where. */
#include "server/streams/read_private.h"

#include "server/reply.h"
#include "server/streams/hidden.h"

#include <inttypes.h>
#include <stdio.h>

/* Of groups on $all: a group would otherwise be given what it writes itself, for ever. */
bool sl_all_hides(sl_str stream)
{
    if (sl_str_starts_with(stream, SL_STR("$persistentsubscription-$all::")))
        return sl_str_ends_with(stream, SL_STR("-checkpoint")) || sl_str_ends_with(stream, SL_STR("-parked"));
    return sl_str_equal(stream, SL_STR("$epoch-information"));
}

sl_filter_verdict reading_filter_judge(const reading_plan *plan, const sl_event *event)
{
    if (event->stream.data[0] == '$' && sl_all_hides(event->stream))
        return SL_FILTER_NO;
    return plan->filter == NULL ? SL_FILTER_YES : sl_filter_judge(plan->filter, event->stream, event->type);
}

static void log_failed(reading *r, const sl_event *event)
{
    sl_host *const host = reading_host(r);
    uint64_t unsaid;

    if (sl_seldom_may(&host->filter_failed, sl_clock_mono_ns(host->clock), &unsaid))
        sl_log(host->log, SL_LOG_WARN, "a read was ended: the expression of its filter needs too many steps",
               SL_LOG_U64("position", event->position), SL_LOG_STR("peer", sl_request_peer(r->request)),
               SL_LOG_U64("others_before", unsaid));
}

/* To go on behind it would be to lose it: a subscriber would be told that everything up to some place was looked at. */
reading_step reading_filter_fail(reading *r, const sl_event *event)
{
    char sentence[320];

    log_failed(r, event);
    (void)snprintf(
        sentence, sizeof sentence,
        "The expression of the filter needs more than %d steps for the event at position %" PRIu64
        ", so nobody can say whether it matches. Repetitions inside of repetitions, as in (a+)+, are the "
        "usual cause: make it simpler, or use prefixes.",
        SL_FILTER_STEPS_MAX, event->position);
    sl_reply_invalid(r->request, sentence);
    return READING_IS_OVER;
}

/* --- from the request --- */

static bool refuse(sl_request *request, const char *sentence)
{
    sl_reply_invalid(request, sentence);
    return false;
}

static bool names_index(const sl_wire_filter *filter, size_t *ret_at)
{
    if (filter->on != SL_WIRE_FILTER_ON_STREAM || filter->regex.bytes > 0)
        return false;
    for (size_t i = 0; i < filter->prefix_count; i++)
        if (sl_str_starts_with(filter->prefixes[i], SL_STR("$idx-"))) {
            *ret_at = i;
            return true;
        }
    return false;
}

/* A prefix that begins with $idx- asks for a secondary index, and there are none. */
static bool refuse_index(sl_request *request, const sl_wire_filter *filter, size_t at)
{
    if (filter->prefix_count > 1)
        return refuse(request, "An index ($idx-...) can only be read alone: give no other prefix with it.");
    sl_reply_index_not_found(request, filter->prefixes[at]);
    return false;
}

static bool make(sl_request *request, const sl_wire_filter *asked, reading_plan *plan)
{
    char why_buffer[256], sentence[320];
    const bool by_expression = asked->regex.bytes > 0;
    const bool too_many = !by_expression && asked->prefix_count > SL_FILTER_PREFIXES_MAX;
    const sl_filter_setup setup = {
        .on = asked->on == SL_WIRE_FILTER_ON_STREAM ? SL_FILTER_ON_STREAM : SL_FILTER_ON_TYPE,
        .prefixes = by_expression ? NULL : asked->prefixes,
        .prefix_count = by_expression || too_many ? 0 : (uint32_t)asked->prefix_count,
        .expression = asked->regex,
    };
    sl_text why;
    sl_err err;

    sl_text_init(&why, why_buffer, sizeof why_buffer);
    err = too_many ? SL_ERR_TOO_LARGE : sl_filter_new(&setup, &why, &plan->filter);
    plan->by_expression = by_expression;
    if (err == SL_OK)
        return true;
    if (err == SL_ERR_TOO_LARGE)
        return refuse(request, "The filter is too large: at most 1,024 prefixes of 64 KB together, or an "
                               "expression of 4 KB.");
    if (err != SL_ERR_INVALID) {
        sl_reply_error(request, err);
        return false;
    }
    (void)snprintf(sentence, sizeof sentence, "The filter cannot be used: %s",
                   why.bytes > 0 ? why_buffer : "it has neither a prefix nor an expression.");
    return refuse(request, sentence);
}

/* How often a subscription says where it is. The real server fails without a word when this is 0. */
static bool make_interval(sl_request *request, const sl_wire_filter *filter, reading_plan *plan)
{
    plan->window = filter->window == SL_WIRE_WINDOW_MAX ? filter->window_max : READING_KURRENT_PAGE;
    plan->interval = (uint64_t)plan->window * filter->checkpoint_multiplier;
    if (filter->checkpoint_multiplier == 0) {
        sl_reply_thrown(request, "The checkpoint interval multiplier of a filtered subscription must be at "
                                 "least 1.");
        return false;
    }
    return plan->window > 0 || refuse(request, "The window of a filter must be at least 1.");
}

bool reading_filter_make(sl_request *request, const sl_read_request *asked, reading_plan *plan)
{
    const sl_wire_filter *const filter = &asked->filter;
    size_t index;

    if (filter->kind != SL_WIRE_FILTER_GIVEN)
        return true;
    if (filter->on == SL_WIRE_FILTER_ON_UNSET)
        return refuse(request, "The filter must say what it looks at: stream_identifier or event_type.");
    if (filter->window == SL_WIRE_WINDOW_UNSET)
        return refuse(request, "The filter must have a window: max or count.");
    if (names_index(filter, &index))
        return refuse_index(request, filter, index);
    if (plan->is_subscription && !make_interval(request, filter, plan))
        return false;
    return make(request, filter, plan);
}
