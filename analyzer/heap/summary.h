/* SPDX-License-Identifier: MIT */
/**
 * Making summaries: see heap_keyframe. Sums of all live blocks are carried from one to the next, so
 * that each takes time by what has changed, and hardly more.
 */
#ifndef ANALYZER_HEAP_SUMMARY_H
#define ANALYZER_HEAP_SUMMARY_H

#include "heap/lists.h"
#include "heap/records.h"

typedef struct heap_summary {
    /** Whether one is being made; the others hold if so. */
    bool is_open;
    heap_keyframe begin;
    /** Of all blocks that were live when it began. */
    heap_tables sums;
    /** For the record of each of them, the index in sums.by[HEAP_BY_STACK] of its group. */
    uint32_t *places;
    size_t place_count;
    size_t place_capacity;
} heap_summary;

/**
 * Starts one at the replay's position, where no call is in flight and a block is live.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
ttd_status heap_summary_begin(heap_summary *summary, heap_replay *replay);

/**
 * Ends it where no call is in flight, if there is one, and writes it; but nothing if a heap was
 * destroyed meanwhile, or sums went over the top. The next begins here, or it is to be closed.
 *
 * @param end      what is replayed from here on is at this position or after
 * @param written  set to whether it was written
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
ttd_status heap_summary_end(heap_summary *summary, const heap_replay *replay, ttd_position end,
                            heap_lister *lister, bool *written);
void heap_summary_close(heap_summary *summary);

#endif
