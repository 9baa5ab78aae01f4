/* SPDX-License-Identifier: MIT */
/** Sorting numbers by radix. */
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

/** The largest record that sort_records() moves, in bytes. */
#define SORT_RECORD_MAX 256

/**
 * Moves each record to where its key is, once. The indexes of the keys are the places of the
 * records; then they are in order.
 *
 * @param size  of a record, in bytes; at most SORT_RECORD_MAX
 */
void sort_records(void *records, size_t size, struct sort_key *keys, size_t count);

#endif
