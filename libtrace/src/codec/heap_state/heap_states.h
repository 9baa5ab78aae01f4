/* SPDX-License-Identifier: MIT */
/** Live blocks, pages, memory maps, and records of derived files: states of the heap, and sums. */
#ifndef TTD_CODEC_HEAP_STATE_HEAP_STATES_H
#define TTD_CODEC_HEAP_STATE_HEAP_STATES_H

#include <ttdtrace/heap_state.h>
#include <ttdtrace/model.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "layout.h"

/* Chunks of live blocks (spec, "Live blocks"), and the lists that they make up. */

/** The state of a check of lists; they may extend over several chunks (spec, "Live blocks"). */
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

void ttd_encode_state(struct ttd_buffer *buffer, const struct ttd_state *state);
void ttd_decode_state(struct ttd_cursor *cursor, struct ttd_state *state);
/** Validates the values of a state. Returns a static description of the first violation, or NULL.
 */
const char *ttd_check_state(const struct ttd_state *state);

void ttd_encode_sum(struct ttd_buffer *buffer, const struct ttd_sum *sum);
void ttd_decode_sum(struct ttd_cursor *cursor, struct ttd_sum *sum);
/** Validates the values of a sum. Returns a static description of the first violation, or NULL. */
const char *ttd_check_sum(const struct ttd_sum *sum);

/* Chunks of a memory map (spec, "Memory map"). */

/* Chunks of pages (spec, "Pages"). Their count and first_page are in the chunk's header. */

/** Appends the payload. */
void ttd_encode_pages(struct ttd_buffer *buffer, const struct ttd_pages *pages);
/** Decodes the payload; `pages->data` then points into it. `count` and `first_page` are set before
 * the call. */
void ttd_decode_pages(struct ttd_cursor *cursor, struct ttd_pages *pages);
/** Whether the format allows pages of this size in bytes. */
bool ttd_page_size_is_valid(uint64_t size);

/** Appends the payload. The runs are valid and in the order of addresses. */
void ttd_encode_memory_map(struct ttd_buffer *buffer, const struct ttd_memory_map *map);
/** Decodes the payload. `map->count` is set before the call, and `runs` has room for as many. */
void ttd_decode_memory_map(struct ttd_cursor *cursor, struct ttd_memory_map *map,
                           struct ttd_memory_run *runs);

#endif
