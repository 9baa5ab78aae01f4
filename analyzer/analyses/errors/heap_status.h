/* SPDX-License-Identifier: MIT */
/** The status of each heap: destroyed, read-only, locked by which threads. */
#ifndef ANALYZER_ANALYSES_ERRORS_HEAP_STATUS_H
#define ANALYZER_ANALYSES_ERRORS_HEAP_STATUS_H

#include "heap/call.h"

struct heap_status {
    ttd_id heap;
    struct heap_call destroyed;
    struct heap_call read_only;
    /** Counts the heap's lives: locks of an earlier one are void. */
    uint64_t generation;
    /** Locks of this life that are held, the oldest first: indices of holds, or HEAP_NO_HOLD. */
    uint32_t first_hold;
    uint32_t last_hold;
};

#define HEAP_NO_HOLD UINT32_MAX

/** Locks of a heap that a thread holds. */
struct heap_hold {
    ttd_id heap;
    uint64_t generation;
    uint64_t depth;
    /** The outermost Lock. */
    struct heap_call locked;
    /** Beside it in the list of its heap, while it is active. */
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

/** The status of a heap, or NULL if nothing is known of it. Valid until the next change. */
const struct heap_status *heap_status_table_of(const struct heap_status_table *statuses,
                                               ttd_id heap);

/** Takes note of a successful Create, Destroy or Protect. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_status_table_change(struct heap_status_table *statuses,
                                         const struct ttd_event *event);

/** Takes note of a successful Lock. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_status_table_lock(struct heap_status_table *statuses,
                                       const struct ttd_event *event);

/** Takes note of an Unlock; false if the thread holds no lock of the heap. */
bool heap_status_table_unlock(struct heap_status_table *statuses, const struct ttd_event *event);

/** The oldest lock of the heap that any thread holds, or NULL. */
const struct heap_hold *heap_status_table_held(const struct heap_status_table *statuses,
                                               ttd_id heap);

/** Whether a hold is of the heap's present life and not yet undone. */
bool heap_hold_is_active(const struct heap_status_table *statuses, const struct heap_hold *hold);

#endif
