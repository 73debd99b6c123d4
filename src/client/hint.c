/* client/hint.c — what can be done about a connection that did not come about, or that brought nothing. */
#include "client/client.h"

#include "base/str.h"

typedef struct hint {
    const char *before, *behind; /* what names the address stands between them; behind NULL: nothing does */
} hint;

static hint hint_about_socket(sl_net_end end)
{
    switch (end) {
    case SL_NET_END_REFUSED: return (hint){ ". Is the server running?", NULL };
    case SL_NET_END_NAME_UNKNOWN: return (hint){ ". Is the name in ", " right?" };
    case SL_NET_END_CONNECT_TIMEOUT:
    case SL_NET_END_UNREACHABLE:
        return (hint){ ". Is the address in ", " right, and does a firewall allow it?" };
    case SL_NET_END_CERTIFICATE:
        return (hint){ ". Name the file of the authority that signed it with --ca FILE", NULL };
    case SL_NET_END_CERTIFICATE_NAME:
        return (hint){ ". Use a name in ", " that is in the certificate, or have one made for this name" };
    case SL_NET_END_HANDSHAKE_FAILED:
    case SL_NET_END_HANDSHAKE_TIMEOUT:
    case SL_NET_END_TLS_BROKEN:
        return (hint){ ". Perhaps the server does not use TLS: then add ?tls=false to ", "" };
    case SL_NET_END_NONE:
    case SL_NET_END_CLOSED:
    case SL_NET_END_PEER_CLOSED:
    case SL_NET_END_RESET:
    case SL_NET_END_PEER_GONE:
    case SL_NET_END_STALLED:
    case SL_NET_END_CONNECTIONS_FULL:
    case SL_NET_END_HANDSHAKES_FULL:
    case SL_NET_END_TLS_CUT:
    case SL_NET_END_OPEN_FILES:
    case SL_NET_END_NOMEM:
    case SL_NET_END_SYSTEM:
    case SL_NET_END_COUNT_: break;
    }
    return (hint){ NULL, NULL };
}

static void add(sl_text *text, const char *before, const char *where, const char *behind)
{
    sl_text_add(text, before);
    sl_text_add(text, behind == NULL ? "" : where);
    sl_text_add(text, behind == NULL ? "" : behind);
}

void sl_client_add_hint(const sl_client_end *end, const sl_client_place *place, bool tls, sl_text *text)
{
    const hint about_socket = hint_about_socket(end->net);

    if (about_socket.before != NULL)
        add(text, about_socket.before, place->option, about_socket.behind);
    else if (end->wire == SL_END_NOT_HTTP2 || end->wire == SL_END_PROTOCOL)
        sl_text_add(text, ". Is this the port for clients? The admin pages have another one");
    else if (end->was_open && !end->has_answered && !tls) {
        add(text, ". Perhaps the server wants TLS: then add ?tls=true to ", place->option, ", as in ");
        sl_text_add(text, place->example);
    }
}
