/* server/features.c — event_store.client.server_features.ServerFeatures: what this server can do.
 *
 * Every client asks this first and chooses by it: batch append or append, persistent subscriptions to $all or not. The answer is the
 * list of methods itself, so it cannot promise what is not there. Names are in lower case, since most clients compare bytes.
 *
 * The version is not ours. Clients know KurrentDB's numbers and derive from them what a server can do: below 21.10.1 they encode the
 * strategy of groups in an old way, and what is no version of three numbers keeps some from connecting at all. 26.0.0 is the
 * KurrentDB whose calls we speak. Ours is in /v1/info and `sluice version`. */
#include "server/reply.h"
#include "server/services.h"
#include "wire/server_control.h"

enum {
    REQUEST_BYTES_MAX = 4 * 1024 /* the request is empty; some room for what newer clients may add */
};

static bool copy_lower(sl_arena *arena, sl_str text, sl_str *ret_copy)
{
    char *const copy = sl_arena_copy_str(arena, text);

    if (copy == NULL)
        return false;
    for (size_t i = 0; i < text.bytes; i++)
        copy[i] = copy[i] >= 'A' && copy[i] <= 'Z' ? (char)(copy[i] - 'A' + 'a') : copy[i];
    *ret_copy = (sl_str){ copy, text.bytes };
    return true;
}

static sl_err list_methods(sl_arena *arena, sl_supported_methods *ret_methods)
{
    sl_supported_method *const rows = sl_arena_alloc_zero(arena, sl_method_count * sizeof *rows);

    if (rows == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < sl_method_count; i++) {
        rows[i].features = sl_methods[i]->features;
        rows[i].feature_count = sl_methods[i]->feature_count;
        if (!copy_lower(arena, sl_methods[i]->service, &rows[i].service) ||
            !copy_lower(arena, sl_methods[i]->name, &rows[i].method))
            return SL_ERR_NOMEM;
    }
    *ret_methods = (sl_supported_methods){ .methods = rows,
                                           .method_count = sl_method_count,
                                           .version = SL_STR("26.0.0") };
    return SL_OK;
}

static void get_supported_methods(sl_request *request, sl_str message)
{
    sl_supported_methods methods;
    sl_str answer;
    sl_err err = list_methods(&request->arena, &methods);

    (void)message;
    if (err == SL_OK)
        err = sl_supported_methods_encode(&methods, &request->arena, &answer);
    if (err == SL_OK)
        sl_request_answer(request, answer);
    else
        sl_reply_error(request, err);
}

const sl_method sl_method_features_get_supported_methods = {
    .service = SL_STR_INIT("event_store.client.server_features.ServerFeatures"),
    .name = SL_STR_INIT("GetSupportedMethods"),
    .kind = SL_METHOD_UNARY,
    .who = SL_FOR_ANYONE,
    .message_bytes_max = REQUEST_BYTES_MAX,
    .message = get_supported_methods,
};
