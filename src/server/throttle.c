/* server/throttle.c — two bounded tables in one: pairs and addresses, by keyed hash, the oldest forgotten first.
 *
 * Who floods with many names from one address cannot push that address out of the table: each of its tries makes it the
 * newest again. */
#include "server/throttle.h"

#include <assert.h>

/* --- addresses --- */

enum {
    IPV6_GROUPS = 8,
    IPV6_NETWORK_GROUPS = 4,
    GROUP_DIGITS_MAX = 4,
};

/* Without port and brackets. */
static sl_str host_of(sl_str peer)
{
    size_t end = peer.bytes;

    if (peer.bytes > 0 && peer.data[0] == '[')
        return (sl_str){ peer.data + 1, sl_str_find(peer, ']') - 1 };
    while (end > 0 && peer.data[end - 1] != ':')
        end--;
    return (sl_str){ peer.data, end == 0 ? peer.bytes : end - 1 };
}

typedef struct ipv6_groups {
    sl_str groups[IPV6_GROUPS];
    size_t count;
    size_t gap; /* groups before the "::"; IPV6_GROUPS + 1: there is none */
} ipv6_groups;

/* False when it is no such address; zones are cut off. */
static bool split_groups(sl_str host, ipv6_groups *split)
{
    sl_str rest = { host.data, sl_str_find(host, '%') };

    *split = (ipv6_groups){ .gap = IPV6_GROUPS + 1 };
    while (rest.bytes > 0) {
        const size_t bytes = sl_str_find(rest, ':');

        if (bytes > GROUP_DIGITS_MAX || (bytes > 0 && split->count == IPV6_GROUPS))
            return false;
        if (bytes > 0)
            split->groups[split->count++] = (sl_str){ rest.data, bytes };
        else
            split->gap = split->count;
        if (bytes == rest.bytes)
            break;
        rest = (sl_str){ rest.data + bytes + 1, rest.bytes - bytes - 1 };
    }
    return split->gap <= IPV6_GROUPS || split->count == IPV6_GROUPS;
}

/* Which of the groups stands at this place of the full address; empty: one of those that "::" leaves out. */
static sl_str group_at(const ipv6_groups *split, size_t place)
{
    const size_t left_out = IPV6_GROUPS - split->count;

    if (place < split->gap)
        return split->groups[place];
    return place < split->gap + left_out ? SL_STR("0") : split->groups[place - left_out];
}

void sl_throttle_network(sl_str peer, sl_text *network)
{
    const sl_str host = host_of(peer);
    ipv6_groups split;

    if (sl_str_find(host, ':') == host.bytes || !split_groups(host, &split)) {
        sl_text_add_str(network, host);
        return;
    }
    for (size_t place = 0; place < IPV6_NETWORK_GROUPS; place++) {
        sl_text_add_str(network, group_at(&split, place));
        sl_text_add_char(network, ':');
    }
}

/* --- the table --- */

void sl_throttle_init(sl_throttle *throttle, sl_hash_seed seed)
{
    throttle->seed = seed;
    sl_map_init(&throttle->map, throttle->table, SL_THROTTLE_ENTRIES_MAX);
    sl_list_init(&throttle->used);
    sl_list_init(&throttle->free);
    throttle->fresh_index = 0;
}

sl_throttle_key sl_throttle_key_of(const sl_throttle *throttle, sl_str user, sl_str peer)
{
    char memory[SL_THROTTLE_NETWORK_BYTES];
    uint64_t parts[2];
    sl_text network;

    sl_text_init(&network, memory, sizeof memory);
    sl_throttle_network(peer, &network);
    parts[0] = sl_hash(throttle->seed, network.data, network.bytes);
    parts[1] = sl_hash(throttle->seed, user.data, user.bytes);
    return (sl_throttle_key){ .address = parts[0], .pair = sl_hash(throttle->seed, parts, sizeof parts) };
}

static sl_throttle_entry *find(const sl_throttle *throttle, uint64_t key, bool is_pair)
{
    sl_map_node *node = sl_map_find(&throttle->map, key);

    while (node != NULL && SL_CONTAINER_OF(node, sl_throttle_entry, by_key)->is_pair != is_pair)
        node = sl_map_next(node);
    return node == NULL ? NULL : SL_CONTAINER_OF(node, sl_throttle_entry, by_key);
}

static void forget(sl_throttle *throttle, sl_throttle_entry *entry)
{
    sl_map_remove(&throttle->map, &entry->by_key);
    sl_list_remove(&entry->node);
    sl_list_push_front(&throttle->free, &entry->node);
}

/* One that was never used, one that was forgotten, or the one that failed longest ago. */
static sl_throttle_entry *take_entry(sl_throttle *throttle)
{
    sl_throttle_entry *entry;

    if (sl_list_empty(&throttle->free) && throttle->fresh_index < SL_THROTTLE_ENTRIES_MAX)
        return &throttle->entries[throttle->fresh_index++];
    if (sl_list_empty(&throttle->free))
        forget(throttle, SL_CONTAINER_OF(sl_list_first(&throttle->used), sl_throttle_entry, node));
    entry = SL_CONTAINER_OF(sl_list_first(&throttle->free), sl_throttle_entry, node);
    sl_list_remove(&entry->node);
    return entry;
}

