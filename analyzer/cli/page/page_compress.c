/* SPDX-License-Identifier: MIT */
#include "cli/page/page_compress.h"

#include <libdeflate.h>
#include <stdlib.h>

/* From 1 to 12; from 7 on the page is hardly smaller. */
#define LEVEL 6

size_t page_compress(const void *data, size_t size, unsigned char **packed)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(LEVEL);
    if (!compressor)
        return 0;
    size_t bound = libdeflate_deflate_compress_bound(compressor, size);
    *packed = malloc(bound);
    size_t result =
        *packed ? libdeflate_deflate_compress(compressor, data, size, *packed, bound) : 0;
    libdeflate_free_compressor(compressor);
    if (!result)
        free(*packed);
    return result;
}
