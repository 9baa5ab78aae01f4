/* SPDX-License-Identifier: MIT */
/** Going through a range of memory, as far as it is known. */
#ifndef ANALYZER_CONTENTS_CURSOR_H
#define ANALYZER_CONTENTS_CURSOR_H

#include <ttdtrace/advanced.h>

#include "reach/reach.h"
#include "travel/heap_trace.h"

/* Extents: the pages that have the contents of a range of addresses at a position. The contents of
 * each address come from the newest memory snapshot at or before the position that has it. */

/** Addresses from `first` to `last` that a run of pages of one snapshot has. */
struct contents_extent {
    uint64_t first;
    uint64_t last;
    /** Address where the run of pages begins, and the id of its first page, or TTD_PAGE_ZERO or
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
 * @param snapshots  the snapshots of the trace
 * @param extents    set on TTD_OK; release with contents_extents_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status contents_extents_find(const struct heap_trace *trace,
                                      const struct heap_snapshots *snapshots,
                                      const struct contents_range *range,
                                      struct contents_extents *extents, struct ttd_error *error);
void contents_extents_free(struct contents_extents *extents);

/* Pages of a trace by their ids. Chunks of pages are read when they are needed, and the last few
 * are kept: memory does not depend on how many there are. */

/** Chunks that are kept; each has at most 16 MB. */
#define CONTENTS_KEPT 4

/** A chunk of pages that was read; without pages if it is damaged. */
struct contents_chunk {
    /** Index in contents_pages.chunks; SIZE_MAX for none. */
    size_t index;
    struct ttd_pages pages;
    uint8_t *data;
    size_t capacity;
    /** When it was needed last. */
    uint64_t last_use;
};

/** All zero when empty. */
struct contents_pages {
    struct ttd_reader *reader;
    /** The chunks of pages in the trace, in the order of the ids of their pages. */
    struct ttd_chunk *chunks;
    size_t count;
    size_t capacity;
    struct contents_chunk cache[CONTENTS_KEPT];
    uint64_t clock;
};

/**
 * Finds the chunks of pages, going from header to header.
 *
 * @param pages  set on TTD_OK; release with contents_pages_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status contents_pages_find(const struct heap_trace *trace, struct contents_pages *pages,
                                    struct ttd_error *error);
void contents_pages_free(struct contents_pages *pages);

/**
 * Looks up a page.
 *
 * @param size  that a page has
 * @param data  set on TTD_OK to the page, valid until the next call; NULL if the page is not in the
 *              trace, or its chunk is damaged
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status contents_pages_get(struct contents_pages *pages, uint64_t id, uint32_t size,
                                   const uint8_t **data, struct ttd_error *error);

enum contents_state {
    /** No snapshot covers it. */
    CONTENTS_UNKNOWN,
    /** The snapshot could not read it. */
    CONTENTS_UNREADABLE,
    /** The trace is damaged where the page should be. */
    CONTENTS_DAMAGED,
    CONTENTS_ZERO,
    CONTENTS_BYTES
};

/** Returns the name of a state, such as "unknown". Static. */
const char *contents_state_name(enum contents_state state);

/** Addresses with equal findings, from one snapshot; at most a page if they have bytes. */
struct contents_part {
    enum contents_state state;
    uint64_t first;
    uint64_t last;
    /** Index of the snapshot; without meaning if unknown. */
    uint32_t snapshot;
    /** The bytes, valid until the next part is taken; NULL if there are none. */
    const uint8_t *data;
};

struct contents_cursor {
    const struct contents_extents *extents;
    struct contents_pages *pages;
    /** The next address, up to the last one; all were passed if `is_over`. */
    uint64_t next;
    uint64_t last;
    bool is_over;
    size_t extent;
};

struct contents_cursor contents_cursor_begin(const struct contents_extents *extents,
                                             struct contents_pages *pages, uint64_t first,
                                             uint64_t last);

/**
 * Takes the next part.
 *
 * @return TTD_OK; TTD_END; TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status contents_cursor_next(struct contents_cursor *cursor, struct contents_part *part,
                                     struct ttd_error *error);

#endif
