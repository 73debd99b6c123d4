/* server/remembered.h — log-ins that were right, so that the next call costs a short hash instead of a long one.
 *
 * What is kept of a password is a keyed hash of it with its user; the key is made at start and never leaves the
 * process, so a copy of this table is worth nothing without the memory around it. Each belongs to one generation
 * of its user and is nothing any more when the user has changed. It ends after some minutes whatever happens: then
 * the slow hash is asked again.
 *
 * A log-in is kept twice: for itself, and for the connection that it came from. Only the second lets a caller in
 * whatever the throttle says: a stranger at the same address must not be able to shut out a client that is at work, nor
 * use this table to guess at full speed; so questions for the first are counted (server/throttle.h). */
#ifndef SL_SERVER_REMEMBERED_H
#define SL_SERVER_REMEMBERED_H

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SL_REMEMBERED_MAX = 8 * 1024, /* of both kinds; then the oldest are forgotten */
    SL_LOGIN_DIGEST_BYTES = 32,
};

#define SL_REMEMBERED_NS (UINT64_C(5) * 60 * 1000 * 1000 * 1000)

typedef struct sl_login_digest {
    uint8_t bytes[SL_LOGIN_DIGEST_BYTES];
} sl_login_digest;

typedef struct sl_remembered_entry {
    sl_map_node by_digest;
    sl_list node; /* in the order of being added */
    sl_login_digest digest;
    uint64_t generation, ends_ns;
} sl_remembered_entry;

typedef struct sl_remembered {
    uint8_t key[SL_LOGIN_DIGEST_BYTES];
    sl_map map;
    sl_list used;
    size_t used_count;
    sl_remembered_entry entries[SL_REMEMBERED_MAX];
    sl_map_node *table[SL_REMEMBERED_MAX];
} sl_remembered;

/* Large: most of a megabyte, of which only what is used gets touched. sodium_init() must have been called. */
void sl_remembered_init(sl_remembered *remembered);

/* Wipes the key and what was made with it. */
void sl_remembered_done(sl_remembered *remembered);

/* peer: the connection, with its port; empty: wherever it comes from. */
sl_login_digest sl_remembered_digest(const sl_remembered *remembered, sl_str user, sl_str password,
                                     sl_str peer);

/* Until when it counts; 0 when it does not. generation: that the user has now. */
uint64_t sl_remembered_ends_ns(const sl_remembered *remembered, const sl_login_digest *digest,
                               uint64_t generation, uint64_t now_ns);

void sl_remembered_add(sl_remembered *remembered, const sl_login_digest *digest, uint64_t generation,
                       uint64_t ends_ns);

/* In the same time whatever they hold. */
bool sl_login_digest_equal(const sl_login_digest *a, const sl_login_digest *b);

#endif
