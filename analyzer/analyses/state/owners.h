/* SPDX-License-Identifier: MIT */
/** The owners of an address around a position: the block that covers it there, or the one that
 * covered it before, and the next one. */
#ifndef ANALYZER_ANALYSES_STATE_OWNERS_H
#define ANALYZER_ANALYSES_STATE_OWNERS_H

#include "analyses/state/owner.h"
#include "travel/replay_to.h"

struct heap_owners_options {
    uint64_t address;
    struct ttd_position at;
};

struct heap_owners {
    struct heap_outcome outcome;
    struct heap_owners_options options;
    /** The owner that is live at the position. If several lie in each other, the one that was
     * acquired last. */
    bool has_live;
    struct heap_owner live;
    /** Without a live owner: of those released at the position or before, the one that was acquired
     * last. */
    bool has_before;
    struct heap_owner before;
    /** The first owner that was acquired after the position. */
    bool has_after;
    struct heap_owner after;
};

/**
 * Finds the owners, and the calls that released them, which may come long after the position.
 * Replays the whole trace. With an index, starts at the keyframe before the position, and replays
 * only events that concern the address until the owners are known. The part before that keyframe is
 * replayed only if no owner is live at the position, and none was acquired since the keyframe.
 *
 * @param options  copied
 * @param owners   set on TTD_OK; owns nothing
 * @return as heap_replay_to().
 */
enum ttd_status heap_owners_find(const struct heap_trace *trace,
                                 const struct heap_owners_options *options,
                                 struct heap_owners *owners, struct ttd_error *error);

#endif
