/* SPDX-License-Identifier: MIT */
/** Pages of a trace by their ids. Chunks of pages are read when they are needed, and the last few
 * are kept: memory does not depend on how many there are. */
#ifndef ANALYZER_CONTENTS_PAGES_H
#define ANALYZER_CONTENTS_PAGES_H

#include <ttdtrace/advanced.h>

#include "travel/trace.h"

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

#endif
