/* SPDX-License-Identifier: MIT */
#include "analyses/memory/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "heap/sort_blocks.h"
#include "heap/site_table.h"

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

static enum ttd_status search_add_match(struct seeker *seeker, uint64_t address, uint64_t value)
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
static enum ttd_status find_pattern(struct seeker *seeker, const uint8_t *bytes, size_t size,
                                    uint64_t address)
{
    const struct heap_search_options *options = seeker->options;
    const uint8_t *match = bytes;
    const uint8_t *end = bytes + size;
    enum ttd_status status = TTD_OK;
    while (
        status == TTD_OK && match < end &&
        (match = memmem(match, (size_t)(end - match), options->pattern, options->pattern_size))) {
        status = search_add_match(seeker, address + (uint64_t)(match - bytes), 0);
        match++;
    }
    return status;
}

/* Keeps the last bytes of the carry and of a part for the next one. */
static void search_keep_tail(struct seeker *seeker, const uint8_t *bytes, size_t size)
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
static enum ttd_status find_across(struct seeker *seeker, const uint8_t *bytes, size_t size,
                                   uint64_t address)
{
    size_t overlap = seeker->options->pattern_size - 1;
    size_t head = size < overlap ? size : overlap;
    if (!seeker->carry_size || !head)
        return TTD_OK;
    memcpy(seeker->carry + seeker->carry_size, bytes, head);
    return find_pattern(seeker, seeker->carry, seeker->carry_size + head,
                        address - seeker->carry_size);
}

static enum ttd_status search_pattern(struct seeker *seeker, const struct contents_part *part)
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
    enum ttd_status status = find_across(seeker, bytes, size, part->first);
    if (status == TTD_OK && part->data)
        status = find_pattern(seeker, bytes, size, part->first);
    search_keep_tail(seeker, bytes, size);
    seeker->next = part->last + 1;
    return status;
}

static enum ttd_status search_words(struct seeker *seeker, const struct contents_part *part)
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
            status = search_add_match(seeker, part->first + i, value);
    }
    return status;
}

static enum ttd_status search_part(struct seeker *seeker, const struct contents_part *part)
{
    struct heap_search *search = seeker->search;
    /* A part may be all of memory, whose size is one more than a number can have. */
    uint64_t size = heap_add(part->last - part->first, 1);
    if (part->state == CONTENTS_UNREADABLE || part->state == CONTENTS_DAMAGED)
        search->unreadable = heap_add(search->unreadable, size);
    if (part->state != CONTENTS_ZERO && part->state != CONTENTS_BYTES)
        return TTD_OK;
    search->searched = heap_add(search->searched, size);
    return seeker->options->kind == HEAP_SEARCH_PATTERN ? search_pattern(seeker, part)
                                                        : search_words(seeker, part);
}

/* Sets the addresses that words are looked for. */
static void aim(struct seeker *seeker)
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

static enum ttd_status search_all(struct seeker *seeker, struct ttd_error *error)
{
    struct heap_memory *memory = &seeker->search->memory;
    struct contents_cursor cursor =
        contents_cursor_begin(&memory->extents, &memory->pages, 0, UINT64_MAX);
    struct contents_part part;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK) {
        status = contents_cursor_next(&cursor, &part, error);
        if (status == TTD_OK)
            status = search_part(seeker, &part);
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
        aim(seeker);
        if (!seeker->word_size)
            seeker->word_size = 8;
        status = search_all(seeker, error);
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
