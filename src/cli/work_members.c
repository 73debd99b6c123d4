/* cli/work_members.c — see work_members.h. */
#include "cli/work_members.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/print.h"

static_assert((int)SL_CONFIG_MEMBERS_MAX <= (int)SL_CREW_MEMBERS_MAX,
              "a crew has room for what a file names");
static_assert((int)SL_CONFIG_MEMBER_NAME_BYTES_MAX <= (int)SL_WORKER_NAME_BYTES_MAX,
              "names fit into a worker");

enum {
    WHERE_BYTES = 192
};

/* --- one section --- */

static bool is_own(const sl_invocation *invocation, size_t index, sl_option_id id)
{
    return sl_config_member_sets(invocation->config, invocation->command, index, &sl_options[id]);
}

static bool has_own_handler(const sl_invocation *invocation, size_t index)
{
    for (sl_option_id id = SL_OPT_WORK_EXEC; id <= SL_OPT_WORK_APPEND; id++) {
        if (is_own(invocation, index, id))
            return true;
    }
    return false;
}

static void drop_unless_own(const sl_invocation *invocation, size_t index, sl_work_member *member,
                            sl_option_id id)
{
    if (!is_own(invocation, index, id) && member->values[id].source <= SL_OPTION_FROM_FILE)
        member->values[id] = (sl_option_value){ .source = SL_OPTION_UNSET };
}

/* A handler of its own replaces the one that is there for all; what is said for all about HTTP is not meant for others. */
static void drop_what_is_not_meant(const sl_invocation *invocation, size_t index, sl_work_member *member)
{
    for (sl_option_id id = SL_OPT_WORK_EXEC; has_own_handler(invocation, index) && id <= SL_OPT_WORK_APPEND;
         id++)
        drop_unless_own(invocation, index, member, id);
    if (member->values[SL_OPT_WORK_HTTP].text == NULL) {
        drop_unless_own(invocation, index, member, SL_OPT_HEADER);
        drop_unless_own(invocation, index, member, SL_OPT_METHOD);
    }
}

static sl_err read_section(const sl_invocation *invocation, size_t index, const sl_budget *budget,
                           sl_work_member *member, sl_complaint *complaint)
{
    const sl_option_table table = sl_command_options(invocation->command);
    const char *const name = sl_config_member_name(invocation->config, invocation->command, index);
    sl_err err;

    memcpy(member->values, invocation->values, sizeof member->values);
    member->reading = (sl_option_reading){ .table = &table, .values = member->values };
    err = sl_config_apply_member(invocation->config, invocation->command, index, &member->reading);
    member->reading.table = NULL; /* it is gone */
    if (err != SL_OK) {
        *complaint = member->reading.complaint;
        return err;
    }
    drop_what_is_not_meant(invocation, index, member);
    return sl_work_plan_read(member->values, name, budget, &member->plan, complaint);
}

/* --- all sections --- */

/* "workers.ini, [work billing]: " in front of the sentence. */
static void add_place(const sl_invocation *invocation, size_t index, sl_complaint *complaint)
{
    const sl_complaint sentence = *complaint;
    char where[WHERE_BYTES];
    sl_text text;

    snprintf(where, sizeof where, "%s, [%s %s]: ", sl_quote(invocation->values[SL_OPT_CONFIG].text).text,
             invocation->command->name,
             sl_config_member_name(invocation->config, invocation->command, index));
    sl_text_init(&text, complaint->text, sizeof complaint->text);
    sl_text_add(&text, where);
    sl_text_add(&text, sentence.text);
}

static const char *given_for_all(const sl_invocation *invocation)
{
    static const sl_option_id own[] = { SL_OPT_WORK_FROM, SL_OPT_WORK_EXEC,   SL_OPT_WORK_LINES,
                                        SL_OPT_WORK_HTTP, SL_OPT_WORK_APPEND, SL_OPT_WORK_NAME,
                                        SL_OPT_ACK_FILE };

    for (size_t i = 0; i < SL_COUNT_OF(own); i++) {
        const sl_option_source source = invocation->values[own[i]].source;
        if (source == SL_OPTION_FROM_COMMAND_LINE)
            return sl_options[own[i]].name;
        if (source == SL_OPTION_FROM_ENVIRONMENT)
            return sl_options[own[i]].environment;
    }
    return NULL;
}

