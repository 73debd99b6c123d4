/* store/verdict.c — the table of verdict.h, row by row.
 *
 * SL_REVISION_NONE is the largest number, so that "one more" is 0. Revisions are compared through next_of(), which makes
 * "no event" the smallest: it is the number of events, were none ever missing. */
#include "store/verdict.h"

static uint64_t next_of(uint64_t revision)
{
    return revision + 1; /* SL_REVISION_NONE becomes 0 */
}

static sl_verdict refused(const sl_known *known, sl_err err)
{
    return (sl_verdict){ .kind = SL_VERDICT_REFUSED, .err = err, .revision = known->last };
}

static sl_verdict written(const sl_known *known)
{
    return (sl_verdict){ .kind = SL_VERDICT_WRITE, .revision = next_of(known->last) };
}

static sl_verdict repeated(const sl_seen *last)
{
    return (
        sl_verdict){ .kind = SL_VERDICT_REPEATED, .revision = last->revision, .position = last->position };
}

static bool is_open(sl_expected expected)
{
    return expected.kind == SL_EXPECT_ANY || expected.kind == SL_EXPECT_STREAM_EXISTS;
}

static bool never_existed(const sl_known *known)
{
    return known->last == SL_REVISION_NONE && !known->has_metadata;
}

/* Rows 2 and 3. SL_OK: go on. */
static sl_err check_exists(const sl_known *known, sl_expected expected)
{
    if (expected.kind != SL_EXPECT_STREAM_EXISTS)
        return SL_OK;
    if (known->soft_deleted)
        return SL_ERR_STREAM_DELETED;
    return never_existed(known) ? SL_ERR_WRONG_REVISION : SL_OK;
}

/* What next_of() the current revision should be. */
static uint64_t next_expected(sl_expected expected)
{
    return expected.kind == SL_EXPECT_NO_STREAM ? 0 : next_of(expected.revision);
}

/* Row 4. */
static sl_verdict append_open(const sl_known *known, const sl_event_in *events, uint32_t event_count,
                              const sl_lookup *lookup)
{
    sl_seen seen;

    for (uint32_t i = 0; i < event_count; i++)
        if (!lookup->recent(lookup->ctx, events[i].id, &seen))
            return i == 0 ? written(known) : refused(known, SL_ERR_WRONG_REVISION);
    return event_count == 0 ? written(known) : repeated(&seen);
}

/* Row 5, the question for one event. SL_ERR_NOT_FOUND: another one stands there, or none. */
static sl_err same_at(const sl_lookup *lookup, sl_uuid id, uint64_t revision, sl_seen *ret_seen)
{
    sl_err err;

    if (lookup->recent(lookup->ctx, id, ret_seen) && ret_seen->revision == revision)
        return SL_OK;
    err = lookup->at(lookup->ctx, revision, ret_seen);
    return err == SL_OK && !sl_uuid_equal(ret_seen->id, id) ? SL_ERR_NOT_FOUND : err;
}

/* Row 5. */
static sl_verdict append_behind(const sl_known *known, sl_expected expected, const sl_event_in *events,
                                uint32_t event_count, const sl_lookup *lookup)
{
    const bool renews = expected.kind == SL_EXPECT_NO_STREAM && known->soft_deleted;
    sl_seen seen;

    for (uint32_t i = 0; i < event_count; i++) {
        const uint64_t revision = next_expected(expected) + i;
        /* Nothing stands beyond the last event, and a tombstone is no event of a client. */
        const bool beyond = revision >= next_of(known->last) || revision >= SL_REVISION_MAX;
        const sl_err err = beyond ? SL_ERR_NOT_FOUND : same_at(lookup, events[i].id, revision, &seen);

        if (err == SL_ERR_NOT_FOUND)
            return i == 0 && renews ? written(known) : refused(known, SL_ERR_WRONG_REVISION);
        if (err == SL_ERR_TOO_LARGE) /* nobody knows; but the revision is not the expected one */
            return refused(known, SL_ERR_WRONG_REVISION);
        if (err != SL_OK)
            return refused(known, err);
    }
    return event_count == 0 ? refused(known, SL_ERR_WRONG_REVISION) : repeated(&seen);
}

sl_verdict sl_verdict_append(const sl_known *known, sl_expected expected, const sl_event_in *events,
                             uint32_t event_count, const sl_lookup *lookup)
{
    const sl_err missing = check_exists(known, expected);

    if (known->tombstoned && event_count > 0)
        return refused(known, SL_ERR_STREAM_DELETED);
    if (missing != SL_OK)
        return refused(known, missing);
    if (is_open(expected))
        return append_open(known, events, event_count, lookup);
    if (next_expected(expected) < next_of(known->last))
        return append_behind(known, expected, events, event_count, lookup);
    return next_expected(expected) == next_of(known->last) ? written(known)
                                                           : refused(known, SL_ERR_WRONG_REVISION);
}

/* Rows 1 to 7 for what has no ids to compare. */
static sl_verdict remove_stream(const sl_known *known, sl_expected expected)
{
    const sl_err missing = check_exists(known, expected);
    const bool renews = expected.kind == SL_EXPECT_NO_STREAM && known->soft_deleted;

    if (known->tombstoned)
        return refused(known, SL_ERR_STREAM_DELETED);
    if (missing != SL_OK)
        return refused(known, missing);
    if (is_open(expected) || renews || next_expected(expected) == next_of(known->last))
        return written(known);
    return refused(known, SL_ERR_WRONG_REVISION);
}

sl_verdict sl_verdict_delete(const sl_known *known, sl_expected expected)
{
    if (!known->tombstoned && never_existed(known))
        return refused(known, SL_ERR_WRONG_REVISION);
    return remove_stream(known, expected);
}

sl_verdict sl_verdict_tombstone(const sl_known *known, sl_expected expected)
{
    return remove_stream(known, expected);
}
