/* net/session.c — TLS on one connection, between the bytes of the system and those of the owner.
 *
 * OpenSSL does no I/O here. It reads from whatever bytes have just come (ssl_in) and writes into loop->out, through
 * a BIO of our own, so a connection needs no buffers for it and nothing is copied twice. Bytes that the owner does
 * not want yet (it has paused) stay encrypted in `held`, at most one receive long. */
#include "net/inside.h"

#include <assert.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <string.h>

/* --- the BIO --- */

static BIO_METHOD *method;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

static int bio_read(BIO *bio, char *into, int capacity)
{
    sl_socket *socket = BIO_get_data(bio);
    const size_t wanted = capacity < 0 ? 0 : (size_t)capacity;
    const size_t bytes = wanted < socket->ssl_in_bytes ? wanted : socket->ssl_in_bytes;

    BIO_clear_retry_flags(bio);
    if (bytes == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(into, socket->ssl_in, bytes);
    socket->ssl_in += bytes;
    socket->ssl_in_bytes -= bytes;
    return (int)bytes;
}

/* No room is an error and no reason to try again: loop->out is larger than all that OpenSSL writes at once, so it is
 * a peer that makes us answer without end. */
static int bio_write(BIO *bio, const char *data, int bytes)
{
    sl_socket *socket = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (bytes < 0 || (size_t)bytes > SL_OUT_BYTES - socket->ssl_out_bytes)
        return -1;
    memcpy(socket->loop->out + socket->ssl_out_bytes, data, (size_t)bytes);
    socket->ssl_out_bytes += (size_t)bytes;
    return bytes;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static void make_method(void)
{
    BIO_METHOD *made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sluice");

    if (made == NULL)
        return;
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_ctrl(made, bio_control);
    method = made;
}

static bool give_bio(sl_socket *socket)
{
    BIO *bio;

    pthread_once(&method_once, make_method);
    bio = method == NULL ? NULL : BIO_new(method);
    if (bio == NULL)
        return false;
    BIO_set_data(bio, socket);
    BIO_set_init(bio, 1);
    SSL_set_bio(socket->ssl, bio, bio);
    return true;
}

/* --- the handshake --- */

/* A certificate is for a name or for an address; only a name may be told to the server (SNI). */
static bool expect_name(sl_socket *socket)
{
    struct sockaddr_storage unused;
    X509_VERIFY_PARAM *rules = SSL_get0_param(socket->ssl);

    if (sl_address_parse(socket->host, 0, &unused))
        return X509_VERIFY_PARAM_set1_ip_asc(rules, socket->host) == 1;
    SSL_set_hostflags(socket->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(socket->ssl, socket->host) == 1 &&
           SSL_set_tlsext_host_name(socket->ssl, socket->host) == 1;
}

static bool flush(sl_socket *socket)
{
    const size_t bytes = socket->ssl_out_bytes;

    socket->ssl_out_bytes = 0;
    return sl_send_or_keep(socket, socket->loop->out, bytes);
}

/* The alert that OpenSSL has made tells the peer why; whether it still wants to know is its affair. */
static bool fail(sl_socket *socket, sl_net_end end)
{
    char detail[SL_DETAIL_BYTES];
    const long verdict = SSL_get_verify_result(socket->ssl);
    sl_text text;

    sl_text_init(&text, detail, sizeof detail);
    if (socket->state == SL_SOCKET_HANDSHAKE && !SSL_is_server(socket->ssl) && verdict != X509_V_OK) {
        end = verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH
                  ? SL_NET_END_CERTIFICATE_NAME
                  : SL_NET_END_CERTIFICATE;
        sl_text_add(&text, X509_verify_cert_error_string(verdict));
        ERR_clear_error();
    } else {
        sl_tls_explain(&text);
    }
    if (flush(socket))
        sl_socket_fail(socket, end, detail);
    return false;
}

static void opened(sl_socket *socket)
{
    const unsigned char *alpn = NULL;
    unsigned bytes = 0;

    SSL_get0_alpn_selected(socket->ssl, &alpn, &bytes);
    if (bytes > 0 && bytes < sizeof socket->info.alpn)
        memcpy(socket->info.alpn, alpn, bytes);
    socket->info.tls_version = SSL_get_version(socket->ssl);
    socket->state = SL_SOCKET_OPEN;
    sl_socket_opened(socket);
}

static bool step_handshake(sl_socket *socket)
{
    int result;

    ERR_clear_error();
    result = SSL_do_handshake(socket->ssl);
    if (result != 1 && SSL_get_error(socket->ssl, result) != SSL_ERROR_WANT_READ)
        return fail(socket, SL_NET_END_HANDSHAKE_FAILED);
    if (!flush(socket))
        return false;
    if (result == 1)
        opened(socket);
    return socket->state != SL_SOCKET_GONE;
}

bool sl_session_start(sl_socket *socket)
{
    const bool is_server = socket->tls->is_server;

    assert(is_server == (socket->listener != NULL));
    socket->ssl = SSL_new(socket->tls->context);
    if (socket->ssl == NULL || !give_bio(socket) || (!is_server && !expect_name(socket))) {
        ERR_clear_error();
        sl_socket_fail(socket, SL_NET_END_NOMEM, NULL);
        return false;
    }
    socket->tls = NULL; /* from here on the session has all it needs, so the owner may free or reload it */
    if (is_server) {
        SSL_set_accept_state(socket->ssl);
        return true;
    }
    SSL_set_connect_state(socket->ssl);
    return step_handshake(socket);
}

/* --- the rest --- */

/* Decrypts into loop->plain as long as there is something. *ret_bytes: how much; returns what stopped it, or
 * SSL_ERROR_NONE when loop->plain is full. */
static int decrypt(sl_socket *socket, size_t *ret_bytes)
{
    size_t bytes = 0;

    while (bytes < SL_SEND_BYTES_MAX) {
        size_t got = 0;
        ERR_clear_error();
        const int result =
            SSL_read_ex(socket->ssl, socket->loop->plain + bytes, SL_SEND_BYTES_MAX - bytes, &got);
        bytes += got;
        *ret_bytes = bytes;
        if (result != 1)
            return SSL_get_error(socket->ssl, result);
    }
    return SSL_ERROR_NONE;
}

/* True while there may be more for an owner that wants it. */
static bool give_some(sl_socket *socket)
{
    size_t bytes = 0;
    const int stopped_by = decrypt(socket, &bytes);

    if (stopped_by != SSL_ERROR_NONE && stopped_by != SSL_ERROR_WANT_READ &&
        stopped_by != SSL_ERROR_ZERO_RETURN)
        return fail(socket, SL_NET_END_TLS_BROKEN);
    if (!flush(socket))
        return false;
    if (bytes > 0)
        sl_receive_give(socket, socket->loop->plain, bytes);
    if (socket->state != SL_SOCKET_OPEN || socket->paused)
        return false; /* the goodbye that may have been seen is seen again when the owner resumes */
    if (stopped_by == SSL_ERROR_ZERO_RETURN)
        sl_receive_end(socket);
    return stopped_by == SSL_ERROR_NONE;
}

static bool hold_rest(sl_socket *socket)
{
    if (socket->ssl_in_bytes == 0 || socket->state != SL_SOCKET_OPEN || socket->peer_ended)
        return true;
    if (sl_buf_append(&socket->held, socket->ssl_in, socket->ssl_in_bytes) == SL_OK)
        return true;
    sl_socket_fail(socket, SL_NET_END_NOMEM, NULL);
    return false;
}

bool sl_session_receive(sl_socket *socket, const uint8_t *data, size_t bytes)
{
    socket->ssl_in = data;
    socket->ssl_in_bytes = bytes;
    if (socket->state == SL_SOCKET_HANDSHAKE && !step_handshake(socket))
        return false;
    while (socket->state == SL_SOCKET_OPEN && !socket->paused && !socket->peer_ended)
        if (!give_some(socket))
            break;
    if (socket->state == SL_SOCKET_GONE || !hold_rest(socket))
        return false;
    socket->ssl_in = NULL;
    socket->ssl_in_bytes = 0;
    return true;
}

size_t sl_session_encrypt(sl_socket *socket, size_t plain_bytes)
{
    size_t written = 0;
    size_t bytes;

    assert(socket->ssl_out_bytes == 0);
    ERR_clear_error();
    if (SSL_write_ex(socket->ssl, socket->loop->plain, plain_bytes, &written) != 1 ||
        written != plain_bytes) {
        socket->ssl_out_bytes = 0;
        (void)fail(socket, SL_NET_END_TLS_BROKEN);
        return 0;
    }
    bytes = socket->ssl_out_bytes;
    socket->ssl_out_bytes = 0;
    return bytes;
}

size_t sl_session_goodbye(sl_socket *socket)
{
    size_t bytes;

    ERR_clear_error();
    (void)SSL_shutdown(socket->ssl);
    ERR_clear_error();
    bytes = socket->ssl_out_bytes;
    socket->ssl_out_bytes = 0;
    return bytes;
}
