/* SPDX-License-Identifier: MIT */
/*
 * One loop for each column, over a local copy of its cursor, so that all that the loop
 * needs stays in registers.
 */
#include "codec/snapshots/references.h"

#include "base/cursor.h"
#include "codec/columns.h"

/*
 * One loop for each column, over a local copy of its buffer, so that all that the loop needs stays
 * in registers.
 */

void ttd_reference_encoder_init(struct ttd_reference_encoder *encoder,
                                const struct ttd_allocator *allocator)
{
    *encoder = (struct ttd_reference_encoder){.count = 0};
    for (size_t i = 0; i < TTD_PACKED_REFERENCE_COLUMN_COUNT; i++)
        ttd_buffer_init(&encoder->columns[i], allocator);
}

void ttd_reference_encoder_free(struct ttd_reference_encoder *encoder)
{
    for (size_t i = 0; i < TTD_PACKED_REFERENCE_COLUMN_COUNT; i++)
        ttd_buffer_free(&encoder->columns[i]);
}

void ttd_reference_encoder_clear(struct ttd_reference_encoder *encoder)
{
    encoder->count = 0;
    encoder->last = (struct ttd_reference){.region = 0};
    encoder->run = 0;
    encoder->region_before = 0;
    for (size_t i = 0; i < TTD_PACKED_REFERENCE_COLUMN_COUNT; i++)
        ttd_buffer_clear(&encoder->columns[i]);
}

/** Whether a reference comes behind another one, or behind none (region 0). */
static bool references_follows(const struct ttd_reference *reference,
                               const struct ttd_reference *before)
{
    return reference->region == before->region
               ? reference->region != 0 && reference->offset > before->offset
               : reference->region > before->region;
}

const char *ttd_reference_encoder_check(const struct ttd_reference_encoder *encoder,
                                        const struct ttd_references *references)
{
    if (encoder->count != 0 && references->snapshot != encoder->snapshot)
        return "snapshot of references";
    if (references->snapshot == 0)
        return "number of a snapshot";
    const struct ttd_reference *reference = references->references;
    bool is_ordered = references_follows(reference, &encoder->last);
    bool has_values = reference->value != 0;
    for (size_t remaining = references->count - 1; remaining != 0; remaining--, reference++) {
        is_ordered &= references_follows(&reference[1], reference);
        has_values &= reference[1].value != 0;
    }
    if (!is_ordered)
        return "order of references";
    return has_values ? NULL : "value of a reference";
}

/** Appends the run of references that ends here; there is room for it. */
static void reference_end_run(struct ttd_reference_encoder *encoder)
{
    struct ttd_buffer *runs = &encoder->columns[TTD_PACKED_REFERENCE_RUNS];
    if (encoder->run == 0)
        return;
    ttd_buffer_put_varint(runs, encoder->last.region - encoder->region_before);
    ttd_buffer_put_varint(runs, encoder->run);
    encoder->region_before = encoder->last.region;
    encoder->run = 0;
}

/** Appends offsets of one region; `next` is predicted. */
static void references_append_offsets(struct ttd_buffer *buffer,
                                      const struct ttd_reference *references, size_t count,
                                      uint64_t next)
{
    struct ttd_buffer column = *buffer;
    for (size_t i = 0; i < count; i++) {
        ttd_buffer_append_varint(
            &column, ttd_rotate_right(references[i].offset - next, TTD_REFERENCE_ROTATION));
        next = references[i].offset + TTD_REFERENCE_SIZE;
    }
    *buffer = column;
}

/** Appends values; `last` was the one before. */
static void references_append_values(struct ttd_reference_encoder *encoder,
                                     const struct ttd_reference *references, size_t count,
                                     uint64_t last)
{
    struct ttd_buffer column = encoder->columns[TTD_PACKED_REFERENCE_VALUES];
    struct ttd_buffer low_bits = encoder->columns[TTD_PACKED_REFERENCE_LOW_BITS];
    last >>= TTD_REFERENCE_ROTATION;
    for (size_t i = 0; i < count; i++) {
        uint64_t high = references[i].value >> TTD_REFERENCE_ROTATION;
        uint64_t low = references[i].value & TTD_REFERENCE_LOW_BITS;
        ttd_buffer_append_varint(&column, ttd_zigzag(high - last) << 1 | (low != 0));
        low_bits.data[low_bits.size] = (uint8_t)low;
        low_bits.size += low != 0;
        last = high;
    }
    encoder->columns[TTD_PACKED_REFERENCE_VALUES] = column;
    encoder->columns[TTD_PACKED_REFERENCE_LOW_BITS] = low_bits;
}

