/* SPDX-License-Identifier: MIT */
/** The part of LZ4's interface that reading a trace takes, for a system that has no LZ4: decoding a
 * block. Nothing is compressed there. */
#ifndef ANALYZER_ENGINE_PORT_LZ4_H
#define ANALYZER_ENGINE_PORT_LZ4_H

#include "engine/lz4_block.h"

static inline int LZ4_decompress_safe(const char *source, char *target, int source_size,
                                      int target_size)
{
    return lz4_block_decode(source, target, source_size, target_size);
}

static inline int LZ4_compressBound(int size)
{
    (void)size;
    return 0;
}

static inline int LZ4_compress_default(const char *source, char *target, int source_size,
                                       int target_size)
{
    (void)source;
    (void)target;
    (void)source_size;
    (void)target_size;
    return 0;
}

#endif
