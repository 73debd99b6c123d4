/* worker/handler/command.c — see command.h. */
#include "worker/handler/command.h"

#include "base/alloc.h"
#include "worker/worker.h"

#include <string.h>
#include <unistd.h>

sl_err sl_command_check(const sl_command_options *options, sl_text *problem)
{
    if (options->text == NULL || sl_str_trim(sl_str_from(options->text)).bytes == 0)
        sl_text_add(problem, "the handler's command is empty: give one to run");
    else if (strlen(options->text) >= SL_ENVIRONMENT_ENTRY_BYTES_MAX)
        sl_text_add(problem,
                    "the handler's command is longer than the system allows (128 KiB): put it into a file");
    else if (options->slots == 0 || options->slots > SL_WORKER_SLOTS_MAX)
        sl_text_add(problem, "the number of handlers at a time must be from 1 to 4000");
    else
        return SL_OK;
    return SL_ERR_INVALID;
}

sl_err sl_command_init(sl_command *command, const sl_command_options *options, sl_text *problem)
{
    const size_t bytes = strlen(options->text) + 1;

    *command = (sl_command){ .text = sl_alloc_take(&sl_alloc_default, bytes) };
    if (command->text == NULL)
        return SL_ERR_NOMEM;
    command->bytes = bytes;
    memcpy(command->text, options->text, bytes);
    return sl_environment_init(&command->environment, environ, options->environment, problem);
}

void sl_command_done(sl_command *command)
{
    sl_environment_done(&command->environment);
    sl_alloc_give(&sl_alloc_default, command->text, command->bytes);
    *command = (sl_command){ 0 };
}

sl_err sl_command_start(const sl_command *command, sl_loop *loop, sl_process_options options,
                        const sl_process_handler *handler, void *ctx, sl_text *problem,
                        sl_process **ret_process)
{
    static char shell[] = "/bin/sh", shell_name[] = "sh", command_follows[] = "-c";
    char *const arguments[] = { shell_name, command_follows, command->text, NULL };

    options.program = shell;
    options.arguments = arguments;
    return sl_process_start(loop, &options, handler, ctx, problem, ret_process);
}
