/* SPDX-License-Identifier: MIT */
#include "read/walk.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/status.h"

ttd_status ttd_walk_report(ttd_walk *walk, const ttd_problem *problem)
{
    walk->verdict.problems++;
    if (problem->missing_chunks != 0 || problem->missing_events != 0) {
        walk->damaged = true;
        walk->references.unknown = true;
    }
    walk->verdict.lost_events = ttd_add_count(walk->verdict.lost_events, problem->missing_events);
    if (walk->function && !walk->function(walk->function_context, problem))
        return TTD_END;
    return TTD_OK;
}

/** Reports that a chunk says something wrong, although nothing is missing. */
static ttd_status report_wrong(ttd_walk *walk, const ttd_header *header, const char *what)
{
    ttd_problem problem = {0};
    ttd_fail(&problem.error, TTD_ERROR_CORRUPT, what, header->offset, header->number);
    return ttd_walk_report(walk, &problem);
}

/**
 * Finds the first good chunk of events, or End, at or after the reader's place without moving the
 * reader; NULL if there is none.
 */
static ttd_status look_ahead(ttd_walk *walk, const ttd_header **ahead)
{
    ttd_reader *reader = walk->reader;
    uint64_t offset = reader->offset;
    ttd_status status = TTD_OK;
    while (!walk->ahead_known || (walk->ahead_found && walk->ahead.offset < offset)) {
        ttd_header header;
        status = ttd_source_header(&reader->source, offset, &header, walk->error);
        if (status == TTD_OK) {
            bool wanted = (header.kind == TTD_KIND_EVENTS || header.kind == TTD_KIND_END) &&
                          header.number >= reader->next_number;
            walk->ahead_known = walk->ahead_found = wanted;
            walk->ahead = header;
            offset += wanted ? 0 : ttd_chunk_size(&header);
            continue;
        }
        if (status == TTD_ERROR_CORRUPT || status == TTD_ERROR_UNSUPPORTED)
            status = ttd_source_resync(&reader->source, offset + TTD_ALIGNMENT, reader->next_number,
                                       &offset, walk->error);
        if (status == TTD_END || status == TTD_ERROR_TRUNCATED) {
            walk->ahead_known = true;
            walk->ahead_found = false;
            status = TTD_OK;
        }
        if (status != TTD_OK)
            return status;
    }
    *ahead = walk->ahead_found ? &walk->ahead : NULL;
    return TTD_OK;
}

/** The number of the event after which `ahead` comes; TTD_UNKNOWN if that cannot be said. */
static ttd_status events_before(ttd_walk *walk, const ttd_header *ahead, uint64_t *events)
{
    *events = TTD_UNKNOWN;
    if (!ahead)
        return TTD_OK;
    *events = ahead->first_item;
    if (ahead->kind != TTD_KIND_END)
        return TTD_OK;
    ttd_end end;
    ttd_status status = ttd_reader_end(walk->reader, &end);
    *events = status == TTD_OK ? end.events : TTD_UNKNOWN;
    return status == TTD_ERROR_IO ? ttd_fail(walk->error, status, "read", ahead->offset, 0)
                                  : TTD_OK;
}

/** Reports a gap: what is between the last intact chunk and the reader's place. */
static ttd_status report_gap(ttd_walk *walk, const ttd_error *error, uint64_t bytes,
                             uint64_t chunks)
{
    ttd_reader *reader = walk->reader;
    const ttd_header *ahead = NULL;
    ttd_status status = look_ahead(walk, &ahead);
    uint64_t events = TTD_UNKNOWN;
    if (status == TTD_OK)
        status = events_before(walk, ahead, &events);
    if (reader->ended && walk->has_end)
        events = reader->next_event;
    if (status != TTD_OK)
        return status;
    ttd_problem problem = {
        .error = *error, .bytes = bytes, .missing_chunks = chunks, .missing_events = TTD_UNKNOWN};
    if (events != TTD_UNKNOWN && events >= reader->next_event) {
        problem.missing_events = events - reader->next_event;
        reader->next_event = events;
    }
    if (problem.missing_events != 0) {
        problem.last_good = reader->position;
        problem.first_good = ahead && ahead->kind == TTD_KIND_EVENTS ? ahead->first_position
                                                                     : ttd_position_invalid();
    }
    reader->gap.pending = false;
    status = ttd_walk_report(walk, &problem);
    if (status == TTD_OK && walk->gap && (chunks != 0 || problem.missing_events != 0))
        status = walk->gap(walk, &problem);
    return status;
}

