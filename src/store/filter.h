/* store/filter.h — which events a reader of everything wants: by the name of their stream or by their type.
 *
 * Prefixes or a regular expression, never both. Expressions are those of PCRE2, searched anywhere in the text and
 * case-sensitive, with Unicode classes: what official clients send was written for .NET, and of what they send both
 * understand the same.
 *
 * Expressions come from peers. Their length is bounded, and so are the steps, the depth and the memory of one match. One
 * that would need more is given up, and then nobody knows whether the event is wanted: a reader must stop there and say so.
 * Passing over the event instead would lose it without a word.
 *
 * One thread at a time for each filter. */
#ifndef SL_STORE_FILTER_H
#define SL_STORE_FILTER_H

#include "base/str.h"
#include "store/store.h"

enum {
    SL_FILTER_PREFIXES_MAX = 1024,
    SL_FILTER_PREFIX_BYTES_MAX = 64 * 1024, /* of all together */
    SL_FILTER_EXPRESSION_BYTES_MAX = 4096,
    SL_FILTER_STEPS_MAX =
        10 * 1000, /* of one match; well under a millisecond. Honest expressions need some hundred */
};

typedef enum sl_filter_on {
    SL_FILTER_ON_STREAM,
    SL_FILTER_ON_TYPE,
} sl_filter_on;

typedef struct sl_filter_setup {
    sl_filter_on on;
    const sl_str *prefixes; /* any of them; copied */
    uint32_t prefix_count;  /* 0: `expression` counts */
    sl_str expression;
} sl_filter_setup;

/* Free it with sl_filter_free().
 *   SL_OK
 *   SL_ERR_INVALID     neither, both, or a bad expression: `why` says what is wrong and at which byte
 *   SL_ERR_TOO_LARGE   one of the limits above
 *   SL_ERR_NOMEM
 * why may be NULL. */
sl_err sl_filter_new(const sl_filter_setup *setup, sl_text *why, sl_filter **ret_filter);
void sl_filter_free(sl_filter *filter);

typedef enum sl_filter_verdict {
    SL_FILTER_NO,
    SL_FILTER_YES,
    SL_FILTER_GAVE_UP, /* one of the limits was reached; the same text gives the same again. Never with prefixes */
} sl_filter_verdict;

sl_filter_verdict sl_filter_judge(const sl_filter *filter, sl_str stream, sl_str type);

#endif
