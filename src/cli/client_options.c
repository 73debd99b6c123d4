/* cli/client_options.c — see cli/client_options.h. */
#include "cli/client_options.h"

#include <stdio.h>
#include <string.h>

#include "cli/password.h"
#include "cli/print.h"
#include "server/settings.h"

enum {
    PROBLEM_BYTES = 640,
    PROMPT_BYTES = 256
};

static int refuse(const sl_invocation *invocation, const char *before, const sl_text *problem)
{
    char sentence[2 * PROBLEM_BYTES];

    snprintf(sentence, sizeof sentence, "%s%s.", before, problem->data);
    return sl_cli_complain(invocation, sentence);
}

static void warn(const sl_invocation *invocation, const char *sentence)
{
    sl_print_complaint(invocation->err, sentence);
}

/* --- who --- */

static sl_err ask_for_password(const sl_client_address *address, sl_text *problem, sl_password *ret_password)
{
    char prompt[PROMPT_BYTES], shown[PROMPT_BYTES / 2];
    sl_text place;

    sl_text_init(&place, shown, sizeof shown);
    sl_client_address_show(address, &place);
    snprintf(prompt, sizeof prompt, "password of %s at %s: ", sl_quote(address->user).text, shown);
    return sl_password_ask(prompt, problem, ret_password);
}

static sl_err from_environment(const char *text, sl_text *problem, sl_password *ret_password)
{
    if (strlen(text) > SL_CLIENT_PASSWORD_BYTES_MAX) {
        sl_text_add(problem, "SLUICE_PASSWORD is too long");
        return SL_ERR_TOO_LARGE;
    }
    strcpy(ret_password->text, text);
    return SL_OK;
}

static sl_err find_password(const sl_invocation *invocation, const sl_client_address *address,
                            sl_text *problem, sl_password *ret_password)
{
    const char *const file = invocation->values[SL_OPT_PASSWORD_FILE].text;
    const char *const text = invocation->environment("SLUICE_PASSWORD");

    if (file != NULL)
        return sl_password_from_file(file, problem, ret_password);
    if (text != NULL && text[0] != '\0')
        return from_environment(text, problem, ret_password);
    if (sl_password_has_terminal())
        return ask_for_password(address, problem, ret_password);
    sl_text_add(problem,
                "a user needs a password: put it into the environment as SLUICE_PASSWORD, or into a file for "
                "--password-file");
    return SL_ERR_INVALID;
}

/* --user is stronger than the user of the address, and another user has another password. */
static sl_err take_user(const sl_invocation *invocation, sl_client_address *address, sl_text *problem)
{
    const char *const user = invocation->values[SL_OPT_USER].text;
    sl_password password;
    sl_err err;

    if (user != NULL && strcmp(user, address->user) != 0) {
        strcpy(address->user, user); /* the option has the same limit */
        address->has_password = false;
    }
    if (address->user[0] == '\0' &&
        invocation->values[SL_OPT_PASSWORD_FILE].source == SL_OPTION_FROM_COMMAND_LINE) {
        sl_text_add(problem, "--password-file needs --user");
        return SL_ERR_INVALID;
    }
    if (address->user[0] == '\0' || address->has_password)
        return SL_OK;
    err = find_password(invocation, address, problem, &password);
    if (err == SL_OK)
        strcpy(address->password, password.text);
    explicit_bzero(&password, sizeof password);
    address->has_password = err == SL_OK;
    return err;
}

/* --- where --- */

static void add_warnings(const sl_invocation *invocation, const sl_client_address *address)
{
    const sl_option_value *const server = &invocation->values[SL_OPT_SERVER];
    char note[PROBLEM_BYTES];

    if (address->note != NULL) {
        snprintf(note, sizeof note, "Note: %s.", address->note);
        warn(invocation, note);
    }
    if (server->source == SL_OPTION_FROM_COMMAND_LINE && address->has_password)
        warn(invocation,
             "Note: other users of this machine can see the password in --server; put the address into "
             "SLUICE_SERVER instead.");
    if (address->tls && address->unverified)
        warn(invocation, "Note: the server's certificate is not checked, so anybody could be the server.");
}

/* A password that travels where others may listen is worth a word, and no more: the network may be safe. */
static void warn_about_plain(const sl_invocation *invocation, const sl_client_address *address)
{
    if (address->user[0] != '\0' && !address->tls && !sl_address_is_loopback(sl_str_from(address->host)))
        warn(invocation, "Note: the password travels without encryption; with TLS it would not (?tls=true).");
}

int sl_client_options_read(const sl_invocation *invocation, sl_client_address *ret_address)
{
    const char *const ca_file = invocation->values[SL_OPT_CA].text;
    sl_client_address address;
    char buffer[PROBLEM_BYTES];
    sl_text problem;
    sl_err err;

    sl_text_init(&problem, buffer, sizeof buffer);
    if (sl_client_address_parse(sl_str_from(invocation->values[SL_OPT_SERVER].text), &problem, &address) !=
        SL_OK)
        return refuse(invocation, "--server: ", &problem);
    if (ca_file != NULL) { /* naming an authority means that TLS is wanted */
        strcpy(address.ca_file, ca_file);
        address.tls = true;
    }
    add_warnings(invocation, &address);
    err = take_user(invocation, &address, &problem);
    if (err == SL_OK) {
        warn_about_plain(invocation, &address);
        *ret_address = address;
    }
    explicit_bzero(&address, sizeof address);
    if (err == SL_ERR_IO)
        return sl_cli_fail(invocation, buffer);
    return err == SL_OK ? SL_EXIT_OK : refuse(invocation, "", &problem);
}

/* --- what a stream is expected to be at --- */

int sl_client_options_expect(const sl_invocation *invocation, sl_wire_revision *ret_expected)
{
    const char *const text = invocation->values[SL_OPT_EXPECT].text;
    uint64_t number;

    if (text == NULL || strcmp(text, "any") == 0)
        *ret_expected = (sl_wire_revision){ .kind = SL_WIRE_REVISION_ANY };
    else if (strcmp(text, "none") == 0)
        *ret_expected = (sl_wire_revision){ .kind = SL_WIRE_REVISION_NO_STREAM };
    else if (strcmp(text, "exists") == 0)
        *ret_expected = (sl_wire_revision){ .kind = SL_WIRE_REVISION_STREAM_EXISTS };
    else if (sl_str_parse_u64(sl_str_from(text), &number) == SL_OK && number < INT64_MAX)
        *ret_expected = (sl_wire_revision){ SL_WIRE_REVISION_NUMBER, number };
    else
        return sl_cli_complain(invocation,
                               "--expect needs any, none, exists or the revision of the last event.");
    return SL_EXIT_OK;
}