/** Decodes and checks all records of a chunk of a known kind. */
static ttd_status check_records(ttd_walk *walk, const char **what, ttd_error *damage)
{
    ttd_reader *reader = walk->reader;
    /* Counted when the chunk turns out good as a whole. A sum that is full stays so. */
    uint64_t lost = walk->verdict.lost_events;
    while (reader->left != 0) {
        ttd_batch batch;
        ttd_status status = ttd_reader_decode(reader, &batch, damage);
        if (status != TTD_OK)
            return status;
        const char *wrong;
        if (!ttd_references_check(&walk->references, &reader->allocator, &batch, &wrong))
            return ttd_fail(damage, TTD_ERROR_NO_MEMORY, "memory", reader->header.offset,
                            reader->header.number);
        if (!*what)
            *what = wrong;
        if (batch.kind == TTD_KIND_LOSSES)
            for (size_t i = 0; i < batch.count; i++)
                lost = ttd_add_count(lost, batch.u.losses[i].count);
        if (batch.kind == TTD_KIND_END) {
            walk->has_end = true;
            walk->end = *batch.u.end;
        }
    }
    walk->verdict.lost_events = lost;
    return TTD_OK;
}

/** Checks the payload of a chunk. `what` is what is wrong although it is intact, or NULL. */
static ttd_status check_payload(ttd_walk *walk, const ttd_header *header, const char **what,
                                ttd_error *damage)
{
    ttd_reader *reader = walk->reader;
    if (header->kind <= TTD_KIND_END && header->kind != TTD_KIND_INDEX) {
        ttd_status status = ttd_reader_begin(reader, header, damage);
        return status == TTD_OK ? check_records(walk, what, damage) : status;
    }
    ttd_cursor payload;
    ttd_status status = ttd_source_payload(&reader->source, header, &payload, damage);
    if (status != TTD_OK)
        return status;
    if (header->kind == TTD_KIND_INDEX && !ttd_index_check_chunk(walk, header, payload, what))
        return ttd_fail(damage, TTD_ERROR_NO_MEMORY, "memory", header->offset, header->number);
    if (header->kind > TTD_KIND_END && (header->flags & TTD_CHUNK_CRITICAL))
        return ttd_fail(damage, TTD_ERROR_UNSUPPORTED, "critical chunk of an unknown kind",
                        header->offset, header->number);
    return TTD_OK;
}

/** What is wrong with the End chunk's totals; NULL if nothing. */
static const char *check_totals(const ttd_walk *walk, const ttd_header *header)
{
    const ttd_end *end = &walk->end;
    const ttd_index_check *index = &walk->index;
    if (end->chunks != header->number + 1)
        return "number of chunks in the End chunk";
    if (end->events != walk->reader->next_event)
        return "number of events in the End chunk";
    if (walk->damaged)
        return NULL;
    if (end->lost_events != walk->verdict.lost_events)
        return "number of lost events in the End chunk";
    if (end->index_offset != (index->seen_count ? index->seen[index->seen_count - 1].offset : 0))
        return "index_offset in the End chunk";
    return NULL;
}

/** Deals with one chunk that stands where it must. */
static ttd_status walk_chunk(ttd_walk *walk, const ttd_header *header)
{
    ttd_reader *reader = walk->reader;
    const char *what = NULL;
    ttd_error damage = {.what = ""};
    ttd_status status = check_payload(walk, header, &what, &damage);
    reader->left = 0;
    if (status == TTD_ERROR_CORRUPT || status == TTD_ERROR_UNSUPPORTED) {
        ttd_reader_pass(reader, header, false);
        reader->ended = false; /* by a damaged End chunk, that is */
        return report_gap(walk, &damage, ttd_chunk_size(header), 1);
    }
    if (status != TTD_OK) {
        if (walk->error)
            *walk->error = damage;
        return status;
    }
    if (!ttd_index_check_see(walk, header))
        return ttd_fail(walk->error, TTD_ERROR_NO_MEMORY, "memory", header->offset, header->number);
    ttd_reader_pass(reader, header, true);
    walk->verdict.chunks++;
    walk->verdict.intact_bytes += ttd_chunk_size(header);
    if (header->kind == TTD_KIND_EVENTS)
        walk->verdict.events += header->item_count;
    if (header->kind == TTD_KIND_END && !what)
        what = check_totals(walk, header);
    if (header->number == 0 && header->kind != TTD_KIND_TRACE && !what)
        what = "first chunk";
    status = what ? report_wrong(walk, header, what) : TTD_OK;
    if (status == TTD_OK && walk->chunk)
        status = walk->chunk(walk, header, reader->source.stored.data);
    return status;
}

