/* wire/status.c — the tables behind status.h. */
#include "wire/status.h"

#include "base/cleanup.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>

static const struct {
    const char *name, *text;
} rows[] = {
#define XX(number, name, text) [number] = { #name, text },
    SL_STATUS_MAP(XX)
#undef XX
};
static_assert(SL_COUNT_OF(rows) == SL_STATUS_COUNT_, "one row for each code, without holes");

const char *sl_status_name(sl_status status)
{
    return (unsigned)status < SL_STATUS_COUNT_ ? rows[status].name : "UNKNOWN";
}

const char *sl_status_text(sl_status status)
{
    return (unsigned)status < SL_STATUS_COUNT_ ? rows[status].text : rows[SL_STATUS_UNKNOWN].text;
}

bool sl_status_parse(sl_str text, sl_status *ret_status)
{
    uint64_t number;
    const sl_err err = sl_str_parse_u64(text, &number);

    if (err == SL_ERR_INVALID)
        return false;
    *ret_status = err == SL_OK && number < SL_STATUS_COUNT_ ? (sl_status)number : SL_STATUS_UNKNOWN;
    return true;
}

sl_status sl_status_from_http(unsigned http_status)
{
    switch (http_status) {
    case 400: return SL_STATUS_INTERNAL;
    case 401: return SL_STATUS_UNAUTHENTICATED;
    case 403: return SL_STATUS_PERMISSION_DENIED;
    case 404: return SL_STATUS_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504: return SL_STATUS_UNAVAILABLE;
    default: return SL_STATUS_UNKNOWN;
    }
}

sl_status sl_status_from_reset(uint32_t http2_error)
{
    switch (http2_error) {
    case NGHTTP2_CANCEL: return SL_STATUS_CANCELLED;
    case NGHTTP2_REFUSED_STREAM: return SL_STATUS_UNAVAILABLE;
    case NGHTTP2_ENHANCE_YOUR_CALM: return SL_STATUS_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY: return SL_STATUS_PERMISSION_DENIED;
    default: return SL_STATUS_INTERNAL;
    }
}
