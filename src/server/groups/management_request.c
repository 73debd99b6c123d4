/* server/groups/management_request.c — what a client asks of a group, in the order in which the real server looks at it.
 *
 * Create:  the form of the request, names, strategy, start, [does it exist already], sizes and filter
 * Update:  [does it exist], the form of the request, strategy, start, sizes
 *
 * What can be said of a definition alone is said in definition_rules.c. Here is what needs the request or the store: the form, and
 * where a group begins. 2^64-1 is the end, in a position twice, as for reads.
 *
 * A group that begins at the end remembers which end that was. Else a group without a checkpoint would begin at another end after
 * each restart, and what was written between would never be delivered. */
#include "server/groups/management.h"

#include "server/reply.h"

/* --- refusals --- */

static bool refuse(sl_request *request, const char *sentence)
{
    sl_reply_invalid(request, sentence);
    return false;
}

static bool fail(sl_request *request, const sl_group_definition *definition, const char *reason)
{
    sl_reply_group_failed(request, definition->stream, definition->name, sl_str_from(reason));
    return false;
}

/* What a check of the definition said. */
static bool passed(sl_request *request, const sl_group_definition *definition, sl_err err, const char *reason)
{
    if (err == SL_OK)
        return true;
    if (err == SL_ERR_INVALID && reason != NULL)
        return fail(request, definition, reason);
    sl_reply_error(request, err);
    return false;
}

/* --- the form --- */

static bool check_form(sl_request *request, const sl_wire_group_request *asked, bool is_create)
{
    const sl_wire_filter *const filter = &asked->filter;

    if (!asked->has_settings)
        return refuse(request, "The request has no settings.");
    if (asked->start == SL_WIRE_START_UNSET)
        return refuse(request, "The request does not say where the group begins.");
    if (!is_create || asked->source != SL_WIRE_SOURCE_ALL)
        return true;
    if (filter->kind == SL_WIRE_FILTER_UNSET)
        return refuse(request, "The request has neither a filter nor no_filter.");
    if (filter->kind == SL_WIRE_FILTER_GIVEN && filter->on == SL_WIRE_FILTER_ON_UNSET)
        return refuse(request, "The filter must say what it looks at: stream_identifier or event_type.");
    return true;
}

/* Who does not know of them must not undo what somebody else has set. */
static void keep_limits(const sl_wire_group_settings *stored, sl_wire_group_settings *settings)
{
    if (!settings->max_interrupts.given)
        settings->max_interrupts = stored->max_interrupts;
    if (!settings->max_kills.given)
        settings->max_kills = stored->max_kills;
}

/* The end is not known yet, and a position not looked at. */
static sl_group_definition begin_definition(const sl_wire_group_request *asked,
                                            const sl_group_definition *stored)
{
    const bool of_all = asked->source == SL_WIRE_SOURCE_ALL;
    sl_group_definition definition = {
        .of_all = of_all,
        .stream = management_stream(asked->source, asked->stream),
        .name = asked->group,
        .start = asked->start,
        .from = of_all ? asked->position.commit : asked->revision,
        .filter = { .kind = SL_WIRE_FILTER_NONE },
        .settings = asked->settings,
    };
    const bool at_end = definition.from == UINT64_MAX && (!of_all || asked->position.prepare == UINT64_MAX);

    if (stored != NULL)
        keep_limits(&stored->settings, &definition.settings);
    if (of_all)
        definition.filter = stored == NULL ? asked->filter : stored->filter;
    if (asked->start == SL_WIRE_START_GIVEN && at_end)
        definition.start = SL_WIRE_START_END;
    return definition;
}

/* --- where it begins --- */

/* What is wrong with a position; NULL when nothing is. Position 0 is the beginning, also before there is anything. */
static const char *wrong_with(const sl_host *host, sl_wire_position position)
{
    if (position.commit > INT64_MAX || position.prepare > INT64_MAX)
        return "Invalid Start From position: both parts are at most 2^63-1, or both 2^64-1 for the end.";
    if (position.prepare > position.commit)
        return "Invalid Start From position: the prepare position is behind the commit position.";
    if (position.commit > 0 && position.commit >= sl_store_end(host->store))
        return "Invalid Start From position: it is behind the last event of this server.";
    return NULL;
}

static uint64_t end_of(const sl_store *store, const sl_group_definition *definition)
{
    sl_stream_info info;

    if (definition->of_all)
        return sl_store_end(store);
    sl_store_stream(store, definition->stream, &info);
    return info.revision == SL_REVISION_NONE ? 0 : info.revision + 1;
}

static bool find_start(sl_request *request, const sl_wire_group_request *asked,
                       sl_group_definition *definition)
{
    const char *wrong = NULL;

    switch (definition->start) {
    case SL_WIRE_START_UNSET:
    case SL_WIRE_START_BEGIN: definition->from = 0; break;
    case SL_WIRE_START_END: definition->from = end_of(request->host->store, definition); break;
    case SL_WIRE_START_GIVEN:
        wrong = definition->of_all ? wrong_with(request->host, asked->position) : NULL;
        break;
    }
    return wrong == NULL || fail(request, definition, wrong);
}

/* --- all of it --- */

bool management_define(sl_request *request, const sl_wire_group_request *asked,
                       const sl_group_definition *stored, sl_group_definition *ret_definition)
{
    const char *reason = NULL;
    sl_err err;

    if (!check_form(request, asked, stored == NULL))
        return false;
    *ret_definition = begin_definition(asked, stored);
    err = sl_group_definition_check_first(ret_definition, &reason);
    return passed(request, ret_definition, err, reason) && find_start(request, asked, ret_definition);
}

bool management_check_rest(sl_request *request, const sl_group_definition *definition)
{
    const char *reason = NULL;
    const sl_err err = sl_group_definition_check_rest(definition, &reason);

    return passed(request, definition, err, reason);
}
