/* worker/handler/lines_message.c — see lines_text.h: what a handler is told.
 *
 * A message is written straight into the buffer that is sent, for which room is made once: nothing here can run out of it. */
#include "base/cleanup.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "worker/lines_text.h"

#include <assert.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

enum {
    FIXED_BYTES = 1024,    /* names, numbers, times and the id of a message */
    ESCAPED_BYTES_MAX = 6, /* of one byte of a text */
    NUMBER_BYTES_MAX = 20
};

/* --- JSON on one line --- */

static_assert((int)SL_LINES_DEPTH_MAX <= (int)SL_JSON_TEXT_DEPTH_MAX, "it can be looked for");

static void blank_each(char *text, size_t bytes, char unwanted)
{
    char *at = text;

    while ((at = memchr(at, unwanted, (size_t)(text + bytes - at))) != NULL)
        *at++ = ' ';
}

bool sl_lines_make_one_line(char *json, size_t bytes)
{
    if (!sl_json_text_is_value((sl_str){ json, bytes }, SL_LINES_DEPTH_MAX))
        return false;
    blank_each(json, bytes, '\n');
    blank_each(json, bytes, '\r');
    return true;
}

/* --- writing --- */

static inline void put(sl_buf *out, sl_str text)
{
    if (text.bytes > 0)
        memcpy(sl_buf_tail(out), text.data, text.bytes);
    sl_buf_added(out, text.bytes);
}

static void put_u64(sl_buf *out, uint64_t value)
{
    sl_text text;

    sl_text_init(&text, (char *)sl_buf_tail(out), NUMBER_BYTES_MAX + 1);
    sl_text_add_u64(&text, value);
    sl_buf_added(out, text.bytes);
}

static void put_escaped(sl_buf *out, uint8_t byte)
{
    static const char hex[] = "0123456789abcdef";
    const char escaped[ESCAPED_BYTES_MAX] = { '\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15] };

    put(out, (sl_str){ escaped, sizeof escaped });
}

/* The character in front, which is not plain. What is no UTF-8 is shown as the character for that. */
static size_t put_special(sl_buf *out, sl_str text)
{
    uint32_t code = 0;
    const size_t bytes = sl_utf8_first(text, &code);

    if (bytes == 0)
        put(out, SL_STR("\\ufffd"));
    else if (bytes == 1)
        put_escaped(out, (uint8_t)code);
    else
        put(out, (sl_str){ text.data, bytes });
    return bytes == 0 ? 1 : bytes;
}

static void put_text(sl_buf *out, sl_str text)
{
    put(out, SL_STR("\""));
    while (text.bytes > 0) {
        size_t bytes = sl_json_text_plain_bytes(text);

        if (bytes > 0)
            put(out, (sl_str){ text.data, bytes });
        else
            bytes = put_special(out, text);
        text = (sl_str){ text.data + bytes, text.bytes - bytes };
    }
    put(out, SL_STR("\""));
}

static size_t base64_bytes(size_t bytes)
{
    return (bytes + 2) / 3 * 4;
}

static void put_base64(sl_buf *out, sl_str data)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t *at = sl_buf_tail(out);
    const uint8_t *from = (const uint8_t *)data.data;

    for (size_t left = data.bytes; left > 0;) {
        const size_t taken = left < 3 ? left : 3;
        uint32_t bits = (uint32_t)from[0] << 16;
        bits |= taken > 1 ? (uint32_t)from[1] << 8 : 0;
        bits |= taken > 2 ? from[2] : 0;
        at[0] = (uint8_t)digits[bits >> 18];
        at[1] = (uint8_t)digits[bits >> 12 & 63];
        at[2] = taken > 1 ? (uint8_t)digits[bits >> 6 & 63] : '=';
        at[3] = taken > 2 ? (uint8_t)digits[bits & 63] : '=';
        at += 4;
        from += taken;
        left -= taken;
    }
    sl_buf_added(out, base64_bytes(data.bytes));
}

/* Copied first and judged there, so that the bytes are touched once. */
static void put_payload(sl_buf *out, const char *name, sl_str data, bool may_be_json)
{
    put(out, SL_STR(",\""));
    put(out, sl_str_from(name));
    if (may_be_json && data.bytes > 0) {
        char *copy = (char *)sl_buf_tail(out) + 2;
        memcpy(copy, data.data, data.bytes);
        if (sl_lines_make_one_line(copy, data.bytes)) {
            put(out, SL_STR("\":"));
            sl_buf_added(out, data.bytes);
            return;
        }
    }
    put(out, SL_STR("_base64\":\""));
    put_base64(out, data);
    put(out, SL_STR("\""));
}

