/* SPDX-License-Identifier: MIT */
/**
 * Keyframes: states of the heap in a sidecar index, where a replay can start (spec, "Derived
 * files"). An index saves time and is no evidence. It must belong to its trace, be intact, and fit
 * the events behind each keyframe; otherwise the replay does without it. A block that it lists can
 * be compared with the trace (heap_confirm_blocks()). That it lists all live blocks, and only
 * these, could be checked only by the replay that it saves, so an answer that rests on an index is
 * never certain.
 */
#ifndef ANALYZER_TRAVEL_KEYFRAMES_H
#define ANALYZER_TRAVEL_KEYFRAMES_H

#include <ttdtrace/reader.h>
#include <ttdtrace/writer.h>

#include "heap/replay.h"
#include "heap/groups.h"

/* Keyframes, summaries and sums, and the records of an index that hold them (spec, "States"). */

/**
 * A stored state of the heap, where a replay can start. It stands between two events: every effect
 * at `position` or before has been applied, and no call is in flight. There are two forms. A
 * keyframe lists all live blocks. A *summary* serves positions before `end` only: it lists the live
 * blocks that are released before `end`, and has sums over all others, so it is much faster to
 * read.
 */
struct heap_keyframe {
    struct ttd_position position;
    /** Counts of the events replayed up to here, and the number of the next event. */
    struct heap_counts counts;
    uint64_t next;
    /** Number of blocks listed. */
    uint64_t blocks;
    bool is_summary;
    /** If it is a summary: the number of its sums, and the first position that it does not serve.
     */
    uint64_t sums;
    struct ttd_position end;
    /** Number, in the sidecar, of the first chunk of its sums; without sums, of its list. */
    uint64_t chunk;
};

/** Converts between a keyframe and its record in the index. The record has no `chunk`. */
struct ttd_state heap_state_of_keyframe(const struct heap_keyframe *keyframe);
struct heap_keyframe heap_keyframe_of_state(const struct ttd_state *state);

/** Converts between the peak and its record in the index. */
struct ttd_state heap_state_of_peak(const struct heap_peak *peak);
struct heap_peak heap_peak_of_state(const struct ttd_state *state);

/** Returns the record of a group of heap_tables.by[table]. */
struct ttd_sum heap_sum_of_group(size_t table, const struct heap_group *group);

/** Sets `group` to the group of heap_tables.by[sum->table] that a record describes. Returns false
 * if no group can have these values. */
bool heap_group_of_sum(const struct ttd_sum *sum, struct heap_group *group);

/* Stamps of files: two equal stamps show that a file was not written to between them. */

#define STAMP_SIZE 160

/** A stamp: the identity of a file, its size, and the time of its last change; empty if unknown. A
 * copy of the file cannot be given the same stamp. */
struct stamp {
    char text[STAMP_SIZE];
};

struct stamp stamp_of(const char *path);

/** Whether both are known and equal: the file was not changed between them. */
bool stamp_is_same(const struct stamp *before, const struct stamp *after);

/** Key of the sidecar's metadata that identifies the file of its trace, and room for its value. */
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
    /** Identity of the trace's file, from HEAP_SOURCE_KEY; empty if there is none or it is too
     * long. */
    char source[HEAP_SOURCE_SIZE];
};

/** Whether a sidecar names this very trace as the one that it was derived from. */
bool heap_index_belongs_to(struct ttd_reader *sidecar, struct ttd_reader *trace);

/**
 * Reads the headers of all keyframes and summaries of a sidecar; their blocks are read when a
 * replay starts from them.
 *
 * @param sidecar    not tolerant; ownership passes to `keyframes`, also on failure
 * @param trace      the trace that the sidecar must belong to
 * @param keyframes  set on TTD_OK; release with heap_keyframes_close()
 * @return TTD_OK, TTD_ERROR_CORRUPT (damaged, or of another trace), TTD_ERROR_NO_MEMORY,
 *         TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_keyframes_open(struct ttd_reader *sidecar, struct ttd_reader *trace,
                                    struct heap_keyframes *keyframes);
void heap_keyframes_close(struct heap_keyframes *keyframes);

/** Returns the last keyframe at `position` or before, or, with `takes_summaries`, the last keyframe
 * or the summary that serves the position, whichever is nearer; NULL if there is none. */
const struct heap_keyframe *heap_keyframes_before(const struct heap_keyframes *keyframes,
                                                  struct ttd_position position,
                                                  bool takes_summaries);

/**
 * Sets a replay to the state of a keyframe. From a summary, only the blocks that it lists become
 * live in the replay.
 *
 * @param sums  the sums of a summary are added to it; may be NULL with a keyframe
 * @return TTD_OK, TTD_ERROR_CORRUPT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO; after a failure the replay
 *         must be reset.
 */
enum ttd_status heap_keyframes_restore(const struct heap_keyframes *keyframes,
                                       const struct heap_keyframe *keyframe,
                                       struct heap_replay *replay, struct heap_tables *sums);

#endif
