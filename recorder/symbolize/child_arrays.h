/* SPDX-License-Identifier: MIT */
/**
 * Arrays of the child process: they grow, and address ranges in them are searched. The process is
 * expendable: running out of memory ends it.
 */
#ifndef RECORDER_SYMBOLIZE_CHILD_ARRAYS_H
#define RECORDER_SYMBOLIZE_CHILD_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

/** Returns `count` zeroed elements, never NULL: ends the process if memory runs out. */
void *grow_new(size_t count, size_t size);

/**
 * Makes room for one more than `count` elements in an array of `*capacity` elements (NULL if that
 * is 0). Returns the array (it may have moved); ends the process if memory runs out.
 */
void *grow_by_one(void *array, size_t *capacity, size_t count, size_t size);

#define SPAN_NONE UINT32_MAX

/** The range [begin, end); `index` is for the owner's use. */
struct span {
    uint64_t begin;
    uint64_t end;
    uint32_t index;
};

/** Sorts by begin; among spans with the same begin, the longest comes first. */
void spans_sort(struct span *spans, size_t count);

/**
 * Finds the index of the last span that holds each address, or SPAN_NONE.
 *
 * @param spans      ascending by begin; they may overlap.
 * @param addresses  ascending.
 * @param innermost  one for each address.
 */
void spans_find(const struct span *spans, size_t count, const uint64_t *addresses,
                size_t address_count, uint32_t *innermost);

/** Returns the index of the first of ascending addresses not below `address`, or `count`. */
size_t addresses_from(const uint64_t *addresses, size_t count, uint64_t address);

#endif
