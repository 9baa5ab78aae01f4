/* SPDX-License-Identifier: MIT */
#include "heap/keyframes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define ACTIONS (TTD_ACTION_DESTROY + 1)

/* Numbers in the values of records. */
#define NUMBERS      (8 + ACTIONS)
#define PEAK_NUMBERS 5

/* Blocks whose entries are fetched before they are needed. */
#define AHEAD 12

/* ---- Records ---- */

/* The numbers of a record, in their order. */
static void list_numbers(heap_keyframe *keyframe, uint64_t *numbers[NUMBERS])
{
    heap_counts *counts = &keyframe->counts;
    size_t n = 0;
    numbers[n++] = &keyframe->position.sequence;
    numbers[n++] = &keyframe->position.steps;
    numbers[n++] = &keyframe->blocks;
    numbers[n++] = &counts->events;
    numbers[n++] = &counts->failed;
    numbers[n++] = &counts->unfinished;
    numbers[n++] = &counts->unknown_releases;
    numbers[n++] = &counts->overlaps;
    for (size_t i = 0; i < ACTIONS; i++)
        numbers[n++] = &counts->actions[i];
}

static void list_peak_numbers(heap_peak *peak, uint64_t *numbers[PEAK_NUMBERS])
{
    numbers[0] = &peak->position.sequence;
    numbers[1] = &peak->position.steps;
    numbers[2] = &peak->bytes.high;
    numbers[3] = &peak->bytes.low;
    numbers[4] = &peak->blocks;
}

static size_t print_numbers(uint64_t *const *numbers, size_t count,
                            char text[HEAP_KEYFRAME_TEXT_MAX])
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += (size_t)snprintf(text + size, HEAP_KEYFRAME_TEXT_MAX - size, "%s%" PRIu64,
                                 i ? " " : "", *numbers[i]);
    return size;
}

size_t heap_keyframe_print(const heap_keyframe *keyframe, char text[HEAP_KEYFRAME_TEXT_MAX])
{
    heap_keyframe copy = *keyframe;
    uint64_t *numbers[NUMBERS];
    list_numbers(&copy, numbers);
    return print_numbers(numbers, NUMBERS, text);
}

size_t heap_peak_print(const heap_peak *peak, char text[HEAP_KEYFRAME_TEXT_MAX])
{
    heap_peak copy = *peak;
    uint64_t *numbers[PEAK_NUMBERS];
    list_peak_numbers(&copy, numbers);
    return print_numbers(numbers, PEAK_NUMBERS, text);
}

static bool parse_number(ttd_string *text, uint64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < text->size && text->data[i] >= '0' && text->data[i] <= '9'; i++) {
        unsigned digit = (unsigned)(text->data[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (!i || (i < text->size && text->data[i] != ' '))
        return false;
    size_t taken = i < text->size ? i + 1 : i;
    *text = (ttd_string){text->data + taken, text->size - taken};
    *number = value;
    return true;
}

/* The numbers that a value consists of, and nothing else. */
static bool parse_numbers(ttd_string text, uint64_t *const *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!parse_number(&text, numbers[i]))
            return false;
    return !text.size;
}

/* ---- Opening ---- */

static bool has_key(const ttd_metadata *record, const char *key)
{
    return record->key.size == strlen(key) && memcmp(record->key.data, key, strlen(key)) == 0;
}

static ttd_status add_keyframe(heap_keyframes *keyframes, ttd_string text)
{
    uint64_t *numbers[NUMBERS];
    ttd_status status = grow_array((void **)&keyframes->items, &keyframes->capacity,
                                   keyframes->count + 1, sizeof *keyframes->items);
    if (status != TTD_OK)
        return status;
    heap_keyframe *keyframe = &keyframes->items[keyframes->count];
    *keyframe = (heap_keyframe){.blocks = 0};
    list_numbers(keyframe, numbers);
    if (!parse_numbers(text, numbers, NUMBERS) || !ttd_position_is_valid(keyframe->position))
        return TTD_ERROR_CORRUPT;
    bool rises = !keyframes->count ||
                 (ttd_position_compare(keyframe[-1].position, keyframe->position) <= 0 &&
                  keyframe[-1].counts.events < keyframe->counts.events);
    keyframes->count++;
    return rises ? TTD_OK : TTD_ERROR_CORRUPT;
}

static ttd_status set_peak(heap_keyframes *keyframes, ttd_string text)
{
    uint64_t *numbers[PEAK_NUMBERS];
    list_peak_numbers(&keyframes->peak, numbers);
    keyframes->has_peak = true;
    return parse_numbers(text, numbers, PEAK_NUMBERS) &&
                   ttd_position_is_valid(keyframes->peak.position)
               ? TTD_OK
               : TTD_ERROR_CORRUPT;
}

static ttd_status add_records(heap_keyframes *keyframes, const ttd_batch *batch)
{
    ttd_status status = TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        const ttd_metadata *record = &batch->u.metadata[i];
        if (has_key(record, HEAP_KEYFRAME_KEY))
            status = add_keyframe(keyframes, record->value);
        else if (has_key(record, HEAP_PEAK_KEY))
            status = set_peak(keyframes, record->value);
    }
    return status;
}

