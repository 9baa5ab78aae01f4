/* SPDX-License-Identifier: MIT */
/**
 * Stacks that are the same although their identifiers differ: a module that is loaded, unloaded and
 * loaded again is another module in a trace, and has stacks of its own. Frames are the same if
 * their offsets are and their modules have the same build-id; or, without one, the same path and
 * size, and the frames the same names.
 */
#ifndef ANALYZER_SYMBOLS_SAME_STACKS_H
#define ANALYZER_SYMBOLS_SAME_STACKS_H

#include "symbols/trace_definitions.h"
#include "symbols/memo.h"

/** All zero at first. */
struct same_stacks {
    /** By identifier: the first module that is like each; empty if no two are alike. */
    struct hash_map first_modules;
    /** By the first stack like a stack's caller, and by module and offset in turn. */
    struct hash_map stacks;
    struct hash_map sites;
    uint32_t site_count;
    struct stack_memo memo;
    struct definitions *definitions;
    bool has_compared;
    bool has_any;
};

void same_stacks_free(struct same_stacks *same);

/**
 * Tells whether any two modules are alike: else no two stacks are.
 *
 * @param definitions  always the same, and complete
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status same_stacks_are_there(struct same_stacks *same, struct definitions *definitions,
                                      bool *are_there);

/**
 * Finds the stack that stands for all that are the same; the stack itself if it is not defined.
 * To be called after same_stacks_are_there(), if any are.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status same_stacks_find(struct same_stacks *same, ttd_id stack, ttd_id *first);

#endif
