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
    if (!reader->passed.what)
        reader->passed = *damage;
    if (!reader->gap.pending)
        reader->gap = (ttd_gap){true, false, *damage, reader->position, reader->next_event};
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
    if (status == TTD_OK || status == TTD_END || status == TTD_ERROR_LIMIT) {
        reader->offset = found;
        reader->scanning = status != TTD_OK;
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
    /* What stands behind an End may have been a part of the trace. */
    reader->gap.is_endless |= reader->ended;
    reader->offset += ttd_chunk_size(header);
    return TTD_END;
}

/**
 * A chunk that would go on after the end of the file: TTD_OK when there is a good one behind its
 * header, so that it is no chunk; else TTD_ERROR_TRUNCATED, as `detail` says.
 */
static ttd_status look_behind(ttd_reader *reader, const ttd_error *detail, ttd_error *error)
{
    uint64_t found;
    ttd_error damage = *detail;
    uint64_t searched = reader->source.searched;
    ttd_status status = ttd_source_resync(&reader->source, reader->offset + TTD_ALIGNMENT,
                                          reader->next_number, &found, error);
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
    reader->offset = found;
    return ttd_reader_damage(reader, &damage, error);
}

/** What stands behind an End is no chunk, whatever else it is. */
static void judge_rest(const ttd_reader *reader, ttd_error *detail)
{
    bool is_chunk =
        detail->status == TTD_ERROR_TRUNCATED || detail->status == TTD_ERROR_UNSUPPORTED;
    if (reader->ended && is_chunk)
        ttd_fail(detail, TTD_ERROR_CORRUPT, "data after the End chunk", reader->offset,
                 TTD_NOWHERE);
}

/** Deals with what is no good chunk: TTD_OK when the reader was moved on. */
static ttd_status pass_over(ttd_reader *reader, const ttd_error *detail, ttd_error *error)
{
    if (detail->status == TTD_ERROR_TRUNCATED && reader->options.tolerant)
        return look_behind(reader, detail, error);
    if (detail->status != TTD_ERROR_CORRUPT) {
        if (error)
            *error = *detail;
        return detail->status;
    }
    ttd_status status = ttd_reader_damage(reader, detail, error);
    return status == TTD_OK ? skip_damage(reader, error) : status;
}

ttd_status ttd_reader_find(ttd_reader *reader, ttd_header *header, ttd_error *error)
{
    ttd_error detail = {.what = ""};
    reader->passed.what = NULL;
    for (;;) {
        ttd_status status = reader->scanning ? skip_damage(reader, error) : TTD_OK;
        if (status != TTD_OK)
            return status;
        status = ttd_source_header(&reader->source, reader->offset, header, &detail);
        if (status == TTD_OK) {
            status = judge(reader, header, error);
            if (status != TTD_END)
                return status;
            continue;
        }
        if (status == TTD_END)
            return status;
        judge_rest(reader, &detail);
        status = pass_over(reader, &detail, error);
        if (status != TTD_OK)
            return status;
    }
}

void ttd_reader_pass(ttd_reader *reader, const ttd_header *header, bool counted)
{
    reader->offset = header->offset + ttd_chunk_size(header);
    reader->next_number = header->number + 1;
    reader->rest_is_lost = false;
    if (header->kind == TTD_KIND_END)
        reader->ended = true;
    if (header->kind == TTD_KIND_EVENTS && counted) {
        reader->next_event = header->first_item + header->item_count;
        reader->position = header->last_position;
    }
}

/**
 * Makes the loss record for the gap before `header`, which is NULL at the end of the file.
 * `event`: the number of the event that comes after the gap, or TTD_UNKNOWN.
 */
static void make_up_loss(ttd_reader *reader, const ttd_header *header, uint64_t event,
                         ttd_batch *batch)
{
    const ttd_gap *gap = &reader->gap;
    bool events = header && header->kind == TTD_KIND_EVENTS;
    bool is_known = event != TTD_UNKNOWN && event >= gap->event && !gap->is_endless;
    reader->made_up =
        (ttd_loss){.reason = TTD_LOSS_DAMAGE,
                   .count = is_known ? event - gap->event : TTD_UNKNOWN,
                   .last_good = gap->last_good,
                   .first_good = events ? header->first_position : ttd_position_invalid()};
    memset(batch, 0, sizeof *batch);
    batch->kind = TTD_KIND_LOSSES;
    batch->count = 1;
    batch->made_up = true;
    batch->u.losses = &reader->made_up;
    batch->error = gap->error;
    if (header)
        batch->chunk = ttd_chunk_of(header);
    reader->gap.pending = false;
    reader->rest_is_lost = !header;
    if (reader->checks)
        ttd_check_lost(reader, &reader->made_up);
}

