/* SPDX-License-Identifier: MIT */
/*
 * One loop for each column, over a local copy of its buffer, so that all that the loop needs stays
 * in registers.
 */
#include "codec/snapshots/reference_encoder.h"

#include "codec/columns.h"

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

/** Whether a reference comes behind another one, or behind none, which has region 0. */
static bool follows(const struct ttd_reference *reference, const struct ttd_reference *before)
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
    bool is_ordered = follows(reference, &encoder->last);
    bool has_values = reference->value != 0;
    for (size_t remaining = references->count - 1; remaining != 0; remaining--, reference++) {
        is_ordered &= follows(&reference[1], reference);
        has_values &= reference[1].value != 0;
    }
    if (!is_ordered)
        return "order of references";
    return has_values ? NULL : "value of a reference";
}

/** Appends the run of references that ends here, for which there is room. */
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

/** Appends offsets of one region, of which `next` is predicted. */
static void append_offsets(struct ttd_buffer *buffer, const struct ttd_reference *references,
                           size_t count, uint64_t next)
{
    struct ttd_buffer column = *buffer;
    for (size_t i = 0; i < count; i++) {
        ttd_buffer_append_varint(
            &column, ttd_rotate_right(references[i].offset - next, TTD_REFERENCE_ROTATION));
        next = references[i].offset + TTD_REFERENCE_SIZE;
    }
    *buffer = column;
}

/** Appends values, of which `last` was the one before. */
static void append_values(struct ttd_reference_encoder *encoder,
                          const struct ttd_reference *references, size_t count, uint64_t last)
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
static size_t count_run(const struct ttd_reference *references, size_t count)
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
        run = count_run(reference, remaining);
        append_offsets(&encoder->columns[TTD_PACKED_REFERENCE_OFFSETS], reference, run,
                       goes_on ? encoder->last.offset + TTD_REFERENCE_SIZE : 0);
        append_values(encoder, reference, run, encoder->last.value);
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
