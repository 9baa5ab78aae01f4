/* SPDX-License-Identifier: MIT */
#include "heap/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

/* Bytes of a block in a keyframe, before any was written. */
#define BLOCK_SIZE_GUESS 8

/* Blocks of a chunk. */
#define PART 65536

typedef struct index_maker {
    ttd_writer *writer;
    uint64_t spacing;
    heap_replay replay;
    heap_index_facts facts;
    /** The chunk of events at hand, and bytes and events since the last keyframe. */
    uint64_t chunk;
    uint64_t bytes;
    uint64_t last_event;
    /** Effect position of the last event, whether it had an effect or not. */
    ttd_position reached;
    /** What the last keyframe took. */
    uint64_t keyframe_bytes;
    uint64_t keyframe_blocks;
} index_maker;

static ttd_block block_of(const heap_block *block)
{
    return (ttd_block){.address = block->address,
                       .size = block->size,
                       .event = block->event,
                       .allocated = block->allocated,
                       .thread = block->thread,
                       .heap = block->heap,
                       .stack = block->stack,
                       .api = block->api};
}

/* Writes the blocks of `keys` in their order. */
static ttd_status write_list(index_maker *maker, const sort_key *keys, size_t count,
                             ttd_block *part)
{
    ttd_live_blocks list = {.list = TTD_BLOCKS_KEYFRAME,
                            .list_id = (uint32_t)maker->facts.keyframes + 1,
                            .position = maker->replay.position,
                            .blocks = part};
    size_t done = 0;
    do {
        list.count = count - done < PART ? count - done : PART;
        list.last = done + list.count == count;
        for (size_t i = 0; i < list.count; i++)
            part[i] = block_of(&maker->replay.live.blocks[keys[done + i].item]);
        ttd_status status = ttd_writer_live_blocks(maker->writer, &list);
        if (status != TTD_OK)
            return status;
        done += list.count;
    } while (done < count);
    return TTD_OK;
}

/* The live blocks by address. */
static ttd_status sort_blocks(const heap_live *live, sort_key *keys, sort_key *spare)
{
    size_t cursor = 0;
    size_t count = 0;
    const heap_block *block;
    while ((block = heap_live_each(live, &cursor)))
        keys[count++] = (sort_key){block->address, (uint32_t)(block - live->blocks)};
    sort_keys(keys, spare, count);
    return TTD_OK;
}

static ttd_status write_blocks(index_maker *maker)
{
    size_t count = (size_t)maker->replay.live.count;
    sort_key *keys = malloc((count + 1) * sizeof *keys);
    sort_key *spare = malloc((count + 1) * sizeof *spare);
    ttd_block *part = malloc(PART * sizeof *part);
    ttd_status status = keys && spare && part ? TTD_OK : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK)
        status = sort_blocks(&maker->replay.live, keys, spare);
    free(spare);
    if (status == TTD_OK)
        status = write_list(maker, keys, count, part);
    free(keys);
    free(part);
    return status;
}

static ttd_status write_keyframe(index_maker *maker)
{
    heap_keyframe keyframe = {.position = maker->replay.position,
                              .counts = maker->replay.counts,
                              .blocks = maker->replay.live.count};
    char text[HEAP_KEYFRAME_TEXT_MAX];
    ttd_metadata record = {.key = {HEAP_KEYFRAME_KEY, strlen(HEAP_KEYFRAME_KEY)},
                           .value = {text, heap_keyframe_print(&keyframe, text)}};
    uint64_t before = ttd_writer_bytes(maker->writer);
    ttd_status status = ttd_writer_metadata(maker->writer, &record);
    if (status == TTD_OK)
        status = write_blocks(maker);
    if (status != TTD_OK)
        return status;
    maker->facts.keyframes++;
    maker->keyframe_bytes = ttd_writer_bytes(maker->writer) - before;
    maker->keyframe_blocks = keyframe.blocks;
    maker->last_event = keyframe.counts.events;
    maker->bytes = 0;
    return TTD_OK;
}

