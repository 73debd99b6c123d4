/* tests/fuzz/fuzz_host.c — the whole server without a socket, at the mercy of the input.
 *
 * The first byte chooses the mode, the second what kind of server it is.
 *   raw         the rest is what one client sends, from the first byte on
 *   framed      the same behind a correct preface and SETTINGS
 *   script      the rest are instructions: connect, call, send, half-close, cancel, stall, lose a connection, let time pass, stop
 *               the server, shut its door, make its disk slow or its memory fail; or frames made by hand
 * server_world.h has the driver, server_judge.h what must be true whatever comes, server_words.h the messages. */
#include "server_passwords.h"
#include "server_words.h"
#include "server_world.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum {
    MODE_RAW = 0,
    MODE_FRAMED = 1, /* everything above is a script */
    STEPS_MAX = 512,
    RECENT_CALLS = 8,
    ARENA_CHUNK_BYTES = 16 * 1024,
    ARENA_BYTES_MAX = 8 << 20,
    FRAME_HEAD_BYTES = 9,
};

typedef struct play {
    world w;
    script s;
    sl_arena arena; /* of one step */
} play;

/* --- frames made by hand --- */

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
static const uint8_t empty_settings[FRAME_HEAD_BYTES] = { 0, 0, 0, 4 };

static void put_frame(world_peer *peer, uint8_t type, uint8_t flags, uint32_t stream_id, sl_str payload)
{
    const size_t bytes = payload.bytes;
    const uint8_t head[FRAME_HEAD_BYTES] = { (uint8_t)(bytes >> 16),
                                             (uint8_t)(bytes >> 8),
                                             (uint8_t)bytes,
                                             type,
                                             flags,
                                             (uint8_t)(stream_id >> 24),
                                             (uint8_t)(stream_id >> 16),
                                             (uint8_t)(stream_id >> 8),
                                             (uint8_t)stream_id };

    world_receive(peer, head, sizeof head);
    world_receive(peer, payload.data, bytes);
}

static void put_row(sl_buf *block, sl_str key, sl_str value)
{
    const uint8_t literal = 0;

    (void)sl_buf_append(block, &literal, 1);
    (void)sl_buf_append_u8(block, (uint8_t)(key.bytes & 0x7f));
    (void)sl_buf_append(block, key.data, key.bytes & 0x7f);
    (void)sl_buf_append_u8(block, (uint8_t)(value.bytes & 0x7f));
    (void)sl_buf_append(block, value.data, value.bytes & 0x7f);
}

static void frame_request(play *p, world_peer *peer)
{
    const sl_str path = words_path(&p->s, &p->arena);
    const uint8_t flags = script_next(&p->s);
    sl_metadata rows[4];
    const size_t count = words_metadata(&p->s, rows);
    sl_buf block;

    sl_buf_init(&block, &sl_alloc_default, 1 << 16);
    put_row(&block, SL_STR(":method"), SL_STR("POST"));
    put_row(&block, SL_STR(":scheme"), SL_STR("http"));
    put_row(&block, SL_STR(":path"), path);
    put_row(&block, SL_STR(":authority"), SL_STR("h"));
    put_row(&block, SL_STR("content-type"), SL_STR("application/grpc"));
    for (size_t i = 0; i < count; i++)
        put_row(&block, rows[i].key, rows[i].value);
    put_frame(peer, 1, (uint8_t)(4 | (flags & 1)), peer->stream_id,
              (sl_str){ (const char *)sl_buf_data(&block), block.bytes });
    peer->stream_id += 2;
    sl_buf_done(&block);
}

static uint32_t some_stream(play *p, const world_peer *peer)
{
    return 1 + 2 * (script_next(&p->s) % ((peer->stream_id + 1) / 2));
}

/* A message of any method, behind its length, cut into frames that the server accepts. */
static void frame_message(play *p, world_peer *peer)
{
    const uint32_t stream_id = some_stream(p, peer);
    const sl_method *const method = sl_methods[script_next(&p->s) % sl_method_count];
    const uint8_t flags = script_next(&p->s);
    const sl_str message = words_message(&p->s, &p->arena, method, flags >> 4);
    const uint8_t prefix[5] = { (flags & 4) != 0, 0, (uint8_t)(message.bytes >> 16),
                                (uint8_t)(message.bytes >> 8), (uint8_t)message.bytes };
    const size_t max = (flags & 2) != 0 ? 100 : 16 * 1024;

    put_frame(peer, 0, 0, stream_id, (sl_str){ (const char *)prefix, sizeof prefix });
    for (size_t at = 0; at < message.bytes; at += max) {
        const size_t left = message.bytes - at, bytes = left < max ? left : max;

        put_frame(peer, 0, bytes == left ? flags & 1 : 0, stream_id, (sl_str){ message.data + at, bytes });
    }
}

