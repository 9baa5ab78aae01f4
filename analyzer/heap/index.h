/* SPDX-License-Identifier: MIT */
/** Making the sidecar index of a trace (spec, "Derived files"). */
#ifndef ANALYZER_HEAP_INDEX_H
#define ANALYZER_HEAP_INDEX_H

#include "heap/cursor.h"
#include "heap/keyframes.h"

/** Fewer events than these are replayed faster than a keyframe is found and read. */
#define HEAP_INDEX_SPACING 131072

/** What an index was made of. */
typedef struct heap_index_facts {
    uint64_t events;
    uint64_t keyframes;
} heap_index_facts;

/**
 * Replays a trace and writes keyframes, so many that the index is about as large as the events.
 *
 * @param reader   tolerant; used, but not owned
 * @param spacing  at least so many events from one keyframe to the next, such as
 *                 HEAP_INDEX_SPACING; 0 for a keyframe wherever there can be one
 * @param hook     sees every batch read
 * @param writer   of a derived trace; not closed
 * @param facts    set on TTD_OK
 * @param error    detail on failure
 * @return TTD_OK, TTD_ERROR_CORRUPT or TTD_ERROR_TRUNCATED (a damaged trace has no index: what is
 *         missing would not be seen any more), TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and what the
 *         hook returns.
 */
ttd_status heap_index_write(ttd_reader *reader, uint64_t spacing, const heap_batch_hook *hook,
                            ttd_writer *writer, heap_index_facts *facts, ttd_error *error);

#endif
