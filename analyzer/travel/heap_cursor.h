/* SPDX-License-Identifier: MIT */
/** A cursor: the state of the heap at a movable position of a trace. */
#ifndef ANALYZER_TRAVEL_HEAP_CURSOR_H
#define ANALYZER_TRAVEL_HEAP_CURSOR_H

#include <stdbool.h>
#include <ttdtrace/reader.h>

#include "base/task.h"
#include "travel/heap_trace.h"

/*
 * Reading ahead: on a long way through a trace, a second thread decodes the next batches while the
 * caller replays the ones before.
 */

/** Number of batches that are read ahead: large enough that a waiting side finds several batches of
 * work when it is woken, small enough that the batches stay in the cache. */
#define HEAP_PREFETCH_BATCHES 32u

/** Returns the number of event_batches that a reader should be opened with: HEAP_PREFETCH_BATCHES,
 * or 1 where there is no processor for another thread. */
uint32_t heap_prefetch_batches(void);

/** All functions are called by one thread, the caller. The struct must not be moved or copied. */
struct heap_prefetcher {
    struct ttd_reader *reader;
    /** No thread is started. May be set before the first batch. */
    bool is_off;
    /** Batches that the caller has read itself since the last attempt to start the thread. */
    uint64_t passed;
    /** The slots of the ring; the thread fills them, the caller empties them; NULL before the first
     * start. */
    struct ttd_batch *slots;
    struct ring ring;
    bool is_running;
    pthread_t thread;
    /** The caller still uses the slot at `tail`: it is emptied when the next batch is asked for. */
    bool holds;
    /** Set when the thread has ended by itself: the status that the reader returned after the last
     * slot. */
    enum ttd_status status;
    struct ttd_error error;
};

/**
 * Prepares a prefetcher; no thread is started before it is worth while.
 *
 * @param prefetcher  release with heap_prefetcher_free()
 * @param reader      borrowed; may be called by others only after heap_prefetcher_pause(). A reader
 *                    with fewer event_batches than HEAP_PREFETCH_BATCHES is not read ahead
 */
void heap_prefetcher_init(struct heap_prefetcher *prefetcher, struct ttd_reader *reader);

/** Ends the thread and releases everything. Accepts a prefetcher of zeros. */
void heap_prefetcher_free(struct heap_prefetcher *prefetcher);

/**
 * Returns the next batch, as ttd_reader_next() does; it is valid until the next call. Calls the
 * reader itself while no thread runs.
 *
 * @param error  set on failure; not NULL
 */
enum ttd_status heap_prefetcher_next(struct heap_prefetcher *prefetcher, struct ttd_batch *batch,
                                     struct ttd_error *error);

/**
 * Ends the thread, so that the caller may use the reader until it asks for the next batch. Batches
 * that were read ahead are kept: the reader may be asked for facts, but must not be moved, unless
 * heap_prefetcher_forget() is called first.
 */
void heap_prefetcher_pause(struct heap_prefetcher *prefetcher);

/** Pauses and drops the batches that were read ahead, so that the reader may be moved. */
void heap_prefetcher_forget(struct heap_prefetcher *prefetcher);

/** Kinds of chunks that a cursor needs from its reader. */
#define HEAP_CURSOR_KINDS                                                                          \
    (TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_LOSSES) |                               \
     TTD_KIND_BIT(TTD_KIND_HEAP_PARENTS))

struct heap_cursor {
    struct ttd_reader *reader;
    struct heap_prefetcher ahead;
    uint32_t kinds;
    /** NULL if there are none, or if they did not fit the trace and were given up. */
    const struct heap_keyframes *keyframes;
    struct heap_replay replay;
    /** The replay has the parents of all heaps, read before a jump. Otherwise it learns them from
     * the batches that it passes. */
    bool has_parents;
    /** Allows summaries, for a caller that needs only totals: sums over blocks are added here, and
     * these blocks are not in replay.live. May be set before the first move. NULL: replay.live has
     * all blocks. */
    struct heap_tables *sums;
    /** The keyframe or summary that the replay started from; NULL for the start of the trace. */
    const struct heap_keyframe *start;
    struct heap_batch_hook hook;
    /** The last status returned by the hook. */
    enum ttd_status hook_status;
    /** The events of the current batch that have not been applied. */
    struct ttd_batch batch;
    /** Target of the last heap_cursor_seek(). */
    struct ttd_position target;
    bool at_end;
    /** The trace ends within a chunk or could not be read to its end; `error` has the detail. */
    bool truncated;
    struct ttd_error error;
};

/**
 * Places a cursor at the start of a trace. Until it jumps to a keyframe, it checks every chunk that
 * it passes: see ttd_reader_is_intact().
 *
 * @param trace     copied. With keyframes, an observer does not get effects before the keyframe
 *                  that the cursor starts from
 * @param kinds     kinds of chunks to read: HEAP_CURSOR_KINDS, and those that the hook wants
 * @param observer  as for heap_replay_init()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status heap_cursor_init(struct heap_cursor *cursor, const struct heap_trace *trace,
                                 uint32_t kinds, const struct heap_observer *observer);
void heap_cursor_free(struct heap_cursor *cursor);

/**
 * Moves the cursor to `target`. Afterwards cursor->replay is the state at the target, and
 * cursor->replay.position the position of the last effect at or before it. A target before the
 * current one is reached by a new replay, from a keyframe or from the start of the trace.
 *
 * @param error  detail on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_UNSUPPORTED, and what observer and
 *         hook return; TTD_ERROR_ARGUMENT if the reader was used by other code since the last move.
 */
enum ttd_status heap_cursor_seek(struct heap_cursor *cursor, struct ttd_position target,
                                 struct ttd_error *error);

#endif
