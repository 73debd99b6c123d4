/* bench/codec.c — what it costs to read and write the hot messages, beside protobuf-c with an arena.
 *
 * An append request and a read response, each with an event of 256 bytes and the usual metadata, with ids as numbers and as
 * text. Decoding ends with every field in hand; encoding includes asking for the size, because nobody can encode without.
 * That both sides mean the same bytes is checked before anything is measured. Rounds are interleaved and medians are
 * shown; a ratio is their time divided by ours. */
#include "base/arena.h"
#include "base/cleanup.h"
#include "wire/streams_codec.h"

#include "wire/codec/streams.pb-c.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS = 21,
    STEPS = 100000,
    MESSAGE_BYTES_MAX = 1024,
    DATA_BYTES = 256,
};

static char payload[DATA_BYTES];
static sl_arena arena;       /* of protobuf-c; forgotten after each message */
static volatile size_t sink; /* what was computed is used, so the compiler cannot leave it out */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench-codec: %s\n", what);
    exit(1);
}

/* --- the messages --- */

static sl_append_request append_request(sl_wire_id_form form)
{
    return (sl_append_request){
        .kind = SL_APPEND_REQUEST_EVENT,
        .event = { .id = { sl_uuid_from_halves(0x1122334455667788, -0x1122334455667788), form },
                   .type = SL_STR("order-placed"),
                   .content_type = SL_STR("application/json"),
                   .data = { payload, sizeof payload } },
    };
}

static sl_wire_read_event read_event(sl_wire_id_form form)
{
    return (sl_wire_read_event){
        .has_event = true,
        .event = { .id = { sl_uuid_from_halves(0x1122334455667788, -0x1122334455667788), form },
                   .stream = SL_STR("orders-0123456789abcd"),
                   .revision = 123456,
                   .commit_position = 987654321,
                   .prepare_position = 987654321,
                   .type = SL_STR("order-placed"),
                   .content_type = SL_STR("application/json"),
                   .created_ticks = 17600000000000000,
                   .data = { payload, sizeof payload } },
        .position_kind = SL_WIRE_POSITION_GIVEN,
        .commit_position = 987654321,
    };
}

static void *take(void *ctx, size_t bytes)
{
    return sl_arena_alloc(ctx, bytes);
}

static void keep(void *ctx, void *piece)
{
    (void)ctx;
    (void)piece;
}

static ProtobufCAllocator on_arena = { .alloc = take, .free = keep, .allocator_data = &arena };

/* --- what is measured: each does one message --- */

typedef struct subject {
    const ProtobufCMessageDescriptor *kind;
    bool is_read;
    sl_append_request append;
    sl_wire_read_event read;
    uint8_t message[MESSAGE_BYTES_MAX];
    size_t message_bytes;
    ProtobufCMessage *theirs; /* the same message in protobuf-c's form */
    sl_arena theirs_arena;
} subject;

static void encode_ours(subject *s)
{
    s->message_bytes = s->is_read ? sl_read_event_size(&s->read) : sl_append_request_size(&s->append);
    if (s->is_read)
        sl_read_event_encode(&s->read, s->message, s->message_bytes);
    else
        sl_append_request_encode(&s->append, s->message, s->message_bytes);
    sink = s->message[0];
}

static void decode_ours(subject *s)
{
    const sl_str message = { (const char *)s->message, s->message_bytes };
    sl_append_request append;
    sl_read_response read;

    if (s->is_read) {
        if (sl_read_response_decode(message, &read, NULL) != SL_OK)
            fail("our own message is refused");
        sink = read.event.event.data.bytes + read.event.event.type.bytes;
    } else {
        if (sl_append_request_decode(message, &append, NULL) != SL_OK)
            fail("our own message is refused");
        sink = append.event.data.bytes + append.event.type.bytes;
    }
}

static void encode_theirs(subject *s)
{
    s->message_bytes = protobuf_c_message_get_packed_size(s->theirs);
    protobuf_c_message_pack(s->theirs, s->message);
    sink = s->message[0];
}

static void decode_theirs(subject *s)
{
    sl_arena_reset(&arena);
    sink = (size_t)protobuf_c_message_unpack(s->kind, &on_arena, s->message_bytes, s->message);
}

typedef void step_fn(subject *s);

static double ns_each(subject *s, step_fn *step)
{
    const uint64_t begin_ns = now_ns();

    for (int i = 0; i < STEPS; i++)
        step(s);
    return (double)(now_ns() - begin_ns) / STEPS;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const char *name, subject *s, step_fn *ours, step_fn *theirs)
{
    double our_ns[ROUNDS], their_ns[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        our_ns[i] = ns_each(s, ours);
        their_ns[i] = ns_each(s, theirs);
    }
    qsort(our_ns, ROUNDS, sizeof our_ns[0], by_value);
    qsort(their_ns, ROUNDS, sizeof their_ns[0], by_value);
    printf("%-20s %4zu bytes   ours %6.1f ns   protobuf-c %6.1f ns\n", name, s->message_bytes,
           our_ns[ROUNDS / 2], their_ns[ROUNDS / 2]);
    printf("ratio %s protobuf-c %.2f\n", name, their_ns[ROUNDS / 2] / our_ns[ROUNDS / 2]);
    fflush(stdout);
}

/* Ours writes it, protobuf-c reads it, writes it again, and it has to be the same. */
static void prepare(subject *s)
{
    uint8_t again[MESSAGE_BYTES_MAX];
    ProtobufCAllocator on_its_own = { .alloc = take, .free = keep, .allocator_data = &s->theirs_arena };

    sl_arena_init(&s->theirs_arena, &sl_alloc_default,
                  (sl_arena_sizes){ .chunk_bytes = 4096, .limit_bytes = 65536 });
    encode_ours(s);
    s->theirs = protobuf_c_message_unpack(s->kind, &on_its_own, s->message_bytes, s->message);
    if (s->theirs == NULL || protobuf_c_message_get_packed_size(s->theirs) != s->message_bytes)
        fail("protobuf-c sees another message");
    protobuf_c_message_pack(s->theirs, again);
    if (memcmp(again, s->message, s->message_bytes) != 0)
        fail("protobuf-c writes other bytes");
}

int main(void)
{
    static const struct {
        const char *encode, *decode;
        bool is_read;
        sl_wire_id_form form;
    } rows[] = {
        { "append-encode", "append-decode", false, SL_WIRE_ID_STRUCTURED },
        { "append-text-encode", "append-text-decode", false, SL_WIRE_ID_TEXT },
        { "read-encode", "read-decode", true, SL_WIRE_ID_STRUCTURED },
        { "read-text-encode", "read-text-decode", true, SL_WIRE_ID_TEXT },
    };

    memset(payload, 'x', sizeof payload);
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ .chunk_bytes = 16384, .limit_bytes = 65536 });
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        static subject s;

        s = (subject){
            .kind = rows[i].is_read ? &event_store__client__streams__read_resp__descriptor
                                    : &event_store__client__streams__append_req__descriptor,
            .is_read = rows[i].is_read,
            .append = append_request(rows[i].form),
            .read = read_event(rows[i].form),
        };
        prepare(&s);
        measure(rows[i].encode, &s, encode_ours, encode_theirs);
        measure(rows[i].decode, &s, decode_ours, decode_theirs);
        sl_arena_done(&s.theirs_arena);
    }
    sl_arena_done(&arena);
    return 0;
}
