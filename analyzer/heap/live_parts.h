/* SPDX-License-Identifier: MIT */
/** Internals of the table of live blocks. */
#ifndef ANALYZER_HEAP_LIVE_PARTS_H
#define ANALYZER_HEAP_LIVE_PARTS_H

#include "heap/live.h"

/** Makes a heap the one used last: a new block of it belongs to its generation. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_live_use(struct heap_live *live, ttd_id heap);

/** Forgets the block of a record that is stale. */
static inline void heap_live_discard(struct heap_live *live, struct heap_block *block)
{
    block->is_held = false;
    if (live->discard)
        live->discard(live->discard_context, block, live->generations[block->generation].end);
}

#endif
