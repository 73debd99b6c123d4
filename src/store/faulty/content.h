/* store/faulty/content.h — the bytes of one simulated file: as a reader sees them, and as the platter has them.
 *
 * Only what differs is kept twice: for each 512-byte sector that was written and not synced, the bytes that the platter
 * has. So a sync costs what was written since the last one, and a power cut looks at nothing else.
 *
 * Meaner than most disks, and meaner only in ways that are allowed:
 *   - a sector that is written again before a sync may have been written back in between, so the platter has
 *     neither the oldest nor the newest of its contents;
 *   - what a failed sync was to write stays lost even when a later sync succeeds, until it is written again: that is what
 *     systems do whose cache calls a page clean after the error was told once.
 *
 * Memory that runs out ends the program: this is for tests. One thread at a time. */
#ifndef SL_STORE_FAULTY_CONTENT_H
#define SL_STORE_FAULTY_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_content sl_content;

/* `bytes` zero bytes that are on the platter. */
sl_content *sl_content_new(uint64_t bytes);

/* Names and open files hold it; the last one frees it. */
sl_content *sl_content_keep(sl_content *c);
void sl_content_drop(sl_content *c);

uint64_t sl_content_bytes(const sl_content *c);
const uint8_t *sl_content_seen(const sl_content *c);

/* Writes, and makes it longer if need be. */
void sl_content_write(sl_content *c, uint64_t offset, const void *data, size_t bytes);

/* A sync covers what was written before it began; what is written while it runs waits for the next one. A sector that has
 * both is on the platter as it was when the sync began, or newer. */
typedef struct sl_content_mark {
    uint64_t writes, bytes;
} sl_content_mark;

sl_content_mark sl_content_sync_begin(sl_content *c); /* one at a time */
void sl_content_sync_end(sl_content *c, sl_content_mark begun);
void sl_content_sync_failed(sl_content *c);

/* Decides every sector that is not synced, and the length; what is seen is then what the platter has. NULL: all that is
 * not synced is lost. */
void sl_content_cut(sl_content *c, uint64_t *dice);

/* One bit, seen and on the platter. */
void sl_content_flip(sl_content *c, uint64_t offset, unsigned bit);

/* The next 32 random bits. */
uint32_t sl_content_draw(uint64_t *dice);

/* realloc() that does not fail. */
void *sl_content_resize(void *memory, size_t bytes);

#endif
