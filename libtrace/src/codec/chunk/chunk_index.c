/* SPDX-License-Identifier: MIT */
#include "codec/chunk/chunk_index.h"

void ttd_encode_index_links(struct ttd_buffer *buffer, const struct ttd_index_links *links)
{
    ttd_buffer_put32(buffer, (uint32_t)links->count);
    ttd_buffer_put32(buffer, 0);
    for (size_t i = 0; i < links->count; i++) {
        const struct ttd_index_link *link = &links->links[i];
        ttd_buffer_put64(buffer, link->offset);
        ttd_buffer_put64(buffer, link->first_event);
        ttd_buffer_put64(buffer, link->position.sequence);
        ttd_buffer_put64(buffer, link->position.steps);
    }
}

void ttd_decode_index_links(struct ttd_cursor *cursor, struct ttd_index_links *links,
                            uint32_t entries)
{
    links->count = ttd_cursor_get32(cursor);
    ttd_cursor_reserved32(cursor);
    if (links->count == 0 || links->count > TTD_INDEX_LINKS_MAX || entries == 0 ||
        entries > TTD_INDEX_ENTRIES_MAX) {
        /* No link is read then: there may be no room for so many. */
        links->count = 0;
        ttd_cursor_fail(cursor, "size of an index");
    }
    for (size_t i = 0; i < links->count; i++) {
        struct ttd_index_link *link = &links->links[i];
        link->offset = ttd_cursor_get64(cursor);
        link->first_event = ttd_cursor_get64(cursor);
        link->position.sequence = ttd_cursor_get64(cursor);
        link->position.steps = ttd_cursor_get64(cursor);
        if (!ttd_position_is_valid(link->position))
            ttd_cursor_fail(cursor, "links of an index");
        /* Each link leads farther back than the one before, so that a search ends. */
        if (i > 0 && (link->offset >= links->links[i - 1].offset ||
                      ttd_position_compare(link->position, links->links[i - 1].position) > 0 ||
                      link->first_event > links->links[i - 1].first_event))
            ttd_cursor_fail(cursor, "links of an index");
    }
    if (ttd_cursor_left(cursor) != (size_t)entries * TTD_HEADER_SIZE)
        ttd_cursor_fail(cursor, "size of an index");
}
