/* SPDX-License-Identifier: MIT */
/*
 * Finds leaks in these steps:
 *
 * 1. The replay stops at the position of the snapshot, where the live blocks become the nodes of a
 *    graph, and goes on to the position asked for.
 * 2. leaks_collect() marks the nodes whose blocks are still live there. Those are the leaks to
 *    classify; blocks without a node are younger than the snapshot.
 * 3. leaks_classify() reads the references and classifies the nodes.
 * 4. leaks_find_when() looks at earlier snapshots.
 *
 * The table of live blocks is released before the graph gets its edges. So the two large structures
 * are never in memory together.
 */
#include "analyses/reachability/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/reachability/leaks_parts.h"
#include "base/hash_map.h"
#include "heap/heap_live.h"
#include "reach/reach.h"

/* Dating leaks: the range of positions where each group, or each block, was lost. */

/* The blocks that are leaks, or may be: the replay's part of a search for leaks. */

static bool leaks_is_wanted(const struct leaks_search *search, const struct heap_block *block)
{
    const struct heap_leaks_range *range = search->options.allocated;
    const struct heap_address_range *covering = search->options.covering;
    if (range && (ttd_position_compare(block->allocated, range->first) < 0 ||
                  ttd_position_compare(block->allocated, range->last) > 0))
        return false;
    return !covering || heap_block_covers(block, covering->first, covering->last);
}

static bool leaks_is_unknown(const struct leaks_search *search, const struct heap_block *block)
{
    return heap_is_unknown(block->allocated, search->leaks->outcome.unknown_before);
}

/* Adds a block that is live at the position asked for and that no runtime keeps. Its kind is known
 * now, or its node is marked. */
static enum ttd_status leaks_add_block(void *context, const struct heap_block *block)
{
    struct leaks_search *search = context;
    if (!leaks_is_wanted(search, block))
        return TTD_OK;
    if (leaks_is_unknown(search, block))
        return heap_groups_add(&search->leaks->kinds[HEAP_UNKNOWN], block);
    uint32_t node = search->is_leak ? heap_nodes_of(&search->reach.nodes, block) : HEAP_NO_NODE;
    /* Not in the snapshot: the block is younger, or there is no snapshot. */
    if (node == HEAP_NO_NODE)
        return heap_groups_add(&search->leaks->kinds[HEAP_NOT_SEEN], block);
    search->is_leak[node] = true;
    return TTD_OK;
}

static enum ttd_status leaks_collect_live(struct leaks_search *search, const struct heap_live *live)
{
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(live, &cursor))) {
        if (!heap_islands_want_block(search->options.islands, block))
            continue;
        status = heap_kept_may_have(&search->kept, block) ? heap_kept_defer(&search->kept, block)
                                                          : leaks_add_block(search, block);
    }
    return status;
}

/* Does the same as leaks_collect_live() where the nodes are the live blocks: at the end of a trace,
 * when no event follows the snapshot. Then no block needs to be looked up, and the table needs no
 * index.
 */
static enum ttd_status leaks_collect_nodes(struct leaks_search *search)
{
    const struct heap_nodes *nodes = &search->reach.nodes;
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; node < nodes->count && status == TTD_OK; node++) {
        struct heap_block block = heap_nodes_block(nodes, node);
        if (!heap_islands_want_block(search->options.islands, &block))
            continue;
        if (heap_kept_may_have(&search->kept, &block))
            status = heap_kept_defer(&search->kept, &block);
        else if (leaks_is_unknown(search, &block))
            status = leaks_add_block(search, &block);
        else
            search->is_leak[node] = leaks_is_wanted(search, &block);
    }
    return status;
}

enum ttd_status leaks_see_snapshot(void *context, struct heap_arrival *arrival,
                                   struct ttd_error *error)
{
    struct leaks_search *search = context;
    struct heap_replay *replay = &arrival->cursor.replay;
    (void)error;
    search->are_nodes_live = arrival->reached_end && !replay->queue.count;
    search->reach.outcome = heap_arrival_outcome(arrival);
    search->strays = search->reach.outcome.counts.strays;
    enum ttd_status status = heap_reach_begin(&search->reach, &search->leaks->snapshot, replay);
    search->is_leak = calloc((size_t)search->reach.nodes.count + 1, sizeof *search->is_leak);
    return status == TTD_OK && !search->is_leak ? TTD_ERROR_NO_MEMORY : status;
}

