/* cli/consumer_who.c — see cli/consumer_who.h. */
#include "cli/consumer_who.h"

static int take_label(const sl_invocation *invocation, sl_wire_who *into)
{
    const sl_str label = sl_str_from(invocation->values[SL_OPT_LABEL].text);

    if (label.bytes == 0)
        return SL_EXIT_OK;
    if (!sl_str_cut(label, '=', &into->label_key, &into->label_value) || into->label_key.bytes == 0 ||
        into->label_value.bytes == 0)
        return sl_cli_complain(invocation,
                               "--label needs a key and a value with = between them, as in version=42.");
    return SL_EXIT_OK;
}

int sl_consumer_who(const sl_invocation *invocation, sl_wire_who *ret_who)
{
    const sl_option_value *const values = invocation->values;
    const char *const name =
        invocation->word_count > 0 ? invocation->words[0] : values[SL_OPT_CONSUMER_NAME].text;
    sl_wire_who who = { .stream = sl_str_from(values[SL_OPT_CONSUMER_STREAM].text),
                        .group = sl_str_from(values[SL_OPT_CONSUMER_GROUP].text),
                        .consumer_name = sl_str_from(name) };
    const int code = take_label(invocation, &who);

    if (code != SL_EXIT_OK)
        return code;
    if (invocation->word_count > 0 && who.consumer_name.bytes == 0)
        return sl_cli_complain(invocation, "The name of a consumer is not empty.");
    if (who.group.bytes > 0 && who.stream.bytes == 0)
        return sl_cli_complain(invocation,
                               "--group needs --stream: groups of several streams may have the same name.");
    *ret_who = who;
    return SL_EXIT_OK;
}

int sl_consumer_who_named(const sl_invocation *invocation, sl_wire_who *ret_who)
{
    const int code = sl_consumer_who(invocation, ret_who);

    if (code != SL_EXIT_OK)
        return code;
    if (ret_who->stream.bytes == 0 && ret_who->consumer_name.bytes == 0 && ret_who->label_key.bytes == 0)
        return sl_cli_complain(invocation,
                               "Who is meant? Name a consumer, or say --label, or --stream with or "
                               "without --group.");
    return SL_EXIT_OK;
}
