/* SPDX-License-Identifier: MIT */
/* spec, "Seeking". */
#include "read/read_internal.h"

#include <string.h>

/** Target of a seek: an event number, or a lower bound on the position. */
struct seek_target {
    bool by_position;
    struct ttd_position position;
    uint64_t event;
};

/** Whether the chunk of events has the target, or lies behind it. */
static bool seek_reaches(const struct ttd_header *header, const struct seek_target *target)
{
    if (target->by_position)
        return ttd_position_compare(header->last_position, target->position) >= 0;
    return header->first_record + header->record_count > target->event;
}

/** Whether an index chunk's part begins before the target, so that earlier ones lack it. */
static bool seek_begins_before(const struct ttd_index_link *link, const struct seek_target *target)
{
    if (target->by_position)
        return ttd_position_compare(link->position, target->position) < 0;
    return link->first_event <= target->event;
}

/** Hops from header to header, from where the reader is, to the target or the End chunk. */
static enum ttd_status seek_hop(struct ttd_reader *reader, const struct seek_target *target,
                                struct ttd_error *error)
{
    for (;;) {
        struct ttd_header header;
        enum ttd_status status = ttd_reader_find(reader, 0, &header, error);
        if (status == TTD_END || status == TTD_ERROR_TRUNCATED)
            return TTD_OK;
        if (status != TTD_OK)
            return status;
        if (header.kind == TTD_KIND_END ||
            (header.kind == TTD_KIND_EVENTS && seek_reaches(&header, target)))
            return TTD_OK;
        if (header.kind == TTD_KIND_EVENTS)
            reader->gap.pending = false;
        ttd_reader_pass(reader, &header, true);
    }
}

/** Reads the index chunk at `offset`; its entries are left in `entries`. */
static enum ttd_status read_index(struct ttd_reader *reader, uint64_t offset,
                                  struct ttd_index_links *links, struct ttd_cursor *entries)
{
    struct ttd_header header;
    enum ttd_status status = ttd_source_header(&reader->source, offset, &header, NULL);
    if (status == TTD_OK && header.kind != TTD_KIND_INDEX)
        status = TTD_ERROR_CORRUPT;
    if (status == TTD_OK)
        status = ttd_source_payload(&reader->source, &header, entries, NULL);
    if (status != TTD_OK)
        return status;
    ttd_decode_index_links(entries, links, header.record_count);
    if (entries->error || links->links[0].offset != offset)
        return TTD_ERROR_CORRUPT;
    return TTD_OK;
}

/** The link to follow from an index that begins at or behind the target; NULL if it is the first.
 */
static const struct ttd_index_link *seek_choose_link(const struct ttd_index_links *links,
                                                     const struct seek_target *target)
{
    size_t i = links->count - 1;
    while (i > 1 && seek_begins_before(&links->links[i], target))
        i--;
    return i > 0 ? &links->links[i] : NULL;
}

/** Finds the index chunk that covers the target, if any does. */
static enum ttd_status seek_find_index(struct ttd_reader *reader, uint64_t offset,
                                       const struct seek_target *target,
                                       struct ttd_index_links *links, struct ttd_cursor *entries)
{
    for (;;) {
        enum ttd_status status = read_index(reader, offset, links, entries);
        if (status != TTD_OK || seek_begins_before(&links->links[0], target))
            return status;
        const struct ttd_index_link *link = seek_choose_link(links, target);
        if (!link)
            return TTD_OK;
        if (link->offset >= offset)
            return TTD_ERROR_CORRUPT;
        offset = link->offset;
    }
}

/** Whether all events before the chunk are before the target. */
static bool seek_is_behind_start(const struct ttd_header *header, const struct seek_target *target)
{
    if (target->by_position)
        return ttd_position_compare(header->first_position, target->position) < 0;
    return header->first_record <= target->event;
}

/** Decodes an entry, and compares it with the chunk that it describes. */
static enum ttd_status seek_check_entry(struct ttd_reader *reader, const uint8_t *entry,
                                        struct ttd_header *header)
{
    uint8_t bytes[TTD_HEADER_SIZE];
    const char *what;
    enum ttd_status status = ttd_header_decode(entry, header, &what);
    if (status == TTD_OK)
        status = ttd_source_read(&reader->source, header->offset, bytes, sizeof bytes, NULL);
    if (status != TTD_OK)
        return status;
    return memcmp(bytes, entry, sizeof bytes) == 0 ? TTD_OK : TTD_ERROR_CORRUPT;
}

/** Moves to the chunk that an entry describes, if that chunk agrees. */
static enum ttd_status seek_go_to(struct ttd_reader *reader, const uint8_t *entry,
                                  const struct ttd_index_link *link)
{
    struct ttd_header header;
    enum ttd_status status = seek_check_entry(reader, entry, &header);
    if (status != TTD_OK)
        return status;
    bool events = header.kind == TTD_KIND_EVENTS;
    reader->offset = header.offset;
    reader->next_number = header.number;
    reader->next_event = events ? header.first_record : link->first_event;
    reader->position = events ? header.first_position : link->position;
    return TTD_OK;
}

