/* SPDX-License-Identifier: MIT */
/** The live blocks at a position, from several points of view, and those kept by the language
 * runtimes until the end. */
#ifndef ANALYZER_ANALYSES_STATE_STATE_H
#define ANALYZER_ANALYSES_STATE_STATE_H

#include <ttdtrace/reader.h>

#include "base/hash_map.h"
#include "heap/call.h"
#include "heap/groups.h"
#include "heap/heap_live.h"
#include "travel/heap_cursor.h"
#include "travel/islands.h"
#include "travel/replay_to.h"

/* Separating the blocks that the C and C++ runtimes keep until the end from all other blocks. */

/** Completeness of the list of runtime blocks in a trace. */
enum heap_runtime_list {
    /** There is no list. */
    HEAP_RUNTIME_UNKNOWN,
    /** The list is not complete. */
    HEAP_RUNTIME_CUT_SHORT,
    HEAP_RUNTIME_TOLD
};

/** The live blocks at some position that the runtimes keep, grouped by stack. */
struct heap_runtime {
    enum heap_runtime_list list;
    struct heap_groups groups;
};

/** The criteria for blocks of a runtime, and the undecided blocks. */
struct heap_kept {
    /** The addresses of the trace's list of runtime blocks. */
    struct hash_map addresses;
    size_t address_count;
    /** Blocks whose address is listed. Each belongs to a runtime only if it is still live at the
     * end of the trace, because another block may have had the address before. */
    struct heap_block *candidates;
    size_t count;
    size_t capacity;
    struct heap_stack_judge judge;
};

/**
 * Reads the list of runtime blocks of a trace. It comes last in the trace, so the reader goes there
 * from header to header.
 *
 * @param trace    its hook has the judge of stacks
 * @param split    splits the groups of `runtime`
 * @param runtime  set; its groups are empty
 * @param kept     release with heap_kept_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_kept_read(struct heap_kept *kept, const struct heap_trace *trace,
                               enum heap_split split, struct heap_runtime *runtime,
                               struct ttd_error *error);
void heap_kept_free(struct heap_kept *kept);

/** Whether the address of a block is in the list. */
static inline bool heap_kept_names(const struct heap_kept *kept, const struct heap_block *block)
{
    return kept->address_count && map_get(&kept->addresses, block->address, 0) != MAP_NONE;
}

/** Whether a runtime keeps a block because of the stack that allocated it. */
static inline bool heap_kept_has_stack(const struct heap_kept *kept, const struct heap_block *block)
{
    return kept->judge.keeps && kept->judge.keeps(kept->judge.context, block->stack);
}

/** Whether a block may belong to a runtime: certainly by its stack, or, if its address is listed,
 * if it is still live at the end. */
static inline bool heap_kept_may_have(const struct heap_kept *kept, const struct heap_block *block)
{
    return heap_kept_names(kept, block) || heap_kept_has_stack(kept, block);
}

/** Whether no block can belong to a runtime. */
static inline bool heap_kept_is_empty(const struct heap_kept *kept)
{
    return !kept->address_count && !kept->judge.keeps;
}

/** Adds a block for heap_kept_decide(); heap_kept_may_have() is true of it. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_kept_defer(struct heap_kept *kept, const struct heap_block *block);

/** Is called with each deferred block that no runtime keeps. */
typedef enum ttd_status heap_kept_function(void *context, const struct heap_block *block);

/**
 * Decides on all deferred blocks: adds them to `runtime`, or passes them to `add`. If any of their
 * addresses is listed, the cursor goes to the end of the trace. The candidates are then the blocks
 * of `runtime`.
 *
 * @return TTD_OK, the status of `add`, or as heap_cursor_seek().
 */
enum ttd_status heap_kept_decide(struct heap_kept *kept, struct heap_cursor *cursor,
                                 struct heap_runtime *runtime, heap_kept_function *add,
                                 void *context, struct ttd_error *error);

