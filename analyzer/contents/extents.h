/* SPDX-License-Identifier: MIT */
/** Extents: the pages that have the contents of a range of addresses at a position. Each address is
 * told by the newest memory snapshot, at the position or before, that has looked at it. */
#ifndef ANALYZER_CONTENTS_EXTENTS_H
#define ANALYZER_CONTENTS_EXTENTS_H

#include "reach/snapshots.h"

/** Addresses from `first` to `last` that a run of pages of one snapshot has. */
struct contents_extent {
    uint64_t first;
    uint64_t last;
    /** Address at which the run of pages begins, and the id of its first page, or TTD_PAGE_ZERO or
     * TTD_PAGE_UNREADABLE for all of it. */
    uint64_t begin;
    uint64_t page;
    uint32_t page_size;
    /** Index of the snapshot. */
    uint32_t snapshot;
};

/** By address; they do not overlap. All zero when empty. */
struct contents_extents {
    struct contents_extent *extents;
    size_t count;
    size_t capacity;
};

/** A range of addresses at a position. */
struct contents_range {
    uint64_t first;
    uint64_t last;
    struct ttd_position at;
};

/**
 * Reads all memory maps.
 *
 * @param snapshots  those of the trace
 * @param extents    set on TTD_OK; release with contents_extents_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status contents_extents_find(const struct heap_trace *trace,
                                      const struct heap_snapshots *snapshots,
                                      const struct contents_range *range,
                                      struct contents_extents *extents, struct ttd_error *error);
void contents_extents_free(struct contents_extents *extents);

#endif
