/* SPDX-License-Identifier: MIT */
/** Going through all of a file, checking everything; verify and recover share it. */
#ifndef TTD_READ_WALK_H
#define TTD_READ_WALK_H

#include <ttdtrace/verify.h>

#include "read/internal.h"

/** What ids are defined, to check references. */
typedef struct ttd_references {
    /** Identifiers cannot be checked: they are another trace's, or definitions were lost. */
    bool unknown;
    ttd_id strings;
    ttd_id stacks;
    ttd_id modules;
    ttd_id threads;
    ttd_id heaps;
    uint64_t pages;
    ttd_list_state list;
    /** Depth of each stack, from id 1 on. */
    uint16_t *depths;
    size_t depths_capacity;
} ttd_references;

/**
 * Checks the records of a batch, and takes in what they define.
 *
 * @param what  set to what is wrong, or NULL
 * @return false without memory
 */
bool ttd_references_check(ttd_references *references, const ttd_allocator *allocator,
                          const ttd_batch *batch, const char **what);

/** What was seen of the index so far. */
typedef struct ttd_index_check {
    ttd_index_link *seen;
    size_t seen_count;
    size_t seen_capacity;
    /** What the next index chunk must say of itself, when there was a chunk of events. */
    ttd_index_link pending;
    bool pending_set;
    /** Number and hash of each chunk since the last index chunk. */
    uint64_t *hashes;
    size_t hash_count;
    size_t hash_capacity;
} ttd_index_check;

struct ttd_walk;

/** What is done with an intact chunk; `stored` are header->stored_size bytes. */
typedef ttd_status (*ttd_walk_chunk)(struct ttd_walk *walk, const ttd_header *header,
                                     const uint8_t *stored);
/** What is done about a gap. */
typedef ttd_status (*ttd_walk_gap)(struct ttd_walk *walk, const ttd_problem *problem);

typedef struct ttd_walk {
    ttd_reader *reader;
    ttd_problem_function function;
    void *function_context;
    /** Either may be NULL. */
    ttd_walk_chunk chunk;
    ttd_walk_gap gap;
    void *context;
    ttd_verdict verdict;
    ttd_references references;
    ttd_index_check index;
    /** Something is missing, so that totals cannot be checked. */
    bool damaged;
    bool has_end;
    ttd_end end;
    /** The next chunk of events, or the End, at or after some place; looked up once. */
    bool ahead_known;
    bool ahead_found;
    ttd_header ahead;
    ttd_error *error;
} ttd_walk;

/**
 * Walks through the input, which is closed in any case.
 *
 * @return as ttd_verify(), and what `chunk` and `gap` return
 */
ttd_status ttd_walk_run(ttd_walk *walk, const ttd_input *input, const ttd_allocator *allocator);

/** Reports a problem. TTD_END when the caller's function stops. */
ttd_status ttd_walk_report(ttd_walk *walk, const ttd_problem *problem);

/** Checks an index chunk against the chunks seen. `what` as above; false without memory. */
bool ttd_index_check_chunk(ttd_walk *walk, const ttd_header *header, ttd_cursor payload,
                           const char **what);

/** Takes in a chunk. False without memory. */
bool ttd_index_check_see(ttd_walk *walk, const ttd_header *header);

#endif
