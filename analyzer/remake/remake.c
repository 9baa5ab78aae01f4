/* SPDX-License-Identifier: MIT */
#include "remake/remake.h"

#include <string.h>

#include "remake/copier.h"
#include "travel/replay_to.h"

enum ttd_status remake_refuse(struct ttd_error *error, enum ttd_status status, const char *reason)
{
    *error = (struct ttd_error){
        .status = status, .offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = reason};
    return status;
}

/* Reads to the end; a tolerant reader replaces damage by losses of its own. */
static enum ttd_status remake_read_on(struct ttd_reader *reader,
                                      enum ttd_status (*see)(void *context,
                                                             const struct ttd_batch *batch),
                                      void *context, struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status == TTD_OK && batch.kind == TTD_KIND_LOSSES && batch.synthetic) {
            *error = batch.error;
            return TTD_ERROR_CORRUPT;
        }
        if (status == TTD_OK && see)
            status = see(context, &batch);
    }
    if (status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_LIMIT) {
        error->status = TTD_ERROR_CORRUPT;
        return TTD_ERROR_CORRUPT;
    }
    return status == TTD_END ? TTD_OK : status;
}

enum ttd_status remake_read(const struct heap_trace *trace,
                            enum ttd_status (*see)(void *context, const struct ttd_batch *batch),
                            void *context, struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KINDS_ALL);
    return status == TTD_OK ? remake_read_on(trace->reader, see, context, error) : status;
}

static enum ttd_status remake_count_unknown(const struct heap_trace *trace,
                                            struct remake_result *result, struct ttd_error *error)
{
    struct ttd_chunk chunk;
    enum ttd_status status = ttd_reader_rewind(trace->reader, 0);
    while (status == TTD_OK) {
        status = ttd_reader_next_chunk(trace->reader, &chunk, error);
        if (status == TTD_OK)
            result->unknown_chunks += chunk.kind > TTD_KIND_LAST;
    }
    return heap_is_over(status) ? TTD_OK : status;
}

static enum ttd_status remake_show(void *context, const struct ttd_batch *batch)
{
    const struct heap_trace *trace = context;
    return trace->hook.batch ? trace->hook.batch(trace->hook.context, batch) : TTD_OK;
}

/* Reads a trace in a pass that checks everything. */
static enum ttd_status remake_read_checked(const struct heap_trace *trace,
                                           enum ttd_status (*see)(void *context,
                                                                  const struct ttd_batch *batch),
                                           void *context, struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind_checked(trace->reader, TTD_KINDS_ALL);
    if (status == TTD_OK)
        status = remake_read_on(trace->reader, see, context, error);
    if (status != TTD_OK || ttd_reader_is_intact(trace->reader))
        return status;
    return remake_refuse(error, TTD_ERROR_CORRUPT, "it is not intact, or was not closed");
}

enum ttd_status remake_check_source(const struct heap_trace *trace, struct remake_result *result,
                                    struct ttd_error *error)
{
    struct heap_trace shown = *trace;
    if (ttd_reader_trace(trace->reader)->flags & TTD_TRACE_DERIVED)
        return remake_refuse(error, TTD_ERROR_UNSUPPORTED, "an index is no trace");
    if (!ttd_reader_trace(trace->reader)->time_unit)
        return remake_refuse(error, TTD_ERROR_UNSUPPORTED,
                             "the first chunk was lost before the trace was recovered");
    result->source_bytes += ttd_reader_size(trace->reader);
    enum ttd_status status = remake_read_checked(trace, remake_show, &shown, error);
    return status == TTD_OK ? remake_count_unknown(trace, result, error) : status;
}

/* The same trace in fewer bytes. */

struct repacker {
    const struct heap_trace *trace;
    struct copier copier;
};

static enum ttd_status remake_repack_see(void *context, const struct ttd_batch *batch)
{
    struct repacker *repacker = context;
    const struct heap_batch_hook *hook = &repacker->trace->hook;
    enum ttd_status status = hook->batch ? hook->batch(hook->context, batch) : TTD_OK;
    return status == TTD_OK ? copier_put(&repacker->copier, batch) : status;
}

enum ttd_status remake_repack(const struct heap_trace *trace, const struct ttd_output *output,
                              struct remake_result *result, struct ttd_error *error)
{
    struct repacker repacker = {.trace = trace, .copier = {.result = result, .error = error}};
    *result = (struct remake_result){.events = 0};
    enum ttd_status status = remake_check_source(trace, result, error);
    if (status != TTD_OK) {
        output->close(output->context);
        return status;
    }
    status = copier_open(&repacker.copier, ttd_reader_trace(trace->reader), output);
    if (status != TTD_OK)
        return status;
    status = remake_read(trace, remake_repack_see, &repacker, error);
    status = copier_close_writer(&repacker.copier, status, &repacker.copier.end);
    copier_free(&repacker.copier);
    return status;
}

