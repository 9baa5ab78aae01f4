/* SPDX-License-Identifier: MIT */
/** The blocks of a snapshot, by address: the nodes of its graph. */
#ifndef ANALYZER_REACH_NODES_H
#define ANALYZER_REACH_NODES_H

#include "heap/live.h"

/** No node. */
#define HEAP_NO_NODE UINT32_MAX

/** A part of the address space in which blocks begin. */
struct heap_area {
    /** The part of an address above HEAP_AREA_BITS. */
    uint64_t number;
    /** The first node that begins in it. */
    uint32_t first;
    /** Where its table begins in heap_nodes.tables; HEAP_NO_NODE if it has none. */
    uint32_t table;
};

#define HEAP_AREA_BITS  17
#define HEAP_CACHE_SIZE 1024

/** The addresses of a block, both included; a block of no bytes has its own. */
struct heap_range {
    uint64_t first;
    uint64_t last;
};

static inline bool heap_range_has(const struct heap_range *range, uint64_t address)
{
    return address >= range->first && address <= range->last;
}

/** All zero when empty. */
struct heap_nodes {
    /** Copies of the blocks, as they were at the position, by address. */
    struct heap_block *blocks;
    uint32_t count;

    /** By node; apart from the rest so that few cache lines are touched. */
    struct heap_range *ranges;

    /* For heap_nodes_at(). */
    struct heap_area *areas;
    size_t area_count;
    /** For each area with many blocks: by granule of it, the first node that does not begin
     * before, and one more. */
    uint32_t *tables;
    /** Areas that were found last, by the low bits of their numbers: index, or HEAP_NO_NODE. */
    uint32_t cache[HEAP_CACHE_SIZE];
};

/**
 * Copies the live blocks of a table, and sorts them by address.
 *
 * @param nodes  release with heap_nodes_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_nodes_copy(struct heap_nodes *nodes, const struct heap_live *live);
void heap_nodes_free(struct heap_nodes *nodes);

/**
 * The node that an address lies in, HEAP_NO_NODE if there is none. The address after the last byte
 * of a block is not in it; a block of no bytes has its own address.
 */
uint32_t heap_nodes_at(struct heap_nodes *nodes, uint64_t address);

/** Bring nearer what heap_nodes_at() reads of an address that is asked for soon: first the entry of
 * its table, then, when that is there, the range of a node. */
void heap_nodes_prefetch_entry(struct heap_nodes *nodes, uint64_t address);
void heap_nodes_prefetch_range(struct heap_nodes *nodes, uint64_t address);

/** The node of a block: of that address, and acquired by the same event. HEAP_NO_NODE if none. */
uint32_t heap_nodes_of(struct heap_nodes *nodes, const struct heap_block *block);

#endif
