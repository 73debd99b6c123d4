/* cli/client_options.h — what all commands that talk to a server have in common: which server, as whom, how long to wait.
 *
 * The password of --user comes from the address, --password-file, the environment (SLUICE_PASSWORD) or a question at the
 * terminal, in this order. */
#ifndef SL_CLI_CLIENT_OPTIONS_H
#define SL_CLI_CLIENT_OPTIONS_H

#include "cli/commands.h"
#include "client/address.h"
#include "wire/common_codec.h"

/* Where the server is, with everything from the options. SL_EXIT_OK, or the exit code after the complaint; then
 * *ret_address is untouched. The caller wipes it (it may hold a password). */
int sl_client_options_read(const sl_invocation *invocation, sl_client_address *ret_address);

/* --expect: any, none, exists or a revision. SL_EXIT_OK or SL_EXIT_USAGE after the complaint. */
int sl_client_options_expect(const sl_invocation *invocation, sl_wire_revision *ret_expected);

#endif
