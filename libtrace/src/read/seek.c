/* SPDX-License-Identifier: MIT */
#include "read/internal.h"

typedef struct ttd_target {
    bool by_position;
    ttd_position position;
    uint64_t event;
} ttd_target;

/** Whether the chunk of events has the target, or lies behind it. */
static bool reaches(const ttd_header *header, const ttd_target *target)
{
    if (target->by_position)
        return ttd_position_compare(header->last_position, target->position) >= 0;
    return header->first_item + header->item_count > target->event;
}

/** Hops from header to header. */
static ttd_status hop(ttd_reader *reader, const ttd_target *target, ttd_error *error)
{
    for (;;) {
        ttd_header header;
        ttd_status status = ttd_reader_find(reader, &header, error);
        if (status == TTD_END || status == TTD_ERROR_TRUNCATED)
            return TTD_OK;
        if (status != TTD_OK)
            return status;
        if (header.kind == TTD_KIND_EVENTS && reaches(&header, target))
            return TTD_OK;
        ttd_reader_pass(reader, &header, true);
    }
}

ttd_status ttd_reader_seek(ttd_reader *reader, ttd_position position, ttd_error *error)
{
    ttd_target target = {.by_position = true, .position = position};
    ttd_reader_rewind(reader, reader->options.kinds);
    return hop(reader, &target, error);
}

ttd_status ttd_reader_seek_event(ttd_reader *reader, uint64_t number, ttd_error *error)
{
    ttd_target target = {.event = number};
    ttd_reader_rewind(reader, reader->options.kinds);
    return hop(reader, &target, error);
}
