/* SPDX-License-Identifier: MIT */
/*
 * Looking up the block of an address takes some ten steps, whatever the number of blocks: the
 * area, from a small cache or by binary search among areas; the granule in the area's table; then
 * the few blocks that begin in the granule. A table takes 2 kB, and only areas in which many blocks
 * begin have one, so that tables take at most 32 bytes a block.
 */
#include "reach/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/pages.h"
#include "base/sort.h"
#include "graph/graph.h"

#define GRANULE_BITS 8
#define GRANULES     (1u << (HEAP_AREA_BITS - GRANULE_BITS))
#define DENSE        64

/* Memory that is used in no order is in large pages. */
static void *new_array(size_t count, size_t size)
{
    void *array = count < SIZE_MAX / size ? malloc(count * size) : NULL;
    pages_hint(array, count * size);
    return array;
}

static struct heap_range range_of(const struct heap_block *block)
{
    uint64_t reach = block->size ? block->size - 1 : 0;
    bool is_nonsense = reach > UINT64_MAX - block->address;
    return (struct heap_range){block->address, is_nonsense ? UINT64_MAX : block->address + reach};
}

/* Lists the live blocks in the order of their addresses. False without memory. */
static bool sort(struct heap_nodes *nodes, const struct heap_live *live, struct sort_key *keys,
                 size_t count)
{
    struct sort_key *spare = new_array(count + 1, sizeof *spare);
    const struct heap_block *block;
    size_t cursor = 0;
    while (nodes->count < count && (block = heap_live_each(live, &cursor)))
        keys[nodes->count++] = (struct sort_key){block->address, (uint32_t)(block - live->blocks)};
    if (spare)
        sort_keys(keys, spare, nodes->count);
    free(spare);
    return spare;
}

static enum ttd_status copy(struct heap_nodes *nodes, const struct heap_live *live)
{
    size_t count = (size_t)live->count;
    if (count > GRAPH_NODES_MAX)
        return TTD_ERROR_NO_MEMORY;
    struct sort_key *keys = new_array(count + 1, sizeof *keys);
    if (!keys)
        return TTD_ERROR_NO_MEMORY;
    bool has_room = sort(nodes, live, keys, count);
    if (has_room) {
        nodes->blocks = new_array(count + 1, sizeof *nodes->blocks);
        nodes->ranges = new_array(count + 1, sizeof *nodes->ranges);
        has_room = nodes->blocks && nodes->ranges;
    }
    for (uint32_t i = 0; has_room && i < nodes->count; i++) {
        nodes->blocks[i] = live->blocks[keys[i].item];
        nodes->ranges[i] = range_of(&nodes->blocks[i]);
    }
    free(keys);
    return has_room ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

/* The node after the last one of an area. */
static uint32_t end_of(const struct heap_nodes *nodes, size_t area)
{
    return area + 1 < nodes->area_count ? nodes->areas[area + 1].first : nodes->count;
}

static enum ttd_status find_areas(struct heap_nodes *nodes)
{
    size_t capacity = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        uint64_t number = nodes->ranges[i].first >> HEAP_AREA_BITS;
        if (nodes->area_count && nodes->areas[nodes->area_count - 1].number == number)
            continue;
        enum ttd_status status = grow_array((void **)&nodes->areas, &capacity,
                                            nodes->area_count + 1, sizeof *nodes->areas);
        if (status != TTD_OK)
            return status;
        nodes->areas[nodes->area_count++] = (struct heap_area){number, i, HEAP_NO_NODE};
    }
    return TTD_OK;
}

static void fill_table(const struct heap_nodes *nodes, size_t area, uint32_t *table)
{
    uint32_t node = nodes->areas[area].first;
    uint32_t end = end_of(nodes, area);
    for (uint32_t granule = 0; granule <= GRANULES; granule++) {
        uint64_t begin =
            (nodes->areas[area].number << HEAP_AREA_BITS) + ((uint64_t)granule << GRANULE_BITS);
        /* The last granule of the address space ends at 0. */
        while (node < end && (granule == GRANULES || nodes->ranges[node].first < begin))
            node++;
        table[granule] = node;
    }
}

