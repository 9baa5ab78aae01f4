/* SPDX-License-Identifier: MIT */
#include "travel/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "travel/keyframes.h"

#define LIST_KINDS (TTD_KIND_BIT(TTD_KIND_LIVE_BLOCKS) | TTD_KIND_BIT(TTD_KIND_SUMS))

/* ---- Reading the index ---- */

static enum ttd_status index_check_differ(struct heap_index_check *check,
                                          const struct heap_index_records *records,
                                          const char *what)
{
    const struct ttd_chunk *chunk = records->is_over ? NULL : &records->batch.chunk;
    check->difference = (struct ttd_error){.status = TTD_ERROR_CORRUPT,
                                           .offset = chunk ? chunk->offset : TTD_NOWHERE,
                                           .chunk = chunk ? chunk->number : TTD_NOWHERE,
                                           .what = what};
    return TTD_ERROR_CORRUPT;
}

/* Reads the next batch. After the last one `is_over` is set. */
static enum ttd_status index_check_read_batch(struct heap_index_check *check,
                                              struct heap_index_records *records)
{
    struct ttd_error error = {.what = "", .offset = TTD_NOWHERE, .chunk = TTD_NOWHERE};
    enum ttd_status status = ttd_reader_next(records->reader, &records->batch, &error);
    records->taken_count = 0;
    records->is_over = status != TTD_OK;
    if (records->is_over && status != TTD_END) {
        error.status = status;
        check->difference = error;
        return status;
    }
    return TTD_OK;
}

static size_t index_check_count_records(const struct ttd_batch *batch)
{
    return batch->kind == TTD_KIND_LIVE_BLOCKS ? batch->u.live_blocks->count : batch->count;
}

/* Goes on to a batch that has a record left. */
static enum ttd_status index_check_fill(struct heap_index_check *check,
                                        struct heap_index_records *records)
{
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && !records->is_over &&
           records->taken_count >= index_check_count_records(&records->batch))
        status = index_check_read_batch(check, records);
    return status;
}

/* Goes on to the next state that is, or is not, of the peak. */
static enum ttd_status index_check_find_state(struct heap_index_check *check,
                                              struct heap_index_records *records, bool is_peak)
{
    enum ttd_status status = index_check_fill(check, records);
    while (status == TTD_OK && !records->is_over &&
           (records->batch.u.states[records->taken_count].form == TTD_STATE_PEAK) != is_peak) {
        records->taken_count++;
        status = index_check_fill(check, records);
    }
    return status;
}

static enum ttd_status index_check_begin(struct heap_index_check *check,
                                         struct heap_index_records *records,
                                         struct ttd_reader *reader, uint32_t kinds)
{
    enum ttd_status status = ttd_reader_rewind(reader, kinds);
    records->reader = reader;
    return status == TTD_OK ? index_check_read_batch(check, records) : status;
}

enum ttd_status heap_index_check_init(struct heap_index_check *check,
                                      struct ttd_reader *const readers[3])
{
    *check = (struct heap_index_check){.compared = 0};
    uint32_t states = TTD_KIND_BIT(TTD_KIND_STATES);
    enum ttd_status status = index_check_begin(check, &check->states, readers[0], states);
    if (status == TTD_OK)
        status = index_check_find_state(check, &check->states, false);
    if (status == TTD_OK)
        status = index_check_begin(check, &check->lists, readers[1], LIST_KINDS);
    if (status == TTD_OK)
        status = index_check_begin(check, &check->peaks, readers[2], states);
    return status;
}

const struct ttd_state *heap_index_check_next(const struct heap_index_check *check)
{
    return check->states.is_over ? NULL : &check->states.batch.u.states[check->states.taken_count];
}

/* ---- States ---- */

static bool index_check_is_same(struct ttd_position a, struct ttd_position b)
{
    return ttd_position_compare(a, b) == 0;
}

static bool index_check_have_same_counts(const struct ttd_state *a, const struct ttd_state *b)
{
    return a->next_event == b->next_event && a->events == b->events && a->failed == b->failed &&
           a->unfinished == b->unfinished && a->unknown_releases == b->unknown_releases &&
           a->overlaps == b->overlaps && memcmp(a->actions, b->actions, sizeof a->actions) == 0;
}

