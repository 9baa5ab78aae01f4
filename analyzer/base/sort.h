/* SPDX-License-Identifier: MIT */
/** Sorting numbers by radix, and searching what is sorted. */
#ifndef ANALYZER_BASE_SORT_H
#define ANALYZER_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

/** A number, and the index of the record that it belongs to: 12 bytes. */
struct __attribute__((packed, aligned(4))) sort_key {
    uint64_t value;
    uint32_t index;
};

/**
 * Sorts by value, stably, in time proportional to `count`.
 *
 * @param spare  room for `count` keys
 */
void sort_keys(struct sort_key *keys, struct sort_key *spare, size_t count);

/**
 * Searches records in order: advances `LOW` to the first index in [LOW, HIGH) for which
 * `IS_BEFORE`, an expression of the index `MIDDLE`, is false; to `HIGH` if there is none. It must
 * be true up to one record, and false from there on. Changes `HIGH`.
 */
#define SEARCH_SORTED(LOW, HIGH, MIDDLE, IS_BEFORE)                                                \
    while ((LOW) < (HIGH)) {                                                                       \
        __typeof__(LOW) MIDDLE = (LOW) + ((HIGH) - (LOW)) / 2;                                     \
        if (IS_BEFORE)                                                                             \
            (LOW) = MIDDLE + 1;                                                                    \
        else                                                                                       \
            (HIGH) = MIDDLE;                                                                       \
    }

#endif
