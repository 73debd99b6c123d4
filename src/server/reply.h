/* server/reply.h — errors as clients know them: the exact status, text and trailers of each.
 *
 * Clients choose their exception by the trailer "exception" and some by words of the text, so every text here is a contract
 * (shared kurrent-wire, section 12). All functions end the call; a request that is over is left alone. */
#ifndef SL_SERVER_REPLY_H
#define SL_SERVER_REPLY_H

#include "server/request.h"
#include "wire/common_codec.h"

#define SL_REPLY_REVOKED                                                                                     \
    "Unauthenticated: while this call was open, its user was removed, disabled or given another password."

void sl_reply_access_denied(sl_request *request);
void sl_reply_unauthenticated(sl_request *request);
void sl_reply_too_often(sl_request *request); /* UNAUTHENTICATED too: after so many failures, wait */
void sl_reply_not_ready(sl_request *request); /* UNAVAILABLE: nobody can be told from anybody yet */
void sl_reply_stream_deleted(sl_request *request, sl_str stream);

/* Delete and Tombstone. */
void sl_reply_wrong_revision(sl_request *request, sl_str stream, sl_wire_revision expected,
                             sl_wire_revision actual);

void sl_reply_append_too_large(sl_request *request, uint32_t max_bytes);
void sl_reply_event_too_large(sl_request *request, sl_uuid id, uint32_t bytes, uint32_t max_bytes);
void sl_reply_missing_metadata(sl_request *request, sl_str property);
void sl_reply_invalid(sl_request *request, const char *sentence); /* INVALID_ARGUMENT */

/* A decoder gave this error: INVALID with its reason, or memory is short. */
void sl_reply_undecodable(sl_request *request, sl_err err, const char *reason);

/* What the real server stumbles over: UNKNOWN with the text that one client looks for, and then this sentence. */
void sl_reply_thrown(sl_request *request, const char *sentence);

void sl_reply_index_not_found(sl_request *request, sl_str index);
void sl_reply_user_not_found(sl_request *request, sl_str login_name);
void sl_reply_user_conflict(sl_request *request, sl_str login_name);
void sl_reply_user_busy(sl_request *request,
                        sl_str login_name); /* somebody changes him just now: try again */
void sl_reply_scavenge_not_found(sl_request *request, sl_str scavenge_id);

/* Persistent subscriptions; the stream of a group on everything is "$all". */
void sl_reply_group_not_found(sl_request *request, sl_str stream, sl_str group);
void sl_reply_group_exists(sl_request *request, sl_str stream, sl_str group);
void sl_reply_group_failed(sl_request *request, sl_str stream, sl_str group, sl_str reason);
void sl_reply_group_full(sl_request *request, sl_str stream, sl_str group); /* too many consumers */
void sl_reply_group_dropped(sl_request *request, sl_str stream, sl_str group);

/* UNAVAILABLE with the reason of the shutdown; UNAUTHENTICATED if it is not the server that stops but this call, since its
 * user is not what it was (server/recall.h). The same for sl_reply_access_denied() and SL_ERR_DRAINING. */
void sl_reply_stopping(sl_request *request);

/* What the store said and nothing above fits: NO_SPACE is RESOURCE_EXHAUSTED, STORE_FAILED is UNAVAILABLE, CORRUPT is DATA_LOSS,
 * INVALID and TOO_LARGE are INVALID_ARGUMENT, DRAINING is UNAVAILABLE with the reason, NOMEM, FULL and STREAMS_MAX are
 * RESOURCE_EXHAUSTED, IO is UNAVAILABLE; each with a sentence on what it means and what to do. */
void sl_reply_error(sl_request *request, sl_err err);

/* The status and sentence of the same, for answers inside of a call (BatchAppend). */
sl_status sl_reply_status_of(sl_err err);
const char *sl_reply_sentence_of(const sl_host *host, sl_err err);
void sl_reply_add_missing_metadata(sl_text *text, sl_str property);

#endif
