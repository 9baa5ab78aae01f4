/* SPDX-License-Identifier: MIT */
#include "reach/inherited.h"

#include <stdlib.h>

struct search {
    struct reach_builder *builder;
    /** By word: the first one from there on that no block was seen over, itself if so. As many as
     * there are words, and one more. */
    size_t *next;
};

bool reach_is_inheriting(const struct ttd_reader *reader)
{
    return ttd_reader_trace(reader)->flags & (TTD_TRACE_INHERITS | TTD_TRACE_ATTACHED);
}

static uint64_t inherited_word_address(const struct reach_builder *builder,
                                       const struct ttd_reference *reference)
{
    return builder->reach->regions[reference->region - 1].begin + reference->offset;
}

/* The first word at an address or behind it. Words come in the order of addresses, since regions
 * do; where they do not, which only a made-up trace has, some are missed and count as roots. */
static size_t find_word(const struct reach_builder *builder, uint64_t address)
{
    size_t low = 0, high = builder->between_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (inherited_word_address(builder, &builder->between[middle]) < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first word from `word` on that no block was seen over. Shortens the way there. */
static size_t next_free(const struct search *search, size_t word)
{
    size_t end = word;
    while (search->next[end] != end)
        end = search->next[end];
    while (search->next[word] != end) {
        size_t following = search->next[word];
        search->next[word] = end;
        word = following;
    }
    return end;
}

static enum ttd_status inherited_see_effect(void *context, const struct heap_effect *effect)
{
    const struct search *search = context;
    const struct reach_builder *builder = search->builder;
    if (effect->kind != HEAP_ACQUIRED || !effect->block->size)
        return TTD_OK;
    uint64_t begin = effect->block->address, last = begin + effect->block->size - 1;
    size_t word = next_free(search, find_word(builder, begin));
    while (word < builder->between_count &&
           inherited_word_address(builder, &builder->between[word]) <= last) {
        search->next[word] = word + 1;
        word = next_free(search, word + 1);
    }
    return TTD_OK;
}

static enum ttd_status add_roots(const struct search *search)
{
    struct reach_builder *builder = search->builder;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < builder->between_count && status == TTD_OK; i++) {
        if (search->next[i] == i)
            status = reach_builder_add_root(builder, &builder->between[i], 0);
    }
    return status;
}

enum ttd_status reach_inherited_apply(struct reach_builder *builder, const struct heap_trace *trace,
                                      struct ttd_error *error)
{
    struct search search = {.builder = builder};
    struct heap_observer observer = {.context = &search,
                                     .effect = inherited_see_effect,
                                     .unwanted = ~HEAP_EFFECT_BIT(HEAP_ACQUIRED)};
    struct heap_route route = {.to = builder->reach->snapshot.position, .observer = &observer};
    struct heap_arrival arrival;
    if (!builder->between_count)
        return TTD_OK;
    search.next = malloc((builder->between_count + 1) * sizeof *search.next);
    if (!search.next)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i <= builder->between_count; i++)
        search.next[i] = i;
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    heap_arrival_free(&arrival);
    if (status == TTD_OK)
        status = add_roots(&search);
    free(search.next);
    return status;
}