/* Nodes are added to groups when the table of live blocks is gone. */
static enum ttd_status leaks_keep_parents(struct leaks_search *search,
                                          const struct heap_parents *parents)
{
    if (!parents->by_heap.count)
        return TTD_OK;
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        search->leaks->kinds[kind].parents = &search->parents;
    return heap_parents_copy(&search->parents, parents);
}

/* Blocks that a runtime may keep come last, because their state at the end of the trace must be
 * known. */
enum ttd_status leaks_collect(void *context, struct heap_arrival *arrival, struct ttd_error *error)
{
    struct leaks_search *search = context;
    struct heap_kept *kept = &search->kept;
    struct heap_live *live = &arrival->cursor.replay.live;
    search->leaks->outcome = heap_arrival_outcome(arrival);
    if (search->leaks->outcome.counts.strays < search->strays)
        search->leaks->outcome.counts.strays = search->strays;
    enum ttd_status status = leaks_keep_parents(search, &live->parents);
    if (status == TTD_OK)
        status =
            search->are_nodes_live ? leaks_collect_nodes(search) : leaks_collect_live(search, live);
    if (status == TTD_OK && kept->count)
        status = heap_live_make_index(live);
    if (status == TTD_OK)
        status = heap_kept_decide(kept, &arrival->cursor, &search->leaks->runtime, leaks_add_block,
                                  search, error);
    return status;
}

/* Sets the range of each definitely lost group: from the loss of its first block to the loss of its
 * last one. */
static enum ttd_status leaks_group_when(struct heap_leaks *leaks)
{
    struct heap_groups *groups = &leaks->kinds[HEAP_DEFINITELY_LOST];
    leaks->lost_ranges = malloc(groups->count * sizeof *leaks->lost_ranges);
    if (!leaks->lost_ranges)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < groups->count; i++) {
        leaks->lost_ranges[i] = (struct heap_lost_range){.after = ttd_position_max(),
                                                         .first_release = ttd_position_max()};
        groups->items[i].lost = &leaks->lost_ranges[i];
    }
    for (size_t i = 0; i < leaks->lost_count; i++) {
        struct heap_lost_range range = heap_lost_range_of(&leaks->lost[i]);
        heap_lost_range_merge(heap_groups_find(groups, &leaks->lost[i].block)->lost, &range);
    }
    return TTD_OK;
}

/* Sets the range of each block. */
static enum ttd_status leaks_list_when(struct heap_leaks *leaks)
{
    leaks->lost_ranges = malloc(leaks->lost_count * sizeof *leaks->lost_ranges);
    if (!leaks->lost_ranges)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < leaks->lost_count; i++)
        leaks->lost_ranges[i] = heap_lost_range_of(&leaks->lost[i]);
    return TTD_OK;
}

/**
 * Sets leaks->lost_ranges. Finds when each block in leaks->lost was lost, and merges the ranges of
 * the blocks of each definitely lost group; or keeps a range of each block.
 *
 * @param leaks  `lost` has at least one block
 * @return as heap_lost_when_find().
 */
static enum ttd_status heap_leaks_date(struct heap_leaks *leaks, const struct heap_trace *trace,
                                       const struct heap_snapshots *snapshots, bool by_block,
                                       struct ttd_error *error)
{
    enum ttd_status status = heap_lost_when_find(trace, snapshots, &leaks->snapshot, leaks->lost,
                                                 leaks->lost_count, error);
    if (status != TTD_OK)
        return status;
    return by_block ? leaks_list_when(leaks) : leaks_group_when(leaks);
}

static enum ttd_status leaks_choose_snapshot(struct leaks_search *search,
                                             const struct heap_trace *trace,
                                             struct ttd_error *error)
{
    enum ttd_status status = heap_snapshots_find(trace, &search->snapshots, error);
    if (status != TTD_OK)
        return status;
    const struct ttd_snapshot *snapshot =
        heap_snapshots_before(&search->snapshots, search->options.at, TTD_SNAPSHOT_REFERENCES);
    if (snapshot)
        search->leaks->snapshot = *snapshot;
    search->tells_when =
        search->options.tells_when && (search->options.covering || search->snapshots.count > 1);
    return TTD_OK;
}

