/* store/journal/walk.h — reading a whole journal frame by frame, and going on behind damage.
 *
 * log_open.c reads to find the end and stops at the first thing that is wrong. Whoever inspects a journal wants the
 * opposite: everything that can still be read, and a finding for each place that can not. The rules are the same
 * (docs/JOURNAL.md, "How to read it"):
 *
 *      a place without the right frame, in a segment that another one follows       damage
 *      the same in the last segment, and a frame behind it calls more durable       damage
 *      the same in the last segment, otherwise                                      the end
 *
 * Behind damage the next frame is searched at every multiple of 8; checksums that begin with the segment's seed make sure
 * that nothing else is taken for one.
 *
 * A server may be writing: frames appear while this reads, the last segment is not the last any more. Nothing is called
 * damage before it was read again *after* the sign that more must be there was seen; whatever gives such a sign was written
 * later than what it speaks of, so the second look sees that, if it is there. */
#ifndef SL_STORE_JOURNAL_WALK_H
#define SL_STORE_JOURNAL_WALK_H

#include "store/inspect.h"
#include "store/journal/scan.h"

/* What the first bytes of a segment say. */
typedef struct sl_walk_head {
    uint64_t number;
    sl_err
        err; /* SL_OK, else `header` is not set: SL_ERR_CORRUPT, SL_ERR_VERSION, SL_ERR_IO, SL_ERR_NOT_FOUND */
    sl_segment_header header;
    bool zeros;     /* the rest of the header block is as it should be */
    uint64_t bytes; /* of the file */
    bool has_first;
    uint64_t first; /* position; of the first frame, or of a rewritten one as its header says */
} sl_walk_head;

/* A segment that was read to its end. */
typedef struct sl_walked {
    sl_segment_ref segment; /* `end` is where it ended, the file is open during the call */
    const sl_walk_head *head;
    uint64_t used_bytes; /* up to the end of its last frame */
    bool is_whole;       /* nothing in it is damaged */
    bool is_open;        /* the last one: more may come */
} sl_walked;

typedef struct sl_walk_visitor {
    void *ctx;
    /* Each but `finding` may be NULL. An error ends the walk. */
    sl_err (*begin)(void *ctx, const sl_segment_ref *segment);
    sl_err (*frame)(void *ctx, const sl_segment_ref *segment, const sl_frame_view *frame);
    sl_err (*end)(void *ctx, const sl_walked *walked);
    void (*finding)(void *ctx, const sl_finding *finding);
    sl_progress_fn *progress;
    void *progress_ctx;
} sl_walk_visitor;

typedef struct sl_walk {
    sl_disk *disk;
    sl_walk_visitor visitor;
    sl_walk_head *heads; /* by number */
    size_t head_count, head_capacity;
    sl_uuid store;
    bool knows_store;
    uint64_t only_segment; /* set after init: 0: all */
    uint64_t from;         /* set after init: segments that end below this position are passed over */
    uint64_t next;         /* position that has to come next; 0: not known */
    uint64_t bytes_done, bytes_total;
    bool ended; /* the end was found: what comes now was made ahead */
    sl_err err; /* of listing */
} sl_walk;

/* Lists the segments and reads their heads. SL_OK, SL_ERR_NOT_FOUND (there are none), SL_ERR_IO, SL_ERR_NOMEM. */
sl_err sl_walk_init(sl_walk *walk, sl_disk *disk, const sl_walk_visitor *visitor);
void sl_walk_done(sl_walk *walk);

/* SL_OK, SL_ERR_NOMEM, or the first error of the visitor. A disk that does not give what stands somewhere is a finding. */
sl_err sl_walk_run(sl_walk *walk);

/* --- for walk_segment.c --- */

/* Reads the frames of one segment; walk->next moves on. */
sl_err sl_walk_segment(sl_walk *walk, size_t index);

/* Reads the head of a segment from its file, or opens that by its name to look. */
void sl_walk_head_read(sl_file *file, sl_walk_head *head);
void sl_walk_head_look(sl_disk *disk, sl_walk_head *head);

/* Says what is wrong with the head of a segment. False: its frames can not be read, because nobody knows its seed. */
bool sl_walk_head_judge(const sl_walk *walk, const sl_walk_head *head);

/* Positions that are lost: from 0: nobody knows from where on; to 0 or not above from: none. */
typedef struct sl_walk_loss {
    uint64_t from, to;
    bool in_part; /* a frame is damaged: at least one of its positions is lost, and nobody knows which */
} sl_walk_loss;
void sl_walk_damage(const sl_walk *walk, uint64_t number, uint64_t offset, const char *what,
                    sl_walk_loss loss);
void sl_walk_note(const sl_walk *walk, uint64_t number, uint64_t offset, const char *what);

/* The position at which the segment behind this one begins; 0: not known. */
uint64_t sl_walk_limit(const sl_walk *walk, size_t index);

/* The next right frame header at or behind *offset. SL_OK, SL_ERR_EMPTY: there is none, SL_ERR_IO, SL_ERR_NOMEM. */
sl_err sl_walk_find_header(sl_scan *scan, uint64_t *offset, sl_frame_header *ret_header);

/* The most that frame headers from an offset on call durable, and whether there is any at all. */
typedef struct sl_walk_claim {
    uint64_t durable;
    uint64_t offset; /* of the header that says so */
    bool any;
} sl_walk_claim;
sl_err sl_walk_claims(sl_scan *scan, uint64_t offset, sl_walk_claim *ret_claim);

#endif
