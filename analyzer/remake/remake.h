/* SPDX-License-Identifier: MIT */
/**
 * Making a trace from other traces, record by record: the same trace in fewer bytes, the part of
 * one between two positions, or several processes on one timeline.
 *
 * A source that is damaged, or was not closed, is refused: the result could not name the records
 * that the damage hides. Losses that a source states are stated in the result.
 */
#ifndef ANALYZER_REMAKE_REMAKE_H
#define ANALYZER_REMAKE_REMAKE_H

#include <ttdtrace/io.h>

#include "travel/heap_trace.h"

/** LZ4 level of the traces that are made. At level 12 a trace of 12 million calls of Python is 1 %
 * smaller, and takes a third more time; at level 0 it is 24 % larger. */
#define REMAKE_LEVEL 9

/** The most traces that are merged: readers keep files open. */
#define REMAKE_SOURCES_MAX 256

/** Facts about a trace that was made. */
struct remake_result {
    uint64_t events;
    /** Of these, events from before a slice: they acquired the blocks that were live at its begin,
     * or created heaps. */
    uint64_t kept;
    /** Of these, destructions of the heaps of merged processes that ended before the last one; and
     * the processes that did. */
    uint64_t destroyed;
    bool ended[REMAKE_SOURCES_MAX];
    /** Events of the source that are not in the trace. */
    uint64_t left_out;
    /** Records of the source that the trace cannot have: of snapshots, lists of blocks, samples of
     * memory. */
    uint64_t records_left_out;
    /** Chunks of kinds that this version does not know; they are left out. */
    uint64_t unknown_chunks;
    /** A hash of all events, and the number of records of each kind. */
    uint64_t digest;
    uint64_t records[TTD_KIND_LAST + 1];
    /** Sizes of the sources, and of the trace, in bytes. */
    uint64_t source_bytes;
    uint64_t bytes;
};

/**
 * Copies a trace into full chunks, well compressed.
 *
 * @param trace   its reader and hook are used
 * @param output  closed in any case
 * @param result  set on TTD_OK; `bytes` is set by remake_check()
 * @param error   detail on failure
 * @return TTD_OK; TTD_ERROR_CORRUPT (the source is not intact, or not closed);
 * TTD_ERROR_UNSUPPORTED (the source cannot be copied, for the reason in `error`);
 * TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT, TTD_ERROR_IO
 */
enum ttd_status remake_repack(const struct heap_trace *trace, const struct ttd_output *output,
                              struct remake_result *result, struct ttd_error *error);

/** The range of a slice. */
struct remake_range {
    /** First position; 0:0 for the begin of the trace. */
    struct ttd_position from;
    /** First position behind it; ttd_position_max() for the end of the trace. */
    struct ttd_position to;
};

/**
 * Copies the part of a trace in a range. Of the events before it, those remain that acquired the
 * blocks live at its begin. Losses from the start to the range, and behind it, count the others.
 * Events are numbered anew. Its memory grows with the live blocks.
 *
 * Parameters and statuses as for remake_repack().
 */
enum ttd_status remake_slice(const struct heap_trace *trace, const struct remake_range *range,
                             const struct ttd_output *output, struct remake_result *result,
                             struct ttd_error *error);

/**
 * Copies traces of one group in the order of positions. Each process keeps its heaps and threads
 * under new ids, so that equal addresses of two processes are two blocks. The heaps of a process
 * that ends before the last one are destroyed then. Snapshots, lists of blocks and samples of
 * memory have addresses without a heap; they are left out.
 *
 * @param traces  at least one
 * Other parameters and statuses as for remake_repack().
 */
enum ttd_status remake_merge(const struct heap_trace *traces, size_t count,
                             const struct ttd_output *output, struct remake_result *result,
                             struct ttd_error *error);

/**
 * Reads a trace that was made. Compares its records with those that were written, and its live
 * blocks with the blocks of the sources: of a slice at its first and last position, otherwise at
 * the end, there with the counts of wrong releases.
 *
 * @param input    closed in any case
 * @param sources  the traces that it was made of
 * @param range    of a slice; NULL for other traces
 * @param result   its `bytes` is set on TTD_OK
 * @return TTD_OK; TTD_ERROR_CORRUPT (it is another one); TTD_ERROR_UNSUPPORTED (it cannot have the
 *         blocks of its sources); TTD_ERROR_NO_MEMORY, TTD_ERROR_IO
 */
enum ttd_status remake_check(const struct ttd_input *input, const struct heap_trace *sources,
                             size_t count, const struct remake_range *range,
                             struct remake_result *result, struct ttd_error *error);

/* The parts that the functions share. */

/** Sets the detail of a refusal. Returns `status`. */
enum ttd_status remake_refuse(struct ttd_error *error, enum ttd_status status, const char *reason);

/**
 * Checks all of a source, counts its chunks of unknown kinds, and adds its size.
 *
 * @return TTD_OK; TTD_ERROR_CORRUPT (not intact, or not closed); TTD_ERROR_UNSUPPORTED (an index);
 *         TTD_ERROR_NO_MEMORY, TTD_ERROR_IO
 */
enum ttd_status remake_check_source(const struct heap_trace *trace, struct remake_result *result,
                                    struct ttd_error *error);

/**
 * Reads all of a source that was checked.
 *
 * @param see  called with each batch; anything but TTD_OK ends the reading
 * @return TTD_OK; TTD_ERROR_CORRUPT (damaged since); the status of the function
 */
enum ttd_status remake_read(const struct heap_trace *trace,
                            enum ttd_status (*see)(void *context, const struct ttd_batch *batch),
                            void *context, struct ttd_error *error);

#endif
