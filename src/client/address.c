/* client/address.c — see client/address.h. The text is taken apart from left to right: scheme, what stands before the
 * last @, hosts, options. */
#include "client/address.h"

#include "base/cleanup.h"

#include <assert.h>
#include <strings.h>

enum {
    OPTION_SHOWN_BYTES_MAX = 32 /* the longest that there is has 20 */
};

typedef struct parser {
    sl_text *problem;
    bool hides_options; /* they may be the rest of a password with a ? in it */
    sl_client_address address;
} parser;

static sl_err refuse(parser *p, const char *sentence)
{
    sl_text_add(p->problem, sentence);
    return SL_ERR_INVALID;
}

static bool is_word(sl_str text, const char *word)
{
    return text.bytes == strlen(word) && strncasecmp(text.data, word, text.bytes) == 0;
}

/* --- %XX --- */

/* The byte that the text begins with, or -1; *ret_used: how long it is written. Zero is no byte of a text. */
static int first_byte(sl_str text, size_t *ret_used)
{
    *ret_used = 1;
    if (text.data[0] != '%')
        return text.data[0] == '\0' ? -1 : (unsigned char)text.data[0];
    *ret_used = 3;
    const int byte = sl_str_hex_byte(sl_str_skip(text, 1));
    return byte == 0 ? -1 : byte;
}

sl_err sl_client_address_decode(const char *what, sl_str text, sl_text *problem, char *into, size_t capacity)
{
    size_t used, bytes = 0;

    while (text.bytes > 0) {
        const int byte = first_byte(text, &used);
        if (byte < 0 || bytes + 1 == capacity) {
            sl_text_add(problem, what);
            sl_text_add(problem, byte >= 0
                                     ? " is too long"
                                     : " has a % without two digits behind it, or a zero; a % itself is "
                                       "written %25");
            return byte < 0 ? SL_ERR_INVALID : SL_ERR_TOO_LARGE;
        }
        into[bytes++] = (char)byte;
        text = sl_str_skip(text, used);
    }
    into[bytes] = '\0';
    return SL_OK;
}

static sl_err decode(parser *p, const char *what, sl_str text, char *into, size_t capacity)
{
    return sl_client_address_decode(what, text, p->problem, into, capacity);
}

/* --- scheme --- */

static const struct {
    const char *name;
    bool is_kurrentdb, discovers; /* theirs mean TLS */
} schemes[] = {
    { "sluice", false, false },      { "kurrentdb", true, false },
    { "kdb", true, false },          { "kurrent", true, false },
    { "esdb", true, false },         { "kurrentdb+discover", true, true },
    { "kdb+discover", true, true },  { "kurrent+discover", true, true },
    { "esdb+discover", true, true },
};

/* Where "://" stands, or text.bytes. */
static size_t scheme_bytes(sl_str text)
{
    for (size_t i = 0; i + 3 <= text.bytes; i++) {
        if (memcmp(text.data + i, "://", 3) == 0)
            return i;
    }
    return text.bytes;
}

static sl_err take_scheme(parser *p, sl_str *text)
{
    const size_t bytes = scheme_bytes(*text);
    const sl_str name = { text->data, bytes };

    if (bytes == text->bytes)
        return SL_OK;
    for (size_t i = 0; i < SL_COUNT_OF(schemes); i++) {
        if (!is_word(name, schemes[i].name))
            continue;
        p->address.is_kurrentdb = p->address.tls = schemes[i].is_kurrentdb;
        if (schemes[i].discovers)
            p->address.note = "clusters are not discovered: only the first host of the address is used";
        *text = sl_str_skip(*text, bytes + 3);
        return SL_OK;
    }
    return refuse(p,
                  "an address begins with sluice://, kurrentdb://, kdb://, kurrent:// or esdb://, or is just "
                  "HOST or HOST:PORT");
}

/* --- who --- */

