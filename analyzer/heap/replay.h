/* SPDX-License-Identifier: MIT */
/**
 * Replaying events into the heap's state.
 *
 * Rules: an Alloc acquires its block at time_end; a Free releases its block at time_start, also
 * when the call never returned; a ReAlloc releases the old block at time_start and acquires the new
 * one at time_end; a Destroy releases all blocks of its heap. A call that failed has no effect. A
 * ReAlloc that never returned keeps its old block, since its fate is unknown. The state *at* a
 * position includes all effects at it.
 *
 * How many times the instructions grow without each thing that is there for speed, on the traces
 * python and generated-summaries of tools/compare-builds (release build; `valgrind --tool=callgrind
 * ttdanalyze leaks --no-index TRACE`, or the command that is named; the first two by
 * `tools/compare-builds --instructions`):
 *
 *     runs of events that nobody watches (replay_apply.c)          1.09  1.12
 *     ReAlloc without the queue (is_alone_call() in replay_apply.c)     1.02  1.00
 *     each address looked up once a chunk (ordinal_map)            1.04  1.01
 *     events decoded in batches, not one by one                    5.11  5.01
 *     an index, for `state --at 50%`                                     1.87
 *     summaries in it, for `state --at 75%`                              3.94
 *     summaries in it, for `peak`                                        2.27
 *
 * `index` takes 1.74 times the instructions with summaries; they do nothing for a position that
 * none of them covers. Instructions do not show the gain of prefetching. Nor do they show the
 * thread that reads ahead (struct prefetcher): it takes 1.3 times the processor time, and can save
 * wall time only where another processor is idle; on two busy ones none was saved. So `report` with
 * its many analyses replays a trace twice at the same time instead (report_pass.h); and nothing is
 * read ahead of runs, which take less time than the events need to come from another processor.
 *
 * Summaries are an observer of blocks (struct heap_block_observer): it gets the block and no more.
 * `index` of generated-summaries takes 1.01 times the instructions of a replay that collects the
 * blocks itself, and 1.04 times those with an observer of effects: filling in an effect for each.
 */
#ifndef ANALYZER_HEAP_REPLAY_H
#define ANALYZER_HEAP_REPLAY_H

#include <ttdtrace/reader.h>

#include "heap/heap_live.h"

/*
 * Maps the ordinals of a chunk's addresses (see ttd_event) to records of the table of live blocks,
 * so that each address is looked up once a chunk.
 */

/** All zero but for `chunk` when empty: see heap_ordinal_map_init(). */
struct heap_ordinal_map {
    /** By ordinal. */
    uint32_t *records;
    size_t count;
    size_t capacity;
    /** Offset of the chunk in the file, since in a damaged trace two may have the same number. */
    uint64_t chunk;
};

void heap_ordinal_map_init(struct heap_ordinal_map *ordinals);
void heap_ordinal_map_free(struct heap_ordinal_map *ordinals);

/**
 * Begins a chunk. A chunk other than the last one makes the map forget all records, and sweeps the
 * table if it is littered.
 *
 * @param chunk  offset of the chunk
 */
void heap_ordinal_map_begin(struct heap_ordinal_map *ordinals, struct heap_live *live,
                            uint64_t chunk);

/**
 * Finds the records of all addresses that a batch of events adds to its chunk; the batches before
 * were added already. A batch may be added twice.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_ARGUMENT (batches before are missing).
 */
enum ttd_status heap_ordinal_map_add(struct heap_ordinal_map *ordinals, struct heap_live *live,
                                     const struct ttd_batch *batch);

/** Returns the record of an ordinal that was added. */
static inline uint32_t heap_ordinal_map_get(const struct heap_ordinal_map *ordinals,
                                            uint32_t ordinal)
{
    return ordinals->records[ordinal];
}

/* Pending effects: blocks that reallocations in flight will acquire. */

