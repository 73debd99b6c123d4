/* net/reason.c — the table behind reason.h, and the system's error numbers in its words. */
#include "net/reason.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

static const struct {
    const char *name, *text;
} rows[] = {
#define XX(name, text) [SL_NET_END_##name] = { #name, text },
    SL_NET_END_MAP(XX)
#undef XX
};

static_assert(sizeof rows / sizeof rows[0] == SL_NET_END_COUNT_, "one row for each reason");

const char *sl_net_end_name(sl_net_end end)
{
    return (unsigned)end < SL_NET_END_COUNT_ ? rows[end].name : "UNKNOWN";
}

const char *sl_net_end_text(sl_net_end end)
{
    return (unsigned)end < SL_NET_END_COUNT_ ? rows[end].text : "a reason that this version does not know";
}

sl_net_end sl_net_end_from_errno(int number)
{
    static const struct {
        int number;
        sl_net_end end;
    } known[] = {
        { ECONNRESET, SL_NET_END_RESET },
        { EPIPE, SL_NET_END_RESET },
        { ETIMEDOUT, SL_NET_END_PEER_GONE },
        { ECONNREFUSED, SL_NET_END_REFUSED },
        { EHOSTUNREACH, SL_NET_END_UNREACHABLE },
        { ENETUNREACH, SL_NET_END_UNREACHABLE },
        { ENETDOWN, SL_NET_END_UNREACHABLE },
        { EADDRNOTAVAIL, SL_NET_END_UNREACHABLE },
        { EMFILE, SL_NET_END_OPEN_FILES },
        { ENFILE, SL_NET_END_OPEN_FILES },
        { ENOMEM, SL_NET_END_NOMEM },
        { ENOBUFS, SL_NET_END_NOMEM },
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].number == number)
            return known[i].end;
    return SL_NET_END_SYSTEM;
}
