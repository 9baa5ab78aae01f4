/* SPDX-License-Identifier: MIT */
/** Errors: calls that a program should not have made, and the calls that they conflict with. */
#ifndef ANALYZER_ANALYSES_ERRORS_ERRORS_H
#define ANALYZER_ANALYSES_ERRORS_ERRORS_H

#include "analyses/state/state.h"
#include "heap/call.h"
#include "travel/islands.h"
#include "travel/pass.h"

/* The status of heaps: whether each is destroyed or read-only, and which threads have locked it.
 */

/*
 * A table of the blocks released last, by address and heap. It has a fixed number of entries, and a
 * new entry replaces the oldest. When a heap allocates an address again, the entry is removed.
 */

/** Default number of entries; they take about 29 MiB. */
#define HEAP_FREED_DEFAULT (UINT32_C(1) << 18)
#define HEAP_FREED_MAX     (UINT32_C(1) << 26)

/** The key of an entry, and its link in the chain of a hash. */
struct heap_freed_key {
    /** 0 in an unused entry. */
    uint64_t address;
    ttd_id heap;
    /** The next entry of the same chain. */
    uint32_t next;
};

struct heap_freed_block {
    uint64_t address;
    uint64_t size;
    ttd_id heap;
    /** Unknown if the block was allocated before recording began. */
    struct heap_call allocated;
    struct heap_call released;
};

struct heap_freed {
    /** The entries. Their keys are apart: most entries are added and removed; this touches only
     * keys of earlier entries. */
    struct heap_freed_key *keys;
    struct heap_freed_block *records;
    /** The first entry of each chain, by hash of address and heap. */
    uint32_t *heads;
    uint32_t capacity;
    uint32_t mask;
    /** Index of the entry that is replaced next: the entries are a ring. */
    uint32_t position;
    /** Number of entries that were replaced while in use. */
    uint64_t forgotten;
    struct hash_key key;
};

/** @param capacity from 1 to HEAP_FREED_MAX. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_freed_init(struct heap_freed *freed, uint32_t capacity);
void heap_freed_free(struct heap_freed *freed);

/** Adds the entry of a block that is not in the table. Returns it, for the caller to fill. */
struct heap_freed_block *heap_freed_add(struct heap_freed *freed, uint64_t address, ttd_id heap);

/** Returns the entry of an address and heap, or NULL; valid until the next change. Heap TTD_NONE,
 * as an argument or in an entry, matches any heap. */
struct heap_freed_block *heap_freed_find(const struct heap_freed *freed, uint64_t address,
                                         ttd_id heap);

/**
 * Returns the entry of the block that was released last among those that contained `address`, or
 * NULL; valid until the next change. Looks at every entry.
 */
const struct heap_freed_block *heap_freed_containing(const struct heap_freed *freed,
                                                     uint64_t address);

/** Prefetch the key of an address that is acquired or released soon: the head of its chain, and
 * some time later the first key in it. Always inlined, because gcc removes calls of a function that
 * does nothing but prefetch. */
static inline __attribute__((always_inline)) void
heap_freed_prefetch_head(const struct heap_freed *freed, uint64_t address)
{
    __builtin_prefetch(&freed->heads[hash_value(freed->key, address) & freed->mask], 1);
}

static inline __attribute__((always_inline)) void
heap_freed_prefetch_key(const struct heap_freed *freed, uint64_t address)
{
    uint32_t index = freed->heads[hash_value(freed->key, address) & freed->mask];
    if (index < freed->capacity)
        __builtin_prefetch(&freed->keys[index], 1);
}

/** Removes the entry that heap_freed_find() returns, if there is one. */
void heap_freed_remove(struct heap_freed *freed, uint64_t address, ttd_id heap);

struct heap_status {
    ttd_id heap;
    struct heap_call destroyed;
    struct heap_call read_only;
    /** Number of times that the heap was created. Locks of an earlier generation are void. */
    uint64_t generation;
    /** Ends of a list of the locks held in this generation, the oldest first: indices of
     * heap_status_table.holds, or HEAP_NO_HOLD. */
    uint32_t first_hold;
    uint32_t last_hold;
};

#define HEAP_NO_HOLD UINT32_MAX

