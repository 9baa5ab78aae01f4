/* SPDX-License-Identifier: MIT */
#include "report/page/page_model.h"

#include <stdlib.h>

#include "base/grow.h"

enum { LIVE_BYTES, LIVE_BLOCKS, ALLOCATED_BYTES, ALLOCATIONS, AMOUNTS };

/** The largest amounts of a stack; or of all stacks of a function, which has a label. */
struct candidate {
    ttd_id stack;
    uint32_t label;
    bool is_kept;
    uint64_t amounts[AMOUNTS];
};

/** All stacks of the ticks and the usage. */
struct candidates {
    struct candidate *items;
    size_t count;
    size_t capacity;
    struct hash_map index;
};

struct rank {
    uint64_t amount;
    size_t candidate;
};

void page_sites_free(struct page_sites *sites)
{
    free(sites->stacks);
    free(sites->other_nodes);
    map_free(&sites->index);
}

static enum ttd_status page_append_site(struct page_sites *sites, ttd_id stack)
{
    enum ttd_status status = grow_array((void **)&sites->stacks, &sites->capacity, sites->count + 1,
                                        sizeof *sites->stacks);
    if (status == TTD_OK)
        sites->stacks[sites->count++] = stack;
    return status;
}

/* Appends a site that stands for others. */
static enum ttd_status page_sites_append_other(struct page_sites *sites, uint32_t node)
{
    enum ttd_status status = grow_array((void **)&sites->other_nodes, &sites->other_capacity,
                                        sites->other_sites + 1, sizeof *sites->other_nodes);
    if (status == TTD_OK)
        status = page_append_site(sites, PAGE_SITE_OTHERS);
    if (status == TTD_OK)
        sites->other_nodes[sites->other_sites++] = node;
    return status;
}

enum ttd_status page_sites_add(struct page_sites *sites, ttd_id stack, uint32_t *number)
{
    *number = map_get(&sites->index, stack, 0);
    if (*number == MAP_NONE && sites->other_count)
        *number = sites->others;
    if (*number != MAP_NONE)
        return TTD_OK;
    *number = (uint32_t)sites->count;
    enum ttd_status status = page_append_site(sites, stack);
    return status == TTD_OK ? map_set(&sites->index, stack, 0, *number) : status;
}

/* ---- Choosing ---- */

static enum ttd_status page_sites_find_candidate(struct candidates *candidates, ttd_id stack,
                                                 struct candidate **candidate)
{
    uint32_t index = map_get(&candidates->index, stack, 0);
    if (index == MAP_NONE) {
        index = (uint32_t)candidates->count;
        enum ttd_status status = grow_array((void **)&candidates->items, &candidates->capacity,
                                            candidates->count + 1, sizeof *candidates->items);
        if (status == TTD_OK)
            status = map_set(&candidates->index, stack, 0, index);
        if (status != TTD_OK)
            return status;
        candidates->items[candidates->count++] = (struct candidate){.stack = stack};
    }
    *candidate = &candidates->items[index];
    return TTD_OK;
}

static void page_sites_raise_to(uint64_t *amount, uint64_t value)
{
    if (value > *amount)
        *amount = value;
}

static enum ttd_status page_sites_add_usage(struct candidates *candidates,
                                            const struct heap_usage *usage)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < usage->count && status == TTD_OK; i++) {
        const struct heap_site *site = &usage->sites[i];
        struct candidate *candidate;
        status = page_sites_find_candidate(candidates, site->key.stack, &candidate);
        if (status != TTD_OK)
            break;
        page_sites_raise_to(&candidate->amounts[ALLOCATED_BYTES], heap_sum_value(site->bytes));
        page_sites_raise_to(&candidate->amounts[ALLOCATIONS], site->allocations);
    }
    return status;
}

/* Finds how much was live at the end of any tick. Candidates stay where they are: all stacks of a
 * series are added first. */
static enum ttd_status page_add_series(struct candidates *candidates,
                                       const struct heap_tick_series *series)
{
    struct heap_tick_change *live = calloc(series->count + 1, sizeof *live);
    enum ttd_status status = live ? TTD_OK : TTD_ERROR_NO_MEMORY;
    struct candidate *candidate;
    for (size_t i = 0; i < series->count && status == TTD_OK; i++) {
        status = page_sites_find_candidate(candidates, series->records[i].key, &candidate);
        if (status == TTD_OK)
            live[i].record = (uint32_t)(candidate - candidates->items);
    }
    for (size_t i = 0; i < series->change_count && status == TTD_OK; i++) {
        const struct heap_tick_change *change = &series->changes[i];
        struct heap_tick_change *sum = &live[change->record];
        candidate = &candidates->items[sum->record];
        sum->bytes = (int64_t)((uint64_t)sum->bytes + (uint64_t)change->bytes);
        sum->blocks += change->blocks;
        page_sites_raise_to(&candidate->amounts[LIVE_BYTES], (uint64_t)sum->bytes);
        page_sites_raise_to(&candidate->amounts[LIVE_BLOCKS], (uint64_t)sum->blocks);
    }
    free(live);
    return status;
}