static ttd_status write_peak(index_maker *maker)
{
    heap_peak peak = heap_replay_peak(&maker->replay);
    char text[HEAP_KEYFRAME_TEXT_MAX];
    ttd_metadata record = {.key = {HEAP_PEAK_KEY, strlen(HEAP_PEAK_KEY)},
                           .value = {text, heap_peak_print(&peak, text)}};
    return ttd_writer_metadata(maker->writer, &record);
}

static uint64_t guess_size(const index_maker *maker)
{
    double each = maker->keyframe_blocks
                      ? (double)maker->keyframe_bytes / (double)maker->keyframe_blocks
                      : BLOCK_SIZE_GUESS;
    return (uint64_t)((double)maker->replay.live.count * each);
}

static bool is_due(const index_maker *maker)
{
    uint64_t events = maker->replay.counts.events - maker->last_event;
    if (!maker->spacing)
        return events;
    return events >= maker->spacing && maker->bytes >= guess_size(maker);
}

/*
 * Whether the state is that of its position: no call is in flight, and none was counted that comes
 * after the last effect.
 */
static bool is_clean(const heap_replay *replay, ttd_position reached)
{
    return !replay->queue.count && ttd_position_compare(reached, replay->position) <= 0;
}

/* Between two chunks of events: a keyframe, if it is due and can be. */
static ttd_status pass_boundary(index_maker *maker, const ttd_batch *batch)
{
    bool due = is_due(maker);
    ttd_status status = TTD_OK;
    if (due)
        status = heap_replay_settle(&maker->replay, ttd_event_position(&batch->u.events[0]));
    if (status == TTD_OK && due && is_clean(&maker->replay, maker->reached))
        status = write_keyframe(maker);
    maker->chunk = batch->chunk.number;
    maker->bytes += batch->chunk.stored_size;
    return status;
}

static ttd_status add_batch(index_maker *maker, const ttd_batch *batch)
{
    ttd_status status = TTD_OK;
    size_t applied;
    if (batch->chunk.number != maker->chunk)
        status = pass_boundary(maker, batch);
    maker->reached = ttd_event_position(&batch->u.events[batch->count - 1]);
    return status == TTD_OK
               ? heap_replay_apply(&maker->replay, batch->chunk.number, batch->u.events,
                                   batch->count, ttd_position_max(), &applied)
               : status;
}

static ttd_status replay_all(index_maker *maker, ttd_reader *reader, const heap_batch_hook *hook,
                             ttd_error *error)
{
    heap_ahead ahead;
    heap_ahead_init(&ahead, reader);
    ttd_status status = ttd_reader_rewind(reader, HEAP_CURSOR_KINDS);
    while (status == TTD_OK) {
        ttd_batch batch;
        status = heap_ahead_next(&ahead, &batch, error);
        if (status == TTD_OK)
            status = hook->batch(hook->context, &batch);
        if (status == TTD_OK && batch.kind == TTD_KIND_LOSSES && batch.made_up) {
            *error = batch.error;
            status = TTD_ERROR_CORRUPT;
        }
        if (status == TTD_OK && batch.kind == TTD_KIND_EVENTS)
            status = add_batch(maker, &batch);
    }
    heap_ahead_free(&ahead);
    if (status == TTD_END)
        status = heap_replay_settle(&maker->replay, ttd_position_max());
    return status == TTD_OK ? write_peak(maker) : status;
}

ttd_status heap_index_write(ttd_reader *reader, uint64_t spacing, const heap_batch_hook *hook,
                            ttd_writer *writer, heap_index_facts *facts, ttd_error *error)
{
    index_maker maker = {.writer = writer, .spacing = spacing, .chunk = UINT64_MAX};
    ttd_status status = heap_replay_init(&maker.replay, NULL);
    if (status == TTD_OK)
        status = replay_all(&maker, reader, hook, error);
    maker.facts.events = maker.replay.counts.events;
    heap_replay_free(&maker.replay);
    if (status == TTD_OK)
        *facts = maker.facts;
    return status;
}
