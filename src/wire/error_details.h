/* wire/error_details.h — the messages that say more about an error than its status.
 *
 * Version 1 puts one into google.rpc.Status inside of a BatchAppendResp. Version 2 puts a whole Status into the trailer
 * grpc-status-details-bin: first an ErrorInfo with the reason, then the detail, in this order, because one client reads
 * only the last. Encoders give SL_OK and a message in the arena, or SL_ERR_NOMEM. */
#ifndef SL_WIRE_ERROR_DETAILS_H
#define SL_WIRE_ERROR_DETAILS_H

#include "base/arena.h"
#include "wire/common_codec.h"

/* A message with its full name in front: what google.protobuf.Any holds. */
typedef struct sl_wire_detail {
    sl_str type; /* "type.googleapis.com/..." */
    sl_str value;
} sl_wire_detail;

/* --- version 1 --- */

/* Those that are empty messages; they cannot fail. */
sl_wire_detail sl_detail_access_denied(void);
sl_wire_detail sl_detail_timeout(void);
sl_wire_detail sl_detail_unknown(void);
sl_wire_detail sl_detail_empty(void); /* google.protobuf.Empty: busy, not ready */

sl_err sl_detail_wrong_revision(sl_wire_revision current, sl_wire_revision expected, sl_arena *arena,
                                sl_wire_detail *ret_detail);
sl_err sl_detail_stream_deleted(sl_str stream, sl_arena *arena, sl_wire_detail *ret_detail);
sl_err sl_detail_append_too_large(uint32_t max_bytes, sl_arena *arena, sl_wire_detail *ret_detail);

typedef struct sl_detail_sizes {
    uint32_t bytes, max_bytes;
} sl_detail_sizes;

sl_err sl_detail_event_too_large(sl_str event_id, sl_detail_sizes sizes, sl_arena *arena,
                                 sl_wire_detail *ret_detail);
sl_err sl_detail_bad_request(sl_str message, sl_arena *arena, sl_wire_detail *ret_detail);

/* What a client reads from the value of two of them; errors as in streams_control.h. The first tells where the stream is: NUMBER,
 * NO_STREAM or, from a server that does not say, UNSET. */
sl_err sl_detail_wrong_revision_decode(sl_str value, sl_arena *arena, sl_wire_revision *ret_current,
                                       const char **ret_reason);
sl_err sl_detail_bad_request_decode(sl_str value, sl_arena *arena, sl_str *ret_message,
                                    const char **ret_reason);

/* --- version 2 --- */

typedef enum sl_v2_stream_error {
    SL_V2_STREAM_NOT_FOUND,
    SL_V2_STREAM_ALREADY_EXISTS,
    SL_V2_STREAM_DELETED,
    SL_V2_STREAM_TOMBSTONED,
    SL_V2_STREAM_ALREADY_IN_SESSION,
} sl_v2_stream_error;

typedef struct sl_v2_conflict {
    uint32_t check_index; /* in AppendRecords: which of the checks */
    sl_str stream;
    int64_t expected, actual; /* as SL_STATE_ in wire/multi_append.h */
} sl_v2_conflict;

sl_err sl_v2_detail_stream(sl_v2_stream_error error, sl_str stream, sl_arena *arena,
                           sl_wire_detail *ret_detail);
sl_err sl_v2_detail_revision_conflict(const sl_v2_conflict *conflict, sl_arena *arena,
                                      sl_wire_detail *ret_detail);
sl_err sl_v2_detail_violations(const sl_v2_conflict *conflicts, size_t conflict_count, sl_arena *arena,
                               sl_wire_detail *ret_detail);
sl_err sl_v2_detail_record_too_large(sl_str stream, sl_str record_id, sl_detail_sizes sizes, sl_arena *arena,
                                     sl_wire_detail *ret_detail);
sl_err sl_v2_detail_transaction_too_large(sl_detail_sizes sizes, sl_arena *arena, sl_wire_detail *ret_detail);
sl_err sl_v2_detail_access_denied(sl_str operation, sl_str username, sl_arena *arena,
                                  sl_wire_detail *ret_detail);
sl_err sl_v2_detail_bad_request(sl_str field, sl_str description, sl_arena *arena,
                                sl_wire_detail *ret_detail);
sl_err sl_v2_detail_retry_after(uint64_t delay_ns, sl_arena *arena, sl_wire_detail *ret_detail);

typedef struct sl_v2_status {
    int32_t code;
    sl_str message;
    sl_str reason;                /* "STREAM_REVISION_CONFLICT" */
    sl_str domain;                /* "streams" or "server" */
    const sl_wire_detail *detail; /* NULL: none besides the reason */
} sl_v2_status;

/* The bytes of the trailer, before base64. */
sl_err sl_v2_status_encode(const sl_v2_status *status, sl_arena *arena, sl_str *ret_message);

#endif
