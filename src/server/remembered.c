/* server/remembered.c — a bounded table of digests. All live about equally long, so the oldest goes first. */
#include "server/remembered.h"

#include <sodium.h>
#include <string.h>

void sl_remembered_init(sl_remembered *remembered)
{
    randombytes_buf(remembered->key, sizeof remembered->key);
    sl_map_init(&remembered->map, remembered->table, SL_REMEMBERED_MAX);
    sl_list_init(&remembered->used);
    remembered->used_count = 0;
}

void sl_remembered_done(sl_remembered *remembered)
{
    sodium_memzero(remembered->key, sizeof remembered->key);
    sodium_memzero(remembered->entries, remembered->used_count * sizeof remembered->entries[0]);
}

/* With its length before it, so that no two different triples give the same bytes. */
static void add_part(crypto_generichash_state *state, sl_str part)
{
    const uint64_t bytes = part.bytes;

    crypto_generichash_update(state, (const uint8_t *)&bytes, sizeof bytes);
    if (part.bytes > 0)
        crypto_generichash_update(state, (const uint8_t *)part.data, part.bytes);
}

sl_login_digest sl_remembered_digest(const sl_remembered *remembered, sl_str user, sl_str password,
                                     sl_str peer)
{
    crypto_generichash_state state;
    sl_login_digest digest;

    crypto_generichash_init(&state, remembered->key, sizeof remembered->key, sizeof digest.bytes);
    add_part(&state, user);
    add_part(&state, password);
    add_part(&state, peer);
    crypto_generichash_final(&state, digest.bytes, sizeof digest.bytes);
    sodium_memzero(&state, sizeof state);
    return digest;
}

bool sl_login_digest_equal(const sl_login_digest *a, const sl_login_digest *b)
{
    return sodium_memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* A part of the digest serves as the hash of the map: nobody without the key can choose it. */
static uint64_t hash_of(const sl_login_digest *digest)
{
    uint64_t hash;

    memcpy(&hash, digest->bytes, sizeof hash);
    return hash;
}

static sl_remembered_entry *find(const sl_remembered *remembered, const sl_login_digest *digest)
{
    sl_map_node *node = sl_map_find(&remembered->map, hash_of(digest));

    for (; node != NULL; node = sl_map_next(node)) {
        sl_remembered_entry *const entry = SL_CONTAINER_OF(node, sl_remembered_entry, by_digest);

        if (sl_login_digest_equal(&entry->digest, digest))
            return entry;
    }
    return NULL;
}

uint64_t sl_remembered_ends_ns(const sl_remembered *remembered, const sl_login_digest *digest,
                               uint64_t generation, uint64_t now_ns)
{
    const sl_remembered_entry *const entry = find(remembered, digest);

    if (entry == NULL || entry->generation != generation || now_ns >= entry->ends_ns)
        return 0;
    return entry->ends_ns;
}

/* One that was never used, or the oldest. */
static sl_remembered_entry *take_entry(sl_remembered *remembered)
{
    sl_remembered_entry *oldest;

    if (remembered->used_count < SL_REMEMBERED_MAX)
        return &remembered->entries[remembered->used_count++];
    oldest = SL_CONTAINER_OF(sl_list_first(&remembered->used), sl_remembered_entry, node);
    sl_map_remove(&remembered->map, &oldest->by_digest);
    sl_list_remove(&oldest->node);
    return oldest;
}

void sl_remembered_add(sl_remembered *remembered, const sl_login_digest *digest, uint64_t generation,
                       uint64_t ends_ns)
{
    sl_remembered_entry *entry = find(remembered, digest);

    if (entry == NULL) {
        entry = take_entry(remembered);
        entry->digest = *digest;
        sl_map_insert(&remembered->map, &entry->by_digest, hash_of(digest));
    } else {
        sl_list_remove(&entry->node);
    }
    sl_list_push_back(&remembered->used, &entry->node);
    entry->generation = generation;
    entry->ends_ns = ends_ns;
}
