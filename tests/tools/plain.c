/* tests/tools/plain.c — see plain.h. */
#include "plain.h"

#include "wire/persistent_codec.h"
#include "wire/server_control.h"

#if defined(__clang__) /* the names are those that the linker makes up */
#pragma clang diagnostic ignored "-Wreserved-identifier"
#endif

#ifndef PLAIN_IS_ON
#define PLAIN_IS_ON false
#endif

bool plain_is_on = PLAIN_IS_ON;

sl_err __real_sl_supported_methods_encode(const sl_supported_methods *methods, sl_arena *arena,
                                          sl_str *ret_message);
sl_err __wrap_sl_supported_methods_encode(const sl_supported_methods *methods, sl_arena *arena,
                                          sl_str *ret_message);
sl_err __real_sl_persistent_request_decode(sl_str message, sl_persistent_request *ret_request,
                                           const char **ret_reason);
sl_err __wrap_sl_persistent_request_decode(sl_str message, sl_persistent_request *ret_request,
                                           const char **ret_reason);

/* --- what it can do --- */

static bool is_extension(sl_str feature)
{
    return sl_str_equal(feature, SL_STR("stop")) || sl_str_equal(feature, SL_STR("nack_delay"));
}

static sl_err hide_features(sl_supported_method *method, sl_arena *arena)
{
    sl_str *const kept = sl_arena_alloc(arena, (method->feature_count + 1) * sizeof *kept);
    size_t count = 0;

    if (kept == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < method->feature_count; i++)
        if (!is_extension(method->features[i]))
            kept[count++] = method->features[i];
    method->features = kept;
    method->feature_count = count;
    return SL_OK;
}

static sl_err hide(sl_supported_methods *methods, sl_arena *arena)
{
    sl_supported_method *const kept = sl_arena_alloc(arena, (methods->method_count + 1) * sizeof *kept);
    sl_err err = kept == NULL ? SL_ERR_NOMEM : SL_OK;
    size_t count = 0;

    for (size_t i = 0; i < methods->method_count && err == SL_OK; i++) {
        if (sl_str_starts_with(methods->methods[i].service, SL_STR("sluice.")))
            continue;
        kept[count] = methods->methods[i];
        err = hide_features(&kept[count++], arena);
    }
    methods->methods = kept;
    methods->method_count = count;
    return err;
}

sl_err __wrap_sl_supported_methods_encode(const sl_supported_methods *methods, sl_arena *arena,
                                          sl_str *ret_message)
{
    sl_supported_methods shown = *methods;
    const sl_err err = plain_is_on ? hide(&shown, arena) : SL_OK;

    return err == SL_OK ? __real_sl_supported_methods_encode(&shown, arena, ret_message) : err;
}

/* --- what a consumer may say --- */

static bool are_plain(const sl_persistent_options *options)
{
    return options->consumer_name.bytes == 0 && options->labels.count == 0 && !options->extensions &&
           options->reconnect_ms == 0 && options->resume.count == 0;
}

static bool is_plain(const sl_persistent_request *request)
{
    switch (request->kind) {
    case SL_PERSISTENT_REQUEST_OPTIONS: return are_plain(&request->options);
    case SL_PERSISTENT_REQUEST_NACK: return request->delay_ms == 0;
    case SL_PERSISTENT_REQUEST_UNSET:
    case SL_PERSISTENT_REQUEST_ACK: return true;
    case SL_PERSISTENT_REQUEST_STOP:
    case SL_PERSISTENT_REQUEST_RELEASE:
    case SL_PERSISTENT_REQUEST_EXTEND:
    case SL_PERSISTENT_REQUEST_STARTED: break;
    }
    return false;
}

sl_err __wrap_sl_persistent_request_decode(sl_str message, sl_persistent_request *ret_request,
                                           const char **ret_reason)
{
    const sl_err err = __real_sl_persistent_request_decode(message, ret_request, ret_reason);

    if (err != SL_OK || !plain_is_on || is_plain(ret_request))
        return err;
    if (ret_reason != NULL)
        *ret_reason = "This server has no extensions, and said so.";
    return SL_ERR_INVALID;
}
