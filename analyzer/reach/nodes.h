/* SPDX-License-Identifier: MIT */
/** The blocks of a snapshot, by address: the nodes of its graph. */
#ifndef ANALYZER_REACH_NODES_H
#define ANALYZER_REACH_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ttdtrace/status.h>

#include "heap/heap_live.h"
#include "reach/address_index.h"

/** No node. */
#define HEAP_NO_NODE UINT32_MAX

/** All zero when empty. */
struct heap_nodes {
    uint32_t count;
    /** The blocks as they were at the position, by address; heap_nodes_block() and others read
     * them. */
    struct packed_table table;
    struct address_index index;
    /** By node: the block of another heap that it lies in, HEAP_NO_NODE for none. NULL if no block
     * lies in another. */
    uint32_t *outer;
};

/** Fields of heap_nodes.rows. */
enum heap_node_field {
    HEAP_NODE_ADDRESS,
    HEAP_NODE_SIZE,
    HEAP_NODE_SEQUENCE,
    HEAP_NODE_STEPS,
    HEAP_NODE_API,
    HEAP_NODE_STACK,
    HEAP_NODE_EVENT,
    HEAP_NODE_THREAD,
    HEAP_NODE_HEAP,
    HEAP_NODE_ACTION,
    HEAP_NODE_FIELDS
};

/**
 * Copies the live blocks of a table, and sorts them by address. A block of ordinary traces takes 15
 * to 30 bytes.
 *
 * @param nodes  release with heap_nodes_free(), also on failure
 * @param live   its index is dropped: heap_live_make_index() comes before any other use than
 *               heap_live_each()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_nodes_copy(struct heap_nodes *nodes, struct heap_live *live);
void heap_nodes_free(struct heap_nodes *nodes);

/** The block of a node, without the members that are the table's own. */
struct heap_block heap_nodes_block(const struct heap_nodes *nodes, uint32_t node);

/** Its address, size, event and so on. */
static inline uint64_t heap_nodes_get(const struct heap_nodes *nodes, uint32_t node,
                                      enum heap_node_field field)
{
    return packed_table_get(&nodes->table, node, field);
}

static inline uint64_t heap_nodes_address(const struct heap_nodes *nodes, uint32_t node)
{
    return heap_nodes_get(nodes, node, HEAP_NODE_ADDRESS);
}

static inline uint64_t heap_nodes_size(const struct heap_nodes *nodes, uint32_t node)
{
    return heap_nodes_get(nodes, node, HEAP_NODE_SIZE);
}

static inline ttd_id heap_nodes_stack(const struct heap_nodes *nodes, uint32_t node)
{
    return (ttd_id)heap_nodes_get(nodes, node, HEAP_NODE_STACK);
}

static inline struct ttd_position heap_nodes_allocated(const struct heap_nodes *nodes,
                                                       uint32_t node)
{
    return (struct ttd_position){heap_nodes_get(nodes, node, HEAP_NODE_SEQUENCE),
                                 heap_nodes_get(nodes, node, HEAP_NODE_STEPS)};
}

/** Whether an allocator clears the memory of blocks from a function, an enum ttd_api. */
static inline bool heap_api_clears(uint64_t api)
{
    return api == TTD_API_CALLOC || api == TTD_API_MI_CALLOC_ALIGNED;
}

/** Whether the allocator has cleared the memory of a block. */
static inline bool heap_nodes_is_cleared(const struct heap_nodes *nodes, uint32_t node)
{
    return heap_api_clears(heap_nodes_get(nodes, node, HEAP_NODE_API));
}

/** The last address of a block; for a block of no bytes, its own address. */
static inline uint64_t heap_nodes_last(const struct heap_nodes *nodes, uint32_t node)
{
    uint64_t first = heap_nodes_address(nodes, node);
    uint64_t size = heap_nodes_size(nodes, node);
    uint64_t last_offset = size ? size - 1 : 0;
    return last_offset > UINT64_MAX - first ? UINT64_MAX : first + last_offset;
}

/** Whether an address lies in a block. The one after its last byte does not. */
static inline bool heap_nodes_has(const struct heap_nodes *nodes, uint32_t node, uint64_t address)
{
    return address >= heap_nodes_address(nodes, node) && address <= heap_nodes_last(nodes, node);
}

/** Returns the node that a node lies in; HEAP_NO_NODE if there is none. */
static inline uint32_t heap_nodes_outer(const struct heap_nodes *nodes, uint32_t node)
{
    return nodes->outer ? nodes->outer[node] : HEAP_NO_NODE;
}

/** Returns the innermost node that an address lies in, given how many begin at it or before it;
 * HEAP_NO_NODE if there is none. */
