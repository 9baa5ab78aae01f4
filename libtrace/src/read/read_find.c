/* SPDX-License-Identifier: MIT */
/* Finding chunks: the next one, over damage if allowed, and the one that a seek is for. */
#include <string.h>

#include "base/fail.h"
#include "read/read_internal.h"

enum ttd_status ttd_reader_stop(struct ttd_reader *reader, const struct ttd_error *reason,
                                struct ttd_error *error)
{
    reader->failed = true;
    reader->error = *reason;
    if (error)
        *error = *reason;
    return reason->status;
}

enum ttd_status ttd_reader_damage(struct ttd_reader *reader, const struct ttd_error *damage,
                                  struct ttd_error *error)
{
    if (!reader->options.tolerant)
        return ttd_reader_stop(reader, damage, error);
    /* Reports the first damage: later findings may be its consequences. */
    if (!reader->passed.what)
        reader->passed = *damage;
    if (!reader->gap.pending)
        reader->gap = (struct ttd_gap){true, false, *damage, reader->position, reader->next_event};
    return TTD_OK;
}

/** Compares a header with the chunks before it. Returns a description of the first violation of
 * their order, or NULL. */
static const char *read_check_order(const struct ttd_reader *reader,
                                    const struct ttd_header *header)
{
    if (reader->has_ended)
        return "data after the End chunk";
    if (header->number < reader->next_number)
        return "chunk number goes back";
    if (header->number > reader->next_number)
        return "chunk missing";
    if (header->number == 0 && header->kind != TTD_KIND_TRACE && !reader->first_is_told)
        return "first chunk";
    if (header->kind != TTD_KIND_EVENTS)
        return NULL;
    if (header->first_record < reader->next_event)
        return "event number goes back";
    /* A recovered trace lacks the events that were damaged in its original. */
    if (header->first_record > reader->next_event && !reader->gap.pending &&
        !(reader->trace.flags & TTD_TRACE_RECOVERED))
        return "events missing";
    if (ttd_position_compare(header->first_position, reader->position) < 0)
        return "position goes back";
    return NULL;
}

/** Passes over bytes that are no chunk. TTD_END when there is no further chunk. */
static enum ttd_status read_skip_damage(struct ttd_reader *reader, struct ttd_error *error)
{
    uint64_t next_offset;
    /* A search that has stopped goes on where it did; a new one begins behind the bad header. */
    uint64_t search_offset = reader->offset + (reader->scanning ? 0 : TTD_ALIGNMENT);
    enum ttd_status status =
        ttd_source_resync(&reader->source, search_offset, reader->next_number, &next_offset, error);
    if (status == TTD_OK || status == TTD_END || status == TTD_ERROR_LIMIT) {
        reader->offset = next_offset;
        reader->scanning = status != TTD_OK;
    }
    return status;
}

/** Whether a chunk out of order can be used: only something before it is missing. */
static bool read_is_usable(const struct ttd_reader *reader, const struct ttd_header *header)
{
    return !reader->has_ended && header->number >= reader->next_number &&
           (header->kind != TTD_KIND_EVENTS ||
            (header->first_record >= reader->next_event &&
             ttd_position_compare(header->first_position, reader->position) >= 0));
}

/** Judges a good header; TTD_END when the chunk is to be passed over. */
static enum ttd_status find_judge_chunk(struct ttd_reader *reader, const struct ttd_header *header,
                                        struct ttd_error *error)
{
    const char *violation = read_check_order(reader, header);
    if (!violation)
        return TTD_OK;
    struct ttd_error detail;
    ttd_fail(&detail, TTD_ERROR_CORRUPT, violation, header->offset, header->number);
    enum ttd_status status = ttd_reader_damage(reader, &detail, error);
    /* The chunk is found again when its events are read, after the loss. */
    reader->first_is_told |= header->number == 0;
    if (status != TTD_OK || read_is_usable(reader, header))
        return status;
    /* Bytes behind an End may have been a part of the trace. */
    reader->gap.is_endless |= reader->has_ended;
    reader->offset += ttd_chunk_size(header);
    return TTD_END;
}

/**
 * A chunk that would go on after the end of the file: TTD_OK when there is a good one behind its
 * header, so that it is no chunk; else TTD_ERROR_TRUNCATED, as `detail` says.
 */
