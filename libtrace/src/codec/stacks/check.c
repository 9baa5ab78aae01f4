/* SPDX-License-Identifier: MIT */
/* A reading that checks everything goes through every stack of a trace, of which a report then
 * shows few. This pass therefore keeps nothing but depths, column by column, and takes a third of
 * the instructions of decoding each stack and checking it afterwards. It only accepts: to say what
 * is wrong, and where, the chunk is decoded again as any other. */
#include "codec/stacks/stacks.h"

#include <assert.h>
#include <string.h>

#include "base/varint_fast.h"

static_assert((TTD_STACK_DEPTH_MAX & (TTD_STACK_DEPTH_MAX - 1)) == 0, "depths are or-ed");

/** Reads a varint. Returns the byte behind it, or NULL for an error. */
static const uint8_t *read_long(const uint8_t *next, const uint8_t *end, uint64_t *value)
{
    struct ttd_cursor cursor = {next, end, NULL};
    *value = ttd_cursor_varint(&cursor);
    return cursor.error ? NULL : cursor.next;
}

/** Like read_long(), for numbers that mostly take one byte or two; `last` is the last byte that can
 * be read. */
static inline const uint8_t *read_short(const uint8_t *next, const uint8_t *last, uint64_t *value)
{
    if (next >= last)
        return read_long(next, last + 1, value);
    *value = *next++;
    if (*value < 0x80)
        return next;
    unsigned high = *next++;
    if (high - 1 >= 0x7F)
        return read_long(next - 2, last + 1, value);
    *value = (*value & 0x7F) | high << 7;
    return next;
}

/** Whether the next eight varints have a byte each. */
static inline bool are_bytes(const uint8_t *next)
{
    return (ttd_get64(next) & UINT64_C(0x8080808080808080)) == 0;
}

/** Notes the depth of eight stacks, each of which has its caller at most 127 ids before it. Returns
 * all depths, or-ed. */
static inline unsigned note_eight(const uint8_t *backs, uint16_t *depths)
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
static bool check_parents(const struct ttd_cursor *column, ttd_id first_id, size_t count,
                          uint16_t *depths)
{
    const uint8_t *next = column->next;
    const uint8_t *end = column->end;
    uint64_t id = first_id;
    uint64_t after = id + count;
    unsigned depth_bits = 0;
    memset(depths + id, 0, count * sizeof *depths);
    while (id < after) {
        if (id > 0x7F && after - id >= 8 && end - next >= 8 && are_bytes(next)) {
            depth_bits |= note_eight(next, depths + id);
            next += 8;
            id += 8;
            continue;
        }
        /* Up to the next eight that may be bytes. */
        for (int i = 0; i < 4 && id < after; i++, id++) {
            uint64_t distance;
            next = read_short(next, end - 1, &distance);
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
        next = read_short(next, column->end - 1, &frame);
        if (!next || frame > known_count)
            return false;
        known_count += frame == 0;
    }
    *frame_count = (size_t)known_count;
    return next == column->end;
}

/** Checks that a column has `count` varints of at most `max` each. */
static bool check_values(struct ttd_cursor column, size_t count, uint64_t max)
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
           check_values(columns[TTD_STACK_MODULES], frames, module_max) &&
           check_values(columns[TTD_STACK_OFFSETS], frames, UINT64_MAX) &&
           check_parents(&columns[TTD_STACK_PARENTS], decoder->next_id, count, depths);
}
