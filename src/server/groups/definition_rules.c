/* server/groups/definition_rules.c — what may be asked of a group, and what its settings mean.
 *
 * KurrentDB checks little and gives every other value some meaning, often by accident. Clients have seen these meanings, so
 * each has a place here; where a value would break the group there, it means the nearest that works (shared kurrent-semantics,
 * 2.1 and 2.2). */
#include "server/groups/definition.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "server/groups/desk.h"
#include "server/groups/names.h"

#define MS_NS     UINT64_C(1000000)
#define TICK_NS   UINT64_C(100)
#define SECOND_NS UINT64_C(1000000000)

/* --- texts --- */

static bool is_text(sl_str text)
{
    return sl_utf8_valid(text) && (text.bytes == 0 || memchr(text.data, 0, text.bytes) == NULL);
}

static size_t key_bytes(const sl_group_definition *definition)
{
    return definition->stream.bytes + strlen("::") + definition->name.bytes;
}

static const char *wrong_names(const sl_group_definition *definition)
{
    const size_t around = strlen("$$" SL_PARKED_PREFIX SL_PARKED_SUFFIX); /* "$$": its metadata */

    if (definition->stream.bytes == 0)
        return "Bad stream name.";
    if (!definition->of_all && sl_str_equal(definition->stream, SL_STR("$all")))
        return "Persistent subscriptions to $all are only supported over gRPC through gRPC clients";
    if (definition->of_all && !sl_str_equal(definition->stream, SL_STR("$all")))
        return "Bad stream name.";
    if (!is_text(definition->stream) || definition->stream.bytes > SL_STREAM_NAME_BYTES_MAX)
        return "Bad stream name: it has more than 1,024 bytes, a zero byte, or bytes that are no UTF-8.";
    if (definition->name.bytes == 0)
        return "Bad group name: it is empty.";
    if (!is_text(definition->name) || definition->name.bytes > SL_GROUP_NAME_BYTES_MAX)
        return "Bad group name: it has more than 512 bytes, a zero byte, or bytes that are no UTF-8.";
    if (key_bytes(definition) + around > SL_STREAM_NAME_BYTES_MAX)
        return "The names of stream and group are too long together: the stream of parked messages, "
               "$persistentsubscription-STREAM::GROUP-parked, may have 1,022 bytes.";
    return NULL;
}

/* --- the rest, in the order in which KurrentDB looks at it --- */

static bool find_strategy(sl_str name, sl_strategy *ret_strategy)
{
    for (int i = 0; i < SL_STRATEGY_COUNT_; i++)
        if (sl_str_equal(name, sl_str_from(sl_strategy_name((sl_strategy)i)))) {
            *ret_strategy = (sl_strategy)i;
            return true;
        }
    return false;
}

/* One sentence at a time: requests are looked at one after the other, in one thread. */
static const char *wrong_strategy(const sl_group_definition *definition)
{
    static char sentence[128];
    sl_strategy strategy;
    sl_text text;

    if (find_strategy(definition->settings.strategy, &strategy))
        return NULL;
    sl_text_init(&text, sentence, sizeof sentence);
    sl_text_add(&text, "Consumer strategy ");
    sl_text_add_str(&text, is_text(definition->settings.strategy) && definition->settings.strategy.bytes < 64
                               ? definition->settings.strategy
                               : SL_STR("of this name"));
    sl_text_add(&text, " does not exist.");
    return sentence;
}

static const char *wrong_start(const sl_group_definition *definition)
{
    switch (definition->start) {
    case SL_WIRE_START_BEGIN:
    case SL_WIRE_START_END: return NULL;
    case SL_WIRE_START_GIVEN:
        return !definition->of_all && definition->from > SL_REVISION_MAX
                   ? "Invalid Start From position: the revision must not be below -1."
                   : NULL;
    case SL_WIRE_START_UNSET: break;
    }
    return "Invalid Start From position: it is missing.";
}

static const char *wrong_prefixes(const sl_wire_filter *filter)
{
    if (filter->prefix_count > SL_FILTER_PREFIXES_MAX)
        return "The filter has more than 1,024 prefixes.";
    for (size_t i = 0; i < filter->prefix_count; i++)
        if (!is_text(filter->prefixes[i]))
            return "A prefix of the filter has a zero byte, or bytes that are no UTF-8.";
    return NULL;
}

/* Made once on trial: only that can tell. */
static sl_err try_filter(const sl_wire_filter *given, const char **ret_reason)
{
    const bool by_expression = given->regex.bytes > 0;
    const sl_filter_setup setup = {
        .on = given->on == SL_WIRE_FILTER_ON_STREAM ? SL_FILTER_ON_STREAM : SL_FILTER_ON_TYPE,
        .prefixes = by_expression ? NULL : given->prefixes,
        .prefix_count = by_expression ? 0 : (uint32_t)given->prefix_count,
        .expression = given->regex,
    };
    sl_filter *filter;
    const sl_err err = sl_filter_new(&setup, NULL, &filter);

    if (err == SL_OK)
        sl_filter_free(filter);
    if (err == SL_ERR_INVALID)
        *ret_reason = by_expression ? "The filter is no valid regular expression."
                                    : "The filter has neither a regular expression nor prefixes.";
    if (err == SL_ERR_TOO_LARGE)
        *ret_reason = "The filter is too long: an expression has at most 4,096 bytes, all prefixes together "
                      "65,536.";
    return err == SL_ERR_TOO_LARGE ? SL_ERR_INVALID : err;
}

