/* SPDX-License-Identifier: MIT */
/** Lists of blocks, as they stand in an index. */
#ifndef ANALYZER_TRAVEL_BLOCK_LISTS_H
#define ANALYZER_TRAVEL_BLOCK_LISTS_H

#include <ttdtrace/writer.h>

#include "travel/index_check.h"
#include "heap/live.h"

/** Writes the records of an index or, where there is a check, compares them with those of one that
 * exists. */
struct heap_block_lister {
    struct ttd_writer *writer;
    /** NULL to write. */
    struct heap_index_check *check;
    /** Number of lists that were written. */
    uint32_t count;
};

/** Writes a state. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO; with a check, of any function
 * here, what heap_index_check_state() returns. */
enum ttd_status heap_list_state(struct heap_block_lister *lister, const struct ttd_state *state);

/** Writes a list of all live blocks. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO. */
enum ttd_status heap_list_live(struct heap_block_lister *lister, struct ttd_position position,
                               const struct heap_live *live);

/** Writes a list of `count` blocks, of addresses that differ. Statuses as heap_list_live(). */
enum ttd_status heap_list_blocks(struct heap_block_lister *lister, struct ttd_position position,
                                 const struct heap_block *blocks, size_t count);

#endif
