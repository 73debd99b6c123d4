/* tests/unit/net/certificate.c — see certificate.h. */
#include "certificate.h"

#include "test.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_extension(X509 *certificate, int kind, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);

    EXPECT(extension != NULL);
    EXPECT_EQ(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static X509 *make(EVP_PKEY *key, const char *name, long seconds_left)
{
    X509 *certificate = X509_new();
    char subject[128];

    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -7200);
    X509_gmtime_adj(X509_getm_notAfter(certificate), seconds_left);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    snprintf(subject, sizeof subject, "%s%s", strchr(name, ':') == NULL ? "DNS:" : "", name);
    add_extension(certificate, NID_subject_alt_name, subject);
    add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
    EXPECT(X509_sign(certificate, key, EVP_sha256()) > 0);
    return certificate;
}

void papers_renew(papers *p, const char *name, long seconds_left)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = make(key, name, seconds_left);
    FILE *file = fopen(p->certificate, "w");

    EXPECT(file != NULL);
    EXPECT_EQ(PEM_write_X509(file, certificate), 1);
    fclose(file);
    file = fopen(p->key, "w");
    EXPECT(file != NULL);
    EXPECT_EQ(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

void papers_init(papers *p, const char *name, long seconds_left)
{
    strcpy(p->folder, P_tmpdir "/sluice-net-XXXXXX");
    EXPECT(mkdtemp(p->folder) != NULL);
    snprintf(p->certificate, sizeof p->certificate, "%s/certificate.pem", p->folder);
    snprintf(p->key, sizeof p->key, "%s/key.pem", p->folder);
    papers_renew(p, name, seconds_left);
}

void papers_spoil(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    EXPECT(file != NULL);
    fputs(content, file);
    fclose(file);
}

void papers_done(papers *p)
{
    unlink(p->certificate);
    unlink(p->key);
    rmdir(p->folder);
}
