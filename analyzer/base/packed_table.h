/* SPDX-License-Identifier: MIT */
/** A compact table of integers. Each field takes as few bytes as the range of its values needs, and
 * none if all rows have the same value. The fields of a row are adjacent. */
#ifndef ANALYZER_BASE_PACKED_TABLE_H
#define ANALYZER_BASE_PACKED_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <ttdtrace/status.h>

#define PACKED_FIELDS_MAX 10

struct packed_field {
    /** The smallest value of the field; rows store the difference to it. */
    uint64_t lowest;
    uint64_t mask;
    /** Offset of the field in its row. */
    uint32_t offset;
};

/** All zero when empty. */
struct packed_table {
    unsigned char *bytes;
    uint32_t row_size;
    /** Bytes of all rows. */
    size_t size;
    struct packed_field fields[PACKED_FIELDS_MAX];
};

/** The range of the values of a field, both ends included; value_range_none() is an empty range. */
struct value_range {
    uint64_t lowest;
    uint64_t highest;
};

static inline struct value_range value_range_none(void)
{
    return (struct value_range){UINT64_MAX, 0};
}

static inline void value_range_widen(struct value_range *range, uint64_t value)
{
    range->lowest = value < range->lowest ? value : range->lowest;
    range->highest = value > range->highest ? value : range->highest;
}

/** Widens a range by another, which may be empty. */
static inline void value_range_join(struct value_range *range, struct value_range other)
{
    range->lowest = other.lowest < range->lowest ? other.lowest : range->lowest;
    range->highest = other.highest > range->highest ? other.highest : range->highest;
}

/**
 * Makes a table of `count` rows whose fields have values of these ranges.
 *
 * @param fields  at most PACKED_FIELDS_MAX
 * @param table   set on TTD_OK; release with packed_table_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status packed_table_init(struct packed_table *table, size_t count,
                                  const struct value_range *ranges, unsigned fields);
void packed_table_free(struct packed_table *table);

/* Rows are little-endian, whatever the machine. */
static inline uint64_t packed_load(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline void packed_store(unsigned char *bytes, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(bytes, &word, sizeof word);
}

static inline uint64_t packed_table_get(const struct packed_table *table, size_t row,
                                        unsigned field)
{
    const struct packed_field *layout = &table->fields[field];
    uint64_t word = packed_load(table->bytes + row * table->row_size + layout->offset);
    return layout->lowest + (word & layout->mask);
}

/** @param value  in the range of the field */
static inline void packed_table_set(struct packed_table *table, size_t row, unsigned field,
                                    uint64_t value)
{
    const struct packed_field *layout = &table->fields[field];
    unsigned char *bytes = table->bytes + row * table->row_size + layout->offset;
    packed_store(bytes, (packed_load(bytes) & ~layout->mask) | (value - layout->lowest));
}

/** The part of packed_table_fill() for the last rows: it writes to no byte behind the row. */
void packed_table_fill_last(struct packed_table *table, size_t row, const uint64_t *values,
                            unsigned fields);

/** Rows that packed_table_fill() may write to behind the one that it sets, at most. */
#define PACKED_ROWS_BEHIND 7

/**
 * Sets all fields of a row, faster than one by one. Rows are set in their order: the next ones, up
 * to `end`, are not set yet. Those from `end` on stay untouched: another thread may set them.
 *
 * @param values  by field, in the ranges of the fields
 */
static inline void packed_table_fill(struct packed_table *table, size_t row, size_t end,
                                     const uint64_t *values, unsigned fields)
{
    unsigned char *bytes = table->bytes + row * table->row_size;
    if (end - row <= PACKED_ROWS_BEHIND) {
        packed_table_fill_last(table, row, values, fields);
        return;
    }
    for (unsigned i = 0; i < fields; i++) {
        if (table->fields[i].mask)
            packed_store(bytes + table->fields[i].offset, values[i] - table->fields[i].lowest);
    }
}

/** Prefetches a row that will be used soon. Always inlined, because gcc removes calls of a function
 * that does nothing but prefetch. */
static inline __attribute__((always_inline)) void
packed_table_prefetch(const struct packed_table *table, size_t row)
{
    __builtin_prefetch(table->bytes + row * table->row_size);
}

#endif
