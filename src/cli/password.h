/* cli/password.h — where a password comes from. Never from the command line: everybody on the machine could read it there.
 *
 * Problems are sentences without a full stop. Memory that held a password is wiped by whoever owns it. */
#ifndef SL_CLI_PASSWORD_H
#define SL_CLI_PASSWORD_H

#include "base/err.h"
#include "base/str.h"
#include "client/address.h"

#include <stdbool.h>

typedef struct sl_password {
    char text[SL_CLIENT_PASSWORD_BYTES_MAX + 1];
} sl_password;

/* The first line of a file, without its line end. SL_OK, SL_ERR_INVALID, SL_ERR_TOO_LARGE, SL_ERR_IO. */
sl_err sl_password_from_file(const char *path, sl_text *problem, sl_password *ret_password);

/* The first line of what is piped into the command. Codes as above. */
sl_err sl_password_from_input(sl_text *problem, sl_password *ret_password);

/* Can somebody be asked? */
bool sl_password_has_terminal(void);

/* Asks at the terminal and shows nothing of what is typed. Codes as above. Ctrl-C ends the process, as it does everywhere,
 * but leaves the terminal as it was. */
sl_err sl_password_ask(const char *prompt, sl_text *problem, sl_password *ret_password);

#endif