struct heap_pending {
    /** The block to be acquired, at block.allocated. */
    struct heap_block block;
    /** Flags of the call. */
    uint64_t flags;
    /** Address passed to the call, or 0. */
    uint64_t previous_address;
    /** The block at that address, if known. */
    bool has_previous;
    struct heap_block previous;
};

/** A priority queue, ordered by position and then by event. All zero when empty. */
struct heap_queue {
    struct heap_pending *items;
    size_t count;
    size_t capacity;
};

void heap_queue_free(struct heap_queue *queue);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_queue_push(struct heap_queue *queue, const struct heap_pending *pending);

/** Removes the first one; the queue must not be empty. */
void heap_queue_pop(struct heap_queue *queue, struct heap_pending *pending);

/** Whether an effect is due at `position` or before. */
static inline bool heap_queue_due(const struct heap_queue *queue, struct ttd_position position)
{
    return queue->count && ttd_position_compare(queue->items[0].block.allocated, position) <= 0;
}

/* An array of copies of blocks, each with the number of its record. */

/** All zero when empty. */
struct heap_block_copies {
    struct heap_block *blocks;
    /** The index in heap_live.blocks of each copy's record. */
    uint32_t *records;
    size_t count;
    size_t capacity;
};

void heap_block_copies_free(struct heap_block_copies *copies);

/** Makes room for one more. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_block_copies_grow(struct heap_block_copies *copies);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static inline enum ttd_status heap_block_copies_add(struct heap_block_copies *copies,
                                                    const struct heap_block *block, uint32_t record)
{
    enum ttd_status status =
        copies->count < copies->capacity ? TTD_OK : heap_block_copies_grow(copies);
    if (status != TTD_OK)
        return status;
    copies->blocks[copies->count] = *block;
    copies->records[copies->count++] = record;
    return TTD_OK;
}

enum heap_effect_kind {
    /** `block` became live. It may be changed in its member `user`. */
    HEAP_ACQUIRED,
    /** `block` was released. */
    HEAP_RELEASED,
    /** `count` blocks of a heap were released at once; each follows later, as HEAP_DISCARDED. */
    HEAP_DESTROYED,
    /** A block of a destroyed heap, some time after its destruction at `position`. */
    HEAP_DISCARDED,
    /** `block` was live where another was acquired: its release is missing in the trace. */
    HEAP_OVERLAPPED,
    /** `address` was released, but is no live block. */
    HEAP_UNKNOWN_RELEASE
};

#define HEAP_EFFECT_KINDS (HEAP_UNKNOWN_RELEASE + 1)

/** A change of the heap. Pointers are valid during the call. */
struct heap_effect {
    enum heap_effect_kind kind;
    /** The action and function of the call that had the effect. */
    uint8_t action;
    uint8_t api;
    /** Released by a ReAlloc that acquires another block. */
    bool continues;
    /** The call never returned. */
    bool is_unfinished;
    struct ttd_position position;
    /** The event of that call, its call site, thread and heap. */
    uint64_t event;
    ttd_id stack;
    ttd_id thread;
    ttd_id heap;
    /** Index in live.blocks of the record that `block` is or was in. */
    uint32_t record;
    /** heap_replay.wall_time: the largest of the calls so far. */
    uint64_t wall_time;
    uint64_t address;
    struct heap_block *block;
    /** Acquired by a ReAlloc: the address before, or 0; and the block before, or NULL. */
    uint64_t previous_address;
    const struct heap_block *previous;
    union {
        /** HEAP_DESTROYED: the blocks. */
        uint64_t count;
        /** Acquired by a ReAlloc: the flags of the call. */
        uint64_t flags;
    };
};

/** A set of kinds of effects is a bit mask. */
#define HEAP_EFFECT_BIT(kind) (1u << (kind))

/** A set of actions of calls is a bit mask. */
#define HEAP_CALL_BIT(action) (1u << (action))

