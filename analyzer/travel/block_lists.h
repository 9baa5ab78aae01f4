/* SPDX-License-Identifier: MIT */
/** Writing the records of an index: states, and lists of live blocks. */
#ifndef ANALYZER_TRAVEL_BLOCK_LISTS_H
#define ANALYZER_TRAVEL_BLOCK_LISTS_H

#include <ttdtrace/writer.h>

#include "travel/index_check.h"
#include "heap/live.h"

/** Destination of the records of an index: a writer, or the comparison with an existing index. */
struct heap_block_lister {
    /** NULL with a check. */
    struct ttd_writer *writer;
    /** Compares each record instead of writing it; NULL to write. */
    struct heap_index_check *check;
    /** Number of lists written. */
    uint32_t count;
};

/**
 * Writes a state.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO; with a check, this function and the next two
 *         return what heap_index_check_state() does.
 */
enum ttd_status heap_list_state(struct heap_block_lister *lister, const struct ttd_state *state);

/** Writes a list of all live blocks. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO. */
enum ttd_status heap_list_live(struct heap_block_lister *lister, struct ttd_position position,
                               const struct heap_live *live);

/** Writes a list of `count` blocks, no two of which have the same address. Statuses as
 * heap_list_live(). */
enum ttd_status heap_list_blocks(struct heap_block_lister *lister, struct ttd_position position,
                                 const struct heap_block *blocks, size_t count);

#endif
