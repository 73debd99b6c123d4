/* cli/user_command.c — options, passwords and answers; how it is done is in user_online.c and user_offline.c. */
#include "cli/user_command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fields.h"
#include "cli/print.h"
#include "cli/user_draft.h"

enum {
    PROBLEM_BYTES = 640,
    PROMPT_BYTES = 160
};

/* --- the password of a new user --- */

static int fail(const sl_invocation *invocation, const char *sentence)
{
    return sl_cli_fail(invocation, sentence);
}

static sl_err ask_twice(const sl_user_draft *draft, sl_text *problem, sl_password *ret_password)
{
    char prompt[PROMPT_BYTES], name[SL_LOGIN_NAME_BYTES_MAX + 1];
    sl_password again;
    sl_err err;

    snprintf(name, sizeof name, "%.*s", (int)draft->name.bytes, draft->name.data);
    snprintf(prompt, sizeof prompt, "new password of %s: ", sl_quote(name).text);
    err = sl_password_ask(prompt, problem, ret_password);
    if (err == SL_OK)
        err = sl_password_ask("the same again: ", problem, &again);
    if (err == SL_OK && strcmp(ret_password->text, again.text) != 0) {
        sl_text_add(problem, "the two are not the same");
        err = SL_ERR_INVALID;
    }
    explicit_bzero(&again, sizeof again);
    return err;
}

int sl_user_ask_password(const sl_invocation *invocation, sl_user_draft *draft)
{
    const char *const file = invocation->values[SL_OPT_NEW_PASSWORD_FILE].text;
    char buffer[PROBLEM_BYTES];
    sl_text problem;
    sl_err err;

    if (draft->verb != SL_USER_VERB_ADD && draft->verb != SL_USER_VERB_PASSWD)
        return SL_EXIT_OK;
    sl_text_init(&problem, buffer, sizeof buffer);
    if (file != NULL)
        err = sl_password_from_file(file, &problem, &draft->password);
    else if (sl_password_has_terminal())
        err = ask_twice(draft, &problem, &draft->password);
    else
        err = sl_password_from_input(&problem, &draft->password);
    return err == SL_OK ? SL_EXIT_OK : fail(invocation, buffer);
}

/* --- options --- */

static bool add_group(sl_user_draft *draft, sl_str group)
{
    if (draft->group_count == SL_USER_GROUPS_MAX)
        return false;
    draft->groups[draft->group_count++] = group;
    return true;
}

static int read_groups(const sl_invocation *invocation, sl_user_draft *draft)
{
    const sl_option_value *const values = invocation->values;
    bool fits = true;

    if (values[SL_OPT_ADMIN].number != 0)
        fits = add_group(draft, SL_STR("$admins"));
    if (values[SL_OPT_OPS].number != 0)
        fits = fits && add_group(draft, SL_STR("$ops"));
    for (const sl_option_repeat *one = values[SL_OPT_GROUP].all; one != NULL && fits; one = one->next)
        fits = add_group(draft, sl_str_from(one->text));
    return fits ? SL_EXIT_OK : sl_cli_complain(invocation, "A user can be in 64 groups at the most.");
}

static int read_draft(const sl_invocation *invocation, sl_user_draft *draft)
{
    const sl_option_value *const values = invocation->values;

    draft->name = sl_str_from(invocation->word_count > 0 ? invocation->words[0] : NULL);
    draft->full_name = sl_str_from(values[SL_OPT_FULL_NAME].text);
    if (draft->name.bytes > SL_LOGIN_NAME_BYTES_MAX)
        return sl_cli_complain(invocation, "The name of a user has 64 bytes at the most.");
    if (values[SL_OPT_USER_FOLDER].text != NULL &&
        values[SL_OPT_SERVER].source == SL_OPTION_FROM_COMMAND_LINE)
        return sl_cli_complain(invocation,
                               "It is done by a server (--server) or in a folder (--data), not by both.");
    return read_groups(invocation, draft);
}

/* --- answers --- */

static void show_groups(FILE *out, const sl_user_shown *user, bool json)
{
    for (size_t i = 0; i < user->group_count; i++) {
        fputs(i == 0 ? "" : json ? ", " : ",", out);
        if (json)
            sl_print_json_str(out, user->groups[i]);
        else
            sl_print_safe(out, user->groups[i], SIZE_MAX);
    }
}

static void show_json(FILE *out, const sl_user_shown *user)
{
    sl_fields fields = { .out = out, .json = true };

    fputc('{', out);
    sl_field_text(&fields, "name", user->name);
    sl_field_text(&fields, "full_name", user->full_name);
    sl_field_name(&fields, "groups");
    fputc('[', out);
    show_groups(out, user, true);
    fputc(']', out);
    sl_field_bool(&fields, "disabled", user->disabled);
    sl_field_bool(&fields, "damaged", user->damaged);
    sl_field_time(&fields, "updated", user->updated_ns);
    fputc('}', out);
}

void sl_user_show(sl_user_list *list, const sl_user_shown *user)
{
    FILE *const out = list->out;

    if (list->json) {
        fputs(list->count == 0 ? "" : ", ", out);
        show_json(out, user);
    } else {
        const size_t columns = sl_print_safe(out, user->name, SIZE_MAX);
        fprintf(out, "%*s  ", columns < 16 ? (int)(16 - columns) : 0, "");
        show_groups(out, user, false);
        fputs(user->group_count == 0 ? "(no groups)" : "", out);
        fputs(user->full_name.bytes == 0 ? "" : "  ", out);
        sl_print_safe(out, user->full_name, SIZE_MAX);
        fputs(user->disabled ? "  (disabled)" : "", out);
        fputs(user->damaged ? "  (damaged: remove and add it)" : "", out);
        fputc('\n', out);
    }
    list->count++;
}

