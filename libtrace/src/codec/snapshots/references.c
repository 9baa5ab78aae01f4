/* SPDX-License-Identifier: MIT */
/*
 * One loop for each column, over a local copy of its buffer or cursor, so that all that the loop
 * needs stays in registers.
 */
#include "codec/snapshots/references.h"

#include "base/varint_fast.h"
#include "codec/columns.h"

/** The distance of words that lie one behind the other. */
#define WORD_SIZE 8

const char *ttd_check_references(const struct ttd_references *references)
{
    const struct ttd_reference *reference = references->references;
    bool is_ordered = reference->region != 0;
    bool has_values = reference->value != 0;
    for (size_t remaining = references->count - 1; remaining != 0; remaining--, reference++) {
        is_ordered &= reference[1].region == reference->region
                          ? reference[1].offset > reference->offset
                          : reference[1].region > reference->region;
        has_values &= reference[1].value != 0;
    }
    if (!is_ordered)
        return "order of references";
    return has_values ? NULL : "value of a reference";
}

static void append_regions(struct ttd_buffer *buffer, const struct ttd_reference *references,
                           size_t count)
{
    struct ttd_buffer column = *buffer;
    uint32_t region = 0;
    for (size_t i = 0; i < count; i++) {
        ttd_buffer_append_varint(&column, references[i].region - region);
        region = references[i].region;
    }
    *buffer = column;
}

static void append_offsets(struct ttd_buffer *buffer, const struct ttd_reference *references,
                           size_t count)
{
    struct ttd_buffer column = *buffer;
    uint32_t region = 0;
    uint64_t next = 0;
    for (size_t i = 0; i < count; i++) {
        if (references[i].region != region)
            next = 0;
        ttd_buffer_append_varint(
            &column, ttd_rotate_right(references[i].offset - next, TTD_REFERENCE_ROTATION));
        region = references[i].region;
        next = references[i].offset + WORD_SIZE;
    }
    *buffer = column;
}

static void append_values(struct ttd_buffer *buffer, const struct ttd_reference *references,
                          size_t count)
{
    struct ttd_buffer column = *buffer;
    uint64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = ttd_rotate_right(references[i].value, TTD_REFERENCE_ROTATION);
        ttd_buffer_append_varint(&column, ttd_zigzag(value - last));
        last = value;
    }
    *buffer = column;
}

void ttd_encode_references(struct ttd_buffer *buffer, const struct ttd_references *references,
                           struct ttd_buffer columns[TTD_REFERENCE_COLUMN_COUNT])
{
    ttd_buffer_put32(buffer, references->snapshot);
    ttd_buffer_put32(buffer, 0);
    bool has_room = true;
    for (size_t i = 0; i < TTD_REFERENCE_COLUMN_COUNT; i++) {
        ttd_buffer_clear(&columns[i]);
        has_room = ttd_buffer_reserve(&columns[i], references->count * TTD_VARINT_MAX) && has_room;
    }
    if (has_room) {
        append_regions(&columns[TTD_REFERENCE_REGIONS], references->references, references->count);
        append_offsets(&columns[TTD_REFERENCE_OFFSETS], references->references, references->count);
        append_values(&columns[TTD_REFERENCE_VALUES], references->references, references->count);
    }
    ttd_join_columns(buffer, columns, TTD_REFERENCE_COLUMN_COUNT);
}

/** Reads the column of regions. */
static void take_regions(struct ttd_cursor *column, struct ttd_reference *references, size_t count)
{
    struct ttd_cursor cursor = *column;
    uint64_t region = 0;
    bool is_right = true;
    bool is_ordered = true;
    for (size_t i = 0; i < count; i++) {
        /* A difference may be so large that the sum wraps: then regions fall. */
        uint64_t last = region;
        region += ttd_varint_fast(&cursor);
        references[i].region = (uint32_t)region;
        is_right &= region - 1 < UINT32_MAX;
        is_ordered &= region >= last;
    }
    *column = cursor;
    if (!is_right || !is_ordered)
        ttd_cursor_fail(column, is_right ? "order of references" : "region of a reference");
}

/** Reads the column of offsets; regions are known. */
static void take_offsets(struct ttd_cursor *column, struct ttd_reference *references, size_t count)
{
    struct ttd_cursor cursor = *column;
    uint32_t region = 0;
    uint64_t next = 0;
    bool is_ordered = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t distance = ttd_rotate_left(ttd_varint_fast(&cursor), TTD_REFERENCE_ROTATION);
        bool is_first = references[i].region != region;
        uint64_t offset = (is_first ? 0 : next) + distance;
        is_ordered &= is_first || offset > next - WORD_SIZE;
        references[i].offset = offset;
        region = references[i].region;
        next = offset + WORD_SIZE;
    }
    *column = cursor;
    if (!is_ordered)
        ttd_cursor_fail(column, "order of references");
}

/** Reads the column of values. */
static void take_values(struct ttd_cursor *column, struct ttd_reference *references, size_t count)
{
    struct ttd_cursor cursor = *column;
    uint64_t value = 0;
    bool has_values = true;
    for (size_t i = 0; i < count; i++) {
        value += ttd_unzigzag(ttd_varint_fast(&cursor));
        references[i].value = ttd_rotate_left(value, TTD_REFERENCE_ROTATION);
        has_values &= value != 0;
    }
    *column = cursor;
    if (!has_values)
        ttd_cursor_fail(column, "value of a reference");
}

void ttd_decode_references(struct ttd_cursor *cursor, struct ttd_references *list,
                           struct ttd_reference *references)
{
    list->snapshot = ttd_cursor_get32(cursor);
    if (list->snapshot == 0)
        ttd_cursor_fail(cursor, "number of a snapshot");
    ttd_cursor_reserved32(cursor);
    list->references = references;
    struct ttd_cursor columns[TTD_REFERENCE_COLUMN_COUNT];
    ttd_split_columns(cursor, columns, TTD_REFERENCE_COLUMN_COUNT);
    take_regions(&columns[TTD_REFERENCE_REGIONS], references, list->count);
    take_offsets(&columns[TTD_REFERENCE_OFFSETS], references, list->count);
    take_values(&columns[TTD_REFERENCE_VALUES], references, list->count);
    ttd_finish_columns(cursor, columns, TTD_REFERENCE_COLUMN_COUNT);
}
