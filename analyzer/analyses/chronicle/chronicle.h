/* SPDX-License-Identifier: MIT */
/**
 * A chronicle: every block of a trace with its beginning and its end, and the effects of calls in
 * order. It answers at any moment without another replay. A *moment* is a number of effects that
 * have happened: from 0 to effect_count. At 32 bytes an effect and 32 a block it is for traces that
 * fit into memory.
 */
#ifndef ANALYZER_ANALYSES_CHRONICLE_CHRONICLE_H
#define ANALYZER_ANALYSES_CHRONICLE_CHRONICLE_H

#include "analyses/activity/ticks.h"
#include "analyses/state/diff.h"
#include "travel/replay_to.h"

/** No block, no effect. */
#define CHRONICLE_NONE UINT32_MAX

struct chronicle_effect {
    struct ttd_position position;
    /** The event that had it. */
    uint32_t event;
    /** Acquired, released, overlapped: the block; destroyed: the index in `destructions`. */
    uint32_t subject;
};

enum chronicle_kind {
    CHRONICLE_ACQUIRED,
    CHRONICLE_RELEASED,
    CHRONICLE_DESTROYED,
    /** Ended where another block was acquired: its release is missing in the trace. */
    CHRONICLE_OVERLAPPED
};

struct chronicle_block {
    uint64_t address;
    uint64_t size;
    ttd_id stack;
    ttd_id thread;
    ttd_id heap;
    /** The heap has a parent, in whose blocks this one lies. */
    bool is_nested;
};

/** The effects that began and ended a block, by number from 0; the end of one that is live at the
 * end of the trace is CHRONICLE_NONE. */
struct chronicle_life {
    uint32_t begin;
    uint32_t end;
};

/** The destruction of a heap: the blocks that ended with it are `ended[first]` to before
 * `ended[behind]`. */
struct chronicle_destruction {
    uint32_t effect;
    ttd_id heap;
    uint32_t first;
    uint32_t end;
};

/** The wall time of the newest call, from an effect on. */
struct chronicle_time {
    uint32_t effect;
    uint64_t time;
};

struct chronicle {
    struct chronicle_effect *effects;
    /** By effect, an enum chronicle_kind. */
    uint8_t *kinds;
    size_t effect_count;
    size_t effect_capacity;
    struct chronicle_block *blocks;
    struct chronicle_life *lives;
    size_t block_count;
    size_t block_capacity;
    struct chronicle_destruction *destructions;
    size_t destruction_count;
    size_t destruction_capacity;
    uint32_t *ended;
    struct chronicle_time *times;
    size_t time_count;
    size_t time_capacity;
    uint64_t wall_time;
    /** Blocks in the order of their addresses, and their lives; see chronicle_sort(). */
    uint32_t *by_address;
    struct chronicle_life *sorted_lives;
    /** Until it is made: of the replay. */
    const struct heap_parents *parents;
    struct heap_gaps gaps;
};

/**
 * Replays a trace.
 *
 * @param events     how many events the trace has, as far as is known: memory is allocated for them
 * @param chronicle  release with chronicle_free(), also on failure
 * @return as heap_replay_to(), and TTD_ERROR_LIMIT for a trace of 2^32 effects or more.
 */
enum ttd_status chronicle_make(struct chronicle *chronicle, const struct heap_trace *trace,
                               uint64_t events, struct ttd_error *error);
void chronicle_free(struct chronicle *chronicle);

/** Returns the moment at a position: all effects at it and before have happened. */
uint32_t chronicle_find(const struct chronicle *chronicle, struct ttd_position position);

/** Returns the last moment at or before an event, by its number; and one by a wall time. */
uint32_t chronicle_find_event(const struct chronicle *chronicle, uint64_t event);
uint32_t chronicle_find_time(const struct chronicle *chronicle, uint64_t time);

/** Returns the moment at the next position before or after. Nothing happens at a position between;
 * the first and the last moment return themselves. */
uint32_t chronicle_before(const struct chronicle *chronicle, uint32_t moment);
uint32_t chronicle_after(const struct chronicle *chronicle, uint32_t moment);

/** Returns the position of a moment; 0:0 for the first. */
struct ttd_position chronicle_position(const struct chronicle *chronicle, uint32_t moment);

/** Returns the largest wall time of a call up to a moment. */
uint64_t chronicle_wall_time(const struct chronicle *chronicle, uint32_t moment);

/** Whether a block is live at a moment. */
static inline bool chronicle_is_live(struct chronicle_life life, uint32_t moment)
{
    return life.begin < moment && life.end >= moment;
}

/** Called for a block that effect `effect` begins or ends, as its kind says. */
typedef void (*chronicle_visit)(void *context, uint32_t effect,
                                const struct chronicle_block *block);

/** Visits the blocks that begin or end after moment `from`, up to moment `to`, in order. */
void chronicle_each(const struct chronicle *chronicle, uint32_t from, uint32_t to,
                    chronicle_visit visit, void *context);

/**
 * Puts the blocks in the order of their addresses, for chronicle_each_live().
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status chronicle_sort(struct chronicle *chronicle);

/** Called for the number of a live block; false ends the walk. */
typedef bool (*chronicle_live_visit)(void *context, uint32_t block);

/** Visits the blocks that are live at a moment, in the order of their addresses. */
void chronicle_each_live(const struct chronicle *chronicle, uint32_t moment,
                         chronicle_live_visit visit, void *context);

/* The blocks between two moments in four quadrants, as analyses/state/diff.h has them. */

/* Sums of the changes between two moments, as ticks have them. */

/** Changes of the heap after one moment, up to and including another. */
struct chronicle_sums {
    /** The state at the second moment. */
    struct heap_tick tick;
    /** Changes, each series with one tick. */
    struct heap_tick_series series[HEAP_TICK_KEYS];
};

/** Two moments, the second not before the first. */
struct chronicle_range {
    uint32_t from;
    uint32_t to;
};

/** Says for a stack whether its blocks count. */
struct chronicle_filter {
    const void *context;
    /** NULL if all count. */
    bool (*wants)(const void *context, ttd_id stack);
};

/**
 * @param before  the tick at moment `range.from`: its live blocks and its event go on
 * @param sums    release with chronicle_sums_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status chronicle_sum(const struct chronicle *chronicle, struct chronicle_range range,
                              const struct heap_tick *before, struct chronicle_filter filter,
                              struct chronicle_sums *sums);
void chronicle_sums_free(struct chronicle_sums *sums);

/** By quadrant the sums of its blocks by stack, as the changes of one tick. */
struct chronicle_quadrants {
    struct heap_tick_series series[HEAP_QUADRANTS];
};

/**
 * Finds the blocks that were live at the first moment or acquired since, and whether each had ended
 * by the second one. Blocks that the runtimes keep are not distinguished.
 *
 * @param quadrants  release with chronicle_quadrants_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status chronicle_quadrants_find(const struct chronicle *chronicle,
                                         struct chronicle_range range,
                                         struct chronicle_filter filter,
                                         struct chronicle_quadrants *quadrants);
void chronicle_quadrants_free(struct chronicle_quadrants *quadrants);

#endif
