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

/** Compresses data: quickly if they have at most `goal` bytes then, else better, which takes much
 * longer. Returns false without memory. */
bool page_pack(const void *data, size_t size, size_t goal, struct page_packed *packed);

/** Returns how many bytes of packed data take at most so many of text. */
size_t page_packed_size(size_t text_size);

/** Whether browsers take so much packed data in one element. */
bool page_fits(size_t size);

/**
 * Writes packed data as text: their size, a space, and digits of 91 characters, none of which means
 * anything to HTML. Two digits stand for 13 bits, lowest first, which takes 8 % less room than
 * base64.
 */
void page_write_packed(struct text_output *output, const struct page_packed *packed);

#endif
