/* SPDX-License-Identifier: MIT */
#include "analyses/memory/heap_memory.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/state/state.h"
#include "base/grow.h"
#include "common/search.h"
#include "heap/heap_live.h"
#include "heap/site_table.h"

/* The sweep through the blocks: those that have begun and not ended, the innermost last. */
struct sweep {
    struct heap_segments *segments;
    const struct heap_block *blocks;
    size_t *open;
    size_t open_count;
};

static uint64_t memory_segments_block_last(const struct heap_block *block)
{
    uint64_t last_offset = block->size ? block->size - 1 : 0;
    return last_offset > UINT64_MAX - block->address ? UINT64_MAX : block->address + last_offset;
}

bool heap_blocks_are_nested(const struct heap_block *blocks, size_t count)
{
    uint64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && blocks[i].address <= last)
            return true;
        last = memory_segments_block_last(&blocks[i]);
    }
    return false;
}

/* Begins a segment of the innermost open block. */
static void memory_begin_segment(struct sweep *sweep, uint64_t first)
{
    struct heap_segments *segments = sweep->segments;
    if (!segments->count || segments->items[segments->count - 1].first != first)
        segments->count++;
    segments->items[segments->count - 1] = (struct heap_segment){
        first, sweep->open_count ? sweep->open[sweep->open_count - 1] : SIZE_MAX};
}

/* Closes the innermost block, and blocks around it that end before it does, as in a damaged
 * trace. */
static void memory_close_one(struct sweep *sweep)
{
    uint64_t last = memory_segments_block_last(&sweep->blocks[sweep->open[--sweep->open_count]]);
    while (sweep->open_count &&
           memory_segments_block_last(&sweep->blocks[sweep->open[sweep->open_count - 1]]) <= last)
        sweep->open_count--;
    if (last != UINT64_MAX)
        memory_begin_segment(sweep, last + 1);
}

enum ttd_status heap_segments_find(struct heap_segments *segments, const struct heap_block *blocks,
                                   size_t count)
{
    struct sweep sweep = {
        .segments = segments, .blocks = blocks, .open = calloc(count + 1, sizeof *sweep.open)};
    /* Each block begins one segment, and ends at the begin of another. */
    *segments = (struct heap_segments){.items = calloc(2 * count + 1, sizeof *segments->items)};
    if (!sweep.open || !segments->items) {
        free(sweep.open);
        heap_segments_free(segments);
        return TTD_ERROR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        while (sweep.open_count &&
               memory_segments_block_last(&blocks[sweep.open[sweep.open_count - 1]]) <
                   blocks[i].address)
            memory_close_one(&sweep);
        sweep.open[sweep.open_count++] = i;
        memory_begin_segment(&sweep, blocks[i].address);
    }
    while (sweep.open_count)
        memory_close_one(&sweep);
    free(sweep.open);
    return TTD_OK;
}

void heap_segments_free(struct heap_segments *segments)
{
    free(segments->items);
    *segments = (struct heap_segments){.items = NULL};
}

size_t heap_segments_block(const struct heap_segments *segments, uint64_t address)
{
    size_t first = 0;
    size_t end = segments->count;
    SEARCH_SORTED(first, end, middle, segments->items[middle].first <= address);
    return first ? segments->items[first - 1].block : SIZE_MAX;
}

/* Keeps of the blocks of a state those that lie in the range. */
static void memory_take_blocks(struct heap_memory *memory, struct heap_state *state)
{
    const struct heap_memory_options *options = &memory->options;
    memory->blocks = state->blocks;
    state->blocks = NULL;
    for (size_t i = 0; i < state->block_count; i++) {
        const struct heap_block *block = &memory->blocks[i];
        if (options->keeps_all_blocks || heap_block_covers(block, options->first, options->last))
            memory->blocks[memory->block_count++] = *block;
    }
}

static enum ttd_status memory_find_contents(struct heap_memory *memory,
                                            const struct heap_trace *trace, struct ttd_error *error)
{
    struct contents_range range = {memory->options.first, memory->options.last, memory->options.at};
    enum ttd_status status = heap_snapshots_find(trace, &memory->snapshots, error);
    if (status == TTD_OK)
        status = contents_extents_find(trace, &memory->snapshots, &range, &memory->extents, error);
    if (status == TTD_OK)
        status = contents_pages_find(trace, &memory->pages, error);
    return status;
}

enum ttd_status heap_memory_find(const struct heap_trace *trace,
                                 const struct heap_memory_options *options,
                                 struct heap_memory *memory, struct ttd_error *error)
{
    struct heap_state state;
    struct heap_state_options blocks = {
        .at = options->at, .keeps_blocks = true, .confirms_blocks = true};
    *memory = (struct heap_memory){.options = *options};
    enum ttd_status status = heap_state_find(trace, &blocks, &state, error);
    if (status != TTD_OK)
        return status;
    memory->outcome = state.outcome;
    memory_take_blocks(memory, &state);
    heap_state_free(&state);
    if (heap_blocks_are_nested(memory->blocks, memory->block_count))
        status = heap_segments_find(&memory->segments, memory->blocks, memory->block_count);
    if (status == TTD_OK)
        status = memory_find_contents(memory, trace, error);
    if (status != TTD_OK)
        heap_memory_free(memory);
    return status;
}