/* Returns the name of the first difference, or NULL. */
static const char *index_check_compare_states(const struct ttd_state *recorded,
                                              const struct ttd_state *state)
{
    if (!index_check_is_same(recorded->position, state->position))
        return "a state of the heap is at another position than in the trace";
    if (!index_check_have_same_counts(recorded, state))
        return "a state of the heap has other counts of events than the trace";
    if (recorded->blocks != state->blocks)
        return "a state of the heap has another number of blocks than in the trace";
    if (recorded->form == TTD_STATE_SUMMARY &&
        (recorded->sums != state->sums || !index_check_is_same(recorded->end, state->end)))
        return "a summary has another number of sums, or another end, than in the trace";
    return NULL;
}

/* The peak may be left out. */
static enum ttd_status check_peaks(struct heap_index_check *check, const struct ttd_state *state)
{
    struct heap_index_records *records = &check->peaks;
    enum ttd_status status = index_check_find_state(check, records, true);
    while (status == TTD_OK && !records->is_over) {
        const struct ttd_state *recorded = &records->batch.u.states[records->taken_count];
        if (!index_check_is_same(recorded->position, state->position) ||
            recorded->blocks != state->blocks || recorded->bytes != state->bytes ||
            recorded->bytes_high != state->bytes_high)
            return index_check_differ(check, records, "the peak differs from the trace's");
        check->compared++;
        records->taken_count++;
        status = index_check_find_state(check, records, true);
    }
    return status;
}

enum ttd_status heap_index_check_state(struct heap_index_check *check,
                                       const struct ttd_state *state)
{
    if (state->form == TTD_STATE_PEAK)
        return check_peaks(check, state);
    const struct ttd_state *recorded = heap_index_check_next(check);
    if (!recorded || recorded->form != state->form)
        return heap_index_check_misplaced(check);
    const char *difference = index_check_compare_states(recorded, state);
    if (difference)
        return index_check_differ(check, &check->states, difference);
    check->compared++;
    check->states.taken_count++;
    return index_check_find_state(check, &check->states, false);
}

enum ttd_status heap_index_check_misplaced(struct heap_index_check *check)
{
    return index_check_differ(check, &check->states,
                              "a state of the heap is where the trace has no such state");
}

/* ---- Lists of blocks ---- */

static bool index_check_are_same_blocks(const struct ttd_block *a, const struct ttd_block *b)
{
    return a->address == b->address && a->size == b->size && a->event == b->event &&
           index_check_is_same(a->allocated, b->allocated) && a->thread == b->thread &&
           a->heap == b->heap && a->stack == b->stack && a->api == b->api;
}

static bool index_check_is_of_list(const struct heap_index_records *records,
                                   const struct ttd_live_blocks *list)
{
    const struct ttd_live_blocks *recorded = records->batch.u.live_blocks;
    return !records->is_over && records->batch.kind == TTD_KIND_LIVE_BLOCKS &&
           recorded->list == list->list && index_check_is_same(recorded->position, list->position);
}

enum ttd_status heap_index_check_blocks(struct heap_index_check *check,
                                        const struct ttd_live_blocks *list)
{
    const char *difference = "a list of live blocks differs from the trace's";
    struct heap_index_records *records = &check->lists;
    /* An empty list is a chunk without blocks. */
    if (!list->count && index_check_is_of_list(records, list) &&
        !records->batch.u.live_blocks->count)
        return index_check_read_batch(check, records);
    enum ttd_status status = list->count ? TTD_OK : index_check_differ(check, records, difference);
    for (size_t i = 0; i < list->count && status == TTD_OK; i++) {
        if (!index_check_is_of_list(records, list) ||
            records->taken_count >= records->batch.u.live_blocks->count)
            return index_check_differ(check, records, difference);
        const struct ttd_block *recorded =
            &records->batch.u.live_blocks->blocks[records->taken_count++];
        if (!index_check_are_same_blocks(recorded, &list->blocks[i]))
            return index_check_differ(check, records, "a live block differs from the trace's");
        if (records->taken_count == records->batch.u.live_blocks->count)
            status = index_check_read_batch(check, records);
    }
    return status;
}

