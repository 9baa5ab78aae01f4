/* SPDX-License-Identifier: MIT */
#include "codec/columns.h"

#include <string.h>

#include "base/memory.h"
#include "base/take.h"

void ttd_stacks_encoder_init(ttd_stacks_encoder *encoder, const ttd_allocator *allocator)
{
    memset(encoder, 0, sizeof *encoder);
    encoder->allocator = allocator;
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_init(&encoder->columns[i], allocator);
    ttd_map_init(&encoder->frames, allocator);
}

void ttd_stacks_encoder_free(ttd_stacks_encoder *encoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_free(&encoder->columns[i]);
    ttd_map_free(&encoder->frames);
    ttd_release(encoder->allocator, encoder->modules);
    ttd_release(encoder->allocator, encoder->offsets);
}

void ttd_stacks_encoder_clear(ttd_stacks_encoder *encoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_clear(&encoder->columns[i]);
    ttd_map_clear(&encoder->frames);
    encoder->frame_count = 0;
    encoder->last_offset = 0;
}

/** Makes room for one more frame in the two arrays. */
static bool grow_frames(const ttd_allocator *allocator, ttd_id **modules, size_t *modules_capacity,
                        uint64_t **offsets, size_t *offsets_capacity, size_t count)
{
    void *array = *modules;
    if (ttd_grow_array(allocator, &array, modules_capacity, count + 1, sizeof **modules))
        return false;
    *modules = array;
    array = *offsets;
    if (ttd_grow_array(allocator, &array, offsets_capacity, count + 1, sizeof **offsets))
        return false;
    *offsets = array;
    return true;
}

/** Adds a frame to the table under a key that is free. */
static bool add_frame(ttd_stacks_encoder *encoder, uint64_t key, const ttd_stack *stack)
{
    if (!grow_frames(encoder->allocator, &encoder->modules, &encoder->modules_capacity,
                     &encoder->offsets, &encoder->offsets_capacity, encoder->frame_count) ||
        !ttd_map_add(&encoder->frames, key, (uint32_t)encoder->frame_count))
        return false;
    encoder->modules[encoder->frame_count] = stack->module;
    encoder->offsets[encoder->frame_count] = stack->offset;
    encoder->frame_count++;
    ttd_buffer_put_varint(&encoder->columns[TTD_STACK_MODULES], stack->module);
    ttd_buffer_put_varint(&encoder->columns[TTD_STACK_OFFSETS],
                          ttd_zigzag(stack->offset - encoder->last_offset));
    encoder->last_offset = stack->offset;
    return true;
}

bool ttd_stacks_encoder_add(ttd_stacks_encoder *encoder, const ttd_stack *stack)
{
    uint64_t key = ttd_map_hash(stack->offset) + stack->module;
    uint32_t frame;
    while (ttd_map_find(&encoder->frames, key, &frame) &&
           (encoder->modules[frame] != stack->module || encoder->offsets[frame] != stack->offset))
        key++;
    uint64_t reference = 0;
    if (ttd_map_find(&encoder->frames, key, &frame))
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

size_t ttd_stacks_encoder_size(const ttd_stacks_encoder *encoder)
{
    size_t size = TTD_STACKS_COLUMNS;
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        size += encoder->columns[i].size;
    return size;
}

void ttd_stacks_encoder_finish(ttd_stacks_encoder *encoder, ttd_buffer *out)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_put32(out, (uint32_t)encoder->columns[i].size);
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_buffer_put(out, encoder->columns[i].data, encoder->columns[i].size);
}

void ttd_stacks_decoder_init(ttd_stacks_decoder *decoder, const ttd_allocator *allocator)
{
    memset(decoder, 0, sizeof *decoder);
    decoder->allocator = allocator;
}

void ttd_stacks_decoder_free(ttd_stacks_decoder *decoder)
{
    if (!decoder->allocator)
        return;
    ttd_release(decoder->allocator, decoder->modules);
    ttd_release(decoder->allocator, decoder->offsets);
}

void ttd_stacks_decoder_begin(ttd_stacks_decoder *decoder, ttd_cursor *payload, ttd_id first_id)
{
    ttd_split_columns(payload, decoder->columns, TTD_STACK_COLUMN_COUNT);
    decoder->frame_count = 0;
    decoder->last_offset = 0;
    decoder->next_id = first_id;
}

/** Reads a new frame into the table. */
static bool new_frame(ttd_stacks_decoder *decoder)
{
    if (!grow_frames(decoder->allocator, &decoder->modules, &decoder->modules_capacity,
                     &decoder->offsets, &decoder->offsets_capacity, decoder->frame_count))
        return false;
    decoder->last_offset += ttd_unzigzag(ttd_cursor_varint(&decoder->columns[TTD_STACK_OFFSETS]));
    decoder->modules[decoder->frame_count] =
        ttd_cursor_varint32(&decoder->columns[TTD_STACK_MODULES]);
    decoder->offsets[decoder->frame_count] = decoder->last_offset;
    decoder->frame_count++;
    return true;
}

static const char *first_error(const ttd_stacks_decoder *decoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        if (decoder->columns[i].error)
            return decoder->columns[i].error;
    return NULL;
}

bool ttd_stacks_decoder_next(ttd_stacks_decoder *decoder, ttd_stack *stacks, size_t count,
                             const char **what)
{
    ttd_cursor parents = decoder->columns[TTD_STACK_PARENTS];
    ttd_cursor frames = decoder->columns[TTD_STACK_FRAMES];
    const char *wrong = NULL;
    for (size_t i = 0; i < count && !wrong; i++) {
        ttd_id id = decoder->next_id++;
        uint64_t back = ttd_take(&parents);
        uint64_t frame = ttd_take(&frames);
        if (frame == 0 && !frames.error) {
            if (!new_frame(decoder))
                return false;
            frame = decoder->frame_count;
        }
        if (back >= id)
            wrong = "parent of a stack";
        else if (frame - 1 >= decoder->frame_count)
            wrong = "frame of a stack";
        else
            stacks[i] = (ttd_stack){id, back ? id - (ttd_id)back : TTD_NONE,
                                    decoder->modules[frame - 1], decoder->offsets[frame - 1]};
    }
    decoder->columns[TTD_STACK_PARENTS] = parents;
    decoder->columns[TTD_STACK_FRAMES] = frames;
    *what = first_error(decoder);
    if (!*what)
        *what = wrong;
    return true;
}

const char *ttd_stacks_decoder_finish(ttd_stacks_decoder *decoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_cursor_finish(&decoder->columns[i]);
    return first_error(decoder);
}