/** The nested locks of one thread on one heap. */
struct heap_hold {
    ttd_id heap;
    uint64_t generation;
    /** Number of Lock calls without an Unlock. */
    uint64_t depth;
    /** The outermost Lock. */
    struct heap_call locked;
    /** The previous and the next hold in the list of the heap. */
    uint32_t before;
    uint32_t after;
};

struct heap_status_table {
    struct heap_status *statuses;
    size_t count;
    size_t capacity;
    struct hash_map by_heap;
    struct heap_hold *holds;
    size_t hold_count;
    size_t hold_capacity;
    struct hash_map by_thread;
};

void heap_status_table_init(struct heap_status_table *statuses);
void heap_status_table_free(struct heap_status_table *statuses);

/** Returns the status of a heap, or NULL if no event has changed it; valid until the next change.
 */
const struct heap_status *heap_status_table_of(const struct heap_status_table *statuses,
                                               ttd_id heap);

/** Applies a successful Create, Destroy or Protect. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_status_table_change(struct heap_status_table *statuses,
                                         const struct ttd_event *event);

/** Applies a successful Lock. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_status_table_lock(struct heap_status_table *statuses,
                                       const struct ttd_event *event);

/** Applies an Unlock. Returns false if the thread holds no lock of the heap. */
bool heap_status_table_unlock(struct heap_status_table *statuses, const struct ttd_event *event);

/** Returns the oldest lock on the heap that any thread holds, or NULL. */
const struct heap_hold *heap_status_table_held(const struct heap_status_table *statuses,
                                               ttd_id heap);

/** Whether a hold is of the heap's present generation and still locked. */
bool heap_hold_is_active(const struct heap_status_table *statuses, const struct heap_hold *hold);

struct heap_fatal;

enum heap_error_kind {
    /** The header of a block was overwritten: see errors_parts.h. `call` has allocated the block
     * that the finding is about, and `address` is the header's. */
    HEAP_ERROR_HEAP_DAMAGE,
    /** A release, or a reallocation, of a block that has been released and not allocated since. */
    HEAP_ERROR_DOUBLE_FREE,
    HEAP_ERROR_REALLOC_OF_FREED,
    /** A release of an address where no block was ever seen. */
    HEAP_ERROR_INVALID_FREE,
    /** A release of an address inside a block. */
    HEAP_ERROR_INTERIOR_FREE,
    /** A release by a function that does not fit the one that allocated, such as free() after new.
     */
    HEAP_ERROR_MISMATCHED_FREE,
    /** A release with a size that is not the block's. */
    HEAP_ERROR_MISMATCHED_SIZE,
    /** A release in a heap that has no block at the address, while another heap has one. */
    HEAP_ERROR_WRONG_HEAP,
    HEAP_ERROR_USE_OF_DESTROYED_HEAP,
    HEAP_ERROR_USE_OF_READ_ONLY_HEAP,
    /** An Unlock by a thread that held no lock, or a Lock that was held until the program ended. */
    HEAP_ERROR_UNBALANCED_LOCK,
    HEAP_ERROR_FAILED_CALL,
    /** The process died of a fault before the call returned, and the call has no other error. */
    HEAP_ERROR_DIED_IN_CALL,
    /** A block was allocated at the address of a live block, so a release is missing in the trace.
     */
    HEAP_ERROR_TRACE_INCONSISTENCY
};

#define HEAP_ERROR_KINDS (HEAP_ERROR_TRACE_INCONSISTENCY + 1)

/** Limit on the findings that are kept; the calls of any more are only counted. */
#define HEAP_FINDINGS_MAX 65536

/** The header of a block that was overwritten. */
struct heap_damage {
    /** The snapshot that shows it, and its position. */
    uint32_t snapshot;
    struct ttd_position position;
    /** The header's value. */
    uint64_t header;
    /** The block of the finding ends at the header. */
    bool is_adjacent;
    /** Then, the number of bytes beyond its end up to the last one that was written, or fewer. */
    uint64_t beyond;
};