static ttd_status read_records(heap_keyframes *keyframes)
{
    ttd_status status = ttd_reader_rewind(keyframes->sidecar, TTD_KIND_BIT(TTD_KIND_METADATA));
    while (status == TTD_OK) {
        ttd_batch batch;
        status = ttd_reader_next(keyframes->sidecar, &batch, NULL);
        if (status == TTD_OK)
            status = add_records(keyframes, &batch);
    }
    return status == TTD_END ? TTD_OK : status;
}

/* Finds the first chunk of each list: lists come in the order of their records. */
static ttd_status find_lists(heap_keyframes *keyframes)
{
    size_t found = 0;
    uint64_t left = 0;
    ttd_status status = ttd_reader_rewind(keyframes->sidecar, 0);
    while (status == TTD_OK) {
        ttd_chunk chunk;
        status = ttd_reader_next_chunk(keyframes->sidecar, &chunk, NULL);
        if (status != TTD_OK || chunk.kind != TTD_KIND_LIVE_BLOCKS)
            continue;
        if (!left) {
            if (found == keyframes->count)
                return TTD_ERROR_CORRUPT;
            left = keyframes->items[found].blocks;
            keyframes->items[found++].chunk = chunk.number;
        }
        if (chunk.item_count > left)
            return TTD_ERROR_CORRUPT;
        left -= chunk.item_count;
    }
    if (status != TTD_END)
        return status;
    return found == keyframes->count && !left ? TTD_OK : TTD_ERROR_CORRUPT;
}

static bool belongs_to(ttd_reader *sidecar, ttd_reader *trace)
{
    ttd_trace wanted;
    ttd_end end;
    const ttd_trace *has = ttd_reader_trace(sidecar);
    return ttd_reader_tie(trace, &wanted) == TTD_OK && ttd_reader_end(sidecar, &end) == TTD_OK &&
           (has->flags & TTD_TRACE_DERIVED) && wanted.source_hash &&
           has->source_trace_id == wanted.source_trace_id &&
           has->source_size == wanted.source_size && has->source_hash == wanted.source_hash;
}

ttd_status heap_keyframes_open(ttd_reader *sidecar, ttd_reader *trace, heap_keyframes *keyframes)
{
    *keyframes = (heap_keyframes){.sidecar = sidecar};
    ttd_status status = belongs_to(sidecar, trace) ? TTD_OK : TTD_ERROR_CORRUPT;
    if (status == TTD_OK)
        status = read_records(keyframes);
    if (status == TTD_OK)
        status = find_lists(keyframes);
    if (status != TTD_OK)
        heap_keyframes_close(keyframes);
    return status;
}