/**
 * A run: Allocs and Frees of one heap without a parent that all take effect, each at another
 * position, of blocks that the trace knows, before the limits of the observer.
 */
struct heap_run {
    ttd_id heap;
    uint64_t acquired;
    uint64_t acquired_bytes;
    uint64_t released;
    uint64_t released_bytes;
    /** Position of its last effect. */
    struct ttd_position position;
    /** The blocks that are live before the last effect, in heaps without a parent, and their bytes;
     * and the largest number of such bytes at the position before the run or at one in it. */
    uint64_t settled_blocks;
    uint64_t settled_bytes;
    uint64_t peak_bytes;
};

/** The first event and the first wall time that are in no run. */
struct heap_run_limits {
    uint64_t event;
    uint64_t wall_time;
};

/**
 * Gets calls that take the fast path of the replay: Allocs and Frees of the parentless heap that
 * was used last, of blocks that the trace knows. Anything but TTD_OK ends the replay with that
 * status.
 */
struct heap_plain_observer {
    /** An Alloc; NULL if it is not wanted. */
    enum ttd_status (*acquired)(void *context, const struct ttd_event *event);
    /** A Free, and the block that it is about to release. */
    enum ttd_status (*released)(void *context, const struct ttd_event *event,
                                const struct heap_block *block);
};

struct heap_observer {
    void *context;
    /** Anything but TTD_OK ends the replay with that status. */
    enum ttd_status (*effect)(void *context, const struct heap_effect *effect);
    /** A variable with the place where the next effect is built, before the observer gets it:
     * whoever keeps effects need not copy them: a copy would wait for all earlier writes. NULL for
     * no matter where. */
    struct heap_effect *const *place;
    /** Each call just before its own effects, whether it has any or not; NULL if not wanted. */
    enum ttd_status (*call)(void *context, const struct ttd_event *event);
    /**
     * Whether a block that was acquired is still live where the replay ends: the table forgets it
     * at once then, so that it takes no memory, and sums of live blocks do not count it. Observers
     * need its acquisition only if it ended another block, or belongs to a ReAlloc. NULL if the
     * table shall have all blocks.
     */
    bool (*survives)(void *context, const struct heap_block *block);
    /** Gets runs instead of their effects: takes half of the time. heap_replay_peak() is not kept
     * then. NULL for all effects. */
    void (*run)(void *context, const struct heap_run *run);
    /** With `run`: its limits, which it may change. */
    const struct heap_run_limits *limits;
    /** Gets plain calls instead of their effects, and instead of these calls, or NULL. With
     * `acquired` it may get effects of others; else it may have no `effect`. */
    const struct heap_plain_observer *plain;
    /** Called when events of a batch have been applied, while they are still valid; NULL if not
     * wanted. */
    enum ttd_status (*applied)(void *context);
    /** Kinds of effects that it does not need, as HEAP_EFFECT_BITs. */
    unsigned unwanted;
    /** Calls that it does not need, as HEAP_CALL_BITs of their actions. */
    unsigned unwanted_calls;
};

/** Counts of the events replayed. */
struct heap_counts {
    uint64_t events;
    /** By ttd_action; [0] is not used. */
    uint64_t actions[TTD_ACTION_DESTROY + 1];
    uint64_t failed;
    uint64_t unfinished;
    uint64_t unknown_releases;
    uint64_t overlaps;
    /** Set on arrival: see heap_count_strays(). */
    uint64_t strays;
};

struct heap_left {
    uint64_t blocks;
    struct heap_sum bytes;
    /** The calls that these programs made to acquire blocks. */
    uint64_t acquisitions;
};

/** The first position with the largest number of live bytes in heaps without a parent; 0:0 if there
 * never were any. */
struct heap_peak {
    struct ttd_position position;
    struct heap_sum bytes;
    uint64_t blocks;
};

/**
 * An observer of blocks that become live and end, and of nothing else. Blocks that end
 * with their heap are left out. Anything but TTD_OK ends the replay with that status.
 */
