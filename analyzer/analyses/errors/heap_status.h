/* SPDX-License-Identifier: MIT */
/** The status of heaps: whether each is destroyed or read-only, and which threads have locked it.
 */
#ifndef ANALYZER_ANALYSES_ERRORS_HEAP_STATUS_H
#define ANALYZER_ANALYSES_ERRORS_HEAP_STATUS_H

#include "heap/call.h"

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
