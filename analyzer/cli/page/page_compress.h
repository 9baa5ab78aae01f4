/* SPDX-License-Identifier: MIT */
/** Packing data for a page: compressing them, and writing them as text. */
#ifndef ANALYZER_CLI_PAGE_PAGE_COMPRESS_H
#define ANALYZER_CLI_PAGE_PAGE_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/writers/out.h"

/** Data compressed as raw deflate. */
struct page_packed {
    /** Release with free(). */
    unsigned char *data;
    size_t size;
};

/** Compresses data. Returns false without memory. */
bool page_pack(const void *data, size_t size, struct page_packed *packed);

/** Whether browsers take so much packed data in one element. */
bool page_fits(size_t size);

/**
 * Writes packed data as text: their size, a space, and digits of 91 characters, none of which means
 * anything to HTML. Two digits stand for 13 bits, lowest first, which takes 8 % less room than
 * base64.
 */
void page_write_packed(struct text_output *output, const struct page_packed *packed);

#endif
