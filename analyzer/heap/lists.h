/* SPDX-License-Identifier: MIT */
/** Lists of blocks, as they stand in an index. */
#ifndef ANALYZER_HEAP_LISTS_H
#define ANALYZER_HEAP_LISTS_H

#include <ttdtrace/writer.h>

#include "heap/live.h"

/** Room for the list of a keyframe while it is written. */
typedef struct heap_lister {
    ttd_writer *writer;
    /** How many lists were written. */
    uint32_t count;
} heap_lister;

/** Writes a list of all live blocks. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO. */
ttd_status heap_list_live(heap_lister *lister, ttd_position position, const heap_live *live);

/** Writes a list of `count` blocks, of addresses that differ. Statuses as heap_list_live(). */
ttd_status heap_list_blocks(heap_lister *lister, ttd_position position, const heap_block *blocks,
                            size_t count);

#endif
