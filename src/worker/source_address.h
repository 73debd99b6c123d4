/* worker/source_address.h — where messages come from, as one text of a command line or a file of settings.
 *
 *      sluice://[USER[:PASSWORD]@]HOST[:PORT]/STREAM/GROUP[?OPTION=VALUE&...]      also kurrentdb, kdb, kurrent, esdb
 *      schedule:REST
 *      memory:REST
 *
 * STREAM and GROUP may hold %XX: a / in them is written %2F, a ? %3F, a % %25. STREAM may be $all. What stands before and behind
 * them is an address of client/address.h and is checked here too. */
#ifndef SL_WORKER_SOURCE_ADDRESS_H
#define SL_WORKER_SOURCE_ADDRESS_H

#include "base/err.h"
#include "base/str.h"
#include "client/address.h"

#include <sluice.h>

typedef enum sl_source_kind {
    SL_SOURCE_KIND_CONSUMER, /* a persistent subscription: sl_consumer_source_new() */
    SL_SOURCE_KIND_SCHEDULE,
    SL_SOURCE_KIND_MEMORY,
    SL_SOURCE_KIND_COUNT_
} sl_source_kind;

typedef struct sl_source_address {
    sl_source_kind kind;
    sl_str rest; /* SCHEDULE, MEMORY: what follows the colon; a part of the text that was parsed */
    /* CONSUMER: the server, without stream and group. Holds a password if the text did: to be wiped when it is not needed. */
    char server[SL_CLIENT_ADDRESS_BYTES_MAX + 1];
    char stream[SL_CONSUMER_STREAM_BYTES_MAX + 1];
    char group[SL_CONSUMER_GROUP_BYTES_MAX + 1];
} sl_source_address;

/* What is wrong is said in `problem`, as a sentence without a full stop, and never shows what could be a password.
 *   SL_OK
 *   SL_ERR_INVALID    not an address of a source
 *   SL_ERR_TOO_LARGE  a part of it is longer than its limit */
sl_err sl_source_address_parse(sl_str text, sl_text *problem, sl_source_address *ret_address);

enum {
    SL_SOURCE_SHOWN_BYTES_MAX = /* brackets, a colon, a port and two slashes */
        SL_HOST_BYTES_MAX + 10 + SL_CONSUMER_STREAM_BYTES_MAX + SL_CONSUMER_GROUP_BYTES_MAX
};

/* "127.0.0.1:2113/orders/billing": a CONSUMER without user and password, which may change. Ack files say with this text what they are
 * about, so it stays what it is: else finished work in the files of an older version would be that of another source. Errors as above. */
sl_err sl_source_address_show(const sl_source_address *address, sl_text *problem, sl_text *text);

#endif
