/* cli/config.h — options from a file, and the settings that are in force as such a file.
 *
 *     # for every command that has the option
 *     json = yes
 *
 *     [serve]
 *     port = 2113
 *     tls-certificate = "/etc/sluice/my certificate.pem"   ; blanks need quotation marks only at the ends
 *
 *     [user add]
 *     group = $ops
 *     group = writers
 *
 * A key is the long name of an option, a section the name of a command or of a family ([user] for all of `user ...`). Only
 * what can be set in the environment can be set here. The nearest section wins: [user add], then [user], then the lines
 * before the first section. The whole file is checked, also what is for other commands, so that a mistake shows itself on the
 * day it is made. No file is looked for: one that is not named is not read.
 *
 * A command that has members (sl_command.member) may have a section for each:
 *
 *     [work]                 # for all workers
 *     slots = 4
 *
 *     [work billing]         # one worker, of this name
 *     from = sluice://localhost:2113/orders/billing
 *
 * Only options that are about one member (sl_option.of_member) may stand there, and they are nearer than those of [work]. */
#ifndef SL_CLI_CONFIG_H
#define SL_CLI_CONFIG_H

#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "client/address.h"

enum {
    SL_CONFIG_PATH_BYTES_MAX = 4096,
    SL_CONFIG_FILE_BYTES_MAX = 256 * 1024, /* hand-written: a larger one is the wrong file */
    SL_CONFIG_LINE_BYTES_MAX = 8 * 1024,
    SL_CONFIG_ENTRIES_MAX = 1024, /* each is compared with those before it */
    SL_CONFIG_MEMBERS_MAX = 64,   /* of all commands together */
    SL_CONFIG_MEMBER_NAME_BYTES_MAX = 64,
};

typedef struct sl_config sl_config;

/* What a file may speak of. */
typedef struct sl_config_tables {
    const sl_option *rows;
    size_t row_count;
    const sl_command *const *commands;
    size_t command_count;
} sl_config_tables;

/* Reads and checks the file. The tables and the path must live as long as the result.
 *   SL_OK           *ret_config is the caller's, see sl_config_free()
 *   SL_ERR_INVALID  the complaint has file, line, what is wrong and the nearest name
 *   SL_ERR_IO       it cannot be read; the complaint says why
 *   SL_ERR_NOMEM */
sl_err sl_config_load(const sl_alloc *alloc, const sl_config_tables *tables, const char *path,
                      sl_config **ret_config, sl_complaint *ret_complaint);

/* NULL is allowed. Values that came from it are gone then. */
void sl_config_free(sl_config *config);

/* Sets what neither the command line nor the environment has set.
 *   SL_OK, or SL_ERR_INVALID with reading->complaint */
sl_err sl_config_apply(const sl_config *config, const sl_command *command, sl_option_reading *reading);

/* --- members --- */

/* How many sections [COMMAND NAME] there are; 0 for a config of NULL. */
size_t sl_config_member_count(const sl_config *config, const sl_command *command);

/* The name of one, in the order of the file. index: below the count. */
const char *sl_config_member_name(const sl_config *config, const sl_command *command, size_t index);

/* Does its own section set this option? */
bool sl_config_member_sets(const sl_config *config, const sl_command *command, size_t index,
                           const sl_option *row);

/* reading->values: a copy of what sl_config_apply() has made; its repeated values may be in another reading. What the member's own
 * section says replaces what came from elsewhere in the file and from defaults.
 *   SL_OK, or SL_ERR_INVALID with reading->complaint */
sl_err sl_config_apply_member(const sl_config *config, const sl_command *command, size_t index,
                              sl_option_reading *reading);

/* Can a file set it? All that the environment can, but no second file. */
bool sl_config_has(const sl_option *row);

/* An address as it may be shown: *** in the place of a password; config_print.c. */
typedef struct sl_shown_address {
    char text[SL_CLIENT_ADDRESS_BYTES_MAX + 8]; /* a password of one letter gets longer */
} sl_shown_address;
sl_shown_address sl_address_without_password(const char *text);

/* The settings that are in force, each with where it came from: a file for --config, or JSON; config_print.c. `path` is the
 * file that was read, or NULL; invocation->config has the members. */
void sl_config_print(const sl_invocation *invocation, const sl_option_table *table, const char *path);

#endif
