/* worker/consumer_source.h — messages of a persistent subscription: Sluice, KurrentDB and EventStoreDB.
 *
 * The consumer engine of src/client as a source: it connects by itself, marks what is begun, and says again under its name what was
 * not answered. With Sluice settled(SL_SETTLED_DONE) is durable; the others answer nothing, so there it is SL_SETTLED_UNSURE.
 *
 * A stop that the server asks for, because it is being restarted, is not passed on: what runs is finished, and the consumer comes back.
 * A stop by an operator is. A message whose link points to nothing is acked here. */
#ifndef SL_WORKER_CONSUMER_SOURCE_H
#define SL_WORKER_CONSUMER_SOURCE_H

#include "base/log.h"
#include "net/loop.h"
#include "worker/source.h"

#include <sluice.h>

typedef struct sl_consumer_source_options { /* everything is copied, except the logger */
    const char *address;                    /* of the server, as sl_consumer_options.address */
    const char *stream, *group;
    const char *name; /* NULL: a random one. That of the ack file, if there is one */
    const sl_consumer_label *labels;
    size_t label_count;
    uint32_t window, reconnect_ms, give_up_ms, leave_ms; /* 0: the defaults of sl_consumer_options */
    const char *user, *password;                         /* NULL: none; used when the address names nobody */
    const char *ca_file;  /* NULL: none. Means TLS; used when the address names none */
    const sl_logger *log; /* NULL: nothing is logged */
} sl_consumer_source_options;

/* problem: a sentence without a full stop. It connects after start(). The loop must live longer.
 *   SL_OK
 *   SL_ERR_INVALID  an option or the address
 *   SL_ERR_NOMEM, SL_ERR_IO */
sl_err sl_consumer_source_new(sl_loop *loop, const sl_consumer_source_options *options, sl_text *problem,
                              sl_source **ret_source);

#endif
