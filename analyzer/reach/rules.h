/* SPDX-License-Identifier: MIT */
/**
 * Which pointers into a block own it. A pointer to the start always does. One behind the start does
 *
 * - in a block from operator new[], 8 or 16 bytes behind: there the first element is, after the
 *   number of elements; also if there is no element, so that it points behind the block;
 * - at a second table of virtual functions, in a block that begins with one: a base class;
 * - at an offset at which blocks of the allocating function are usually pointed at: there the data
 *   are, after a header. See usual_offsets.h.
 *
 * Private to reach/.
 */
#ifndef ANALYZER_REACH_RULES_H
#define ANALYZER_REACH_RULES_H

#include "reach/builder.h"

/** Flags edges and roots to which no rule applies as GRAPH_INTERIOR. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_rules_apply(const struct reach_builder *builder,
                                  const struct heap_reach_options *options,
                                  const struct heap_stack_callers *callers);

#endif