/* Checking a trace that was made. */

static enum ttd_status remake_see(void *context, const struct ttd_batch *batch)
{
    struct remake_result *found = context;
    if (batch->kind > TTD_KIND_LAST)
        return TTD_OK;
    found->records[batch->kind] += batch->count * copier_count(batch);
    for (size_t i = 0; batch->kind == TTD_KIND_EVENTS && i < batch->count; i++)
        found->digest = copier_digest(found->digest, &batch->u.events[i]);
    return TTD_OK;
}

/* The heap of one or several traces at a position. */
struct remake_totals {
    uint64_t blocks;
    uint64_t bytes;
    uint64_t unknown_releases;
    uint64_t overlaps;
};

/* Positions at which live blocks are compared. */
struct remake_stops {
    struct ttd_position at[2];
    size_t count;
};

/* Replays a trace, and adds its heap at each stop. The heap of a process that has ended is empty.
 */
static enum ttd_status remake_add_totals(struct remake_totals *totals,
                                         const struct heap_trace *trace,
                                         const struct remake_stops *stops, bool has_ended,
                                         struct ttd_error *error)
{
    struct heap_arrival arrival;
    struct heap_trace alone = {.reader = trace->reader, .hook = trace->hook};
    struct heap_route route = {.to = stops->at[0]};
    const struct heap_replay *replay = &arrival.cursor.replay;
    enum ttd_status status = heap_replay_to(&arrival, &alone, &route, error);
    for (size_t i = 0; i < stops->count && status == TTD_OK; i++) {
        if (i)
            status = heap_replay_on(&arrival, stops->at[i], error);
        totals[i].blocks += has_ended ? 0 : replay->live.count;
        totals[i].bytes += has_ended ? 0 : replay->live.bytes.low;
        totals[i].unknown_releases += replay->counts.unknown_releases;
        totals[i].overlaps += replay->counts.overlaps;
    }
    heap_arrival_free(&arrival);
    return status;
}

/* Only the events inside of a slice are the source's, so wrong releases are not compared there. */
static bool remake_is_same(const struct remake_totals *found, const struct remake_totals *expected,
                           bool is_slice)
{
    return found->blocks == expected->blocks && found->bytes == expected->bytes &&
           (is_slice || (found->unknown_releases == expected->unknown_releases &&
                         found->overlaps == expected->overlaps));
}

static enum ttd_status remake_check_blocks(const struct heap_trace *made,
                                           const struct heap_trace *sources, size_t count,
                                           const struct remake_range *range,
                                           const struct remake_result *result,
                                           struct ttd_error *error)
{
    struct remake_totals found[2] = {{0}, {0}};
    struct remake_totals expected[2] = {{0}, {0}};
    struct remake_stops stops = {.at = {ttd_position_max()}, .count = 1};
    if (range) {
        bool has_end = ttd_position_compare(range->to, ttd_position_max()) < 0;
        stops = (struct remake_stops){
            .at = {range->from, has_end ? heap_position_before(range->to) : range->to}, .count = 2};
    }
    enum ttd_status status = remake_add_totals(found, made, &stops, false, error);
    for (size_t i = 0; i < count && status == TTD_OK; i++)
        status = remake_add_totals(expected, &sources[i], &stops, result->ended[i], error);
    for (size_t i = 0; i < stops.count && status == TTD_OK; i++) {
        if (!remake_is_same(&found[i], &expected[i], range != NULL))
            status = remake_refuse(error, TTD_ERROR_UNSUPPORTED,
                                   "the new trace would not have the same live blocks: too many "
                                   "blocks have the same address, or calls are missing");
    }
    return status;
}

static enum ttd_status remake_check_records(const struct heap_trace *made,
                                            const struct remake_result *result,
                                            struct ttd_error *error)
{
    struct remake_result found = {.events = 0};
    enum ttd_status status = remake_read_checked(made, remake_see, &found, error);
    if (status != TTD_OK)
        return status;
    bool is_same = found.digest == result->digest &&
                   memcmp(found.records, result->records, sizeof found.records) == 0;
    return is_same ? TTD_OK
                   : remake_refuse(error, TTD_ERROR_CORRUPT,
                                   "the file does not have the bytes that were written into it");
}

enum ttd_status remake_check(const struct ttd_input *input, const struct heap_trace *sources,
                             size_t count, const struct remake_range *range,
                             struct remake_result *result, struct ttd_error *error)
{
    struct ttd_reader *reader;
    enum ttd_status status = ttd_reader_open(input, NULL, NULL, &reader, error);
    if (status != TTD_OK)
        return status;
    struct heap_trace made = {.reader = reader};
    status = remake_check_records(&made, result, error);
    if (status == TTD_OK)
        status = remake_check_blocks(&made, sources, count, range, result, error);
    result->bytes = ttd_reader_size(reader);
    ttd_reader_close(reader);
    return status;
}
