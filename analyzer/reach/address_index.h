/* SPDX-License-Identifier: MIT */
/** Looking up addresses in a table that is in the order of them. */
#ifndef ANALYZER_REACH_ADDRESS_INDEX_H
#define ANALYZER_REACH_ADDRESS_INDEX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ttdtrace/status.h>

/* A compact table of integers. Each field takes as few bytes as the range of its values needs, and
 * none if all rows have the same value. The fields of a row are adjacent. */

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

/** Widens a range by another (perhaps empty) one. */
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

/** A part of the address space with rows. */
struct address_area {
    /** The part of an address above ADDRESS_AREA_BITS. */
    uint64_t number;
    /** Its first row. */
    uint32_t first;
    /** Its first cell in address_index.cells; UINT32_MAX if it has none. */
    uint32_t cells;
};

/** A part of an area: 32 granules. */
struct address_cell {
    /** Bit n: a row begins in granule n. */
    uint32_t starts;
    /** Rows before the cell. */
    uint32_t before;
};

/** The last area whose number is not larger than this one. */
struct address_cached {
    uint64_t number;
    /** UINT32_MAX if it was not looked up. */
    uint32_t area;
};

#define ADDRESS_AREA_BITS 17

/** See address_index_init(). All zero when empty. */
struct address_index {
    /** The field of the rows that has the address. */
    unsigned field;
    uint32_t count;
    uint64_t lowest;
    /** A granule has 1 << granule_bits bytes. */
    unsigned granule_bits;
    struct address_area *areas;
    size_t area_count;
    /** The cells of each area with many rows; no two begin in one granule. */
    struct address_cell *cells;
    /** Numbers that were looked up last, by their low bits. Their count is a power of two. */
    struct address_cached *cache;
    size_t cache_size;
};

/**
 * Makes the index of rows that are in the order of a field.
 *
 * @param count  of the rows, below UINT32_MAX
 * @param index  release with address_index_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status address_index_init(struct address_index *index, const struct packed_table *table,
                                   unsigned field, uint32_t count);
void address_index_free(struct address_index *index);

/**
 * Makes an index that another thread may use at the same time. It is valid as long as the first one
 * is.
 *
 * @param shared  release with address_index_unshare()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY with `shared` empty.
 */
enum ttd_status address_index_share(struct address_index *shared,
                                    const struct address_index *index);
void address_index_unshare(struct address_index *shared);

/** Counts the rows whose address is not above this one. @param rows  the same rows as before */
uint32_t address_index_count(struct address_index *index, const struct packed_table *table,
                             uint64_t address);

/** Addresses that are looked up together at most. */
#define ADDRESS_BATCH 64

/** Counts the rows for several addresses. It takes less time than one by one, since memory is
 * slower than all else. */
void address_index_count_batch(struct address_index *index, const struct packed_table *table,
                               const uint64_t *addresses, size_t address_count, uint32_t *counts);

#endif
