/* SPDX-License-Identifier: MIT */
#include "view/glob.h"

#include <string.h>

bool glob_match(enum glob_kind kind, struct ttd_string pattern, struct ttd_string text)
{
    size_t p = 0;
    size_t t = 0;
    /* State of backtracking: the pattern after the last '*', and the text at which it was tried
     * last. One '*' suffices, because an earlier one need not match more. */
    size_t star = SIZE_MAX;
    size_t tried = 0;
    while (t < text.size) {
        char c = p < pattern.size ? pattern.data[p] : '\0';
        if (p < pattern.size && c == '*') {
            star = ++p;
            tried = t;
        } else if (p < pattern.size &&
                   (c == text.data[t] || (c == '?' && kind == GLOB_STARS_AND_MARKS))) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star;
            t = ++tried;
        } else {
            return false;
        }
    }
    while (p < pattern.size && pattern.data[p] == '*')
        p++;
    return p == pattern.size;
}

bool glob_find(struct ttd_string pattern, struct ttd_string text)
{
    if (memchr(pattern.data, '*', pattern.size) || memchr(pattern.data, '?', pattern.size))
        return text.size && glob_match(GLOB_STARS_AND_MARKS, pattern, text);
    return text.size && memmem(text.data, text.size, pattern.data, pattern.size);
}

struct ttd_string glob_base_name(struct ttd_string path)
{
    for (size_t i = path.size; i > 0; i--) {
        if (path.data[i - 1] == '/')
            return (struct ttd_string){path.data + i, path.size - i};
    }
    return path;
}
