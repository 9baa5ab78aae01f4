/* SPDX-License-Identifier: MIT */
/** Character tests of canonical names, private to canonical*.c. */
#ifndef ANALYZER_SYMBOLS_CANONICAL_PARTS_H
#define ANALYZER_SYMBOLS_CANONICAL_PARTS_H

#include <stdbool.h>
#include <string.h>

#include <ttdtrace/model.h>

/** Whether a word stands at an offset of a name. */
static inline bool canonical_stands_at(struct ttd_string name, size_t offset, const char *word)
{
    size_t size = strlen(word);
    return offset <= name.size && name.size - offset >= size &&
           memcmp(name.data + offset, word, size) == 0;
}

/** Whether a character may be part of an identifier or a number, as compilers write them. */
static inline bool canonical_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

#endif
