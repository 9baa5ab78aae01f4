/* SPDX-License-Identifier: MIT */
/** Pairs of functions: whether one may release the blocks that another allocates. */
#ifndef ANALYZER_ANALYSES_ERRORS_API_MATCH_H
#define ANALYZER_ANALYSES_ERRORS_API_MATCH_H

#include <ttdtrace/model.h>

/** Whether `release` may be given a block of `allocation`; true if either is not known. */
bool heap_api_matches(uint8_t allocation, uint8_t release);

/** Whether the function tells the size of the block that it releases. */
bool heap_release_is_sized(uint8_t release);

#endif