static bool is_wanted(const ttd_reader *reader, unsigned kind)
{
    return kind <= TTD_KIND_END && kind != TTD_KIND_INDEX &&
           (reader->options.kinds & TTD_KIND_BIT(kind));
}

/** What is wrong with the totals of an End chunk; NULL if nothing. */
static const char *check_totals(const ttd_reader *reader, const ttd_header *header,
                                const ttd_end *end)
{
    if (end->chunks != header->number + 1)
        return "number of chunks in the End chunk";
    return end->events != reader->next_event ? "number of events in the End chunk" : NULL;
}

/**
 * Compares the End chunk's totals. TTD_END when a gap's loss record is due first: then it is read
 * once more.
 */
static ttd_status check_end(ttd_reader *reader, const ttd_header *header, const ttd_end *end,
                            ttd_batch *batch, ttd_error *error)
{
    if (!reader->gap.pending) {
        const char *wrong = reader->end_judged ? NULL : check_totals(reader, header, end);
        if (!wrong)
            return TTD_OK;
        ttd_error detail;
        ttd_fail(&detail, TTD_ERROR_CORRUPT, wrong, header->offset, header->number);
        ttd_status status = ttd_reader_damage(reader, &detail, error);
        if (status != TTD_OK)
            return status;
        if (reader->checks)
            ttd_check_damage(reader, &detail, 0, 0);
    }
    make_up_loss(reader, header, end->events, batch);
    reader->end_judged = true;
    return TTD_END;
}

/** The chunk at hand is damaged: notes that, and passes over it. TTD_END to go on behind it. */
static ttd_status pass_damaged(ttd_reader *reader, const ttd_error *damage, ttd_error *error)
{
    const ttd_header *header = &reader->header;
    reader->left = 0;
    reader->next_event = reader->event_before;
    reader->position = reader->position_before;
    ttd_status status = ttd_reader_damage(reader, damage, error);
    if (status != TTD_OK)
        return status;
    /* Its header is good, and says which events are lost with it. */
    ttd_reader_pass(reader, header, true);
    reader->ended = false;
    if (reader->checks)
        ttd_check_damage(reader, damage, ttd_chunk_size(header), 1);
    return TTD_END;
}

/** There is no going on from what this library does not know: a loss first, if tolerant. */
static ttd_status end_unsupported(ttd_reader *reader, const ttd_error *detail, ttd_batch *batch,
                                  ttd_error *error)
{
    reader->left = 0;
    ttd_status status = ttd_reader_damage(reader, detail, error);
    if (status != TTD_OK)
        return status;
    reader->failed = true;
    reader->error = *detail;
    if (reader->checks)
        ttd_check_damage(reader, detail, reader->source.size - reader->offset, TTD_UNKNOWN);
    make_up_loss(reader, NULL, TTD_UNKNOWN, batch);
    return TTD_OK;
}

/** Fails for a chunk that cannot be decoded; TTD_END when it was passed over. */
static ttd_status fail_chunk(ttd_reader *reader, const ttd_error *detail, ttd_batch *batch,
                             ttd_error *error)
{
    if (detail->status == TTD_ERROR_CORRUPT)
        return pass_damaged(reader, detail, error);
    if (detail->status == TTD_ERROR_UNSUPPORTED)
        return end_unsupported(reader, detail, batch, error);
    reader->left = 0;
    return stop(reader, detail, error);
}