/* "application/json", with or without parameters, and "application/anything+json". */
static bool is_json(sl_str content_type)
{
    const sl_str json = SL_STR("application/json"), plus_json = SL_STR("+json");
    const sl_str type = { content_type.data, sl_str_find(content_type, ';') };

    return sl_str_equal(sl_str_trim(type), json) ||
           (type.bytes > plus_json.bytes && sl_str_ends_with(type, plus_json));
}

static void put_named_text(sl_buf *out, sl_str name, sl_str text)
{
    put(out, name);
    put_text(out, text);
}

static void put_named_u64(sl_buf *out, sl_str name, uint64_t value)
{
    put(out, name);
    put_u64(out, value);
}

static void put_id(sl_buf *out, sl_uuid id)
{
    char text[SL_UUID_TEXT_BYTES + 1];

    sl_uuid_format(id, text);
    put(out, (sl_str){ text, SL_UUID_TEXT_BYTES });
}

static void put_created(sl_buf *out, uint64_t created_ns)
{
    sl_text text;

    put(out, SL_STR(",\"created\":\""));
    sl_text_init(&text, (char *)sl_buf_tail(out), 64);
    sl_text_add_time(&text, created_ns);
    sl_buf_added(out, text.bytes);
    put(out, SL_STR("\""));
}

static void put_head(sl_buf *out, const sl_job *job, uint64_t now_ns)
{
    const sl_job_message *message = &job->message;

    put(out, SL_STR("{\"type\":\"message\",\"id\":\""));
    put_id(out, message->event_id);
    put_named_u64(out, SL_STR("\",\"token\":"), message->token);
    put_named_u64(out, SL_STR(",\"attempt\":"), message->attempt);
    put_named_text(out, SL_STR(",\"stream\":"), message->stream);
    put_named_text(out, SL_STR(",\"group\":"), message->group);
    put_named_text(out, SL_STR(",\"event_type\":"), message->type);
    put_named_u64(out, SL_STR(",\"revision\":"), message->revision);
    put_named_text(out, SL_STR(",\"content_type\":"), message->content_type);
    put_created(out, message->created_ns);
    if (job->until_ns != UINT64_MAX)
        put_named_u64(out, SL_STR(",\"remaining_ms\":"),
                      job->until_ns > now_ns ? (job->until_ns - now_ns) / MS_NS : 0);
}

sl_err sl_lines_add_message(sl_buf *out, const sl_job *job, uint64_t now_ns)
{
    const sl_job_message *message = &job->message;
    const size_t texts_bytes =
        message->stream.bytes + message->group.bytes + message->type.bytes + message->content_type.bytes;
    const sl_err err =
        sl_buf_reserve(out, FIXED_BYTES + texts_bytes * ESCAPED_BYTES_MAX +
                                base64_bytes(message->data.bytes) + base64_bytes(message->metadata.bytes));

    if (err != SL_OK)
        return err;
    put_head(out, job, now_ns);
    put_payload(out, "data", message->data, is_json(message->content_type));
    if (message->metadata.bytes > 0)
        put_payload(out, "metadata", message->metadata, true);
    put(out, SL_STR("}\n"));
    return SL_OK;
}

sl_err sl_lines_add_draining(sl_buf *out, uint64_t remaining_ms)
{
    const sl_err err = sl_buf_reserve(out, FIXED_BYTES);

    if (err != SL_OK)
        return err;
    put_named_u64(out, SL_STR("{\"type\":\"draining\",\"remaining_ms\":"), remaining_ms);
    put(out, SL_STR("}\n"));
    return SL_OK;
}

sl_err sl_lines_add_abort(sl_buf *out, sl_uuid id)
{
    const sl_err err = sl_buf_reserve(out, FIXED_BYTES);

    if (err != SL_OK)
        return err;
    put(out, SL_STR("{\"type\":\"abort\",\"id\":\""));
    put_id(out, id);
    put(out, SL_STR("\"}\n"));
    return SL_OK;
}
