/* SPDX-License-Identifier: MIT */
/** Decoding blocks of LZ4, where there is no library for it. Apart from port/lz4.h, which a test
 * cannot include beside the library that it compares. */
#ifndef ANALYZER_ENGINE_LZ4_BLOCK_H
#define ANALYZER_ENGINE_LZ4_BLOCK_H

/**
 * Decodes a block (LZ4 Block Format Description, with its rules for the end of a block).
 *
 * @return the decoded size; negative for a block that is malformed, as an offset of 0
 * is, or that decodes to more than `target_size` bytes
 */
int lz4_block_decode(const char *source, char *target, int source_size, int target_size);

#endif
