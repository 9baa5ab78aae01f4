/* SPDX-License-Identifier: MIT */
#include "reach/nodes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/table.h"
#include "base/task.h"
#include "common/search.h"
#include "graph/graph.h"
#include "heap/heap_live.h"

/* Blocks between a prefetch and its use. */
#define AHEAD 16

_Static_assert(HEAP_NODE_FIELDS <= PACKED_FIELDS_MAX, "room for the fields");

static void nodes_get_fields(const struct heap_block *block, uint64_t *values)
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

/* One half of the records, whose blocks are listed. */
struct listing {
    const struct heap_live *live;
    /* The first half fills the keys from their begin, the second one from their end: there are as
     * many as live blocks. */
    struct sort_key *keys;
    bool is_second;
    uint32_t count;
    struct value_range ranges[HEAP_NODE_FIELDS];
};

/* Lists the live blocks among some records, and finds the values of their fields. */
static enum ttd_status nodes_list_half(void *context, size_t begin, size_t end)
{
    struct listing *half = context;
    const struct heap_live *live = half->live;
    const struct heap_block *block;
    for (unsigned i = 0; i < HEAP_NODE_FIELDS; i++)
        half->ranges[i] = value_range_none();
    while (half->count < live->count && (block = heap_live_each(live, &begin)) && begin <= end) {
        uint64_t values[HEAP_NODE_FIELDS];
        uint64_t place = half->is_second ? live->count - 1 - half->count : half->count;
        half->keys[place] = heap_block_key(live->blocks, block);
        half->count++;
        nodes_get_fields(block, values);
        for (unsigned i = 0; i < HEAP_NODE_FIELDS; i++)
            value_range_widen(&half->ranges[i], values[i]);
    }
    return TTD_OK;
}

static void nodes_list_blocks(struct heap_nodes *nodes, const struct heap_live *live,
                              struct sort_key *keys, struct value_range *ranges)
{
    struct listing first = {.live = live, .keys = keys};
    struct listing second = {.live = live, .keys = keys, .is_second = true};
    (void)halves_do(nodes_list_half, &first, &second, live->block_count);
    nodes->count = first.count + second.count;
    assert(nodes->count == live->count);
    for (unsigned i = 0; i < HEAP_NODE_FIELDS; i++) {
        ranges[i] = first.ranges[i];
        value_range_join(&ranges[i], second.ranges[i]);
    }
}

/* A half of the rows of the nodes, in the order of their blocks. */
struct filling {
    struct packed_table *table;
    const struct heap_block *blocks;
    const uint32_t *order;
    bool has_nested; /* some block begins within the one before */
};

static enum ttd_status nodes_fill_half(void *context, size_t begin, size_t end)
{
    struct filling *filling = context;
    const struct heap_block *before = begin ? &filling->blocks[filling->order[begin - 1]] : NULL;
    for (size_t i = begin; i < end; i++) {
        uint64_t values[HEAP_NODE_FIELDS];
        const struct heap_block *block = &filling->blocks[filling->order[i]];
        if (i + AHEAD < end)
            __builtin_prefetch(&filling->blocks[filling->order[i + AHEAD]]);
        nodes_get_fields(block, values);
        packed_table_fill(filling->table, i, end, values, HEAP_NODE_FIELDS);
        filling->has_nested |= before && block->address - before->address < before->size;
        before = block;
    }
    return TTD_OK;
}

/* Turns sorted keys into the indexes of their blocks, in the same memory. */
static uint32_t *nodes_make_order(struct sort_key *keys, uint32_t count)
{
    char *order = (char *)keys;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = keys[i].index;
        memcpy(order + i * sizeof index, &index, sizeof index);
    }
    return (uint32_t *)(void *)order;
}

/* Copies the live blocks in the order of their addresses. `keys` has room for them, of `size`
 * bytes. Sets `has_nested` to whether some lie in others. */
static enum ttd_status nodes_copy_blocks(struct heap_nodes *nodes, const struct heap_live *live,
                                         struct sort_key *keys, size_t size, bool *has_nested)
{
    struct value_range ranges[HEAP_NODE_FIELDS];
    struct sort_key *spare = table_resize(NULL, 0, size);
    if (!spare)
        return TTD_ERROR_NO_MEMORY;
    nodes_list_blocks(nodes, live, keys, ranges);
    heap_sort_blocks(live->blocks, keys, spare, nodes->count);
    table_free(spare, size);
    const uint32_t *order = nodes_make_order(keys, nodes->count);
    enum ttd_status status =
        packed_table_init(&nodes->table, nodes->count, ranges, HEAP_NODE_FIELDS);
    struct filling first = {&nodes->table, live->blocks, order, false}, second = first;
    if (status == TTD_OK)
        status = halves_do(nodes_fill_half, &first, &second, nodes->count);
    *has_nested = first.has_nested || second.has_nested;
    return status;
}