static enum ttd_status read_look_behind(struct ttd_reader *reader, const struct ttd_error *detail,
                                        struct ttd_error *error)
{
    uint64_t next_offset;
    struct ttd_error damage = *detail;
    uint64_t searched = reader->source.searched;
    enum ttd_status status = ttd_source_resync(&reader->source, reader->offset + TTD_ALIGNMENT,
                                               reader->next_number, &next_offset, error);
    if (status == TTD_END || status == TTD_ERROR_LIMIT) {
        /* It may be looked for many times while the file grows. */
        reader->source.searched = searched;
        if (error)
            *error = *detail;
        return detail->status;
    }
    if (status != TTD_OK)
        return status;
    damage.status = TTD_ERROR_CORRUPT;
    reader->offset = next_offset;
    return ttd_reader_damage(reader, &damage, error);
}

/** Calls anything behind the End chunk corrupt, even bytes that would be a chunk elsewhere. */
static void read_judge_rest(const struct ttd_reader *reader, struct ttd_error *detail)
{
    bool is_chunk =
        detail->status == TTD_ERROR_TRUNCATED || detail->status == TTD_ERROR_UNSUPPORTED;
    if (reader->has_ended && is_chunk)
        ttd_fail(detail, TTD_ERROR_CORRUPT, "data after the End chunk", reader->offset,
                 TTD_NOWHERE);
}

/** Handles bytes that are no good chunk. TTD_OK when the reader has passed over them. */
static enum ttd_status read_pass_over(struct ttd_reader *reader, const struct ttd_error *detail,
                                      struct ttd_error *error)
{
    if (detail->status == TTD_ERROR_TRUNCATED && reader->options.tolerant)
        return read_look_behind(reader, detail, error);
    if (detail->status != TTD_ERROR_CORRUPT) {
        if (error)
            *error = *detail;
        return detail->status;
    }
    enum ttd_status status = ttd_reader_damage(reader, detail, error);
    return status == TTD_OK ? read_skip_damage(reader, error) : status;
}

/** Whether a chunk's header must be read although it is known: its records will be returned or
 * checked, or give the begin and the end of the trace. */
static bool must_read(const struct ttd_reader *reader, uint32_t kinds,
                      const struct ttd_header *header)
{
    return reader->checks || header->kind == TTD_KIND_TRACE || header->kind == TTD_KIND_END ||
           (header->kind <= TTD_KIND_LAST &&
            (kinds & TTD_KIND_BIT(ttd_kind_of_records(header->kind))));
}

/** Forgets headers that are behind the end of the file as it is at the beginning of a pass. */
static enum ttd_status read_begin_pass(struct ttd_reader *reader, struct ttd_error *error)
{
    if (reader->source.directory.count == 0)
        return TTD_OK;
    enum ttd_status status = ttd_source_refresh(&reader->source, error);
    if (status == TTD_OK)
        ttd_directory_cut(&reader->source.directory, reader->source.size);
    return status;
}

/** Gets the header at reader->offset: from the directory, or as ttd_source_header(). */
static enum ttd_status read_get_header(struct ttd_reader *reader, uint32_t kinds,
                                       struct ttd_header *header, struct ttd_error *error)
{
    struct ttd_directory *directory = &reader->source.directory;
    const struct ttd_header *known = ttd_directory_find(directory, reader->offset);
    if (known && !must_read(reader, kinds, known)) {
        *header = *known;
        return TTD_OK;
    }
    enum ttd_status status = reader->offset == 0 ? read_begin_pass(reader, error) : TTD_OK;
    if (status == TTD_OK)
        status = ttd_source_header(&reader->source, reader->offset, header, error);
    if (status == TTD_OK && !ttd_directory_add(directory, &reader->allocator, header))
        return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", header->offset, header->number);
    if (status != TTD_OK)
        ttd_directory_cut(directory, reader->offset);
    return status;
}

enum ttd_status ttd_reader_find(struct ttd_reader *reader, uint32_t kinds,
                                struct ttd_header *header, struct ttd_error *error)
{
    struct ttd_error detail = {.what = ""};
    reader->passed.what = NULL;
    for (;;) {
        enum ttd_status status = reader->scanning ? read_skip_damage(reader, error) : TTD_OK;
        if (status != TTD_OK)
            return status;
        status = read_get_header(reader, kinds, header, &detail);
        if (status == TTD_OK) {
            status = find_judge_chunk(reader, header, error);
            if (status != TTD_END)
                return status;
            continue;
        }
        if (status == TTD_END)
            return status;
        read_judge_rest(reader, &detail);
        status = read_pass_over(reader, &detail, error);
        if (status != TTD_OK)
            return status;
    }
}

