/* SPDX-License-Identifier: MIT */
/** The word of each edge: its offset in the block that has it, and where in the other block it
 * points. */
#ifndef ANALYZER_REACH_EDGE_OFFSETS_H
#define ANALYZER_REACH_EDGE_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/status.h>

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

/** Private: makes room for more offsets, and sets that of an edge; or adds one to `far`. @return
 * TTD_OK, TTD_ERROR_NO_MEMORY. */
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

/** Removes the offsets of the first `count` edges, which are all, and keeps the room for them. */
void edge_offsets_clear(struct edge_offsets *offsets, uint64_t count);

/** The offset of the word in its block. */
uint64_t edge_offset_in_source(const struct edge_offsets *offsets, uint64_t edge);

/** Returns the offset in its target that an edge points to; UINT32_MAX stands for that and more. */
static inline uint32_t edge_offset_in_target(const struct edge_offsets *offsets, uint64_t edge)
{
    return edge < offsets->in_target.capacity ? offsets->in_target.offsets[edge] : 0;
}

#endif