static sl_err check_filter(const sl_group_definition *definition, const char **ret_reason)
{
    const sl_wire_filter *const filter = &definition->filter;
    const char *wrong = NULL;

    if (filter->kind != SL_WIRE_FILTER_GIVEN)
        return SL_OK;
    if (!definition->of_all)
        wrong = "Only a subscription to $all has a filter.";
    else if (filter->on != SL_WIRE_FILTER_ON_STREAM && filter->on != SL_WIRE_FILTER_ON_TYPE)
        wrong = "The filter must say whether it is about stream names or event types.";
    else if (!is_text(filter->regex))
        wrong = "The filter's expression has a zero byte, or bytes that are no UTF-8.";
    else
        wrong = wrong_prefixes(filter);
    if (wrong == NULL)
        return try_filter(filter, ret_reason);
    *ret_reason = wrong;
    return SL_ERR_INVALID;
}

sl_err sl_group_definition_check_first(const sl_group_definition *definition, const char **ret_reason)
{
    const char *wrong = wrong_names(definition);

    if (wrong == NULL)
        wrong = wrong_strategy(definition);
    if (wrong == NULL)
        wrong = wrong_start(definition);
    if (wrong == NULL)
        return SL_OK;
    *ret_reason = wrong;
    return SL_ERR_INVALID;
}

static bool is_negative(sl_wire_group_limit limit)
{
    return limit.given && limit.value < 0;
}

sl_err sl_group_definition_check_rest(const sl_group_definition *definition, const char **ret_reason)
{
    const sl_wire_group_settings *const settings = &definition->settings;

    if (is_negative(settings->max_interrupts) || is_negative(settings->max_kills)) {
        *ret_reason = "The limits of interruptions and kills must not be negative; 0 is none.";
        return SL_ERR_INVALID;
    }
    if (settings->read_batch_size >= settings->history_buffer_size) {
        *ret_reason = "The read batch size must be smaller than the history buffer size.";
        return SL_ERR_INVALID;
    }
    return check_filter(definition, ret_reason);
}

sl_err sl_group_definition_check(const sl_group_definition *definition, const char **ret_reason)
{
    const sl_err err = sl_group_definition_check_first(definition, ret_reason);

    return err == SL_OK ? sl_group_definition_check_rest(definition, ret_reason) : err;
}

/* --- for the core --- */

/* Negative ones and those that were not given are 0. */
static uint64_t time_ns(sl_wire_group_time time)
{
    const uint64_t unit_ns = time.in_ticks ? TICK_NS : MS_NS;

    if (!time.given || time.value <= 0)
        return 0;
    return (uint64_t)time.value > UINT64_MAX / unit_ns ? UINT64_MAX : (uint64_t)time.value * unit_ns;
}

static uint32_t at_least(int32_t value, int32_t least)
{
    return (uint32_t)(value < least ? least : value);
}

/* A timeout of nothing ends there at the next tick of the group, which comes every second. */
static uint64_t lease_ns(sl_wire_group_time timeout)
{
    const uint64_t given_ns = time_ns(timeout);

    if (given_ns == 0)
        return SECOND_NS;
    return sl_min_u64(sl_max_u64(given_ns, MS_NS), SL_LEASE_NS_MAX);
}

static uint32_t limit_or(sl_wire_group_limit limit, uint32_t usual)
{
    return limit.given ? at_least(limit.value, 0) : usual;
}

sl_settings sl_group_definition_settings(const sl_group_definition *definition)
{
    const sl_wire_group_settings *const given = &definition->settings;
    sl_settings settings = sl_settings_default();

    (void)find_strategy(given->strategy, &settings.strategy);
    settings.lease_ns = lease_ns(given->message_timeout);
    settings.retries_max = at_least(given->max_retry_count, 0);
    settings.buffer_max = (uint32_t)sl_min_u64(at_least(given->history_buffer_size, 1), SL_DESK_MESSAGES_MAX);
    settings.consumers_max = at_least(given->max_subscriber_count, 0);
    settings.checkpoint_after_ns = time_ns(given->checkpoint_after);
    settings.checkpoint_count_min = at_least(given->min_checkpoint_count, 0);
    settings.checkpoint_count_max = at_least(given->max_checkpoint_count, 1);
    settings.interrupts_max = limit_or(given->max_interrupts, settings.interrupts_max);
    settings.kills_max = limit_or(given->max_kills, settings.kills_max);
    return settings;
}

void sl_group_definition_key(const sl_group_definition *definition, sl_text *key)
{
    sl_text_add_str(key, definition->stream);
    sl_text_add(key, "::");
    sl_text_add_str(key, definition->name);
}