/* Finds when lost blocks were lost. */
static enum ttd_status leaks_find_when(struct leaks_search *search, const struct heap_trace *trace,
                                       struct ttd_error *error)
{
    struct heap_leaks *leaks = search->leaks;
    if (!leaks->lost_count)
        return TTD_OK;
    return heap_leaks_date(leaks, trace, &search->snapshots, search->options.covering != NULL,
                           error);
}

static void leaks_init(struct heap_leaks *leaks, const struct heap_leaks_options *options,
                       uint64_t sample)
{
    memset(leaks, 0, sizeof *leaks);
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++) {
        heap_groups_init(&leaks->kinds[kind]);
        leaks->kinds[kind].split = options->split;
        leaks->kinds[kind].sample = sample;
        leaks->kinds[kind].classes = options->classes;
        leaks->kinds[kind].kind = (uint8_t)kind;
    }
}

static void leaks_free_search(struct heap_leaks *leaks)
{
    struct leaks_search *search = leaks->search;
    if (!search)
        return;
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        leaks->kinds[kind].parents = NULL;
    heap_parents_free(&search->parents);
    heap_kept_free(&search->kept);
    heap_reach_free(&search->reach);
    heap_snapshots_free(&search->snapshots);
    free(search->is_leak);
    free(search);
    leaks->search = NULL;
}

enum ttd_status heap_leaks_watch(struct heap_leaks *leaks, const struct heap_leaks_options *options,
                                 const struct heap_trace *trace, struct heap_pass *pass,
                                 struct ttd_error *error)
{
    struct leaks_search *search = calloc(1, sizeof *search);
    leaks_init(leaks, options, trace->choice.sample);
    leaks->search = search;
    if (!search)
        return TTD_ERROR_NO_MEMORY;
    search->leaks = leaks;
    search->options = *options;
    enum ttd_status status =
        heap_kept_read(&search->kept, trace, options->split, &leaks->runtime, error);
    leaks->runtime.groups.classes = options->classes;
    if (status == TTD_OK)
        status = leaks_choose_snapshot(search, trace, error);
    if (status != TTD_OK)
        return status;
    struct heap_watcher at_snapshot = {.observer.context = search,
                                       .to = leaks->snapshot.position,
                                       .wants_blocks_only = true,
                                       .finish = leaks_see_snapshot};
    struct heap_watcher at_end = {.observer.context = search,
                                  .to = options->at,
                                  .wants_blocks_only = heap_is_end(options->at),
                                  .finish = leaks_collect};
    if (leaks->snapshot.number)
        heap_pass_add(pass, &at_snapshot);
    heap_pass_add(pass, &at_end);
    return TTD_OK;
}

/* Hands the blocks of the snapshot over to who wants them, when the graph is done with. */
static void leaks_end_graph(struct leaks_search *search)
{
    struct heap_reach *kept = search->options.reach;
    if (kept) {
        *kept = (struct heap_reach){.outcome = search->reach.outcome,
                                    .snapshot = search->leaks->snapshot,
                                    .nodes = search->reach.nodes};
        search->reach.nodes = (struct heap_nodes){.count = 0};
    }
    heap_reach_free(&search->reach);
}

enum ttd_status heap_leaks_end(struct heap_leaks *leaks, const struct heap_trace *trace,
                               struct ttd_error *error)
{
    struct leaks_search *search = leaks->search;
    enum ttd_status status = leaks_classify(search, trace, error);
    leaks_end_graph(search);
    leaks->runtime_blocks = search->kept.candidates;
    leaks->runtime_block_count = search->kept.count;
    search->kept.candidates = NULL;
    if (status == TTD_OK)
        status = leaks_find_when(search, trace, error);
    if (status == TTD_OK)
        status = heap_groups_sort(&leaks->runtime.groups);
    for (int kind = 0; kind < HEAP_LEAK_KINDS && status == TTD_OK; kind++)
        status = heap_groups_sort(&leaks->kinds[kind]);
    leaks_free_search(leaks);
    return status;
}

