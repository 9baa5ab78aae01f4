/* SPDX-License-Identifier: MIT */
/**
 * Keyframes: states of the heap in a sidecar index, from which a replay can start (spec, "Derived
 * files"). An index helps, and is never trusted: it must belong to its trace, be whole, and fit the
 * events that come after each keyframe; else the replay goes on without it.
 */
#ifndef ANALYZER_HEAP_KEYFRAMES_H
#define ANALYZER_HEAP_KEYFRAMES_H

#include <ttdtrace/reader.h>
#include <ttdtrace/writer.h>

#include "heap/replay.h"

/** A state between two events: all that happened at `position` or before, and no call in flight. */
typedef struct heap_keyframe {
    ttd_position position;
    /** What was replayed; counts.events is the number of the event that comes next. */
    heap_counts counts;
    /** How many blocks are live. */
    uint64_t blocks;
    /** Number in the sidecar of the first chunk of its list. */
    uint64_t chunk;
} heap_keyframe;

typedef struct heap_keyframes {
    ttd_reader *sidecar;
    heap_keyframe *items;
    size_t count;
    size_t capacity;
    /** Of the whole trace, if the sidecar says it. */
    bool has_peak;
    heap_peak peak;
} heap_keyframes;

/**
 * Reads which keyframes a sidecar has.
 *
 * @param sidecar    not tolerant; taken over, also on failure
 * @param trace      whose sidecar it must be
 * @param keyframes  set on TTD_OK; release with heap_keyframes_close()
 * @return TTD_OK, TTD_ERROR_CORRUPT (damaged, or of another trace), TTD_ERROR_NO_MEMORY,
 *         TTD_ERROR_IO, and others of a reader.
 */
ttd_status heap_keyframes_open(ttd_reader *sidecar, ttd_reader *trace, heap_keyframes *keyframes);
void heap_keyframes_close(heap_keyframes *keyframes);

/** The last keyframe at `position` or before; NULL if there is none. */
const heap_keyframe *heap_keyframes_before(const heap_keyframes *keyframes, ttd_position position);

/**
 * Makes a replay's state that of a keyframe.
 *
 * @return TTD_OK, TTD_ERROR_CORRUPT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO; after a failure the replay
 *         must be reset.
 */
ttd_status heap_keyframes_restore(const heap_keyframes *keyframes, const heap_keyframe *keyframe,
                                  heap_replay *replay);

/** The key of the metadata record that comes before the list of a keyframe. */
#define HEAP_KEYFRAME_KEY "keyframe"

/** The key of the metadata record that says when most bytes were live. */
#define HEAP_PEAK_KEY "peak"

/** Room for the value of such records. */
#define HEAP_KEYFRAME_TEXT_MAX 512

/** Writes the value: numbers, in decimal. Returns its length. */
size_t heap_keyframe_print(const heap_keyframe *keyframe, char text[HEAP_KEYFRAME_TEXT_MAX]);
size_t heap_peak_print(const heap_peak *peak, char text[HEAP_KEYFRAME_TEXT_MAX]);

#endif
