/* SPDX-License-Identifier: MIT */
/** The block that had each of some words of memory last, and was released. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_EARLIER_H
#define ANALYZER_ANALYSES_REACHABILITY_EARLIER_H

#include "analyses/state/owner.h"
#include "travel/trace.h"

/** A word, and the block that had it; `released` of that is unknown if none had it. */
struct heap_earlier {
    uint64_t address;
    struct heap_owner owner;
};

/**
 * Replays the trace up to a position, and finds the block that was released last of those that had
 * each word.
 *
 * @param words  their addresses are set; sorted by address, and their owners set
 * @return as heap_replay_to(); TTD_OK for no words.
 */
enum ttd_status heap_earlier_find(const struct heap_trace *trace, struct ttd_position until,
                                  struct heap_earlier *words, size_t count,
                                  struct ttd_error *error);

#endif
