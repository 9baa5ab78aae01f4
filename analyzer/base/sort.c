/* SPDX-License-Identifier: MIT */
#include "base/sort.h"

#include <string.h>

#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

static unsigned digit_of(const struct sort_key *key, unsigned shift)
{
    return (unsigned)(key->value >> shift) & (DIGITS - 1);
}

/* Distributes the keys by one digit. Stable, so that passes from the lowest digit to the highest
 * sort by all. */
static void distribute(const struct sort_key *from, struct sort_key *to, size_t count,
                       unsigned shift)
{
    size_t starts[DIGITS] = {0};
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        starts[digit_of(&from[i], shift)]++;
    for (size_t i = 0; i < DIGITS; i++) {
        size_t start = starts[i];
        starts[i] = sum;
        sum += start;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[digit_of(&from[i], shift)]++] = from[i];
}

void sort_keys(struct sort_key *keys, struct sort_key *spare, size_t count)
{
    uint64_t ones = 0;
    uint64_t common = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        ones |= keys[i].value;
        common &= keys[i].value;
    }
    uint64_t differing = count ? ones & ~common : 0;
    struct sort_key *from = keys;
    struct sort_key *to = spare;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!(differing >> shift & (DIGITS - 1)))
            continue;
        distribute(from, to, count, shift);
        struct sort_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof *keys);
}