/** What is at the end of the file: an End chunk, nothing, or a piece of a chunk. `is_told`: that
 * there is a gap before it. */
static ttd_status walk_end(ttd_walk *walk, bool incomplete, bool is_told)
{
    ttd_reader *reader = walk->reader;
    bool ended = reader->ended && walk->has_end;
    walk->verdict.file_bytes = reader->source.size;
    walk->verdict.closed = ended && reader->offset == reader->source.size;
    ttd_status status = TTD_OK;
    if (!ended) {
        ttd_problem problem = {0};
        ttd_fail(&problem.error, TTD_ERROR_TRUNCATED,
                 incomplete ? "incomplete chunk" : "not closed cleanly", reader->offset,
                 TTD_NOWHERE);
        ttd_problem known = problem;
        /* Nobody knows what came after the last whole chunk, if anything. */
        problem.missing_events = TTD_UNKNOWN;
        problem.last_good = reader->position;
        problem.first_good = ttd_position_invalid();
        if (incomplete) {
            problem.bytes = reader->source.size - reader->offset;
            problem.missing_chunks = 1;
            known = problem;
        }
        status = ttd_walk_report(walk, &known);
        if (status == TTD_OK && (incomplete || !is_told) && walk->gap)
            status = walk->gap(walk, &problem);
    }
    walk->verdict.ok = walk->verdict.problems == 0 && walk->verdict.closed;
    return status;
}

static ttd_status walk_all(ttd_walk *walk)
{
    ttd_reader *reader = walk->reader;
    for (;;) {
        uint64_t offset = reader->offset;
        uint64_t number = reader->next_number;
        ttd_header header;
        ttd_status status = ttd_reader_find(reader, &header, walk->error);
        bool found = status == TTD_OK;
        bool over = status == TTD_END || status == TTD_ERROR_TRUNCATED;
        if (!found && !over)
            return status;
        bool has_gap = reader->gap.pending;
        if (has_gap) {
            ttd_error damage = reader->gap.error;
            uint64_t end = found ? header.offset : reader->source.size;
            uint64_t missing = reader->ended ? 0 : TTD_UNKNOWN;
            if (found)
                missing = header.number - number;
            ttd_status reported = report_gap(walk, &damage, end - offset, missing);
            if (reported != TTD_OK)
                return reported;
            if (found)
                reader->next_number = header.number;
        }
        if (over)
            return walk_end(walk, status == TTD_ERROR_TRUNCATED, has_gap);
        status = walk_chunk(walk, &header);
        if (status != TTD_OK)
            return status;
    }
}

ttd_status ttd_walk_run(ttd_walk *walk, const ttd_input *input, const ttd_allocator *allocator)
{
    ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    ttd_status status = ttd_reader_open(input, &options, allocator, &walk->reader, walk->error);
    if (status == TTD_ERROR_TRUNCATED)
        return ttd_fail(walk->error, TTD_ERROR_NOT_A_TRACE, "no intact chunk", 0, TTD_NOWHERE);
    if (status != TTD_OK)
        return status;
    uint32_t foreign = TTD_TRACE_DERIVED | TTD_TRACE_RECOVERED;
    walk->references.unknown = (walk->reader->trace.flags & foreign) != 0;
    status = walk_all(walk);
    if (status == TTD_OK && walk->verdict.chunks == 0)
        status = ttd_fail(walk->error, TTD_ERROR_NOT_A_TRACE, "no intact chunk", 0, TTD_NOWHERE);
    const ttd_allocator *table = &walk->reader->allocator;
    ttd_release(table, walk->references.depths);
    ttd_release(table, walk->index.seen);
    ttd_release(table, walk->index.hashes);
    ttd_reader_close(walk->reader);
    walk->reader = NULL;
    return status;
}
