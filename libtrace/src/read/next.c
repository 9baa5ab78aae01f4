/* SPDX-License-Identifier: MIT */
/* Going from chunk to chunk, over damage if allowed. */
#include "read/internal.h"

#include <string.h>

#include "base/status.h"

ttd_chunk ttd_chunk_of(const ttd_header *header)
{
    return (ttd_chunk){.number = header->number,
                       .offset = header->offset,
                       .kind = header->kind,
                       .codec = header->codec,
                       .flags = header->flags,
                       .minor_version = header->minor,
                       .stored_size = header->stored_size,
                       .raw_size = header->raw_size,
                       .first_item = header->first_item,
                       .item_count = header->item_count,
                       .first_position = header->first_position,
                       .last_position = header->last_position};
}

/** Ends the reading for good. */
static ttd_status stop(ttd_reader *reader, const ttd_error *reason, ttd_error *error)
{
    reader->failed = true;
    reader->error = *reason;
    if (error)
        *error = *reason;
    return reason->status;
}

ttd_status ttd_reader_damage(ttd_reader *reader, const ttd_error *damage, ttd_error *error)
{
    if (!reader->options.tolerant)
        return stop(reader, damage, error);
    if (!reader->gap.pending)
        reader->gap = (ttd_gap){true, *damage, reader->position};
    return TTD_OK;
}

/** What is wrong with the order of chunks and events; NULL if nothing. */
static const char *check_order(const ttd_reader *reader, const ttd_header *header)
{
    if (reader->ended)
        return "data after the End chunk";
    if (header->number < reader->next_number)
        return "chunk number goes back";
    if (header->number > reader->next_number)
        return "chunk missing";
    if (header->kind != TTD_KIND_EVENTS)
        return NULL;
    if (header->first_item < reader->next_event)
        return "event number goes back";
    if (header->first_item > reader->next_event && !reader->gap.pending &&
        !(reader->trace.flags & TTD_TRACE_RECOVERED))
        return "events missing";
    if (ttd_position_compare(header->first_position, reader->position) < 0)
        return "position goes back";
    return NULL;
}

/** Passes over bytes that are no chunk. TTD_END when there is no further chunk. */
static ttd_status skip_damage(ttd_reader *reader, ttd_error *error)
{
    uint64_t found;
    uint64_t from = reader->offset + (reader->scanning ? 0 : TTD_ALIGNMENT);
    ttd_status status =
        ttd_source_resync(&reader->source, from, reader->next_number, &found, error);
    if (status == TTD_OK || status == TTD_END) {
        reader->offset = found;
        reader->scanning = status == TTD_END;
    }
    return status;
}

/** Whether the chunk can be used in spite of `wrong`: what is missing lies before it. */
static bool is_usable(const ttd_reader *reader, const ttd_header *header)
{
    return !reader->ended && header->number >= reader->next_number &&
           (header->kind != TTD_KIND_EVENTS ||
            (header->first_item >= reader->next_event &&
             ttd_position_compare(header->first_position, reader->position) >= 0));
}

/** Judges a good header; TTD_END when the chunk is to be passed over. */
static ttd_status judge(ttd_reader *reader, const ttd_header *header, ttd_error *error)
{
    const char *wrong = check_order(reader, header);
    if (!wrong)
        return TTD_OK;
    ttd_error detail;
    ttd_fail(&detail, TTD_ERROR_CORRUPT, wrong, header->offset, header->number);
    ttd_status status = ttd_reader_damage(reader, &detail, error);
    if (status != TTD_OK || is_usable(reader, header))
        return status;
    reader->offset += ttd_chunk_size(header);
    return TTD_END;
}

ttd_status ttd_reader_find(ttd_reader *reader, ttd_header *header, ttd_error *error)
{
    ttd_error detail = {.what = ""};
    for (;;) {
        ttd_status status = reader->scanning ? skip_damage(reader, error) : TTD_OK;
        if (status != TTD_OK)
            return status;
        status = ttd_source_header(&reader->source, reader->offset, header, &detail);
        if (status == TTD_OK) {
            status = judge(reader, header, error);
            if (status != TTD_END)
                return status;
        } else if (status == TTD_ERROR_CORRUPT) {
            status = ttd_reader_damage(reader, &detail, error);
            if (status == TTD_OK)
                status = skip_damage(reader, error);
            if (status != TTD_OK)
                return status;
        } else if (status == TTD_ERROR_UNSUPPORTED) {
            return stop(reader, &detail, error);
        } else {
            if (status != TTD_END && error)
                *error = detail;
            return status;
        }
    }
}