/* Blocks that begin before the next one, innermost last: each may hold that one. */
struct open_nodes {
    uint32_t *nodes;
    size_t count;
};

/* The innermost open block that a block lies in. A parent has a lower id. Blocks of other heaps in
 * between (only in a faulty trace) are looked at up to a limit. */
static uint32_t nodes_holder_of(const struct heap_nodes *nodes, const struct open_nodes *open,
                                uint32_t node, bool has_parent)
{
    uint64_t heap = heap_nodes_get(nodes, node, HEAP_NODE_HEAP);
    uint64_t last = heap_nodes_last(nodes, node);
    size_t least = open->count > HEAP_SHARED_MAX ? open->count - HEAP_SHARED_MAX : 0;
    for (size_t i = open->count; i > least; i--) {
        uint32_t candidate = open->nodes[i - 1];
        uint64_t other = heap_nodes_get(nodes, candidate, HEAP_NODE_HEAP);
        if ((has_parent ? other < heap : other == heap) &&
            heap_nodes_last(nodes, candidate) >= last)
            return candidate;
    }
    return HEAP_NO_NODE;
}

/* Finds the blocks that lie in others. A heap that has no parent has its blocks from the system;
 * but a function on top of the allocator, as an operator new that puts a header before each block,
 * returns a part of the block that it got, and both are blocks of one heap. */
static enum ttd_status nodes_find_outer(struct heap_nodes *nodes,
                                        const struct heap_parents *parents)
{
    struct open_nodes open = {.nodes = malloc((size_t)nodes->count * sizeof *open.nodes)};
    nodes->outer = malloc((size_t)nodes->count * sizeof *nodes->outer);
    if (!open.nodes || !nodes->outer) {
        free(open.nodes);
        return TTD_ERROR_NO_MEMORY;
    }
    for (uint32_t node = 0; node < nodes->count; node++) {
        uint64_t address = heap_nodes_address(nodes, node);
        ttd_id heap = (ttd_id)heap_nodes_get(nodes, node, HEAP_NODE_HEAP);
        while (open.count && heap_nodes_last(nodes, open.nodes[open.count - 1]) < address)
            open.count--;
        nodes->outer[node] =
            nodes_holder_of(nodes, &open, node, heap_parents_get(parents, heap) != TTD_NONE);
        open.nodes[open.count++] = node;
    }
    free(open.nodes);
    return TTD_OK;
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
    bool has_nested = false;
    enum ttd_status status = nodes_copy_blocks(nodes, live, keys, size, &has_nested);
    table_free(keys, size);
    if (status == TTD_OK && (has_nested || live->outer_count < live->count))
        status = nodes_find_outer(nodes, &live->parents);
    return status == TTD_OK
               ? address_index_init(&nodes->index, &nodes->table, HEAP_NODE_ADDRESS, nodes->count)
               : status;
}

void heap_nodes_free(struct heap_nodes *nodes)
{
    packed_table_free(&nodes->table);
    address_index_free(&nodes->index);
    free(nodes->outer);
    nodes->outer = NULL;
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
    uint32_t count = address_index_count(&nodes->index, &nodes->table, address);
    return heap_nodes_innermost(nodes, count, address);
}

uint32_t heap_nodes_of(struct heap_nodes *nodes, const struct heap_block *block)
{
    uint32_t node = heap_nodes_at(nodes, block->address);
    while (node != HEAP_NO_NODE && (heap_nodes_address(nodes, node) != block->address ||
                                    heap_nodes_get(nodes, node, HEAP_NODE_EVENT) != block->event))
        node = heap_nodes_outer(nodes, node);
    return node;
}

#define CAPACITY_MIN 64

static size_t nodes_edge_offsets_bytes(size_t capacity)
{
    return capacity * sizeof(uint32_t);
}

