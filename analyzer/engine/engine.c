/* SPDX-License-Identifier: MIT */
#include "engine/engine.h"

#include <stdlib.h>

#include "analyses/chronicle/chronicle.h"
#include "analyses/state/fragmentation.h"
#include "base/grow.h"
#include "library/handle.h"

struct engine engine;

void engine_answer(void)
{
    engine.count = 0;
    engine.is_short = false;
}

void engine_add(uint64_t value)
{
    enum ttd_status status = grow_array((void **)&engine.values, &engine.capacity, engine.count + 1,
                                        sizeof *engine.values);
    engine.is_short |= status != TTD_OK;
    if (status == TTD_OK)
        engine.values[engine.count++] = value;
}

void engine_add_position(struct ttd_position position)
{
    engine_add(position.sequence);
    engine_add(position.steps);
}

size_t engine_end(void)
{
    return engine.is_short ? 0 : engine.count;
}

const uint64_t *engine_values(void)
{
    return engine.values;
}

void *engine_reserve(size_t size)
{
    engine_close();
    engine.trace = malloc(size + 1);
    return engine.trace;
}

static enum ttd_status engine_see_batch(void *context, const struct ttd_batch *batch)
{
    (void)context;
    if (batch->kind == TTD_KIND_EVENTS && batch->count)
        engine_progress((double)batch->u.events[0].number);
    return TTD_OK;
}

int engine_open(size_t size)
{
    struct ttdheap_options options = ttdheap_options_default();
    struct ttd_input input;
    options.reads_ahead = false;
    enum ttd_status status = ttd_input_memory(engine.trace, size, NULL, &input);
    if (status == TTD_OK)
        status = handle_make("trace", &options, &engine.heap);
    if (status == TTD_OK)
        status = handle_open(engine.heap, &input, NULL, &engine.error);
    if (status != TTD_OK)
        return (int)status;
    struct heap_trace trace = handle_trace(engine.heap);
    trace.hook = (struct heap_batch_hook){.batch = engine_see_batch};
    trace.is_checked = true;
    return (int)chronicle_make(&engine.chronicle, &trace,
                               engine.heap->is_closed ? engine.heap->end.events : 0, &engine.error);
}

void engine_close(void)
{
    ttdheap_close(engine.heap);
    chronicle_free(&engine.chronicle);
    free(engine.trace);
    free(engine.values);
    free(engine.given);
    free(engine.wanted);
    engine = (struct engine){.heap = NULL};
}

const char *engine_error(void)
{
    return engine.error.what ? engine.error.what : "";
}

uint32_t *engine_stacks(size_t count)
{
    free(engine.given);
    engine.given = calloc(count + 1, sizeof *engine.given);
    engine.given_count = count;
    return engine.given;
}

int engine_filter(void)
{
    ttd_id largest = 0;
    for (size_t i = 0; i < engine.given_count; i++)
        largest = engine.given[i] > largest ? engine.given[i] : largest;
    engine.wanted = calloc((size_t)largest + 1, sizeof *engine.wanted);
    if (!engine.wanted)
        return TTD_ERROR_NO_MEMORY;
    engine.wanted_count = (size_t)largest + 1;
    for (size_t i = 0; i < engine.given_count; i++)
        engine.wanted[engine.given[i]] = true;
    return TTD_OK;
}

uint32_t engine_find(uint64_t sequence, uint64_t steps)
{
    return chronicle_find(&engine.chronicle, (struct ttd_position){sequence, steps});
}

uint32_t engine_find_time(uint64_t time)
{
    return chronicle_find_time(&engine.chronicle, time);
}

uint32_t engine_find_event(uint64_t event)
{
    return chronicle_find_event(&engine.chronicle, event);
}

uint32_t engine_before(uint32_t moment)
{
    return chronicle_before(&engine.chronicle, moment);
}

uint32_t engine_after(uint32_t moment)
{
    return chronicle_after(&engine.chronicle, moment);
}

const char *engine_action(unsigned action)
{
    return ttd_action_name((enum ttd_action)action);
}

const char *engine_api(unsigned api)
{
    return ttd_api_name(api);
}

/* Sums and memory at a moment. */

/* Calls, read from the trace. */

