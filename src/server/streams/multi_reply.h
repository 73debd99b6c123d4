/* server/streams/multi_reply.h — errors of version 2: a status, and in the trailer grpc-status-details-bin what it is about.
 *
 * All of them end the call; a request that is over is left alone. */
#ifndef SL_SERVER_STREAMS_MULTI_REPLY_H
#define SL_SERVER_STREAMS_MULTI_REPLY_H

#include "server/request.h"
#include "wire/error_details.h"

void sl_multi_reply_invalid(sl_request *request, const char *field, const char *sentence); /* BAD_REQUEST */
void sl_multi_reply_denied(sl_request *request);

/* Tombstoned, soft-deleted where that counts, or twice in one session. */
void sl_multi_reply_stream(sl_request *request, sl_v2_stream_error error, sl_str stream);
void sl_multi_reply_conflict(sl_request *request, const sl_v2_conflict *conflict);
void sl_multi_reply_violations(sl_request *request, const sl_v2_conflict *conflicts, size_t conflict_count);
void sl_multi_reply_record_too_large(sl_request *request, sl_str stream, sl_str record_id, uint64_t bytes);
void sl_multi_reply_too_large(sl_request *request, uint64_t bytes);
void sl_multi_reply_no_requests(sl_request *request);
void sl_multi_reply_late(sl_request *request);

/* What the store or memory said and nothing above fits. */
void sl_multi_reply_error(sl_request *request, sl_err err);

#endif
