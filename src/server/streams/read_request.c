/* server/streams/read_request.c — what a client may ask of Read, and what its numbers mean.
 *
 * Statuses are those of KurrentDB (shared kurrent-wire, 3.1): what it checks itself is INVALID_ARGUMENT; what it stumbles over
 * is UNKNOWN with a text that one client looks for. That text comes first, then a sentence that helps.
 *
 * Where a read begins:
 *                          read                                   subscription
 *   a stream, forwards     at the revision                        after it
 *   a stream, backwards    at the revision, start is 0            -
 *   $all, forwards         at the position                        after it
 *   $all, backwards        before the position                    -
 *
 * Our positions are the numbers of records, one after the other, so none is "in the middle of a record" as with byte offsets:
 * one that no event has is good as well, and stands for the next event. 2^64-1 is the end, in a position twice. */
#include "server/streams/read_private.h"

#include "base/cleanup.h"
#include "server/reply.h"
#include "server/streams/proposed.h"

static bool refuse(sl_request *request, const char *sentence)
{
    sl_reply_invalid(request, sentence);
    return false;
}

static bool stumble(sl_request *request, const char *sentence)
{
    sl_reply_thrown(request, sentence);
    return false;
}

/* --- combinations --- */

/* What is wrong with this combination; NULL when nothing is. */
static const char *wrong_with(const sl_read_request *asked)
{
    if (asked->extent == SL_READ_EXTENT_UNSET)
        return "Give a count, or ask for a subscription.";
    if (asked->filter.kind == SL_WIRE_FILTER_UNSET)
        return "Give a filter, or say no_filter.";
    if (asked->extent == SL_READ_EXTENT_SUBSCRIPTION && asked->backwards)
        return "A subscription reads forwards.";
    if (asked->source == SL_WIRE_SOURCE_STREAM && asked->filter.kind == SL_WIRE_FILTER_GIVEN)
        return "Only $all can be filtered.";
    return NULL;
}

static bool check_combination(sl_request *request, const sl_read_request *asked)
{
    static const char *const extents[] = { "None", "Count", "Subscription" };
    static const char *const filters[] = { "None", "NoFilter", "Filter" };
    const char *const wrong = wrong_with(asked);
    char buffer[256];
    sl_text text;

    if (wrong == NULL)
        return true;
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "The combination of (");
    sl_text_add(&text, asked->source == SL_WIRE_SOURCE_STREAM ? "Stream, " : "All, ");
    sl_text_add(&text, extents[asked->extent]);
    sl_text_add(&text, asked->backwards ? ", Backwards, " : ", Forwards, ");
    sl_text_add(&text, filters[asked->filter.kind]);
    sl_text_add(&text, ") is invalid. ");
    sl_text_add(&text, wrong);
    return refuse(request, buffer);
}

/* --- names --- */

/* A name that nothing could ever be written to is a mistake of the caller, and waiting for it would hide that. */
static bool check_name(sl_request *request, sl_str name)
{
    const char *const complaint = sl_stream_name_complaint(name);

    return complaint == NULL || refuse(request, complaint);
}

static bool check(sl_request *request, const sl_read_request *asked)
{
    if (!asked->has_id_option)
        return refuse(request, "The request has no uuid_option: structured or string.");
    if (asked->source == SL_WIRE_SOURCE_UNSET)
        return refuse(request, "The request names neither a stream nor all.");
    if (!check_combination(request, asked))
        return false;
    if (asked->source == SL_WIRE_SOURCE_STREAM && !check_name(request, asked->stream))
        return false;
    if (asked->extent == SL_READ_EXTENT_COUNT && asked->count == 0)
        return refuse(request, "The count must be at least 1.");
    if (asked->extent == SL_READ_EXTENT_COUNT && asked->start == SL_WIRE_START_UNSET)
        return refuse(request, "The request does not say where to begin.");
    return true;
}

/* --- numbers --- */

/* What is not set is the beginning: only a subscription may leave it out. */
typedef struct start {
    sl_wire_start kind; /* BEGIN, END or GIVEN */
    uint64_t at;
} start;