static void engine_add_event(const struct ttd_event *event)
{
    engine_add(event->number);
    engine_add_position(event->time_start);
    engine_add_position(event->time_end);
    engine_add(event->wall_time);
    engine_add(event->action);
    engine_add(event->api);
    engine_add(event->thread);
    engine_add(event->stack);
    engine_add(event->heap);
    engine_add(event->address);
    engine_add(event->base_address);
    engine_add(event->size);
    engine_add(event->result);
}

size_t engine_events(uint64_t first, size_t count)
{
    struct call_list list = {.range = {.to = ttd_position_max(), .first = first, .max = count},
                             .next = UINT64_MAX};
    engine_answer();
    /* After a failure the page shows the calls before it. */
    (void)handle_read_calls(engine.heap, &list, &engine.error);
    for (size_t i = 0; i < list.count; i++)
        engine_add_event(&list.items[i]);
    free(list.items);
    free(list.parameters);
    return engine_end();
}

/* More cells than these are not drawn. */
#define CELLS_MAX (1 << 20)

static bool engine_wants_stack(const void *context, ttd_id stack)
{
    (void)context;
    return stack < engine.wanted_count && engine.wanted[stack];
}

static void engine_answer_add_series(const struct heap_tick_series *series)
{
    engine_add(series->change_count);
    for (size_t i = 0; i < series->change_count; i++) {
        const struct heap_tick_change *change = &series->changes[i];
        engine_add(series->records[change->record].key);
        engine_add((uint64_t)change->bytes);
        engine_add((uint64_t)change->blocks);
    }
}

size_t engine_sum(uint32_t from, uint32_t to, uint64_t event, uint64_t bytes, uint64_t blocks)
{
    struct heap_tick before = {.position = chronicle_position(&engine.chronicle, from),
                               .event = event,
                               .live = {.bytes = {.low = bytes}, .blocks = blocks}};
    struct chronicle_filter filter = {.wants = engine.wanted ? engine_wants_stack : NULL};
    struct chronicle_sums sums;
    engine_answer();
    enum ttd_status status = chronicle_sum(&engine.chronicle, (struct chronicle_range){from, to},
                                           &before, filter, &sums);
    const struct heap_tick *tick = &sums.tick;
    engine_add_position(tick->position);
    engine_add(tick->event);
    engine_add(tick->wall_time);
    engine_add(tick->live.bytes.low);
    engine_add(tick->live.blocks);
    engine_add(heap_sum_value(tick->peak));
    engine_add(tick->allocations);
    engine_add(heap_sum_value(tick->allocated));
    engine_add(tick->releases);
    for (int i = 0; i < HEAP_TICK_KEYS; i++)
        engine_answer_add_series(&sums.series[i]);
    chronicle_sums_free(&sums);
    return status == TTD_OK ? engine_end() : 0;
}

size_t engine_quadrants(uint32_t from, uint32_t to)
{
    struct chronicle_filter filter = {.wants = engine.wanted ? engine_wants_stack : NULL};
    struct chronicle_quadrants quadrants;
    engine_answer();
    enum ttd_status status = chronicle_quadrants_find(
        &engine.chronicle, (struct chronicle_range){from, to}, filter, &quadrants);
    for (int i = 0; i < HEAP_QUADRANTS; i++)
        engine_answer_add_series(&quadrants.series[i]);
    chronicle_quadrants_free(&quadrants);
    return status == TTD_OK ? engine_end() : 0;
}

size_t engine_unknown(uint32_t moment)
{
    struct chronicle *chronicle = &engine.chronicle;
    struct ttd_position before =
        heap_gaps_end(&chronicle->gaps, chronicle_position(chronicle, moment));
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; chronicle->gaps.count && i < chronicle->block_count; i++) {
        struct chronicle_life life = chronicle->lives[i];
        if (chronicle_is_live(life, moment) &&
            heap_is_unknown(chronicle->effects[life.begin].position, before)) {
            blocks++;
            bytes += chronicle->blocks[i].size;
        }
    }
    engine_answer();
    engine_add(blocks);
    engine_add(bytes);
    return engine_end();
}

/* ---- Regions ---- */

struct finding_regions {
    struct heap_fragmentation fragmentation;
    uint64_t gap;
    enum ttd_status status;
};

