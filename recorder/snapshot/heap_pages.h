/* SPDX-License-Identifier: MIT */
/**
 * The memory that has ever held a block of a process, in heap pages of 64 kB, whatever the system's
 * pages are: one bit each. A word of memory whose value lies outside of it is no pointer to a
 * block.
 */
#ifndef RECORDER_SNAPSHOT_HEAP_PAGES_H
#define RECORDER_SNAPSHOT_HEAP_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HEAP_PAGE_BITS = 16,
    HEAP_LEAF_BITS = 31, /* a leaf covers 2 GB */
    HEAP_ADDRESS_BITS = 47,
    HEAP_LEAF_WORDS = 1 << (HEAP_LEAF_BITS - HEAP_PAGE_BITS - 6),
    HEAP_LEAVES = 1 << (HEAP_ADDRESS_BITS - HEAP_LEAF_BITS),
    /** Leaves that are allocated, at most: 64 MB. Every heap page of a leaf beyond them counts as
       set. */
    HEAP_LEAVES_MAX = 16384,
};

#define HEAP_PAGE_SIZE (UINT64_C(1) << HEAP_PAGE_BITS)

struct heap_leaf {
    uint64_t bits[HEAP_LEAF_WORDS];
};

/** All zero when empty. */
struct heap_pages {
    struct heap_leaf **leaves; /* by address; NULL before the first block */
    uint32_t *used_leaves;     /* indexes of the leaves that are set */
    size_t used_count, used_capacity;
    size_t allocated;
    uint64_t low, high; /* all heap pages that are set lie in [low, high) */
};

void heap_pages_free(struct heap_pages *pages);

/** Forgets all blocks. */
void heap_pages_clear(struct heap_pages *pages);

/** Adds all that `added` has. */
void heap_pages_join(struct heap_pages *pages, const struct heap_pages *added);

/** Whether an address (any number) lies between the first and the last heap page that has held a
 * block. */
static inline bool heap_pages_enclose(const struct heap_pages *pages, uint64_t address)
{
    return address - pages->low < pages->high - pages->low;
}

/** Whether an address (any number) lies in a heap page that has held a block. */
static inline bool heap_pages_has(const struct heap_pages *pages, uint64_t address)
{
    if (!heap_pages_enclose(pages, address))
        return false;
    const struct heap_leaf *leaf = pages->leaves[address >> HEAP_LEAF_BITS];
    uint64_t page = address >> HEAP_PAGE_BITS;
    return leaf && leaf->bits[page / 64 % HEAP_LEAF_WORDS] >> page % 64 & 1;
}

/** Whether any heap page that has held a block touches [begin, end). */
bool heap_pages_touch(const struct heap_pages *pages, uint64_t begin, uint64_t end);

/** The cold path of heap_pages_add(). */
void heap_pages_add_new(struct heap_pages *pages, uint64_t address, uint64_t last);

/** Adds a block. Addresses that no program can have are ignored. */
static inline void heap_pages_add(struct heap_pages *pages, uint64_t address, uint64_t size)
{
    uint64_t last = address + size - (size != 0);
    if (!heap_pages_has(pages, address) || (address ^ last) >> HEAP_PAGE_BITS != 0)
        heap_pages_add_new(pages, address, last);
}

#endif
