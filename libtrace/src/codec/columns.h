/* SPDX-License-Identifier: MIT */
/** Kinds whose payload is in columns, but for events and stacks: live blocks, memory maps, pages.
 */
#ifndef TTD_CODEC_COLUMNS_H
#define TTD_CODEC_COLUMNS_H

#include <ttdtrace/model.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "layout.h"

/** State of the list of blocks that the chunks so far have begun (spec, "Live blocks"). */
struct ttd_list_state {
    enum ttd_block_list list;
    uint32_t list_id;
    /** The list goes on in the next chunk of live blocks, unless it was cut short. */
    bool is_open;
    struct ttd_position position;
    /** Last address of the list. */
    uint64_t address;
};

/** Checks that a chunk continues its list, and takes it in; returns what is wrong, or NULL. */
const char *ttd_list_take(struct ttd_list_state *state, const struct ttd_live_blocks *blocks);

/** Appends the payload (spec, "Live blocks"); `work` has one buffer per column. */
void ttd_encode_live_blocks(struct ttd_buffer *out, const struct ttd_live_blocks *blocks,
                            struct ttd_buffer work[TTD_BLOCK_COLUMN_COUNT]);
/** Reads all: `blocks` has room for list->count blocks, which is set before the call. */
void ttd_decode_live_blocks(struct ttd_cursor *in, struct ttd_live_blocks *list,
                            struct ttd_block *blocks);

/* spec, "Memory map"; as for live blocks. */
void ttd_encode_memory_map(struct ttd_buffer *out, const struct ttd_memory_map *map);
void ttd_decode_memory_map(struct ttd_cursor *in, struct ttd_memory_map *map,
                           struct ttd_memory_run *runs);

/* spec, "Pages"; count and first_page are in the header. */
void ttd_encode_pages(struct ttd_buffer *out, const struct ttd_pages *pages);
void ttd_decode_pages(struct ttd_cursor *in, struct ttd_pages *pages);
/** Whether the format allows pages of this size. */
bool ttd_page_size_is_valid(uint64_t size);

/** Splits a cursor that stands at `count` 32-bit lengths into as many columns, and finishes it. */
void ttd_split_columns(struct ttd_cursor *in, struct ttd_cursor *columns, size_t count);

#endif
