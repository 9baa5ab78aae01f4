/* SPDX-License-Identifier: MIT */
/* A build without the viewer has this instead of page_compress.c. */
#include "cli/page/page.h"

const struct page_piece page_frame[PAGE_PIECES];

bool page_pack(const void *data, size_t size, size_t goal, struct page_packed *packed)
{
    (void)data;
    (void)size;
    (void)goal;
    (void)packed;
    return false;
}