static void print_done(const sl_invocation *invocation, const sl_user_draft *draft)
{
    static const char *const words[] = { [SL_USER_VERB_ADD] = "added",
                                         [SL_USER_VERB_PASSWD] = "changed the password of",
                                         [SL_USER_VERB_REMOVE] = "removed" };
    static const char *const results[] = { [SL_USER_VERB_ADD] = "added",
                                           [SL_USER_VERB_PASSWD] = "password_changed",
                                           [SL_USER_VERB_REMOVE] = "removed" };
    FILE *const out = invocation->out;

    if (invocation->json) {
        fputs("{\"user\": ", out);
        sl_print_json_str(out, draft->name);
        fprintf(out, ", \"result\": \"%s\"}\n", results[draft->verb]);
        return;
    }
    fprintf(out, "%s user ", words[draft->verb]);
    sl_print_quoted(out, draft->name);
    fputc('\n', out);
}

static void print_list(const sl_invocation *invocation, const sl_user_list *list)
{
    fputs(list->json ? "{\"users\": [" : "", invocation->out);
    fwrite(list->text, 1, list->bytes, invocation->out);
    if (list->json)
        fputs("]}\n", invocation->out);
    else if (list->count == 0)
        fputs("there are no users: everybody on the machine of the server may do everything\n",
              invocation->out);
}

static int do_it(const sl_invocation *invocation, sl_user_draft *draft, sl_user_list *list)
{
    if (invocation->values[SL_OPT_USER_FOLDER].text != NULL)
        return sl_user_offline(invocation, draft, list);
    return sl_user_online(invocation, draft, list);
}

static int run_list(const sl_invocation *invocation)
{
    sl_user_draft draft = { .verb = SL_USER_VERB_LIST };
    sl_user_list list = { .json = invocation->json };
    int code = read_draft(invocation, &draft);

    if (code != SL_EXIT_OK)
        return code;
    list.out = open_memstream(&list.text, &list.bytes);
    if (list.out == NULL)
        return fail(invocation, "there is not enough memory");
    code = do_it(invocation, &draft, &list);
    if (fclose(list.out) != 0 && code == SL_EXIT_OK)
        code = fail(invocation, "there is not enough memory for the list");
    if (code == SL_EXIT_OK)
        print_list(invocation, &list);
    free(list.text);
    return code;
}

static int run(const sl_invocation *invocation, sl_user_verb verb)
{
    sl_user_draft draft = { .verb = verb };
    int code = read_draft(invocation, &draft);

    if (code == SL_EXIT_OK)
        code = do_it(invocation, &draft, NULL);
    explicit_bzero(&draft.password, sizeof draft.password);
    if (code == SL_EXIT_OK)
        print_done(invocation, &draft);
    return code;
}

static int run_add(const sl_invocation *invocation)
{
    return run(invocation, SL_USER_VERB_ADD);
}

static int run_passwd(const sl_invocation *invocation)
{
    return run(invocation, SL_USER_VERB_PASSWD);
}

static int run_remove(const sl_invocation *invocation)
{
    return run(invocation, SL_USER_VERB_REMOVE);
}

/* --- rows --- */

#define BOTH_WAYS                                                                                            \
    "It is done by a running server (--server), as a user who may do it (--user), or, when no server runs, " \
    "in its data "                                                                                           \
    "folder (--data).\n"

const sl_command sl_command_user_add = {
    .name = "user add",
    .bit = SL_COMMAND_USER_ADD,
    .words = "NAME",
    .words_min = 1,
    .words_max = 1,
    .run = run_add,
    .summary = "add a user",
    .details = "Adds a user. The first one has to be an administrator (--admin): from then on the server "
               "asks everybody for "
               "a password, and somebody has to be able to add the others.\n\n"
               "The password is asked for at the terminal, twice and without showing it; else it is the "
               "first line of "
               "--new-password-file or of what is piped into the command.\n\n" BOTH_WAYS
               "A folder without a journal gets a new one, and that is said; a folder that has other files "
               "is refused.\n",
    .examples = "The first user, before the server is started, and one for an application:\n"
                "  sluice user add anna --admin --data ./sluice-data\n"
                "  sluice user add shop --group orders --user anna\n",
};

const sl_command sl_command_user_passwd = {
    .name = "user passwd",
    .bit = SL_COMMAND_USER_PASSWD,
    .words = "NAME",
    .words_min = 1,
    .words_max = 1,
    .run = run_passwd,
    .summary = "change a password",
    .details = "Gives a user another password: one's own (NAME is --user), or as an administrator that of "
               "anybody.\n\n"
               "The new password is asked for at the terminal, twice and without showing it; else it is the "
               "first line of "
               "--new-password-file or of what is piped into the command.\n\n" BOTH_WAYS,
    .examples = "One's own, and one that was forgotten, with the server stopped:\n"
                "  sluice user passwd anna --user anna\n"
                "  sluice user passwd anna --data ./sluice-data\n",
};

const sl_command sl_command_user_list = {
    .name = "user list",
    .bit = SL_COMMAND_USER_LIST,
    .words = "",
    .run = run_list,
    .summary = "show all users",
    .details = "Shows names, groups and full names. Members of $admins may do everything, members of $ops "
               "may run the server.\n\n" BOTH_WAYS,
};

const sl_command sl_command_user_remove = {
    .name = "user remove",
    .bit = SL_COMMAND_USER_REMOVE,
    .words = "NAME",
    .words_min = 1,
    .words_max = 1,
    .run = run_remove,
    .summary = "remove a user",
    .details = "Removes a user. The last administrator cannot be removed.\n\n" BOTH_WAYS,
};