static enum ttd_status make_tables(struct heap_nodes *nodes)
{
    size_t count = 0;
    for (size_t i = 0; i < nodes->area_count; i++)
        count += end_of(nodes, i) - nodes->areas[i].first >= DENSE;
    nodes->tables = new_array(count * (GRANULES + 1) + 1, sizeof *nodes->tables);
    if (!nodes->tables)
        return TTD_ERROR_NO_MEMORY;
    uint32_t next = 0;
    for (size_t i = 0; i < nodes->area_count; i++) {
        if (end_of(nodes, i) - nodes->areas[i].first < DENSE)
            continue;
        nodes->areas[i].table = next;
        fill_table(nodes, i, &nodes->tables[next]);
        next += GRANULES + 1;
    }
    return TTD_OK;
}

enum ttd_status heap_nodes_copy(struct heap_nodes *nodes, const struct heap_live *live)
{
    memset(nodes, 0, sizeof *nodes);
    memset(nodes->cache, 0xff, sizeof nodes->cache);
    enum ttd_status status = copy(nodes, live);
    if (status == TTD_OK)
        status = find_areas(nodes);
    return status == TTD_OK ? make_tables(nodes) : status;
}

void heap_nodes_free(struct heap_nodes *nodes)
{
    free(nodes->blocks);
    free(nodes->ranges);
    free(nodes->areas);
    free(nodes->tables);
    memset(nodes, 0, sizeof *nodes);
}

/* The last area whose number is not larger; there is one. */
static size_t find_area(struct heap_nodes *nodes, uint64_t number)
{
    uint32_t *cached = &nodes->cache[number % HEAP_CACHE_SIZE];
    if (*cached != HEAP_NO_NODE && nodes->areas[*cached].number == number)
        return *cached;
    size_t low = 0, high = nodes->area_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (nodes->areas[middle].number <= number)
            low = middle;
        else
            high = middle;
    }
    *cached = (uint32_t)low;
    return low;
}

/* The last node that begins at an address or before; there is one. */
static uint32_t last_before(struct heap_nodes *nodes, uint64_t address)
{
    size_t area = find_area(nodes, address >> HEAP_AREA_BITS);
    uint32_t low = nodes->areas[area].first, high = end_of(nodes, area);
    if (nodes->areas[area].number != address >> HEAP_AREA_BITS)
        return high - 1;
    if (nodes->areas[area].table != HEAP_NO_NODE) {
        const uint32_t *table = &nodes->tables[nodes->areas[area].table];
        uint64_t granule = address >> GRANULE_BITS & (GRANULES - 1);
        low = table[granule];
        high = table[granule + 1];
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (nodes->ranges[middle].first <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* The entry of an address in the table of its area; NULL if that has none. */
static const uint32_t *entry_of(struct heap_nodes *nodes, uint64_t address)
{
    if (!nodes->count || address < nodes->ranges[0].first)
        return NULL;
    const struct heap_area *area = &nodes->areas[find_area(nodes, address >> HEAP_AREA_BITS)];
    if (area->number != address >> HEAP_AREA_BITS || area->table == HEAP_NO_NODE)
        return NULL;
    return &nodes->tables[area->table] + (address >> GRANULE_BITS & (GRANULES - 1));
}

void heap_nodes_prefetch_entry(struct heap_nodes *nodes, uint64_t address)
{
    const uint32_t *entry = entry_of(nodes, address);
    if (entry)
        __builtin_prefetch(entry);
}

void heap_nodes_prefetch_range(struct heap_nodes *nodes, uint64_t address)
{
    const uint32_t *entry = entry_of(nodes, address);
    if (entry)
        __builtin_prefetch(&nodes->ranges[*entry]);
}

uint32_t heap_nodes_at(struct heap_nodes *nodes, uint64_t address)
{
    if (!nodes->count || address < nodes->ranges[0].first)
        return HEAP_NO_NODE;
    uint32_t node = last_before(nodes, address);
    return heap_range_has(&nodes->ranges[node], address) ? node : HEAP_NO_NODE;
}

uint32_t heap_nodes_of(struct heap_nodes *nodes, const struct heap_block *block)
{
    uint32_t node = heap_nodes_at(nodes, block->address);
    if (node == HEAP_NO_NODE || nodes->ranges[node].first != block->address ||
        nodes->blocks[node].event != block->event)
        return HEAP_NO_NODE;
    return node;
}