void ttd_reader_pass(ttd_reader *reader, const ttd_header *header, bool counted)
{
    reader->offset = header->offset + ttd_chunk_size(header);
    reader->next_number = header->number + 1;
    if (header->kind == TTD_KIND_END)
        reader->ended = true;
    if (header->kind == TTD_KIND_EVENTS && counted) {
        reader->next_event = header->first_item + header->item_count;
        reader->position = header->last_position;
    }
}

/** Makes the loss record for the gap before `header`, which is NULL at the end of the file. */
static void make_up_loss(ttd_reader *reader, const ttd_header *header, uint64_t count,
                         ttd_batch *batch)
{
    bool events = header && header->kind == TTD_KIND_EVENTS;
    reader->made_up =
        (ttd_loss){.reason = TTD_LOSS_DAMAGE,
                   .count = count,
                   .last_good = reader->gap.last_good,
                   .first_good = events ? header->first_position : ttd_position_invalid()};
    memset(batch, 0, sizeof *batch);
    batch->kind = TTD_KIND_LOSSES;
    batch->count = 1;
    batch->made_up = true;
    batch->u.losses = &reader->made_up;
    batch->error = reader->gap.error;
    if (header)
        batch->chunk = ttd_chunk_of(header);
    reader->gap.pending = false;
}

static bool is_wanted(const ttd_reader *reader, unsigned kind)
{
    return kind <= TTD_KIND_END && kind != TTD_KIND_INDEX &&
           (reader->options.kinds & TTD_KIND_BIT(kind));
}

/**
 * Compares the End chunk's totals. TTD_END when a gap's loss record is due first: then it is read
 * once more.
 */
static ttd_status check_end(ttd_reader *reader, const ttd_header *header, const ttd_end *end,
                            ttd_batch *batch, ttd_error *error)
{
    if (reader->gap.pending) {
        uint64_t count =
            end->events >= reader->next_event ? end->events - reader->next_event : TTD_UNKNOWN;
        make_up_loss(reader, header, count, batch);
        reader->next_event = end->events;
        reader->end_judged = true;
        return TTD_END;
    }
    if (reader->end_judged ||
        (end->chunks == header->number + 1 && end->events == reader->next_event))
        return TTD_OK;
    ttd_error detail;
    ttd_fail(&detail, TTD_ERROR_CORRUPT, "totals in the End chunk", header->offset, header->number);
    ttd_status status = ttd_reader_damage(reader, &detail, error);
    return status == TTD_OK ? check_end(reader, header, end, batch, error) : status;
}

/** Decodes records of the chunk at hand; TTD_END when there turned out to be none. */
static ttd_status decode(ttd_reader *reader, ttd_batch *batch, ttd_error *error)
{
    ttd_error detail = {.what = ""};
    ttd_status status = ttd_reader_decode(reader, batch, &detail);
    if (status == TTD_OK) {
        if (reader->header.kind == TTD_KIND_EVENTS) {
            const ttd_event *last = &batch->u.events[batch->count - 1];
            reader->next_event = last->number + 1;
            reader->position = ttd_event_position(last);
        }
        return TTD_OK;
    }
    reader->left = 0;
    if (status == TTD_ERROR_CORRUPT) {
        reader->ended = false;
        status = ttd_reader_damage(reader, &detail, error);
        return status == TTD_OK ? TTD_END : status;
    }
    return stop(reader, &detail, error);
}

