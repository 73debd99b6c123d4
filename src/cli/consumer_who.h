/* cli/consumer_who.h — which consumers a command means. */
#ifndef SL_CLI_CONSUMER_WHO_H
#define SL_CLI_CONSUMER_WHO_H

#include "cli/commands.h"
#include "wire/operators_control.h"

/* From NAME or --name, --stream, --group and --label; texts are the invocation's. SL_EXIT_OK, or SL_EXIT_USAGE after the complaint. */
int sl_consumer_who(const sl_invocation *invocation, sl_wire_who *ret_who);

/* The same for commands that change something: everybody has to be said. */
int sl_consumer_who_named(const sl_invocation *invocation, sl_wire_who *ret_who);

#endif
