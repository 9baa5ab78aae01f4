/* SPDX-License-Identifier: MIT */
/* Internals of the levels, private to levels.c and held.c. */
#ifndef RECORDER_PRELOAD_THREADS_LEVELS_PARTS_H
#define RECORDER_PRELOAD_THREADS_LEVELS_PARTS_H

#include "preload/threads/levels.h"

/* Notes that the calls from `pc` serve the call around them. */
void level_learn(uintptr_t pc);

/* Counts a call that could not be recorded, at level 0. */
void level_count_lost(const struct thread *level);

/*
 * Whether the level can record. If a call around it is being recorded, it will not wait for a
 * chunk: that call could not go on meanwhile.
 */
bool level_is_ready(struct thread *level);

/* Claims a level that no hook runs at, so that signal handlers use the next one; the caller sets
 * its guard to 0 afterwards. False if a hook runs at it. */
bool level_take(struct thread *level, uintptr_t frame);

/* Appends the record of an acquisition, or both of a reallocation's. */
void level_record(struct thread *level, unsigned operation, const struct unwind_delta *stack,
                  const uint64_t *operands, unsigned count);

/* Records the acquisition that `outer` holds, if any: it does not serve the call at `outer`. */
void level_record_held(struct thread *outer);

/* Drops the acquisition that the level holds. */
void level_forget_held(struct thread *level);

/* Forgets the early acquisitions of the level's call, which is over. */
void level_forget_early(struct thread *level);

#endif
