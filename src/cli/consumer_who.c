/* cli/consumer_who.c — see cli/consumer_who.h. */
#include "cli/consumer_who.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "cli/print.h"

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

/* --- whoever joins later --- */

/* So that it can be copied into a shell. */
static void print_word(FILE *out, const char *before, sl_str word)
{
    bool is_plain = word.bytes > 0;

    for (size_t i = 0; i < word.bytes; i++)
        is_plain =
            is_plain && (isalnum((unsigned char)word.data[i]) || strchr("-_./:@%+,", word.data[i]) != NULL);
    fputs(before, out);
    fputs(is_plain ? "" : "'", out);
    sl_print_safe(out, word, SIZE_MAX);
    fputs(is_plain ? "" : "'", out);
}

void sl_consumer_print_resume(FILE *out, const sl_wire_who *who)
{
    fputs("sluice consumer resume", out);
    if (who->consumer_name.bytes > 0)
        print_word(out, " ", who->consumer_name);
    if (who->label_key.bytes > 0) {
        print_word(out, " --label ", who->label_key);
        print_word(out, "=", who->label_value);
    }
    if (who->stream.bytes > 0)
        print_word(out, " --stream ", who->stream);
    if (who->group.bytes > 0)
        print_word(out, " --group ", who->group);
}

/* A group whose newcomers are stopped stands still, and the next deploy would be the first to find out. */
static void print_rule(FILE *out, const sl_wire_who *who, uint32_t rules)
{
    fputs("whoever joins ", out);
    if (who->group.bytes > 0) {
        fputs("group ", out);
        sl_print_quoted(out, who->group);
    } else {
        fprintf(out, "%s%" PRIu32 " group%s", rules == 1 ? "" : "one of ", rules, rules == 1 ? "" : "s");
    }
    fputs(" later", out);
    if (who->consumer_name.bytes > 0) {
        fputs(" as ", out);
        sl_print_quoted(out, who->consumer_name);
    }
    if (who->label_key.bytes > 0) {
        print_word(out, " with ", who->label_key);
        print_word(out, "=", who->label_value);
    }
    fputs(" is stopped too, until:\n  ", out);
    sl_consumer_print_resume(out, who);
    fputc('\n', out);
}

static void print_no_rule(FILE *out, const sl_wire_who *who)
{
    if (who->consumer_name.bytes > 0 && who->label_key.bytes > 0)
        fputs("no rule for newcomers was made: a NAME together with --label means those that are there\n",
              out);
    else
        fputs("no rule for newcomers was made, because no group has such a consumer: name the group with "
              "--stream and --group\n",
              out);
}

void sl_consumer_print_newcomers(FILE *out, const sl_wire_who *who, uint32_t rules, bool once)
{
    if (rules > 0)
        print_rule(out, who, rules);
    else if (!once)
        print_no_rule(out, who);
}