/* Up to the last @: one in a password may have been left as it is. */
static sl_err take_user(parser *p, bool allowed, sl_str *authority)
{
    size_t at = authority->bytes;
    sl_str user, password = { 0 };

    while (at > 0 && authority->data[at - 1] != '@')
        at--;
    if (at == 0)
        return SL_OK;
    if (!allowed)
        return refuse(p, "a user is named only in an address with a scheme: sluice://USER@HOST:PORT");
    user = (sl_str){ authority->data, at - 1 };
    *authority = sl_str_skip(*authority, at);
    p->address.has_password = sl_str_cut(user, ':', &user, &password);
    if (user.bytes == 0)
        return refuse(p, "there is an @ in the address, but no user before it");
    const sl_err err = decode(p, "the user", user, p->address.user, sizeof p->address.user);
    if (err != SL_OK)
        return err;
    return decode(p, "the password", password, p->address.password, sizeof p->address.password);
}

/* --- where --- */

static sl_err take_port(parser *p, sl_str text)
{
    uint64_t port;

    if (sl_str_parse_u64(text, &port) != SL_OK || port == 0 || port > UINT16_MAX)
        return refuse(p, "the port must be a number from 1 to 65535");
    p->address.port = (uint16_t)port;
    return SL_OK;
}

static bool is_host(sl_str host)
{
    for (size_t i = 0; i < host.bytes; i++) {
        const unsigned char c = (unsigned char)host.data[i];
        if (c <= ' ' || c == 0x7f || strchr("/?#@%\\[]\"'<>", c) != NULL)
            return false;
    }
    return host.bytes > 0;
}

static sl_err take_name(parser *p, sl_str host)
{
    if (host.bytes == 0)
        return refuse(p, "the address has no host");
    if (host.bytes > SL_HOST_BYTES_MAX) {
        sl_text_add(p->problem, "the host is too long");
        return SL_ERR_TOO_LARGE;
    }
    if (!is_host(host))
        return refuse(p, "the host has a character in it that no host name or address has");
    memcpy(p->address.host, host.data, host.bytes);
    return SL_OK;
}

/* "[::1]", "[::1]:2113" */
static sl_err take_bracketed(parser *p, sl_str text)
{
    const size_t end = sl_str_find(text, ']');
    sl_str rest;

    if (end == text.bytes)
        return refuse(p, "the address has a [ but no ] behind it");
    rest = sl_str_skip(text, end + 1);
    if (rest.bytes > 0 && rest.data[0] != ':')
        return refuse(p, "behind the ] only :PORT may follow");
    const sl_err err = take_name(p, (sl_str){ text.data + 1, end - 1 });
    return err != SL_OK || rest.bytes == 0 ? err : take_port(p, sl_str_skip(rest, 1));
}

static sl_err take_host(parser *p, sl_str text)
{
    sl_str host = text, port;

    if (text.bytes > 0 && text.data[0] == '[')
        return take_bracketed(p, text);
    if (!sl_str_cut(text, ':', &host, &port))
        return take_name(p, text);
    if (sl_str_find(port, ':') != port.bytes)
        return refuse(p, "an IPv6 address is written in brackets: [::1]:2113");
    const sl_err err = take_name(p, host);
    return err != SL_OK ? err : take_port(p, port);
}

static sl_err take_hosts(parser *p, sl_str text)
{
    sl_str first = text, others;

    if (sl_str_cut(text, ',', &first, &others))
        p->address.note = "only the first host of the address is used: clusters are not followed";
    return take_host(p, first);
}

/* --- options --- */

static sl_err take_bool(parser *p, const char *name, sl_str value, bool *into)
{
    if (!is_word(value, "true") && !is_word(value, "false")) {
        sl_text_add(p->problem, name);
        return refuse(p, " is true or false");
    }
    *into = is_word(value, "true");
    return SL_OK;
}