void heap_memory_free(struct heap_memory *memory)
{
    heap_snapshots_free(&memory->snapshots);
    contents_extents_free(&memory->extents);
    contents_pages_free(&memory->pages);
    heap_segments_free(&memory->segments);
    free(memory->blocks);
    *memory = (struct heap_memory){.blocks = NULL};
}

const struct heap_block *heap_memory_block(const struct heap_memory *memory, uint64_t address)
{
    if (memory->segments.count) {
        size_t index = heap_segments_block(&memory->segments, address);
        return index != SIZE_MAX ? &memory->blocks[index] : NULL;
    }
    /* Finds the last block that begins at the address or before. No block lies in another, so only
     * that one can cover it. */
    size_t first = 0;
    size_t end = memory->block_count;
    SEARCH_SORTED(first, end, middle, memory->blocks[middle].address <= address);
    const struct heap_block *block = first ? &memory->blocks[first - 1] : NULL;
    return block && heap_block_covers(block, address, address) ? block : NULL;
}

bool heap_memory_is_older(const struct heap_memory *memory, const struct contents_part *part,
                          const struct heap_block *block)
{
    return part->state != CONTENTS_UNKNOWN &&
           ttd_position_compare(memory->snapshots.snapshots[part->snapshot].position,
                                block->allocated) < 0;
}

/** A search on its way through memory. */
struct seeker {
    struct heap_search *search;
    const struct heap_search_options *options;
    /** The addresses that words are looked for, and the size of a word. */
    uint64_t first;
    uint64_t last;
    size_t word_size;
    /** The end of the part before, shorter than a pattern, in the same snapshot: a match may begin
     * in one part and end in the next. */
    uint8_t carry[2 * HEAP_PATTERN_MAX];
    size_t carry_size;
    uint64_t next;
    uint32_t snapshot;
};

static enum ttd_status memory_search_add_match(struct seeker *seeker, uint64_t address,
                                               uint64_t value)
{
    struct heap_search *search = seeker->search;
    /* Counts on beyond the limit, so that the report can say how many are not shown. */
    search->total++;
    if (search->count == seeker->options->limit)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&search->matches, &search->capacity,
                                        search->count + 1, sizeof *search->matches);
    if (status != TTD_OK)
        return status;
    const struct heap_block *block = heap_memory_block(&search->memory, address);
    search->matches[search->count++] =
        (struct heap_match){.address = address,
                            .value = value,
                            .snapshot = seeker->snapshot,
                            .block = block ? (size_t)(block - search->memory.blocks) : SIZE_MAX};
    return TTD_OK;
}

/* Finds the pattern in bytes that begin at an address. */
static enum ttd_status memory_find_pattern(struct seeker *seeker, const uint8_t *bytes, size_t size,
                                           uint64_t address)
{
    const struct heap_search_options *options = seeker->options;
    const uint8_t *match = bytes;
    const uint8_t *end = bytes + size;
    enum ttd_status status = TTD_OK;
    while (
        status == TTD_OK && match < end &&
        (match = memmem(match, (size_t)(end - match), options->pattern, options->pattern_size))) {
        status = memory_search_add_match(seeker, address + (uint64_t)(match - bytes), 0);
        match++;
    }
    return status;
}

/* Keeps the last bytes of the carry and of a part for the next one. */
static void memory_search_keep_tail(struct seeker *seeker, const uint8_t *bytes, size_t size)
{
    size_t overlap = seeker->options->pattern_size - 1;
    if (size > overlap) {
        bytes += size - overlap;
        size = overlap;
    }
    size_t kept = seeker->carry_size + size > overlap ? overlap - size : seeker->carry_size;
    memmove(seeker->carry, seeker->carry + seeker->carry_size - kept, kept);
    memcpy(seeker->carry + kept, bytes, size);
    seeker->carry_size = kept + size;
}

/* Finds the patterns that begin before a part and end in it. */
static enum ttd_status memory_find_across(struct seeker *seeker, const uint8_t *bytes, size_t size,
                                          uint64_t address)
{
    size_t overlap = seeker->options->pattern_size - 1;
    size_t head = size < overlap ? size : overlap;
    if (!seeker->carry_size || !head)
        return TTD_OK;
    memcpy(seeker->carry + seeker->carry_size, bytes, head);
    return memory_find_pattern(seeker, seeker->carry, seeker->carry_size + head,
                               address - seeker->carry_size);
}

