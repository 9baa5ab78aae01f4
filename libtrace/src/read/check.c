/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/records.h"
#include "read/read_internal.h"

void ttd_check_free(struct ttd_reader *reader)
{
    struct ttd_check *check = &reader->check;
    ttd_release(&reader->allocator, check->ids.depths);
    ttd_release(&reader->allocator, check->index.seen);
    ttd_release(&reader->allocator, check->index.hashes);
    check->ids = (struct ttd_id_check){.depths = NULL};
    check->index = (struct ttd_index_check){.seen = NULL};
}

void ttd_check_begin(struct ttd_reader *reader)
{
    struct ttd_check *check = &reader->check;
    ttd_check_free(reader);
    *check = (struct ttd_check){.observer = check->observer,
                                .chunk = check->chunk,
                                .loss = check->loss,
                                .context = check->context};
    uint32_t foreign = TTD_TRACE_DERIVED | TTD_TRACE_RECOVERED;
    check->ids.unknown = (reader->trace.flags & foreign) != 0;
    reader->checks = true;
    reader->is_intact = false;
}

static void check_report_problem(struct ttd_check *check, const struct ttd_problem *problem)
{
    if (check->observer.function && check->status == TTD_OK &&
        !check->observer.function(check->observer.context, problem))
        check->status = TTD_END;
}

/** Reports the problem that was held back. */
static void check_let_go(struct ttd_check *check)
{
    if (check->is_held)
        check_report_problem(check, &check->held);
    check->is_held = false;
}

void ttd_check_damage(struct ttd_reader *reader, const struct ttd_error *error, uint64_t bytes,
                      uint64_t chunks)
{
    struct ttd_check *check = &reader->check;
    check_let_go(check);
    check->verdict.problems++;
    check->held = (struct ttd_problem){.error = *error, .bytes = bytes, .missing_chunks = chunks};
    check->is_held = true;
    check->damaged = true;
    check->ids.unknown = true;
}

void ttd_check_lost(struct ttd_reader *reader, const struct ttd_loss *loss)
{
    struct ttd_check *check = &reader->check;
    check->verdict.lost_events = ttd_add_count(check->verdict.lost_events, loss->count);
    check->held.missing_events = loss->count;
    if (loss->count != 0) {
        check->held.last_good = loss->last_good;
        check->held.first_good = loss->first_good;
    }
    check_let_go(check);
    if (check->loss && check->status == TTD_OK)
        check->status = check->loss(check->context, reader, loss);
}

/** Reports that a chunk says something wrong, although nothing is missing. */
static void check_report_wrong(struct ttd_check *check, const struct ttd_header *header,
                               const char *what)
{
    struct ttd_problem problem = {.bytes = 0};
    ttd_fail(&problem.error, TTD_ERROR_CORRUPT, what, header->offset, header->number);
    check->verdict.problems++;
    check_report_problem(check, &problem);
}

static enum ttd_status check_no_memory(const struct ttd_reader *reader, struct ttd_error *error)
{
    return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
}

/** Forgets the facts about the chunk before. */
static void check_begin_chunk(struct ttd_check *check)
{
    check->wrong = NULL;
    check->redefines = false;
    check->lost_events = check->verdict.lost_events;
}

/** Takes in the heaps of the chunk's events. Returns whether stacks and heaps of all events that it
 * can have are defined. */
static bool check_has_known_tables(struct ttd_id_check *ids, const struct ttd_event_state *events)
{
    ttd_id heap = TTD_NONE;
    for (size_t i = 0; i < events->class_count; i++)
        if (events->classes[i].heap > heap)
            heap = events->classes[i].heap;
    if (heap > ids->settled_heap)
        ids->settled_heap = heap;
    if (heap > ids->heaps)
        return false;
    for (size_t i = 1; i <= events->shape_count; i++)
        if (events->shapes[i].stack > ids->stacks)
            return false;
    return true;
}

/** Whether all threads that the chunk has mentioned so far are defined. */
static bool check_has_known_threads(const struct ttd_id_check *ids,
                                    const struct ttd_event_state *events)
{
    for (size_t i = 0; i < events->thread_count; i++)
        if (events->threads[i].id > ids->threads)
            return false;
    return true;
}

/** Whether no event of the batch needs to be looked at: the short tables show it. */
static bool check_is_known(struct ttd_reader *reader, const struct ttd_batch *batch)
{
    struct ttd_check *check = &reader->check;
    const struct ttd_event_state *events = &reader->events.state;
    if (batch->kind != TTD_KIND_EVENTS)
        return false;
    if (check->ids.unknown)
        return true;
    if (reader->is_first_batch)
        check->has_known_tables = check_has_known_tables(&check->ids, events);
    return check->has_known_tables && check_has_known_threads(&check->ids, events);
}

