/* SPDX-License-Identifier: MIT */
#include "cli/options/suggest.h"

#include <string.h>

enum { NAME_MAX_SIZE = 32 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

/* Returns the edit distance: letters to change, add, remove or swap with the next one, to make one
 * name of the other. Only the last three rows of the table of all prefixes are kept. */
static size_t suggest_distance(const char *word, const char *other_word)
{
    size_t rows[3][NAME_MAX_SIZE + 1], right_size = strlen(other_word);
    for (size_t k = 0; k <= right_size; k++)
        rows[0][k] = k;
    for (size_t i = 1; word[i - 1]; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= right_size; k++) {
            size_t change = above[k - 1] + (word[i - 1] != other_word[k - 1]);
            row[k] = least(above[k] + 1, row[k - 1] + 1, change);
            if (i > 1 && k > 1 && word[i - 1] == other_word[k - 2] &&
                word[i - 2] == other_word[k - 1] && before[k - 2] + 1 < row[k])
                row[k] = before[k - 2] + 1;
        }
    }
    return rows[strlen(word) % 3][right_size];
}

void suggest(struct suggestion *best, const char *name)
{
    size_t size = strlen(best->typed);
    if (size > NAME_MAX_SIZE || strlen(name) > NAME_MAX_SIZE || size == 0)
        return;
    size_t apart = suggest_distance(best->typed, name);
    /* A third of the letters may be wrong, or the rest may be missing. */
    if (size >= 3 && strncmp(name, best->typed, size) == 0)
        apart = 1;
    if (apart > size / 3 + (size < 3) || (best->name && apart >= best->distance))
        return;
    best->name = name;
    best->distance = apart;
}
