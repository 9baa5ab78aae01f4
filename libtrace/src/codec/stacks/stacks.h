/* SPDX-License-Identifier: MIT */
/** Chunks of stacks (spec, "Stacks"): encoder, decoder, and a check that decodes none. */
#ifndef TTD_CODEC_STACKS_STACKS_H
#define TTD_CODEC_STACKS_STACKS_H

#include <ttdtrace/model.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/map.h"
#include "layout.h"

/** A frame of a chunk's table. */
struct ttd_stack_frame {
    ttd_id module;
    uint64_t offset;
};

/** The table of frames of a chunk, in order of first use. Stacks refer to frames by their index. */
struct ttd_stack_table {
    struct ttd_stack_frame *frames;
    size_t count;
    size_t capacity;
    /** Offset of the newest frame; 0 before the first. */
    uint64_t last_offset;
};

/** Adds a frame. False without memory. */
bool ttd_stack_table_add(struct ttd_stack_table *table, const struct ttd_allocator *allocator,
                         struct ttd_stack_frame frame);

/** Empties the table, and keeps its memory. */
static inline void ttd_stack_table_clear(struct ttd_stack_table *table)
{
    table->count = 0;
    table->last_offset = 0;
}

/** Collects the stacks of one chunk (spec, "Stacks"). */
struct ttd_stacks_encoder {
    struct ttd_buffer columns[TTD_STACK_COLUMN_COUNT];
    struct ttd_map frame_map;
    struct ttd_stack_table table;
    const struct ttd_allocator *allocator;
};

void ttd_stacks_encoder_init(struct ttd_stacks_encoder *encoder,
                             const struct ttd_allocator *allocator);
void ttd_stacks_encoder_free(struct ttd_stacks_encoder *encoder);
void ttd_stacks_encoder_clear(struct ttd_stacks_encoder *encoder);
/** Adds a stack. False without memory. */
bool ttd_stacks_encoder_add(struct ttd_stacks_encoder *encoder, const struct ttd_stack *stack);
/** Returns the size of the payload so far, in bytes. */
size_t ttd_stacks_encoder_size(const struct ttd_stacks_encoder *encoder);
/** Appends the payload. */
void ttd_stacks_encoder_finish(struct ttd_stacks_encoder *encoder, struct ttd_buffer *buffer);

/** A stack as a chunk stores it. */
struct ttd_stack_link {
    /** Difference of the stack's id and its parent's; 0 for no parent. */
    uint32_t back;
    /** Index of the frame in the table. */
    uint32_t frame;
};

/** Decodes the stacks of one chunk. */
struct ttd_stacks_decoder {
    struct ttd_cursor columns[TTD_STACK_COLUMN_COUNT];
    struct ttd_stack_table table;
    ttd_id next_id;
    const struct ttd_allocator *allocator;
};

void ttd_stacks_decoder_init(struct ttd_stacks_decoder *decoder,
                             const struct ttd_allocator *allocator);
void ttd_stacks_decoder_free(struct ttd_stacks_decoder *decoder);
/** Begins a chunk; errors are left in the cursor. */
void ttd_stacks_decoder_begin(struct ttd_stacks_decoder *decoder, struct ttd_cursor *payload,
                              ttd_id first_id);
/** Decodes the next `count` stacks. Sets `what` to a static description of the first violation, or
 * NULL. Returns false if memory is exhausted. */
bool ttd_stacks_decoder_next(struct ttd_stacks_decoder *decoder, struct ttd_stack_link *links,
                             size_t count, const char **what);
/** Returns the stack that a decoded link stands for. */
static inline struct ttd_stack ttd_stacks_decoder_stack(const struct ttd_stacks_decoder *decoder,
                                                        ttd_id id, struct ttd_stack_link link)
{
    const struct ttd_stack_frame *frame = &decoder->table.frames[link.frame];
    return (struct ttd_stack){id, link.back ? id - link.back : TTD_NONE, frame->module,
                              frame->offset};
}
/**
 * Checks all stacks of a chunk without decoding them. The chunk was begun, and none of its stacks
 * decoded.
 *
 * @param module_max  the last module that is defined
 * @param depths      depths of stacks by id: entries before the chunk are set, and the entries of
 * its `count` stacks are set here, as far as they were checked
 * @return whether the chunk can be decoded, its modules are defined and no stack is too deep
 */
bool ttd_stacks_decoder_accepts(const struct ttd_stacks_decoder *decoder, size_t count,
                                ttd_id module_max, uint16_t *depths);
/** Ends a chunk. Returns a description of the first error, or NULL. */
const char *ttd_stacks_decoder_finish(struct ttd_stacks_decoder *decoder);

#endif
