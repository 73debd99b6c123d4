/* wire/status.h — how a gRPC call ends: the seventeen codes, their names, and what other layers' endings mean. */
#ifndef SL_WIRE_STATUS_H
#define SL_WIRE_STATUS_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_STATUS_MAP(XX) /* number on the wire, name, text for people */                                    \
    XX(0, OK, "ok")                                                                                          \
    XX(1, CANCELLED, "the call was cancelled")                                                               \
    XX(2, UNKNOWN, "an error that the server did not classify")                                              \
    XX(3, INVALID_ARGUMENT, "the request is not valid")                                                      \
    XX(4, DEADLINE_EXCEEDED, "the deadline passed before the call was finished")                             \
    XX(5, NOT_FOUND, "no such thing")                                                                        \
    XX(6, ALREADY_EXISTS, "it exists already")                                                               \
    XX(7, PERMISSION_DENIED, "this user may not do that")                                                    \
    XX(8, RESOURCE_EXHAUSTED, "a limit was reached")                                                         \
    XX(9, FAILED_PRECONDITION, "the state of the server does not allow that")                                \
    XX(10, ABORTED, "the call was given up half-way")                                                        \
    XX(11, OUT_OF_RANGE, "beyond the valid range")                                                           \
    XX(12, UNIMPLEMENTED, "the server does not offer that")                                                  \
    XX(13, INTERNAL, "a rule of the protocol was broken")                                                    \
    XX(14, UNAVAILABLE, "the server cannot be reached now")                                                  \
    XX(15, DATA_LOSS, "stored data is lost or damaged")                                                      \
    XX(16, UNAUTHENTICATED, "no valid credentials")

typedef enum sl_status {
#define XX(number, name, text) SL_STATUS_##name = number,
    SL_STATUS_MAP(XX)
#undef XX
    SL_STATUS_COUNT_
} sl_status;

/* The name as above ("NOT_FOUND"), and a sentence without a full stop. Never NULL, also for other numbers. */
const char *sl_status_name(sl_status status);
const char *sl_status_text(sl_status status);

/* The value of a `grpc-status` header. A number that is no code gives UNKNOWN, as gRPC wants it; false when it
 * is no number at all. */
bool sl_status_parse(sl_str text, sl_status *ret_status);

/* What an answer without a gRPC status means, by its HTTP status: a proxy may have given it. */
sl_status sl_status_from_http(unsigned http_status);

/* What a reset of the stream means, by its HTTP/2 error code. */
sl_status sl_status_from_reset(uint32_t http2_error);

#endif
