/* SPDX-License-Identifier: MIT */
/*
 * Looking up an address takes some ten steps, whatever the number of rows: the area, from a small
 * cache or by binary search among areas; then the cell in the area, whose bits say how many of its
 * rows begin before. Only areas with many rows have cells, so that these take at most 32 bytes a
 * row; in the others, and in those whose rows are not aligned, rows are found by binary search.
 */
#include "reach/address_index.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/grow.h"
#include "common/search.h"
#include "base/table.h"

/* Behind the last row: a field is read and written with the seven bytes that follow it. */
#define SLACK sizeof(uint64_t)

static uint64_t address_index_mask_of(uint64_t difference)
{
    uint64_t mask = 0;
    while (difference & ~mask)
        mask = mask << 8 | 0xff;
    return mask;
}

enum ttd_status packed_table_init(struct packed_table *table, size_t count,
                                  const struct value_range *ranges, unsigned fields)
{
    struct packed_table made = {.row_size = 0};
    for (unsigned i = 0; i < fields; i++) {
        bool is_empty = ranges[i].lowest > ranges[i].highest;
        uint64_t difference = is_empty ? 0 : ranges[i].highest - ranges[i].lowest;
        made.fields[i] = (struct packed_field){.lowest = is_empty ? 0 : ranges[i].lowest,
                                               .mask = address_index_mask_of(difference),
                                               .offset = made.row_size};
        made.row_size += (uint32_t)__builtin_popcountll(made.fields[i].mask) / 8;
    }
    if (made.row_size && count > (SIZE_MAX - SLACK) / made.row_size)
        return TTD_ERROR_NO_MEMORY;
    made.size = count * made.row_size + SLACK;
    made.bytes = table_resize(NULL, 0, made.size);
    if (!made.bytes)
        return TTD_ERROR_NO_MEMORY;
    *table = made;
    return TTD_OK;
}

void packed_table_free(struct packed_table *table)
{
    if (table->bytes)
        table_free(table->bytes, table->size);
    *table = (struct packed_table){.row_size = 0};
}

void packed_table_fill_last(struct packed_table *table, size_t row, const uint64_t *values,
                            unsigned fields)
{
    unsigned char *bytes = table->bytes + row * table->row_size;
    for (unsigned i = 0; i < fields; i++) {
        const struct packed_field *field = &table->fields[i];
        unsigned char word[sizeof(uint64_t)];
        packed_store(word, values[i] - field->lowest);
        memcpy(bytes + field->offset, word, (size_t)__builtin_popcountll(field->mask) / 8);
    }
}

#define CELL_GRANULES      32
#define GRANULE_BITS       3
#define CELL_BYTES_PER_ROW 32
#define CACHE_MIN          1024
#define NONE               UINT32_MAX

static uint64_t address_index_row_address(const struct address_index *index,
                                          const struct packed_table *table, uint32_t row)
{
    return packed_table_get(table, row, index->field);
}

/* The row after the last one of an area. */
static uint32_t address_index_area_end(const struct address_index *index, size_t area)
{
    return area + 1 < index->area_count ? index->areas[area + 1].first : index->count;
}

static enum ttd_status address_index_find_areas(struct address_index *index,
                                                const struct packed_table *table)
{
    size_t capacity = 0;
    bool is_coarse = true;
    for (uint32_t i = 0; i < index->count; i++) {
        uint64_t address = address_index_row_address(index, table, i);
        uint64_t number = address >> ADDRESS_AREA_BITS;
        is_coarse = is_coarse && address % (2u << GRANULE_BITS) != 1u << GRANULE_BITS;
        if (index->area_count && index->areas[index->area_count - 1].number == number)
            continue;
        enum ttd_status status = grow_array((void **)&index->areas, &capacity,
                                            index->area_count + 1, sizeof *index->areas);
        if (status != TTD_OK)
            return status;
        index->areas[index->area_count++] = (struct address_area){number, i, NONE};
    }
    index->granule_bits = is_coarse ? GRANULE_BITS + 1 : GRANULE_BITS;
    return TTD_OK;
}

