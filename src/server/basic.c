/* server/basic.c — one header value into two texts. */
#include "server/basic.h"

#include "base/utf8.h"

#include <sodium.h>
#include <strings.h>

#define SCHEME "Basic"

/* What follows the scheme and its blanks. The name of a scheme has no case. */
static bool after_scheme(sl_str header, sl_str *ret_rest)
{
    const size_t scheme_bytes = sizeof SCHEME - 1;
    size_t at = scheme_bytes;

    if (header.bytes <= scheme_bytes || strncasecmp(header.data, SCHEME, scheme_bytes) != 0)
        return false;
    while (at < header.bytes && header.data[at] == ' ')
        at++;
    *ret_rest = (sl_str){ header.data + at, header.bytes - at };
    return at > scheme_bytes;
}

static bool is_text(sl_str text, size_t bytes_max)
{
    return text.bytes > 0 && text.bytes <= bytes_max && sl_utf8_valid(text) &&
           memchr(text.data, 0, text.bytes) == NULL;
}

static bool split(sl_credentials *credentials, size_t bytes)
{
    const sl_str both = { credentials->memory, bytes };

    return sl_str_cut(both, ':', &credentials->name, &credentials->password) &&
           is_text(credentials->name, SL_LOGIN_NAME_BYTES_MAX) &&
           is_text(credentials->password, SL_PASSWORD_BYTES_MAX);
}

bool sl_basic_parse(sl_str header, sl_credentials *ret_credentials)
{
    sl_str encoded;
    size_t bytes = 0;

    if (!after_scheme(header, &encoded))
        return false;
    if (sodium_base642bin((uint8_t *)ret_credentials->memory, sizeof ret_credentials->memory, encoded.data,
                          encoded.bytes, NULL, &bytes, NULL, sodium_base64_VARIANT_ORIGINAL) == 0 &&
        split(ret_credentials, bytes))
        return true;
    sl_credentials_wipe(ret_credentials);
    return false;
}

void sl_credentials_wipe(sl_credentials *credentials)
{
    sodium_memzero(credentials, sizeof *credentials);
}
