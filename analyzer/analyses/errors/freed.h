/* SPDX-License-Identifier: MIT */
/**
 * The blocks released last, by address and heap. It has a fixed number of entries: the oldest give
 * way. An address that is allocated again by the same heap is no longer in it.
 */
#ifndef ANALYZER_ANALYSES_ERRORS_FREED_H
#define ANALYZER_ANALYSES_ERRORS_FREED_H

#include "heap/call.h"

/** Entries unless told otherwise: about 32 MiB. */
#define HEAP_FREED_DEFAULT (UINT32_C(1) << 18)
#define HEAP_FREED_MAX     (UINT32_C(1) << 26)

struct heap_freed_block {
    /** 0: unused. */
    uint64_t address;
    uint64_t size;
    ttd_id heap;
    /** Unknown if the block was allocated before recording began. */
    struct heap_call allocated;
    struct heap_call released;
    uint32_t next;
};

struct heap_freed {
    struct heap_freed_block *records;
    /** First entry of each chain. */
    uint32_t *heads;
    uint32_t capacity;
    uint32_t mask;
    /** Index of the next entry to overwrite: the entries are a ring. */
    uint32_t position;
    /** Number of entries that were overwritten. */
    uint64_t forgotten;
    struct hash_key key;
};

/** @param capacity from 1 to HEAP_FREED_MAX. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_freed_init(struct heap_freed *freed, uint32_t capacity);
void heap_freed_free(struct heap_freed *freed);

/** Adds a block that is not in the table; `block` has all but `next`. */
void heap_freed_add(struct heap_freed *freed, const struct heap_freed_block *block);

/** The entry of an address and heap, or NULL; valid until the next change. Heap TTD_NONE may be
 * any. */
struct heap_freed_block *heap_freed_find(const struct heap_freed *freed, uint64_t address,
                                         ttd_id heap);

/**
 * The entry of the block released last of those that had `address` inside, or NULL. Looks at every
 * entry; valid until the next change.
 */
const struct heap_freed_block *heap_freed_containing(const struct heap_freed *freed,
                                                     uint64_t address);

/** Removes the entry that heap_freed_find() returns, if there is one. */
void heap_freed_remove(struct heap_freed *freed, uint64_t address, ttd_id heap);

#endif