/* What the official clients understand and what does not matter here: how they wait, retry and discover. */
static bool is_ignored(sl_str name)
{
    static const char *const names[] = { "defaultDeadline",     "keepAliveInterval",   "keepAliveTimeout",
                                         "maxDiscoverAttempts", "discoveryInterval",   "gossipTimeout",
                                         "nodePreference",      "throwOnAppendFailure" };

    for (size_t i = 0; i < SL_COUNT_OF(names); i++) {
        if (is_word(name, names[i]))
            return true;
    }
    return false;
}

static sl_err refuse_option(parser *p, sl_str name)
{
    if (!p->hides_options && name.bytes <= OPTION_SHOWN_BYTES_MAX) {
        sl_text_add(p->problem, "there is no option '");
        sl_text_add_str(p->problem, name);
        sl_text_add(p->problem, "': ");
    }
    return refuse(p, "the options of an address are tls, tlsCAFile, tlsVerifyCert and connectionName");
}

static sl_err take_option(parser *p, sl_str name, sl_str value)
{
    sl_client_address *const address = &p->address;
    bool verify = true;
    sl_err err;

    if (is_word(name, "tls"))
        return take_bool(p, "tls", value, &address->tls);
    if (is_word(name, "tlsCAFile"))
        return decode(p, "tlsCAFile", value, address->ca_file, sizeof address->ca_file);
    if (is_word(name, "connectionName"))
        return decode(p, "connectionName", value, address->connection_name, sizeof address->connection_name);
    if (is_word(name, "tlsVerifyCert")) {
        err = take_bool(p, "tlsVerifyCert", value, &verify);
        address->unverified = !verify;
        return err;
    }
    if (is_word(name, "userCertFile") || is_word(name, "userKeyFile"))
        return refuse(p, "certificates of users are not supported: name a user and a password");
    if (is_ignored(name))
        return SL_OK;
    return refuse_option(p, name);
}

static sl_err take_options(parser *p, sl_str text)
{
    sl_str option, name, value;
    sl_err err = SL_OK;

    while (err == SL_OK && text.bytes > 0) {
        option = text;
        if (!sl_str_cut(option, '&', &option, &text))
            text = (sl_str){ 0 };
        if (!sl_str_cut(option, '=', &name, &value))
            return refuse(p, "behind the ? of an address stand options: ?tls=true&tlsCAFile=ca.pem");
        err = take_option(p, name, value);
    }
    return err;
}

static sl_err parse(parser *p, sl_str text)
{
    const char *const begin = text.data;
    sl_str authority, path, options = { 0 };
    sl_err err = take_scheme(p, &text);

    if (err != SL_OK)
        return err;
    authority = text;
    (void)sl_str_cut(text, '?', &authority, &options);
    if (sl_str_cut(authority, '/', &authority, &path) && path.bytes > 0)
        return refuse(
            p,
            "an address ends with its port or options: there is no path; a / in a password is written %2F");
    p->hides_options = sl_str_find(options, '@') != options.bytes;
    err = take_user(p, text.data != begin, &authority);
    if (err == SL_OK)
        err = take_hosts(p, authority);
    return err == SL_OK ? take_options(p, options) : err;
}

sl_err sl_client_address_parse(sl_str text, sl_text *problem, sl_client_address *ret_address)
{
    parser p = { .problem = problem, .address = { .port = SL_CLIENT_PORT } };
    sl_err err;

    text = sl_str_trim(text);
    if (text.bytes > SL_CLIENT_ADDRESS_BYTES_MAX) {
        sl_text_add(problem, "the address is too long");
        return SL_ERR_TOO_LARGE;
    }
    err = text.bytes == 0 ? refuse(&p, "the address is empty") : parse(&p, text);
    if (err == SL_OK)
        *ret_address = p.address;
    explicit_bzero(&p, sizeof p);
    return err;
}

void sl_client_address_show(const sl_client_address *address, sl_text *text)
{
    const bool brackets = strchr(address->host, ':') != NULL;

    sl_text_add(text, brackets ? "[" : "");
    sl_text_add(text, address->host);
    sl_text_add(text, brackets ? "]:" : ":");
    sl_text_add_u64(text, address->port);
}