static void frame_small(play *p, world_peer *peer)
{
    static const uint8_t sizes[10] = { 0, 0, 5, 4, 6, 4, 8, 8, 4, 0 };
    const uint8_t type = script_next(&p->s) % 10, flags = script_next(&p->s);
    const uint32_t stream_id = type == 4 || type == 6 || type == 7 ? 0 : some_stream(p, peer);

    put_frame(peer, type, flags, stream_id, script_take(&p->s, sizes[type]));
}

static void frame_any(play *p, world_peer *peer)
{
    switch (script_next(&p->s) % 4) {
    case 0: frame_request(p, peer); break;
    case 1: frame_message(p, peer); break;
    case 2: frame_small(p, peer); break;
    default: {
        const sl_str bytes = script_take(&p->s, script_next(&p->s));

        world_receive(peer, bytes.data, bytes.bytes);
    }
    }
}

/* --- calls --- */

/* A peer with a connection; one is made when there is none. NULL: no memory. */
static world_peer *some_peer(play *p)
{
    const uint8_t choice = script_next(&p->s);
    world_peer *const peer = &p->w.peers[choice % WORLD_PEERS_MAX];

    if (peer->link != NULL)
        return peer;
    if (!world_connect(peer, choice < 0x80))
        return NULL;
    if (peer->client == NULL && choice < 0xf0) {
        world_receive(peer, preface, sizeof preface - 1);
        world_receive(peer, empty_settings, sizeof empty_settings);
    }
    return peer;
}

static world_call *start_call(play *p)
{
    static const uint64_t deadlines_ns[] = { UINT64_MAX, 1000000, 5000000000, 0 };
    world_peer *const peer = some_peer(p);
    const sl_str path = words_path(&p->s, &p->arena);
    sl_metadata rows[4];
    const size_t count = words_metadata(&p->s, rows);
    const uint8_t flags = script_next(&p->s);
    world_call *call;

    if (peer == NULL || peer->client == NULL)
        return NULL;
    call = world_call_start(peer, path, rows, count, deadlines_ns[(flags & 7) < 4 ? 0 : flags & 3]);
    if (call != NULL)
        call->slow = (flags & 8) != 0;
    return call;
}

static world_call *some_call(play *p)
{
    const uint32_t back = script_next(&p->s) % RECENT_CALLS;

    return back < p->w.call_count ? &p->w.calls[p->w.call_count - 1 - back] : NULL;
}

static bool can_send(const world_call *call)
{
    return call != NULL && call->call != NULL && !call->half_closed;
}

static void send_made(play *p, world_call *call)
{
    world_call_send(call, words_message(&p->s, &p->arena, call->method, call->sent_count));
}

/* The whole of most calls, in one instruction: so many messages, and the end. */
static void call_at_once(play *p)
{
    world_call *const call = start_call(p);
    const uint8_t flags = script_next(&p->s);

    if (call == NULL)
        return;
    for (unsigned i = 0; i < 1 + (flags & 3u); i++)
        send_made(p, call);
    if ((flags & 4) == 0)
        world_call_half_close(call);
}

static void act_on_call(play *p)
{
    world_call *const call = some_call(p);
    const uint8_t action = script_next(&p->s) % 6;

    if (call == NULL || call->call == NULL)
        return;
    switch (action) {
    case 0: sl_call_cancel(call->call); break;
    case 1: call->slow = true; break;
    case 2: world_call_read_on(call); break;
    case 3:
        if (can_send(call))
            world_call_half_close(call);
        break;
    case 4:
        if (can_send(call))
            world_call_send(call, script_take(&p->s, script_next(&p->s)));
        break;
    default:
        if (can_send(call))
            send_made(p, call);
        break;
    }
}

/* --- everything else --- */

static void act_on_peer(play *p)
{
    world_peer *const peer = some_peer(p);
    const uint8_t action = script_next(&p->s) % 6;

    if (peer == NULL)
        return;
    switch (action) {
    case 0: world_break(peer); break;
    case 1: peer->stuck = true; break;
    case 2:
        peer->stuck = false;
        peer->touched = true;
        break;
    case 3:
        peer->broke_rules = true;
        peer->mangle_at = script_next_u16(&p->s);
        peer->mangle_with = script_next(&p->s);
        break;
    case 4: sl_connection_shutdown(peer->client == NULL ? peer->link->connection : peer->client); break;
    default:
        sl_connection_shutdown(peer->link->connection);
        peer->touched = true;
        break;
    }
}

