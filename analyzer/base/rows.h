/* SPDX-License-Identifier: MIT */
/** A compact table of integers. Each field takes as few bytes as the range of its values needs, and
 * none if all rows have the same value. The fields of a row are adjacent. */
#ifndef ANALYZER_BASE_ROWS_H
#define ANALYZER_BASE_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <ttdtrace/status.h>

#define ROWS_FIELDS_MAX 10

struct row_field {
    /** The smallest value of the field; rows store the difference to it. */
    uint64_t lowest;
    uint64_t mask;
    /** Offset of the field in its row. */
    uint32_t offset;
};

/** All zero when empty. */
struct rows {
    unsigned char *bytes;
    uint32_t row_size;
    /** Bytes of all rows. */
    size_t size;
    struct row_field fields[ROWS_FIELDS_MAX];
};

/** The range of the values of a field, both ends included; row_range_none() is an empty range. */
struct row_range {
    uint64_t lowest;
    uint64_t highest;
};

static inline struct row_range row_range_none(void)
{
    return (struct row_range){UINT64_MAX, 0};
}

static inline void row_range_widen(struct row_range *range, uint64_t value)
{
    range->lowest = value < range->lowest ? value : range->lowest;
    range->highest = value > range->highest ? value : range->highest;
}

/**
 * Makes a table of `count` rows whose fields have values of these ranges.
 *
 * @param fields  at most ROWS_FIELDS_MAX
 * @param rows    set on TTD_OK; release with rows_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status rows_init(struct rows *rows, size_t count, const struct row_range *ranges,
                          unsigned fields);
void rows_free(struct rows *rows);

/* Rows are little-endian, whatever the machine. */
static inline uint64_t row_load(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline void row_store(unsigned char *bytes, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(bytes, &word, sizeof word);
}

static inline uint64_t rows_get(const struct rows *rows, size_t row, unsigned field)
{
    const struct row_field *layout = &rows->fields[field];
    uint64_t word = row_load(rows->bytes + row * rows->row_size + layout->offset);
    return layout->lowest + (word & layout->mask);
}

/** @param value  in the range of the field */
static inline void rows_set(struct rows *rows, size_t row, unsigned field, uint64_t value)
{
    const struct row_field *layout = &rows->fields[field];
    unsigned char *bytes = rows->bytes + row * rows->row_size + layout->offset;
    row_store(bytes, (row_load(bytes) & ~layout->mask) | (value - layout->lowest));
}

/**
 * Sets all fields of a row, faster than one by one. Rows are set in their order: the next one is
 * not set yet.
 *
 * @param values  by field, in the ranges of the fields
 */
static inline void rows_fill(struct rows *rows, size_t row, const uint64_t *values, unsigned fields)
{
    unsigned char *bytes = rows->bytes + row * rows->row_size;
    for (unsigned i = 0; i < fields; i++) {
        if (rows->fields[i].mask)
            row_store(bytes + rows->fields[i].offset, values[i] - rows->fields[i].lowest);
    }
}

/** Prefetches a row that will be used soon. Always inlined, because gcc removes calls of a function
 * that does nothing but prefetch. */
static inline __attribute__((always_inline)) void rows_prefetch(const struct rows *rows, size_t row)
{
    __builtin_prefetch(rows->bytes + row * rows->row_size);
}

#endif