static sl_err check_command_line(const sl_invocation *invocation, sl_complaint *complaint)
{
    const char *const given = given_for_all(invocation);

    if (given == NULL)
        return SL_OK;
    snprintf(
        complaint->text, sizeof complaint->text,
        "%s%s would be the same for all workers of %s: put it into the section of the worker that is meant, "
        "[%s %s] for example, or leave --config out.",
        given[0] == 'S' ? "" : "--", given, sl_quote(invocation->values[SL_OPT_CONFIG].text).text,
        invocation->command->name, sl_config_member_name(invocation->config, invocation->command, 0));
    return SL_ERR_INVALID;
}

/* Two workers on one ack file: the second one would find it locked, at the latest moment. */
static sl_err check_ack_files(const sl_work_members *members, size_t index, sl_complaint *complaint)
{
    const sl_work_plan *const plan = &members->all[index].plan;

    for (size_t i = 0; plan->ack_file != NULL && i < index; i++) {
        const sl_work_plan *const other = &members->all[i].plan;
        if (other->ack_file == NULL || strcmp(other->ack_file, plan->ack_file) != 0)
            continue;
        snprintf(complaint->text, sizeof complaint->text,
                 "the ack-file '%s' belongs to worker '%s' already: each worker needs a file of its own.",
                 sl_quote(plan->ack_file).text, other->name);
        return SL_ERR_INVALID;
    }
    return SL_OK;
}

static bool is_same_consumer(const sl_work_plan *a, const sl_work_plan *b)
{
    return a->consumer_name != NULL && b->consumer_name != NULL &&
           strcmp(a->consumer_name, b->consumer_name) == 0 && sl_work_is_same_group(a, b);
}

/* Of a group, that is: whoever comes back under a name is taken for the one that was there before, with all that it held. Workers of
 * different groups may all be called like their machine, and a source without groups knows no names. */
static sl_err check_names(const sl_work_members *members, size_t index, sl_complaint *complaint)
{
    const sl_work_plan *const plan = &members->all[index].plan;

    for (size_t i = 0; i < index; i++) {
        const sl_work_plan *const other = &members->all[i].plan;
        if (!is_same_consumer(plan, other))
            continue;
        snprintf(complaint->text, sizeof complaint->text,
                 "worker '%s' of the same source is called '%s' already: give each a name of its own.",
                 other->name, sl_quote(plan->consumer_name).text);
        return SL_ERR_INVALID;
    }
    return SL_OK;
}

static sl_err read_sections(const sl_invocation *invocation, sl_work_members *members,
                            sl_complaint *complaint)
{
    sl_err err = check_command_line(invocation, complaint);

    for (size_t i = 0; err == SL_OK && i < members->count; i++) {
        err = read_section(invocation, i, &members->budget, &members->all[i], complaint);
        if (err == SL_OK)
            err = check_ack_files(members, i, complaint);
        if (err == SL_OK)
            err = check_names(members, i, complaint);
        if (err != SL_OK)
            add_place(invocation, i, complaint);
    }
    return err;
}

static sl_err read_single(const sl_invocation *invocation, sl_work_members *members, sl_complaint *complaint)
{
    memcpy(members->all->values, invocation->values, sizeof members->all->values);
    return sl_work_plan_read(members->all->values, NULL, &members->budget, &members->all->plan, complaint);
}

sl_err sl_work_members_read(const sl_invocation *invocation, sl_work_members *ret_members,
                            sl_complaint *ret_complaint)
{
    const size_t sections = sl_config_member_count(invocation->config, invocation->command);
    sl_work_members members = { .count = sections == 0 ? 1 : sections };
    sl_err err = sl_work_budget_read(invocation->values, &members.budget, ret_complaint);

    if (err != SL_OK)
        return err;
    members.all = sl_alloc_take(&sl_alloc_default, members.count * sizeof members.all[0]);
    if (members.all == NULL)
        return SL_ERR_NOMEM;
    err = sections == 0 ? read_single(invocation, &members, ret_complaint)
                        : read_sections(invocation, &members, ret_complaint);
    for (size_t i = 0; err == SL_OK && i < members.count; i++) /* the plans stay where they are from now on */
        members.all[i].plan.settings.name = members.all[i].plan.name;
    if (err == SL_OK)
        *ret_members = members;
    else
        sl_work_members_free(&members);
    return err;
}

void sl_work_members_free(sl_work_members *members)
{
    const size_t bytes = members->count * sizeof members->all[0];

    if (members->all != NULL) { /* addresses may have passwords */
        explicit_bzero(members->all, bytes);
        sl_alloc_give(&sl_alloc_default, members->all, bytes);
    }
    *members = (sl_work_members){ .count = 0 };
}
