/* base/err.c — the table behind err.h: one row for each code, made from the same list as the codes. */
#include "base/err.h"

#include <assert.h>

static const struct {
    const char *name;
    const char *text;
    bool may_retry;
} rows[] = {
#define XX(name, retry, text) [SL_ERR_##name] = { #name, text, retry },
    SL_ERR_MAP(XX)
#undef XX
};

static_assert(sizeof rows / sizeof rows[0] == SL_ERR_COUNT_, "one row for each error");

/* A code may come from a stored record or a peer, so a number outside of the list is answered, not asserted. */
static bool is_listed(sl_err err)
{
    return (unsigned)err < SL_ERR_COUNT_;
}

const char *sl_err_text(sl_err err)
{
    return is_listed(err) ? rows[err].text : "an error that this version does not know";
}

const char *sl_err_name(sl_err err)
{
    return is_listed(err) ? rows[err].name : "UNKNOWN";
}

bool sl_err_may_retry(sl_err err)
{
    return is_listed(err) && rows[err].may_retry;
}
