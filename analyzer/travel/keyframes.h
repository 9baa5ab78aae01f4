/* SPDX-License-Identifier: MIT */
/**
 * Keyframes: states of the heap in a sidecar index, from which a replay can start (spec, "Derived
 * files"). An index helps, and proves nothing: it must belong to its trace, be whole, and fit the
 * events that come after each keyframe; else the replay goes on without it. What it says of one
 * block can be compared with the trace (see confirm.h); that no block is missing or too many takes
 * the replay that is to be spared. So an answer from an index is not certain.
 */
#ifndef ANALYZER_TRAVEL_KEYFRAMES_H
#define ANALYZER_TRAVEL_KEYFRAMES_H

#include <ttdtrace/reader.h>
#include <ttdtrace/writer.h>

#include "travel/states.h"

#define HEAP_SOURCE_KEY  "source"
#define HEAP_SOURCE_SIZE 160

struct heap_keyframes {
    struct ttd_reader *sidecar;
    struct heap_keyframe *keyframes;
    size_t count;
    size_t capacity;
    /** The peak of the whole trace, if the sidecar records it. */
    bool has_peak;
    struct heap_peak peak;
    /** Identity of the trace's file as the sidecar records it (key HEAP_SOURCE_KEY); empty if it is
     * too long. */
    char source[HEAP_SOURCE_SIZE];
};

/** Whether a derived trace is tied to this very trace. */
bool heap_index_belongs_to(struct ttd_reader *sidecar, struct ttd_reader *trace);

/**
 * Reads which keyframes a sidecar has.
 *
 * @param sidecar    not tolerant; taken over, also on failure
 * @param trace      whose sidecar it must be
 * @param keyframes  set on TTD_OK; release with heap_keyframes_close()
 * @return TTD_OK, TTD_ERROR_CORRUPT (damaged, or of another trace), TTD_ERROR_NO_MEMORY,
 *         TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_keyframes_open(struct ttd_reader *sidecar, struct ttd_reader *trace,
                                    struct heap_keyframes *keyframes);
void heap_keyframes_close(struct heap_keyframes *keyframes);

/** The keyframe, or also summary, from which `position` is nearest; NULL if there is none. */
const struct heap_keyframe *heap_keyframes_before(const struct heap_keyframes *keyframes,
                                                  struct ttd_position position,
                                                  bool takes_summaries);

/**
 * Makes a replay's state that of a keyframe, or, of a summary, that of the blocks it lists.
 *
 * @param sums  all others are added to it; NULL with a keyframe
 * @return TTD_OK, TTD_ERROR_CORRUPT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO; after a failure the replay
 *         must be reset.
 */
enum ttd_status heap_keyframes_restore(const struct heap_keyframes *keyframes,
                                       const struct heap_keyframe *keyframe,
                                       struct heap_replay *replay, struct heap_tables *sums);

#endif
