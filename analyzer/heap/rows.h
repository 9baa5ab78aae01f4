/* SPDX-License-Identifier: MIT */
/**
 * Rows of sums by call site, whatever it is that they count: what views need to know of them to
 * filter, merge and order them.
 */
#ifndef ANALYZER_HEAP_ROWS_H
#define ANALYZER_HEAP_ROWS_H

#include "heap/live.h"

/** What sums are told apart by, beside the stack. */
enum heap_split {
    HEAP_SPLIT_NONE,
    HEAP_SPLIT_THREAD,
    HEAP_SPLIT_HEAP,
    /** By the class of the size: 0, 1, 2 to 3, 4 to 7, … */
    HEAP_SPLIT_SIZE
};

/** What a row is about: a stack, and what it is split by. Every row begins with it. */
struct heap_key {
    ttd_id stack;
    ttd_id other;
};

/** What a row weighs in a tree; `weight` is what trees are ordered by. Sums stop at the top. */
struct heap_amount {
    uint64_t weight;
    uint64_t bytes;
    uint64_t count;
};

/** An array of rows that belongs to `owner`. */
struct heap_rows {
    void *owner;
    void *items;
    size_t *count;
    size_t size;
    void (*merge)(void *into, const void *from);
    /** For qsort(), the largest first. */
    int (*compare)(const void *a, const void *b);
    struct heap_amount (*amount)(const void *item);
    /** Makes the owner's totals those of the rows that are left. */
    void (*recount)(void *owner);
};

static inline struct heap_key *heap_row(const struct heap_rows *rows, size_t index)
{
    return (struct heap_key *)(void *)((char *)rows->items + index * rows->size);
}

/** Sizes are what the program asked for, which may be nonsense: sums stop at the top. */
static inline uint64_t heap_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline struct heap_key heap_key_of(enum heap_split split, ttd_id stack, ttd_id thread,
                                          ttd_id heap)
{
    ttd_id other = split == HEAP_SPLIT_THREAD ? thread : split == HEAP_SPLIT_HEAP ? heap : TTD_NONE;
    return (struct heap_key){stack, other};
}

/** The largest class: no number has more digits. */
#define HEAP_CLASS_MAX 64

/** The class of a number: how many binary digits it has. */
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

/** Orders keys, for rows that are equal otherwise. */
int heap_key_compare(struct heap_key a, struct heap_key b);

#endif
