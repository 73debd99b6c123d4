/* worker/source/address.c — see worker/source_address.h. */
#include "worker/source_address.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <string.h>
#include <strings.h>

#define KINDS                                                                                                \
    "a source is sluice://HOST:PORT/STREAM/GROUP, the same with kurrentdb://, kurrent://, kdb:// or "        \
    "esdb://, schedule:WHEN or memory:SETTINGS"

enum {
    TYPED_BYTES_MAX = 80 /* of an address that is shown as it was typed */
};

static sl_err refuse(sl_text *problem, const char *sentence)
{
    sl_text_add(problem, sentence);
    return SL_ERR_INVALID;
}

/* --- STREAM and GROUP --- */

typedef struct part {
    const char *what;
    sl_str text;
    char *into;
    size_t capacity;
} part;

static sl_err say(sl_text *problem, const part *p, const char *sentence)
{
    sl_text_add(problem, p->what);
    return refuse(problem, sentence);
}

static sl_err decode(const part *p, sl_text *problem)
{
    const sl_err err = sl_client_address_decode(p->what, p->text, problem, p->into, p->capacity);

    if (err != SL_OK)
        return err;
    if (p->into[0] == '\0')
        return say(problem, p, " is missing: a source is sluice://HOST:PORT/STREAM/GROUP");
    if (!sl_utf8_valid(sl_str_from(p->into)))
        return say(problem, p, " is not UTF-8");
    return SL_OK;
}

static sl_err take_path(sl_str path, sl_text *problem, sl_source_address *into)
{
    sl_str stream = path, group = { 0 };
    sl_err err;

    (void)sl_str_cut(path, '/', &stream, &group);
    if (sl_str_find(group, '/') != group.bytes)
        return refuse(problem, "an address of a source has two parts behind its host, /STREAM/GROUP; a / in "
                               "one of them or in a password is written %2F");
    err = decode(&(part){ "the stream", stream, into->stream, sizeof into->stream }, problem);
    if (err != SL_OK)
        return err;
    return decode(&(part){ "the group", group, into->group, sizeof into->group }, problem);
}

/* --- the server --- */

static sl_err check_server(const sl_text *server, sl_text *problem)
{
    sl_client_address address;
    const sl_err err = sl_client_address_parse(sl_text_str(server), problem, &address);

    explicit_bzero(&address, sizeof address);
    return err;
}

/* text: with its scheme, which has `scheme_bytes` with its slashes. */
static sl_err take_consumer(sl_str text, size_t scheme_bytes, sl_text *problem, sl_source_address *into)
{
    sl_str authority = { text.data + scheme_bytes, text.bytes - scheme_bytes }, path = { 0 }, options = { 0 };
    const bool has_options = sl_str_cut(authority, '?', &authority, &options);
    sl_text server;
    sl_err err;

    (void)sl_str_cut(authority, '/', &authority, &path);
    sl_text_init(&server, into->server, sizeof into->server);
    sl_text_add_str(&server, (sl_str){ text.data, scheme_bytes });
    sl_text_add_str(&server, authority);
    if (has_options) {
        sl_text_add(&server, "?");
        sl_text_add_str(&server, options);
    }
    if (server.cut) {
        sl_text_add(problem, "the address is too long");
        return SL_ERR_TOO_LARGE;
    }
    err = check_server(&server, problem);
    return err == SL_OK ? take_path(path, problem, into) : err;
}

/* --- which --- */

static bool begins_with(sl_str text, const char *word)
{
    const size_t bytes = strlen(word);

    return text.bytes >= bytes && strncasecmp(text.data, word, bytes) == 0;
}

static bool take_rest(sl_str text, const char *word, sl_source_kind kind, sl_source_address *into)
{
    if (!begins_with(text, word))
        return false;
    into->kind = kind;
    into->rest = (sl_str){ text.data + strlen(word), text.bytes - strlen(word) };
    return true;
}

/* What stands before an @ may be a password: of such a text only the scheme is shown. */
static sl_str without_secrets(sl_str text)
{
    const char *const slashes = memmem(text.data, text.bytes, "://", 3);

    if (sl_str_find(text, '@') == text.bytes)
        return text;
    return slashes == NULL ? (sl_str){ 0 } : (sl_str){ text.data, (size_t)(slashes - text.data) + 3 };
}

static sl_err refuse_kind(sl_str text, sl_text *problem)
{
    const bool is_rabbit = begins_with(text, "amqp://") || begins_with(text, "amqps://");
    const sl_str shown = without_secrets(text);
    const size_t bytes = sl_min_u64(shown.bytes, TYPED_BYTES_MAX);

    sl_text_add(problem, "'");
    sl_text_add_str(problem, (sl_str){ shown.data, bytes });
    sl_text_add(problem, bytes < text.bytes ? "...' is no source: " : "' is no source: ");
    sl_text_add(problem, is_rabbit ? "workers do not speak to RabbitMQ yet; " : "");
    return refuse(problem, KINDS);
}

static sl_err parse(sl_str text, sl_text *problem, sl_source_address *into)
{
    static const char *const schemes[] = { "sluice://",       "kurrentdb://",
                                           "kdb://",          "kurrent://",
                                           "esdb://",         "kurrentdb+discover://",
                                           "kdb+discover://", "kurrent+discover://",
                                           "esdb+discover://" };

    if (take_rest(text, "schedule:", SL_SOURCE_KIND_SCHEDULE, into) ||
        take_rest(text, "memory:", SL_SOURCE_KIND_MEMORY, into))
        return SL_OK;
    for (size_t i = 0; i < SL_COUNT_OF(schemes); i++)
        if (begins_with(text, schemes[i]))
            return take_consumer(text, strlen(schemes[i]), problem, into);
    return text.bytes == 0 ? refuse(problem, "the address of the source is empty: " KINDS)
                           : refuse_kind(text, problem);
}

sl_err sl_source_address_parse(sl_str text, sl_text *problem, sl_source_address *ret_address)
{
    sl_source_address address = { 0 };
    const sl_err err = parse(sl_str_trim(text), problem, &address);

    if (err == SL_OK)
        *ret_address = address;
    explicit_bzero(&address, sizeof address);
    return err;
}

sl_err sl_source_address_show(const sl_source_address *address, sl_text *problem, sl_text *text)
{
    sl_client_address server;
    const sl_err err = sl_client_address_parse(sl_str_from(address->server), problem, &server);

    if (err == SL_OK) {
        sl_client_address_show(&server, text);
        sl_text_add_char(text, '/');
        sl_text_add(text, address->stream);
        sl_text_add_char(text, '/');
        sl_text_add(text, address->group);
    }
    explicit_bzero(&server, sizeof server);
    return err;
}
