/* worker/source/words.h — the settings of a source that is written as a list of words: "every=30m,jitter=10%". */
#ifndef SL_WORKER_SOURCE_WORDS_H
#define SL_WORKER_SOURCE_WORDS_H

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>

typedef struct sl_word {
    sl_str name;
    sl_err (*set)(void *into, sl_str value); /* SL_OK, or anything else: it is not what is wanted */
    const char *wanted;                      /* what its value is; a phrase */
} sl_word;

typedef struct sl_words {
    const char *who;    /* "The schedule" */
    sl_str scheme;      /* "schedule:", which may stand in front */
    const sl_word *all; /* in the order of `known` */
    size_t count;
    const char *known; /* "it knows every= and jitter=" and so on */
} sl_words;

/* Sets each word. SL_OK, or SL_ERR_INVALID and a sentence in `problem`. */
sl_err sl_words_read(const sl_words *words, sl_str text, void *into, sl_text *problem);

/* Without the scheme. */
sl_str sl_words_text(const sl_words *words, sl_str text);

/* The sentence about a word, or about all of them; name: NULL, or the word's. Returns SL_ERR_INVALID. */
sl_err sl_words_refuse(const sl_words *words, sl_str word, const char *name, const char *wanted,
                       sl_text *problem);

#endif