enum ttd_status heap_leaks_find(const struct heap_trace *trace,
                                const struct heap_leaks_options *options, struct heap_leaks *leaks,
                                struct ttd_error *error)
{
    struct heap_pass pass = {.count = 0};
    enum ttd_status status = heap_leaks_watch(leaks, options, trace, &pass, error);
    if (status == TTD_OK)
        status = heap_pass_run(&pass, trace, error);
    if (status == TTD_OK)
        status = heap_leaks_end(leaks, trace, error);
    if (status != TTD_OK)
        heap_leaks_free(leaks);
    return status;
}

void heap_leaks_free(struct heap_leaks *leaks)
{
    leaks_free_search(leaks);
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        heap_groups_free(&leaks->kinds[kind]);
    heap_groups_free(&leaks->runtime.groups);
    free(leaks->runtime_blocks);
    leaks->runtime_blocks = NULL;
    free(leaks->lost_ranges);
    free(leaks->lost);
    free(leaks->doubtful);
    free(leaks->below);
    free(leaks->holders);
    free(leaks->regions);
    heap_places_free(&leaks->places);
    leaks->lost_ranges = NULL;
    leaks->lost = NULL;
    leaks->doubtful = NULL;
    leaks->below = NULL;
    leaks->holders = NULL;
    leaks->regions = NULL;
}

uint64_t heap_leaks_blocks(const struct heap_leaks *leaks)
{
    uint64_t blocks = 0;
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        blocks += leaks->kinds[kind].blocks;
    return blocks;
}

static bool leaks_is_live(const struct heap_owner *owner)
{
    return !heap_call_is_known(&owner->released);
}

/* Whether any owner can be lost: one was not released, and there is a snapshot. Otherwise the
 * passes of `leaks` would find nothing. */
static enum ttd_status leaks_may_be_lost(const struct heap_trace *trace,
                                         const struct heap_history *history, bool *may_be,
                                         struct ttd_error *error)
{
    struct heap_snapshots snapshots;
    size_t i = 0;
    *may_be = false;
    while (i < history->count && !leaks_is_live(&history->owners[i]))
        i++;
    if (i == history->count)
        return TTD_OK;
    enum ttd_status status = heap_snapshots_find(trace, &snapshots, error);
    if (status != TTD_OK)
        return status;
    *may_be = heap_snapshots_before(&snapshots, ttd_position_max(), TTD_SNAPSHOT_REFERENCES);
    heap_snapshots_free(&snapshots);
    return TTD_OK;
}

/* Points each live owner at its range. The event that acquired a block identifies it. */
static enum ttd_status leaks_link_lost(struct heap_history *history, const struct heap_leaks *leaks)
{
    struct hash_map index;
    enum ttd_status status = TTD_OK;
    map_init(&index);
    for (size_t i = 0; i < leaks->lost_count && status == TTD_OK; i++)
        status = map_set(&index, leaks->lost[i].block.event, 0, (uint32_t)i);
    for (size_t i = 0; i < history->count && status == TTD_OK; i++) {
        struct heap_owner *owner = &history->owners[i];
        uint32_t lost = map_get(&index, owner->block.event, 0);
        if (leaks_is_live(owner) && lost != MAP_NONE)
            owner->lost = &leaks->lost_ranges[lost];
    }
    map_free(&index);
    return status;
}

enum ttd_status heap_lost_owners_find(const struct heap_trace *trace, struct heap_history *history,
                                      struct heap_leaks *leaks, struct ttd_error *error)
{
    struct heap_address_range range = {history->options.first, history->options.last};
    struct heap_leaks_options options = {
        .at = ttd_position_max(), .covering = &range, .tells_when = true};
    bool may_be;
    memset(leaks, 0, sizeof *leaks);
    enum ttd_status status = leaks_may_be_lost(trace, history, &may_be, error);
    if (status == TTD_OK && may_be)
        status = heap_leaks_find(trace, &options, leaks, error);
    if (status != TTD_OK || !may_be)
        return status;
    status = leaks_link_lost(history, leaks);
    if (status != TTD_OK)
        heap_leaks_free(leaks);
    return status;
}
