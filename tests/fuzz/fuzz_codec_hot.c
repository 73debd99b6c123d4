/* tests/fuzz/fuzz_codec_hot.c — hostile bytes as the messages that are decoded by hand.
 *
 * The first byte chooses the message. Whatever follows, nothing outside of it is read. What is accepted is walked to its
 * last id and event, is written again in exactly the size that was said, and means the same when it is read back; and
 * protobuf-c accepts what we write, too. */
#include "wire/persistent_codec.h"
#include "wire/streams_codec.h"

#include "wire/codec/persistent.pb-c.h"
#include "wire/codec/streams.pb-c.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

typedef struct written {
    uint8_t *data; /* to be freed */
    size_t bytes;
} written;

static written room_for(size_t bytes)
{
    uint8_t *const data = malloc(bytes == 0 ? 1 : bytes);

    assert(data != NULL);
    return (written){ data, bytes };
}

static sl_str text_of(written message)
{
    return (sl_str){ (const char *)message.data, message.bytes };
}

static void expect_protobuf_c_reads(const ProtobufCMessageDescriptor *kind, written message)
{
    ProtobufCMessage *const theirs = protobuf_c_message_unpack(kind, NULL, message.bytes, message.data);

    assert(theirs != NULL);
    protobuf_c_message_free_unpacked(theirs, NULL);
}

/* The same bytes again: a message that we wrote is in its canonical form, and stays so. */
static void expect_same(written first, written second)
{
    assert(first.bytes == second.bytes && memcmp(first.data, second.data, first.bytes) == 0);
    free(first.data);
    free(second.data);
}

/* --- ids --- */

/* Makes an array of a decoded list, so that it can be written. To be freed. */
static sl_uuid *list_ids(sl_wire_ids *ids)
{
    sl_uuid *const list = calloc(ids->count + 1, sizeof *list);
    sl_wire_walk walk = sl_wire_items_walk(&ids->items);
    sl_wire_id id;
    size_t count = 0;

    assert(list != NULL);
    while (sl_wire_ids_next(&walk, &id))
        list[count++] = id.uuid;
    assert(count == ids->count);
    ids->list = list;
    ids->form = SL_WIRE_ID_TEXT;
    return list;
}

static void try_id(sl_str message)
{
    sl_wire_id id, again;
    uint8_t encoded[SL_WIRE_ID_BYTES_MAX];

    if (sl_wire_id_decode(message, &id, NULL) != SL_OK || id.form == SL_WIRE_ID_MALFORMED)
        return;
    const size_t bytes = sl_wire_id_encode(id, encoded);
    const sl_err err = sl_wire_id_decode((sl_str){ (const char *)encoded, bytes }, &again, NULL);
    assert(err == SL_OK && again.form == id.form && sl_uuid_equal(again.uuid, id.uuid));
}

/* --- appends --- */

static written write_append(const sl_append_request *request)
{
    const written message = room_for(sl_append_request_size(request));

    sl_append_request_encode(request, message.data, message.bytes);
    return message;
}

static void try_append(sl_str message)
{
    sl_append_request request, again;

    if (sl_append_request_decode(message, &request, NULL) != SL_OK)
        return;
    const written first = write_append(&request);
    const sl_err err = sl_append_request_decode(text_of(first), &again, NULL);
    assert(err == SL_OK && again.kind == request.kind);
    expect_protobuf_c_reads(&event_store__client__streams__append_req__descriptor, first);
    const written second = write_append(&again);
    expect_same(first, second);
}

static written write_append_response(const sl_append_response *response)
{
    const written message = room_for(sl_append_response_size(response));

    sl_append_response_encode(response, message.data, message.bytes);
    return message;
}

static void try_append_response(sl_str message)
{
    sl_append_response response, again;

    if (sl_append_response_decode(message, &response, NULL) != SL_OK)
        return;
    const written first = write_append_response(&response);
    const sl_err err = sl_append_response_decode(text_of(first), &again, NULL);
    assert(err == SL_OK && again.kind == response.kind);
    expect_protobuf_c_reads(&event_store__client__streams__append_resp__descriptor, first);
    const written second = write_append_response(&again);
    expect_same(first, second);
}

static void expect_batch_again(const sl_batch_append_draft *draft)
{
    const written message = room_for(sl_batch_append_request_size(draft));
    sl_batch_append_request again;

    sl_batch_append_request_encode(draft, message.data, message.bytes);
    const sl_err err = sl_batch_append_request_decode(text_of(message), &again, NULL);
    assert(err == SL_OK && again.event_count == draft->event_count && again.is_final == draft->is_final);
    expect_protobuf_c_reads(&event_store__client__streams__batch_append_req__descriptor, message);
    free(message.data);
}

