/* tests/unit/codec/random_message.h — random messages for protobuf-c, made along their descriptors.
 *
 * protobuf-c is the other opinion: what it packs our decoders must read, and what they read must be packed to the same
 * bytes by our encoders. A message from here is always one that has a single canonical form: maps of metadata have the
 * keys that we keep, in our order, no side of a map entry is empty, streams are named where we always name them, and ids
 * are UUIDs. */
#ifndef SL_TESTS_UNIT_CODEC_RANDOM_MESSAGE_H
#define SL_TESTS_UNIT_CODEC_RANDOM_MESSAGE_H

#include "base/support.h"

#include "base/arena.h"
#include "base/str.h"
#include "wire/common_codec.h"

#include <protobuf-c/protobuf-c.h>

enum {
    RANDOM_RUNS = 3000,
};

/* An arena for one run, large enough for anything that is made here. */
void test_arena_init(sl_arena *arena);

/* Every field set or not, every oneof at any member or none. */
void *random_message(const ProtobufCMessageDescriptor *kind, dice *d, sl_arena *arena);

/* Numbers near the borders of bits and bytes as often as others. */
uint64_t random_u64(dice *d);

/* Packed by protobuf-c, in memory of exactly this size, so that a sanitizer sees a byte too many. */
sl_str packed(const void *message, sl_arena *arena);

/* A copy in memory of its own, to be given to free(). */
char *exact_copy(sl_str bytes);

bool same_text(sl_str ours, const char *theirs);
bool same_bytes(sl_str ours, ProtobufCBinaryData theirs);

/* The value for a key of a metadata map; NULL when it has none. `entries` are map entries of any message. */
const char *metadata_value(ProtobufCMessage *const *entries, size_t count, const char *key);

#endif
