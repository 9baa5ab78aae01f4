/* SPDX-License-Identifier: MIT */
/**
 * Blocks that a reallocation was moving when a snapshot was taken. At its position they are not
 * live: the old block has ended, and the new one comes later. But the memory of one or both of them
 * has the block's words, so they are nodes of the graph nevertheless. Private to reach/.
 */
#ifndef ANALYZER_REACH_IN_FLIGHT_H
#define ANALYZER_REACH_IN_FLIGHT_H

#include "heap/replay.h"
#include "reach/builder.h"

/** The offset in its source of an edge that is no word: the target takes the source's place. */
#define REACH_CONTINUES (UINT64_MAX - 1)

/**
 * Finds the blocks in flight, and makes them live until reach_in_flight_end(). A block that
 * overlaps a live one is left out: its memory belongs to the other. So the old block is, when it
 * was released within the call, and the new one, before the allocator had its memory.
 *
 * @param reach   its member in_flight is set, and the snapshot is marked as incomplete where the
 *                words of a block are in no node
 * @param replay  at the position of the snapshot
 * @return TTD_OK, TTD_ERROR_NO_MEMORY; reach_in_flight_end() also on failure.
 */
enum ttd_status reach_in_flight_begin(struct heap_reach *reach, struct heap_replay *replay);
void reach_in_flight_end(struct heap_reach *reach, struct heap_live *live);

/** Adds the holders of the blocks in flight: an edge from the old one to the new one, and a root,
 * the registers of the thread whose call it is. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_in_flight_apply(struct reach_builder *builder);

#endif