static sl_throttle_entry *enter(sl_throttle *throttle, uint64_t key, bool is_pair)
{
    sl_throttle_entry *entry = find(throttle, key, is_pair);

    if (entry != NULL)
        return entry;
    entry = take_entry(throttle);
    *entry = (sl_throttle_entry){ .is_pair = is_pair };
    sl_list_push_back(&throttle->used, &entry->node);
    sl_map_insert(&throttle->map, &entry->by_key, key);
    return entry;
}

/* --- the rule --- */

static uint32_t tries_free(const sl_throttle_entry *entry)
{
    return entry->is_pair ? SL_THROTTLE_PAIR_TRIES : SL_THROTTLE_ADDRESS_TRIES;
}

/* 1 s after the last free try, doubled with each one more. */
static uint64_t delay_ns(const sl_throttle_entry *entry)
{
    uint64_t delay = SL_THROTTLE_DELAY_MIN_NS;

    if (entry->tries < tries_free(entry))
        return 0;
    for (uint32_t i = tries_free(entry); i < entry->tries && delay < SL_THROTTLE_DELAY_MAX_NS; i++)
        delay *= 2;
    return delay < SL_THROTTLE_DELAY_MAX_NS ? delay : SL_THROTTLE_DELAY_MAX_NS;
}

static sl_throttle_entry *current(sl_throttle *throttle, uint64_t key, bool is_pair, uint64_t now_ns)
{
    sl_throttle_entry *const entry = find(throttle, key, is_pair);

    if (entry == NULL || now_ns - entry->last_ns < SL_THROTTLE_FORGET_NS)
        return entry;
    forget(throttle, entry);
    return NULL;
}

/* Also for one that is refused: who keeps trying is kept in mind. */
static void make_newest(sl_throttle *throttle, sl_throttle_entry *entry)
{
    sl_list_remove(&entry->node);
    sl_list_push_back(&throttle->used, &entry->node);
}

static void count(sl_throttle *throttle, uint64_t key, bool is_pair, uint64_t now_ns)
{
    sl_throttle_entry *const entry = enter(throttle, key, is_pair);

    entry->told = entry->told && now_ns < entry->opens_ns; /* a try of those that share it opens nothing */
    entry->tries += entry->tries < UINT32_MAX;
    entry->last_ns = now_ns;
    entry->opens_ns = now_ns + delay_ns(entry);
    make_newest(throttle, entry);
}

static bool is_shut(const sl_throttle_entry *entry, uint64_t now_ns)
{
    return entry != NULL && entry->tries >= tries_free(entry) && now_ns < entry->opens_ns;
}

/* The address is shut: may this pair try all the same? */
static bool may_share(const sl_throttle_entry *pair, sl_throttle_entry *address, uint64_t now_ns)
{
    if (pair != NULL && pair->was_right)
        return true;
    if (now_ns < address->shared_ns)
        return false;
    address->shared_ns = now_ns + SL_THROTTLE_SHARED_NS;
    return true;
}

static sl_throttle_verdict refuse(sl_throttle *throttle, sl_throttle_entry *shut)
{
    const bool told = shut->told;

    shut->told = true;
    make_newest(throttle, shut);
    return told ? SL_THROTTLE_AGAIN : SL_THROTTLE_WAIT;
}

sl_throttle_verdict sl_throttle_try(sl_throttle *throttle, sl_throttle_key key, uint64_t now_ns)
{
    sl_throttle_entry *const pair = current(throttle, key.pair, true, now_ns);
    sl_throttle_entry *const address = current(throttle, key.address, false, now_ns);

    if (is_shut(pair, now_ns)) {
        if (address != NULL)
            make_newest(throttle, address);
        return refuse(throttle, pair);
    }
    if (is_shut(address, now_ns) && !may_share(pair, address, now_ns))
        return refuse(throttle, address);
    count(throttle, key.pair, true, now_ns);
    count(throttle, key.address, false, now_ns);
    return SL_THROTTLE_GO;
}

bool sl_throttle_look(sl_throttle *throttle, sl_throttle_key key, uint64_t now_ns)
{
    sl_throttle_entry *pair = current(throttle, key.pair, true, now_ns);

    if (is_shut(pair, now_ns) || (pair != NULL && pair->looks >= SL_THROTTLE_PAIR_TRIES))
        return false;
    pair = enter(throttle, key.pair, true);
    pair->looks++;
    pair->last_ns = now_ns;
    make_newest(throttle, pair);
    return true;
}

/* An address may have let this try in although it is shut: then it stays shut. */
static void give_back(sl_throttle *throttle, uint64_t key, bool is_pair)
{
    sl_throttle_entry *const entry = find(throttle, key, is_pair);

    if (entry == NULL)
        return;
    entry->tries -= entry->tries > 0;
    if (is_pair || entry->tries < tries_free(entry))
        entry->opens_ns = 0;
    if (entry->tries == 0 && entry->looks == 0 && !entry->was_right)
        forget(throttle, entry);
}

/* The entry stays: it says that the pair was right, until it is forgotten like the others. */
void sl_throttle_known(sl_throttle *throttle, sl_throttle_key key)
{
    sl_throttle_entry *const pair = find(throttle, key.pair, true);

    if (pair == NULL)
        return;
    pair->tries = pair->looks = 0;
    pair->opens_ns = 0;
    pair->was_right = true;
}

void sl_throttle_right(sl_throttle *throttle, sl_throttle_key key)
{
    sl_throttle_known(throttle, key);
    give_back(throttle, key.address, false);
}

void sl_throttle_undone(sl_throttle *throttle, sl_throttle_key key)
{
    give_back(throttle, key.pair, true);
    give_back(throttle, key.address, false);
}
