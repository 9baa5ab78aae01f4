/* SPDX-License-Identifier: MIT */
#include "base/sort.h"

#include <assert.h>
#include <string.h>

#include "base/task.h"

#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

static unsigned sort_digit(const struct sort_key *key, unsigned shift)
{
    return (unsigned)(key->value >> shift) & (DIGITS - 1);
}

/* How one half of the keys is distributed. */
struct distribution {
    const struct sort_key *source;
    struct sort_key *target;
    unsigned shift;
    /* By digit: how many keys have it, then where the next of them goes. */
    size_t places[DIGITS];
};

static enum ttd_status sort_count_digits(void *context, size_t begin, size_t end)
{
    struct distribution *half = context;
    for (size_t i = begin; i < end; i++)
        half->places[sort_digit(&half->source[i], half->shift)]++;
    return TTD_OK;
}

static enum ttd_status sort_move_keys(void *context, size_t begin, size_t end)
{
    struct distribution *half = context;
    for (size_t i = begin; i < end; i++)
        half->target[half->places[sort_digit(&half->source[i], half->shift)]++] = half->source[i];
    return TTD_OK;
}

/* Turns how many keys have a digit into where the first of them goes. */
static void sort_find_places(struct distribution *first, struct distribution *second)
{
    size_t sum = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        size_t count = first->places[i];
        first->places[i] = sum;
        sum += count;
        count = second->places[i];
        second->places[i] = sum;
        sum += count;
    }
}

/* Distributes the keys by one digit. Stable, so that passes from the lowest digit to the highest
 * sort by all. */
static void sort_distribute(const struct sort_key *source, struct sort_key *target, size_t count,
                            unsigned shift)
{
    struct distribution first = {.source = source, .target = target, .shift = shift};
    struct distribution second = first;
    (void)halves_do(sort_count_digits, &first, &second, count);
    sort_find_places(&first, &second);
    (void)halves_do(sort_move_keys, &first, &second, count);
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
        sort_distribute(source, target, count, shift);
        struct sort_key *swap = source;
        source = target;
        target = swap;
    }
    if (source != keys)
        memcpy(keys, source, count * sizeof *keys);
}

/* Largest size of a record. */

/* Distance of prefetching, in records. */
#define AHEAD 8

/* Moves the records of a cycle, each to where the one before it in the cycle was. */
static void sort_move_cycle(char *records, size_t size, struct sort_key *keys, size_t first)
{
    char record[SORT_RECORD_MAX];
    size_t target = first;
    size_t ahead = first;
    for (int i = 0; i < AHEAD; i++)
        ahead = keys[ahead].index;
    memcpy(record, records + first * size, size);
    for (size_t source; (source = keys[target].index) != first; target = source) {
        keys[target].index = (uint32_t)target;
        memcpy(records + target * size, records + source * size, size);
        ahead = keys[ahead].index;
        __builtin_prefetch(records + ahead * size, 1);
        __builtin_prefetch(records + (ahead + 1) * size - 1, 1);
    }
    keys[target].index = (uint32_t)target;
    memcpy(records + target * size, record, size);
}

void sort_records(void *records, size_t size, struct sort_key *keys, size_t count)
{
    assert(size <= SORT_RECORD_MAX);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].index != i)
            sort_move_cycle(records, size, keys, i);
    }
}
