/* SPDX-License-Identifier: MIT */
/** Telling what the C and C++ runtimes keep until the end from all other blocks. */
#ifndef ANALYZER_ANALYSES_STATE_KEPT_H
#define ANALYZER_ANALYSES_STATE_KEPT_H

#include "base/map.h"
#include "heap/groups.h"
#include "travel/cursor.h"

/** Completeness of a trace's list of the blocks that the runtimes keep. */
enum heap_runtime_list {
    HEAP_RUNTIME_UNKNOWN,
    /** The list is not complete. */
    HEAP_RUNTIME_CUT_SHORT,
    HEAP_RUNTIME_TOLD
};

/** Blocks that the runtimes keep until the end, by stack, of those live at some position. */
struct heap_runtime {
    enum heap_runtime_list list;
    struct heap_groups groups;
};

/** The addresses that a trace names, and blocks there of which it is open whether they stay; and
 * the judge of stacks whose blocks all stay. */
struct heap_kept {
    struct hash_map addresses;
    size_t address_count;
    struct heap_block *candidates;
    size_t count;
    size_t capacity;
    struct heap_stack_judge judge;
};

/**
 * Reads the lists of a trace, which come last in it, from header to header.
 *
 * @param trace    whose hook's judge is asked
 * @param split    of the groups of `runtime`
 * @param runtime  set; its groups are empty
 * @param kept     release with heap_kept_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_kept_read(struct heap_kept *kept, const struct heap_trace *trace,
                               enum heap_split split, struct heap_runtime *runtime,
                               struct ttd_error *error);
void heap_kept_free(struct heap_kept *kept);

/** Whether the address of a block is named. */
static inline bool heap_kept_names(const struct heap_kept *kept, const struct heap_block *block)
{
    return kept->address_count && map_get(&kept->addresses, block->address, 0) != MAP_NONE;
}

/** Whether a runtime keeps a block, by the stack that allocated it. */
static inline bool heap_kept_has_stack(const struct heap_kept *kept, const struct heap_block *block)
{
    return kept->judge.keeps && kept->judge.keeps(kept->judge.context, block->stack);
}

/** Whether a runtime keeps a block, if one that is named is still at its address at the end. */
static inline bool heap_kept_may_have(const struct heap_kept *kept, const struct heap_block *block)
{
    return heap_kept_names(kept, block) || heap_kept_has_stack(kept, block);
}

/** Whether there is anything to be told apart. */
static inline bool heap_kept_is_empty(const struct heap_kept *kept)
{
    return !kept->address_count && !kept->judge.keeps;
}

/** Takes a block that heap_kept_may_have(). @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_kept_defer(struct heap_kept *kept, const struct heap_block *block);

/** Takes what no runtime keeps. */
typedef enum ttd_status heap_kept_function(void *context, const struct heap_block *block);

/**
 * Decides on all blocks that were deferred; for that the cursor goes to the end, if any are named.
 *
 * @return TTD_OK, what `add` returns, and as heap_cursor_seek().
 */
enum ttd_status heap_kept_decide(struct heap_kept *kept, struct heap_cursor *cursor,
                                 struct heap_runtime *runtime, heap_kept_function *add,
                                 void *context, struct ttd_error *error);

#endif
