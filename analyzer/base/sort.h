/* SPDX-License-Identifier: MIT */
/** Sorting many numbers. */
#ifndef ANALYZER_BASE_SORT_H
#define ANALYZER_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

/** A number, and what it belongs to. */
struct sort_key {
    uint64_t value;
    uint32_t item;
};

/**
 * Sorts by value, in time that grows with `count` and not faster.
 *
 * @param spare  room for as many
 */
void sort_keys(struct sort_key *keys, struct sort_key *spare, size_t count);

#endif
