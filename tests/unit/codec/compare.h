/* tests/unit/codec/compare.h — is what we decoded what protobuf-c holds? Field by field, because a round trip through our
 * own code would not see two fields that are exchanged in both directions. */
#ifndef SL_TESTS_UNIT_CODEC_COMPARE_H
#define SL_TESTS_UNIT_CODEC_COMPARE_H

#include "codec/random_message.h"

#include "wire/codec/persistent.pb-c.h"
#include "wire/codec/streams.pb-c.h"

/* "1a 2b" or "1a2b" as bytes; `memory` has to have room for them. */
sl_str from_hex(const char *hex, uint8_t *memory);

bool same_id(sl_wire_id ours, const EventStore__Client__UUID *theirs);
bool same_stream(sl_str ours, const EventStore__Client__StreamIdentifier *theirs);
bool same_time(sl_wire_time ours, const Google__Protobuf__Timestamp *theirs);
bool same_duration(sl_wire_time ours, const Google__Protobuf__Duration *theirs);

/* The last walks over ours, so it also tests the walk. */
bool same_ids(const sl_wire_ids *ours, EventStore__Client__UUID *const *theirs, size_t count);

bool same_proposed(const sl_wire_proposed *ours,
                   const EventStore__Client__Streams__AppendReq__ProposedMessage *theirs);
bool same_read_event(const sl_wire_read_event *ours,
                     const EventStore__Client__Streams__ReadResp__ReadEvent *theirs);
bool same_persistent_event(const sl_wire_read_event *ours,
                           const EventStore__Client__PersistentSubscriptions__ReadResp__ReadEvent *theirs);

/* The ids of a decoded list as an array in the arena, so that they can be encoded again. All have to have one form. */
void list_ids(sl_wire_ids *ids, sl_arena *arena);

#endif
