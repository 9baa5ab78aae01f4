/* SPDX-License-Identifier: MIT */
#include "contents/cursor.h"

const char *contents_state_name(enum contents_state state)
{
    static const char *const names[] = {"unknown", "unreadable", "damaged", "zero", "bytes"};
    return names[state];
}

struct contents_cursor contents_cursor_begin(const struct contents_extents *extents,
                                             struct contents_pages *pages, uint64_t first,
                                             uint64_t last)
{
    struct contents_cursor cursor = {
        .extents = extents, .pages = pages, .next = first, .last = last};
    while (cursor.extent < extents->count && extents->extents[cursor.extent].last < first)
        cursor.extent++;
    return cursor;
}

/* The bytes of the page that the next address lies in, and where they end. */
static enum ttd_status take_page(struct contents_cursor *cursor,
                                 const struct contents_extent *extent, struct contents_part *part,
                                 struct ttd_error *error)
{
    uint64_t offset = part->first - extent->begin;
    uint64_t number = offset / extent->page_size;
    uint64_t begin = offset % extent->page_size;
    uint64_t reach = extent->page_size - 1 - begin;
    const uint8_t *data;
    if (part->last - part->first > reach)
        part->last = part->first + reach;
    enum ttd_status status =
        contents_pages_get(cursor->pages, extent->page + number, extent->page_size, &data, error);
    part->state = data ? CONTENTS_BYTES : CONTENTS_DAMAGED;
    part->data = data ? data + begin : NULL;
    return status;
}

static enum ttd_status take_extent(struct contents_cursor *cursor,
                                   const struct contents_extent *extent, struct contents_part *part,
                                   struct ttd_error *error)
{
    part->snapshot = extent->snapshot;
    if (part->last > extent->last)
        part->last = extent->last;
    if (extent->page >= TTD_PAGE_FIRST)
        return take_page(cursor, extent, part, error);
    part->state = extent->page == TTD_PAGE_ZERO ? CONTENTS_ZERO : CONTENTS_UNREADABLE;
    return TTD_OK;
}

enum ttd_status contents_cursor_next(struct contents_cursor *cursor, struct contents_part *part,
                                     struct ttd_error *error)
{
    const struct contents_extents *extents = cursor->extents;
    enum ttd_status status = TTD_OK;
    if (cursor->is_over)
        return TTD_END;
    *part = (struct contents_part){CONTENTS_UNKNOWN, cursor->next, cursor->last, 0, NULL};
    while (cursor->extent < extents->count && extents->extents[cursor->extent].last < cursor->next)
        cursor->extent++;
    const struct contents_extent *extent =
        cursor->extent < extents->count ? &extents->extents[cursor->extent] : NULL;
    if (extent && extent->first <= part->first)
        status = take_extent(cursor, extent, part, error);
    else if (extent && extent->first <= part->last)
        part->last = extent->first - 1;
    cursor->is_over = part->last == cursor->last;
    cursor->next = part->last + 1;
    return status;
}
