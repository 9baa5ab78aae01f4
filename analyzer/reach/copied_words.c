/* SPDX-License-Identifier: MIT */
#include "reach/stale.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/hash_map.h"
#include "base/sort.h"
#include "travel/replay_part.h"

/* The steps that a block keeps: enough for an array that doubles each time. */
#define COPIED_STEPS_MAX 32

/* ---- Steps ---- */

static void copied_steps_drop(struct copied_words *copied, uint32_t last)
{
    while (last) {
        uint32_t before = copied->steps[last].before;
        copied->steps[last].before = copied->unused;
        copied->unused = last;
        last = before;
    }
}

/* Takes a step from a block to the next one. Sets `*index` to it. */
static enum ttd_status copied_step_add(struct copied_words *copied, const struct heap_block *block,
                                       uint32_t *index)
{
    uint32_t before = block->user, depth = before ? copied->steps[before].depth + 1 : 1;
    bool is_too_long = depth > COPIED_STEPS_MAX;
    enum ttd_status status = TTD_OK;
    if (is_too_long)
        copied_steps_drop(copied, before);
    *index = copied->unused;
    if (*index) {
        copied->unused = copied->steps[*index].before;
    } else {
        size_t count = copied->step_count ? copied->step_count : 1;
        if (count >= UINT32_MAX)
            return TTD_ERROR_NO_MEMORY;
        status = grow_array((void **)&copied->steps, &copied->step_capacity, count + 1,
                            sizeof *copied->steps);
        if (status != TTD_OK)
            return status;
        *index = (uint32_t)count;
        copied->step_count = count + 1;
    }
    copied->steps[*index] = (struct copied_step){
        .address = block->address,
        .size = block->size,
        .event = block->event,
        .allocated = block->allocated,
        .before = is_too_long ? 0 : before,
        .depth = is_too_long ? 1 : depth,
        .is_written = is_too_long || heap_api_clears(block->api),
    };
    return TTD_OK;
}

/* Notes the origin of some words of a node, the block. */
static enum ttd_status copied_note(struct copied_words *copied, const struct copied_step *step,
                                   const struct heap_block *block, struct address_span rows)
{
    if (rows.first == rows.end || step->is_written)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&copied->origins, &copied->origin_capacity,
                                        copied->origin_count + 1, sizeof *copied->origins);
    if (status == TTD_OK)
        copied->origins[copied->origin_count++] =
            (struct copied_origin){.event = step->event,
                                   .allocated = step->allocated,
                                   .rows = rows,
                                   .shift = step->address - block->address};
    return status;
}

static uint64_t copied_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Goes back from a node, the block of an effect: the words that one step did not get from the step
 * before have their origin there. */
static enum ttd_status copied_go_back(struct copied_words *copied, struct stale_words *words,
                                      const struct heap_reach *reach, uint32_t node,
                                      const struct heap_block *block)
{
    uint32_t index = block->user;
    uint64_t end = copied_least(copied->steps[index].size, block->size);
    struct address_span rows = stale_words_of_node(words, &reach->graph, node, block->address, end);
    enum ttd_status status = TTD_OK;
    for (uint32_t row = rows.first; row < rows.end; row++)
        words->ages[row] = WORD_AGE_WRITTEN;
    while (index && rows.first < rows.end && status == TTD_OK) {
        const struct copied_step *step = &copied->steps[index];
        uint64_t begin = step->before ? copied_least(copied->steps[step->before].size, end) : 0;
        struct address_span earlier = address_marks_find(&words->words, block->address, begin);
        struct address_span own = {earlier.end < rows.end ? earlier.end : rows.end, rows.end};
        status = copied_note(copied, step, block, own);
        rows.end = own.first;
        end = begin;
        index = step->before;
    }
    return status;
}

static enum ttd_status copied_acquire(struct copied_words *copied, struct stale_words *words,
                                      struct heap_reach *reach, const struct heap_effect *effect)
{
    struct heap_block *block = effect->block;
    uint32_t node, index = 0;
    enum ttd_status status = copied_step_add(copied, effect->previous, &index);
    block->user = index;
    if (status != TTD_OK || (node = heap_nodes_of(&reach->nodes, block)) == HEAP_NO_NODE)
        return status;
    status = copied_go_back(copied, words, reach, node, block);
    copied_steps_drop(copied, index);
    block->user = 0;
    return status;
}

enum ttd_status copied_words_see(struct copied_words *copied, struct stale_words *words,
                                 struct heap_reach *reach, const struct heap_effect *effect)
{
    if (effect->kind == HEAP_ACQUIRED)
        return copied_acquire(copied, words, reach, effect);
    if (!effect->continues) {
        copied_steps_drop(copied, effect->block->user);
        effect->block->user = 0;
    }
    return TTD_OK;
}

void copied_words_free(struct copied_words *copied)
{
    free(copied->steps);
    free(copied->origins);
    *copied = (struct copied_words){.steps = NULL};
}

/* ---- Deciding ---- */

/* A word whose origin may have had a relic. */
struct copied_word {
    uint64_t address; /* in its origin */
    uint64_t event;
    struct ttd_position born; /* of the first block at its target's address */
    uint32_t row;
    uint32_t next; /* 1 more than the index of another one with this event */
};

