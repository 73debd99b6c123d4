/* worker/exec_handler.h — a process for each message.
 *
 * The command is run by `/bin/sh -c`. It gets the data of the message on its standard input, and in the environment:
 *
 *      SLUICE_ID, SLUICE_TOKEN, SLUICE_ATTEMPT, SLUICE_STREAM, SLUICE_GROUP, SLUICE_TYPE, SLUICE_REVISION, SLUICE_CONTENT_TYPE,
 *      SLUICE_METADATA     texts above SL_EXEC_VALUE_BYTES_MAX, or with a zero byte in them, are left out: a part would be wrong
 *      SLUICE_CREATED      2026-11-15T22:53:32.123Z
 *      SLUICE_DEADLINE_MS  since 1970: when it will be asked to end; absent without a limit
 *      SLUICE_DRAIN_FD     3: can be read when a drain begins, and then holds a line with the milliseconds that are left (S2.20)
 *
 * Its exit code is the answer:
 *
 *      0 done   75 retry (for now it does not work)   65 park (it will never work)   anything else: failed
 *
 * After abort() (SIGTERM to its group) 0, 65 and 75 still count as what they say. Every other code, and an end by a signal that we sent, is
 * STOPPED: programs leave with all sorts of codes when they are asked to, and a deploy must not cost a message one of its attempts. A
 * signal that we did not send is FAILED (S3.6). kill() is SIGKILL. What outlives the command is killed.
 *
 * stderr goes to the log as info and stdout as debug, both limited; the last lines of stderr are the reason of a failure. */
#ifndef SL_WORKER_EXEC_HANDLER_H
#define SL_WORKER_EXEC_HANDLER_H

#include "base/log.h"
#include "net/loop.h"
#include "worker/handler.h"

enum {
    SL_EXEC_VALUE_BYTES_MAX = 32 * 1024,
    SL_EXEC_CODE_PARK = 65,          /* EX_DATAERR of sysexits.h */
    SL_EXEC_CODE_RETRY = 75,         /* EX_TEMPFAIL */
    SL_EXEC_CODE_NOT_RUNNABLE = 126, /* of a shell */
    SL_EXEC_CODE_NOT_FOUND = 127
};

typedef struct sl_exec_options {
    const char *command; /* copied */
    uint32_t slots;      /* processes at the same time */
    const char *const
        *environment; /* NAME=value to add to our own environment; copied; ends with NULL; NULL: nothing */
    const sl_logger *log; /* must live as long as the handler */
} sl_exec_options;

/* SL_OK, SL_ERR_NOMEM, or SL_ERR_INVALID with a sentence in `problem`. Orphans are found only after sl_process_adopt_orphans(). */
sl_err sl_exec_handler_new(sl_loop *loop, const sl_exec_options *options, sl_text *problem,
                           sl_handler **ret_handler);

#endif
