/* SPDX-License-Identifier: MIT */
/** Pairs of allocation functions: which one may release the blocks of which. */
#ifndef ANALYZER_ANALYSES_ERRORS_API_MATCH_H
#define ANALYZER_ANALYSES_ERRORS_API_MATCH_H

#include <ttdtrace/model.h>

/** Whether the function `release` (enum ttd_api) may release a block that `allocation` returned;
 * true if either function is unknown. */
bool heap_api_matches(uint8_t allocation, uint8_t release);

/** Whether a function is one about a heap of the program's own, whose blocks may lie anywhere. */
bool heap_api_is_custom(uint8_t api);

/** Whether a function takes the size of the block that it releases as an argument. */
bool heap_release_is_sized(uint8_t release);

#endif
