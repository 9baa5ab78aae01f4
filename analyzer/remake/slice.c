/* SPDX-License-Identifier: MIT */
/* The part of a trace between two positions. A first replay finds the blocks that are live at its
 * begin, by the numbers of their events; a second reading copies. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash_map.h"
#include "remake/copier.h"
#include "travel/replay_to.h"

/* The creation of a heap that was not destroyed. */
struct slice_heap {
    ttd_id heap;
    uint64_t event;
};

struct slicer {
    const struct heap_trace *trace;
    struct ttd_position from;
    /** The last position inside. */
    struct ttd_position last;
    struct copier copier;
    /** Events from before that are kept: new numbers, by old ones. */
    struct hash_map kept;
    struct slice_heap *heaps;
    size_t heap_count;
    size_t heap_capacity;
    /** Numbers of the snapshots inside, and of those among them that are yet to come. */
    struct hash_map snapshots;
    size_t snapshots_ahead;
    /** Addresses of the runtimes' list that are to stay, where the trace is cut at its end. */
    struct hash_map listed;
    /** Old number of the first event inside; UINT64_MAX if there is none yet. And of the first one
     * behind. */
    uint64_t first;
    uint64_t end;
    uint64_t before;
    uint64_t behind;
    bool has_lost_behind;
    bool has_begun;
    /** Of a kept reallocation. */
    uint64_t parameters[TTD_PARAMETERS_MAX];
};

/* Every key is a pair, so that the table needs no array up to the largest number. */
#define SLICE_KEY 1

static bool slice_is_before(const struct slicer *slicer, struct ttd_position position)
{
    return ttd_position_compare(position, slicer->from) < 0;
}

static bool slice_is_behind(const struct slicer *slicer, struct ttd_position position)
{
    return ttd_position_compare(position, slicer->last) > 0;
}

static bool slice_has_end(const struct slicer *slicer)
{
    return ttd_position_compare(slicer->last, ttd_position_max()) < 0;
}

static bool slice_has(const struct slicer *slicer, struct ttd_position position)
{
    return !slice_is_before(slicer, position) && !slice_is_behind(slicer, position);
}

/* Heaps, and the bounds of the range, as the first replay meets them. */

static enum ttd_status slice_create(struct slicer *slicer, const struct ttd_event *event)
{
    enum ttd_status status = grow_array((void **)&slicer->heaps, &slicer->heap_capacity,
                                        slicer->heap_count + 1, sizeof *slicer->heaps);
    if (status == TTD_OK)
        slicer->heaps[slicer->heap_count++] = (struct slice_heap){event->heap, event->number};
    return status;
}

static void slice_destroy(struct slicer *slicer, ttd_id heap)
{
    size_t count = 0;
    for (size_t i = 0; i < slicer->heap_count; i++) {
        if (slicer->heaps[i].heap != heap)
            slicer->heaps[count++] = slicer->heaps[i];
    }
    slicer->heap_count = count;
}

static enum ttd_status slice_note_event(struct slicer *slicer, const struct ttd_event *event)
{
    struct ttd_position position = ttd_event_position(event);
    if (slicer->end == UINT64_MAX && slice_is_behind(slicer, position))
        slicer->end = event->number;
    if (!slice_is_before(slicer, position)) {
        if (slicer->first == UINT64_MAX)
            slicer->first = event->number;
        return TTD_OK;
    }
    if (event->action == TTD_ACTION_CREATE && event->result)
        return slice_create(slicer, event);
    if (event->action == TTD_ACTION_DESTROY && event->result)
        slice_destroy(slicer, event->heap);
    return TTD_OK;
}

static enum ttd_status slice_note(void *context, const struct ttd_batch *batch)
{
    struct slicer *slicer = context;
    const struct heap_batch_hook *hook = &slicer->trace->hook;
    enum ttd_status status = hook->batch ? hook->batch(hook->context, batch) : TTD_OK;
    for (size_t i = 0; batch->kind == TTD_KIND_EVENTS && i < batch->count && status == TTD_OK; i++)
        status = slice_note_event(slicer, &batch->u.events[i]);
    return status;
}

