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

/** All zero when empty. */
struct edge_offsets {
    /** By edge; UINT32_MAX if it is in `far`. NULL if `is_without_sources`. */
    uint32_t *in_source;
    /** By edge; mostly 0, and memory that is 0 takes none. */
    uint32_t *in_target;
    size_t capacity;
    size_t source_size;
    size_t target_size;
    /** In the order of edges. */
    struct edge_far_offset *far;
    size_t far_count;
    size_t far_capacity;
    /** Nobody asks for offsets in sources. */
    bool is_without_sources;
};

/** Private: makes room for more edges. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status edge_offsets_grow(struct edge_offsets *offsets);
void edge_offsets_free(struct edge_offsets *offsets);

/** Private: the general case of edge_offsets_add(). */
enum ttd_status edge_offsets_add_far(struct edge_offsets *offsets, uint64_t edge, uint64_t source);

/**
 * Adds the offsets of an edge, the next one.
 *
 * @param target  UINT32_MAX for that and more
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
static inline enum ttd_status edge_offsets_add(struct edge_offsets *offsets, uint64_t edge,
                                               uint64_t source, uint32_t target)
{
    if (edge >= offsets->capacity) {
        enum ttd_status status = edge_offsets_grow(offsets);
        if (status != TTD_OK)
            return status;
    }
    if (target)
        offsets->in_target[edge] = target;
    if (offsets->is_without_sources)
        return TTD_OK;
    offsets->in_source[edge] = (uint32_t)source;
    return source < UINT32_MAX ? TTD_OK : edge_offsets_add_far(offsets, edge, source);
}

/** The offset of the word in its block. */
uint64_t edge_offset_in_source(const struct edge_offsets *offsets, uint64_t edge);

/** Where in its target an edge points; UINT32_MAX for that and more. */
static inline uint32_t edge_offset_in_target(const struct edge_offsets *offsets, uint64_t edge)
{
    return offsets->in_target[edge];
}

#endif
