/* SPDX-License-Identifier: MIT */
/** The blocks that are live at the end of a trace or of most of it, found without a replay. */
#ifndef ANALYZER_TRAVEL_END_BLOCKS_H
#define ANALYZER_TRAVEL_END_BLOCKS_H

#include "travel/heap_trace.h"

/*
 * The last call about an address decides whether a block is live there. So chunks are netted (see
 * <ttdtrace/advanced.h>) from the last one to the first, and a bit for each 16 bytes of a heap says
 * that an address is decided. Another bit says whether the chunks behind release a block there. A
 * chunk that leaves something else proves an error of the program, or a loss. What no chunk leaves
 * at all was acquired before the trace. A destroyed heap begins anew: nothing before concerns what
 * is behind.
 *
 * A ReAlloc may acquire its block while other threads go on, in a later chunk. Chunks up to there
 * are netted once more at the end, to see whether they leave the address alone until then.
 */

/** The result of a search. */
struct end_blocks {
    /**
     * If not, a replay is necessary: less than half of the events lie before the position; or there
     * are effects behind it, or behind the next call, of calls before; a heap that nobody has
     * destroyed, as the heap of a program that executed another; nested heaps, more than 15,
     * or calls in unknown heaps beside others; losses or damage; or at an address, a chunk with
     * several heaps, or releases and acquisitions that do not alternate.
     */
    bool is_done;
    /** No event is behind the last one that was taken in. */
    bool is_over;
};

/**
 * Makes the blocks live that are live behind the last chunk of events that lies before a position,
 * and sets the counts, the position and the next event of the replay, as if it had replayed all
 * events up to there. All chunks of the trace are read and checked, so that ttd_reader_is_intact()
 * holds.
 *
 * @param replay  at the start of the trace; undefined if it was not done
 * @param trace   its reader is used, and its hook, which sees each chunk
 * @param to      the position
 * @param found   set on TTD_OK
 * @param error   detail on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and what the hook returns.
 */
enum ttd_status heap_end_blocks_find(struct heap_replay *replay, const struct heap_trace *trace,
                                     struct ttd_position to, struct end_blocks *found,
                                     struct ttd_error *error);

#endif
