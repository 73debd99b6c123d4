/* cli/append_draft.h — what `sluice append` is to append, as the options say it; shared by its two ways to do it. */
#ifndef SL_CLI_APPEND_DRAFT_H
#define SL_CLI_APPEND_DRAFT_H

#include "base/uuid.h"
#include "cli/client_session.h"
#include "wire/streams_codec.h"

typedef enum sl_append_content { /* in the order of --content-type */
    SL_APPEND_CONTENT_AUTO,
    SL_APPEND_CONTENT_JSON,
    SL_APPEND_CONTENT_BINARY,
} sl_append_content;

typedef struct sl_append_draft {
    sl_str stream, type, metadata;
    sl_wire_revision expected;
    sl_append_content content;
    bool has_id;
    sl_uuid id;
} sl_append_draft;

/* The event with this data. False: --content-type says that it is JSON, and it is not. */
bool sl_append_make_event(const sl_append_draft *draft, sl_uuid id, sl_str data, sl_wire_proposed *ret_event);

/* A new id. Takes randomness from the system in larger pieces. SL_OK or SL_ERR_IO. */
sl_err sl_append_make_id(sl_uuid *ret_id);

/* Appends one event. SL_EXIT_OK: it is durable, and *ret_response says where; otherwise everything is said. */
int sl_append_send(sl_session *session, const sl_append_draft *draft, const sl_wire_proposed *event,
                   sl_append_response *ret_response);

/* What was printed about appended events has to have arrived, or it is said on the error output that they are there. An exit
 * code. */
int sl_append_check_told(const sl_session *session, uint64_t event_count, uint64_t revision);

/* One event for each line of the file, "-" being the input. An exit code; everything is said. */
int sl_append_lines(sl_session *session, const sl_append_draft *draft, const char *path);

#endif
