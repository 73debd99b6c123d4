/* base/err.h — one list of everything that can go wrong: code, may the caller try again, text.
 *
 * Errors of the outside world (a peer, a disk, a configuration) are sl_err and are returned. Errors of the
 * programmer are assert(). A function lists the codes it can give where it is declared; on any code but
 * SL_OK its ret_ parameters are untouched, unless their comment says otherwise. */
#ifndef SL_BASE_ERR_H
#define SL_BASE_ERR_H

#include <stdbool.h>

#define SL_ERR_MAP(XX) /* name, may the caller try again, text */                                            \
    XX(OK, false, "ok")                                                                                      \
    XX(NOMEM, true, "out of memory")                                                                         \
    XX(INVALID, false, "the input is not valid")                                                             \
    XX(TOO_LARGE, false, "larger than the limit allows")                                                     \
    XX(FULL, true, "no room left")                                                                           \
    XX(EMPTY, true, "nothing is there")                                                                      \
    XX(NOT_FOUND, false, "no such thing")                                                                    \
    XX(EXISTS, false, "it exists already")                                                                   \
    XX(LEASE_LOST, false, "the lease ended or belongs to another consumer")                                  \
    XX(NO_CONSUMER, false, "no such consumer")                                                               \
    XX(CONSUMERS_MAX, true, "the group has its maximum number of consumers")                                 \
    XX(ALREADY_STOPPED, false, "the consumer was stopped before")                                            \
    XX(DRAINED, false, "the consumer is drained: it joins again only with a new call")                       \
    XX(DRAINING, true, "shutting down, try another server")                                                  \
    XX(BUDGET, false, "the shutdown budget does not fit into the grace period")                              \
    XX(WRONG_REVISION, false, "the stream is not at the expected revision")                                  \
    XX(STREAM_DELETED, false, "the stream was deleted for ever")                                             \
    XX(AGAIN, true, "on its way, ask again")                                                                 \
    XX(NO_SPACE, true, "the disk is full: appends are refused until there is room")                          \
    XX(STREAMS_MAX, false, "there are as many streams as a store can hold")                                  \
    XX(LOCKED, false, "another process uses the data folder")                                                \
    XX(STORE_FAILED, false, "the store failed and accepts nothing more: restart the server")                 \
    XX(CORRUPT, false, "the stored data is damaged")                                                         \
    XX(VERSION, false, "written by another version")                                                         \
    XX(IO, true, "storage did not answer")                                                                   \
    XX(OPEN_FILES, true, "as many files are open as the system allows: raise the limit (ulimit -n)")

typedef enum sl_err {
#define XX(name, retry, text) SL_ERR_##name,
    SL_ERR_MAP(XX)
#undef XX
    SL_ERR_COUNT_
} sl_err;

#define SL_OK SL_ERR_OK

/* A sentence without a full stop; never NULL, also for numbers that are no error code. */
const char *sl_err_text(sl_err err);

/* The name as in the list above, for logs and JSON: "LEASE_LOST". */
const char *sl_err_name(sl_err err);

/* True when the same call may succeed later without a change on the caller's side. */
bool sl_err_may_retry(sl_err err);

#endif