enum ttd_status ttd_check_batch(struct ttd_reader *reader, const struct ttd_batch *batch,
                                struct ttd_error *error)
{
    struct ttd_check *check = &reader->check;
    if (reader->is_first_batch)
        check_begin_chunk(check);
    if (check_is_known(reader, batch))
        return TTD_OK;
    const char *violation;
    if (!ttd_id_check_batch(&check->ids, &reader->allocator, batch, &violation))
        return check_no_memory(reader, error);
    check->redefines |= check->ids.redefines;
    if (!check->wrong)
        check->wrong = violation;
    if (batch->kind == TTD_KIND_LOSSES)
        for (size_t i = 0; i < batch->count; i++)
            check->lost_events = ttd_add_count(check->lost_events, batch->u.losses[i].count);
    if (batch->kind == TTD_KIND_END)
        check->end = *batch->u.end;
    return TTD_OK;
}

enum ttd_status ttd_check_stacks(struct ttd_reader *reader, bool *is_right, struct ttd_error *error)
{
    struct ttd_check *check = &reader->check;
    struct ttd_id_check *ids = &check->ids;
    const struct ttd_header *header = &reader->header;
    *is_right = false;
    if (ids->unknown || header->first_record != (uint64_t)ids->stacks + 1)
        return TTD_OK;
    /* Memory is taken for stacks that can be there, not for as many as the header says. */
    if (header->record_count > ttd_cursor_left(&reader->stacks.columns[TTD_STACK_PARENTS]))
        return TTD_OK;
    if (!ttd_id_check_grow(ids, &reader->allocator, header->record_count))
        return check_no_memory(reader, error);
    if (!ttd_stacks_decoder_accepts(&reader->stacks, header->record_count, ids->modules,
                                    ids->depths))
        return TTD_OK;
    ids->stacks += header->record_count;
    check_begin_chunk(check);
    *is_right = true;
    return ttd_check_chunk(reader, error);
}

enum ttd_status ttd_check_index(struct ttd_reader *reader, struct ttd_cursor payload,
                                struct ttd_error *error)
{
    check_begin_chunk(&reader->check);
    if (reader->header.kind == TTD_KIND_INDEX &&
        !ttd_index_check_chunk(reader, payload, &reader->check.wrong))
        return check_no_memory(reader, error);
    return TTD_OK;
}

enum ttd_status ttd_check_unread(struct ttd_reader *reader, struct ttd_error *error)
{
    check_begin_chunk(&reader->check);
    /* Its events may be of any heap. */
    reader->check.ids.settled_heap = UINT32_MAX;
    return ttd_check_chunk(reader, error);
}

/** Compares the End chunk's totals that reading does not depend on. Returns a description of the
 * first wrong one, or NULL. */
static const char *check_end_totals(const struct ttd_check *check)
{
    const struct ttd_index_check *index = &check->index;
    if (check->damaged)
        return NULL;
    if (check->end.lost_events != check->verdict.lost_events)
        return "number of lost events in the End chunk";
    if (check->end.index_offset !=
        (index->seen_count ? index->seen[index->seen_count - 1].offset : 0))
        return "index_offset in the End chunk";
    return NULL;
}

enum ttd_status ttd_check_chunk(struct ttd_reader *reader, struct ttd_error *error)
{
    struct ttd_check *check = &reader->check;
    const struct ttd_header *header = &reader->header;
    struct ttd_verdict *verdict = &check->verdict;
    if (!ttd_index_check_see(reader, header))
        return check_no_memory(reader, error);
    verdict->lost_events = check->lost_events;
    verdict->chunks++;
    verdict->intact_bytes += ttd_chunk_size(header);
    if (header->kind == TTD_KIND_EVENTS)
        verdict->events += header->record_count;
    if (header->kind == TTD_KIND_END) {
        check->has_end = true;
        check->end_behind = header->offset + ttd_chunk_size(header);
        if (!check->wrong)
            check->wrong = check_end_totals(check);
    }
    if (check->wrong)
        check_report_wrong(check, header, check->wrong);
    if (check->chunk && check->status == TTD_OK)
        check->status = check->chunk(check->context, reader, header, reader->source.stored.data,
                                     check->redefines);
    return TTD_OK;
}

