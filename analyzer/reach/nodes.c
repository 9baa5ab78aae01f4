/* SPDX-License-Identifier: MIT */
#include "reach/nodes.h"

#include "base/table.h"
#include "heap/sort_blocks.h"
#include "graph/graph.h"

/* Blocks between a prefetch and its use. */
#define AHEAD 16

_Static_assert(HEAP_NODE_FIELDS <= ROWS_FIELDS_MAX, "room for the fields");

static void get_fields(const struct heap_block *block, uint64_t *values)
{
    values[HEAP_NODE_ADDRESS] = block->address;
    values[HEAP_NODE_SIZE] = block->size;
    values[HEAP_NODE_SEQUENCE] = block->allocated.sequence;
    values[HEAP_NODE_STEPS] = block->allocated.steps;
    values[HEAP_NODE_API] = block->api;
    values[HEAP_NODE_STACK] = block->stack;
    values[HEAP_NODE_EVENT] = block->event;
    values[HEAP_NODE_THREAD] = block->thread;
    values[HEAP_NODE_HEAP] = block->heap;
    values[HEAP_NODE_ACTION] = block->action;
}

/* Lists the live blocks, and finds the values of their fields. */
static void list(struct heap_nodes *nodes, const struct heap_live *live, struct sort_key *keys,
                 struct row_range *ranges)
{
    const struct heap_block *block;
    size_t cursor = 0;
    for (unsigned i = 0; i < HEAP_NODE_FIELDS; i++)
        ranges[i] = row_range_none();
    while (nodes->count < live->count && (block = heap_live_each(live, &cursor))) {
        uint64_t values[HEAP_NODE_FIELDS];
        keys[nodes->count++] = heap_block_key(live->blocks, block);
        get_fields(block, values);
        for (unsigned i = 0; i < HEAP_NODE_FIELDS; i++)
            row_range_widen(&ranges[i], values[i]);
    }
}

static void fill(struct heap_nodes *nodes, const struct heap_live *live,
                 const struct sort_key *keys)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        uint64_t values[HEAP_NODE_FIELDS];
        if (i + AHEAD < nodes->count)
            __builtin_prefetch(&live->blocks[keys[i + AHEAD].item]);
        get_fields(&live->blocks[keys[i].item], values);
        rows_fill(&nodes->rows, i, values, HEAP_NODE_FIELDS);
    }
}

/* Copies the live blocks in the order of their addresses. `keys` has room for them. */
static enum ttd_status copy(struct heap_nodes *nodes, const struct heap_live *live,
                            struct sort_key *keys, size_t size)
{
    struct row_range ranges[HEAP_NODE_FIELDS];
    struct sort_key *spare = table_resize(NULL, 0, size);
    if (!spare)
        return TTD_ERROR_NO_MEMORY;
    list(nodes, live, keys, ranges);
    heap_sort_blocks(live->blocks, keys, spare, nodes->count);
    /* It would be in memory beside the rows. */
    table_give_back(spare, size);
    enum ttd_status status = rows_init(&nodes->rows, nodes->count, ranges, HEAP_NODE_FIELDS);
    if (status == TTD_OK)
        fill(nodes, live, keys);
    return status;
}

enum ttd_status heap_nodes_copy(struct heap_nodes *nodes, struct heap_live *live)
{
    *nodes = (struct heap_nodes){.count = 0};
    if (live->count > GRAPH_NODES_MAX)
        return TTD_ERROR_NO_MEMORY;
    heap_live_drop_index(live);
    size_t size = ((size_t)live->count + 1) * sizeof(struct sort_key);
    struct sort_key *keys = table_resize(NULL, 0, size);
    if (!keys)
        return TTD_ERROR_NO_MEMORY;
    enum ttd_status status = copy(nodes, live, keys, size);
    table_free(keys, size);
    return status == TTD_OK
               ? address_index_init(&nodes->index, &nodes->rows, HEAP_NODE_ADDRESS, nodes->count)
               : status;
}

void heap_nodes_free(struct heap_nodes *nodes)
{
    rows_free(&nodes->rows);
    address_index_free(&nodes->index);
    nodes->count = 0;
}

struct heap_block heap_nodes_block(const struct heap_nodes *nodes, uint32_t node)
{
    return (struct heap_block){.address = heap_nodes_address(nodes, node),
                               .size = heap_nodes_size(nodes, node),
                               .event = heap_nodes_get(nodes, node, HEAP_NODE_EVENT),
                               .allocated = heap_nodes_allocated(nodes, node),
                               .thread = (ttd_id)heap_nodes_get(nodes, node, HEAP_NODE_THREAD),
                               .stack = heap_nodes_stack(nodes, node),
                               .heap = (ttd_id)heap_nodes_get(nodes, node, HEAP_NODE_HEAP),
                               .action = (uint8_t)heap_nodes_get(nodes, node, HEAP_NODE_ACTION),
                               .api = (uint8_t)heap_nodes_get(nodes, node, HEAP_NODE_API)};
}

uint32_t heap_nodes_at(struct heap_nodes *nodes, uint64_t address)
{
    uint32_t count = address_index_count(&nodes->index, &nodes->rows, address);
    return count && heap_nodes_has(nodes, count - 1, address) ? count - 1 : HEAP_NO_NODE;
}

uint32_t heap_nodes_of(struct heap_nodes *nodes, const struct heap_block *block)
{
    uint32_t node = heap_nodes_at(nodes, block->address);
    if (node == HEAP_NO_NODE || heap_nodes_address(nodes, node) != block->address ||
        heap_nodes_get(nodes, node, HEAP_NODE_EVENT) != block->event)
        return HEAP_NO_NODE;
    return node;
}