/* Finds the snapshots in the range: their parts come before them. */
static enum ttd_status slice_find_snapshots(struct slicer *slicer, struct ttd_error *error)
{
    struct ttd_reader *reader = slicer->trace->reader;
    enum ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_SNAPSHOTS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        for (size_t i = 0; status == TTD_OK && batch.kind == TTD_KIND_SNAPSHOTS && i < batch.count;
             i++) {
            const struct ttd_snapshot *snapshot = &batch.u.snapshots[i];
            if (!slice_has(slicer, snapshot->position))
                continue;
            status = map_set(&slicer->snapshots, snapshot->number, SLICE_KEY, 1);
            slicer->snapshots_ahead++;
        }
    }
    return heap_is_over(status) ? TTD_OK : status;
}

/* Blocks to be kept. */

static enum ttd_status slice_keep(struct slicer *slicer, uint64_t event)
{
    return map_set(&slicer->kept, event, SLICE_KEY, 0);
}

static enum ttd_status slice_keep_all(struct slicer *slicer, const struct heap_replay *replay)
{
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &cursor)))
        status = slice_keep(slicer, block->event);
    for (size_t i = 0; i < replay->queue.count && status == TTD_OK; i++)
        status = slice_keep(slicer, replay->queue.items[i].block.event);
    for (size_t i = 0; i < slicer->heap_count && status == TTD_OK; i++)
        status = slice_keep(slicer, slicer->heaps[i].event);
    return status;
}

static bool slice_has_event(const struct slicer *slicer, uint64_t event)
{
    bool is_inside = event >= slicer->first && event < slicer->end;
    return is_inside || map_get(&slicer->kept, event, SLICE_KEY) != MAP_NONE;
}

/* The runtimes' list has the addresses of blocks that live at the end of the source: those whose
 * event is in the slice are listed there. */
static enum ttd_status slice_list(struct slicer *slicer, const struct heap_live *live)
{
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(live, &cursor))) {
        if (slice_has_event(slicer, block->event))
            status = map_set(&slicer->listed, block->address, SLICE_KEY, 1);
    }
    return status;
}

/* Replays to the begin; and to the end of the source, for the list, if the slice ends before. */
static enum ttd_status slice_find_blocks(struct slicer *slicer, struct ttd_error *error)
{
    struct heap_arrival arrival;
    struct heap_trace alone = *slicer->trace;
    struct heap_route route = {.to = heap_position_before(slicer->from)};
    alone.keyframes = NULL;
    alone.hook = (struct heap_batch_hook){.context = slicer, .batch = slice_note};
    enum ttd_status status = heap_replay_to(&arrival, &alone, &route, error);
    /* At 0:0 there is no position before. */
    if (status == TTD_OK && ttd_position_compare(slicer->from, ttd_position_min()) > 0)
        status = slice_keep_all(slicer, &arrival.cursor.replay);
    if (status == TTD_OK && slice_has_end(slicer))
        status = heap_replay_on(&arrival, ttd_position_max(), error);
    if (status == TTD_OK && slice_has_end(slicer))
        status = slice_list(slicer, &arrival.cursor.replay.live);
    heap_arrival_free(&arrival);
    return status;
}

/* Copying. */

static bool slice_wants_event(struct slicer *slicer, const struct ttd_event *event)
{
    struct ttd_position position = ttd_event_position(event);
    if (slice_is_behind(slicer, position)) {
        slicer->behind++;
        return false;
    }
    if (!slice_is_before(slicer, position))
        return true;
    bool is_kept = map_get(&slicer->kept, event->number, SLICE_KEY) != MAP_NONE;
    slicer->before += !is_kept;
    return is_kept;
}

/* Islands begin before the range, so events about clients and the recording of threads stay. */
static bool slice_wants_user_event(const struct slicer *slicer, const struct ttd_user_event *event)
{
    bool is_state = !memcmp(event->client, TTD_CLIENT_CLIENTS, sizeof event->client) ||
                    !memcmp(event->client, TTD_CLIENT_THREADS, sizeof event->client);
    return is_state ? !slice_is_behind(slicer, event->position)
                    : slice_has(slicer, event->position);
}

/* A loss that begins behind the range is part of the loss of all that is behind. */
static bool slice_wants_loss(struct slicer *slicer, const struct ttd_loss *loss)
{
    if (!slice_has_end(slicer) || ttd_position_compare(loss->last_good, slicer->last) < 0)
        return true;
    if (loss->count == TTD_UNKNOWN)
        slicer->has_lost_behind = true;
    else
        slicer->behind += loss->count;
    return false;
}

static bool slice_has_snapshot(const struct slicer *slicer, uint32_t number)
{
    return map_get(&slicer->snapshots, number, SLICE_KEY) != MAP_NONE;
}

