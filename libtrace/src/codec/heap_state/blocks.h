/* SPDX-License-Identifier: MIT */
/** Chunks of live blocks (spec, "Live blocks"), and the lists that they make up. */
#ifndef TTD_CODEC_HEAP_STATE_BLOCKS_H
#define TTD_CODEC_HEAP_STATE_BLOCKS_H

#include <ttdtrace/heap_state.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "layout.h"

/** The state of a check of lists, which may extend over several chunks (spec, "Live blocks"). */
struct ttd_list_state {
    enum ttd_block_list list;
    /** Number of the last list; 0 before the first. */
    uint32_t list_id;
    /** The list goes on in the next chunk of live blocks, unless it was cut short. */
    bool is_open;
    struct ttd_position position;
    /** Address and heap of the last block of the list; zeros before the first. */
    uint64_t address;
    ttd_id heap;
};

/** Whether a block can come after one of that address and heap in a list. */
static inline bool ttd_block_follows(const struct ttd_block *block, uint64_t address, ttd_id heap)
{
    return block->address > address ||
           (block->address == address && address != 0 && block->heap > heap);
}

/** Checks that a chunk continues its list, and updates the state. Returns a static description of
 * the first violation, or NULL. */
const char *ttd_list_take(struct ttd_list_state *state, const struct ttd_live_blocks *blocks);

/** Appends the payload; `columns` has one buffer per column. */
void ttd_encode_live_blocks(struct ttd_buffer *buffer, const struct ttd_live_blocks *blocks,
                            struct ttd_buffer columns[TTD_BLOCK_COLUMN_COUNT]);
/** Decodes the payload. `list->count` is set before the call, and `blocks` has room for as many. */
void ttd_decode_live_blocks(struct ttd_cursor *cursor, struct ttd_live_blocks *list,
                            struct ttd_block *blocks);

#endif