static bool start_in_stream(sl_request *request, const sl_read_request *asked, start *ret_start)
{
    const bool given = asked->start == SL_WIRE_START_GIVEN;

    *ret_start = (start){ asked->start, asked->revision };
    if (asked->start == SL_WIRE_START_UNSET)
        ret_start->kind = SL_WIRE_START_BEGIN;
    else if (given && asked->revision == UINT64_MAX)
        ret_start->kind = SL_WIRE_START_END;
    else if (given && asked->revision > SL_REVISION_MAX)
        return stumble(request, "The revision is above 2^63-1.");
    return true;
}

static bool start_in_all(sl_request *request, const sl_read_request *asked, start *ret_start)
{
    const uint64_t commit = asked->position.commit, prepare = asked->position.prepare;

    *ret_start = (start){ asked->start, commit };
    if (asked->start == SL_WIRE_START_UNSET)
        ret_start->kind = SL_WIRE_START_BEGIN;
    if (asked->start != SL_WIRE_START_GIVEN)
        return true;
    if (commit == UINT64_MAX && prepare == UINT64_MAX)
        ret_start->kind = SL_WIRE_START_END;
    else if (commit > INT64_MAX || prepare > INT64_MAX)
        return stumble(request, "A part of the position is above 2^63-1.");
    else if (commit < prepare)
        return stumble(request, "The commit position is below the prepare position.");
    else if (commit == 0)
        ret_start->kind = SL_WIRE_START_BEGIN;
    return true;
}

/* Of a subscription: behind what is given. */
static void subscribe_from(const start *s, reading_plan *plan)
{
    plan->from = s->kind == SL_WIRE_START_GIVEN ? s->at + 1 : 0;
    plan->from_end = s->kind == SL_WIRE_START_END;
}

static bool read_stream_from(sl_request *request, const start *s, reading_plan *plan)
{
    if (s->kind == SL_WIRE_START_END && !plan->backwards)
        return stumble(request, "A stream cannot be read forwards from its end.");
    plan->from = s->kind == SL_WIRE_START_END ? UINT64_MAX : s->kind == SL_WIRE_START_BEGIN ? 0 : s->at;
    return true;
}

static bool read_all_from(const start *s, reading_plan *plan)
{
    const sl_wire_start nothing_behind = plan->backwards ? SL_WIRE_START_BEGIN : SL_WIRE_START_END;

    plan->is_empty = s->kind == nothing_behind;
    plan->from = s->kind == SL_WIRE_START_END ? UINT64_MAX : s->kind == SL_WIRE_START_BEGIN ? 0 : s->at;
    return true;
}

static bool make_start(sl_request *request, const sl_read_request *asked, reading_plan *plan)
{
    const bool all = asked->source == SL_WIRE_SOURCE_ALL;
    start s;

    if (!(all ? start_in_all(request, asked, &s) : start_in_stream(request, asked, &s)))
        return false;
    if (plan->is_subscription) {
        subscribe_from(&s, plan);
        return true;
    }
    return all ? read_all_from(&s, plan) : read_stream_from(request, &s, plan);
}

bool reading_plan_make(sl_request *request, const sl_read_request *asked, reading_plan *ret_plan)
{
    if (!check(request, asked))
        return false;
    *ret_plan = (reading_plan){
        .stream = asked->source == SL_WIRE_SOURCE_STREAM ? asked->stream : (sl_str){ 0 },
        .count = asked->count,
        .backwards = asked->backwards,
        .resolve_links = asked->resolve_links,
        .is_subscription = asked->extent == SL_READ_EXTENT_SUBSCRIPTION,
        .wants_ends = asked->source == SL_WIRE_SOURCE_STREAM && asked->compatibility >= 1,
        .id_form = asked->id_form == SL_WIRE_ID_TEXT ? SL_WIRE_ID_TEXT : SL_WIRE_ID_STRUCTURED,
    };
    return make_start(request, asked, ret_plan) && reading_filter_make(request, asked, ret_plan);
}
