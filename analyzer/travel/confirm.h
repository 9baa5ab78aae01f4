/* SPDX-License-Identifier: MIT */
/** Comparing the blocks that an index lists with the events that acquired them. */
#ifndef ANALYZER_TRAVEL_CONFIRM_H
#define ANALYZER_TRAVEL_CONFIRM_H

#include <ttdtrace/reader.h>

#include "heap/call.h"
#include "heap/heap_live.h"

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
 * Compares one block in the same way, and completes it by what an index does not record.
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
