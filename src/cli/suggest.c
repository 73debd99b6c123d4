/* cli/suggest.c — the edit distance, row by row.
 *
 * Only three rows of the usual matrix are kept: the current one, the one above, and the one above that, which
 * a swap of two neighbours looks back to. */
#include "cli/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum {
    WORD_BYTES_MAX = 63
};

typedef size_t distance_row[WORD_BYTES_MAX + 1];

static size_t smaller(size_t left, size_t right)
{
    return left < right ? left : right;
}

/* "VERSION" is no slip at all. */
static bool same(char left, char right)
{
    return tolower((unsigned char)left) == tolower((unsigned char)right);
}

static void fill_row(const char *left, size_t i, const char *right, distance_row *const rows[3])
{
    const size_t *before = *rows[0], *above = *rows[1];
    size_t *row = *rows[2];

    row[0] = i;
    for (size_t j = 1; right[j - 1] != '\0'; j++) {
        const size_t replace = above[j - 1] + !same(left[i - 1], right[j - 1]);
        row[j] = smaller(replace, 1 + smaller(above[j], row[j - 1]));
        if (i > 1 && j > 1 && same(left[i - 1], right[j - 2]) && same(left[i - 2], right[j - 1]))
            row[j] = smaller(row[j], 1 + before[j - 2]);
    }
}

size_t sl_suggest_distance(const char *left, const char *right)
{
    const size_t left_bytes = strlen(left), right_bytes = strlen(right);
    distance_row memory[3];
    distance_row *rows[3] = { &memory[0], &memory[1], &memory[2] };

    if (left_bytes > WORD_BYTES_MAX || right_bytes > WORD_BYTES_MAX)
        return left_bytes + right_bytes;
    for (size_t j = 0; j <= right_bytes; j++)
        (*rows[1])[j] = j;
    for (size_t i = 1; i <= left_bytes; i++) {
        fill_row(left, i, right, rows);
        distance_row *oldest = rows[0];
        rows[0] = rows[1];
        rows[1] = rows[2];
        rows[2] = oldest;
    }
    return (*rows[1])[right_bytes];
}

/* One slip in a short word, one for every three letters in a long one: more, and anything resembles anything. */
static size_t slips_allowed(const char *word)
{
    const size_t bytes = strlen(word);
    return bytes < 3 ? 0 : bytes < 6 ? 1 : bytes / 3;
}

const char *sl_suggest_nearest(const char *word, const char *const *candidates, size_t candidate_count)
{
    const char *nearest = NULL;
    size_t nearest_distance = slips_allowed(word) + 1;

    for (size_t i = 0; i < candidate_count; i++) {
        if (candidates[i] == NULL)
            continue;
        const size_t distance = sl_suggest_distance(word, candidates[i]);
        if (distance < nearest_distance) {
            nearest = candidates[i];
            nearest_distance = distance;
        }
    }
    return nearest;
}
