/* SPDX-License-Identifier: MIT */
#include "codec/stacks/stacks.h"

#include <string.h>

#include "base/memory.h"

void ttd_stacks_encoder_init(struct ttd_stacks_encoder *encoder,
                             const struct ttd_allocator *allocator)
{
    memset(encoder, 0, sizeof *encoder);
    encoder->allocator = allocator;
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_init(&encoder->columns[i], allocator);
    ttd_map_init(&encoder->frame_map, allocator);
}

void ttd_stacks_encoder_free(struct ttd_stacks_encoder *encoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_free(&encoder->columns[i]);
    ttd_map_free(&encoder->frame_map);
    ttd_release(encoder->allocator, encoder->table.frames);
}

void ttd_stacks_encoder_clear(struct ttd_stacks_encoder *encoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_clear(&encoder->columns[i]);
    ttd_map_clear(&encoder->frame_map);
    ttd_stack_table_clear(&encoder->table);
}

/** Adds a frame to the table under a key that is free. */
static bool stack_encoder_add_frame(struct ttd_stacks_encoder *encoder, uint64_t key,
                                    const struct ttd_stack *stack)
{
    uint64_t last_offset = encoder->table.last_offset;
    uint32_t index = (uint32_t)encoder->table.count;
    struct ttd_stack_frame frame = {stack->module, stack->offset};
    if (!ttd_stack_table_add(&encoder->table, encoder->allocator, frame) ||
        !ttd_map_add(&encoder->frame_map, key, index))
        return false;
    ttd_buffer_put_varint(&encoder->columns[TTD_STACK_MODULES], stack->module);
    ttd_buffer_put_varint(&encoder->columns[TTD_STACK_OFFSETS],
                          ttd_zigzag(stack->offset - last_offset));
    return true;
}

bool ttd_stacks_encoder_add(struct ttd_stacks_encoder *encoder, const struct ttd_stack *stack)
{
    uint64_t key = ttd_map_hash(stack->offset) + stack->module;
    uint32_t frame;
    bool is_known;
    /* The map holds one frame for a key: frames of equal keys stand at the next ones. */
    while ((is_known = ttd_map_find(&encoder->frame_map, key, &frame)) &&
           (encoder->table.frames[frame].module != stack->module ||
            encoder->table.frames[frame].offset != stack->offset))
        key++;
    if (!is_known && !stack_encoder_add_frame(encoder, key, stack))
        return false;
    /* 0 announces a new frame, which needs no number: it is the next of the table. */
    uint64_t reference = is_known ? (uint64_t)frame + 1 : 0;
    ttd_buffer_put_varint(&encoder->columns[TTD_STACK_PARENTS],
                          stack->parent ? stack->id - stack->parent : 0);
    ttd_buffer_put_varint(&encoder->columns[TTD_STACK_FRAMES], reference);
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        if (encoder->columns[i].failed)
            return false;
    return true;
}

size_t ttd_stacks_encoder_size(const struct ttd_stacks_encoder *encoder)
{
    /* The lengths of the columns come first. */
    size_t size = TTD_STACKS_COLUMNS;
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        size += encoder->columns[i].size;
    return size;
}

void ttd_stacks_encoder_finish(struct ttd_stacks_encoder *encoder, struct ttd_buffer *buffer)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_put32(buffer, (uint32_t)encoder->columns[i].size);
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_put(buffer, encoder->columns[i].data, encoder->columns[i].size);
}