static uint32_t address_index_cells_per_area(const struct address_index *index)
{
    return (1u << (ADDRESS_AREA_BITS - index->granule_bits)) / CELL_GRANULES;
}

/* Whether an area gets cells: it has so many rows that they are worth it, and each begins where a
 * granule of its own begins. */
static bool address_index_has_cells(const struct address_index *index,
                                    const struct packed_table *table, size_t area)
{
    uint32_t end = address_index_area_end(index, area);
    uint32_t row = index->areas[area].first;
    if ((end - row) * (size_t)CELL_BYTES_PER_ROW <
        address_index_cells_per_area(index) * sizeof(struct address_cell))
        return false;
    uint64_t mask = (UINT64_C(1) << index->granule_bits) - 1;
    uint64_t last = address_index_row_address(index, table, row++);
    for (uint64_t unaligned = last & mask; row < end; row++) {
        uint64_t address = address_index_row_address(index, table, row);
        unaligned |= address & mask;
        if (unaligned || address == last)
            return false;
        last = address;
    }
    return !(last & mask);
}

static void address_index_fill_cells(struct address_index *index, const struct packed_table *table,
                                     size_t area)
{
    struct address_cell *cells = &index->cells[index->areas[area].cells];
    uint32_t row = index->areas[area].first;
    uint32_t end = address_index_area_end(index, area);
    for (uint32_t i = 0; i < address_index_cells_per_area(index); i++) {
        cells[i] = (struct address_cell){.before = row};
        for (; row < end; row++) {
            uint64_t granule =
                (address_index_row_address(index, table, row) & ((1u << ADDRESS_AREA_BITS) - 1)) >>
                index->granule_bits;
            if (granule / CELL_GRANULES != i)
                break;
            cells[i].starts |= 1u << granule % CELL_GRANULES;
        }
    }
}

static enum ttd_status address_index_make_cells(struct address_index *index,
                                                const struct packed_table *table)
{
    uint32_t count = 0;
    for (size_t i = 0; i < index->area_count; i++) {
        if (count > NONE - 2 * address_index_cells_per_area(index) ||
            !address_index_has_cells(index, table, i))
            continue;
        index->areas[i].cells = count;
        count += address_index_cells_per_area(index);
    }
    size_t size = ((size_t)count + 1) * sizeof *index->cells;
    index->cells = malloc(size);
    if (!index->cells)
        return TTD_ERROR_NO_MEMORY;
    pages_hint(index->cells, size);
    for (size_t i = 0; i < index->area_count; i++) {
        if (index->areas[i].cells != NONE)
            address_index_fill_cells(index, table, i);
    }
    return TTD_OK;
}

static enum ttd_status address_index_make_cache(struct address_index *index)
{
    index->cache_size = CACHE_MIN;
    while (index->cache_size < index->area_count)
        index->cache_size *= 2;
    index->cache = malloc(index->cache_size * sizeof *index->cache);
    if (!index->cache)
        return TTD_ERROR_NO_MEMORY;
    memset(index->cache, 0xff, index->cache_size * sizeof *index->cache);
    return TTD_OK;
}

enum ttd_status address_index_init(struct address_index *index, const struct packed_table *table,
                                   unsigned field, uint32_t count)
{
    *index = (struct address_index){.field = field, .count = count};
    if (count)
        index->lowest = address_index_row_address(index, table, 0);
    enum ttd_status status = address_index_find_areas(index, table);
    if (status == TTD_OK)
        status = address_index_make_cells(index, table);
    return status == TTD_OK ? address_index_make_cache(index) : status;
}

void address_index_free(struct address_index *index)
{
    free(index->areas);
    free(index->cells);
    free(index->cache);
    *index = (struct address_index){.count = 0};
}