/* The live blocks beside an address. If memory there is corrupt, the program may have written
 * beyond the end of one of them. */

struct heap_neighbour {
    /** 0 if there is none. */
    uint64_t address;
    uint64_t size;
    struct heap_call allocated;
};

/** The nearest block that begins before the address, and the nearest that begins after it; the
 * block that contains the address is neither. */
struct heap_neighbours {
    struct heap_neighbour before;
    struct heap_neighbour after;
};

/** Finds the neighbours of an address; looks at every live block. */
struct heap_neighbours heap_neighbours_find(const struct heap_live *live, uint64_t address);

struct heap_state {
    struct heap_outcome outcome;
    /** Largest first. */
    struct heap_tables tables;
    /** With options.tells_runtime: the blocks of the runtimes; they are not in the tables then. */
    struct heap_runtime runtime;
    /** Those blocks of the tables that are unknown: see heap_gaps_end(). Not sorted. */
    struct heap_groups unknown;
    /** With options.keeps_blocks: copies of all live blocks, sorted by address. */
    struct heap_block *blocks;
    size_t block_count;
    /** With options.has_address: the neighbours of the address. */
    struct heap_neighbours neighbours;
};

struct heap_state_options {
    struct ttd_position at;
    /** Splits the groups of tables.by[HEAP_BY_STACK], in addition to the stack. */
    enum heap_split split;
    /** For HEAP_SPLIT_CLASS; else NULL. */
    const struct heap_block_classes *classes;
    /** Groups the other tables by stack as well, so that a caller can leave out stacks before it
     * joins their groups. Slower, since there are more groups. */
    bool has_stacks_in_tables;
    /** Only blocks that were allocated in islands that these want; NULL for all. */
    const struct heap_islands *islands;
    /** Sets heap_state.runtime. */
    bool tells_runtime;
    /** Counts the blocks of heaps that have a parent as nested in the groups of the tables. Slower
     * with an index: its summaries do not serve. */
    bool counts_nested;
    /** Sets heap_state.blocks. */
    bool keeps_blocks;
    /** Sets heap_state.neighbours to the neighbours of `address`. */
    bool has_address;
    uint64_t address;
    /** Compares with the trace those blocks that come from an index and that the caller shows one
     * by one: heap_state.blocks, the block that contains the address, and its neighbours. */
    bool confirms_blocks;
};

/**
 * @param state  set on TTD_OK; release with heap_state_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_state_find(const struct heap_trace *trace,
                                const struct heap_state_options *options, struct heap_state *state,
                                struct ttd_error *error);
void heap_state_free(struct heap_state *state);

/* Comparing the blocks that an index lists with the events that acquired them. */

/**
 * Compares each block with the event that it names as its acquisition: address, size, position,
 * stack, thread, heap and function must agree. Decodes only the chunks of these events. The
 * comparison cannot show that a block was not released later, nor that no block is missing: only a
 * replay can.
 *
 * @param reader  of the trace; its position is undefined afterwards
 * @param error   detail on failure
 * @return TTD_OK if all agree, TTD_ERROR_CORRUPT if one does not, TTD_ERROR_NO_MEMORY,
 *         TTD_ERROR_IO.
 */
enum ttd_status heap_confirm_blocks(struct ttd_reader *reader, const struct heap_block *blocks,
                                    size_t count, struct ttd_error *error);

/**
 * Compares one block in the same way, and completes it by the fields that an index lacks.
 *
 * @param block             its action is set on TTD_OK
 * @param previous_address  set on TTD_OK: the address that the block was reallocated from, or 0
 * @param move              set on TTD_OK: how it was moved, if that is another address
 * @return as heap_confirm_blocks().
 */
enum ttd_status heap_confirm_and_complete(struct ttd_reader *reader, struct heap_block *block,
                                          uint64_t *previous_address, enum heap_move *move,
                                          struct ttd_error *error);

#endif
