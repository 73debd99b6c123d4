/* net/tls.c — contexts: our certificate, whom we trust, which protocols we speak.
 *
 * A reload makes a whole new context and swaps it in when everything about it is right. Sessions hold their own
 * reference to the context that they began with, so they do not notice. */
#include "base/cleanup.h"
#include "net/inside.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PEM_BYTES_MAX = 1024 * 1024 /* of one file; a long chain has some 20 KiB */
};

static const unsigned char H2[] = { 2, 'h', '2' };
static const unsigned char H2_AND_HTTP1[] = { 2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1' };
static const unsigned char HTTP1[] = { 8, 'h', 't', 't', 'p', '/', '1', '.', '1' };

void sl_tls_explain(sl_text *text)
{
    const unsigned long first = ERR_get_error();
    const char *reason = first == 0 ? NULL : ERR_reason_error_string(first);

    if (first != 0 && ERR_SYSTEM_ERROR(first))
        reason = strerrordesc_np(ERR_GET_REASON(first));
    sl_text_add(text, reason == NULL ? "TLS gives no reason" : reason);
    ERR_clear_error();
}

/* "<what> '<file>': <why>"; without a reason of ours it is OpenSSL's. */
static sl_err complain_that(sl_text *problem, const char *what, const char *file, const char *why)
{
    if (problem != NULL) {
        sl_text_add(problem, what);
        sl_text_add(problem, " '");
        sl_text_add(problem, file);
        sl_text_add(problem, "': ");
        if (why == NULL)
            sl_tls_explain(problem);
        else
            sl_text_add(problem, why);
    }
    ERR_clear_error();
    return SL_ERR_INVALID;
}

static sl_err complain(sl_text *problem, const char *what, const char *file)
{
    return complain_that(problem, what, file, NULL);
}

static SSL_CTX *make_context(const SSL_METHOD *method)
{
    SSL_CTX *context = SSL_CTX_new(method);

    if (context == NULL)
        return NULL;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
    /* HTTP/2 forbids the other kinds of TLS 1.2, and there is no reason to speak them without HTTP/2. */
    (void)SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); /* an idle connection does without 34 KiB */
    return context;
}

/* --- servers --- */

/* `ours`, in the order of what we like more, must be static: what is chosen points into it. */
static int choose(const unsigned char **ret_chosen, unsigned char *ret_bytes, const unsigned char *offered,
                  unsigned offered_bytes, const unsigned char *ours, unsigned our_bytes)
{
    unsigned char *chosen = NULL;

    if (SSL_select_next_proto(&chosen, ret_bytes, ours, our_bytes, offered, offered_bytes) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_chosen = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int choose_h2(SSL *ssl, const unsigned char **ret_chosen, unsigned char *ret_bytes,
                     const unsigned char *offered, unsigned offered_bytes, void *ctx)
{
    (void)ssl;
    (void)ctx;
    return choose(ret_chosen, ret_bytes, offered, offered_bytes, H2, sizeof H2);
}

static int choose_any(SSL *ssl, const unsigned char **ret_chosen, unsigned char *ret_bytes,
                      const unsigned char *offered, unsigned offered_bytes, void *ctx)
{
    (void)ssl;
    (void)ctx;
    return choose(ret_chosen, ret_bytes, offered, offered_bytes, H2_AND_HTTP1, sizeof H2_AND_HTTP1);
}

/* The choice above is not asked when a client offers nothing, so that is looked at here. */
static int require_alpn(SSL *ssl, int *ret_alert, void *ctx)
{
    const unsigned char *extension;
    size_t bytes;

    (void)ctx;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &extension,
                                  &bytes))
        return SSL_CLIENT_HELLO_SUCCESS;
    *ret_alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;
}

/* Without this OpenSSL would ask for a passphrase on the terminal, and the server would wait for ever. */
static int no_passphrase(char *into, int capacity, int is_write, void *ctx)
{
    (void)into;
    (void)capacity;
    (void)is_write;
    (void)ctx;
    return -1;
}

/* What is wrong with the file; NULL: it can be read, and reading it ends. A reload runs between two turns of the server, and
 * something that is no file (a pipe that nobody writes to) would stop all of them. */
static const char *file_problem(int fd)
{
    struct stat about;

    if (fd < 0 || fstat(fd, &about) != 0)
        return strerrordesc_np(errno);
    if (!S_ISREG(about.st_mode))
        return "it is no regular file";
    return about.st_size > PEM_BYTES_MAX ? "it is larger than 1 MiB" : NULL;
}

/* NULL, and the problem is told: `what` is missing. */
static BIO *open_pem(const char *file, const char *what, sl_text *problem)
{
    const int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const char *const why = file_problem(fd);
    FILE *const stream = why == NULL ? fdopen(fd, "r") : NULL;
    BIO *const bio = stream == NULL ? NULL : BIO_new_fp(stream, BIO_CLOSE);

    if (bio != NULL)
        return bio;
    if (stream != NULL)
        fclose(stream);
    else if (fd >= 0)
        close(fd);
    (void)complain_that(problem, what, file, why == NULL ? "out of memory" : why);
    return NULL;
}

/* The certificates behind the first one. At the end of the file there is no further beginning, and that is the only
 * mistake that is none. */
static bool load_chain(SSL_CTX *context, BIO *bio)
{
    X509 *issuer;

    while ((issuer = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)) != NULL) {
        if (SSL_CTX_add0_chain_cert(context, issuer) == 1)
            continue;
        X509_free(issuer);
        return false;
    }
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return false;
    ERR_clear_error();
    return true;
}

