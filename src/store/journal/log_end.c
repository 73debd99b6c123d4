/* store/journal/log_end.c — where a log ends, and whether that is the end.
 *
 * The end is the first place of the last segment where no valid frame of the right position stands. If a frame behind it
 * says that something at or after that place was durable, then it is not the end: something was damaged, and going on would
 * lose what somebody was promised. */
#include "store/journal/log_private.h"

enum {
    AGAIN_BYTES = 1 << 20
};

/* Looks behind the end for frames that know better. Frames begin at multiples of 8. */
static sl_err look_behind(sl_scan *scan, log_behind *most)
{
    uint64_t offset = scan->offset;
    sl_err err = SL_OK;

    for (; offset + SL_FRAME_HEADER_BYTES <= scan->size_bytes && err == SL_OK; offset += 8) {
        const uint8_t *at;
        sl_frame_header header;
        err = sl_scan_bytes(scan, offset, SL_FRAME_HEADER_BYTES, &at);
        if (err != SL_OK || sl_frame_header_get(at, SL_FRAME_HEADER_BYTES, scan->seed, &header) != SL_OK)
            continue;
        most->durable = header.durable_below > most->durable ? header.durable_below : most->durable;
        most->epoch = header.epoch > most->epoch ? header.epoch : most->epoch;
    }
    return err;
}

/* Follows the frames of the last segment to their end. Of a rewritten one only the epoch is of interest. */
static sl_err follow(sl_log *log, segment *s, sl_scan *scan)
{
    sl_frame_view next;
    sl_err err;

    while ((err = sl_scan_frame(scan, &next)) == SL_OK) {
        if (s->rewrites == 0 && (next.header.first_position != s->end || next.header.epoch < log->epoch)) {
            scan->offset = next.offset; /* left behind by an earlier life */
            break;
        }
        log->epoch = next.header.epoch > log->epoch ? next.header.epoch : log->epoch;
        log->said_durable =
            next.header.durable_below > log->said_durable ? next.header.durable_below : log->said_durable;
        s->end = s->rewrites == 0 ? next.end : s->end;
        s->used_bytes = s->rewrites == 0 ? scan->offset : s->used_bytes;
    }
    return err == SL_ERR_CORRUPT ? SL_OK : err;
}

/* True when something stands where the next frame will. */
static bool has_remains(sl_scan *scan)
{
    const uint8_t *at;

    return scan->offset + 4 < scan->size_bytes && sl_scan_bytes(scan, scan->offset, 4, &at) == SL_OK &&
           sl_get_u32(at) != 0;
}

static sl_err judge_end(sl_log *log, sl_scan *scan, log_behind *most, sl_text *report)
{
    segment *const last = last_segment(log);
    const uint64_t said = most->durable; /* by segments behind this one */
    const sl_err err = look_behind(scan, most);

    if (err != SL_OK)
        return err;
    if (said > last->end) {
        sl_log_say(report, "Damage", most->aside, SL_SEGMENT_HEADER_BYTES, sl_log_restore_advice);
        return SL_ERR_CORRUPT;
    }
    if (most->durable > last->end || (last->rewrites > 0 && scan->offset != last->size_bytes)) {
        sl_log_say(report, "Damage", last->number, scan->offset, sl_log_restore_advice);
        return SL_ERR_CORRUPT;
    }
    if (most->epoch > log->epoch || has_remains(scan))
        sl_log_say(report, "Cut what a crash had left", last->number, last->used_bytes,
                   "; nothing of it had been confirmed. ");
    log->epoch = most->epoch > log->epoch ? most->epoch : log->epoch;
    return SL_OK;
}

/* most: what segments behind the last one say. */
sl_err sl_log_find_end(sl_log *log, log_behind *most, sl_text *report)
{
    segment *const last = last_segment(log);
    sl_scan scan;
    sl_err err;

    sl_scan_init(&scan, last->file, last->seed, last->size_bytes);
    err = follow(log, last, &scan);
    if (err == SL_OK)
        err = judge_end(log, &scan, most, report);
    if (err == SL_ERR_IO)
        sl_log_say_head(report, last->number, err);
    sl_scan_done(&scan);
    log->next = log->written = log->durable = last->end;
    log->written_bytes = last->used_bytes;
    return err;
}