/** All calls with the same error and the same stacks. */
struct heap_finding {
    enum heap_error_kind kind;
    /** The first of the calls, and the address given to it; of an allocation, the one it returned.
     */
    struct heap_call call;
    uint64_t address;
    uint64_t size;
    ttd_id heap;
    /** Number of the calls, and the position of the last one. */
    uint64_t count;
    struct ttd_position last;
    /** The block that the call is about; address 0 if it is unknown or there is none. */
    uint64_t block_address;
    uint64_t block_size;
    ttd_id block_heap;
    struct heap_call allocated;
    /** The call that released the block before. */
    struct heap_call released;
    /** The call that destroyed, protected or locked the heap. */
    struct heap_call conflict;
    /** The signal that the process died of before the call returned, or 0; and the blocks that lay
     * beside the address then. */
    uint32_t signal;
    struct heap_neighbours neighbours;
    /** Of HEAP_ERROR_HEAP_DAMAGE; all zero for other kinds. */
    struct heap_damage damage;
    /** False if the finding may come from events that are missing in the trace, or from freed
     * blocks that the analysis has forgotten. */
    bool is_certain;
    /** Calls that are missing in the trace may explain it, so that it may be none. */
    bool may_lack_calls;
    /** A mismatch that is right if an operator new or delete of the program's own is inlined where
     * malloc() or free() was called. Set by the command; it knows the names. */
    bool may_be_inlined;
    /** The same if such an operator, of a module that does not export it, ends in that call. */
    bool may_be_hidden;
    /** A second release that is none if the function that called it keeps released blocks: a free()
     * on top of the allocator's. Set by the command likewise. */
    bool may_be_deferred;
};

struct heap_errors_options {
    /** Number of freed blocks to remember, from 1 to HEAP_FREED_MAX. */
    uint32_t remembered;
    /** NULL, or reports only calls in these islands. */
    const struct heap_islands *islands;
    /** The fatal signal of the trace; names the thread that died; or NULL. */
    const struct heap_fatal *fatal;
    /** Not all blocks are recorded: releases of others are no findings. */
    bool has_choice;
    /** A call that has not returned may be of another process than the one that died. */
    bool is_merged;
    /** In a pass: only finds out whether a call may be an error, with a fraction of the work. If
     * none is, there are no errors; else sets `must_search`, and a search of its own finds them. */
    bool only_screens;
};

struct error_finder;

struct heap_errors {
    struct heap_outcome outcome;
    struct heap_finding *findings;
    size_t count;
    size_t capacity;
    struct hash_map index;
    /** Number of erroneous calls; and of those among them beyond HEAP_FINDINGS_MAX. */
    uint64_t calls;
    uint64_t omitted;
    /** Releases that may be of blocks allocated before recording began; no findings. */
    uint64_t early_releases;
    /** Releases that calls in a gap of recording may explain; no findings. */
    uint64_t gap_releases;
    /** Freed blocks that were forgotten for lack of room. */
    uint64_t forgotten;
    /** Releases of unknown addresses that were not looked up inside blocks. Each such search goes
     * through all blocks, so their number is limited. */
    uint64_t unexamined;
    /** See only_screens; the findings are not complete then. */
    bool must_search;
    /** Until heap_errors_end(). */
    struct error_finder *finder;
};

/** Whether the process had blocks before recording began, its own or inherited from its parent. */
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
 * Makes the search a part of a pass to the end of the trace.
 *
 * @param errors  release with heap_errors_free(), also on failure; stays where it is
 * @param reader  read before the pass
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status heap_errors_watch(struct heap_errors *errors,
                                  const struct heap_errors_options *options,
                                  struct ttd_reader *reader, struct heap_pass *pass,
                                  struct ttd_error *error);

/** Completes it when the pass has ended. */
void heap_errors_end(struct heap_errors *errors);

/**
 * Adds a finding; or, if there is one of the same kind and stacks, adds to its count.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_errors_add(struct heap_errors *errors, const struct heap_finding *finding);

/** Finds the stack that stands for all that are the same. */
typedef enum ttd_status heap_same_stack(void *context, ttd_id stack, ttd_id *first);

/**
 * Merges findings whose stacks are the same, though they have other identifiers.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, or the status of `find`.
 */
enum ttd_status heap_errors_merge(struct heap_errors *errors, heap_same_stack *find, void *context);

/** Returns the static name of a kind, such as "double-free". */
const char *heap_error_name(enum heap_error_kind kind);

#endif