static sl_err load_certificate(SSL_CTX *context, const char *file, sl_text *problem)
{
    static const char missing[] = "no certificate could be read from";
    BIO *const bio = open_pem(file, missing, problem);
    X509 *certificate;
    bool loaded;

    if (bio == NULL)
        return SL_ERR_INVALID;
    certificate = PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL);
    loaded =
        certificate != NULL && SSL_CTX_use_certificate(context, certificate) == 1 && load_chain(context, bio);
    X509_free(certificate); /* the context has its own reference */
    BIO_free(bio);
    return loaded ? SL_OK : complain(problem, missing, file);
}

static sl_err load_key(SSL_CTX *context, const char *file, sl_text *problem)
{
    static const char missing[] = "no private key for the certificate could be read from";
    BIO *const bio = open_pem(file, missing, problem);
    EVP_PKEY *key;
    bool loaded;

    if (bio == NULL)
        return SL_ERR_INVALID;
    key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    loaded = key != NULL && SSL_CTX_use_PrivateKey(context, key) == 1;
    EVP_PKEY_free(key);
    BIO_free(bio);
    return loaded ? SL_OK : complain(problem, missing, file);
}

static sl_err load_files(SSL_CTX *context, const sl_tls *tls, sl_text *problem)
{
    sl_err err;

    ERR_clear_error();
    err = load_certificate(context, tls->certificate_file, problem);
    if (err == SL_OK)
        err = load_key(context, tls->key_file, problem);
    if (err == SL_OK && SSL_CTX_check_private_key(context) != 1)
        err = complain(problem, "the certificate does not belong to the key in", tls->key_file);
    return err;
}

sl_err sl_tls_reload(sl_tls *tls, sl_text *problem)
{
    SSL_CTX *context = make_context(TLS_server_method());
    sl_err err;

    assert(tls->is_server);
    if (context == NULL)
        return SL_ERR_NOMEM;
    err = load_files(context, tls, problem);
    if (err != SL_OK) {
        SSL_CTX_free(context);
        return err;
    }
    SSL_CTX_set_alpn_select_cb(context, tls->http1_allowed ? choose_any : choose_h2, NULL);
    if (tls->alpn_required)
        SSL_CTX_set_client_hello_cb(context, require_alpn, NULL);
    SSL_CTX_free(tls->context);
    tls->context = context;
    return SL_OK;
}

static char *copy_text(const sl_alloc *alloc, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = sl_alloc_take(alloc, bytes);

    return copy == NULL ? NULL : memcpy(copy, text, bytes);
}

static void give_text(const sl_alloc *alloc, char *text)
{
    if (text != NULL)
        sl_alloc_give(alloc, text, strlen(text) + 1);
}

void sl_tls_free(sl_tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    give_text(tls->alloc, tls->certificate_file);
    give_text(tls->alloc, tls->key_file);
    sl_alloc_give(tls->alloc, tls, sizeof *tls);
}

static sl_tls *make(const sl_alloc *alloc, bool is_server)
{
    const sl_alloc *from = alloc == NULL ? &sl_alloc_default : alloc;
    sl_tls *tls = sl_alloc_take(from, sizeof *tls);

    if (tls != NULL)
        *tls = (sl_tls){ .alloc = from, .is_server = is_server };
    return tls;
}

sl_err sl_tls_server_new(const sl_alloc *alloc, const sl_tls_server_options *options, sl_text *problem,
                         sl_tls **ret_tls)
{
    sl_err err = SL_ERR_NOMEM;
    sl_tls *tls = make(alloc, true);

    if (tls == NULL)
        return err;
    tls->http1_allowed = options->http1_allowed;
    tls->alpn_required = options->alpn_required;
    tls->certificate_file = copy_text(tls->alloc, options->certificate_file);
    tls->key_file = copy_text(tls->alloc, options->key_file);
    if (tls->certificate_file != NULL && tls->key_file != NULL)
        err = sl_tls_reload(tls, problem);
    if (err == SL_OK)
        *ret_tls = SL_TAKE_PTR(tls);
    sl_tls_free(tls);
    return err;
}

/* --- clients --- */

static sl_err set_trust(SSL_CTX *context, const sl_tls_client_options *options, sl_text *problem)
{
    SSL_CTX_set_verify(context, options->unverified ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (options->unverified)
        return SL_OK;
    if (options->ca_file == NULL)
        return SSL_CTX_set_default_verify_paths(context) == 1
                   ? SL_OK
                   : complain(problem, "no trusted certificates could be read from", "the system");
    if (SSL_CTX_load_verify_locations(context, options->ca_file, NULL) == 1)
        return SL_OK;
    return complain(problem, "no trusted certificates could be read from", options->ca_file);
}

sl_err sl_tls_client_new(const sl_alloc *alloc, const sl_tls_client_options *options, sl_text *problem,
                         sl_tls **ret_tls)
{
    sl_err err = SL_ERR_NOMEM;
    sl_tls *tls = make(alloc, false);

    if (tls == NULL)
        return err;
    tls->context = make_context(TLS_client_method());
    if (tls->context != NULL)
        err = set_trust(tls->context, options, problem);
    if (err == SL_OK && SSL_CTX_set_alpn_protos(tls->context, options->http1_only ? HTTP1 : H2,
                                                options->http1_only ? sizeof HTTP1 : sizeof H2) != 0)
        err = SL_ERR_NOMEM; /* 0 is its success */
    if (err == SL_OK)
        *ret_tls = SL_TAKE_PTR(tls);
    sl_tls_free(tls);
    return err;
}
