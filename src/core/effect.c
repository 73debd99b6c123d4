/* core/effect.c — names of effects. */
#include "core/effect.h"

#include "base/cleanup.h"

#include <assert.h>

static const struct {
    const char *name;
    bool is_record;
} rows[] = {
#define XX(name, is_record) [SL_EFFECT_##name] = { #name, is_record },
    SL_EFFECT_MAP(XX)
#undef XX
};
static_assert(SL_COUNT_OF(rows) == SL_EFFECT_COUNT_, "one row for each effect");

bool sl_effect_is_record(sl_effect_kind kind)
{
    return (unsigned)kind < SL_EFFECT_COUNT_ && rows[kind].is_record;
}

const char *sl_effect_name(sl_effect_kind kind)
{
    return (unsigned)kind < SL_EFFECT_COUNT_ ? rows[kind].name : "unknown";
}