static enum ttd_status page_sites_add_peak(struct candidates *candidates,
                                           const struct heap_groups *at_peak)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < at_peak->count && status == TTD_OK; i++) {
        const struct heap_group *group = &at_peak->items[i];
        struct candidate *candidate;
        status = page_sites_find_candidate(candidates, group->key.stack, &candidate);
        if (status != TTD_OK)
            break;
        page_sites_raise_to(&candidate->amounts[LIVE_BYTES], group->bytes);
        page_sites_raise_to(&candidate->amounts[LIVE_BLOCKS], group->blocks);
    }
    return status;
}

/* The largest amount first; of equal ones the first candidate. */
static int page_sites_compare_ranks(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->amount != y->amount)
        return x->amount < y->amount ? 1 : -1;
    return (x->candidate > y->candidate) - (x->candidate < y->candidate);
}

/* Keeps the candidates that have most, as many for each amount. Returns how many are kept; sets
 * `status` to TTD_ERROR_NO_MEMORY without memory. */
static size_t page_sites_keep_largest(struct candidates *candidates, size_t max,
                                      enum ttd_status *status)
{
    struct rank *ranks = malloc((candidates->count + 1) * sizeof *ranks);
    size_t kept = 0;
    if (!ranks)
        *status = TTD_ERROR_NO_MEMORY;
    for (int amount = 0; amount < AMOUNTS && ranks; amount++) {
        for (size_t i = 0; i < candidates->count; i++)
            ranks[i] = (struct rank){candidates->items[i].amounts[amount], i};
        qsort(ranks, candidates->count, sizeof *ranks, page_sites_compare_ranks);
        for (size_t i = 0; i < max / AMOUNTS && i < candidates->count; i++) {
            struct candidate *candidate = &candidates->items[ranks[i].candidate];
            kept += !candidate->is_kept;
            candidate->is_kept = true;
        }
    }
    free(ranks);
    return kept;
}

/* Finds the functions of the candidates, with sums of their amounts. Those that are listed are
 * kept: see PAGE_FUNCTIONS_MAX. */
static enum ttd_status page_sites_find_functions(struct candidates *candidates,
                                                 struct page_calls *calls,
                                                 struct candidates *functions)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < candidates->count && status == TTD_OK; i++) {
        struct candidate *candidate = &candidates->items[i], *function;
        status = page_calls_find_function(calls, candidate->stack, &candidate->label);
        if (status == TTD_OK)
            status = page_sites_find_candidate(functions, candidate->label, &function);
        if (status != TTD_OK)
            break;
        function->is_kept |= candidate->is_kept;
        for (int amount = 0; amount < AMOUNTS; amount++)
            function->amounts[amount] += candidate->amounts[amount];
    }
    if (status == TTD_OK)
        page_sites_keep_largest(functions, PAGE_FUNCTIONS_MAX, &status);
    return status;
}

/* Sets the node of the function of a candidate; or the node of the callers of many, if the function
 * is not listed. */
static enum ttd_status page_sites_find_node(const struct candidate *candidate,
                                            struct candidates *functions, struct page_calls *calls,
                                            uint32_t *node)
{
    struct candidate *function;
    enum ttd_status status = page_sites_find_candidate(functions, candidate->label, &function);
    bool is_listed = status == TTD_OK && function->is_kept && candidate->label != PAGE_NO_LABEL;
    return status == TTD_OK
               ? page_calls_add_function(calls, is_listed ? candidate->stack : TTD_NONE, node)
               : status;
}

/* Numbers the candidates that are not kept: one number for each listed function. */
static enum ttd_status page_sites_number_others(struct page_sites *sites,
                                                const struct candidates *candidates,
                                                struct candidates *functions,
                                                struct page_calls *calls)
{
    struct hash_map by_node;
    uint32_t node;
    map_init(&by_node);
    sites->others = (uint32_t)sites->count;
    enum ttd_status status = page_calls_add_function(calls, TTD_NONE, &node);
    if (status == TTD_OK)
        status = map_set(&by_node, node, 0, sites->others);
    if (status == TTD_OK)
        status = page_sites_append_other(sites, node);
    for (size_t i = 0; i < candidates->count && status == TTD_OK; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (candidate->is_kept)
            continue;
        status = page_sites_find_node(candidate, functions, calls, &node);
        if (status != TTD_OK)
            break;
        uint32_t number = map_get(&by_node, node, 0);
        if (number == MAP_NONE) {
            number = (uint32_t)sites->count;
            status = map_set(&by_node, node, 0, number);
            if (status == TTD_OK)
                status = page_sites_append_other(sites, node);
        }
        if (status == TTD_OK)
            status = map_set(&sites->index, candidate->stack, 0, number);
    }
    map_free(&by_node);
    return status;
}

