/* server/throttle.h — failed log-ins: who fails too often waits.
 *
 * Two things are counted: the pair of user and address, and the address for itself. A user alone is not: whoever
 * knows a name could then lock its owner out from anywhere. Guessing from many addresses is slow all the same,
 * because every guess has to go through the one thread that computes hashes (server/passwords.h), some ten in a
 * second.
 *
 *      pair      5 tries, then the next after 1 s, 2 s, 4 s, 8 s, 16 s, 30 s, 30 s ...
 *      address  32 tries, because many users can share one; then it is shut for as long as a pair would be
 *
 * Behind one address there may be a whole company: a NAT, a proxy, a node full of containers. So a shut address does not
 * shut out the pairs behind it that are not shut themselves:
 *
 *      a pair that was right lately          goes on as if the address were open
 *      all others together                   one try in SL_THROTTLE_SHARED_NS, whoever comes first
 *      who comes too early for that          may be asked for a remembered password: sl_throttle_look()
 *
 * A program that retries an old password shuts its own pair and is then in nobody's way; one that tries many names gets
 * no more tries than the second row gives.
 *
 * A try is counted when it begins and given back when it was right, so a thousand tries at once are no way around.
 * What was refused here is not counted: a program with an old password must not lock out itself for ever. An
 * address is an IPv4 address or the first 64 bits of an IPv6 address: that is what one customer of a provider
 * gets.
 *
 * Pure: the caller brings the time. Only hashes are kept, no names. */
#ifndef SL_SERVER_THROTTLE_H
#define SL_SERVER_THROTTLE_H

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SL_THROTTLE_PAIR_TRIES = 5,
    SL_THROTTLE_ADDRESS_TRIES = 32,
    SL_THROTTLE_ENTRIES_MAX = 8 * 1024, /* then those that failed longest ago are forgotten */
};

#define SL_THROTTLE_DELAY_MIN_NS (UINT64_C(1) * 1000 * 1000 * 1000)
#define SL_THROTTLE_DELAY_MAX_NS (UINT64_C(30) * 1000 * 1000 * 1000)
#define SL_THROTTLE_FORGET_NS    (UINT64_C(15) * 60 * 1000 * 1000 * 1000) /* after the last try */
/* Four tries in a second: a fifth of what the helper thread can do, so four addresses cannot fill its queue. */
#define SL_THROTTLE_SHARED_NS (UINT64_C(250) * 1000 * 1000)

typedef struct sl_throttle_entry {
    sl_map_node by_key;
    sl_list node;       /* throttle->used, longest ago first, or throttle->free */
    uint32_t tries;     /* that were not right, or are not decided */
    uint32_t looks;     /* of a pair, since it was right last: sl_throttle_look() */
    uint64_t last_ns;   /* of the last try */
    uint64_t opens_ns;  /* no try before */
    uint64_t shared_ns; /* of an address that is shut: no try of those that share it before */
    bool is_pair;       /* else an address */
    bool was_right;     /* a pair, lately */
    bool told;          /* a refusal was logged since the door was open last */
} sl_throttle_entry;

typedef struct sl_throttle {
    sl_hash_seed seed;
    sl_map map;
    sl_list used, free;
    size_t fresh_index; /* entries from here on were never used */
    sl_throttle_entry entries[SL_THROTTLE_ENTRIES_MAX];
    sl_map_node *table[SL_THROTTLE_ENTRIES_MAX];
} sl_throttle;

/* Large: half a megabyte, of which only what is used gets touched. */
void sl_throttle_init(sl_throttle *throttle, sl_hash_seed seed);

/* Who tries; made once and handed back when the try is decided, because the same peer may have gone meanwhile. */
typedef struct sl_throttle_key {
    uint64_t pair, address;
} sl_throttle_key;

/* peer: "127.0.0.1:40000" or "[::1]:40000"; the port does not count. */
sl_throttle_key sl_throttle_key_of(const sl_throttle *throttle, sl_str user, sl_str peer);

typedef enum sl_throttle_verdict {
    SL_THROTTLE_GO,    /* and is counted: say later when it was right */
    SL_THROTTLE_WAIT,  /* too often; the first time since the last try, so it is worth a line in the log */
    SL_THROTTLE_AGAIN, /* too often, and that was said before */
} sl_throttle_verdict;

sl_throttle_verdict sl_throttle_try(sl_throttle *throttle, sl_throttle_key key, uint64_t now_ns);

/* After a refusal: may what is remembered be asked at least? Such a question is cheap, but each is a guess as well, so a pair
 * has as many as it has tries. True: it is counted, and when the password was right, sl_throttle_known() must be called. */
bool sl_throttle_look(sl_throttle *throttle, sl_throttle_key key, uint64_t now_ns);
void sl_throttle_known(sl_throttle *throttle, sl_throttle_key key);

/* The password was right: the pair starts anew, and the address gets this one try back, no more: with an account
 * of his own nobody can clear what he did to the others. */
void sl_throttle_right(sl_throttle *throttle, sl_throttle_key key);

/* Nothing was decided (no memory, a full queue): as if it had not been tried. */
void sl_throttle_undone(sl_throttle *throttle, sl_throttle_key key);

/* The part of an address that counts, for tests: "10.0.0.1", or four groups of hexadecimal digits. */
enum {
    SL_THROTTLE_NETWORK_BYTES = 64
};
void sl_throttle_network(sl_str peer, sl_text *network);

#endif
