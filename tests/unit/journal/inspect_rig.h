/* tests/unit/journal/inspect_rig.h — a store on a disk in memory with everything in it, and what verify finds there. */
#ifndef SL_TESTS_UNIT_JOURNAL_INSPECT_RIG_H
#define SL_TESTS_UNIT_JOURNAL_INSPECT_RIG_H

#include "base/support.h"
#include "store/faulty/faulty.h"
#include "store/journal/inspect_private.h"

enum {
    NAME_BYTES = 64
};

typedef struct world {
    sl_faulty *disk;
    sl_store *store;
    uint64_t segment_bytes; /* 0: 32 KiB */
    uint64_t waiting, next_id;
    sl_scavenged scavenged;
} world;

world world_open(void); /* with segments of 32 KiB */
world world_open_with(uint64_t segment_bytes);
sl_err open_again(world *w);
void world_close(world *w);
void world_free(world *w);

sl_event_in event_of(world *w, size_t bytes);
void wait_once(world *w);
void commit(world *w, const sl_op *op); /* and waits until it is durable */
void append(world *w, const char *stream, uint32_t count);

/* Three segments or more, with everything in them: group 7 gets another definition in the first and in the second one, the
 * last of them FILLED_DEFINITION. A third is hidden at the end: too little for the store to scavenge by
 * itself. */
void fill(world *w);
void scavenge(world *w); /* and waits for it */

#define FILLED_DEFINITION "seven at last"

/* Loads the store, which was just opened: group 7 is there, with this definition and what it has recorded. */
void expect_definition(world *w, const char *definition);

/* A door to the disk that tells a test before each open and each read, so that something can happen just then. */
typedef struct hook {
    void *ctx;
    void (*open)(void *ctx, const char *name); /* NULL: nobody wants to know */
    void (*read)(void *ctx, uint64_t offset);
} hook;
sl_disk *hooked_door(sl_faulty *disk, const hook *h); /* the hook must live as long as it */

typedef struct found {
    uint64_t damages, notes;
    char file[NAME_BYTES]; /* of the first damage */
    uint64_t offset, lost_from, lost_to;
    bool several_files;
} found;

void note_finding(void *ctx, const sl_finding *finding); /* ctx: a found */
found verify(sl_faulty *disk, sl_verified *ret_verified);
found verify_door(sl_disk *door, sl_verified *ret_verified);

/* A copy of a file, as it is now; and a file put in the place of what is there. */
typedef struct kept {
    char name[NAME_BYTES];
    uint8_t *bytes;
    uint64_t byte_count;
} kept;
kept keep_file(sl_faulty *disk, const char *name);
void put_file(sl_faulty *disk, const kept *file);

#endif