/** Makes room for references, and for the run that they leave at the end. */
static bool reference_reserve(struct ttd_reference_encoder *encoder, size_t count)
{
    struct ttd_buffer *columns = encoder->columns;
    size_t run_bytes = 2 * TTD_VARINT_MAX;
    return ttd_buffer_reserve(&columns[TTD_PACKED_REFERENCE_RUNS], (count + 1) * run_bytes) &&
           ttd_buffer_reserve(&columns[TTD_PACKED_REFERENCE_OFFSETS], count * TTD_VARINT_MAX) &&
           ttd_buffer_reserve(&columns[TTD_PACKED_REFERENCE_VALUES], count * TTD_VARINT_MAX) &&
           ttd_buffer_reserve(&columns[TTD_PACKED_REFERENCE_LOW_BITS], count);
}

/** Returns how many references from the first one on are of its region. */
static size_t references_count_run(const struct ttd_reference *references, size_t count)
{
    size_t run = 1;
    while (run < count && references[run].region == references->region)
        run++;
    return run;
}

bool ttd_reference_encoder_add(struct ttd_reference_encoder *encoder,
                               const struct ttd_references *references)
{
    if (!reference_reserve(encoder, references->count))
        return false;
    const struct ttd_reference *reference = references->references;
    size_t run;
    for (size_t remaining = references->count; remaining != 0; remaining -= run) {
        bool goes_on = reference->region == encoder->last.region;
        if (!goes_on)
            reference_end_run(encoder);
        run = references_count_run(reference, remaining);
        references_append_offsets(&encoder->columns[TTD_PACKED_REFERENCE_OFFSETS], reference, run,
                                  goes_on ? encoder->last.offset + TTD_REFERENCE_SIZE : 0);
        references_append_values(encoder, reference, run, encoder->last.value);
        encoder->run += run;
        reference += run;
        encoder->last = reference[-1];
    }
    if (encoder->count == 0)
        encoder->first = *references->references;
    encoder->snapshot = references->snapshot;
    encoder->count += references->count;
    return true;
}

void ttd_reference_encoder_finish(struct ttd_reference_encoder *encoder, struct ttd_buffer *buffer)
{
    reference_end_run(encoder);
    ttd_buffer_put32(buffer, encoder->snapshot);
    ttd_buffer_put32(buffer, 0);
    ttd_join_columns(buffer, encoder->columns, TTD_PACKED_REFERENCE_COLUMN_COUNT);
}

/** Reads the column of regions. */
static void references_take_regions(struct ttd_cursor *column, struct ttd_reference *references,
                                    size_t count)
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
static void references_take_runs(struct ttd_cursor *column, struct ttd_reference *references,
                                 size_t count)
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
static void references_take_offsets(struct ttd_cursor *column, struct ttd_reference *references,
                                    size_t count)
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
static void references_take_values(struct ttd_cursor *column, struct ttd_reference *references,
                                   size_t count)
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

/** Reads the column of values and the column of their low bits. */
static void references_take_packed_values(struct ttd_cursor *column, struct ttd_cursor *low_bits,
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
static void references_take_head(struct ttd_cursor *cursor, struct ttd_references *list,
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
    references_take_head(cursor, list, references);
    ttd_split_columns(cursor, columns, TTD_REFERENCE_COLUMN_COUNT);
    references_take_regions(&columns[TTD_REFERENCE_REGIONS], references, list->count);
    references_take_offsets(&columns[TTD_REFERENCE_OFFSETS], references, list->count);
    references_take_values(&columns[TTD_REFERENCE_VALUES], references, list->count);
    ttd_finish_columns(cursor, columns, TTD_REFERENCE_COLUMN_COUNT);
}

void ttd_decode_packed_references(struct ttd_cursor *cursor, struct ttd_references *list,
                                  struct ttd_reference *references)
{
    struct ttd_cursor columns[TTD_PACKED_REFERENCE_COLUMN_COUNT];
    references_take_head(cursor, list, references);
    ttd_split_columns(cursor, columns, TTD_PACKED_REFERENCE_COLUMN_COUNT);
    references_take_runs(&columns[TTD_PACKED_REFERENCE_RUNS], references, list->count);
    if (!columns[TTD_PACKED_REFERENCE_RUNS].error)
        references_take_offsets(&columns[TTD_PACKED_REFERENCE_OFFSETS], references, list->count);
    references_take_packed_values(&columns[TTD_PACKED_REFERENCE_VALUES],
                                  &columns[TTD_PACKED_REFERENCE_LOW_BITS], references, list->count);
    ttd_finish_columns(cursor, columns, TTD_PACKED_REFERENCE_COLUMN_COUNT);
}
