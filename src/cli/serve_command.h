/* cli/serve_command.h — `sluice serve`: options to settings, the log to the error output, the ready line to the output. */
#ifndef SL_CLI_SERVE_COMMAND_H
#define SL_CLI_SERVE_COMMAND_H

#include "cli/commands.h"
#include "server/settings.h"

/* The settings as the options say; texts stay those of the values. is_terminal: where the log goes. */
sl_server_settings sl_serve_settings(const sl_option_value *values, bool is_terminal);

/* --log-format, by the place of its choice. */
sl_log_format sl_log_format_option(uint64_t choice, bool is_terminal);

/* Whoever reads the log may go away, and a limit on the size of files may be met: calls then give errors, which are handled,
 * where signals would end the process in the middle of its work. */
void sl_serve_ignore_signals(void);

extern const sl_command sl_command_serve;

#endif
