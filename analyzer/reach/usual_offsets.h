/* SPDX-License-Identifier: MIT */
/**
 * The usual offsets of pointers into the blocks of an allocating function. A function that puts a
 * header before the data returns a pointer behind the header, so such a pointer owns the block.
 *
 * Blocks are grouped in several ways: by stack, by the address of the call in the allocating
 * function, and by the names of one to three innermost functions. Common wrappers of allocators do
 * not count as functions. Only blocks that anything points at say where owners point; so these must
 * be at least half of the group. It has usual offsets in these cases:
 *
 * - of at least USUAL_BLOCKS blocks, nine of ten are pointed at with the same offset; or with two
 *   or three offsets, if hardly any block is pointed at its start;
 * - of a function's first few blocks, at least USUAL_BLOCKS_FEW, all are pointed at with one
 *   offset, or with two of them, and none is pointed at its start.
 *
 * Three layouts are known whose offset depends on the size of the block: the headers of sds, which
 * Redis and others use for strings; the tables of Rust's hashbrown, which are pointed at behind
 * their data; and the pages of GLib's slices, which are pointed at their end. They count like a
 * single offset, and few blocks of any group are enough. If the function is known by name to have
 * such a layout, headers of certain sizes, or a record at the end, one block is enough: exceptions
 * of C++, the strings in them, buffers of std::pmr, and nodes of tsearch(), whose pointers to their
 * left children have a bit set.
 *
 * An instance of GLib's types has its private data before it, of another size for each type. It
 * begins with a pointer to its class, which is a block, so a pointer to such a word owns the block.
 *
 * All this is inferred, not proved: the reports call it reachable, as LeakSanitizer would.
 *
 * Private to reach/.
 */
#ifndef ANALYZER_REACH_USUAL_OFFSETS_H
#define ANALYZER_REACH_USUAL_OFFSETS_H

#include "base/hash_map.h"
#include "reach/reach.h"

#define USUAL_BLOCKS     10
#define USUAL_BLOCKS_FEW 3

/** Offsets that a group may have. */
#define USUAL_OFFSETS 3

/** Layouts whose offset depends on the size. */
enum usual_layout { USUAL_SDS, USUAL_HASH_TABLE, USUAL_SLICES, USUAL_LAYOUTS };

/** Groups that a block belongs to. */
#define USUAL_GROUPS 6

struct usual_group {
    uint32_t blocks;
    /** Blocks that another block or a root points at. The members below count these only. */
    uint32_t pointed;
    /** Blocks that another block or a root points at the start of. */
    uint32_t started;
    /** Blocks that are pointed at according to a layout. */
    uint32_t fitting[USUAL_LAYOUTS];
    /** The most frequent offsets, and the blocks that each of them points into; 0 for none. */
    uint32_t offsets[USUAL_OFFSETS];
    uint32_t offset_blocks[USUAL_OFFSETS];
    /** Blocks that are pointed at with one of these offsets. */
    uint32_t covered;
    /** The group belongs to an innermost function, so that few blocks are enough. */
    bool is_function;
    /** Pointers with these offsets own, as do pointers of these layouts, as a bit mask. */
    bool has_usual;
    uint8_t layouts;
};

/** The blocks of a stack. */
struct usual_site {
    uint32_t groups[USUAL_GROUPS];
    /** Layouts that the names of functions imply, as a bit mask. */
    uint8_t layouts;
    /** They imply that the blocks have instances of GLib's types. */
    bool has_instances;
    /** Sizes of headers and of a record at the end that they imply; 0 for none. */
    uint32_t headers[HEAP_HEADERS];
    uint32_t trailer;
};

/** All zero when empty. */
struct usual_offsets {
    /** Offsets of pointers behind the start, by target; the offsets of node n begin at first[n]. */
    uint64_t *first;
    uint32_t *offsets;
    /** By node: another block or a root points at its start. */
    bool *are_started;
    /** Index of a site by stack. */
    struct hash_map site_index;
    struct usual_site *sites;
    size_t site_count;
    size_t site_capacity;
    struct hash_map group_index;
    struct usual_group *groups;
    size_t group_count;
    size_t group_capacity;
};

/**
 * Finds the usual offsets of all groups.
 *
 * @param callers  names the allocating functions; if it cannot, blocks are grouped by stack only
 * @param usual    release with usual_offsets_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status usual_offsets_find(struct usual_offsets *usual, const struct heap_reach *reach,
                                   const struct heap_stack_callers *callers);
void usual_offsets_free(struct usual_offsets *usual);

/** Whether pointers with an offset usually own the blocks that were allocated as a node was. */
bool usual_offsets_have(const struct usual_offsets *usual, const struct heap_reach *reach,
                        uint32_t node, uint32_t offset);

#endif