enum ttd_status edge_offsets_grow(const struct edge_offsets *offsets,
                                  struct edge_offset_array *array, uint64_t edge, uint32_t offset)
{
    size_t capacity = array->capacity ? array->capacity : offsets->expected;
    if (capacity < CAPACITY_MIN)
        capacity = CAPACITY_MIN;
    while (capacity <= edge) {
        if (capacity > SIZE_MAX / 2 / sizeof(uint32_t))
            return TTD_ERROR_NO_MEMORY;
        capacity = table_next(capacity, sizeof(uint32_t));
    }
    uint32_t *grown = table_resize(array->offsets, nodes_edge_offsets_bytes(array->capacity),
                                   nodes_edge_offsets_bytes(capacity));
    if (!grown)
        return TTD_ERROR_NO_MEMORY;
    *array = (struct edge_offset_array){grown, capacity};
    grown[edge] = offset;
    return TTD_OK;
}

void edge_offsets_free(struct edge_offsets *offsets)
{
    table_free(offsets->in_source.offsets, nodes_edge_offsets_bytes(offsets->in_source.capacity));
    table_free(offsets->in_target.offsets, nodes_edge_offsets_bytes(offsets->in_target.capacity));
    free(offsets->far);
    *offsets = (struct edge_offsets){.expected = offsets->expected,
                                     .is_without_sources = offsets->is_without_sources};
}

static void nodes_clear_array(const struct edge_offset_array *array, uint64_t count)
{
    if (array->offsets)
        memset(array->offsets, 0,
               nodes_edge_offsets_bytes(count < array->capacity ? (size_t)count : array->capacity));
}

void edge_offsets_clear(struct edge_offsets *offsets, uint64_t count)
{
    nodes_clear_array(&offsets->in_source, count);
    nodes_clear_array(&offsets->in_target, count);
    offsets->far_count = 0;
}

enum ttd_status edge_offsets_add_far(struct edge_offsets *offsets, uint64_t edge, uint64_t source)
{
    enum ttd_status status = grow_array((void **)&offsets->far, &offsets->far_capacity,
                                        offsets->far_count + 1, sizeof *offsets->far);
    if (status != TTD_OK)
        return status;
    offsets->far[offsets->far_count++] = (struct edge_far_offset){edge, source};
    return edge_offsets_set(offsets, &offsets->in_source, edge, UINT32_MAX);
}

uint64_t edge_offset_in_source(const struct edge_offsets *offsets, uint64_t edge)
{
    uint32_t near = edge < offsets->in_source.capacity ? offsets->in_source.offsets[edge] : 0;
    if (near != UINT32_MAX)
        return near;
    size_t after = 0, high = offsets->far_count;
    SEARCH_SORTED(after, high, middle, offsets->far[middle].edge <= edge);
    return offsets->far[after - 1].offset;
}

#define BITS_MIN      4096
#define BITS_PER_NODE 16

static size_t nodes_survivors_bytes(const struct reach_survivors *survivors)
{
    return (size_t)(survivors->bit_count / 8);
}

static uint64_t nodes_last_event(const struct heap_nodes *nodes)
{
    uint64_t last = 0;
    for (uint32_t node = 0; node < nodes->count; node++) {
        uint64_t event = heap_nodes_get(nodes, node, HEAP_NODE_EVENT);
        last = event > last ? event : last;
    }
    return last;
}

enum ttd_status reach_survivors_init(struct reach_survivors *survivors, struct heap_nodes *nodes)
{
    uint64_t last = nodes_last_event(nodes);
    *survivors = (struct reach_survivors){.nodes = nodes, .bit_count = BITS_MIN};
    while (survivors->bit_count <= last &&
           survivors->bit_count < (uint64_t)nodes->count * BITS_PER_NODE)
        survivors->bit_count *= 2;
    survivors->is_exact = last < survivors->bit_count;
    survivors->bits = table_resize(NULL, 0, nodes_survivors_bytes(survivors));
    if (!survivors->bits)
        return TTD_ERROR_NO_MEMORY;
    for (uint32_t node = 0; node < nodes->count; node++) {
        uint64_t bit = heap_nodes_get(nodes, node, HEAP_NODE_EVENT) & (survivors->bit_count - 1);
        survivors->bits[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    return TTD_OK;
}

void reach_survivors_free(struct reach_survivors *survivors)
{
    if (survivors->bits)
        table_free(survivors->bits, nodes_survivors_bytes(survivors));
    *survivors = (struct reach_survivors){.bits = NULL};
}
