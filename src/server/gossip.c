/* server/gossip.c — event_store.client.gossip.Gossip: a cluster of one.
 *
 * Clients that were told to discover ask every address they know for the members, choose one and connect to the address that the
 * member gives. So the answer must be an address that works for this client, which only he knows: behind a port that is mapped, a
 * proxy or a name, ours would be wrong. In this order:
 *
 *      1. what the operator said: --advertise-host, "name" or "name:port"
 *      2. what the client itself called us in this connection (:authority of HTTP/2): it got here with it
 *      3. the address that we listen at; 127.0.0.1 where that is "all of them"
 *
 * A call that is open while the server begins to stop hears that the member is shutting down; later ones are refused like all
 * others, and a client that asks several addresses chooses another. */
#include "server/link.h"
#include "server/reply.h"
#include "server/services.h"
#include "wire/server_control.h"

enum {
    REQUEST_BYTES_MAX = 4 * 1024,
    PORT_BYTES_MAX = 5,
};

typedef struct place {
    sl_str address;
    uint32_t port; /* 0: not said */
} place;

/* --- "name", "name:port", "[::1]:port", "::1" --- */

static bool parse_port(sl_str text, uint32_t *ret_port)
{
    uint64_t number = 0;

    if (text.bytes > PORT_BYTES_MAX || sl_str_parse_u64(text, &number) != SL_OK || number == 0 ||
        number > UINT16_MAX)
        return false;
    *ret_port = (uint32_t)number;
    return true;
}

/* Letters of names and addresses; nothing that could end up as something else in a client's URL. */
static bool is_address(sl_str text)
{
    static const char others[] = ".-_:%";
    const bool brackets = text.bytes > 2 && text.data[0] == '[' && text.data[text.bytes - 1] == ']';

    for (size_t i = brackets; i < text.bytes - brackets; i++) {
        const char c = text.data[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == '\0' || strchr(others, c) == NULL))
            return false;
    }
    return text.bytes > 0;
}

/* How many bytes of it are the address; the rest, if any, is ":port". An address of several colons without brackets is IPv6
 * and has no port. */
static size_t address_bytes(sl_str text)
{
    const size_t bracket = sl_str_find(text, ']');
    sl_str before, after;

    if (text.bytes > 0 && text.data[0] == '[')
        return bracket < text.bytes ? bracket + 1 : bracket;
    if (!sl_str_cut(text, ':', &before, &after) || sl_str_find(after, ':') < after.bytes)
        return text.bytes;
    return before.bytes;
}

static bool parse_place(sl_str text, place *ret_place)
{
    const size_t bytes = address_bytes(text);
    place found = { .address = { text.data, bytes } };

    if (!is_address(found.address))
        return false;
    if (bytes < text.bytes &&
        (text.data[bytes] != ':' ||
         !parse_port((sl_str){ text.data + bytes + 1, text.bytes - bytes - 1 }, &found.port)))
        return false;
    *ret_place = found;
    return true;
}

/* --- which one --- */

static place place_of(const sl_request *request)
{
    const sl_server_settings *const settings = request->host->settings;
    place found;

    if (settings->advertise_host != NULL && parse_place(sl_str_from(settings->advertise_host), &found))
        return found;
    if (parse_place(sl_connection_authority(request->link->connection), &found))
        return found;
    if (!sl_address_is_everywhere(sl_str_from(settings->host)) &&
        parse_place(sl_str_from(settings->host), &found))
        return found;
    return (place){ .address = SL_STR("127.0.0.1") };
}

/* Clients put a colon and the port behind it, so an address with colons needs its brackets. */
static sl_err add_brackets(sl_arena *arena, sl_str *address)
{
    char *text;

    if (address->data[0] == '[' || sl_str_find(*address, ':') == address->bytes)
        return SL_OK;
    text = sl_arena_alloc(arena, address->bytes + 2);
    if (text == NULL)
        return SL_ERR_NOMEM;
    text[0] = '[';
    memcpy(text + 1, address->data, address->bytes);
    text[address->bytes + 1] = ']';
    *address = (sl_str){ text, address->bytes + 2 };
    return SL_OK;
}

static void read_members(sl_request *request, sl_str message)
{
    const sl_host *const host = request->host;
    place at = place_of(request);
    sl_str answer;
    sl_err err = add_brackets(&request->arena, &at.address);
    const sl_cluster_member member = {
        .instance = host->instance,
        .now_ticks = sl_clock_wall_ns(host->clock) / SL_WIRE_TICK_NS,
        .state = host->stopping ? SL_MEMBER_SHUTTING_DOWN : SL_MEMBER_LEADER,
        .is_alive = true,
        .address = at.address,
        .port = at.port != 0      ? at.port
                : host->port != 0 ? host->port
                                  : host->settings->port,
    };

    (void)message;
    if (err == SL_OK)
        err = sl_cluster_info_encode(&member, &request->arena, &answer);
    if (err == SL_OK)
        sl_request_answer(request, answer);
    else
        sl_reply_error(request, err);
}

const sl_method sl_method_gossip_read = {
    .service = SL_STR_INIT("event_store.client.gossip.Gossip"),
    .name = SL_STR_INIT("Read"),
    .kind = SL_METHOD_UNARY,
    .who = SL_FOR_ANYONE,
    .message_bytes_max = REQUEST_BYTES_MAX,
    .message = read_members,
};
