/* SPDX-License-Identifier: MIT */
#include "codec/columns.h"

#include <string.h>

#include "base/memory.h"
#include "base/varint_fast.h"

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
    ttd_release(encoder->allocator, encoder->frames);
}

void ttd_stacks_encoder_clear(struct ttd_stacks_encoder *encoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_clear(&encoder->columns[i]);
    ttd_map_clear(&encoder->frame_map);
    encoder->frame_count = 0;
    encoder->last_offset = 0;
}

/** Makes room for one more frame. */
static bool grow_frames(const struct ttd_allocator *allocator, struct ttd_stack_frame **frames,
                        size_t *capacity, size_t count)
{
    void *array = *frames;
    if (ttd_grow_array(allocator, &array, capacity, count + 1, sizeof **frames))
        return false;
    *frames = array;
    return true;
}

/** Adds a frame to the table under a key that is free. */
static bool add_frame(struct ttd_stacks_encoder *encoder, uint64_t key,
                      const struct ttd_stack *stack)
{
    if (!grow_frames(encoder->allocator, &encoder->frames, &encoder->frame_capacity,
                     encoder->frame_count) ||
        !ttd_map_add(&encoder->frame_map, key, (uint32_t)encoder->frame_count))
        return false;
    encoder->frames[encoder->frame_count++] =
        (struct ttd_stack_frame){stack->module, stack->offset};
    ttd_buffer_put_varint(&encoder->columns[TTD_STACK_MODULES], stack->module);
    ttd_buffer_put_varint(&encoder->columns[TTD_STACK_OFFSETS],
                          ttd_zigzag(stack->offset - encoder->last_offset));
    encoder->last_offset = stack->offset;
    return true;
}

bool ttd_stacks_encoder_add(struct ttd_stacks_encoder *encoder, const struct ttd_stack *stack)
{
    uint64_t key = ttd_map_hash(stack->offset) + stack->module;
    uint32_t frame;
    while (ttd_map_find(&encoder->frame_map, key, &frame) &&
           (encoder->frames[frame].module != stack->module ||
            encoder->frames[frame].offset != stack->offset))
        key++;
    uint64_t reference = 0;
    if (ttd_map_find(&encoder->frame_map, key, &frame))
        reference = (uint64_t)frame + 1;
    else if (!add_frame(encoder, key, stack))
        return false;
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
    size_t size = TTD_STACKS_COLUMNS;
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        size += encoder->columns[i].size;
    return size;
}

void ttd_stacks_encoder_finish(struct ttd_stacks_encoder *encoder, struct ttd_buffer *out)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_put32(out, (uint32_t)encoder->columns[i].size);
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_put(out, encoder->columns[i].data, encoder->columns[i].size);
}

void ttd_stacks_decoder_init(struct ttd_stacks_decoder *decoder,
                             const struct ttd_allocator *allocator)
{
    memset(decoder, 0, sizeof *decoder);
    decoder->allocator = allocator;
}

void ttd_stacks_decoder_free(struct ttd_stacks_decoder *decoder)
{
    if (!decoder->allocator)
        return;
    ttd_release(decoder->allocator, decoder->frames);
}

void ttd_stacks_decoder_begin(struct ttd_stacks_decoder *decoder, struct ttd_cursor *payload,
                              ttd_id first_id)
{
    ttd_split_columns(payload, decoder->columns, TTD_STACK_COLUMN_COUNT);
    decoder->frame_count = 0;
    decoder->last_offset = 0;
    decoder->next_id = first_id;
}

/** Reads a new frame into the table. */
static bool new_frame(struct ttd_stacks_decoder *decoder)
{
    if (!grow_frames(decoder->allocator, &decoder->frames, &decoder->frame_capacity,
                     decoder->frame_count))
        return false;
    decoder->last_offset += ttd_unzigzag(ttd_cursor_varint(&decoder->columns[TTD_STACK_OFFSETS]));
    ttd_id module = ttd_cursor_varint32(&decoder->columns[TTD_STACK_MODULES]);
    decoder->frames[decoder->frame_count++] =
        (struct ttd_stack_frame){module, decoder->last_offset};
    return true;
}

static const char *first_error(const struct ttd_stacks_decoder *decoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        if (decoder->columns[i].error)
            return decoder->columns[i].error;
    return NULL;
}

/** ttd_varint_fast(), for what has mostly one byte or two. */
static inline uint64_t take_short(struct ttd_cursor *cursor)
{
    if (ttd_cursor_left(cursor) >= 2) {
        uint32_t low = cursor->at[0];
        uint32_t high = cursor->at[1];
        if (low < 0x80) {
            cursor->at++;
            return low;
        }
        if (high - 1 < 0x7F) {
            cursor->at += 2;
            return (low & 0x7F) | high << 7;
        }
    }
    return ttd_varint_fast(cursor);
}

bool ttd_stacks_decoder_next(struct ttd_stacks_decoder *decoder, struct ttd_stack_link *links,
                             size_t count, const char **what)
{
    struct ttd_cursor parents = decoder->columns[TTD_STACK_PARENTS];
    struct ttd_cursor frames = decoder->columns[TTD_STACK_FRAMES];
    size_t frame_count = decoder->frame_count;
    ttd_id id = decoder->next_id;
    const char *wrong = NULL;
    for (size_t i = 0; i < count; i++, id++) {
        uint64_t back = take_short(&parents);
        uint64_t frame = take_short(&frames);
        if (back >= id) {
            wrong = "parent of a stack";
            break;
        }
        if (frame - 1 >= frame_count) {
            if (frame != 0 || frames.error) {
                wrong = "frame of a stack";
                break;
            }
            if (!new_frame(decoder))
                return false;
            frame = frame_count = decoder->frame_count;
        }
        links[i] = (struct ttd_stack_link){(uint32_t)back, (uint32_t)(frame - 1)};
    }
    decoder->columns[TTD_STACK_PARENTS] = parents;
    decoder->columns[TTD_STACK_FRAMES] = frames;
    decoder->next_id = id;
    *what = first_error(decoder);
    if (!*what)
        *what = wrong;
    return true;
}

const char *ttd_stacks_decoder_finish(struct ttd_stacks_decoder *decoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_cursor_finish(&decoder->columns[i]);
    return first_error(decoder);
}
