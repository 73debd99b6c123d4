/* tests/unit/net/certificate.h — certificates made for one test, in files of a folder that goes with it. */
#ifndef SL_TESTS_UNIT_NET_CERTIFICATE_H
#define SL_TESTS_UNIT_NET_CERTIFICATE_H

typedef struct papers {
    char folder[64];
    char certificate[96], key[96]; /* names of the files */
} papers;

/* Makes a folder with a certificate that signs itself, for `name` ("localhost", or "IP:127.0.0.1"), good from now
 * until seconds_left from now. */
void papers_init(papers *p, const char *name, long seconds_left);

/* Another certificate into the same files. */
void papers_renew(papers *p, const char *name, long seconds_left);

/* Other content into one of the files. */
void papers_spoil(const char *file, const char *content);

void papers_done(papers *p);

#endif
