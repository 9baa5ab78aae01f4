/* SPDX-License-Identifier: MIT */
/** Compression of the data of a page. */
#ifndef ANALYZER_CLI_PAGE_PAGE_COMPRESS_H
#define ANALYZER_CLI_PAGE_PAGE_COMPRESS_H

#include <stddef.h>

/** Compresses as raw deflate. Sets `packed` to memory for free(); returns its size, or 0 without
 * memory. */
size_t page_compress(const void *data, size_t size, unsigned char **packed);

#endif
