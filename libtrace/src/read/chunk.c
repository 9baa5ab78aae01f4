/* SPDX-License-Identifier: MIT */
/* The records of one chunk, and how it is checked where they are not asked for. */
#include <string.h>
#include <ttdtrace/advanced.h>

#include "base/fail.h"
#include "base/memory.h"
#include "read/read_internal.h"

void ttd_directory_free(struct ttd_directory *directory, const struct ttd_allocator *allocator)
{
    ttd_release(allocator, directory->headers);
    *directory = (struct ttd_directory){.headers = NULL};
}

/** Offset of the end of the known chunks. */
static uint64_t chunk_directory_end(const struct ttd_directory *directory)
{
    if (directory->count == 0)
        return 0;
    const struct ttd_header *last = &directory->headers[directory->count - 1];
    return last->offset + ttd_chunk_size(last);
}

/** Returns the index of the first header at `offset` or behind; the count if there is none. */
static size_t chunk_directory_lower_bound(const struct ttd_directory *directory, uint64_t offset)
{
    size_t low = 0;
    size_t high = directory->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (directory->headers[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct ttd_header *ttd_directory_find(struct ttd_directory *directory, uint64_t offset)
{
    size_t i = directory->next;
    if (i >= directory->count || directory->headers[i].offset != offset)
        i = chunk_directory_lower_bound(directory, offset);
    if (i == directory->count || directory->headers[i].offset != offset)
        return NULL;
    directory->next = i + 1;
    return &directory->headers[i];
}

/** Compares two headers as they are in a file: a struct may have padding. */
static bool chunk_directory_is_same(const struct ttd_header *a, const struct ttd_header *b)
{
    uint8_t bytes[2][TTD_HEADER_SIZE];
    ttd_header_encode(a, bytes[0]);
    ttd_header_encode(b, bytes[1]);
    return memcmp(bytes[0], bytes[1], TTD_HEADER_SIZE) == 0;
}

bool ttd_directory_add(struct ttd_directory *directory, const struct ttd_allocator *allocator,
                       const struct ttd_header *header)
{
    const struct ttd_header *known = ttd_directory_find(directory, header->offset);
    if (known && chunk_directory_is_same(known, header))
        return true;
    ttd_directory_cut(directory, header->offset);
    if (header->offset != chunk_directory_end(directory) || directory->count == TTD_DIRECTORY_MAX)
        return true;
    void *headers = directory->headers;
    if (ttd_grow_array(allocator, &headers, &directory->capacity, directory->count + 1,
                       sizeof *directory->headers))
        return false;
    directory->headers = headers;
    directory->headers[directory->count++] = *header;
    directory->next = directory->count;
    return true;
}

void ttd_directory_cut(struct ttd_directory *directory, uint64_t offset)
{
    directory->count = chunk_directory_lower_bound(directory, offset);
    if (chunk_directory_end(directory) > offset)
        directory->count--;
}

struct ttd_chunk ttd_chunk_of(const struct ttd_header *header)
{
    return (struct ttd_chunk){.number = header->number,
                              .offset = header->offset,
                              .kind = header->kind,
                              .codec = header->codec,
                              .flags = header->flags,
                              .minor_version = header->minor,
                              .stored_size = header->stored_size,
                              .raw_size = header->raw_size,
                              .first_record = header->first_record,
                              .record_count = header->record_count,
                              .first_position = header->first_position,
                              .last_position = header->last_position};
}

static bool chunk_is_wanted(const struct ttd_reader *reader, unsigned kind)
{
    return kind <= TTD_KIND_LAST && kind != TTD_KIND_INDEX &&
           (reader->options.kinds & TTD_KIND_BIT(ttd_kind_of_records(kind)));
}

/** Compares the totals of an End chunk. Returns a description of the first wrong one, or NULL. */
static const char *chunk_check_totals(const struct ttd_reader *reader,
                                      const struct ttd_header *header, const struct ttd_end *end)
{
    if (end->chunks != header->number + 1)
        return "number of chunks in the End chunk";
    return end->events != reader->next_event ? "number of events in the End chunk" : NULL;
}

/**
 * Compares the End chunk's totals. TTD_END when a gap's loss record is due first: then it is read
 * once more.
 */
static enum ttd_status chunk_check_end(struct ttd_reader *reader, const struct ttd_header *header,
                                       const struct ttd_end *end, struct ttd_batch *batch,
                                       struct ttd_error *error)
{
    if (!reader->gap.pending) {
        const char *violation = reader->end_judged ? NULL : chunk_check_totals(reader, header, end);
        if (!violation)
            return TTD_OK;
        struct ttd_error detail;
        ttd_fail(&detail, TTD_ERROR_CORRUPT, violation, header->offset, header->number);
        enum ttd_status status = ttd_reader_damage(reader, &detail, error);
        if (status != TTD_OK)
            return status;
        if (reader->checks)
            ttd_check_damage(reader, &detail, 0, 0);
    }
    ttd_reader_synthesize_loss(reader, header, end->events, batch);
    reader->end_judged = true;
    return TTD_END;
}

enum ttd_status ttd_reader_go_on(struct ttd_reader *reader, struct ttd_batch *batch,
                                 struct ttd_error *error)
{
    struct ttd_error detail = {.what = ""};
    bool checks = reader->checks && !reader->is_checked;
    enum ttd_status status = ttd_reader_decode(reader, batch, &detail);
    if (status == TTD_OK && checks)
        status = ttd_check_batch(reader, batch, &detail);
    reader->is_first_batch = false;
    if (status == TTD_OK && reader->header.kind == TTD_KIND_EVENTS) {
        const struct ttd_event *last = &batch->u.events[batch->count - 1];
        reader->next_event = last->number + 1;
        reader->position = ttd_event_position(last);
    }
    /* The End chunk is taken in later, once its totals have been compared. */
    if (status == TTD_OK && checks && reader->records_left == 0 &&
        reader->header.kind != TTD_KIND_END)
        status = ttd_check_chunk(reader, &detail);
    return status == TTD_OK ? TTD_OK : ttd_reader_fail_chunk(reader, &detail, batch, error);
}

/** Begins a chunk, and notes where the reader was before it. */
static enum ttd_status chunk_begin_from_here(struct ttd_reader *reader,
                                             const struct ttd_header *header,
                                             struct ttd_error *error)
{
    reader->event_before = reader->next_event;
    reader->position_before = reader->position;
    return ttd_reader_begin(reader, header, error);
}

/** Reads a chunk that is to be decoded. TTD_END when it is damaged and was passed over. */
static enum ttd_status chunk_enter(struct ttd_reader *reader, const struct ttd_header *header,
                                   struct ttd_batch *batch, struct ttd_error *error)
{
    struct ttd_error detail = {.what = ""};
    enum ttd_status status = chunk_begin_from_here(reader, header, &detail);
    if (status == TTD_OK)
        ttd_reader_pass(reader, header, false);
    else if (status == TTD_ERROR_CORRUPT || status == TTD_ERROR_UNSUPPORTED)
        return ttd_reader_fail_chunk(reader, &detail, batch, error);
    else
        reader->records_left = 0; /* it may be read again */
    if (status != TTD_OK && error)
        *error = detail;
    return status;
}

/** The End chunk: always read, for its totals. */
static enum ttd_status chunk_next_end(struct ttd_reader *reader, const struct ttd_header *header,
                                      struct ttd_batch *batch, struct ttd_error *error)
{
    enum ttd_status status = chunk_enter(reader, header, batch, error);
    if (status == TTD_OK && reader->records_left != 0)
        status = ttd_reader_go_on(reader, batch, error);
    if (status != TTD_OK || batch->synthetic)
        return status;
    struct ttd_end end = *batch->u.end;
    status = chunk_check_end(reader, header, &end, batch, error);
    if (status == TTD_END) {
        /* Come back to it after the loss record. */
        reader->offset = header->offset;
        reader->next_number = header->number;
        reader->has_ended = false;
        return TTD_OK;
    }
    if (status == TTD_OK && reader->checks)
        status = ttd_check_chunk(reader, error);
    if (status == TTD_OK && !chunk_is_wanted(reader, TTD_KIND_END))
        return TTD_END;
    return status;
}

/** Checks a chunk that is not decoded, by its checksum; the payload of an index in full. */
static enum ttd_status chunk_check_sum(struct ttd_reader *reader, const struct ttd_header *header,
                                       struct ttd_error *error)
{
    struct ttd_cursor payload = {.error = NULL};
    if (header->kind == TTD_KIND_INDEX && header->record_count == 0)
        return ttd_reader_fail(reader, TTD_ERROR_CORRUPT, "number of records", error);
    enum ttd_status status = header->kind == TTD_KIND_INDEX
                                 ? ttd_source_payload(&reader->source, header, &payload, error)
                                 : ttd_source_stored(&reader->source, header, error);
    if (status == TTD_OK)
        status = ttd_check_index(reader, payload, error);
    return status == TTD_OK ? ttd_check_chunk(reader, error) : status;
}

/** Checks all stacks of the chunk at hand at once; if that will not do, they are left. */
static enum ttd_status chunk_accept_stacks(struct ttd_reader *reader, struct ttd_batch *batch,
                                           struct ttd_error *error)
{
    struct ttd_error detail = {.what = ""};
    bool is_right;
    enum ttd_status status = ttd_check_stacks(reader, &is_right, &detail);
    if (status != TTD_OK)
        return ttd_reader_fail_chunk(reader, &detail, batch, error);
    if (is_right)
        reader->records_left = 0;
    return TTD_OK;
}

/** Checks a chunk that no record is returned of. TTD_END to go on with the next; TTD_OK when
 * `batch` has a loss. */
static enum ttd_status skim(struct ttd_reader *reader, const struct ttd_header *header,
                            struct ttd_batch *batch, struct ttd_error *error)
{
    enum ttd_status status;
    if (header->kind == TTD_KIND_INDEX || header->kind > TTD_KIND_LAST) {
        struct ttd_error detail = {.what = ""};
        reader->header = *header;
        reader->event_before = reader->next_event;
        reader->position_before = reader->position;
        status = chunk_check_sum(reader, header, &detail);
        if (status != TTD_OK)
            return ttd_reader_fail_chunk(reader, &detail, batch, error);
        ttd_reader_pass(reader, header, true);
        return TTD_END;
    }
    reader->decodes_stacks = true;
    status = chunk_enter(reader, header, batch, error);
    if (status == TTD_OK && header->kind == TTD_KIND_STACKS && reader->records_left != 0)
        status = chunk_accept_stacks(reader, batch, error);
    while (status == TTD_OK && reader->records_left != 0)
        status = ttd_reader_go_on(reader, batch, error);
    reader->decodes_stacks = false;
    return status == TTD_OK && !batch->synthetic ? TTD_END : status;
}

/** Checks a chunk of stacks that are returned as stored: decodes them once before. */
static enum ttd_status skim_stacks(struct ttd_reader *reader, const struct ttd_header *header,
                                   struct ttd_batch *batch, struct ttd_error *error)
{
    enum ttd_status status = skim(reader, header, batch, error);
    bool is_good = status == TTD_END && !reader->passed.what;
    if (!is_good)
        return status;
    reader->records_left = header->record_count;
    reader->is_checked = true;
    return ttd_reader_go_on(reader, batch, error);
}

/** Decodes all events of a chunk and gives none; checks them if nobody will read them. TTD_END when
 * it is damaged and was passed over. */
static enum ttd_status chunk_try_events(struct ttd_reader *reader, const struct ttd_header *header,
                                        struct ttd_batch *batch, struct ttd_error *error)
{
    struct ttd_error detail = {.what = ""};
    enum ttd_status status = chunk_begin_from_here(reader, header, &detail);
    size_t oldest = reader->events.buffer_next;
    while (status == TTD_OK && reader->records_left != 0) {
        status = ttd_reader_decode(reader, batch, &detail);
        if (status == TTD_OK && reader->leaves_events)
            status = ttd_check_batch(reader, batch, &detail);
        reader->is_first_batch = false;
        /* The batches that were returned stay valid. */
        reader->events.buffer_next = oldest;
    }
    reader->records_left = 0;
    if (status == TTD_ERROR_CORRUPT || status == TTD_ERROR_UNSUPPORTED)
        return ttd_reader_fail_chunk(reader, &detail, batch, error);
    if (status != TTD_OK && error)
        *error = detail;
    return status;
}

/**
 * Does the work before the events of a chunk: finds out whether they are good, where that must be
 * known first, and reports the loss. TTD_OK with a batch that was made up, or when they are to be
 * read; TTD_END when they were passed over.
 */
static enum ttd_status chunk_approach_events(struct ttd_reader *reader,
                                             const struct ttd_header *header,
                                             struct ttd_batch *batch, struct ttd_error *error)
{
    bool has_gap = reader->gap.pending;
    bool has_events = chunk_is_wanted(reader, TTD_KIND_EVENTS) || reader->leaves_events;
    if ((has_gap && reader->checks) || (has_events && (has_gap || reader->options.whole_chunks))) {
        enum ttd_status status = chunk_try_events(reader, header, batch, error);
        if (status != TTD_OK || batch->synthetic)
            return status;
    }
    if (has_gap) {
        ttd_reader_synthesize_loss(reader, header, header->first_record, batch);
        reader->next_event = header->first_record;
    }
    return TTD_OK;
}

/** Takes a chunk of events for intact that is not read. */
static enum ttd_status chunk_accept_events(struct ttd_reader *reader,
                                           const struct ttd_header *header, struct ttd_error *error)
{
    reader->header = *header;
    reader->event_before = reader->next_event;
    reader->position_before = reader->position;
    const char *violation = ttd_reader_check_records(header);
    return violation ? ttd_reader_fail(reader, TTD_ERROR_CORRUPT, violation, error)
                     : ttd_check_unread(reader, error);
}

/** Returns a chunk of events without its events; chunk_try_events() has decoded them with
 * whole_chunks. */
static enum ttd_status chunk_leave_events(struct ttd_reader *reader,
                                          const struct ttd_header *header, struct ttd_batch *batch,
                                          struct ttd_error *error)
{
    struct ttd_error detail = {.what = ""};
    enum ttd_status status = reader->options.whole_chunks
                                 ? ttd_check_chunk(reader, &detail)
                                 : chunk_accept_events(reader, header, &detail);
    if (status != TTD_OK)
        return ttd_reader_fail_chunk(reader, &detail, batch, error);
    ttd_reader_pass(reader, header, true);
    *batch = (struct ttd_batch){.kind = TTD_KIND_EVENTS, .chunk = ttd_chunk_of(header)};
    return TTD_OK;
}

enum ttd_status ttd_reader_enter(struct ttd_reader *reader, const struct ttd_header *header,
                                 struct ttd_batch *batch, struct ttd_error *error)
{
    reader->is_checked = false;
    reader->passed.what = NULL;
    if (header->kind > TTD_KIND_LAST && (header->flags & TTD_CHUNK_CRITICAL)) {
        struct ttd_error detail;
        ttd_fail(&detail, TTD_ERROR_UNSUPPORTED, "critical chunk of an unknown kind",
                 header->offset, header->number);
        return ttd_reader_end_unsupported(reader, &detail, batch, error);
    }
    if (header->kind == TTD_KIND_EVENTS) {
        enum ttd_status status = chunk_approach_events(reader, header, batch, error);
        if (status != TTD_OK || batch->synthetic)
            return status;
        if (reader->leaves_events)
            return chunk_leave_events(reader, header, batch, error);
    }
    if (header->kind == TTD_KIND_END)
        return chunk_next_end(reader, header, batch, error);
    if (!chunk_is_wanted(reader, header->kind)) {
        if (reader->checks)
            return skim(reader, header, batch, error);
        ttd_reader_pass(reader, header, true);
        return TTD_END;
    }
    if (reader->checks && header->kind == TTD_KIND_STACKS && reader->options.lazy_stacks)
        return skim_stacks(reader, header, batch, error);
    enum ttd_status status = chunk_enter(reader, header, batch, error);
    return status == TTD_OK && reader->records_left != 0 ? ttd_reader_go_on(reader, batch, error)
                                                         : status;
}

enum ttd_status ttd_reader_pages(struct ttd_reader *reader, const struct ttd_chunk *chunk,
                                 struct ttd_pages *pages, struct ttd_error *error)
{
    struct ttd_header header;
    struct ttd_batch batch;
    if (chunk->kind != TTD_KIND_PAGES)
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "kind of a chunk", chunk->offset, chunk->number);
    enum ttd_status status = ttd_reader_rewind(reader, reader->options.kinds);
    if (status == TTD_OK)
        status = ttd_source_header(&reader->source, chunk->offset, &header, error);
    if (status != TTD_OK)
        return status == TTD_END ? ttd_fail(error, TTD_ERROR_TRUNCATED, "a chunk is gone",
                                            chunk->offset, chunk->number)
                                 : status;
    /* The file may have been replaced since the chunk was found. */
    if (header.number != chunk->number || header.kind != TTD_KIND_PAGES)
        return ttd_fail(error, TTD_ERROR_CORRUPT, "a chunk has changed", chunk->offset,
                        chunk->number);
    status = ttd_reader_begin(reader, &header, error);
    if (status == TTD_OK)
        status = ttd_reader_decode(reader, &batch, error);
    /* Nothing of the chunk is left: the reader is at the begin again. */
    reader->records_left = 0;
    if (status == TTD_OK)
        *pages = *batch.u.pages;
    return status;
}
