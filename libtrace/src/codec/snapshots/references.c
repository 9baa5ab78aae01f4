/* SPDX-License-Identifier: MIT */
/*
 * One loop for each column, over a local copy of its cursor, so that all that the loop
 * needs stays in registers.
 */
#include "codec/snapshots/references.h"

#include "base/varint_fast.h"
#include "codec/columns.h"

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

/** Reads the column of runs. */
static void take_runs(struct ttd_cursor *column, struct ttd_reference *references, size_t count)
{
    uint64_t region = 0;
    while (count != 0 && !column->error) {
        uint64_t difference = ttd_cursor_varint(column);
        uint64_t run = ttd_cursor_varint(column);
        if (difference == 0 || difference > UINT32_MAX - region)
            ttd_cursor_fail(column, "region of a reference");
        if (run == 0 || run > count)
            ttd_cursor_fail(column, "number of references of a region");
        if (column->error)
            return;
        region += difference;
        for (uint64_t i = 0; i < run; i++)
            references[i].region = (uint32_t)region;
        references += run;
        count -= (size_t)run;
    }
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
        is_ordered &= is_first || offset > next - TTD_REFERENCE_SIZE;
        references[i].offset = offset;
        region = references[i].region;
        next = offset + TTD_REFERENCE_SIZE;
    }
    *column = cursor;
    if (!is_ordered)
        ttd_cursor_fail(column, "order of references");
}

/** Reads the column of rotated values. */
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

/** Reads the column of values and that of their low bits. */
static void take_packed_values(struct ttd_cursor *column, struct ttd_cursor *low_bits,
                               struct ttd_reference *references, size_t count)
{
    struct ttd_cursor cursor = *column;
    const uint8_t *low_next = low_bits->next;
    uint64_t high = 0;
    bool is_right = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t entry = ttd_varint_fast(&cursor);
        bool has_low = entry & 1;
        uint64_t low = 0;
        if (has_low && low_next != low_bits->end)
            low = *low_next++;
        high += ttd_unzigzag(entry >> 1);
        references[i].value = high << TTD_REFERENCE_ROTATION | low;
        is_right &= high <= UINT64_MAX >> TTD_REFERENCE_ROTATION && (high | low) != 0;
        is_right &= low <= TTD_REFERENCE_LOW_BITS && (low != 0) == has_low;
    }
    *column = cursor;
    low_bits->next = low_next;
    if (!is_right)
        ttd_cursor_fail(column, "value of a reference");
}

/** Begins to decode a chunk of either kind. */
static void take_head(struct ttd_cursor *cursor, struct ttd_references *list,
                      struct ttd_reference *references)
{
    list->snapshot = ttd_cursor_get32(cursor);
    if (list->snapshot == 0)
        ttd_cursor_fail(cursor, "number of a snapshot");
    ttd_cursor_reserved32(cursor);
    list->references = references;
}

void ttd_decode_references(struct ttd_cursor *cursor, struct ttd_references *list,
                           struct ttd_reference *references)
{
    struct ttd_cursor columns[TTD_REFERENCE_COLUMN_COUNT];
    take_head(cursor, list, references);
    ttd_split_columns(cursor, columns, TTD_REFERENCE_COLUMN_COUNT);
    take_regions(&columns[TTD_REFERENCE_REGIONS], references, list->count);
    take_offsets(&columns[TTD_REFERENCE_OFFSETS], references, list->count);
    take_values(&columns[TTD_REFERENCE_VALUES], references, list->count);
    ttd_finish_columns(cursor, columns, TTD_REFERENCE_COLUMN_COUNT);
}

void ttd_decode_packed_references(struct ttd_cursor *cursor, struct ttd_references *list,
                                  struct ttd_reference *references)
{
    struct ttd_cursor columns[TTD_PACKED_REFERENCE_COLUMN_COUNT];
    take_head(cursor, list, references);
    ttd_split_columns(cursor, columns, TTD_PACKED_REFERENCE_COLUMN_COUNT);
    take_runs(&columns[TTD_PACKED_REFERENCE_RUNS], references, list->count);
    if (!columns[TTD_PACKED_REFERENCE_RUNS].error)
        take_offsets(&columns[TTD_PACKED_REFERENCE_OFFSETS], references, list->count);
    take_packed_values(&columns[TTD_PACKED_REFERENCE_VALUES],
                       &columns[TTD_PACKED_REFERENCE_LOW_BITS], references, list->count);
    ttd_finish_columns(cursor, columns, TTD_PACKED_REFERENCE_COLUMN_COUNT);
}
