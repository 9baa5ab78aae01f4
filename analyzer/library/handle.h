/* SPDX-License-Identifier: MIT */
/** A handle of the library, the memory of its answers, and their certainty. Internal to library/
 * and engine/. */
#ifndef ANALYZER_LIBRARY_HANDLE_H
#define ANALYZER_LIBRARY_HANDLE_H

#include <ttdtrace/ttdheap.h>

#include "analyses/state/state.h"
#include "base/grow.h"
#include "travel/certainty.h"
#include "travel/replay_to.h"

struct handle_names;

struct ttdheap {
    /** A copy, for texts of failures. */
    char *path;
    struct ttd_reader *reader;
    /** The input of the trace, and its size when it was opened, of which the reader reads no more:
     * all answers are about the same part of a growing trace. `size_error` is an errno value if the
     * size is unknown. */
    struct ttd_input input;
    uint64_t size;
    int size_error;
    struct ttdheap_options options;
    struct heap_choice choice;
    /** Whether there is an End chunk, and its content. */
    bool is_closed;
    struct ttd_end end;
    /** The index, if `has_keyframes`. */
    struct heap_keyframes keyframes;
    bool has_keyframes;
    /** Whether the file was not written to since it was opened: else its parts may have been read
     * in different states. NULL for an input that is no file. */
    bool (*is_unchanged)(const struct ttdheap *heap);
    /** The stamp of the file when it was opened. */
    struct stamp opened;
    /** Damage was met; the trace ends within a chunk; reading stopped before its end. */
    bool is_damaged;
    bool is_truncated;
    bool is_given_up;
    /** The whole trace was checked: it is intact; and it was recovered, and parts are missing. */
    bool is_judged;
    bool is_intact;
    bool is_patched;
    /** As in struct position_found, of a position that was found in percent last; and the position.
     */
    uint64_t part_of;
    struct ttd_position part_position;
    struct ttd_position at;
    /** The heap at `at`, if it was asked for: split so, and with copies of its blocks or without.
     */
    bool has_state;
    struct heap_state state;
    enum heap_split split;
    bool has_blocks;
    /** NULL until names are needed; released by `free_names`. */
    struct handle_names *names;
    void (*free_names)(struct handle_names *names);
};

/**
 * Makes a handle without its trace.
 *
 * @param name     for texts of failures; copied
 * @param options  copied; its pointers are not used
 * @param result   set on TTD_OK; release with ttdheap_close()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status handle_make(const char *name, const struct ttdheap_options *options,
                            struct ttdheap **result);

/** Opens the trace of a handle. The input is closed by the handle, also on failure. @return as
 * ttd_reader_open(). */
enum ttd_status handle_open(struct ttdheap *heap, const struct ttd_input *input,
                            const struct ttd_allocator *allocator, struct ttd_error *error);

/** Returns the trace for a query, without an index. Its hook notes damage, calls the caller's
 * function and passes on its wish to cancel. */
struct heap_trace handle_trace(struct ttdheap *heap);

/** Returns the same with the index, if there is one and the position is neither the start nor the
 * end. */
struct heap_trace handle_trace_to(struct ttdheap *heap, struct ttd_position position);

/** Describes a failure, and returns its status. `why` may be NULL. */
enum ttd_status handle_fail(const struct ttdheap *heap, struct ttdheap_error *error,
                            enum ttd_status status, const struct ttd_error *why);

/** Describes a failure by a static text, and returns its status. */
enum ttd_status handle_fail_with(const struct ttdheap *heap, struct ttdheap_error *error,
                                 enum ttd_status status, const char *what);

/** Drops the state that was kept of the last position. */
void handle_forget_state(struct ttdheap *heap);

/** Gives up an index that contradicts the trace. */
void handle_refute_index(struct ttdheap *heap);

/** Judges the certainty of an answer from the outcome of a query for a position; reads the trace
 * unless a query has read all of it. @return TTD_OK, TTD_ERROR_CANCELLED, TTD_ERROR_NO_MEMORY, and
 * others of a reader. */
enum ttd_status handle_judge(struct ttdheap *heap, const struct heap_outcome *outcome,
                             struct ttd_position position, struct certainty *certainty);

/** Judges the certainty of names and stacks: adds the reason why some may be missing, if there is
 * one. Names were read. @return TTD_OK, TTD_ERROR_NO_MEMORY, and others of a reader. */
enum ttd_status handle_judge_names(struct ttdheap *heap, struct certainty *certainty);

/** Whether the last judgement found the trace intact and unchanged: a finding of its own is then as
 * certain as it says. */
bool handle_is_sound(const struct ttdheap *heap);

/** Returns a block as answers have it. It is unknown if it was allocated before `unknown_before`.
 */
struct ttdheap_block handle_block(const struct heap_block *block,
                                  struct ttd_position unknown_before);

/** Sets an answer; its memory gets the array `items` as well, which may be NULL. On failure both
 * are released. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status handle_answer(struct ttdheap_answer *answer, const struct certainty *certainty,
                              struct ttd_position position, void *items);

/** A search for calls in a range of positions. */
struct call_list {
    struct ttdheap_range range;
    /** To be freed by the caller. */
    struct ttd_event *items;
    size_t count;
    size_t capacity;
    /** Raw arguments of the calls in order; to be freed by the caller. The calls do not point at
     * them. */
    uint64_t *parameters;
    size_t parameter_count;
    size_t parameter_capacity;
    /** Number of the first call that is wanted and was not listed; UINT64_MAX if there is none: set
     * to that before. */
    uint64_t next;
    struct heap_losses losses;
};

/** Lists calls; losses are not read. @return as ttd_reader_next(), without its ends, and
 * TTD_ERROR_CANCELLED. */
enum ttd_status handle_read_calls(struct ttdheap *heap, struct call_list *list,
                                  struct ttd_error *error);

#endif
