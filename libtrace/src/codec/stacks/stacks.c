/* SPDX-License-Identifier: MIT */
#include "codec/stacks/stacks.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/cursor.h"
#include "codec/columns.h"

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
    /* 0 announces a new frame; it needs no number: it is the next of the table. */
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

/* A reading that checks everything goes through every stack of a trace; a report then shows few.
 * This pass therefore keeps nothing but depths, column by column, and takes a third of the
 * instructions of decoding each stack and checking it afterwards. It only accepts: for the problem
 * and its place, the chunk is decoded again like any other. */

static_assert((TTD_STACK_DEPTH_MAX & (TTD_STACK_DEPTH_MAX - 1)) == 0, "depths are or-ed");

/** Reads a varint. Returns the byte behind it, or NULL for an error. */
static const uint8_t *stacks_read_long(const uint8_t *next, const uint8_t *end, uint64_t *value)
{
    struct ttd_cursor cursor = {next, end, NULL};
    *value = ttd_cursor_varint(&cursor);
    return cursor.error ? NULL : cursor.next;
}

/** Like stacks_read_long(), for numbers that mostly take one byte or two; `last` is the last byte
 * that can be read. */
static inline const uint8_t *stacks_read_short(const uint8_t *next, const uint8_t *last,
                                               uint64_t *value)
{
    if (next >= last)
        return stacks_read_long(next, last + 1, value);
    *value = *next++;
    if (*value < 0x80)
        return next;
    unsigned high = *next++;
    if (high - 1 >= 0x7F)
        return stacks_read_long(next - 2, last + 1, value);
    *value = (*value & 0x7F) | high << 7;
    return next;
}

/** Notes the depth of eight stacks, each with its caller at most 127 ids before it. Returns all
 * depths, or-ed. */
static inline unsigned stacks_note_eight(const uint8_t *backs, uint16_t *depths)
{
    unsigned depth_bits = 0;
    for (ptrdiff_t i = 0; i < 8; i++) {
        /* Its own depth is 0 so far, so that a stack without a caller needs no branch. */
        unsigned depth = depths[i - (ptrdiff_t)backs[i]] + 1u;
        depths[i] = (uint16_t)depth;
        depth_bits |= depth;
    }
    return depth_bits;
}

/** Checks that each caller comes before its stack, and that no stack is too deep. */
static bool stacks_check_parents(const struct ttd_cursor *column, ttd_id first_id, size_t count,
                                 uint16_t *depths)
{
    const uint8_t *next = column->next;
    const uint8_t *end = column->end;
    uint64_t id = first_id;
    uint64_t after = id + count;
    unsigned depth_bits = 0;
    memset(depths + id, 0, count * sizeof *depths);
    while (id < after) {
        /* The next eight varints have a byte each. */
        if (id > 0x7F && after - id >= 8 && end - next >= 8 &&
            !(ttd_get64(next) & UINT64_C(0x8080808080808080))) {
            depth_bits |= stacks_note_eight(next, depths + id);
            next += 8;
            id += 8;
            continue;
        }
        /* Up to the next eight that may be bytes. */
        for (int i = 0; i < 4 && id < after; i++, id++) {
            uint64_t distance;
            next = stacks_read_short(next, end - 1, &distance);
            if (!next || distance >= id)
                return false;
            unsigned depth = depths[id - distance] + 1u;
            depths[id] = (uint16_t)depth;
            depth_bits |= depth;
        }
    }
    /* The largest depth is a power of two: smaller numbers have none of its higher bits, alone or
     * or-ed. A depth wraps only past it. A stack that is just as deep as it may be is left to the
     * other check. */
    return next == end && depth_bits < TTD_STACK_DEPTH_MAX;
}

/** Checks that each frame is new or one of those before it; counts those that are new. */
static bool stacks_check_frames(const struct ttd_cursor *column, size_t count, size_t *frame_count)
{
    const uint8_t *next = column->next;
    uint64_t known_count = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t frame;
        next = stacks_read_short(next, column->end - 1, &frame);
        if (!next || frame > known_count)
            return false;
        known_count += frame == 0;
    }
    *frame_count = (size_t)known_count;
    return next == column->end;
}

/** Checks that a column has `count` varints of at most `max` each. */
static bool stacks_check_values(struct ttd_cursor column, size_t count, uint64_t max)
{
    for (size_t i = 0; i < count; i++)
        if (ttd_varint_fast(&column) > max)
            return false;
    ttd_cursor_finish(&column);
    return !column.error;
}

bool ttd_stacks_decoder_accepts(const struct ttd_stacks_decoder *decoder, size_t count,
                                ttd_id module_max, uint16_t *depths)
{
    const struct ttd_cursor *columns = decoder->columns;
    size_t frames;
    return stacks_check_frames(&columns[TTD_STACK_FRAMES], count, &frames) &&
           stacks_check_values(columns[TTD_STACK_MODULES], frames, module_max) &&
           stacks_check_values(columns[TTD_STACK_OFFSETS], frames, UINT64_MAX) &&
           stacks_check_parents(&columns[TTD_STACK_PARENTS], decoder->next_id, count, depths);
}

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
static bool stacks_new_frame(struct ttd_stacks_decoder *decoder)
{
    uint64_t step = ttd_unzigzag(ttd_cursor_varint(&decoder->columns[TTD_STACK_OFFSETS]));
    struct ttd_stack_frame frame = {
        .module = ttd_cursor_varint32(&decoder->columns[TTD_STACK_MODULES]),
        .offset = decoder->table.last_offset + step,
    };
    return ttd_stack_table_add(&decoder->table, decoder->allocator, frame);
}

static const char *stacks_first_error(const struct ttd_stacks_decoder *decoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        if (decoder->columns[i].error)
            return decoder->columns[i].error;
    return NULL;
}

/** ttd_varint_fast(), for values of mostly one byte or two. */
static inline uint64_t stacks_take_short(struct ttd_cursor *cursor)
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
        uint64_t distance = stacks_take_short(&parents);
        uint64_t frame = stacks_take_short(&frames);
        /* Ids begin at 1: no stack is so far back. */
        if (distance >= id) {
            violation = "parent of a stack";
            break;
        }
        if (frame - 1 >= frame_count) {
            /* A failed cursor gives 0; this must not pass for a new frame. */
            if (frame != 0 || frames.error) {
                violation = "frame of a stack";
                break;
            }
            if (!stacks_new_frame(decoder))
                return false;
            frame = frame_count = decoder->table.count;
        }
        links[i] = (struct ttd_stack_link){(uint32_t)distance, (uint32_t)(frame - 1)};
    }
    decoder->columns[TTD_STACK_PARENTS] = parents;
    decoder->columns[TTD_STACK_FRAMES] = frames;
    decoder->next_id = id;
    *what = stacks_first_error(decoder);
    if (!*what)
        *what = violation;
    return true;
}

const char *ttd_stacks_decoder_finish(struct ttd_stacks_decoder *decoder)
{
    for (size_t i = 0; i < TTD_STACK_COLUMN_COUNT; i++)
        ttd_cursor_finish(&decoder->columns[i]);
    return stacks_first_error(decoder);
}