static enum ttd_status memory_search_pattern(struct seeker *seeker,
                                             const struct contents_part *part)
{
    static const uint8_t zeros[HEAP_PATTERN_MAX];
    uint64_t length = part->last - part->first;
    size_t size = part->data ? (size_t)length + 1 : sizeof zeros;
    /* A pattern is not all zeros: of zeros only the ends matter. */
    if (!part->data && length < sizeof zeros)
        size = (size_t)length + 1;
    const uint8_t *bytes = part->data ? part->data : zeros;
    if (part->first != seeker->next || part->snapshot != seeker->snapshot)
        seeker->carry_size = 0;
    seeker->snapshot = part->snapshot;
    enum ttd_status status = memory_find_across(seeker, bytes, size, part->first);
    if (status == TTD_OK && part->data)
        status = memory_find_pattern(seeker, bytes, size, part->first);
    memory_search_keep_tail(seeker, bytes, size);
    seeker->next = part->last + 1;
    return status;
}

static enum ttd_status memory_search_words(struct seeker *seeker, const struct contents_part *part)
{
    enum ttd_status status = TTD_OK;
    size_t word = seeker->word_size;
    seeker->snapshot = part->snapshot;
    /* Words at multiples of their size only, as compilers place them; a part begins at such an
     * address. */
    for (size_t i = 0; part->data && i <= part->last - part->first && status == TTD_OK; i += word) {
        uint64_t value = 0;
        for (size_t byte = 0; byte < word; byte++)
            value |= (uint64_t)part->data[i + byte] << 8 * byte;
        if (value >= seeker->first && value <= seeker->last)
            status = memory_search_add_match(seeker, part->first + i, value);
    }
    return status;
}

static enum ttd_status memory_search_part(struct seeker *seeker, const struct contents_part *part)
{
    struct heap_search *search = seeker->search;
    /* A part may be all of memory, whose size is one more than a number can have. */
    uint64_t size = heap_add(part->last - part->first, 1);
    if (part->state == CONTENTS_UNREADABLE || part->state == CONTENTS_DAMAGED)
        search->unreadable = heap_add(search->unreadable, size);
    if (part->state != CONTENTS_ZERO && part->state != CONTENTS_BYTES)
        return TTD_OK;
    search->searched = heap_add(search->searched, size);
    return seeker->options->kind == HEAP_SEARCH_PATTERN ? memory_search_pattern(seeker, part)
                                                        : memory_search_words(seeker, part);
}

/* Sets the addresses that words are looked for. */
static void memory_aim(struct seeker *seeker)
{
    const struct heap_search_options *options = seeker->options;
    seeker->first = seeker->last = options->address;
    if (options->kind != HEAP_SEARCH_POINTER)
        return;
    const struct heap_block *block = heap_memory_block(&seeker->search->memory, options->address);
    seeker->search->target = block;
    if (!block)
        return;
    uint64_t reach = block->size ? block->size - 1 : 0;
    seeker->first = block->address;
    seeker->last = reach > UINT64_MAX - block->address ? UINT64_MAX : block->address + reach;
}

static enum ttd_status memory_search_all(struct seeker *seeker, struct ttd_error *error)
{
    struct heap_memory *memory = &seeker->search->memory;
    struct contents_cursor cursor =
        contents_cursor_begin(&memory->extents, &memory->pages, 0, UINT64_MAX);
    struct contents_part part;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK) {
        status = contents_cursor_next(&cursor, &part, error);
        if (status == TTD_OK)
            status = memory_search_part(seeker, &part);
    }
    return status == TTD_END ? TTD_OK : status;
}

enum ttd_status heap_search_find(const struct heap_trace *trace,
                                 const struct heap_search_options *options,
                                 struct heap_search *search, struct ttd_error *error)
{
    struct heap_memory_options whole_heap = {
        .at = options->at, .first = 0, .last = UINT64_MAX, .keeps_all_blocks = true};
    struct seeker *seeker = malloc(sizeof *seeker);
    *search = (struct heap_search){.count = 0};
    if (!seeker)
        return TTD_ERROR_NO_MEMORY;
    *seeker = (struct seeker){.search = search,
                              .options = options,
                              .word_size = ttd_reader_trace(trace->reader)->pointer_size};
    enum ttd_status status = heap_memory_find(trace, &whole_heap, &search->memory, error);
    if (status == TTD_OK) {
        search->outcome = search->memory.outcome;
        memory_aim(seeker);
        if (!seeker->word_size)
            seeker->word_size = 8;
        status = memory_search_all(seeker, error);
    }
    if (status != TTD_OK)
        heap_search_free(search);
    free(seeker);
    return status;
}

void heap_search_free(struct heap_search *search)
{
    heap_memory_free(&search->memory);
    free(search->matches);
    *search = (struct heap_search){.count = 0};
}
