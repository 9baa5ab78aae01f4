/* SPDX-License-Identifier: MIT */
/** Looking up addresses in a table that is in the order of them. */
#ifndef ANALYZER_REACH_ADDRESS_INDEX_H
#define ANALYZER_REACH_ADDRESS_INDEX_H

#include "base/packed_table.h"

/** A part of the address space in which rows are. */
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
    /** The cells of each area with many rows, no two of which begin in one granule. */
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