static bool slice_wants_snapshot(struct slicer *slicer, uint32_t number)
{
    bool is_wanted = slice_has_snapshot(slicer, number);
    slicer->snapshots_ahead -= is_wanted;
    return is_wanted;
}

/* Returns the number of the snapshot that a record is a part of; 0 for none. */
static uint32_t slice_part_of(enum ttd_kind kind, const void *record)
{
    switch (kind) {
    case TTD_KIND_FRAMES:
        return ((const struct ttd_frames *)record)->snapshot;
    case TTD_KIND_REGIONS:
        return ((const struct ttd_regions *)record)->snapshot;
    case TTD_KIND_REFERENCES:
        return ((const struct ttd_references *)record)->snapshot;
    case TTD_KIND_CLASSES:
        return ((const struct ttd_classes *)record)->snapshot;
    case TTD_KIND_BLOCK_HEADERS:
        return ((const struct ttd_block_headers *)record)->snapshot;
    case TTD_KIND_MEMORY_MAP:
        return ((const struct ttd_memory_map *)record)->snapshot;
    default:
        return 0;
    }
}

static bool slice_wants_list(const struct slicer *slicer, const struct ttd_live_blocks *list)
{
    return list->list == TTD_BLOCKS_RUNTIME || slice_has(slicer, list->position);
}

/* Whether a record that is no event and no loss is in the slice. */
static bool slice_wants_record(struct slicer *slicer, enum ttd_kind kind, const void *record)
{
    uint32_t snapshot = slice_part_of(kind, record);
    if (snapshot)
        return slice_has_snapshot(slicer, snapshot);
    switch (kind) {
    case TTD_KIND_USER_EVENTS:
        return slice_wants_user_event(slicer, record);
    case TTD_KIND_FATAL_SIGNALS:
        return slice_has(slicer, ((const struct ttd_fatal_signal *)record)->position);
    case TTD_KIND_LIVE_BLOCKS:
        return slice_wants_list(slicer, record);
    case TTD_KIND_SNAPSHOTS:
        return slice_wants_snapshot(slicer, ((const struct ttd_snapshot *)record)->number);
    case TTD_KIND_PAGES:
        /* A snapshot may have pages of all snapshots before it, and ids have no gaps. */
        return slicer->snapshots_ahead != 0;
    default:
        return kind != TTD_KIND_STATES && kind != TTD_KIND_SUMS;
    }
}

static bool slice_wants(void *context, const struct ttd_batch *batch, const void *record)
{
    struct slicer *slicer = context;
    if (batch->kind == TTD_KIND_EVENTS)
        return slice_wants_event(slicer, record);
    if (batch->kind == TTD_KIND_LOSSES)
        return slice_wants_loss(slicer, record);
    bool is_wanted = slice_wants_record(slicer, batch->kind, record);
    slicer->copier.result->records_left_out += !is_wanted;
    return is_wanted;
}

/* The block that a kept reallocation has released is not in the slice. */
static enum ttd_status slice_change_event(void *context, struct ttd_event *event)
{
    struct slicer *slicer = context;
    if (!slice_is_before(slicer, ttd_event_position(event))) {
        if (!slicer->has_begun)
            slicer->first = event->number;
        slicer->has_begun = true;
        return TTD_OK;
    }
    slicer->copier.result->kept++;
    if (event->action == TTD_ACTION_REALLOC && event->base_address) {
        event->parameter_count = (uint32_t)ttd_event_parameters(event, slicer->parameters);
        event->parameters = event->parameter_count ? slicer->parameters : NULL;
        event->base_address = event->previous_address = 0;
    }
    return map_set(&slicer->kept, event->number, SLICE_KEY,
                   (uint32_t)slicer->copier.result->events);
}

static uint64_t slice_number(const struct slicer *slicer, uint64_t event)
{
    uint32_t kept = map_get(&slicer->kept, event, SLICE_KEY);
    if (kept != MAP_NONE)
        return kept;
    return event >= slicer->first && event < slicer->end
               ? event - slicer->first + slicer->copier.result->kept
               : TTD_UNKNOWN;
}

/* Lists name blocks by events, which have new numbers. */
static enum ttd_status slice_change_list(void *context, struct ttd_live_blocks *list,
                                         struct ttd_block *blocks)
{
    struct slicer *slicer = context;
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->list == TTD_BLOCKS_RUNTIME && slice_has_end(slicer) &&
            map_get(&slicer->listed, blocks[i].address, SLICE_KEY) == MAP_NONE)
            continue;
        blocks[count] = blocks[i];
        if (blocks[i].event != TTD_UNKNOWN)
            blocks[count].event = slice_number(slicer, blocks[i].event);
        count++;
    }
    list->count = count;
    return TTD_OK;
}

