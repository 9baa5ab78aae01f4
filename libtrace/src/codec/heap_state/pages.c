/* SPDX-License-Identifier: MIT */
#include "codec/heap_state/pages.h"

#include "layout.h"

bool ttd_page_size_is_valid(uint64_t size)
{
    return size >= TTD_PAGE_SIZE_MIN && size <= TTD_PAGE_SIZE_MAX && (size & (size - 1)) == 0;
}

void ttd_encode_pages(struct ttd_buffer *out, const struct ttd_pages *pages)
{
    ttd_buffer_put32(out, pages->page_size);
    ttd_buffer_put32(out, 0);
    ttd_buffer_put(out, pages->data, (size_t)pages->count * pages->page_size);
}

void ttd_decode_pages(struct ttd_cursor *in, struct ttd_pages *pages)
{
    pages->page_size = ttd_cursor_get32(in);
    ttd_cursor_reserved32(in);
    if (!ttd_page_size_is_valid(pages->page_size))
        ttd_cursor_fail(in, "page size");
    if (pages->first_page < TTD_PAGE_FIRST)
        ttd_cursor_fail(in, "id of the first page");
    pages->data = in->at;
    /* In 64 bits the product of two 32-bit numbers cannot overflow. */
    if (ttd_cursor_left(in) != (uint64_t)pages->count * pages->page_size)
        ttd_cursor_fail(in, "size of the pages");
    in->at = in->end;
}
