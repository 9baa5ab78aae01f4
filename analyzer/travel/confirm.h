/* SPDX-License-Identifier: MIT */
/** Comparing blocks that an index lists with the events of the trace that acquired them. */
#ifndef ANALYZER_TRAVEL_CONFIRM_H
#define ANALYZER_TRAVEL_CONFIRM_H

#include <ttdtrace/reader.h>

#include "heap/live.h"

/**
 * Compares each block with the event that it names: whether that acquired it, with that address,
 * size, position, stack, thread, heap and function. Decodes only the chunks of these events. That a
 * block was not released meanwhile, and that none is missing, takes a replay to find.
 *
 * @param reader  of the trace; goes anywhere
 * @param error   detail on failure
 * @return TTD_OK if all agree, TTD_ERROR_CORRUPT if one does not, TTD_ERROR_NO_MEMORY,
 *         TTD_ERROR_IO.
 */
enum ttd_status heap_confirm_blocks(struct ttd_reader *reader, const struct heap_block *blocks,
                                    size_t count, struct ttd_error *error);

#endif