/* ---- Sums ---- */

struct sum_list {
    struct ttd_sum *sums;
    size_t count;
    size_t capacity;
};

static enum ttd_status index_check_add_sum(struct sum_list *list, const struct ttd_sum *sum)
{
    enum ttd_status status =
        grow_array((void **)&list->sums, &list->capacity, list->count + 1, sizeof *list->sums);
    if (status == TTD_OK)
        list->sums[list->count++] = *sum;
    return status;
}

static int index_check_compare_sums(const void *a, const void *b)
{
    const struct ttd_sum *x = a;
    const struct ttd_sum *y = b;
    if (x->table != y->table)
        return (x->table > y->table) - (x->table < y->table);
    return (x->key > y->key) - (x->key < y->key);
}

static bool index_check_are_same_sums(const struct ttd_sum *a, const struct ttd_sum *b)
{
    bool has_positions = a->table == TTD_SUMS_BY_STACK;
    return index_check_compare_sums(a, b) == 0 && a->api == b->api && a->blocks == b->blocks &&
           a->bytes == b->bytes &&
           (!has_positions ||
            (index_check_is_same(a->first, b->first) && index_check_is_same(a->last, b->last)));
}

static enum ttd_status index_check_collect_sums(struct sum_list *list,
                                                const struct heap_tables *tables)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < HEAP_TABLES; i++) {
        const struct heap_groups *groups = &tables->by[i];
        for (size_t j = 0; j < groups->count && status == TTD_OK; j++) {
            struct ttd_sum sum = heap_sum_of_group(i, &groups->items[j]);
            status = groups->items[j].blocks ? index_check_add_sum(list, &sum) : TTD_OK;
        }
    }
    return status;
}

/* Takes as many sums as there should be. */
static enum ttd_status index_check_take_sums(struct heap_index_check *check, size_t count,
                                             struct sum_list *list)
{
    struct heap_index_records *records = &check->lists;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && list->count < count) {
        if (records->is_over || records->batch.kind != TTD_KIND_SUMS ||
            records->taken_count >= records->batch.count)
            return index_check_differ(check, records, "sums of a summary are missing");
        status = index_check_add_sum(list, &records->batch.u.sums[records->taken_count++]);
        if (status == TTD_OK && records->taken_count == records->batch.count)
            status = index_check_read_batch(check, records);
    }
    return status;
}

static enum ttd_status index_check_compare_lists(struct heap_index_check *check,
                                                 struct sum_list *recorded,
                                                 struct sum_list *computed,
                                                 const struct heap_index_records *location)
{
    qsort(recorded->sums, recorded->count, sizeof *recorded->sums, index_check_compare_sums);
    qsort(computed->sums, computed->count, sizeof *computed->sums, index_check_compare_sums);
    for (size_t i = 0; i < computed->count; i++)
        if (!index_check_are_same_sums(&recorded->sums[i], &computed->sums[i]))
            return index_check_differ(check, location,
                                      "a sum of a summary differs from the trace's");
    return TTD_OK;
}

enum ttd_status heap_index_check_sums(struct heap_index_check *check,
                                      const struct heap_tables *sums)
{
    struct heap_index_records location = check->lists;
    struct sum_list recorded = {.count = 0}, computed = {.count = 0};
    enum ttd_status status = index_check_collect_sums(&computed, sums);
    if (status == TTD_OK)
        status = index_check_take_sums(check, computed.count, &recorded);
    if (status == TTD_OK && computed.count)
        status = index_check_compare_lists(check, &recorded, &computed, &location);
    free(recorded.sums);
    free(computed.sums);
    return status;
}

enum ttd_status heap_index_check_end(struct heap_index_check *check)
{
    if (!check->states.is_over)
        return heap_index_check_misplaced(check);
    if (!check->lists.is_over)
        return index_check_differ(check, &check->lists,
                                  "blocks or sums that belong to no state of the heap");
    return TTD_OK;
}
