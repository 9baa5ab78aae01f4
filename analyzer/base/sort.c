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
static void distribute(const struct sort_key *source, struct sort_key *target, size_t count,
                       unsigned shift)
{
    size_t starts[DIGITS] = {0};
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        starts[digit_of(&source[i], shift)]++;
    for (size_t i = 0; i < DIGITS; i++) {
        size_t start = starts[i];
        starts[i] = sum;
        sum += start;
    }
    for (size_t i = 0; i < count; i++)
        target[starts[digit_of(&source[i], shift)]++] = source[i];
}

void sort_keys(struct sort_key *keys, struct sort_key *spare, size_t count)
{
    uint64_t set_bits = 0;
    uint64_t common = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        set_bits |= keys[i].value;
        common &= keys[i].value;
    }
    uint64_t differing = count ? set_bits & ~common : 0;
    struct sort_key *source = keys;
    struct sort_key *target = spare;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!(differing >> shift & (DIGITS - 1)))
            continue;
        distribute(source, target, count, shift);
        struct sort_key *swap = source;
        source = target;
        target = swap;
    }
    if (source != keys)
        memcpy(keys, source, count * sizeof *keys);
}