void ttd_reader_pass(struct ttd_reader *reader, const struct ttd_header *header, bool counted)
{
    reader->offset = header->offset + ttd_chunk_size(header);
    reader->next_number = header->number + 1;
    reader->rest_is_lost = false;
    if (header->kind == TTD_KIND_END)
        reader->has_ended = true;
    if (header->kind == TTD_KIND_EVENTS && counted) {
        reader->next_event = header->first_record + header->record_count;
        reader->position = header->last_position;
    }
}

/* Going from chunk to chunk. */

/** Finds the next chunk, and reports the bytes that were passed over on the way. */
static enum ttd_status next_find_chunk(struct ttd_reader *reader, struct ttd_header *header,
                                       struct ttd_error *error)
{
    uint64_t offset = reader->offset;
    uint64_t number = reader->next_number;
    enum ttd_status status = ttd_reader_find(reader, reader->options.kinds, header, error);
    bool is_found = status == TTD_OK;
    if (is_found)
        reader->next_number = header->number;
    if (reader->checks && reader->passed.what) {
        uint64_t end = is_found ? header->offset : reader->source.size;
        uint64_t missing = reader->has_ended ? 0 : TTD_UNKNOWN;
        ttd_check_damage(reader, &reader->passed, end > offset ? end - offset : 0,
                         is_found ? header->number - number : missing);
    }
    return status;
}

/** No further chunk was found. */
static enum ttd_status read_next_at_end(struct ttd_reader *reader, enum ttd_status status,
                                        const struct ttd_error *detail, struct ttd_batch *batch,
                                        struct ttd_error *error)
{
    bool is_over = status == TTD_END || status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_LIMIT;
    if (status == TTD_ERROR_UNSUPPORTED)
        return ttd_reader_end_unsupported(reader, detail, batch, error);
    if (is_over && reader->gap.pending) {
        ttd_reader_synthesize_loss(reader, NULL,
                                   reader->has_ended ? reader->next_event : TTD_UNKNOWN, batch);
        return TTD_OK;
    }
    if (is_over && reader->checks)
        ttd_check_end(reader, status, detail);
    if (status != TTD_END && error)
        *error = *detail;
    return status;
}

enum ttd_status ttd_reader_next(struct ttd_reader *reader, struct ttd_batch *batch,
                                struct ttd_error *error)
{
    if (reader->failed) {
        if (reader->checks)
            ttd_check_end(reader, reader->error.status, &reader->error);
        return ttd_reader_stop(reader, &reader->error, error);
    }
    batch->synthetic = false;
    for (;;) {
        struct ttd_header header;
        struct ttd_error detail = {.what = ""};
        enum ttd_status status;
        if (reader->records_left != 0)
            status = ttd_reader_go_on(reader, batch, error);
        else if ((status = next_find_chunk(reader, &header, &detail)) != TTD_OK)
            return read_next_at_end(reader, status, &detail, batch, error);
        else
            status = ttd_reader_enter(reader, &header, batch, error);
        if (reader->checks && reader->check.status != TTD_OK)
            return reader->check.status;
        if (status != TTD_END)
            return status;
    }
}

enum ttd_status ttd_reader_next_chunk(struct ttd_reader *reader, struct ttd_chunk *chunk,
                                      struct ttd_error *error)
{
    if (reader->failed)
        return ttd_reader_stop(reader, &reader->error, error);
    reader->checks = false; /* not without payloads */
    if (reader->records_left != 0 && reader->header.kind == TTD_KIND_EVENTS)
        ttd_reader_pass(reader, &reader->header, true);
    reader->records_left = 0;
    struct ttd_header header;
    struct ttd_error detail = {.what = ""};
    enum ttd_status status = ttd_reader_find(reader, 0, &header, &detail);
    if (status == TTD_ERROR_UNSUPPORTED)
        return ttd_reader_stop(reader, &detail, error);
    if (status != TTD_OK) {
        if (status != TTD_END && error)
            *error = detail;
        return status;
    }
    if (header.kind == TTD_KIND_EVENTS)
        reader->gap.pending = false;
    ttd_reader_pass(reader, &header, true);
    *chunk = ttd_chunk_of(&header);
    return TTD_OK;
}

/* Seeking (spec, "Seeking"). */

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