struct copied_search {
    struct stale_words *words;
    const struct reach_survivors *survivors;
    struct copied_word *list;
    size_t count;
    size_t capacity;
    struct ttd_position last;
    /* From the event of an origin to the index of its first word. */
    struct hash_map by_event;
    /* The words by address, with their index in the list. */
    struct address_marks marks;
    uint32_t *rows; /* by index in the list, the row in the marks */
};

enum copied_field { COPIED_ADDRESS };

static enum ttd_status copied_list(struct copied_search *search, const struct copied_words *copied,
                                   const struct heap_reach *reach)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < copied->origin_count; i++) {
        const struct copied_origin *origin = &copied->origins[i];
        for (uint32_t row = origin->rows.first; row < origin->rows.end && status == TTD_OK; row++) {
            struct ttd_position born =
                stale_words_first_birth(search->words, &reach->nodes,
                                        stale_words_target(search->words, &reach->graph, row));
            if (ttd_position_compare(born, origin->allocated) >= 0)
                continue;
            if (ttd_position_compare(origin->allocated, search->last) > 0)
                search->last = origin->allocated;
            status = grow_array((void **)&search->list, &search->capacity, search->count + 1,
                                sizeof *search->list);
            if (status != TTD_OK)
                break;
            uint32_t next = map_get(&search->by_event, origin->event, 0);
            search->list[search->count++] = (struct copied_word){
                .address = origin->shift +
                           packed_table_get(&search->words->words.table, row, STALE_ADDRESS),
                .event = origin->event,
                .born = born,
                .row = row,
                .next = next + 1};
            status = map_set(&search->by_event, origin->event, 0, (uint32_t)(search->count - 1));
        }
    }
    return status;
}

static enum ttd_status copied_sort(struct copied_search *search)
{
    struct value_range range = value_range_none();
    struct sort_key *keys = malloc(2 * search->count * sizeof *keys);
    search->rows = malloc(search->count * sizeof *search->rows);
    search->marks.count = (uint32_t)search->count;
    if (!keys || !search->rows) {
        free(keys);
        return TTD_ERROR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < search->count; i++) {
        value_range_widen(&range, search->list[i].address);
        keys[i] = (struct sort_key){search->list[i].address, i};
    }
    sort_keys(keys, keys + search->count, search->count);
    enum ttd_status status =
        packed_table_init(&search->marks.table, search->count, &range, COPIED_ADDRESS + 1);
    for (uint32_t row = 0; row < search->count && status == TTD_OK; row++) {
        packed_table_set(&search->marks.table, row, COPIED_ADDRESS, keys[row].value);
        search->rows[keys[row].index] = row;
    }
    free(keys);
    return status == TTD_OK ? address_marks_begin(&search->marks) : status;
}

/* Looks at the words of an origin, at its allocation: whatever is released later was not there. */
static void copied_decide(struct copied_search *search, uint64_t event)
{
    uint32_t index = map_get(&search->by_event, event, 0);
    while (index != MAP_NONE) {
        const struct copied_word *word = &search->list[index];
        struct ttd_position released = address_marks_now(&search->marks, search->rows[index]);
        if (ttd_position_compare(released, word->born) > 0)
            search->words->ages[word->row] = WORD_AGE_RELIC;
        index = word->next - 1;
    }
}

static enum ttd_status copied_see_effect(void *context, const struct heap_effect *effect)
{
    struct copied_search *search = context;
    const struct heap_block *block = effect->block;
    if (effect->kind == HEAP_ACQUIRED)
        copied_decide(search, effect->event);
    else if (block)
        address_marks_note(&search->marks,
                           (struct address_note){block->address, block->size, effect->position});
    return TTD_OK;
}

static bool copied_survives(void *context, const struct heap_block *block)
{
    const struct copied_search *search = context;
    return reach_survivors_have(search->survivors, block);
}

static bool copied_meet(void *context, uint64_t address, uint64_t size)
{
    const struct copied_search *search = context;
    return address_marks_may_have(&search->marks, address, size);
}

/* An origin has its words: the replay shows its allocation, and the blocks that had their memory
 * before. */
static enum ttd_status copied_replay(struct copied_search *search, const struct heap_trace *trace,
                                     struct ttd_error *error)
{
    struct heap_observer observer = {.context = search,
                                     .effect = copied_see_effect,
                                     .survives = copied_survives,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_DESTROYED) |
                                                 HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_part_route route = {.memory = {search, copied_meet},
                                    .end = UINT64_MAX,
                                    .to = search->last,
                                    .tolerates_damage = true,
                                    .observer = &observer};
    return heap_replay_part(trace, &route, error);
}

enum ttd_status copied_words_decide(const struct copied_words *copied, struct stale_words *words,
                                    const struct heap_reach *reach,
                                    const struct reach_survivors *survivors,
                                    const struct heap_trace *trace, struct ttd_error *error)
{
    struct copied_search search = {.words = words, .survivors = survivors};
    map_init(&search.by_event);
    enum ttd_status status = copied_list(&search, copied, reach);
    if (status == TTD_OK && search.count) {
        status = copied_sort(&search);
        if (status == TTD_OK)
            status = copied_replay(&search, trace, error);
    }
    address_marks_free(&search.marks);
    map_free(&search.by_event);
    free(search.list);
    free(search.rows);
    return status;
}
