/* SPDX-License-Identifier: MIT */
/** Calls that a program should not have made, and what they conflict with. */
#ifndef ANALYZER_ANALYSES_ERRORS_ERRORS_H
#define ANALYZER_ANALYSES_ERRORS_ERRORS_H

#include "analyses/errors/freed.h"
#include "analyses/errors/heap_status.h"
#include "analyses/state/neighbours.h"
#include "travel/replay_to.h"

enum heap_error_kind {
    /** Released: the block was released before, and not allocated since. */
    HEAP_ERROR_DOUBLE_FREE,
    HEAP_ERROR_REALLOC_OF_FREED,
    /** Released: no block was ever there; or one inside a block. */
    HEAP_ERROR_INVALID_FREE,
    HEAP_ERROR_INTERIOR_FREE,
    /** Released by a function that does not fit the one that allocated; or with a wrong size. */
    HEAP_ERROR_MISMATCHED_FREE,
    HEAP_ERROR_MISMATCHED_SIZE,
    /** Released in a heap that has no block there, while another heap has one. */
    HEAP_ERROR_WRONG_HEAP,
    HEAP_ERROR_USE_OF_DESTROYED_HEAP,
    HEAP_ERROR_USE_OF_READ_ONLY_HEAP,
    /** Unlocked by a thread that held no lock, or locked until the program's exit. */
    HEAP_ERROR_UNBALANCED_LOCK,
    HEAP_ERROR_FAILED_CALL,
    /** The process died of a fault before the call returned, and nothing else is wrong with it. */
    HEAP_ERROR_DIED_IN_CALL,
    /** A block was allocated where another was live: something is missing in the trace. */
    HEAP_ERROR_TRACE_INCONSISTENCY
};

#define HEAP_ERROR_KINDS (HEAP_ERROR_TRACE_INCONSISTENCY + 1)

/** More findings that differ are only counted. */
#define HEAP_FINDINGS_MAX 65536

struct heap_finding {
    enum heap_error_kind kind;
    /** The call, and the address given to it; for an allocation, the one returned. */
    struct heap_call call;
    uint64_t address;
    uint64_t size;
    ttd_id heap;
    /** Calls like this one, it included, and the last of them. */
    uint64_t count;
    struct ttd_position last;
    /** The block that the call is about, if known; its address is 0 if there is none. */
    uint64_t block_address;
    uint64_t block_size;
    ttd_id block_heap;
    struct heap_call allocated;
    /** The call that released the block before. */
    struct heap_call released;
    /** The call that destroyed, protected or locked the heap. */
    struct heap_call conflict;
    /** The signal that the process died of before the call returned, or 0; and what lay beside the
     * address then. */
    uint32_t signal;
    struct heap_neighbours neighbours;
    /** False if what is missing in the trace, or was forgotten, may be the cause. */
    bool is_certain;
};

struct heap_errors_options {
    /** Number of freed blocks to remember, from 1 to HEAP_FREED_MAX. */
    uint32_t remembered;
};

struct heap_errors {
    struct heap_outcome outcome;
    struct heap_finding *findings;
    size_t count;
    size_t capacity;
    struct hash_map index;
    /** Calls of all findings; and calls whose finding was not kept. */
    uint64_t calls;
    uint64_t omitted;
    /** Releases of blocks that may have been allocated before recording began. */
    uint64_t early_releases;
    /** Releases that are no error if what happened in a gap of recording explains them. */
    uint64_t gap_releases;
    /** Freed blocks that were forgotten for lack of room. */
    uint64_t forgotten;
    /** Releases of unknown addresses that were not looked for inside blocks: too many of them. */
    uint64_t unexamined;
};

/** Whether the process had blocks before recording began, of its parent or of its own. */
bool heap_has_early_blocks(const struct ttd_reader *reader);

/**
 * Replays the whole trace.
 *
 * @param errors  set on TTD_OK; release with heap_errors_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_errors_find(const struct heap_trace *trace,
                                 const struct heap_errors_options *options,
                                 struct heap_errors *errors, struct ttd_error *error);
void heap_errors_free(struct heap_errors *errors);

/**
 * Adds a finding, or counts it with those that have the same kind and stacks.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_errors_add(struct heap_errors *errors, const struct heap_finding *finding);

/** Name of a kind, such as "double-free". Static. */
const char *heap_error_name(enum heap_error_kind kind);

#endif