struct heap_block_observer {
    void *context;
    /** @param record  index of the block in live.blocks */
    enum ttd_status (*acquired)(void *context, const struct heap_block *block, uint32_t record);
    enum ttd_status (*ended)(void *context, const struct heap_block *block, uint32_t record);
};

struct heap_replay {
    struct heap_live live;
    struct heap_ordinal_map records;
    struct heap_queue queue;
    struct heap_counts counts;
    /** Live blocks whose heap ended by no function of the program: the process executed another
     * program, and they ended with the one before. */
    struct heap_left left;
    /** The number of the event that comes next, or a smaller one if some are missing. */
    uint64_t next;
    /** Position of the last effect; 0:0 at first. */
    struct ttd_position position;
    /** Largest wall time of the calls so far, the current call included. Kept only while an
     * observer gets effects. */
    uint64_t wall_time;
    /** Before that position: see heap_replay_peak(). */
    struct heap_peak peak;
    /** See heap_replay_keep_peak(). */
    bool keeps_peak;
    struct heap_block_copies ended_since_peak;
    struct heap_observer observer;
    /** See heap_replay_observe_blocks(). */
    struct heap_block_observer block_observer;
    /** Effects and calls that the observer gets; 0 if there are none. */
    unsigned wanted_effects;
    unsigned wanted_calls;
    enum ttd_status observer_status;
};

/**
 * @param observer  copied; NULL for none (faster)
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_replay_init(struct heap_replay *replay, const struct heap_observer *observer);
void heap_replay_free(struct heap_replay *replay);

/**
 * Observes blocks from now on, until there is another observer or the replay is reset.
 *
 * @param observer  copied; NULL for none (faster)
 */
void heap_replay_observe_blocks(struct heap_replay *replay,
                                const struct heap_block_observer *observer);

/** Back to the beginning, but for the parents of heaps. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_replay_reset(struct heap_replay *replay);

/**
 * Applies events, in order, up to and including `until`, and every effect of earlier calls that is
 * due before them.
 *
 * @param batch    of events, as from a reader; those that were applied already may be left out, but
 *                 no other batches of its chunk before it
 * @param applied  set on TTD_OK to how many were applied; less than batch->count when the next is
 *                 after `until`
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_ARGUMENT (batches are missing), or the observer's
 * status.
 */
enum ttd_status heap_replay_apply(struct heap_replay *replay, const struct ttd_batch *batch,
                                  struct ttd_position until, size_t *applied);

/** Whether the replay takes its fast path, for lack of an observer that gets each effect. */
bool heap_replay_has_runs(const struct heap_replay *replay);

/** Returns the live block at the base address (not 0) of an event, for an observer of the call;
 * NULL if there is none. Valid until the next change. */
static inline const struct heap_block *heap_replay_given(const struct heap_replay *replay,
                                                         const struct ttd_event *event)
{
    uint32_t record = heap_ordinal_map_get(&replay->records, event->base_ordinal);
    record = heap_live_own(&replay->live, record, event->heap);
    return record == HEAP_NO_RECORD ? NULL : &replay->live.blocks[record];
}

/** The peak of all that was replayed, from the beginning or from a keyframe. */
struct heap_peak heap_replay_peak(const struct heap_replay *replay);

/** Keeps blocks that were live at the peak and have ended since; called before anything is applied.
 */
void heap_replay_keep_peak(struct heap_replay *replay);

/**
 * Ends the search for the peak; called at the last wanted position. Sets replay->peak. The blocks
 * that were live at the peak are those in `ended_since_peak`, and those that are still live and
 * were allocated at the peak or before.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_replay_end_peak(struct heap_replay *replay);

/** Applies pending effects at `until` or before. Statuses as heap_replay_apply(). */
enum ttd_status heap_replay_settle(struct heap_replay *replay, struct ttd_position until);

#endif