/* Where the first frame stands that no other calls durable. */
static sl_err find_unsure(const segment *last, uint64_t durable, uint64_t *ret_offset)
{
    sl_scan scan;
    sl_err err = SL_OK;

    sl_scan_init(&scan, last->file, last->seed, last->used_bytes);
    *ret_offset = scan.offset;
    while (err == SL_OK && scan.offset < last->used_bytes) {
        sl_frame_view next;

        err = sl_scan_frame(&scan, &next);
        if (err == SL_OK && next.end > durable)
            break;
        *ret_offset = scan.offset;
    }
    sl_scan_done(&scan);
    return err;
}

/* Writes the bytes of the last segment from an offset to its end once more. */
static sl_err write_again(const segment *last, uint64_t offset)
{
    sl_err err = SL_OK;
    sl_scan scan;

    sl_scan_init(&scan, last->file, last->seed, last->used_bytes);
    while (err == SL_OK && offset < last->used_bytes) {
        const uint64_t left = last->used_bytes - offset;
        const size_t bytes = left < AGAIN_BYTES ? (size_t)left : AGAIN_BYTES;
        const uint8_t *at = NULL;

        err = sl_scan_bytes(&scan, offset, bytes, &at);
        if (err == SL_OK)
            err = last->file->disk->ops->write(last->file, offset, at, bytes);
        offset += bytes;
    }
    sl_scan_done(&scan);
    return err;
}

/* What was found is durable from now on, and the frame that is written next says so. A process that ended because a sync had
 * failed leaves pages that are not on the disk and that the system calls clean: another sync would do nothing for them, so
 * what nobody calls durable is written once more. */
sl_err sl_log_make_sure(sl_log *log)
{
    const segment *const last = last_segment(log);
    uint64_t offset = last->used_bytes;
    sl_err err = SL_OK;

    if (last->rewrites == 0)
        err = find_unsure(last, log->said_durable, &offset);
    if (err == SL_OK)
        err = write_again(last, offset);
    return err == SL_OK ? last->file->disk->ops->sync(last->file) : err;
}

/* A segment whose first frame can not be read was made ahead, or a crash came when it had just been begun, or it is damaged:
 * that is seen by what other frames in it say. */
sl_err sl_log_set_last_aside(sl_log *log, log_behind *most)
{
    const segment *const last = last_segment(log);
    const uint64_t said = most->durable;
    sl_scan scan;
    sl_err err;

    sl_scan_init(&scan, last->file, last->seed, last->size_bytes);
    err = look_behind(&scan, most);
    most->aside = most->durable > said ? last->number : most->aside;
    sl_scan_done(&scan);
    log->disk->ops->close(last->file);
    log->segment_count--;
    return err;
}

/* --- sentences --- */

void sl_log_say(sl_text *report, const char *what, uint64_t number, uint64_t offset, const char *advice)
{
    char name[SL_SEGMENT_NAME_BYTES];

    sl_segment_name(number, ".seg", name);
    sl_text_add(report, what);
    sl_text_add(report, " in ");
    sl_text_add(report, name);
    sl_text_add(report, " at byte ");
    sl_text_add_u64(report, offset);
    sl_text_add(report, advice);
}

const char sl_log_restore_advice[] = ": the disk or somebody changed what was written. Restore the folder "
                                     "from a backup; `sluice journal verify` lists all damage";

void sl_log_say_head(sl_text *report, uint64_t number, sl_err err)
{
    if (err == SL_ERR_VERSION)
        sl_log_say(report, "Another version of the format", number, 0, ": use the program that wrote it");
    else if (err == SL_ERR_CORRUPT)
        sl_log_say(report, "An unreadable segment header", number, 0, sl_log_restore_advice);
    else if (err == SL_ERR_IO)
        sl_log_say(report, "The disk did not give what stands", number, 0,
                   ": see the system's log for what is wrong with it");
    else
        sl_text_add(report, sl_err_text(err));
}

void sl_log_say_damage(sl_text *report, uint64_t number, uint64_t offset)
{
    sl_log_say(report, "Damage", number, offset, sl_log_restore_advice);
}
