/* worker/handler/http_request.c — the headers of a request, made for each message without taking memory in the long run.
 *
 * The list that curl wants is made of nodes inside of the transfer, whose texts stand one behind the other in one buffer; the last node
 * points to the headers that are always the same. */
#include "base/cleanup.h"
#include "wire/coding.h"
#include "worker/handler/http_inside.h"

#include <assert.h>

enum {
    FIXED_BYTES = 768, /* above all names of headers, ids and numbers together */
    ENCODED_TIMES = 3, /* %XX */
    NUMBER_BYTES = 24
};

typedef struct writing {
    sl_http_transfer *transfer;
    size_t count; /* headers so far */
    sl_err err;
} writing;

/* --- how much room --- */

static size_t value_bytes(sl_str value)
{
    return value.bytes > SL_HTTP_VALUE_BYTES_MAX ? 0 : value.bytes;
}

static bool is_printable(sl_str text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] < 0x20 || text.data[i] > 0x7e)
            return false;
    return true;
}

/* Before anything is written, because the nodes point into the buffer. */
static sl_err make_room(sl_http_transfer *transfer)
{
    const sl_job_message *const message = &transfer->job->message;
    const size_t names = value_bytes(message->stream) + value_bytes(message->type) +
                         value_bytes(message->group) + value_bytes(message->content_type);
    const size_t metadata =
        message->metadata.bytes > SL_HTTP_METADATA_BYTES_MAX ? 0 : message->metadata.bytes;

    sl_buf_clear(&transfer->texts);
    return sl_buf_reserve(&transfer->texts, FIXED_BYTES + ENCODED_TIMES * names + metadata);
}

/* --- one header --- */

static void begin(writing *w, const char *name)
{
    struct curl_slist *const header = &w->transfer->headers[w->count];

    assert(w->count < SL_HTTP_OWN_HEADERS);
    header->data = (char *)sl_buf_tail(&w->transfer->texts);
    header->next = header + 1;
    w->count++;
    if (w->err == SL_OK)
        w->err = sl_buf_append(&w->transfer->texts, name, strlen(name));
}

static void end(writing *w)
{
    if (w->err == SL_OK)
        w->err = sl_buf_append_u8(&w->transfer->texts, '\0');
}

static void add_plain(writing *w, const char *name, sl_str value)
{
    begin(w, name);
    if (w->err == SL_OK)
        w->err = sl_buf_append(&w->transfer->texts, value.data, value.bytes);
    end(w);
}

static void add_number(writing *w, const char *name, uint64_t number)
{
    char buffer[NUMBER_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_u64(&text, number);
    add_plain(w, name, sl_text_str(&text));
}

/* A line end in a name would begin a header of its own choice: nothing but printable characters gets through. */
static void add_name(writing *w, const char *name, sl_str value)
{
    if (value_bytes(value) == 0)
        return;
    begin(w, name);
    if (w->err == SL_OK)
        w->err = sl_percent_append(&w->transfer->texts, value);
    end(w);
}

/* --- all of them --- */

static void add_id(writing *w)
{
    char id[SL_UUID_TEXT_BYTES + 1];

    sl_uuid_format(w->transfer->job->message.event_id, id);
    add_plain(w, "Idempotency-Key: ", sl_str_from(id));
    add_plain(w, "Sluice-Id: ", sl_str_from(id));
}

static void add_content_type(writing *w)
{
    const sl_str type = w->transfer->job->message.content_type;

    if (w->transfer->http->has_content_type)
        return;
    add_name(w, "Content-Type: ", value_bytes(type) == 0 ? SL_STR("application/octet-stream") : type);
}

static void add_metadata(writing *w)
{
    const sl_str metadata = w->transfer->job->message.metadata;

    if (metadata.bytes > 0 && metadata.bytes <= SL_HTTP_METADATA_BYTES_MAX && is_printable(metadata))
        add_plain(w, "Sluice-Metadata: ", metadata);
}

static void add_deadline(writing *w, uint64_t now_ns)
{
    const uint64_t until_ns = w->transfer->job->until_ns, timeout_ns = w->transfer->http->timeout_ns;
    uint64_t left_ns = until_ns == 0 || until_ns == UINT64_MAX ? UINT64_MAX
                       : until_ns > now_ns                     ? until_ns - now_ns
                                                               : 0;

    if (timeout_ns != 0)
        left_ns = sl_min_u64(left_ns, timeout_ns);
    if (left_ns != UINT64_MAX)
        add_number(w, "Sluice-Deadline-Ms: ", left_ns / 1000000);
}

sl_err sl_http_write_headers(sl_http_transfer *transfer, uint64_t now_ns)
{
    const sl_job_message *const message = &transfer->job->message;
    writing w = { .transfer = transfer, .err = make_room(transfer) };

    if (w.err != SL_OK)
        return SL_ERR_NOMEM;
    add_id(&w);
    add_content_type(&w);
    if (message->token != 0)
        add_number(&w, "Sluice-Token: ", message->token);
    add_number(&w, "Sluice-Attempt: ", message->attempt);
    add_number(&w, "Sluice-Revision: ", message->revision);
    add_name(&w, "Sluice-Stream: ", message->stream);
    add_name(&w, "Sluice-Group: ", message->group);
    add_name(&w, "Sluice-Type: ", message->type);
    add_metadata(&w);
    add_deadline(&w, now_ns);
    transfer->headers[w.count - 1].next = transfer->http->constant_headers;
    return w.err == SL_OK ? SL_OK : SL_ERR_NOMEM;
}