enum ttd_status address_index_share(struct address_index *shared, const struct address_index *index)
{
    *shared = *index;
    enum ttd_status status = address_index_make_cache(shared);
    if (status != TTD_OK)
        *shared = (struct address_index){.count = 0};
    return status;
}

void address_index_unshare(struct address_index *shared)
{
    free(shared->cache);
    *shared = (struct address_index){.count = 0};
}

/* The last area whose number is not larger; there is one. */
static size_t address_index_find_area(struct address_index *index, uint64_t number)
{
    struct address_cached *cached = &index->cache[number & (index->cache_size - 1)];
    if (cached->number == number && cached->area != NONE)
        return cached->area;
    size_t after = 0, high = index->area_count;
    SEARCH_SORTED(after, high, middle, index->areas[middle].number <= number);
    *cached = (struct address_cached){number, (uint32_t)(after - 1)};
    return after - 1;
}

/* The cell that an address lies in; NULL if it lies in no area with cells. */
static const struct address_cell *address_index_cell(const struct address_index *index,
                                                     const struct address_area *area,
                                                     uint64_t address)
{
    if (area->cells == NONE || area->number != address >> ADDRESS_AREA_BITS)
        return NULL;
    uint64_t granule = (address & ((1u << ADDRESS_AREA_BITS) - 1)) >> index->granule_bits;
    return &index->cells[area->cells + granule / CELL_GRANULES];
}

/* Counts the bits that are set. Older processors have no instruction for it. */
static uint32_t address_index_count_bits(uint32_t bits)
{
    bits -= bits >> 1 & 0x55555555;
    bits = (bits & 0x33333333) + (bits >> 2 & 0x33333333);
    return ((bits + (bits >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

static uint32_t address_index_count_in_cell(const struct address_index *index,
                                            const struct address_cell *cell, uint64_t address)
{
    unsigned granule = (unsigned)(address >> index->granule_bits) % CELL_GRANULES;
    return cell->before +
           address_index_count_bits(cell->starts & UINT32_MAX >> (CELL_GRANULES - 1 - granule));
}

static uint32_t address_index_search_area(const struct address_index *index,
                                          const struct packed_table *table, size_t area,
                                          uint64_t address)
{
    uint32_t low = index->areas[area].first, high = address_index_area_end(index, area);
    if (index->areas[area].number != address >> ADDRESS_AREA_BITS)
        return high;
    SEARCH_SORTED(low, high, middle, address_index_row_address(index, table, middle) <= address);
    return low;
}

uint32_t address_index_count(struct address_index *index, const struct packed_table *table,
                             uint64_t address)
{
    if (!index->count || address < index->lowest)
        return 0;
    size_t area = address_index_find_area(index, address >> ADDRESS_AREA_BITS);
    const struct address_cell *cell = address_index_cell(index, &index->areas[area], address);
    return cell ? address_index_count_in_cell(index, cell, address)
                : address_index_search_area(index, table, area, address);
}

void address_index_count_batch(struct address_index *index, const struct packed_table *table,
                               const uint64_t *addresses, size_t address_count, uint32_t *counts)
{
    const struct address_cell *cells[ADDRESS_BATCH];
    assert(address_count <= ADDRESS_BATCH);
    for (size_t i = 0; i < address_count; i++) {
        cells[i] = NULL;
        if (!index->count || addresses[i] < index->lowest)
            continue;
        size_t area = address_index_find_area(index, addresses[i] >> ADDRESS_AREA_BITS);
        cells[i] = address_index_cell(index, &index->areas[area], addresses[i]);
        if (cells[i])
            __builtin_prefetch(cells[i]);
    }
    for (size_t i = 0; i < address_count; i++)
        counts[i] = cells[i] ? address_index_count_in_cell(index, cells[i], addresses[i])
                             : address_index_count(index, table, addresses[i]);
}
