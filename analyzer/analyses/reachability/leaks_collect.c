/* SPDX-License-Identifier: MIT */
/* The blocks that are leaks, or may be: what the replay of a search for leaks sees. */
#include <stdlib.h>

#include "analyses/reachability/leaks_parts.h"
#include "heap/sort_blocks.h"

static bool leaks_is_wanted(const struct leaks_search *search, const struct heap_block *block)
{
    const struct heap_leaks_range *range = search->options.allocated;
    const struct heap_address_range *covering = search->options.covering;
    if (range && (ttd_position_compare(block->allocated, range->first) < 0 ||
                  ttd_position_compare(block->allocated, range->last) > 0))
        return false;
    return !covering || heap_block_covers(block, covering->first, covering->last);
}

static bool is_unknown(const struct leaks_search *search, const struct heap_block *block)
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
    if (is_unknown(search, block))
        return heap_groups_add(&search->leaks->kinds[HEAP_UNKNOWN], block);
    uint32_t node = search->is_leak ? heap_nodes_of(&search->reach.nodes, block) : HEAP_NO_NODE;
    /* Not in the snapshot: the block is younger, or there is no snapshot. */
    if (node == HEAP_NO_NODE)
        return heap_groups_add(&search->leaks->kinds[HEAP_NOT_SEEN], block);
    search->is_leak[node] = true;
    return TTD_OK;
}

static enum ttd_status collect_live(struct leaks_search *search, const struct heap_live *live)
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

/* Does the same as collect_live() where the nodes are the live blocks: at the end of a trace, when
 * no event follows the snapshot. Then no block needs to be looked up, and the table needs no index.
 */
static enum ttd_status collect_nodes(struct leaks_search *search)
{
    const struct heap_nodes *nodes = &search->reach.nodes;
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; node < nodes->count && status == TTD_OK; node++) {
        struct heap_block block = heap_nodes_block(nodes, node);
        if (!heap_islands_want_block(search->options.islands, &block))
            continue;
        if (heap_kept_may_have(&search->kept, &block))
            status = heap_kept_defer(&search->kept, &block);
        else if (is_unknown(search, &block))
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
static enum ttd_status keep_parents(struct leaks_search *search, const struct heap_parents *parents)
{
    if (!parents->by_heap.count)
        return TTD_OK;
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        search->leaks->kinds[kind].parents = &search->parents;
    return heap_parents_copy(&search->parents, parents);
}

/* Blocks that a runtime may keep come last, because it must be known which of them are live at the
 * end. */
enum ttd_status leaks_collect(void *context, struct heap_arrival *arrival, struct ttd_error *error)
{
    struct leaks_search *search = context;
    struct heap_kept *kept = &search->kept;
    struct heap_live *live = &arrival->cursor.replay.live;
    search->leaks->outcome = heap_arrival_outcome(arrival);
    if (search->leaks->outcome.counts.strays < search->strays)
        search->leaks->outcome.counts.strays = search->strays;
    enum ttd_status status = keep_parents(search, &live->parents);
    if (status == TTD_OK)
        status = search->are_nodes_live ? collect_nodes(search) : collect_live(search, live);
    if (status == TTD_OK && kept->count)
        status = heap_live_make_index(live);
    if (status == TTD_OK)
        status = heap_kept_decide(kept, &arrival->cursor, &search->leaks->runtime, leaks_add_block,
                                  search, error);
    return status;
}