/* Numbers the candidates: the sites of the usage that are kept, the others, the rest. */
static enum ttd_status page_sites_number(struct page_sites *sites, struct candidates *candidates,
                                         const struct heap_usage *usage, struct page_calls *calls,
                                         size_t kept)
{
    enum ttd_status status = TTD_OK;
    struct candidates functions = {.count = 0};
    uint32_t number;
    map_init(&functions.index);
    for (size_t i = 0; i < usage->count && status == TTD_OK; i++) {
        ttd_id stack = usage->sites[i].key.stack;
        if (candidates->items[map_get(&candidates->index, stack, 0)].is_kept)
            status = page_sites_add(sites, stack, &number);
    }
    if (status == TTD_OK && kept < candidates->count)
        status = page_sites_find_functions(candidates, calls, &functions);
    if (status == TTD_OK && kept < candidates->count)
        status = page_sites_number_others(sites, candidates, &functions, calls);
    free(functions.items);
    map_free(&functions.index);
    for (size_t i = 0; i < candidates->count && status == TTD_OK; i++) {
        if (candidates->items[i].is_kept)
            status = page_sites_add(sites, candidates->items[i].stack, &number);
    }
    sites->other_count = candidates->count - kept;
    return status;
}

enum ttd_status page_sites_choose(struct page_sites *sites, const struct heap_ticks *ticks,
                                  const struct heap_usage *usage, struct page_calls *calls,
                                  size_t max)
{
    struct candidates candidates = {.count = 0};
    *sites = (struct page_sites){.count = 0};
    map_init(&sites->index);
    map_init(&candidates.index);
    enum ttd_status status = page_sites_add_usage(&candidates, usage);
    if (status == TTD_OK)
        status = page_add_series(&candidates, &ticks->series[HEAP_TICK_BY_STACK]);
    if (status == TTD_OK)
        status = page_sites_add_peak(&candidates, &ticks->at_peak);
    size_t kept = candidates.count;
    if (status == TTD_OK && candidates.count > max)
        kept = page_sites_keep_largest(&candidates, max, &status);
    else
        for (size_t i = 0; i < candidates.count; i++)
            candidates.items[i].is_kept = true;
    if (status == TTD_OK)
        status = page_sites_number(sites, &candidates, usage, calls, kept);
    free(candidates.items);
    map_free(&candidates.index);
    return status;
}

/* ---- Folding ---- */

/* Renumbers the records that are kept, by their old numbers; the records of sites that stand for
 * others are the last ones. */
static enum ttd_status page_sites_fold_records(struct page_sites *sites,
                                               const struct heap_tick_series *series,
                                               uint32_t *records, struct heap_tick_series *folded)
{
    uint32_t number;
    for (size_t i = 0; i < series->count; i++) {
        enum ttd_status status = page_sites_add(sites, series->records[i].key, &number);
        if (status != TTD_OK)
            return status;
        records[i] = number;
        if (page_sites_is_other(sites, number))
            continue;
        records[i] = (uint32_t)folded->count;
        folded->records[folded->count++].key = number;
    }
    for (size_t i = 0; i < series->count; i++) {
        (void)page_sites_add(sites, series->records[i].key, &number); /* each was added above */
        if (page_sites_is_other(sites, number))
            records[i] = (uint32_t)(folded->count + number - sites->others);
    }
    for (size_t i = 0; i < sites->other_sites; i++)
        folded->records[folded->count++].key = sites->others + (uint32_t)i;
    return TTD_OK;
}

/* Adds the changes of a tick. `others` has room for the sites that stand for others, and is all
 * zero. */
static void page_sites_fold_tick(const struct heap_tick_series *series, size_t tick,
                                 const uint32_t *records, struct page_changes others,
                                 struct heap_tick_series *folded)
{
    size_t first = folded->count - others.count;
    for (size_t i = tick ? series->ends[tick - 1] : 0; i < series->ends[tick]; i++) {
        struct heap_tick_change change = series->changes[i];
        change.record = records[change.record];
        if (change.record >= first)
            page_change_add(&others.items[change.record - first], &change);
        else
            folded->changes[folded->change_count++] = change;
    }
    for (size_t i = 0; i < others.count; i++) {
        if (others.items[i].bytes || others.items[i].blocks)
            folded->changes[folded->change_count++] = others.items[i];
        others.items[i] = (struct heap_tick_change){.bytes = 0};
    }
    folded->ends[folded->tick_count++] = folded->change_count;
}

enum ttd_status page_sites_fold(struct page_sites *sites, const struct heap_tick_series *series,
                                struct heap_tick_series *folded)
{
    uint32_t *records = malloc((series->count + 1) * sizeof *records);
    heap_series_init(folded);
    struct page_changes others = {calloc(sites->other_sites + 1, sizeof *others.items),
                                  sites->other_sites};
    folded->records = calloc(series->count + others.count + 1, sizeof *folded->records);
    folded->changes = malloc((series->change_count + 1) * sizeof *folded->changes);
    folded->ends = malloc((series->tick_count + 1) * sizeof *folded->ends);
    bool has_memory = records && others.items && folded->records && folded->changes && folded->ends;
    enum ttd_status status =
        has_memory ? page_sites_fold_records(sites, series, records, folded) : TTD_ERROR_NO_MEMORY;
    for (size_t tick = 0; tick < series->tick_count && status == TTD_OK; tick++)
        page_sites_fold_tick(series, tick, records, others, folded);
    free(others.items);
    free(records);
    return status;
}
