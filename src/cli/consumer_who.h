/* cli/consumer_who.h — which consumers a command means. */
#ifndef SL_CLI_CONSUMER_WHO_H
#define SL_CLI_CONSUMER_WHO_H

#include "cli/commands.h"
#include "wire/operators_control.h"

#include <stdio.h>

/* From NAME or --name, --stream, --group and --label; texts are the invocation's. SL_EXIT_OK, or SL_EXIT_USAGE after the complaint. */
int sl_consumer_who(const sl_invocation *invocation, sl_wire_who *ret_who);

/* The same for commands that change something: everybody has to be said. */
int sl_consumer_who_named(const sl_invocation *invocation, sl_wire_who *ret_who);

/* "sluice consumer resume --stream orders --group billing", without the end of the line. */
void sl_consumer_print_resume(FILE *out, const sl_wire_who *who);

/* What a stop means for whoever joins later: rules were made in so many groups, or, unless it was `once`, there is nowhere to make one. */
void sl_consumer_print_newcomers(FILE *out, const sl_wire_who *who, uint32_t rules, bool once);

#endif
