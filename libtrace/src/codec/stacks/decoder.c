/* SPDX-License-Identifier: MIT */
#include "codec/stacks/stacks.h"

#include <string.h>

#include "base/memory.h"
#include "base/varint_fast.h"
#include "codec/columns.h"

bool ttd_stack_table_add(struct ttd_stack_table *table, const struct ttd_allocator *allocator,
                         struct ttd_stack_frame frame)
{
    void *frames = table->frames;
    if (ttd_grow_array(allocator, &frames, &table->capacity, table->count + 1,
                       sizeof *table->frames))
        return false;
    table->frames = frames;
    table->frames[table->count++] = frame;
    table->last_offset = frame.offset;
    return true;
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
    ttd_release(decoder->allocator, decoder->table.frames);
}

void ttd_stacks_decoder_begin(struct ttd_stacks_decoder *decoder, struct ttd_cursor *payload,
                              ttd_id first_id)
{
    ttd_split_columns(payload, decoder->columns, TTD_STACK_COLUMN_COUNT);
    ttd_stack_table_clear(&decoder->table);
    decoder->next_id = first_id;
}

/** Reads a new frame into the table. */
static bool new_frame(struct ttd_stacks_decoder *decoder)
{
    uint64_t step = ttd_unzigzag(ttd_cursor_varint(&decoder->columns[TTD_STACK_OFFSETS]));
    struct ttd_stack_frame frame = {
        .module = ttd_cursor_varint32(&decoder->columns[TTD_STACK_MODULES]),
        .offset = decoder->table.last_offset + step,
    };
    return ttd_stack_table_add(&decoder->table, decoder->allocator, frame);
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
        uint32_t low = cursor->next[0];
        uint32_t high = cursor->next[1];
        if (low < 0x80) {
            cursor->next++;
            return low;
        }
        if (high - 1 < 0x7F) {
            cursor->next += 2;
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
    size_t frame_count = decoder->table.count;
    ttd_id id = decoder->next_id;
    const char *violation = NULL;
    for (size_t i = 0; i < count; i++, id++) {
        uint64_t distance = take_short(&parents);
        uint64_t frame = take_short(&frames);
        /* Ids begin at 1: no stack is so far back. */
        if (distance >= id) {
            violation = "parent of a stack";
            break;
        }
        if (frame - 1 >= frame_count) {
            /* A failed cursor gives 0, which must not pass for a new frame. */
            if (frame != 0 || frames.error) {
                violation = "frame of a stack";
                break;
            }
            if (!new_frame(decoder))
                return false;
            frame = frame_count = decoder->table.count;
        }
        links[i] = (struct ttd_stack_link){(uint32_t)distance, (uint32_t)(frame - 1)};
    }
    decoder->columns[TTD_STACK_PARENTS] = parents;
    decoder->columns[TTD_STACK_FRAMES] = frames;
    decoder->next_id = id;
    *what = first_error(decoder);
    if (!*what)
        *what = violation;
    return true;
}

const char *ttd_stacks_decoder_finish(struct ttd_stacks_decoder *decoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_cursor_finish(&decoder->columns[i]);
    return first_error(decoder);
}