void heap_keyframes_close(heap_keyframes *keyframes)
{
    ttd_reader_close(keyframes->sidecar);
    free(keyframes->items);
    *keyframes = (heap_keyframes){.sidecar = NULL};
}

const heap_keyframe *heap_keyframes_before(const heap_keyframes *keyframes, ttd_position position)
{
    size_t low = 0;
    size_t high = keyframes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ttd_position_compare(keyframes->items[middle].position, position) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &keyframes->items[low - 1] : NULL;
}

/* ---- Restoring ---- */

static ttd_status restore_block(heap_live *live, const heap_keyframe *keyframe,
                                const ttd_block *block)
{
    uint32_t entry;
    heap_acquisition acquisition;
    if (block->event >= keyframe->counts.events ||
        ttd_position_compare(block->allocated, keyframe->position) > 0)
        return TTD_ERROR_CORRUPT;
    ttd_status status =
        heap_live_entry(live, block->address, heap_live_hash(live, block->address), &entry);
    if (status == TTD_OK)
        status = heap_live_acquire(live, entry, block->heap, block->size, &acquisition);
    if (status != TTD_OK)
        return status;
    if (acquisition.replaced)
        return TTD_ERROR_CORRUPT;
    acquisition.block->size = block->size;
    acquisition.block->event = block->event;
    acquisition.block->allocated = block->allocated;
    acquisition.block->stack = block->stack;
    acquisition.block->heap = block->heap;
    acquisition.block->thread = block->thread;
    acquisition.block->user = 0;
    acquisition.block->api = block->api;
    acquisition.block->action = TTD_ACTION_ALLOC;
    return TTD_OK;
}

static ttd_status restore_blocks(heap_live *live, const heap_keyframe *keyframe,
                                 const ttd_live_blocks *list)
{
    ttd_status status = TTD_OK;
    if (list->list != TTD_BLOCKS_KEYFRAME ||
        ttd_position_compare(list->position, keyframe->position) != 0 ||
        list->count > keyframe->blocks - live->count)
        return TTD_ERROR_CORRUPT;
    for (size_t i = 0; i < list->count && status == TTD_OK; i++) {
        if (i + AHEAD < list->count)
            heap_live_prefetch(live, heap_live_hash(live, list->blocks[i + AHEAD].address));
        status = restore_block(live, keyframe, &list->blocks[i]);
    }
    return status;
}

/* Goes to a chunk of the sidecar, from header to header. */
static ttd_status go_to(ttd_reader *sidecar, uint64_t number)
{
    ttd_chunk chunk = {.number = 0};
    ttd_status status = ttd_reader_rewind(sidecar, TTD_KIND_BIT(TTD_KIND_LIVE_BLOCKS));
    while (status == TTD_OK && chunk.number + 1 < number)
        status = ttd_reader_next_chunk(sidecar, &chunk, NULL);
    return status;
}

ttd_status heap_keyframes_restore(const heap_keyframes *keyframes, const heap_keyframe *keyframe,
                                  heap_replay *replay)
{
    ttd_status status = heap_replay_reset(replay);
    /* What the file cannot hold is not made room for. */
    uint64_t room = ttd_reader_size(keyframes->sidecar);
    if (status == TTD_OK)
        status =
            heap_live_reserve(&replay->live, keyframe->blocks < room ? keyframe->blocks : room);
    if (status == TTD_OK)
        status = go_to(keyframes->sidecar, keyframe->chunk);
    while (status == TTD_OK && replay->live.count < keyframe->blocks) {
        ttd_batch batch;
        status = ttd_reader_next(keyframes->sidecar, &batch, NULL);
        if (status == TTD_OK)
            status = restore_blocks(&replay->live, keyframe, batch.u.live_blocks);
    }
    replay->counts = keyframe->counts;
    replay->position = keyframe->position;
    return status == TTD_END ? TTD_ERROR_CORRUPT : status;
}