static bool engine_add_to_region(void *context, uint32_t number)
{
    struct finding_regions *finding = context;
    const struct chronicle_block *chronicle_block = &engine.chronicle.blocks[number];
    struct heap_block block = {.address = chronicle_block->address, .size = chronicle_block->size};
    finding->status = heap_fragmentation_add(&finding->fragmentation, &block, finding->gap);
    return finding->status == TTD_OK;
}

static void engine_answer_add_region(const struct heap_region *region)
{
    engine_add(region->begin);
    engine_add(region->last);
    engine_add(region->blocks);
    engine_add(region->used);
    engine_add(region->unused);
    engine_add(region->gaps);
    engine_add(region->largest_gap);
}

size_t engine_regions(uint32_t moment, uint64_t gap)
{
    struct finding_regions finding = {.gap = gap};
    finding.status = chronicle_sort(&engine.chronicle);
    engine_answer();
    if (finding.status == TTD_OK)
        chronicle_each_live(&engine.chronicle, moment, engine_add_to_region, &finding);
    heap_fragmentation_sum_up(&finding.fragmentation);
    engine_answer_add_region(&finding.fragmentation.total);
    for (size_t i = 0; i < finding.fragmentation.count; i++)
        engine_answer_add_region(&finding.fragmentation.regions[i]);
    heap_fragmentation_free(&finding.fragmentation);
    return finding.status == TTD_OK ? engine_end() : 0;
}

/* ---- Sparse pages ---- */

struct listing_blocks {
    struct heap_block *blocks;
    size_t count;
    size_t capacity;
    enum ttd_status status;
};

static bool engine_list_block(void *context, uint32_t number)
{
    struct listing_blocks *listing = context;
    const struct chronicle_block *block = &engine.chronicle.blocks[number];
    listing->status = grow_array((void **)&listing->blocks, &listing->capacity, listing->count + 1,
                                 sizeof *listing->blocks);
    if (listing->status != TTD_OK)
        return false;
    listing->blocks[listing->count++] =
        (struct heap_block){.address = block->address, .size = block->size, .stack = block->stack};
    return true;
}

static void engine_answer_add_sparse(const struct heap_sparse_pages *sparse)
{
    engine_add(sparse->pages);
    engine_add(sparse->sparse);
    engine_add(sparse->total.kept);
    engine_add(sparse->total.bytes);
    for (size_t i = 0; i < sparse->count; i++) {
        const struct heap_sparse_site *site = &sparse->sites[i];
        engine_add(site->key.stack);
        engine_add(site->kept);
        engine_add(site->blocks);
        engine_add(site->bytes);
    }
}

size_t engine_sparse(uint32_t moment)
{
    struct listing_blocks listing = {.status = chronicle_sort(&engine.chronicle)};
    struct heap_sparse_pages sparse;
    engine_answer();
    if (listing.status == TTD_OK)
        chronicle_each_live(&engine.chronicle, moment, engine_list_block, &listing);
    enum ttd_status status = listing.status;
    if (status == TTD_OK) {
        status = heap_sparse_pages_find(listing.blocks, listing.count, &sparse);
        engine_answer_add_sparse(&sparse);
        heap_sparse_pages_free(&sparse);
    }
    free(listing.blocks);
    return status == TTD_OK ? engine_end() : 0;
}

/* ---- Cells ---- */

enum { CELL_USED, CELL_BLOCKS, CELL_BLOCK, CELL_STACK, CELL_VALUES };

struct drawing {
    uint64_t first;
    uint64_t last;
    uint64_t size;
    /** By cell: the bytes that its largest block has in it. */
    uint64_t *most;
};

/* The last address of a block. Sizes come from the program, and may be nonsense. */
static uint64_t engine_answer_block_last(const struct chronicle_block *block)
{
    uint64_t reach = block->size ? block->size - 1 : 0;
    return reach > UINT64_MAX - block->address ? UINT64_MAX : block->address + reach;
}