static inline uint32_t heap_nodes_innermost(const struct heap_nodes *nodes, uint32_t count,
                                            uint64_t address)
{
    uint32_t node = count ? count - 1 : HEAP_NO_NODE;
    while (node != HEAP_NO_NODE && !heap_nodes_has(nodes, node, address))
        node = heap_nodes_outer(nodes, node);
    return node;
}

/** The innermost node that an address lies in, HEAP_NO_NODE if there is none. */
uint32_t heap_nodes_at(struct heap_nodes *nodes, uint64_t address);

/** The node of a block: of that address, and acquired by the same event. HEAP_NO_NODE if none. */
uint32_t heap_nodes_of(struct heap_nodes *nodes, const struct heap_block *block);

/* The word of each edge: its offset in the block that has it, and where in the other block it
 * points. */

/** An offset in a block of 4 GB or more. */
struct edge_far_offset {
    uint64_t edge;
    uint64_t offset;
};

/** Offsets by edge; those from `capacity` on are 0. */
struct edge_offset_array {
    uint32_t *offsets;
    size_t capacity;
};

/** All zero when empty. */
struct edge_offsets {
    /** UINT32_MAX if it is in `far`. */
    struct edge_offset_array in_source;
    struct edge_offset_array in_target;
    /** In the order of edges. */
    struct edge_far_offset *far;
    size_t far_count;
    size_t far_capacity;
    /** Room that an array gets at first. */
    size_t expected;
    /** Nobody asks for offsets in sources. */
    bool is_without_sources;
};

void edge_offsets_free(struct edge_offsets *offsets);

/** Private: makes room for more offsets, and sets an edge's; or adds one to `far`. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status edge_offsets_grow(const struct edge_offsets *offsets,
                                  struct edge_offset_array *array, uint64_t edge, uint32_t offset);
enum ttd_status edge_offsets_add_far(struct edge_offsets *offsets, uint64_t edge, uint64_t source);

/** Private. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static inline enum ttd_status edge_offsets_set(const struct edge_offsets *offsets,
                                               struct edge_offset_array *array, uint64_t edge,
                                               uint32_t offset)
{
    if (!offset)
        return TTD_OK;
    if (edge >= array->capacity)
        return edge_offsets_grow(offsets, array, edge, offset);
    array->offsets[edge] = offset;
    return TTD_OK;
}

/**
 * Adds the offsets of an edge. Edges come in their order.
 *
 * @param target  UINT32_MAX for that and more
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
static inline enum ttd_status edge_offsets_add(struct edge_offsets *offsets, uint64_t edge,
                                               uint64_t source, uint32_t target)
{
    enum ttd_status status = edge_offsets_set(offsets, &offsets->in_target, edge, target);
    if (status != TTD_OK || offsets->is_without_sources)
        return status;
    return source < UINT32_MAX
               ? edge_offsets_set(offsets, &offsets->in_source, edge, (uint32_t)source)
               : edge_offsets_add_far(offsets, edge, source);
}

/** Removes the offsets of all `count` edges, and keeps the room for them. */
void edge_offsets_clear(struct edge_offsets *offsets, uint64_t count);

/** The offset of the word in its block. */
uint64_t edge_offset_in_source(const struct edge_offsets *offsets, uint64_t edge);

/** Returns the offset in its target that an edge points to; UINT32_MAX stands for that and more. */
static inline uint32_t edge_offset_in_target(const struct edge_offsets *offsets, uint64_t edge)
{
    return edge < offsets->in_target.capacity ? offsets->in_target.offsets[edge] : 0;
}

/** All zero when empty. */
struct reach_survivors {
    struct heap_nodes *nodes;
    /** By event modulo the number of bits (a power of two): whether it may have acquired a node. */
    uint64_t *bits;
    uint64_t bit_count;
    /** The events of all nodes have bits of their own. */
    bool is_exact;
};

/**
 * Takes at most 4 bytes a node.
 *
 * @param nodes      outlive the survivors
 * @param survivors  release with reach_survivors_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status reach_survivors_init(struct reach_survivors *survivors, struct heap_nodes *nodes);
void reach_survivors_free(struct reach_survivors *survivors);

static inline bool reach_survivors_have(const struct reach_survivors *survivors,
                                        const struct heap_block *block)
{
    uint64_t bit = block->event & (survivors->bit_count - 1);
    if (!(survivors->bits[bit / 64] >> bit % 64 & 1))
        return false;
    return (survivors->is_exact && bit == block->event) ||
           heap_nodes_of(survivors->nodes, block) != HEAP_NO_NODE;
}

#endif
