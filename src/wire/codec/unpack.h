/* wire/codec/unpack.h — protobuf-c behind a guard and on an arena, for all messages that are not hot.
 *
 * protobuf-c trusts its input more than we do: it follows nested messages as deep as they go, takes any bytes for text,
 * and hands out text that ends at its first zero byte. So the bytes are walked once before it gets them, along the same
 * descriptors. Where an embedded message comes in two parts protobuf-c is stricter or simpler than protobuf says: the
 * second member of a oneof replaces the first, and some pairs are refused. No client sends such. What it allocates comes from the arena of the request and is never freed on its own. */
#ifndef SL_WIRE_CODEC_UNPACK_H
#define SL_WIRE_CODEC_UNPACK_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>

enum {
    /* The limit of the reference implementation. Each level costs protobuf-c more than a kilobyte of stack. A JSON
     * object in the properties of a record takes three levels. */
    SL_UNPACK_DEPTH_MAX = 100
};

/*   SL_OK             *ret_unpacked is a message of this kind; it and all its texts live as long as the arena
 *   SL_ERR_INVALID    the bytes are refused; *ret_reason, which may be NULL, says why
 *   SL_ERR_TOO_LARGE  the arena's limit is too low for this message
 *   SL_ERR_NOMEM */
sl_err sl_unpack(const ProtobufCMessageDescriptor *kind, sl_str message, sl_arena *arena, void *ret_unpacked,
                 const char **ret_reason);

/* What protobuf-c gave as text; NULL, as with absent proto2 texts, is the empty slice. */
static inline sl_str sl_unpacked_text(const char *text)
{
    return sl_str_from(text);
}

static inline sl_str sl_unpacked_bytes(ProtobufCBinaryData bytes)
{
    return (sl_str){ (const char *)bytes.data, bytes.len };
}

/* A list of texts as slices; false when memory is out. */
bool sl_unpacked_texts(sl_arena *arena, char *const *texts, size_t count, const sl_str **ret_slices);

/* Makes the pieces of a message that is to be packed. The first failure is remembered, later calls fail as well and
 * sl_pack() says so: callers look once. */
typedef struct sl_packer {
    sl_arena *arena;
    bool failed;
} sl_packer;

void *sl_packer_take(sl_packer *packer, size_t bytes);

/* With a closing zero. Never NULL, so that it can go into any message; a text with a zero byte inside ends there. */
char *sl_packer_text(sl_packer *packer, sl_str text);
char **sl_packer_texts(sl_packer *packer, const sl_str *texts, size_t count);
ProtobufCBinaryData sl_packer_bytes(sl_str bytes);

/* SL_OK, and the bytes are in the arena; SL_ERR_NOMEM when any piece or the bytes could not be had. */
sl_err sl_pack(sl_packer *packer, const ProtobufCMessage *message, sl_str *ret_bytes);

#endif
