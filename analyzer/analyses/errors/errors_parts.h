/* SPDX-License-Identifier: MIT */
/** Internals of the search for errors, private to its files. */
#ifndef ANALYZER_ANALYSES_ERRORS_ERRORS_PARTS_H
#define ANALYZER_ANALYSES_ERRORS_ERRORS_PARTS_H

#include <ttdtrace/reader.h>
#include <ttdtrace/snapshot.h>

#include "analyses/errors/errors.h"
#include "analyses/errors/fatal.h"
#include "heap/heap_live.h"

/*
 * Damage of the heap: headers that an allocator keeps in front of blocks, and that the program has
 * overwritten. A snapshot has the headers, and the events give their least values.
 *
 * The size in the header of a live block never changes. So one that is too small for its block, or
 * that claims the memory of another live block, is wrong; and a free block's is wrong if the
 * recorder says so. While a thread is in a call of the allocator, it may be changing headers, and
 * blocks that it reallocates may not be live any more: nothing is said then, unless the process
 * died of a fault in a call of the allocator, and that is not certain.
 */

/** Headers that follow each other in memory. */
struct heap_header_run {
    /** Address of the first header, and where the memory of the last block ends; behind a broken
     * header, where that ends. */
    uint64_t begin;
    uint64_t end;
    /** Index of the first header, and the number of headers. */
    size_t first;
    size_t count;
    /** The flags of the ttd_block_headers that has them. */
    uint32_t flags;
};

struct heap_header {
    uint64_t address;
    uint64_t value;
};

/** The headers of a snapshot. All zero when empty. */
struct heap_headers {
    /** Number 0 if no complete snapshot has headers. */
    struct ttd_snapshot snapshot;
    struct heap_header *headers;
    size_t count;
    size_t capacity;
    struct heap_header_run *runs;
    size_t run_count;
    size_t run_capacity;
};

/**
 * Reads the headers of the newest complete snapshot that has some.
 *
 * @param headers  release with heap_headers_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status heap_headers_read(struct heap_headers *headers, struct ttd_reader *reader,
                                  struct ttd_error *error);
void heap_headers_free(struct heap_headers *headers);

struct error_finder;

/**
 * Compares the headers with the live blocks at the position of their snapshot, and with those that
 * calls had begun to release then and never released. The findings, HEAP_ERROR_HEAP_DAMAGE, are
 * added in the order of their addresses.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT (more headers than a table has room for).
 */
enum ttd_status heap_damage_find(struct error_finder *finder, const struct heap_live *live);

/*
 * The call that was under way when the process died of a fault, such as an abort() inside free():
 * the last call of the thread that died, if it never returned. If the trace does not show which
 * thread died, each thread's; if several never returned, none of them is certain.
 */

/** Limit on the calls that are kept; calls of any more threads are left out. */
#define HEAP_LAST_CALLS_MAX 16

struct heap_last_calls {
    /** The signal of the fault that the process died of; 0 if it did not die of a signal, or if
     * another process may have sent the signal. */
    uint32_t signal;
    /** The thread that died; TTD_NONE if that is not known. */
    ttd_id thread;
    struct heap_finding calls[HEAP_LAST_CALLS_MAX];
    size_t count;
};

/** Initializes the table for a trace, before the replay. `fatal` is its fatal signal, or NULL. */
void heap_last_calls_begin(struct heap_last_calls *last_calls, struct ttd_reader *reader,
                           const struct heap_fatal *fatal);

/** Handles a call: drops an earlier call of its thread: it was not the last one. Returns true if
 * this one may be the last, because it did not return: then heap_last_calls_add() adds it. */
bool heap_last_calls_see(struct heap_last_calls *last_calls, const struct ttd_event *event);

/** Adds a call that may be the last one of its thread, with the neighbours of its address. */
void heap_last_calls_add(struct heap_last_calls *last_calls, const struct heap_finding *call,
                         const struct heap_live *live);

/**
 * Reports the calls that are left at the end of the trace: makes a finding of each, or adds the
 * signal to the finding that it already has, and puts these findings first.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_last_calls_report(struct heap_last_calls *last_calls,
                                       struct heap_errors *errors);

/** The state of a search. */
struct error_finder {
    struct heap_errors *errors;
    /** See heap_errors_options. */
    const struct heap_islands *islands;
    /** The replay; before a call is applied, its live blocks and counts are those that the call
     * meets. */
    const struct heap_replay *replay;
    struct heap_freed freed;
    /** By address and heap: 1 if a reallocation of the block that is live there never returned. It
     * may have released the block. */
    struct hash_map unfinished;
    /** All gaps of the trace. */
    struct heap_gaps gaps;
    struct heap_status_table statuses;
    /** See heap_has_early_blocks(). */
    bool has_early_blocks;
    /** Mask of address bits that are 0 in every address which an allocator returns. */
    uint64_t misaligned;
    /** Number of blocks that searches for the block around an unknown address have looked at; the
     * searches stop at a limit. */
    uint64_t searched;
    struct heap_last_calls last_calls;
    struct heap_headers headers;
    /** See heap_errors_options. */
    bool only_screens;
};

/** Returns a new finding about a call. It is certain until something speaks against that. */
struct heap_finding heap_finding_of(enum heap_error_kind kind, const struct ttd_event *event);

/** Sets the block that a finding is about. */
void heap_finding_set_block(struct heap_finding *finding, const struct heap_block *block);

/** Adds a finding, as heap_errors_add(). If its call did not return, the finding also gets the
 * signal that the process died of. */
enum ttd_status heap_error_finder_add(struct error_finder *finder,
                                      const struct heap_finding *finding);

/** Checks a call against the state of the heap just before it. A function of an observer. */
enum ttd_status heap_error_finder_see_call(void *context, const struct ttd_event *event);

/** Whether a Free or a ReAlloc fits the block given to it; sets errors.must_search if not. A
 * function of an observer. */
enum ttd_status heap_error_finder_screen_call(void *context, const struct ttd_event *event);

/** The same for a plain Free: see struct heap_plain_observer. */
enum ttd_status heap_error_finder_screen_free(void *context, const struct ttd_event *event,
                                              const struct heap_block *block);

/** Whether a search would find any error, as far as such calls and the counts of the whole replay
 * show: all other errors are of calls that failed, never returned, were given unknown blocks, or
 * are about heaps. */
bool heap_error_finder_must_search(const struct error_finder *finder);

#endif
