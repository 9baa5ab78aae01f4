/* SPDX-License-Identifier: MIT */
/**
 * Places: where a word of a snapshot lies, in terms that a person knows: in a variable, in a frame
 * of a thread's stack, in a register or in a mapping. A place has identifiers of names; reports
 * look up the names themselves.
 */
#ifndef ANALYZER_ANALYSES_REACHABILITY_PLACES_H
#define ANALYZER_ANALYSES_REACHABILITY_PLACES_H

#include "reach/reach.h"

/** The frames of a thread's stack: see struct ttd_frames. */
struct heap_frames {
    ttd_id thread;
    ttd_id stack;
    uint64_t *addresses;
    size_t count;
};

/** Where a module was loaded. */
struct heap_place_module {
    ttd_id id;
    uint64_t bias;
    uint64_t begin;
    uint64_t end;
};

/** The names and frames for locating the words of one snapshot; all zero when empty. */
struct heap_places {
    /** By number of the region minus 1; borrowed from heap_reach. */
    const struct ttd_region *regions;
    size_t region_count;
    /** Number of the snapshot. */
    uint32_t snapshot;
    /** Sorted by module and offset. */
    struct ttd_variable *variables;
    size_t variable_count;
    size_t variable_capacity;
    struct heap_frames *frames;
    size_t frame_count;
    size_t frame_capacity;
    /** Maps a module to its index in `modules`, in load order.
     */
    struct hash_map module_index;
    struct heap_place_module *modules;
    size_t module_count;
    size_t module_capacity;
};

/** The place of a word. */
struct heap_place {
    /** The region that contains the word; NULL if none does. */
    const struct ttd_region *region;
    /** Offset of the word in the region. */
    uint64_t offset;
    /** Without a region, the module whose code or constants have the address, and the offset from
     * its load bias; TTD_NONE if none has. */
    ttd_id module;
    uint64_t module_offset;
    /** The variable that contains the word; NULL if none is known. */
    const struct ttd_variable *variable;
    uint64_t variable_offset;
    /** The frame that contains the word: `frame` counts the calls of `stack` from the innermost
     * one. TTD_NONE if the frame is not known. */
    ttd_id stack;
    size_t frame;
    uint64_t frame_offset;
    /** Set by reports of an earlier moment: the frame that then contained the word had returned.
     */
    bool has_returned;
};

/**
 * Reads the names of variables, and the frames of the snapshot's stacks.
 *
 * @param reach   the graph of the snapshot; must outlive the places
 * @param places  set on TTD_OK; release with heap_places_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_places_read(const struct heap_trace *trace, const struct heap_reach *reach,
                                 struct heap_places *places, struct ttd_error *error);
void heap_places_free(struct heap_places *places);

/** Returns the place of a word, given by the number of its region and its offset there. */
struct heap_place heap_place_of(const struct heap_places *places, uint32_t region, uint64_t offset);

/** Returns the place of an address; a module may have it where no region does. All zero without
 * places. */
struct heap_place heap_place_at(const struct heap_places *places, uint64_t address);

#endif
