/* net/address.c — socket addresses as texts and back; IPv4 and IPv6 look alike from above. */
#include "net/inside.h"

#include <arpa/inet.h>
#include <string.h>

/* A zone after a % is understood too (fe80::1%eth0), which inet_pton() does not do. */
bool sl_address_parse(const char *host, uint16_t port, struct sockaddr_storage *ret_address)
{
    struct sockaddr_storage address = { 0 };

    if (uv_ip4_addr(host, port, (struct sockaddr_in *)&address) != 0 &&
        uv_ip6_addr(host, port, (struct sockaddr_in6 *)&address) != 0)
        return false;
    *ret_address = address;
    return true;
}

void sl_address_set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons(port);
}

uint16_t sl_address_port(const struct sockaddr_storage *address)
{
    return ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                                : ((const struct sockaddr_in *)address)->sin_port);
}

socklen_t sl_address_bytes(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* An IPv4 peer of an IPv6 listener is shown as what it is, so that a log has one name for one machine. */
static bool is_mapped(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 &&
           IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

void sl_address_text(const struct sockaddr_storage *address, char *into, size_t capacity)
{
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    char host[INET6_ADDRSTRLEN] = "?";
    const bool bracketed = address->ss_family == AF_INET6 && !is_mapped(address);
    sl_text text;

    if (bracketed)
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
    else if (is_mapped(address))
        inet_ntop(AF_INET, six->sin6_addr.s6_addr + 12, host, sizeof host);
    else
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
    sl_text_init(&text, into, capacity);
    sl_text_add(&text, bracketed ? "[" : "");
    sl_text_add(&text, host);
    sl_text_add(&text, bracketed ? "]:" : ":");
    sl_text_add_u64(&text, sl_address_port(address));
}
