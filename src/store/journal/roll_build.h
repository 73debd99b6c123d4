/* store/journal/roll_build.h — the roll of one segment in the making: fed with its events, then written.
 *
 * Memory: for each stream of the segment its name, about 90 bytes, and 16 more while they are sorted. */
#ifndef SL_STORE_JOURNAL_ROLL_BUILD_H
#define SL_STORE_JOURNAL_ROLL_BUILD_H

#include "base/arena.h"
#include "base/map.h"
#include "store/journal/roll.h"
#include "store/store.h"

typedef struct sl_roll_builder {
    const sl_segment_ref *segment;
    sl_arena arena; /* the streams */
    sl_map map;     /* by name */
} sl_roll_builder;

/* The segment must live as long as the builder. SL_OK or SL_ERR_NOMEM; done in both cases. */
sl_err sl_roll_builder_init(sl_roll_builder *builder, const sl_segment_ref *segment);
void sl_roll_builder_done(sl_roll_builder *builder);

/* Every event of the segment, in order. SL_OK or SL_ERR_NOMEM. */
sl_err sl_roll_builder_event(sl_roll_builder *builder, uint64_t stream_hash, const sl_event *event);

/* SL_OK, SL_ERR_IO, SL_ERR_NO_SPACE, SL_ERR_NOMEM. */
sl_err sl_roll_builder_write(const sl_roll_builder *builder, sl_disk *disk);

#endif
