/* SPDX-License-Identifier: MIT */
/** A movable viewpoint: the heap's state at any position of a trace. */
#ifndef ANALYZER_TRAVEL_CURSOR_H
#define ANALYZER_TRAVEL_CURSOR_H

#include "travel/prefetcher.h"
#include "travel/trace.h"

/** The cursor needs these kinds of the reader. */
#define HEAP_CURSOR_KINDS                                                                          \
    (TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_LOSSES) |                               \
     TTD_KIND_BIT(TTD_KIND_HEAP_PARENTS))

struct heap_cursor {
    struct ttd_reader *reader;
    struct heap_prefetcher ahead;
    uint32_t kinds;
    /** NULL for none, or when they proved to be wrong. */
    const struct heap_keyframes *keyframes;
    struct heap_replay replay;
    /** The replay has the parents of all heaps; else it learns them on its way. */
    bool has_parents;
    /** May be set before the first move: where sums of live blocks may go that replay.live then
     * does not have. NULL: it shall have all. */
    struct heap_tables *sums;
    /** The keyframe or summary that the replay began with; NULL for the beginning of the trace. */
    const struct heap_keyframe *start;
    struct heap_batch_hook hook;
    /** The last status returned by the hook. */
    enum ttd_status hook_status;
    /** The rest of a batch: the events that are still to be applied. */
    struct ttd_batch batch;
    /** Target of the last heap_cursor_seek(). */
    struct ttd_position target;
    bool at_end;
    /** The trace ends within a chunk, or was not read to its end, as `error` says. */
    bool truncated;
    struct ttd_error error;
};

/**
 * Starts at the beginning of the trace. As long as no keyframe is gone to, everything is checked on
 * the way: see ttd_reader_is_intact().
 *
 * @param trace     copied. Its keyframes make it faster to go to positions: an observer is told of
 *                  nothing that happened before the keyframe
 * @param kinds     what the reader returns: HEAP_CURSOR_KINDS and others that the hook wants
 * @param observer  as for heap_replay_init()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status heap_cursor_init(struct heap_cursor *cursor, const struct heap_trace *trace,
                                 uint32_t kinds, const struct heap_observer *observer);
void heap_cursor_free(struct heap_cursor *cursor);

/**
 * Goes to `target`: afterwards cursor->replay is the state at it, cursor->replay.position the
 * nearest position before at which something happened. Going back starts over from a keyframe
 * or from the beginning.
 *
 * @param error  detail on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_UNSUPPORTED, and what observer and
 *         hook return; TTD_ERROR_ARGUMENT if somebody else has used the reader meanwhile.
 */
enum ttd_status heap_cursor_seek(struct heap_cursor *cursor, struct ttd_position target,
                                 struct ttd_error *error);

#endif
