/* SPDX-License-Identifier: MIT */
#include "codec/heap_state/pages.h"

#include "layout.h"

bool ttd_page_size_is_valid(uint64_t size)
{
    return size >= TTD_PAGE_SIZE_MIN && size <= TTD_PAGE_SIZE_MAX && (size & (size - 1)) == 0;
}

void ttd_encode_pages(struct ttd_buffer *buffer, const struct ttd_pages *pages)
{
    ttd_buffer_put32(buffer, pages->page_size);
    ttd_buffer_put32(buffer, 0);
    ttd_buffer_put(buffer, pages->data, (size_t)pages->count * pages->page_size);
}

void ttd_decode_pages(struct ttd_cursor *cursor, struct ttd_pages *pages)
{
    pages->page_size = ttd_cursor_get32(cursor);
    ttd_cursor_reserved32(cursor);
    if (!ttd_page_size_is_valid(pages->page_size))
        ttd_cursor_fail(cursor, "page size");
    if (pages->first_page < TTD_PAGE_FIRST)
        ttd_cursor_fail(cursor, "id of the first page");
    pages->data = cursor->next;
    /* In 64 bits the product of two 32-bit numbers cannot overflow. */
    if (ttd_cursor_left(cursor) != (uint64_t)pages->count * pages->page_size)
        ttd_cursor_fail(cursor, "size of the pages");
    cursor->next = cursor->end;
}