/** The file, or its readable part, ends before any End. */
static void check_end_early(struct ttd_reader *reader, enum ttd_status status,
                            const struct ttd_error *error)
{
    struct ttd_error open;
    ttd_fail(&open, TTD_ERROR_TRUNCATED, "not closed cleanly", reader->offset, TTD_NOWHERE);
    uint64_t size = reader->source.size;
    bool whole = status == TTD_END;
    struct ttd_loss final_loss;
    ttd_check_damage(reader, whole ? &open : error,
                     whole || size < reader->offset ? 0 : size - reader->offset, whole ? 0 : 1);
    if (ttd_reader_rest(reader, &final_loss))
        ttd_check_lost(reader, &final_loss);
}

void ttd_check_end(struct ttd_reader *reader, enum ttd_status status, const struct ttd_error *error)
{
    struct ttd_check *check = &reader->check;
    bool has_end = reader->has_ended && check->has_end;
    check->verdict.file_bytes = reader->source.size;
    check->verdict.closed = has_end && check->end_behind == reader->source.size;
    if (has_end && status == TTD_ERROR_LIMIT)
        ttd_check_damage(reader, error, reader->source.size - reader->offset, 0);
    if (!has_end && status != TTD_ERROR_UNSUPPORTED)
        check_end_early(reader, status, error);
    check_let_go(check);
    check->verdict.ok = check->verdict.problems == 0 && check->verdict.closed;
    reader->is_intact = check->verdict.ok;
    reader->checks = false;
}

bool ttd_index_check_see(struct ttd_reader *reader, const struct ttd_header *header)
{
    struct ttd_index_check *check = &reader->check.index;
    if (header->kind == TTD_KIND_EVENTS && !check->pending_set) {
        check->pending = (struct ttd_index_link){0, header->first_record, header->first_position};
        check->pending_set = true;
    }
    /* An index has no entries of index chunks: links lead to those. */
    if (header->kind == TTD_KIND_INDEX)
        return true;
    void *hashes = check->hashes;
    if (ttd_grow_array(&reader->allocator, &hashes, &check->hash_capacity, check->hash_count + 1,
                       sizeof *check->hashes))
        return false;
    check->hashes = hashes;
    uint8_t bytes[TTD_HEADER_SIZE];
    ttd_header_encode(header, bytes);
    check->hashes[check->hash_count++] = ttd_hash(bytes, sizeof bytes);
    return true;
}

static bool check_same_link(const struct ttd_index_link *a, const struct ttd_index_link *b)
{
    return a->offset == b->offset && a->first_event == b->first_event &&
           ttd_position_compare(a->position, b->position) == 0;
}

/** Compares the links with the index chunks seen. */
static bool check_links(const struct ttd_index_check *check, const struct ttd_index_links *links,
                        const struct ttd_index_link *self)
{
    if (!check_same_link(&links->links[0], self))
        return false;
    size_t i = 1;
    for (size_t distance = 1; distance <= check->seen_count; distance *= 2, i++)
        if (i >= links->count ||
            !check_same_link(&links->links[i], &check->seen[check->seen_count - distance]))
            return false;
    return i == links->count;
}

/** Compares the entries with the chunks seen since the last index chunk. */
static bool check_entries(const struct ttd_index_check *check, struct ttd_cursor entries)
{
    if (ttd_cursor_left(&entries) != check->hash_count * TTD_HEADER_SIZE)
        return false;
    for (size_t i = 0; i < check->hash_count; i++)
        if (ttd_hash(ttd_cursor_bytes(&entries, TTD_HEADER_SIZE), TTD_HEADER_SIZE) !=
            check->hashes[i])
            return false;
    return true;
}

bool ttd_index_check_chunk(struct ttd_reader *reader, struct ttd_cursor payload, const char **what)
{
    struct ttd_index_check *check = &reader->check.index;
    const struct ttd_header *header = &reader->header;
    bool damaged = reader->check.damaged;
    struct ttd_index_links links;
    ttd_decode_index_links(&payload, &links, header->record_count);
    *what = payload.error;
    struct ttd_index_link self = check->pending;
    /* Without events in its chunks, it stands for the next event to come. */
    if (!check->pending_set)
        self = (struct ttd_index_link){0, reader->next_event, reader->position};
    self.offset = header->offset;
    /* Behind damage the chunks that the index should have are unknown. */
    if (!*what && !damaged && !check_links(check, &links, &self))
        *what = "links of an index";
    if (!*what && !damaged && !check_entries(check, payload))
        *what = "entries of an index";
    void *seen = check->seen;
    if (ttd_grow_array(&reader->allocator, &seen, &check->seen_capacity, check->seen_count + 1,
                       sizeof *check->seen))
        return false;
    check->seen = seen;
    check->seen[check->seen_count++] = self;
    check->hash_count = 0;
    check->pending_set = false;
    return true;
}
