/* SPDX-License-Identifier: MIT */
/**
 * Replaying a trace to its end by netted chunks: several threads sum up chunks (see struct
 * ttd_net_sums), and the sums are applied to the state in order. A chunk whose sums do not say all
 * is replayed call by call; so both ways lead to the same state behind each chunk.
 */
#ifndef ANALYZER_TRAVEL_FORWARD_H
#define ANALYZER_TRAVEL_FORWARD_H

#include "heap/replay.h"
#include "travel/heap_trace.h"

/** A netted chunk that is applied to the state. */
struct heap_net_chunk {
    const struct ttd_netter *netter;
    const struct ttd_net_sums *sums;
    /** Number of its first event. */
    uint64_t first_event;
};

/** An observer of sums. It gets no effects of a chunk that is summed up; of others it gets them as
 * an observer of the replay. Anything but TTD_OK ends the replay with that status. */
struct heap_net_observer {
    void *context;
    /** Prefetches the data of the observer for a record that is about to change. */
    void (*prefetch)(void *context, uint32_t record);
    /** The first event of a net has released a block of an earlier chunk; `block` is still valid.
     */
    enum ttd_status (*released)(void *context, const struct heap_net_chunk *chunk,
                                const struct ttd_net *net, const struct heap_block *block,
                                uint32_t record);
    /** A net leaves a block. */
    enum ttd_status (*acquired)(void *context, const struct heap_net_chunk *chunk,
                                const struct ttd_net *net, const struct heap_block *block,
                                uint32_t record);
    /** Called behind these. */
    enum ttd_status (*summed)(void *context, const struct heap_net_chunk *chunk);
    /** Forgets everything, since the replay begins anew. */
    void (*restart)(void *context);
};

/** The sums that a replay by netted chunks makes, and the observer that gets them. */
struct heap_forward {
    struct ttd_net_sum_options sums;
    const struct heap_net_observer *observer;
};

/**
 * Replays all events of a trace.
 *
 * @param replay   at the start of the trace, with its observer for single calls; undefined if it
 *                 was not done
 * @param trace    its reader and its hook are used
 * @param is_done  set on TTD_OK: false if a replay of all calls is necessary, because there are
 *                 losses, damage, or nested heaps, or because most chunks need it. The
 *                 observer may have got something then
 * @param error    detail on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and the statuses of the observer and of the
 * hook.
 */
enum ttd_status heap_forward_replay(struct heap_replay *replay, const struct heap_trace *trace,
                                    const struct heap_forward *forward, bool *is_done,
                                    struct ttd_error *error);

#endif
