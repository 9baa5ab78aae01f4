/* SPDX-License-Identifier: MIT */
/** Kinds whose payload is in columns, but for events: stacks, live blocks, memory maps, pages. */
#ifndef TTD_CODEC_COLUMNS_H
#define TTD_CODEC_COLUMNS_H

#include <ttdtrace/model.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/map.h"
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

/** A frame of a chunk's table. */
struct ttd_stack_frame {
    ttd_id module;
    uint64_t offset;
};

/** Collects the stacks of one chunk (spec, "Stacks"). */
struct ttd_stacks_encoder {
    struct ttd_buffer columns[TTD_STACK_COLUMN_COUNT];
    struct ttd_map frame_map;
    struct ttd_stack_frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    uint64_t last_offset;
    const struct ttd_allocator *allocator;
};

void ttd_stacks_encoder_init(struct ttd_stacks_encoder *encoder,
                             const struct ttd_allocator *allocator);
void ttd_stacks_encoder_free(struct ttd_stacks_encoder *encoder);
void ttd_stacks_encoder_clear(struct ttd_stacks_encoder *encoder);
/** Adds a stack. False without memory. */
bool ttd_stacks_encoder_add(struct ttd_stacks_encoder *encoder, const struct ttd_stack *stack);
/** Bytes of payload so far. */
size_t ttd_stacks_encoder_size(const struct ttd_stacks_encoder *encoder);
/** Appends the payload. */
void ttd_stacks_encoder_finish(struct ttd_stacks_encoder *encoder, struct ttd_buffer *out);

/** A stack of a chunk, in brief. */
struct ttd_stack_link {
    /** How much less the parent's id is; 0 for none. */
    uint32_t back;
    /** Index of the frame in the table. */
    uint32_t frame;
};

/** Goes through the stacks of one chunk. */
struct ttd_stacks_decoder {
    struct ttd_cursor columns[TTD_STACK_COLUMN_COUNT];
    struct ttd_stack_frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    uint64_t last_offset;
    ttd_id next_id;
    const struct ttd_allocator *allocator;
};

void ttd_stacks_decoder_init(struct ttd_stacks_decoder *decoder,
                             const struct ttd_allocator *allocator);
void ttd_stacks_decoder_free(struct ttd_stacks_decoder *decoder);
/** Begins a chunk; errors are in the cursor. */
void ttd_stacks_decoder_begin(struct ttd_stacks_decoder *decoder, struct ttd_cursor *payload,
                              ttd_id first_id);
/** The next `count` stacks; NULL or what is wrong. False without memory. */
bool ttd_stacks_decoder_next(struct ttd_stacks_decoder *decoder, struct ttd_stack_link *links,
                             size_t count, const char **what);
/** The whole of a stack that was decoded. */
static inline struct ttd_stack ttd_stacks_decoder_stack(const struct ttd_stacks_decoder *decoder,
                                                        ttd_id id, struct ttd_stack_link link)
{
    const struct ttd_stack_frame *frame = &decoder->frames[link.frame];
    return (struct ttd_stack){id, link.back ? id - link.back : TTD_NONE, frame->module,
                              frame->offset};
}
/**
 * Checks all stacks of a chunk that was begun and of which none was decoded, and decodes none.
 *
 * @param module_max  the last module that is defined
 * @param depths      depths of stacks by id; of those before the chunk on entry, and room for the
 *                    `count` of the chunk, which are set as far as they were checked
 * @return whether the chunk decodes, its modules are defined and no stack is too deep.
 */
bool ttd_stacks_decoder_accepts(const struct ttd_stacks_decoder *decoder, size_t count,
                                ttd_id module_max, uint16_t *depths);
/** What is wrong at the end; NULL if nothing. */
const char *ttd_stacks_decoder_finish(struct ttd_stacks_decoder *decoder);

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