static void try_batch(sl_str message)
{
    sl_batch_append_request request;
    sl_batch_append_draft draft = { 0 };
    sl_wire_proposed *events;
    sl_wire_walk walk;
    sl_err err;

    if (sl_batch_append_request_decode(message, &request, NULL) != SL_OK)
        return;
    events = calloc(request.event_count + 1, sizeof *events);
    assert(events != NULL);
    walk = sl_wire_items_walk(&request.events);
    while ((err = sl_batch_append_next(&walk, &events[draft.event_count], NULL)) == SL_OK)
        draft.event_count++;
    assert(draft.event_count <= request.event_count);
    (void)sl_batch_options_left_ns(&request.options, 1700000000000000000);
    if (err == SL_ERR_EMPTY) {
        assert(draft.event_count == request.event_count);
        draft.options = request.has_options ? &request.options : NULL;
        draft.events = events;
        draft.is_final = request.is_final;
        (void)sl_wire_id_decode(request.correlation, &draft.correlation, NULL);
        expect_batch_again(&draft);
    }
    free(events);
}

static written write_batch_response(const sl_batch_append_response *response)
{
    const written message = room_for(sl_batch_append_response_size(response));

    sl_batch_append_response_encode(response, message.data, message.bytes);
    return message;
}

static void try_batch_response(sl_str message)
{
    sl_batch_append_response response, again;

    if (sl_batch_append_response_decode(message, &response, NULL) != SL_OK)
        return;
    const written first = write_batch_response(&response);
    const sl_err err = sl_batch_append_response_decode(text_of(first), &again, NULL);
    assert(err == SL_OK && again.kind == response.kind);
    const written second = write_batch_response(&again);
    expect_same(first, second);
}

/* --- reads --- */

static written write_read(const sl_read_response *response)
{
    const written message = room_for(sl_read_response_size(response));

    sl_read_response_encode(response, message.data, message.bytes);
    return message;
}

static void try_read(sl_str message)
{
    sl_read_response response, again;

    if (sl_read_response_decode(message, &response, NULL) != SL_OK)
        return;
    const written first = write_read(&response);
    const sl_err err = sl_read_response_decode(text_of(first), &again, NULL);
    assert(err == SL_OK && again.kind == response.kind);
    expect_protobuf_c_reads(&event_store__client__streams__read_resp__descriptor, first);
    const written second = write_read(&again);
    expect_same(first, second);
}

/* --- persistent subscriptions --- */

static void expect_request_again(const sl_persistent_request *request)
{
    const written message = room_for(sl_persistent_request_size(request));
    sl_persistent_request again;

    sl_persistent_request_encode(request, message.data, message.bytes);
    const sl_err err = sl_persistent_request_decode(text_of(message), &again, NULL);
    assert(err == SL_OK && again.kind == request->kind);
    expect_protobuf_c_reads(&event_store__client__persistent_subscriptions__read_req__descriptor, message);
    free(message.data);
}

static void try_options(sl_persistent_request *request)
{
    sl_wire_label *const labels = calloc(request->options.labels.count + 1, sizeof *labels);
    sl_uuid *const resume = list_ids(&request->options.resume);
    sl_wire_walk walk = sl_wire_items_walk(&request->options.labels.items);
    size_t count = 0;

    assert(labels != NULL);
    while (sl_wire_labels_next(&walk, &labels[count]))
        count++;
    assert(count == request->options.labels.count);
    request->options.labels.list = labels;
    expect_request_again(request);
    free(labels);
    free(resume);
}

static void try_persistent_request(sl_str message)
{
    sl_persistent_request request;

    if (sl_persistent_request_decode(message, &request, NULL) != SL_OK)
        return;
    if (request.kind == SL_PERSISTENT_REQUEST_OPTIONS) {
        try_options(&request);
    } else if (request.kind == SL_PERSISTENT_REQUEST_UNSET || request.kind == SL_PERSISTENT_REQUEST_STOP) {
        expect_request_again(&request);
    } else {
        sl_uuid *const ids = list_ids(&request.ids);
        expect_request_again(&request);
        free(ids);
    }
}

static void expect_response_again(const sl_persistent_response *response)
{
    const written message = room_for(sl_persistent_response_size(response));
    sl_persistent_response again;

    sl_persistent_response_encode(response, message.data, message.bytes);
    const sl_err err = sl_persistent_response_decode(text_of(message), &again, NULL);
    assert(err == SL_OK && again.kind == response->kind);
    expect_protobuf_c_reads(&event_store__client__persistent_subscriptions__read_resp__descriptor, message);
    free(message.data);
}

static void try_persistent_response(sl_str message)
{
    sl_persistent_response response;
    sl_uuid *ids = NULL, *lost = NULL;

    if (sl_persistent_response_decode(message, &response, NULL) != SL_OK)
        return;
    if (response.kind == SL_PERSISTENT_RESPONSE_STOPPED)
        ids = list_ids(&response.stopped.outstanding);
    if (response.kind == SL_PERSISTENT_RESPONSE_SETTLED) {
        ids = list_ids(&response.settled.ids);
        lost = list_ids(&response.settled.lost);
    }
    expect_response_again(&response);
    free(ids);
    free(lost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    static void (*const tries[])(sl_str message) = {
        try_id,
        try_append,
        try_append_response,
        try_batch,
        try_batch_response,
        try_read,
        try_read,
        try_persistent_request,
        try_persistent_response,
    };

    if (data_bytes == 0)
        return 0;
    tries[data[0] % (sizeof tries / sizeof tries[0])]((sl_str){ (const char *)data + 1, data_bytes - 1 });
    return 0;
}
