/* worker/source/words.c — see words.h. */
#include "worker/source/words.h"

sl_err sl_words_refuse(const sl_words *words, sl_str word, const char *name, const char *wanted,
                       sl_text *problem)
{
    sl_text_add(problem, words->who);
    sl_text_add(problem, " does not understand \"");
    sl_text_add_str(problem, word);
    sl_text_add(problem, "\": ");
    if (name != NULL) {
        sl_text_add(problem, name);
        sl_text_add(problem, "= is ");
    }
    sl_text_add(problem, wanted);
    sl_text_add(problem, ".");
    return SL_ERR_INVALID;
}

static sl_err read_word(const sl_words *words, sl_str word, void *into, sl_text *problem)
{
    sl_str name, value;

    if (sl_str_cut(word, '=', &name, &value))
        for (size_t i = 0; i < words->count; i++)
            if (sl_str_equal(name, words->all[i].name))
                return words->all[i].set(into, value) == SL_OK
                           ? SL_OK
                           : sl_words_refuse(words, word, words->all[i].name.data, words->all[i].wanted,
                                             problem);
    return sl_words_refuse(words, word, NULL, words->known, problem);
}

sl_str sl_words_text(const sl_words *words, sl_str text)
{
    if (!sl_str_starts_with(text, words->scheme))
        return text;
    return (sl_str){ text.data + words->scheme.bytes, text.bytes - words->scheme.bytes };
}

sl_err sl_words_read(const sl_words *words, sl_str text, void *into, sl_text *problem)
{
    text = sl_words_text(words, text);
    while (text.bytes > 0) {
        sl_str word = text, rest = { 0 };

        (void)sl_str_cut(text, ',', &word, &rest);
        if (read_word(words, word, into, problem) != SL_OK)
            return SL_ERR_INVALID;
        text = rest;
    }
    return SL_OK;
}
