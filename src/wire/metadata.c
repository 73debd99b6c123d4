/* wire/metadata.c — see metadata.h. */
#include "wire/metadata.h"

#include "base/cleanup.h"
#include "wire/coding.h"

#include <assert.h>
#include <stdint.h>

typedef struct row {
    uint32_t key_at, key_bytes, value_at, value_bytes;
} row;

enum {
    KEPT_BYTES_MAX = 4096 /* for each of the two buffers; most calls need less */
};

void sl_metadata_list_init(sl_metadata_list *list, const sl_alloc *alloc)
{
    sl_buf_init(&list->text, alloc, UINT32_MAX); /* what a peer can add is limited by whoever calls us */
    sl_buf_init(&list->rows, alloc, UINT32_MAX);
}

void sl_metadata_list_done(sl_metadata_list *list)
{
    sl_buf_done(&list->text);
    sl_buf_done(&list->rows);
}

static void clear(sl_buf *buf)
{
    if (buf->capacity > KEPT_BYTES_MAX)
        sl_buf_done(buf);
    sl_buf_clear(buf);
}

void sl_metadata_list_clear(sl_metadata_list *list)
{
    clear(&list->text);
    clear(&list->rows);
}

size_t sl_metadata_list_count(const sl_metadata_list *list)
{
    return list->rows.bytes / sizeof(row);
}

static sl_str slice(const sl_metadata_list *list, uint32_t at, uint32_t bytes)
{
    return bytes == 0 ? SL_STR("") : (sl_str){ (const char *)sl_buf_data(&list->text) + at, bytes };
}

sl_metadata sl_metadata_list_at(const sl_metadata_list *list, size_t index)
{
    row found;

    assert(index < sl_metadata_list_count(list));
    memcpy(&found, sl_buf_data(&list->rows) + index * sizeof found, sizeof found);
    return (sl_metadata){ slice(list, found.key_at, found.key_bytes),
                          slice(list, found.value_at, found.value_bytes) };
}

bool sl_metadata_list_find(const sl_metadata_list *list, sl_str key, sl_str *ret_value)
{
    const size_t count = sl_metadata_list_count(list);

    for (size_t i = 0; i < count; i++) {
        const sl_metadata found = sl_metadata_list_at(list, i);
        if (sl_str_equal(found.key, key)) {
            *ret_value = found.value;
            return true;
        }
    }
    return false;
}

typedef sl_err append_fn(sl_buf *buf, sl_str value);

static sl_err append_plain(sl_buf *buf, sl_str value)
{
    return sl_buf_append(buf, value.data, value.bytes);
}

/* Appends key and value, and the row last: without it the text before is only waste, and is taken back. */
static sl_err add(sl_metadata_list *list, sl_str key, sl_str value, append_fn *append)
{
    const size_t before = list->text.bytes;
    sl_err err = sl_buf_append(&list->text, key.data, key.bytes);

    if (err == SL_OK)
        err = append(&list->text, value);
    if (err == SL_OK) {
        const size_t value_at = before + key.bytes;
        const row added = { (uint32_t)before, (uint32_t)key.bytes, (uint32_t)value_at,
                            (uint32_t)(list->text.bytes - value_at) };
        err = sl_buf_append(&list->rows, &added, sizeof added);
    }
    if (err != SL_OK)
        list->text.bytes = before;
    return err == SL_ERR_TOO_LARGE ? SL_ERR_NOMEM : err;
}

sl_err sl_metadata_list_add(sl_metadata_list *list, sl_str key, sl_str value)
{
    return add(list, key, value, append_plain);
}

static bool is_binary(sl_str key)
{
    const sl_str suffix = SL_STR("-bin");

    return key.bytes > suffix.bytes && sl_str_ends_with(key, suffix);
}

sl_err sl_metadata_list_add_received(sl_metadata_list *list, sl_str key, sl_str value)
{
    sl_str one, rest = value;
    sl_err err = SL_OK;

    if (!is_binary(key))
        return sl_metadata_list_add(list, key, value);
    while (err == SL_OK && sl_str_cut(rest, ',', &one, &rest))
        err = add(list, key, sl_str_trim(one), sl_base64_append_decoded);
    return err == SL_OK ? add(list, key, sl_str_trim(rest), sl_base64_append_decoded) : err;
}

sl_err sl_metadata_list_add_sent(sl_metadata_list *list, sl_metadata metadata)
{
    return add(list, metadata.key, metadata.value,
               is_binary(metadata.key) ? sl_base64_append : sl_percent_append);
}

static bool is_reserved(sl_str key)
{
    static const sl_str names[] = {
        SL_STR_INIT("te"),         SL_STR_INIT("content-type"),     SL_STR_INIT("content-length"),
        SL_STR_INIT("connection"), SL_STR_INIT("proxy-connection"), SL_STR_INIT("transfer-encoding"),
        SL_STR_INIT("upgrade"),    SL_STR_INIT("keep-alive"),       SL_STR_INIT("host"),
    };

    for (size_t i = 0; i < SL_COUNT_OF(names); i++)
        if (sl_str_equal(key, names[i]))
            return true;
    /* Two of the names that gRPC keeps for itself are for services: when to try again, and rich details. */
    return sl_str_starts_with(key, SL_STR("grpc-")) && !sl_str_equal(key, SL_STR("grpc-retry-pushback-ms")) &&
           !sl_str_equal(key, SL_STR("grpc-status-details-bin"));
}

bool sl_metadata_key_allowed(sl_str key)
{
    for (size_t i = 0; i < key.bytes; i++) {
        const char c = key.data[i];
        const bool allowed =
            (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
        if (!allowed)
            return false;
    }
    return key.bytes > 0 && !is_reserved(key);
}
