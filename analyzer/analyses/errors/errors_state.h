/* SPDX-License-Identifier: MIT */
/** The status of heaps: whether each is destroyed or read-only, and which threads have locked it.
 */
#ifndef ANALYZER_ANALYSES_ERRORS_ERRORS_STATE_H
#define ANALYZER_ANALYSES_ERRORS_ERRORS_STATE_H

#include "heap/call.h"

/*
 * A table of the blocks released last, by address and heap. It has a fixed number of entries, and a
 * new entry replaces the oldest. When a heap allocates an address again, the entry is removed.
 */

/** Default number of entries, which take about 29 MiB. */
#define HEAP_FREED_DEFAULT (UINT32_C(1) << 18)
#define HEAP_FREED_MAX     (UINT32_C(1) << 26)

/** The key of an entry, and its link in the chain of a hash. */
struct heap_freed_key {
    /** 0 in an unused entry. */
    uint64_t address;
    ttd_id heap;
    /** The next entry of the same chain. */
    uint32_t next;
};

struct heap_freed_block {
    uint64_t address;
    uint64_t size;
    ttd_id heap;
    /** Unknown if the block was allocated before recording began. */
    struct heap_call allocated;
    struct heap_call released;
};

struct heap_freed {
    /** The entries. Their keys are apart: most entries are added and removed, which touches nothing
     * but keys of those before. */
    struct heap_freed_key *keys;
    struct heap_freed_block *records;
    /** The first entry of each chain, by hash of address and heap. */
    uint32_t *heads;
    uint32_t capacity;
    uint32_t mask;
    /** Index of the entry that is replaced next: the entries are a ring. */
    uint32_t position;
    /** Number of entries that were replaced while in use. */
    uint64_t forgotten;
    struct hash_key key;
};

/** @param capacity from 1 to HEAP_FREED_MAX. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_freed_init(struct heap_freed *freed, uint32_t capacity);
void heap_freed_free(struct heap_freed *freed);

/** Adds the entry of a block that is not in the table. Returns it, for the caller to fill. */
struct heap_freed_block *heap_freed_add(struct heap_freed *freed, uint64_t address, ttd_id heap);

/** Returns the entry of an address and heap, or NULL; valid until the next change. Heap TTD_NONE,
 * as an argument or in an entry, matches any heap. */
struct heap_freed_block *heap_freed_find(const struct heap_freed *freed, uint64_t address,
                                         ttd_id heap);

/**
 * Returns the entry of the block that was released last among those that contained `address`, or
 * NULL; valid until the next change. Looks at every entry.
 */
const struct heap_freed_block *heap_freed_containing(const struct heap_freed *freed,
                                                     uint64_t address);

/** Prefetch the key of an address that is acquired or released soon: the head of its chain, and
 * some time later the first key in it. Always inlined, because gcc removes calls of a function that
 * does nothing but prefetch. */
static inline __attribute__((always_inline)) void
heap_freed_prefetch_head(const struct heap_freed *freed, uint64_t address)
{
    __builtin_prefetch(&freed->heads[hash_value(freed->key, address) & freed->mask], 1);
}

static inline __attribute__((always_inline)) void
heap_freed_prefetch_key(const struct heap_freed *freed, uint64_t address)
{
    uint32_t index = freed->heads[hash_value(freed->key, address) & freed->mask];
    if (index < freed->capacity)
        __builtin_prefetch(&freed->keys[index], 1);
}

/** Removes the entry that heap_freed_find() returns, if there is one. */
void heap_freed_remove(struct heap_freed *freed, uint64_t address, ttd_id heap);

struct heap_status {
    ttd_id heap;
    struct heap_call destroyed;
    struct heap_call read_only;
    /** Number of times that the heap was created. Locks of an earlier generation are void. */
    uint64_t generation;
    /** Ends of a list of the locks held in this generation, the oldest first: indices of
     * heap_status_table.holds, or HEAP_NO_HOLD. */
    uint32_t first_hold;
    uint32_t last_hold;
};

#define HEAP_NO_HOLD UINT32_MAX

/** The nested locks of one thread on one heap. */
struct heap_hold {
    ttd_id heap;
    uint64_t generation;
    /** Number of Lock calls without an Unlock. */
    uint64_t depth;
    /** The outermost Lock. */
    struct heap_call locked;
    /** The previous and the next hold in the list of the heap. */
    uint32_t before;
    uint32_t after;
};

struct heap_status_table {
    struct heap_status *statuses;
    size_t count;
    size_t capacity;
    struct hash_map by_heap;
    struct heap_hold *holds;
    size_t hold_count;
    size_t hold_capacity;
    struct hash_map by_thread;
};

void heap_status_table_init(struct heap_status_table *statuses);
void heap_status_table_free(struct heap_status_table *statuses);

/** Returns the status of a heap, or NULL if no event has changed it; valid until the next change.
 */
const struct heap_status *heap_status_table_of(const struct heap_status_table *statuses,
                                               ttd_id heap);

/** Applies a successful Create, Destroy or Protect. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_status_table_change(struct heap_status_table *statuses,
                                         const struct ttd_event *event);

/** Applies a successful Lock. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_status_table_lock(struct heap_status_table *statuses,
                                       const struct ttd_event *event);

/** Applies an Unlock. Returns false if the thread holds no lock of the heap. */
bool heap_status_table_unlock(struct heap_status_table *statuses, const struct ttd_event *event);

/** Returns the oldest lock on the heap that any thread holds, or NULL. */
const struct heap_hold *heap_status_table_held(const struct heap_status_table *statuses,
                                               ttd_id heap);

/** Whether a hold is of the heap's present generation and still locked. */
bool heap_hold_is_active(const struct heap_status_table *statuses, const struct heap_hold *hold);

#endif
