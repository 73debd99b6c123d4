/* worker/handler/command.h — what a handler that starts processes runs: a command for the shell, with the environment of its processes. */
#ifndef SL_WORKER_HANDLER_COMMAND_H
#define SL_WORKER_HANDLER_COMMAND_H

#include "net/process.h"
#include "worker/handler/environment.h"

typedef struct sl_command {
    char *text;
    size_t bytes; /* with its zero */
    sl_environment environment;
} sl_command;

typedef struct sl_command_options {
    const char *text;
    uint32_t slots;                 /* how many at a time */
    const char *const *environment; /* as extra of sl_environment_init() */
} sl_command_options;

/* What a user can get wrong, before anything is made. SL_OK, or SL_ERR_INVALID with a sentence. */
sl_err sl_command_check(const sl_command_options *options, sl_text *problem);

/* SL_OK, SL_ERR_NOMEM, or SL_ERR_INVALID with a sentence. */
sl_err sl_command_init(sl_command *command, const sl_command_options *options, sl_text *problem);
void sl_command_done(sl_command *command); /* also right after an init that failed, and when it is all zero */

/* options: what the handler wants beside program and arguments. As sl_process_start(). */
sl_err sl_command_start(const sl_command *command, sl_loop *loop, sl_process_options options,
                        const sl_process_handler *handler, void *ctx, sl_text *problem,
                        sl_process **ret_process);

#endif
