/* SPDX-License-Identifier: MIT */
/** Looking up addresses in a table that is in the order of them. */
#ifndef ANALYZER_REACH_ADDRESS_INDEX_H
#define ANALYZER_REACH_ADDRESS_INDEX_H

#include "base/rows.h"

/** A part of the address space in which rows are. */
struct address_area {
    /** The part of an address above ADDRESS_AREA_BITS. */
    uint64_t number;
    /** Its first row. */
    uint32_t first;
    /** Begin of its table in address_index.tables; UINT32_MAX if it has none. */
    uint32_t table;
};

#define ADDRESS_AREA_BITS  17
#define ADDRESS_CACHE_SIZE 1024

/** See address_index_init(). All zero when empty. */
struct address_index {
    /** The field of the rows that has the address. */
    unsigned field;
    uint32_t count;
    uint64_t lowest;
    struct address_area *areas;
    size_t area_count;
    /** For each area with many rows: by granule of it, the first row that is not before, and one
     * more. */
    uint32_t *tables;
    /** Areas that were found last, by the low bits of their numbers: index, or UINT32_MAX. */
    uint32_t cache[ADDRESS_CACHE_SIZE];
};

/**
 * Makes the index of rows that are in the order of a field.
 *
 * @param count  of the rows, below UINT32_MAX
 * @param index  release with address_index_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status address_index_init(struct address_index *index, const struct rows *rows,
                                   unsigned field, uint32_t count);
void address_index_free(struct address_index *index);

/** Counts the rows whose address is not above this one. @param rows  the same rows as before */
uint32_t address_index_count(struct address_index *index, const struct rows *rows,
                             uint64_t address);

/** Bring nearer what address_index_count() reads of an address that is asked for soon: first the
 * entry of its table, then, when that is there, a row. */
void address_index_prefetch_entry(struct address_index *index, uint64_t address);
void address_index_prefetch_row(struct address_index *index, const struct rows *rows,
                                uint64_t address);

#endif