static bool engine_draw(void *context, uint32_t number)
{
    const struct drawing *drawing = context;
    const struct chronicle_block *block = &engine.chronicle.blocks[number];
    uint64_t last = engine_answer_block_last(block);
    if (last < drawing->first)
        return true;
    if (block->address > drawing->last)
        return false;
    uint64_t from = block->address > drawing->first ? block->address - drawing->first : 0;
    uint64_t to = (last < drawing->last ? last : drawing->last) - drawing->first;
    for (uint64_t cell = from / drawing->size; cell <= to / drawing->size; cell++) {
        uint64_t begin = cell * drawing->size;
        uint64_t end = begin + (drawing->size - 1);
        uint64_t used = (to < end ? to : end) - (from > begin ? from : begin) + 1;
        uint64_t *values = &engine.values[cell * CELL_VALUES];
        /* Blocks within others cover the same bytes. */
        values[CELL_USED] +=
            used < drawing->size - values[CELL_USED] ? used : drawing->size - values[CELL_USED];
        values[CELL_BLOCKS]++;
        if (used > drawing->most[cell]) {
            drawing->most[cell] = used;
            values[CELL_BLOCK] = (uint64_t)number + 1;
            values[CELL_STACK] = block->stack;
        }
    }
    return true;
}

size_t engine_cells(uint32_t moment, uint64_t first, uint64_t last, uint64_t size)
{
    engine_answer();
    if (!size || last < first || (last - first) / size >= CELLS_MAX ||
        chronicle_sort(&engine.chronicle) != TTD_OK)
        return 0;
    size_t count = (size_t)((last - first) / size) + 1;
    for (size_t i = 0; i < count * CELL_VALUES; i++)
        engine_add(0);
    struct drawing drawing = {first, last, size, calloc(count, sizeof *drawing.most)};
    if (drawing.most && !engine.is_short)
        chronicle_each_live(&engine.chronicle, moment, engine_draw, &drawing);
    bool has_memory = drawing.most;
    free(drawing.most);
    return has_memory ? engine_end() : 0;
}

struct listing {
    uint64_t first;
    uint64_t last;
    size_t most;
};

static bool engine_answer_list_block(void *context, uint32_t number)
{
    const struct listing *listing = context;
    const struct chronicle_block *block = &engine.chronicle.blocks[number];
    if (block->address > listing->last || engine.count == listing->most)
        return false;
    if (engine_answer_block_last(block) >= listing->first)
        engine_add(number);
    return true;
}

size_t engine_blocks(uint32_t moment, uint64_t first, uint64_t last, size_t most)
{
    struct listing listing = {first, last, most};
    engine_answer();
    if (chronicle_sort(&engine.chronicle) == TTD_OK)
        chronicle_each_live(&engine.chronicle, moment, engine_answer_list_block, &listing);
    return engine_end();
}

size_t engine_history(uint64_t address, size_t most)
{
    const struct chronicle *chronicle = &engine.chronicle;
    uint64_t total = 0;
    engine_answer();
    for (size_t i = 0; i < chronicle->block_count; i++) {
        const struct chronicle_block *block = &chronicle->blocks[i];
        total += block->address <= address && address <= engine_answer_block_last(block);
    }
    engine_add(total);
    for (size_t i = 0, seen = 0; i < chronicle->block_count && seen < total; i++) {
        const struct chronicle_block *block = &chronicle->blocks[i];
        if (block->address > address || address > engine_answer_block_last(block))
            continue;
        if (total - seen++ <= most)
            engine_add(i);
    }
    return engine_end();
}

size_t engine_block(uint32_t number)
{
    const struct chronicle *chronicle = &engine.chronicle;
    engine_answer();
    if (number >= chronicle->block_count)
        return 0;
    const struct chronicle_block *block = &chronicle->blocks[number];
    struct chronicle_life life = chronicle->lives[number];
    bool has_ended = life.end != CHRONICLE_NONE;
    const struct chronicle_effect *begin = &chronicle->effects[life.begin];
    const struct chronicle_effect *end = has_ended ? &chronicle->effects[life.end] : begin;
    engine_add(block->address);
    engine_add(block->size);
    engine_add(block->stack);
    engine_add(block->thread);
    engine_add(block->heap);
    engine_add_position(begin->position);
    engine_add(begin->event);
    engine_add(has_ended);
    engine_add_position(end->position);
    engine_add(end->event);
    engine_add(has_ended && chronicle->kinds[life.end] == CHRONICLE_OVERLAPPED);
    return engine_end();
}
