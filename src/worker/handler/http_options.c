/* worker/handler/http_options.c — what people wrote, checked before the first message: a mistake that were found later would cost one. */
#include "base/cleanup.h"
#include "worker/handler/http_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static sl_err refuse(sl_text *problem, const char *sentence)
{
    sl_text_add(problem, sentence);
    return SL_ERR_INVALID;
}

static char *copy(const char *text)
{
    char *const to = sl_alloc_take(&sl_alloc_default, strlen(text) + 1);

    if (to != NULL)
        strcpy(to, text);
    return to;
}

/* --- the method --- */

static sl_err read_method(sl_http *http, const char *method, sl_text *problem)
{
    static const char *const methods[] = { "POST", "PUT", "PATCH" };

    for (size_t i = 0; i < SL_COUNT_OF(methods); i++) {
        if (method == NULL || strcmp(method, methods[i]) == 0) {
            http->method = methods[i];
            return SL_OK;
        }
    }
    return refuse(problem, "the method of the requests must be POST, PUT or PATCH: others carry no message");
}

/* --- the address --- */

static bool is_web(CURLU *parts)
{
    char *scheme = NULL;
    bool is_known;

    if (curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK)
        return false;
    is_known = strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0;
    curl_free(scheme);
    return is_known;
}

/* The user, the password and the query may be secrets; this is shown in reasons that end in logs and dead letters. */
static sl_err write_target(sl_http *http, CURLU *parts)
{
    static const CURLUPart secrets[] = { CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                         CURLUPART_QUERY, CURLUPART_FRAGMENT };
    char *shown = NULL;
    sl_text text;

    for (size_t i = 0; i < SL_COUNT_OF(secrets); i++)
        (void)curl_url_set(parts, secrets[i], NULL, 0);
    if (curl_url_get(parts, CURLUPART_URL, &shown, 0) != CURLUE_OK)
        return SL_ERR_NOMEM;
    sl_text_init(&text, http->target, sizeof http->target);
    sl_text_add(&text, http->method);
    sl_text_add_char(&text, ' ');
    sl_text_add(&text, shown);
    curl_free(shown);
    return SL_OK;
}

static sl_err read_parts(sl_http *http, CURLU *parts, const char *url, sl_text *problem)
{
    const CURLUcode code = curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);

    if (code == CURLUE_OUT_OF_MEMORY)
        return SL_ERR_NOMEM;
    if (code != CURLUE_OK) {
        sl_text_add(problem, "the address of the web service cannot be used: ");
        return refuse(problem, curl_url_strerror(code));
    }
    if (!is_web(parts))
        return refuse(problem, "the address of a web service must begin with http:// or https://");
    return write_target(http, parts);
}

static sl_err read_url(sl_http *http, const char *url, sl_text *problem)
{
    CURLU *const parts = curl_url();
    sl_err err;

    if (parts == NULL)
        return SL_ERR_NOMEM;
    err = read_parts(http, parts, url, problem);
    curl_url_cleanup(parts);
    if (err != SL_OK)
        return err;
    http->url = copy(url);
    return http->url == NULL ? SL_ERR_NOMEM : SL_OK;
}

/* --- headers --- */

static bool is_token(sl_str text)
{
    static const char allowed[] =
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] == '\0' || strchr(allowed, text.data[i]) == NULL)
            return false;
    return text.bytes > 0;
}

static bool is_value(sl_str text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if ((text.data[i] >= 0 && text.data[i] < 0x20 && text.data[i] != '\t') || text.data[i] == 0x7f)
            return false;
    return text.bytes > 0;
}

static bool is_named(sl_str name, const char *wanted)
{
    return name.bytes == strlen(wanted) && strncasecmp(name.data, wanted, name.bytes) == 0;
}

/* Those that say where the request ends, and those that say which message it is. */
static bool is_ours(sl_str name)
{
    return is_named(name, "Content-Length") || is_named(name, "Transfer-Encoding") ||
           is_named(name, "Idempotency-Key") ||
           (name.bytes >= 7 && strncasecmp(name.data, "Sluice-", 7) == 0);
}

static sl_err add_constant(sl_http *http, const char *header)
{
    struct curl_slist *const longer = curl_slist_append(http->constant_headers, header);

    if (longer == NULL)
        return SL_ERR_NOMEM;
    http->constant_headers = longer;
    return SL_OK;
}

static sl_err read_header(sl_http *http, const char *header, sl_text *problem)
{
    sl_str name, value;

    if (!sl_str_cut(sl_str_from(header), ':', &name, &value) || !is_token(name) ||
        !is_value(sl_str_trim(value)))
        return refuse(problem, "a header of the requests must be one line like 'Name: value'");
    if (is_ours(name))
        return refuse(problem,
                      "Content-Length, Transfer-Encoding, Idempotency-Key and names with Sluice- are set for "
                      "each message and cannot be given as headers of the requests");
    http->has_content_type |= is_named(name, "Content-Type");
    return add_constant(http, header);
}

static sl_err read_headers(sl_http *http, const sl_http_options *options, sl_text *problem)
{
    /* With "Expect: 100-continue" curl would wait a second for the many servers that do not know it. */
    sl_err err = add_constant(http, "Expect:");

    if (options->header_count > SL_HTTP_EXTRA_HEADERS_MAX)
        return refuse(problem, "there are more than 64 headers of the requests");
    for (size_t i = 0; i < options->header_count && err == SL_OK; i++)
        err = read_header(http, options->headers[i], problem);
    return err;
}

/* --- whom to trust --- */

static sl_err read_ca_file(sl_http *http, const char *path, sl_text *problem)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        sl_text_add(problem, "the file of certificates to be trusted, ");
        sl_text_add(problem, path);
        sl_text_add(problem, ", cannot be read: ");
        return refuse(problem, strerror(errno));
    }
    close(fd);
    http->ca_file = copy(path);
    return http->ca_file == NULL ? SL_ERR_NOMEM : SL_OK;
}

sl_err sl_http_read_options(sl_http *http, const sl_http_options *options, sl_text *problem)
{
    sl_err err = read_method(http, options->method, problem);

    http->slots = options->slots;
    http->insecure = options->insecure;
    http->timeout_ns = options->timeout_ns;
    http->connect_timeout_ns =
        options->connect_timeout_ns == 0 ? SL_HTTP_CONNECT_TIMEOUT_NS : options->connect_timeout_ns;
    if (err == SL_OK)
        err = read_url(http, options->url, problem);
    if (err == SL_OK)
        err = read_headers(http, options, problem);
    if (err == SL_OK && options->ca_file != NULL)
        err = read_ca_file(http, options->ca_file, problem);
    if (err == SL_ERR_NOMEM)
        sl_text_add(problem, "there is not enough memory for the requests");
    return err;
}

static void give_text(char *text)
{
    if (text != NULL)
        sl_alloc_give(&sl_alloc_default, text, strlen(text) + 1);
}

void sl_http_forget_options(sl_http *http)
{
    curl_slist_free_all(http->constant_headers);
    give_text(http->url);
    give_text(http->ca_file);
}

sl_err sl_http_options_check(const sl_http_options *options, sl_text *problem)
{
    sl_http unused = { .slots = 0 };
    const sl_err err = sl_http_read_options(&unused, options, problem);

    sl_http_forget_options(&unused);
    return err;
}
