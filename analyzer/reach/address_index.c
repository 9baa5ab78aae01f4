/* SPDX-License-Identifier: MIT */
/*
 * Looking up an address takes some ten steps, whatever the number of rows: the area, from a small
 * cache or by binary search among areas; the granule in the area's table; then the few rows of the
 * granule. A table takes 2 kB, and only areas with many rows have one, so that tables take at most
 * 32 bytes a row.
 */
#include "reach/address_index.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/pages.h"

#define GRANULE_BITS 8
#define GRANULES     (1u << (ADDRESS_AREA_BITS - GRANULE_BITS))
#define DENSE        64
#define NONE         UINT32_MAX

static uint64_t address_of(const struct address_index *index, const struct rows *rows, uint32_t row)
{
    return rows_get(rows, row, index->field);
}

/* The row after the last one of an area. */
static uint32_t end_of(const struct address_index *index, size_t area)
{
    return area + 1 < index->area_count ? index->areas[area + 1].first : index->count;
}

static enum ttd_status find_areas(struct address_index *index, const struct rows *rows)
{
    size_t capacity = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        uint64_t number = address_of(index, rows, i) >> ADDRESS_AREA_BITS;
        if (index->area_count && index->areas[index->area_count - 1].number == number)
            continue;
        enum ttd_status status = grow_array((void **)&index->areas, &capacity,
                                            index->area_count + 1, sizeof *index->areas);
        if (status != TTD_OK)
            return status;
        index->areas[index->area_count++] = (struct address_area){number, i, NONE};
    }
    return TTD_OK;
}

static void fill_table(const struct address_index *index, const struct rows *rows, size_t area,
                       uint32_t *table)
{
    uint32_t row = index->areas[area].first;
    uint32_t end = end_of(index, area);
    for (uint32_t granule = 0; granule <= GRANULES; granule++) {
        uint64_t begin =
            (index->areas[area].number << ADDRESS_AREA_BITS) + ((uint64_t)granule << GRANULE_BITS);
        /* The last granule of the address space ends at 0. */
        while (row < end && (granule == GRANULES || address_of(index, rows, row) < begin))
            row++;
        table[granule] = row;
    }
}

static enum ttd_status make_tables(struct address_index *index, const struct rows *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < index->area_count; i++)
        count += end_of(index, i) - index->areas[i].first >= DENSE;
    size_t size = (count * (GRANULES + 1) + 1) * sizeof *index->tables;
    index->tables = malloc(size);
    if (!index->tables)
        return TTD_ERROR_NO_MEMORY;
    pages_hint(index->tables, size);
    uint32_t next = 0;
    for (size_t i = 0; i < index->area_count; i++) {
        if (end_of(index, i) - index->areas[i].first < DENSE)
            continue;
        index->areas[i].table = next;
        fill_table(index, rows, i, &index->tables[next]);
        next += GRANULES + 1;
    }
    return TTD_OK;
}

enum ttd_status address_index_init(struct address_index *index, const struct rows *rows,
                                   unsigned field, uint32_t count)
{
    *index = (struct address_index){.field = field, .count = count};
    memset(index->cache, 0xff, sizeof index->cache);
    if (count)
        index->lowest = address_of(index, rows, 0);
    enum ttd_status status = find_areas(index, rows);
    return status == TTD_OK ? make_tables(index, rows) : status;
}

void address_index_free(struct address_index *index)
{
    free(index->areas);
    free(index->tables);
    *index = (struct address_index){.count = 0};
}

/* The last area whose number is not larger; there is one. */
static size_t find_area(struct address_index *index, uint64_t number)
{
    uint32_t *cached = &index->cache[number % ADDRESS_CACHE_SIZE];
    if (*cached != NONE && index->areas[*cached].number == number)
        return *cached;
    size_t low = 0, high = index->area_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (index->areas[middle].number <= number)
            low = middle;
        else
            high = middle;
    }
    *cached = (uint32_t)low;
    return low;
}

uint32_t address_index_count(struct address_index *index, const struct rows *rows, uint64_t address)
{
    if (!index->count || address < index->lowest)
        return 0;
    size_t area = find_area(index, address >> ADDRESS_AREA_BITS);
    uint32_t low = index->areas[area].first, high = end_of(index, area);
    if (index->areas[area].number != address >> ADDRESS_AREA_BITS)
        return high;
    if (index->areas[area].table != NONE) {
        const uint32_t *table = &index->tables[index->areas[area].table];
        uint64_t granule = address >> GRANULE_BITS & (GRANULES - 1);
        low = table[granule];
        high = table[granule + 1];
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (address_of(index, rows, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The entry of an address in the table of its area; NULL if that has none. */
static const uint32_t *entry_of(struct address_index *index, uint64_t address)
{
    if (!index->count || address < index->lowest)
        return NULL;
    const struct address_area *area = &index->areas[find_area(index, address >> ADDRESS_AREA_BITS)];
    if (area->number != address >> ADDRESS_AREA_BITS || area->table == NONE)
        return NULL;
    return &index->tables[area->table] + (address >> GRANULE_BITS & (GRANULES - 1));
}

void address_index_prefetch_entry(struct address_index *index, uint64_t address)
{
    const uint32_t *entry = entry_of(index, address);
    if (entry)
        __builtin_prefetch(entry);
}

void address_index_prefetch_row(struct address_index *index, const struct rows *rows,
                                uint64_t address)
{
    const uint32_t *entry = entry_of(index, address);
    if (entry)
        rows_prefetch(rows, *entry);
}