/** Reads a wanted chunk. TTD_END when it is damaged and was passed over. */
static ttd_status enter(ttd_reader *reader, const ttd_header *header, ttd_error *error)
{
    ttd_error detail = {.what = ""};
    ttd_status status = ttd_reader_begin(reader, header, &detail);
    if (status == TTD_OK) {
        ttd_reader_pass(reader, header, false);
        return TTD_OK;
    }
    reader->left = 0;
    if (status == TTD_ERROR_UNSUPPORTED)
        return stop(reader, &detail, error);
    if (status == TTD_ERROR_CORRUPT) {
        status = ttd_reader_damage(reader, &detail, error);
        if (status != TTD_OK)
            return status;
        ttd_reader_pass(reader, header, false);
        reader->ended = false;
        return TTD_END;
    }
    if (error)
        *error = detail;
    return status;
}

/** The End chunk: always read, for its totals. */
static ttd_status next_end(ttd_reader *reader, const ttd_header *header, ttd_batch *batch,
                           ttd_error *error)
{
    ttd_status status = enter(reader, header, error);
    if (status == TTD_OK)
        status = decode(reader, batch, error);
    if (status != TTD_OK)
        return status;
    ttd_end end = *batch->u.end;
    status = check_end(reader, header, &end, batch, error);
    if (status == TTD_END) {
        /* Come back to it after the loss record. */
        reader->offset = header->offset;
        reader->next_number = header->number;
        reader->ended = false;
        return TTD_OK;
    }
    if (status == TTD_OK && !is_wanted(reader, TTD_KIND_END))
        return TTD_END;
    return status;
}

static bool is_unknown_critical(const ttd_header *header)
{
    return header->kind > TTD_KIND_END && (header->flags & TTD_CHUNK_CRITICAL);
}

/** Deals with one chunk. TTD_END to go on with the next. */
static ttd_status next_in_chunk(ttd_reader *reader, const ttd_header *header, ttd_batch *batch,
                                ttd_error *error)
{
    if (is_unknown_critical(header)) {
        ttd_error detail;
        ttd_fail(&detail, TTD_ERROR_UNSUPPORTED, "critical chunk of an unknown kind",
                 header->offset, header->number);
        return stop(reader, &detail, error);
    }
    if (header->kind == TTD_KIND_EVENTS && reader->gap.pending) {
        make_up_loss(reader, header, header->first_item - reader->next_event, batch);
        reader->next_event = header->first_item;
        reader->next_number = header->number;
        return TTD_OK;
    }
    if (header->kind == TTD_KIND_END)
        return next_end(reader, header, batch, error);
    if (!is_wanted(reader, header->kind)) {
        ttd_reader_pass(reader, header, true);
        return TTD_END;
    }
    ttd_status status = enter(reader, header, error);
    return status == TTD_OK ? decode(reader, batch, error) : status;
}

ttd_status ttd_reader_next(ttd_reader *reader, ttd_batch *batch, ttd_error *error)
{
    if (reader->failed)
        return stop(reader, &reader->error, error);
    batch->made_up = false;
    ttd_status status = TTD_END;
    while (status == TTD_END) {
        if (reader->left != 0) {
            status = decode(reader, batch, error);
            continue;
        }
        ttd_header header;
        status = ttd_reader_find(reader, &header, error);
        if (status == TTD_OK)
            status = next_in_chunk(reader, &header, batch, error);
        else if ((status == TTD_END || status == TTD_ERROR_TRUNCATED) && reader->gap.pending) {
            make_up_loss(reader, NULL, reader->ended ? 0 : TTD_UNKNOWN, batch);
            return TTD_OK;
        } else {
            return status;
        }
    }
    return status;
}

ttd_status ttd_reader_next_chunk(ttd_reader *reader, ttd_chunk *chunk, ttd_error *error)
{
    if (reader->failed)
        return stop(reader, &reader->error, error);
    if (reader->left != 0 && reader->header.kind == TTD_KIND_EVENTS)
        ttd_reader_pass(reader, &reader->header, true);
    reader->left = 0;
    ttd_header header;
    ttd_status status = ttd_reader_find(reader, &header, error);
    if (status != TTD_OK)
        return status;
    if (header.kind == TTD_KIND_EVENTS)
        reader->gap.pending = false;
    ttd_reader_pass(reader, &header, true);
    *chunk = ttd_chunk_of(&header);
    return TTD_OK;
}
