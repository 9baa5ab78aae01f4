/* SPDX-License-Identifier: MIT */
#include "symbols/demangle.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle_long.h"

/* Names that are demangled at once: the demangler's use of stack grows with their length. */
#define SHORT_NAME_MAX 1024
#define SHORT_TEXT_MAX 4096

#define PARAMETERS_TRIED_MAX 8

/* Bytes of a name that stands for one that cannot be demangled, without its end. */
#define LEADING_MAX 1024

void demangler_free(struct demangler *demangler)
{
    demangle_process_end(&demangler->process);
    free(demangler->text);
    *demangler = (struct demangler){.long_bytes = 0};
}

static void leading_add(char *text, size_t *size, const char *part, size_t part_size)
{
    if (part_size > LEADING_MAX - *size)
        part_size = LEADING_MAX - *size;
    memcpy(text + *size, part, part_size);
    *size += part_size;
}

/* Copies an identifier, which its length precedes; NULL if there is none. */
static const char *leading_identifier(const char *next, const char *end, char *text, size_t *size)
{
    size_t length = 0;
    while (next < end && *next >= '0' && *next <= '9' && length < (size_t)(end - next))
        length = length * 10 + (size_t)(*next++ - '0');
    if (!length || length > (size_t)(end - next))
        return NULL;
    if (*size)
        leading_add(text, size, "::", 2);
    leading_add(text, size, next, length);
    return next + length;
}

/* Writes the part of a mangled name before its first template arguments, and the hash of the
 * whole: other names may begin alike. */
static size_t leading_name(struct ttd_string name, char *text)
{
    const char *next = name.data + 2, *end = name.data + name.size;
    size_t size = 0;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * UINT64_C(0x100000001b3);
    bool is_nested = next < end && *next == 'N';
    next += is_nested;
    while (next < end && memchr("rVKROL", *next, 6))
        next++;
    if (end - next > 2 && memcmp(next, "St", 2) == 0) {
        leading_add(text, &size, "std", 3);
        next += 2;
    }
    for (const char *after = next; after; next = after ? after : next)
        after = leading_identifier(next, end, text, &size);
    if (!size)
        leading_add(text, &size, name.data, name.size);
    else if (next < end && *next == 'I')
        leading_add(text, &size, "<…>", strlen("<…>"));
    return size + (size_t)sprintf(text + size, "%s… [%08x]", is_nested ? "::" : "",
                                  (unsigned)(hash ^ hash >> 32));
}

/* Whether a name may take the demangler exponential time: it tries twice what may be the template
 * arguments of a parameter in the type of a conversion. */
static bool is_slow(struct ttd_string name)
{
    size_t count = 0;
    const char *end = name.data + name.size;
    if (!memmem(name.data, name.size, "cv", 2))
        return false;
    for (const char *next = name.data; (next = memchr(next, 'T', (size_t)(end - next)));) {
        next++;
        next += strspn(next, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        count += next[0] == '_' && next[1] == 'I';
    }
    return count > PARAMETERS_TRIED_MAX;
}

static size_t demangle_in_process(struct demangler *demangler, struct ttd_string name)
{
    size_t limit = demangler->long_bytes < DEMANGLE_MANY_BYTES ? DEMANGLE_MAX : DEMANGLE_MANY_MAX;
    size_t size = demangle_process_find(&demangler->process, name, demangler->text, limit);
    if (!size)
        size = leading_name(name, demangler->text);
    demangler->long_bytes += size;
    return size;
}

struct ttd_string demangler_find(struct demangler *demangler, struct ttd_string name)
{
    const struct ttd_string none = {"", 0};
    /* The demangler takes C strings: a name with a NUL stays as it is. */
    if (name.size < 3 || name.data[0] != '_' || (name.data[1] != 'Z' && name.data[1] != 'R') ||
        memchr(name.data, 0, name.size))
        return none;
    if (!demangler->text)
        demangler->text = malloc(DEMANGLE_MAX + 1);
    if (!demangler->text)
        return none;
    size_t size = SHORT_TEXT_MAX + 1;
    if (name.size <= SHORT_NAME_MAX && !is_slow(name))
        size = demangle_plain(name.data, 0, demangler->text, SHORT_TEXT_MAX);
    if (size > SHORT_TEXT_MAX)
        size = demangle_in_process(demangler, name);
    return (struct ttd_string){demangler->text, size};
}
