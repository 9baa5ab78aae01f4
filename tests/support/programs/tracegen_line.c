/* SPDX-License-Identifier: MIT */
/* The fields of a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/programs/tracegen.h"

static char *known_strings[65536];
static ttd_id known_count;

char *text_of(const struct line *from, const char *name)
{
    for (size_t i = 0; i < from->count; i++) {
        if (strcmp(from->names[i], name) == 0)
            return from->values[i];
    }
    return NULL;
}

uint64_t number_of(const struct line *from, const char *name, uint64_t otherwise)
{
    const char *text = text_of(from, name);
    return text ? strcmp(text, "unknown") == 0 ? TTD_UNKNOWN : strtoull(text, NULL, 0) : otherwise;
}

ttd_id id_of(const struct line *from, const char *name, ttd_id otherwise)
{
    return (ttd_id)number_of(from, name, otherwise);
}

struct ttd_position position_of(const struct line *from, const char *name)
{
    const char *text = text_of(from, name);
    struct ttd_position position = ttd_position_min();
    if (text && strcmp(text, "never") == 0)
        return ttd_position_invalid();
    if (text && !ttd_position_parse(text, &position))
        fail("not a position");
    return position;
}

size_t decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        unsigned byte;
        if (*from == '%' && sscanf(from + 1, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}

ttd_id string_id(const char *text)
{
    if (!text || !*text)
        return TTD_NONE;
    for (ttd_id i = 0; i < known_count; i++) {
        if (strcmp(known_strings[i], text) == 0)
            return i + 1;
    }
    char *copy = strdup(text);
    if (!copy || known_count == 65536)
        fail("too many strings");
    known_strings[known_count++] = strdup(text);
    size_t size = decode(copy);
    ttd_id id;
    check(ttd_writer_string(writer, copy, size, &id));
    free(copy);
    return id;
}
