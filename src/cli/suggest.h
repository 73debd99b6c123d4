/* cli/suggest.h — "did you mean ...?" for a word that is no command and no option. */
#ifndef SL_CLI_SUGGEST_H
#define SL_CLI_SUGGEST_H

#include <stddef.h>

/* Single-letter changes between two words: insert, remove, replace, or swap two neighbours. Capital and
 * small letters are the same. Words longer than 63 bytes are taken as wholly different. */
size_t sl_suggest_distance(const char *left, const char *right);

/* The candidate that is nearest to `word`, or NULL when none is near enough to be what was meant. Candidates
 * that are NULL are passed over; among equals the first one wins. */
const char *sl_suggest_nearest(const char *word, const char *const *candidates, size_t candidate_count);

#endif
