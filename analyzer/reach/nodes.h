/* SPDX-License-Identifier: MIT */
/** The blocks of a snapshot, by address: the nodes of its graph. */
#ifndef ANALYZER_REACH_NODES_H
#define ANALYZER_REACH_NODES_H

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

#endif
