/* SPDX-License-Identifier: MIT */
/**
 * Reading ahead: on a long way through a trace, a second thread decodes the next batches while the
 * caller replays the ones before.
 */
#ifndef ANALYZER_TRAVEL_PREFETCHER_H
#define ANALYZER_TRAVEL_PREFETCHER_H

#include <stdbool.h>

#include <ttdtrace/reader.h>

#include "base/ring.h"

/** Number of batches that are read ahead: large enough that a side which had to wait finds several
 * batches of work when it is woken, small enough that the batches stay in the cache. */
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
    /** The slots of the ring, which the thread fills and the caller empties; NULL before the first
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

#endif