/** Checks that entries agree with their chunks, and that these follow one another without a gap: an
 * index may not hide a chunk of events between the first and the last of them. */
static enum ttd_status seek_check_run(struct ttd_reader *reader, const uint8_t *first,
                                      const uint8_t *last)
{
    struct ttd_header header;
    enum ttd_status status = seek_check_entry(reader, first, &header);
    for (const uint8_t *entry = first; status == TTD_OK && entry < last;) {
        uint64_t end = header.offset + ttd_chunk_size(&header);
        entry += TTD_HEADER_SIZE;
        status = seek_check_entry(reader, entry, &header);
        if (status == TTD_OK && header.offset != end)
            status = TTD_ERROR_CORRUPT;
    }
    return status;
}

/** Entries of an index chunk around a target. */
struct choice {
    const uint8_t *first;
    /** The last entry of events that does not reach the target; NULL if there is none. */
    const uint8_t *before;
    /** The first one that does, and its header; NULL if there is none. */
    const uint8_t *reached;
    struct ttd_header header;
};

static enum ttd_status seek_choose_entries(struct ttd_cursor *entries,
                                           const struct seek_target *target, struct choice *choice)
{
    *choice = (struct choice){.first = entries->next};
    while (ttd_cursor_left(entries) != 0 && !choice->reached) {
        const uint8_t *entry = ttd_cursor_bytes(entries, TTD_HEADER_SIZE);
        const char *what;
        if (ttd_header_decode(entry, &choice->header, &what) != TTD_OK)
            return TTD_ERROR_CORRUPT;
        if (choice->header.kind != TTD_KIND_EVENTS)
            continue;
        if (seek_reaches(&choice->header, target))
            choice->reached = entry;
        else
            choice->before = entry;
    }
    return TTD_OK;
}

/**
 * Goes to the target's chunk among the entries of an index chunk. If there is none: to the last
 * chunk of events, to hop on from there. Fails if the entries do not show that no chunk of events
 * before this one reaches the target.
 */
static enum ttd_status seek_search_entries(struct ttd_reader *reader, struct ttd_cursor *entries,
                                           const struct ttd_index_link *link,
                                           const struct seek_target *target)
{
    struct choice choice;
    enum ttd_status status = seek_choose_entries(entries, target, &choice);
    if (status != TTD_OK)
        return status;
    if (!choice.reached && choice.before)
        return seek_go_to(reader, choice.before, link);
    if (choice.reached && seek_is_behind_start(&choice.header, target))
        return seek_go_to(reader, choice.reached, link);
    const uint8_t *start = choice.before ? choice.before : choice.first;
    struct ttd_header header;
    status = seek_check_entry(reader, start, &header);
    if (status == TTD_OK && !choice.before && header.offset != 0)
        status = TTD_ERROR_CORRUPT;
    if (status == TTD_OK && choice.reached)
        status = seek_check_run(reader, start, choice.reached);
    return status == TTD_OK ? seek_go_to(reader, choice.reached ? choice.reached : start, link)
                            : status;
}

/** Tries the index. Anything but TTD_OK means that it is of no use. */
static enum ttd_status seek_by_index(struct ttd_reader *reader, const struct seek_target *target)
{
    struct ttd_end end;
    enum ttd_status status = ttd_reader_end(reader, &end);
    if (status != TTD_OK || end.index_offset == 0)
        return status == TTD_OK ? TTD_END : status;
    struct ttd_index_links links;
    struct ttd_cursor entries;
    status = seek_find_index(reader, end.index_offset, target, &links, &entries);
    return status == TTD_OK ? seek_search_entries(reader, &entries, &links.links[0], target)
                            : status;
}

static enum ttd_status seek_target(struct ttd_reader *reader, const struct seek_target *target,
                                   struct ttd_error *error)
{
    ttd_reader_rewind(reader, reader->options.kinds);
    enum ttd_status status = seek_by_index(reader, target);
    if (status != TTD_OK)
        ttd_reader_rewind(reader, reader->options.kinds);
    /* From the chunk that the index gives: the right one or the last before it. */
    return seek_hop(reader, target, error);
}

enum ttd_status ttd_reader_seek(struct ttd_reader *reader, struct ttd_position position,
                                struct ttd_error *error)
{
    struct seek_target target = {.by_position = true, .position = position};
    return seek_target(reader, &target, error);
}

enum ttd_status ttd_reader_seek_event(struct ttd_reader *reader, uint64_t number,
                                      struct ttd_error *error)
{
    struct seek_target target = {.event = number};
    return seek_target(reader, &target, error);
}
