/* SPDX-License-Identifier: MIT */
/**
 * Tables of sums by call site. Views filter, merge and order the records of such a table without
 * knowing their unit.
 */
#ifndef ANALYZER_HEAP_SITE_TABLE_H
#define ANALYZER_HEAP_SITE_TABLE_H

#include "heap/heap_live.h"

/** The property that splits the sums of one stack. */
enum heap_split {
    HEAP_SPLIT_NONE,
    HEAP_SPLIT_THREAD,
    HEAP_SPLIT_HEAP,
    /** By the class of the size: 0, 1, 2 to 3, 4 to 7, … */
    HEAP_SPLIT_SIZE,
    /** By the class that heap_block_classes_get() returns; only groups are split so. */
    HEAP_SPLIT_CLASS
};

/** Identifies a record: a stack, and the property that it is split by. Every record begins with
 * its key. */
struct heap_key {
    ttd_id stack;
    ttd_id property;
};

/** Sets `is_wanted` to whether blocks allocated with a stack count. Any status but TTD_OK ends the
 * replay. */
typedef enum ttd_status (*heap_stack_filter)(void *context, ttd_id stack, bool *is_wanted);

/** The share of a record in a tree. Trees are ordered by `weight`. Sums saturate. */
struct heap_amount {
    uint64_t weight;
    uint64_t bytes;
    uint64_t count;
};

/** The records of sums that `owner` holds, as an array of unknown type. */
struct heap_site_table {
    void *owner;
    void *records;
    size_t *count;
    size_t size;
    void (*merge)(void *target, const void *source);
    /** For qsort(), the largest first. */
    int (*compare)(const void *a, const void *b);
    struct heap_amount (*amount_of)(const void *record);
    /** Computes the owner's totals again, from the records that are left. */
    void (*recount)(void *owner);
};

static inline struct heap_key *heap_site_record(const struct heap_site_table *sites, size_t index)
{
    return (struct heap_key *)(void *)((char *)sites->records + index * sites->size);
}

/** Adds, and saturates: sizes are as requested by the program, and may be nonsense. */
static inline uint64_t heap_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline struct heap_key heap_key_of(enum heap_split split, ttd_id stack, ttd_id thread,
                                          ttd_id heap)
{
    ttd_id property = split == HEAP_SPLIT_THREAD ? thread
                      : split == HEAP_SPLIT_HEAP ? heap
                                                 : TTD_NONE;
    return (struct heap_key){stack, property};
}

/** The largest class: a number has at most 64 binary digits. */
#define HEAP_CLASS_MAX 64

/** The class of a number is the count of its binary digits. */
static inline ttd_id heap_class_of(uint64_t number)
{
    return number ? (ttd_id)(64 - __builtin_clzll(number)) : 0;
}

/** The numbers of a class, both included. */
static inline void heap_class_range(ttd_id class, uint64_t *first, uint64_t *last)
{
    *first = class ? UINT64_C(1) << (class - 1) : 0;
    *last = class ? *first + (*first - 1) : 0;
}

/** The key of a block. */
static inline struct heap_key heap_key_of_block(enum heap_split split,
                                                const struct heap_block *block)
{
    if (split == HEAP_SPLIT_SIZE)
        return (struct heap_key){block->stack, heap_class_of(block->size)};
    return heap_key_of(split, block->stack, block->thread, block->heap);
}

/** Orders keys, for records that are equal otherwise. */
static inline int heap_key_compare(struct heap_key a, struct heap_key b)
{
    if (a.stack != b.stack)
        return a.stack > b.stack ? 1 : -1;
    return (a.property > b.property) - (a.property < b.property);
}

#endif
