/* store/journal/roll.c — looking at rolls: one of them, its entries, and the chain that knows every stream.
 *
 * A chain is found from its end: the roll of the newest segment says from which segment on it counts, the one before that
 * is the next link, until the first segment is covered. Rolls that a crash left behind after a merge are not on this
 * way, so nobody has to tell them apart. */
#include "store/journal/roll.h"

#include "base/alloc.h"
#include "store/array.h"
#include "store/journal/roll_file.h"

sl_err sl_roll_look(sl_disk *disk, sl_uuid store, uint64_t number, sl_roll_info *ret_info)
{
    sl_roll_reader reader;
    const sl_err err = sl_roll_reader_open(&reader, disk, store, number);

    if (err == SL_OK)
        *ret_info = reader.info;
    sl_roll_reader_done(&reader);
    return err;
}

static sl_err visit_all(sl_roll_reader *reader, sl_roll_fn *visit, void *ctx)
{
    sl_roll_entry entry;
    sl_err err = sl_roll_reader_next(reader, &entry);

    for (; err == SL_OK; err = sl_roll_reader_next(reader, &entry)) {
        const sl_err visit_err = visit(ctx, &entry);
        if (visit_err != SL_OK)
            return visit_err;
    }
    return err == SL_ERR_EMPTY ? SL_OK : err;
}

sl_err sl_roll_each(sl_disk *disk, sl_uuid store, uint64_t number, sl_roll_fn *visit, void *ctx)
{
    sl_roll_reader reader;
    sl_err err = sl_roll_reader_open(&reader, disk, store, number);

    if (err == SL_OK)
        err = visit_all(&reader, visit, ctx);
    sl_roll_reader_done(&reader);
    return err;
}

/* --- chains --- */

static sl_err chain_add(sl_roll_chain *chain, const sl_roll_info *info)
{
    sl_roll_info *const larger =
        sl_array_grow(&sl_alloc_default, chain->rolls, &chain->capacity, sizeof *larger, chain->count + 1);

    if (larger == NULL)
        return SL_ERR_NOMEM;
    chain->rolls = larger;
    larger[chain->count++] = *info;
    return SL_OK;
}

/* They were found newest first. */
static void reverse(sl_roll_info *rolls, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        const sl_roll_info info = rolls[i];
        rolls[i] = rolls[count - 1 - i];
        rolls[count - 1 - i] = info;
    }
}

sl_err sl_roll_chain_find(sl_disk *disk, sl_uuid store, uint64_t first_segment, uint64_t number,
                          sl_roll_chain *ret_chain, uint64_t *ret_number)
{
    sl_roll_chain chain = { 0 };
    sl_roll_info info = { .from = number + 1 };
    sl_err err = SL_OK;

    while (err == SL_OK && info.from > first_segment) {
        *ret_number = info.from - 1;
        err = sl_roll_look(disk, store, *ret_number, &info);
        if (err == SL_OK)
            err = chain_add(&chain, &info);
    }
    if (err != SL_OK) {
        sl_roll_chain_done(&chain);
        return err;
    }
    reverse(chain.rolls, chain.count);
    *ret_chain = chain;
    return SL_OK;
}

void sl_roll_chain_done(sl_roll_chain *chain)
{
    sl_alloc_give(&sl_alloc_default, chain->rolls, chain->capacity * sizeof *chain->rolls);
    *chain = (sl_roll_chain){ 0 };
}

bool sl_roll_is_due(sl_disk *disk, sl_uuid store, uint64_t first_segment, uint64_t number)
{
    sl_roll_chain chain = { 0 };
    uint64_t newer = 0, missing;
    bool is_due;

    if (sl_roll_chain_find(disk, store, first_segment, number, &chain, &missing) != SL_OK)
        return false;
    for (size_t i = 1; i < chain.count; i++)
        newer += chain.rolls[i].entry_count;
    is_due = chain.count > 1 && 2 * newer >= chain.rolls[0].entry_count;
    sl_roll_chain_done(&chain);
    return is_due;
}
