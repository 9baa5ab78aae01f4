/* SPDX-License-Identifier: MIT */
/** Places: a word of a snapshot, located as a person would, in a variable, in a frame of a thread's
 * stack, in a register or in a mapping. Names are still identifiers. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_PLACES_H
#define ANALYZER_ANALYSES_REACHABILITY_PLACES_H

#include "reach/reach.h"

/** The addresses of the frames of a thread's stack; see ttd_frames. */
struct heap_frames {
    ttd_id thread;
    ttd_id stack;
    uint64_t *addresses;
    size_t count;
};

/** All zero when empty. */
struct heap_places {
    /** Regions by number - 1; they belong to the graph of the snapshot. */
    const struct ttd_region *regions;
    size_t region_count;
    uint32_t snapshot;
    /** By module and offset. */
    struct ttd_variable *variables;
    size_t variable_count;
    size_t variable_capacity;
    struct heap_frames *frames;
    size_t frame_count;
    size_t frame_capacity;
    /** Load biases of modules by their identifiers. */
    struct hash_map bias_index;
    uint64_t *biases;
    size_t bias_count;
    size_t bias_capacity;
};

/** The place of a word. */
struct heap_place {
    /** NULL if it is in no region. */
    const struct ttd_region *region;
    /** Offset of the word in the region. */
    uint64_t offset;
    /** NULL if it is in no variable whose name is known. */
    const struct ttd_variable *variable;
    uint64_t variable_offset;
    /** The frame that it lies in: the stack without its first `frame` calls; TTD_NONE if that is
     * not known. */
    ttd_id stack;
    size_t frame;
    uint64_t frame_offset;
};

/**
 * Reads the names of variables, and the frames of the snapshot's stacks.
 *
 * @param reach   must outlive the places
 * @param places  set on TTD_OK; release with heap_places_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_places_read(const struct heap_trace *trace, const struct heap_reach *reach,
                                 struct heap_places *places, struct ttd_error *error);
void heap_places_free(struct heap_places *places);

/** Finds the place of a word by the number of its region. */
struct heap_place heap_place_of(const struct heap_places *places, uint32_t region, uint64_t offset);

#endif