static void act_on_store(play *p)
{
    static const sl_err errors[] = { SL_ERR_IO, SL_ERR_CORRUPT, SL_ERR_NOMEM };
    slow_store *const store = p->w.store;
    const uint8_t action = script_next(&p->s);

    switch (action % 8) {
    case 0: store->stuck = !store->stuck; break;
    case 1: store->full = !store->full; break;
    case 2: store->no_space = !store->no_space; break;
    case 3: store->agains = action >> 3; break;
    case 4: store->read_err = errors[(action >> 3) % SL_COUNT_OF(errors)]; break;
    case 5: store->one_by_one = !store->one_by_one; break;
    case 6: store->failed = store->failed || action >= 0xf0; break;
    default: slow_store_calm(store); break;
    }
}

static void act_on_server(play *p)
{
    const uint8_t action = script_next(&p->s);

    switch (action % 8) {
    case 0:
    case 1: world_advance(&p->w, UINT64_C(1) << (action >> 3) << (action >> 6) * 4); break;
    case 2: fuzz_passwords_held = true; break;
    case 3:
        fuzz_passwords_held = false;
        p->w.woken = true;
        break;
    case 4: tight_memory_fail(&p->w.memory, script_next(&p->s), 1 + (action >> 3 & 3u)); break;
    case 5: sl_host_stop(p->w.host, "the input stops the server"); break;
    case 6: world_shut_door(&p->w); break;
    default: world_begin_shutdown(&p->w); break;
    }
}

static void step(play *p)
{
    const uint8_t instruction = script_next(&p->s);
    world_peer *peer;

    switch (instruction & 15) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: call_at_once(p); break;
    case 5: (void)start_call(p); break;
    case 6:
    case 7:
    case 8: act_on_call(p); break;
    case 9:
    case 10:
        peer = some_peer(p);
        if (peer != NULL && peer->client == NULL)
            frame_any(p, peer);
        break;
    case 11: act_on_peer(p); break;
    case 12: act_on_store(p); break;
    case 13:
    case 14: act_on_server(p); break;
    default: break;
    }
    if (instruction >= 0x80)
        world_rest(&p->w);
    else if (instruction >= 0x40)
        (void)world_turn(&p->w);
}

static void run_script(play *p)
{
    for (unsigned i = 0; i < STEPS_MAX && p->s.bytes > 0; i++) {
        step(p);
        sl_arena_reset(&p->arena);
    }
}

static void run_raw(play *p, bool framed)
{
    world_peer *const peer = &p->w.peers[0];
    const size_t piece_bytes = 1 + script_next_u16(&p->s) % 4096;

    (void)world_connect(peer, false);
    if (framed) {
        world_receive(peer, preface, sizeof preface - 1);
        world_receive(peer, empty_settings, sizeof empty_settings);
    }
    while (p->s.bytes > 0 && peer->link != NULL) {
        const sl_str piece = script_take(&p->s, piece_bytes);

        world_receive(peer, piece.data, piece.bytes);
        world_rest(&p->w);
    }
}

/* Half of all inputs end in peace, and then nobody may have been forgotten; the others end in the middle of everything. */
static void end_in_peace(play *p, bool stop)
{
    world_calm(&p->w);
    world_check_owed(&p->w);
    if (!stop)
        return;
    sl_host_stop(p->w.host, "the input is over");
    world_shut_door(&p->w);
    world_calm(&p->w);
    world_check_owed(&p->w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    static play p;
    const uint8_t mode = data_bytes > 0 ? data[0] : 0, kind = data_bytes > 1 ? data[1] : 0;

    p.s = (script){ data, data_bytes };
    (void)script_next_u16(&p.s);
    sl_arena_init(&p.arena, &sl_alloc_default, (sl_arena_sizes){ ARENA_CHUNK_BYTES, ARENA_BYTES_MAX });
    world_open(&p.w, &(world_wishes){ .insecure = (kind & 1) != 0,
                                      .anonymous = (kind & 2) != 0,
                                      .has_users = (kind & 4) != 0,
                                      .small_limits = (kind & 8) != 0,
                                      .keeps_spares = (kind & 16) != 0 });
    if ((kind & 32) == 0)
        world_rest(&p.w); /* else the first calls come before the users are read */
    if (mode % 8 <= MODE_FRAMED)
        run_raw(&p, mode % 8 == MODE_FRAMED);
    else
        run_script(&p);
    if ((kind & 64) == 0)
        end_in_peace(&p, (kind & 128) != 0);
    world_close(&p.w);
    sl_arena_done(&p.arena);
    return 0;
}
