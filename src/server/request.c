/* server/request.c — the memory of a call that is served, and everything that is sent on it.
 *
 * Sending asks one question first: is the call still there and without a status? So a service that was answered by the disk after the
 * client had gone does no harm. Each function that sends tells the owner of the link, who looks for output at the end of
 * the turn.
 *
 * Calls come and go by the ten thousand in a second, so the memory of those that are over is kept for the next ones, with the
 * first chunk of its arena. */
#include "server/request.h"

#include "server/link.h"

#include <assert.h>

static sl_request *take_memory(sl_host *host)
{
    sl_list *const spare = sl_list_first(&host->spare_requests);
    sl_request *request;

    if (spare != NULL) {
        sl_list_remove(spare);
        host->spare_request_count--;
        return SL_CONTAINER_OF(spare, sl_request, node);
    }
    request = sl_alloc_take(host->alloc, sizeof *request);
    if (request != NULL)
        sl_arena_init(&request->arena, host->alloc,
                      (sl_arena_sizes){ SL_REQUEST_ARENA_CHUNK_BYTES, SL_REQUEST_ARENA_BYTES_MAX });
    return request;
}

static void give_memory(sl_host *host, sl_request *request)
{
    sl_arena_done(&request->arena);
    sl_alloc_give(host->alloc, request, sizeof *request);
}

static void put_memory(sl_host *host, sl_request *request)
{
    if (host->spare_request_count >= host->spare_requests_max) {
        give_memory(host, request);
        return;
    }
    sl_arena_reset(&request->arena);
    sl_list_push_front(&host->spare_requests, &request->node);
    host->spare_request_count++;
}

void sl_request_free_spares(sl_host *host)
{
    SL_LIST_EACH_SAFE (node, &host->spare_requests) {
        sl_list_remove(node);
        give_memory(host, SL_CONTAINER_OF(node, sl_request, node));
    }
    host->spare_request_count = 0;
}

sl_request *sl_request_new(sl_link *link, sl_call *call, const sl_method *method)
{
    sl_host *const host = link->host;
    sl_request *const request = take_memory(host);
    void *const state = request == NULL ? NULL : sl_arena_alloc_zero(&request->arena, method->state_bytes);

    if (request != NULL && state == NULL)
        give_memory(host, request);
    if (state == NULL)
        return NULL;
    *request = (sl_request){ .host = host,
                             .link = link,
                             .call = call,
                             .method = method,
                             .arena = request->arena,
                             .state = state,
                             .holds = 1 };
    sl_buf_init(&request->kept_message, host->alloc, UINT32_MAX); /* the engine has the limit of a message */
    sl_list_push_back(&host->requests, &request->node);
    return request;
}

sl_request *sl_request_hold(sl_request *request)
{
    assert(request->holds > 0);
    request->holds++;
    return request;
}

void sl_request_release(sl_request *request)
{
    assert(request->holds > 0);
    if (--request->holds > 0)
        return;
    assert(request->call == NULL); /* the call holds it as long as it is there */
    put_memory(request->host, request);
}

void sl_request_detach(sl_request *request)
{
    request->link->kept_bytes -= request->kept_message.bytes;
    request->call = NULL;
    request->link = NULL;
    request->finished = true;
    request->answer_waits = false;
    sl_buf_done(&request->kept_message);
    sl_list_remove(&request->node);
}

bool sl_request_open(const sl_request *request)
{
    return request->call != NULL && !request->finished;
}

static void touch(const sl_request *request)
{
    if (request->link != NULL)
        request->link->owner.touch(request->link->owner.ctx);
}

/* --- sending --- */

size_t sl_request_room(sl_request *request)
{
    return sl_request_open(request) ? sl_call_room(request->call) : 0;
}

sl_err sl_request_reserve(sl_request *request, size_t bytes, uint8_t **ret_data)
{
    return sl_request_open(request) ? sl_call_reserve(request->call, bytes, ret_data) : SL_ERR_EMPTY;
}

void sl_request_commit(sl_request *request, size_t bytes)
{
    assert(sl_request_open(request));
    sl_call_commit(request->call, bytes);
    touch(request);
}

/* The call itself says how it ends: also for an answer, which has set `finished` before. */
static void finish_call(sl_request *request, sl_status status, sl_str message, const sl_metadata *trailers,
                        size_t trailer_count)
{
    request->finished = true;
    sl_call_finish(request->call, status, message, trailers, trailer_count);
    touch(request);
}

void sl_request_finish(sl_request *request, sl_status status, sl_str message, const sl_metadata *trailers,
                       size_t trailer_count)
{
    if (sl_request_open(request))
        finish_call(request, status, message, trailers, trailer_count);
}

static void finish_unsent(sl_request *request, sl_err err)
{
    static const sl_str too_large =
        SL_STR_INIT("The answer is larger than what clients accept. Ask for less at a time.");
    static const sl_str no_room =
        SL_STR_INIT("The server has no memory for the answer. Try again in a moment.");
    static const sl_str unread =
        SL_STR_INIT("Too many answers wait for this connection. Read them before asking for more.");
    const sl_str message = err == SL_ERR_TOO_LARGE ? too_large : err == SL_ERR_FULL ? unread : no_room;

    finish_call(request, SL_STATUS_RESOURCE_EXHAUSTED, message, NULL, 0);
}

void sl_request_send(sl_request *request, sl_str message)
{
    sl_err err;

    if (!sl_request_open(request))
        return;
    err = sl_call_send(request->call, &message, 1);
    if (err == SL_OK)
        touch(request);
    else
        finish_unsent(request, err);
}

static void send_answer(sl_request *request, sl_str message)
{
    const sl_err err = sl_call_send(request->call, &message, 1);

    request->answer_waits = err == SL_ERR_FULL;
    if (err == SL_OK)
        finish_call(request, SL_STATUS_OK, SL_STR(""), NULL, 0);
    else if (err != SL_ERR_FULL)
        finish_unsent(request, err);
}

void sl_request_answer(sl_request *request, sl_str message)
{
    char *kept;

    if (!sl_request_open(request))
        return;
    request->finished = true;
    send_answer(request, message);
    if (!request->answer_waits)
        return;
    kept = sl_arena_copy_str(&request->arena, message);
    request->answer = (sl_str){ kept, message.bytes };
    if (kept == NULL) {
        request->answer_waits = false;
        finish_unsent(request, SL_ERR_NOMEM);
    }
}

bool sl_request_flush(sl_request *request)
{
    if (!request->answer_waits)
        return false;
    send_answer(request, request->answer);
    return true;
}

/* --- receiving --- */

void sl_request_pause(sl_request *request)
{
    request->paused = true;
    if (request->call != NULL)
        sl_call_pause(request->call);
}

void sl_request_resume(sl_request *request)
{
    request->paused = false;
    if (request->call == NULL || request->held_back)
        return; /* dispatch.c resumes it when begin() has returned */
    touch(request);
    sl_call_resume(request->call);
}

sl_str sl_request_header(const sl_request *request, sl_str key)
{
    sl_str value = { NULL, 0 };

    if (request->call != NULL)
        (void)sl_metadata_list_find(sl_call_metadata(request->call), key, &value);
    return value;
}

sl_str sl_request_peer(const sl_request *request)
{
    return request->link == NULL ? (sl_str){ NULL, 0 } : request->link->owner.peer;
}
