/* SPDX-License-Identifier: MIT */
/**
 * Reading ahead: on a long way through a trace another thread decodes events while the caller
 * replays those before.
 */
#ifndef ANALYZER_TRAVEL_PREFETCHER_H
#define ANALYZER_TRAVEL_PREFETCHER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <ttdtrace/reader.h>

/** Batches that are read ahead: so many that whoever waits for the other one has something to do
 * when it goes on, and so few that they stay in the cache. */
#define HEAP_PREFETCH_BATCHES 32u

/** The event_batches that a reader should have: HEAP_PREFETCH_BATCHES, or 1 where there is no
 * processor for another thread. */
uint32_t heap_prefetch_batches(void);

/** See heap_prefetcher_init(). Used by one thread, the caller's; it must not be moved or copied. */
struct heap_prefetcher {
    struct ttd_reader *reader;
    /** Batches that the caller read itself, since a thread was last worth trying. */
    uint64_t passed;
    /** A ring; NULL before it is worth it. The thread fills it, the caller empties it. */
    struct ttd_batch *slots;
    bool is_running;
    pthread_t thread;
    /** The caller uses the slot that is next to be emptied. */
    bool holds;

    /* Slots ever filled, which is the thread's, and emptied. */
    _Atomic uint64_t head;
    _Atomic uint64_t tail;
    /* The mutex is for who has to wait, and is left alone otherwise. */
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    pthread_cond_t emptied;
    _Atomic bool caller_waits;
    _Atomic bool thread_waits;
    _Atomic bool stop;
    /* The members below are guarded by the mutex while the thread runs. */
    /** Why the thread ended by itself: what the reader returned after the last slot. */
    bool has_ended;
    enum ttd_status status;
    struct ttd_error error;
};

/**
 * @param reader  used, but not owned: nobody else may call it before heap_prefetcher_pause(). With
 * fewer event_batches than HEAP_PREFETCH_BATCHES it is not read ahead
 * @param ahead   release with heap_prefetcher_free()
 */
void heap_prefetcher_init(struct heap_prefetcher *prefetcher, struct ttd_reader *reader);

/** Ends the thread, and releases everything; one of zeros is allowed. */
void heap_prefetcher_free(struct heap_prefetcher *prefetcher);

/**
 * The next batch, as ttd_reader_next() gives it: valid until the next call. Where there is no
 * thread to be had, the reader is called here.
 *
 * @param error  set on failure; not NULL
 */
enum ttd_status heap_prefetcher_next(struct heap_prefetcher *prefetcher, struct ttd_batch *batch,
                                     struct ttd_error *error);

/**
 * Ends the thread: until the next batch is asked for, nobody uses the reader. What was read ahead
 * is kept, so the reader may be asked for facts, but must not go on: see heap_prefetcher_forget().
 */
void heap_prefetcher_pause(struct heap_prefetcher *prefetcher);

/** Pauses, and forgets what was read ahead: the reader goes somewhere else. */
void heap_prefetcher_forget(struct heap_prefetcher *prefetcher);

#endif