/** Decodes records of the chunk at hand; TTD_END when there turned out to be none. */
static ttd_status decode(ttd_reader *reader, ttd_batch *batch, ttd_error *error)
{
    ttd_error detail = {.what = ""};
    bool checks = reader->checks && !reader->is_checked;
    ttd_status status = ttd_reader_decode(reader, batch, &detail);
    if (status == TTD_OK && checks)
        status = ttd_check_batch(reader, batch, &detail);
    reader->is_first_batch = false;
    if (status == TTD_OK && reader->header.kind == TTD_KIND_EVENTS) {
        const ttd_event *last = &batch->u.events[batch->count - 1];
        reader->next_event = last->number + 1;
        reader->position = ttd_event_position(last);
    }
    /* The End is, when its totals are known to be right. */
    if (status == TTD_OK && checks && reader->left == 0 && reader->header.kind != TTD_KIND_END)
        status = ttd_check_chunk(reader, &detail);
    return status == TTD_OK ? TTD_OK : fail_chunk(reader, &detail, batch, error);
}

/** Reads a chunk that is to be decoded. TTD_END when it is damaged and was passed over. */
static ttd_status enter(ttd_reader *reader, const ttd_header *header, ttd_batch *batch,
                        ttd_error *error)
{
    ttd_error detail = {.what = ""};
    reader->event_before = reader->next_event;
    reader->position_before = reader->position;
    ttd_status status = ttd_reader_begin(reader, header, &detail);
    if (status == TTD_OK)
        ttd_reader_pass(reader, header, false);
    else if (status == TTD_ERROR_CORRUPT || status == TTD_ERROR_UNSUPPORTED)
        return fail_chunk(reader, &detail, batch, error);
    else
        reader->left = 0; /* it may be read again */
    if (status != TTD_OK && error)
        *error = detail;
    return status;
}

/** The End chunk: always read, for its totals. */
static ttd_status next_end(ttd_reader *reader, const ttd_header *header, ttd_batch *batch,
                           ttd_error *error)
{
    ttd_status status = enter(reader, header, batch, error);
    if (status == TTD_OK && reader->left != 0)
        status = decode(reader, batch, error);
    if (status != TTD_OK || batch->made_up)
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
    if (status == TTD_OK && reader->checks)
        status = ttd_check_chunk(reader, error);
    if (status == TTD_OK && !is_wanted(reader, TTD_KIND_END))
        return TTD_END;
    return status;
}

/** Reads a chunk of which nothing is decoded: only its checksum says whether it is good. */
static ttd_status check_sum(ttd_reader *reader, const ttd_header *header, ttd_error *error)
{
    ttd_cursor payload = {.error = NULL};
    ttd_status status = header->kind == TTD_KIND_INDEX
                            ? ttd_source_payload(&reader->source, header, &payload, error)
                            : ttd_source_stored(&reader->source, header, error);
    if (status == TTD_OK)
        status = ttd_check_index(reader, payload, error);
    return status == TTD_OK ? ttd_check_chunk(reader, error) : status;
}

/** Checks a chunk of which no record is returned. TTD_END to go on with the next; TTD_OK when
 * `batch` has a loss. */
static ttd_status skim(ttd_reader *reader, const ttd_header *header, ttd_batch *batch,
                       ttd_error *error)
{
    ttd_status status;
    if (header->kind == TTD_KIND_INDEX || header->kind > TTD_KIND_END) {
        ttd_error detail = {.what = ""};
        reader->header = *header;
        reader->event_before = reader->next_event;
        reader->position_before = reader->position;
        status = check_sum(reader, header, &detail);
        if (status != TTD_OK)
            return fail_chunk(reader, &detail, batch, error);
        ttd_reader_pass(reader, header, true);
        return TTD_END;
    }
    reader->decodes_stacks = true;
    status = enter(reader, header, batch, error);
    while (status == TTD_OK && reader->left != 0)
        status = decode(reader, batch, error);
    reader->decodes_stacks = false;
    return status == TTD_OK && !batch->made_up ? TTD_END : status;
}

/** Stacks that are returned as they are stored are decoded first, where all is to be checked. */
static ttd_status skim_stacks(ttd_reader *reader, const ttd_header *header, ttd_batch *batch,
                              ttd_error *error)
{
    ttd_status status = skim(reader, header, batch, error);
    bool is_good = status == TTD_END && !reader->passed.what;
    if (!is_good)
        return status;
    reader->left = header->item_count;
    reader->is_checked = true;
    return decode(reader, batch, error);
}

static bool is_unknown_critical(const ttd_header *header)
{
    return header->kind > TTD_KIND_END && (header->flags & TTD_CHUNK_CRITICAL);
}