static enum ttd_status slice_see(void *context, const struct ttd_batch *batch)
{
    struct slicer *slicer = context;
    const struct heap_batch_hook *hook = &slicer->trace->hook;
    enum ttd_status status = hook->batch ? hook->batch(hook->context, batch) : TTD_OK;
    return status == TTD_OK ? copier_put(&slicer->copier, batch) : status;
}

/* States the calls that the slice lacks, in losses and for people. */
static enum ttd_status slice_state(struct slicer *slicer)
{
    char text[2 * TTD_POSITION_TEXT + 96];
    char from[TTD_POSITION_TEXT] = "";
    char last[TTD_POSITION_TEXT] = "";
    bool has_behind = slicer->behind || slicer->has_lost_behind;
    struct ttd_loss loss = {.reason = TTD_LOSS_LIMIT,
                            .count = slicer->before,
                            .last_good = ttd_position_min(),
                            .first_good = slicer->from};
    enum ttd_status status = TTD_OK;
    if (slicer->before)
        status = copier_put_loss(&slicer->copier, &loss);
    loss.count = slicer->has_lost_behind ? TTD_UNKNOWN : slicer->behind;
    loss.last_good = slicer->last;
    loss.first_good = ttd_position_invalid();
    if (status == TTD_OK && has_behind)
        status = copier_put_loss(&slicer->copier, &loss);
    if (status != TTD_OK || (!slicer->before && !has_behind))
        return status;
    ttd_position_format(slicer->from, from);
    ttd_position_format(slicer->last, last);
    snprintf(text, sizeof text, "calls %s%s%s%s%s (slice)", slicer->before ? "before " : "",
             slicer->before ? from : "",
             slicer->before ? ", but for blocks that were live then" : "",
             !has_behind      ? ""
             : slicer->before ? ", and after "
                              : "after ",
             has_behind ? last : "");
    return copier_put_fact(&slicer->copier, "unrecorded", text);
}

static enum ttd_status slice_copy(struct slicer *slicer, const struct ttd_output *output,
                                  struct ttd_error *error)
{
    struct copier *copier = &slicer->copier;
    enum ttd_status status = copier_open(copier, ttd_reader_trace(slicer->trace->reader), output);
    if (status != TTD_OK)
        return status;
    status = remake_read(slicer->trace, slice_see, slicer, error);
    if (status == TTD_OK)
        status = slice_state(slicer);
    struct ttd_end end = copier->end;
    if (slicer->behind || slicer->has_lost_behind)
        end =
            (struct ttd_end){.reason = TTD_END_REASON_NOT_RECORDED, .wall_time = copier->wall_time};
    copier->result->left_out = slicer->before + slicer->behind;
    return copier_close_writer(copier, status, &end);
}

enum ttd_status remake_slice(const struct heap_trace *trace, const struct remake_range *range,
                             const struct ttd_output *output, struct remake_result *result,
                             struct ttd_error *error)
{
    bool has_end = ttd_position_compare(range->to, ttd_position_max()) < 0;
    struct slicer slicer = {.trace = trace,
                            .from = range->from,
                            .last = has_end ? heap_position_before(range->to) : range->to,
                            .first = UINT64_MAX,
                            .end = UINT64_MAX};
    slicer.copier = (struct copier){.result = result,
                                    .error = error,
                                    .wants = slice_wants,
                                    .change_event = slice_change_event,
                                    .change_list = slice_change_list,
                                    .context = &slicer};
    *result = (struct remake_result){.events = 0};
    map_init(&slicer.kept);
    map_init(&slicer.snapshots);
    map_init(&slicer.listed);
    enum ttd_status status = remake_check_source(trace, result, error);
    if (status == TTD_OK)
        status = slice_find_snapshots(&slicer, error);
    if (status == TTD_OK)
        status = slice_find_blocks(&slicer, error);
    if (status == TTD_OK)
        status = slice_copy(&slicer, output, error);
    else
        output->close(output->context);
    copier_free(&slicer.copier);
    map_free(&slicer.kept);
    map_free(&slicer.snapshots);
    map_free(&slicer.listed);
    free(slicer.heaps);
    return status;
}