/** Deals with one chunk. TTD_END to go on with the next. */
static ttd_status next_in_chunk(ttd_reader *reader, const ttd_header *header, ttd_batch *batch,
                                ttd_error *error)
{
    reader->is_checked = false;
    reader->passed.what = NULL;
    if (is_unknown_critical(header)) {
        ttd_error detail;
        ttd_fail(&detail, TTD_ERROR_UNSUPPORTED, "critical chunk of an unknown kind",
                 header->offset, header->number);
        return end_unsupported(reader, &detail, batch, error);
    }
    if (header->kind == TTD_KIND_EVENTS && reader->gap.pending) {
        make_up_loss(reader, header, header->first_item, batch);
        reader->next_event = header->first_item;
        return TTD_OK;
    }
    if (header->kind == TTD_KIND_END)
        return next_end(reader, header, batch, error);
    if (!is_wanted(reader, header->kind)) {
        if (reader->checks)
            return skim(reader, header, batch, error);
        ttd_reader_pass(reader, header, true);
        return TTD_END;
    }
    if (reader->checks && header->kind == TTD_KIND_STACKS && reader->options.stored_stacks)
        return skim_stacks(reader, header, batch, error);
    ttd_status status = enter(reader, header, batch, error);
    return status == TTD_OK && reader->left != 0 ? decode(reader, batch, error) : status;
}

/** Finds the next chunk, and says what was passed over on the way. */
static ttd_status find_next(ttd_reader *reader, ttd_header *header, ttd_error *error)
{
    uint64_t offset = reader->offset;
    uint64_t number = reader->next_number;
    ttd_status status = ttd_reader_find(reader, header, error);
    bool found = status == TTD_OK;
    if (found)
        reader->next_number = header->number;
    if (reader->checks && reader->passed.what) {
        uint64_t end = found ? header->offset : reader->source.size;
        uint64_t missing = reader->ended ? 0 : TTD_UNKNOWN;
        ttd_check_damage(reader, &reader->passed, end > offset ? end - offset : 0,
                         found ? header->number - number : missing);
    }
    return status;
}

/** No further chunk was found. */
static ttd_status next_at_end(ttd_reader *reader, ttd_status status, const ttd_error *detail,
                              ttd_batch *batch, ttd_error *error)
{
    bool is_over = status == TTD_END || status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_LIMIT;
    if (status == TTD_ERROR_UNSUPPORTED)
        return end_unsupported(reader, detail, batch, error);
    if (is_over && reader->gap.pending) {
        make_up_loss(reader, NULL, reader->ended ? reader->next_event : TTD_UNKNOWN, batch);
        return TTD_OK;
    }
    if (is_over && reader->checks)
        ttd_check_end(reader, status, detail);
    if (status != TTD_END && error)
        *error = *detail;
    return status;
}

ttd_status ttd_reader_next(ttd_reader *reader, ttd_batch *batch, ttd_error *error)
{
    if (reader->failed) {
        if (reader->checks)
            ttd_check_end(reader, reader->error.status, &reader->error);
        return stop(reader, &reader->error, error);
    }
    batch->made_up = false;
    for (;;) {
        ttd_header header;
        ttd_error detail = {.what = ""};
        ttd_status status;
        if (reader->left != 0)
            status = decode(reader, batch, error);
        else if ((status = find_next(reader, &header, &detail)) != TTD_OK)
            return next_at_end(reader, status, &detail, batch, error);
        else
            status = next_in_chunk(reader, &header, batch, error);
        if (reader->checks && reader->check.status != TTD_OK)
            return reader->check.status;
        if (status != TTD_END)
            return status;
    }
}

ttd_status ttd_reader_next_chunk(ttd_reader *reader, ttd_chunk *chunk, ttd_error *error)
{
    if (reader->failed)
        return stop(reader, &reader->error, error);
    reader->checks = false; /* not without payloads */
    if (reader->left != 0 && reader->header.kind == TTD_KIND_EVENTS)
        ttd_reader_pass(reader, &reader->header, true);
    reader->left = 0;
    ttd_header header;
    ttd_error detail = {.what = ""};
    ttd_status status = ttd_reader_find(reader, &header, &detail);
    if (status == TTD_ERROR_UNSUPPORTED)
        return stop(reader, &detail, error);
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
