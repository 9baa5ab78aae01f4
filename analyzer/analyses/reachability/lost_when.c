/* SPDX-License-Identifier: MIT */
/*
 * Goes through the earlier snapshots, the newest first. A block was lost between the first snapshot
 * found where it is held or does not exist yet, and the snapshot looked at before that one. A
 * snapshot gives no bound if only doubtful words hold the block: words that may be older than the
 * block, or that belong to the allocator.
 *
 * A last replay looks between the two bounds for the release of the block's only holder. That
 * release lost the block. Other causes, such as a pointer that was overwritten, leave no event.
 */
#include "analyses/reachability/leaks.h"

#include <stdlib.h>

#include "base/hash_map.h"
#include "graph/graph_classes.h"

struct search {
    struct heap_lost_block *blocks;
    size_t count;
    /** By block: both bounds are known. */
    bool *is_known;
};

static int lost_compare_snapshots(const void *left, const void *right)
{
    const struct ttd_snapshot *a = left;
    const struct ttd_snapshot *b = right;
    return ttd_position_compare(b->position, a->position);
}

/* Chooses snapshots with references before the last one, the newest first. Returns their number.
 * Each takes a replay and a graph, so a trace with hundreds of snapshots must not use all of them.
 */
static size_t lost_choose_snapshots(const struct heap_snapshots *snapshots,
                                    const struct ttd_snapshot *last, struct ttd_snapshot *chosen)
{
    size_t count = 0;
    size_t chosen_count = 0;
    for (size_t i = 0; i < snapshots->count; i++) {
        const struct ttd_snapshot *snapshot = &snapshots->snapshots[i];
        if (snapshot->contents & TTD_SNAPSHOT_REFERENCES &&
            ttd_position_compare(snapshot->position, last->position) < 0)
            chosen[count++] = *snapshot;
    }
    qsort(chosen, count, sizeof *chosen, lost_compare_snapshots);
    if (count <= HEAP_LOST_SNAPSHOTS)
        return count;
    for (; chosen_count < HEAP_LOST_SNAPSHOTS; chosen_count++)
        chosen[chosen_count] = chosen[chosen_count * count / HEAP_LOST_SNAPSHOTS];
    return chosen_count;
}

/* Whether a node is held by a word of any quality. */
static bool lost_is_held(const struct graph_classes *classes, uint32_t node)
{
    enum graph_class class = graph_class_of(classes, node);
    return class == GRAPH_REACHABLE || class == GRAPH_POSSIBLY_LOST;
}

/* The holder of a node: the block that points at it. */
struct holder {
    uint32_t node;
    /* There is a holder; and there are several, or a root holds the node. */
    bool is_one;
    bool are_several;
};

static void lost_add_holder(struct holder *holder, uint32_t source)
{
    holder->are_several |= source == GRAPH_NONE || (holder->is_one && holder->node != source);
    holder->is_one = true;
    holder->node = source;
}

/* Finds the holder of each node. Returns NULL if memory is exhausted. */
static struct holder *lost_find_holders(const struct heap_reach *reach,
                                        const struct graph_classes *classes)
{
    const struct graph *graph = &reach->graph;
    struct holder *holders = calloc((size_t)graph->node_count + 1, sizeof *holders);
    for (uint64_t i = 0; holders && i < graph->root_count; i++) {
        if (!(graph->root_flags[i] & GRAPH_STALE))
            lost_add_holder(&holders[graph->root_targets[i]], GRAPH_NONE);
    }
    for (uint32_t node = 0; holders && node < graph->node_count; node++) {
        if (!lost_is_held(classes, node))
            continue;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (graph->targets[i] != node)
                lost_add_holder(&holders[graph->targets[i]], node);
        }
    }
    return holders;
}

/* Updates the bounds of the blocks that are lost in the snapshots after this one. */
static void lost_see_blocks(struct search *search, struct heap_reach *reach,
                            const struct graph_classes *classes, const struct holder *holders)
{
    for (size_t i = 0; i < search->count; i++) {
        struct heap_lost_block *lost = &search->blocks[i];
        if (search->is_known[i])
            continue;
        uint32_t node = heap_nodes_of(&reach->nodes, &lost->block);
        if (node != HEAP_NO_NODE && !lost_is_held(classes, node)) {
            lost->before = reach->snapshot.position;
            continue;
        }
        search->is_known[i] =
            node == HEAP_NO_NODE || graph_holding_of(classes, node) != GRAPH_HELD_BY_STALE;
        if (node == HEAP_NO_NODE || !search->is_known[i])
            continue;
        lost->after = reach->snapshot.position;
        if (holders[node].is_one && !holders[node].are_several)
            lost->holder = heap_nodes_get(&reach->nodes, holders[node].node, HEAP_NODE_EVENT);
    }
}

/* Whether a snapshot is complete, so that a block without a reference in it was lost indeed. */
static bool lost_is_whole(const struct heap_reach *reach)
{
    const struct ttd_snapshot *snapshot = &reach->snapshot;
    return snapshot->flags & TTD_SNAPSHOT_STOPPED && !(snapshot->flags & TTD_SNAPSHOT_INCOMPLETE) &&
           !snapshot->missing && !reach->misplaced;
}

static enum ttd_status lost_see_snapshot(struct search *search, const struct heap_trace *trace,
                                         const struct ttd_snapshot *snapshot,
                                         struct ttd_error *error)
{
    struct heap_reach reach;
    struct heap_reach_options options = {.tells_doubtful = true};
    enum ttd_status status = heap_reach_build(trace, &options, snapshot, &reach, error);
    if (status != TTD_OK)
        return status;
    struct holder *holders = lost_find_holders(&reach, &reach.verdicts);
    if (holders && lost_is_whole(&reach))
        lost_see_blocks(search, &reach, &reach.verdicts, holders);
    free(holders);
    heap_reach_free(&reach);
    return holders ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

struct release {
    struct ttd_position position;
    ttd_id stack;
};

/* The releases of holders; `index` finds them by the event that acquired the holder. */
struct releases {
    struct hash_map index;
    struct release *releases;
};

static enum ttd_status lost_see_effect(void *context, const struct heap_effect *effect)
{
    struct releases *releases = context;
    /* realloc() copies the pointers in the block to the new one, so nothing is lost by it. */
    if (effect->continues)
        return TTD_OK;
    uint32_t index = map_get(&releases->index, effect->block->event, 0);
    if (index != MAP_NONE)
        releases->releases[index] = (struct release){effect->position, effect->stack};
    return TTD_OK;
}

static enum ttd_status lost_index_holders(const struct search *search, struct releases *releases)
{
    uint32_t count = 0;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < search->count && status == TTD_OK; i++) {
        uint64_t holder = search->blocks[i].holder;
        if (holder != UINT64_MAX && map_get(&releases->index, holder, 0) == MAP_NONE)
            status = map_set(&releases->index, holder, 0, count++);
    }
    releases->releases = malloc(((size_t)count + 1) * sizeof *releases->releases);
    if (status != TTD_OK || !releases->releases)
        return TTD_ERROR_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        releases->releases[i] = (struct release){.position = ttd_position_invalid()};
    return TTD_OK;
}

static void lost_take_releases(const struct search *search, const struct releases *releases)
{
    for (size_t i = 0; i < search->count; i++) {
        struct heap_lost_block *lost = &search->blocks[i];
        if (lost->holder == UINT64_MAX)
            continue;
        const struct release *release =
            &releases->releases[map_get(&releases->index, lost->holder, 0)];
        if (!ttd_position_is_valid(release->position) ||
            ttd_position_compare(release->position, lost->before) > 0)
            continue;
        lost->holder_released = release->position;
        lost->release_stack = release->stack;
    }
}

static enum ttd_status lost_find_releases(const struct search *search,
                                          const struct heap_trace *trace, struct ttd_position to,
                                          struct ttd_error *error)
{
    struct releases releases = {.releases = NULL};
    struct heap_observer observer = {.context = &releases,
                                     .effect = lost_see_effect,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_ACQUIRED) |
                                                 HEAP_EFFECT_BIT(HEAP_DESTROYED) |
                                                 HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_route route = {.to = to, .observer = &observer};
    struct heap_arrival arrival = {.has_losses = false};
    map_init(&releases.index);
    enum ttd_status status = lost_index_holders(search, &releases);
    if (status == TTD_OK && releases.index.count)
        status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK && releases.index.count)
        lost_take_releases(search, &releases);
    heap_arrival_free(&arrival);
    map_free(&releases.index);
    free(releases.releases);
    return status;
}

static void lost_begin(const struct search *search, const struct ttd_snapshot *last)
{
    for (size_t i = 0; i < search->count; i++) {
        struct heap_lost_block *lost = &search->blocks[i];
        lost->after = lost->block.allocated;
        lost->before = last->position;
        lost->holder_released = ttd_position_invalid();
        lost->release_stack = TTD_NONE;
        lost->holder = UINT64_MAX;
    }
}

enum ttd_status heap_lost_when_find(const struct heap_trace *trace,
                                    const struct heap_snapshots *snapshots,
                                    const struct ttd_snapshot *last, struct heap_lost_block *blocks,
                                    size_t count, struct ttd_error *error)
{
    struct search search = {.blocks = blocks, .count = count};
    struct ttd_snapshot *chosen = malloc((snapshots->count + 1) * sizeof *chosen);
    search.is_known = calloc(count + 1, sizeof *search.is_known);
    enum ttd_status status = chosen && search.is_known ? TTD_OK : TTD_ERROR_NO_MEMORY;
    size_t chosen_count = status == TTD_OK ? lost_choose_snapshots(snapshots, last, chosen) : 0;
    lost_begin(&search, last);
    for (size_t i = 0; i < chosen_count && status == TTD_OK; i++)
        status = lost_see_snapshot(&search, trace, &chosen[i], error);
    if (status == TTD_OK && chosen_count)
        status = lost_find_releases(&search, trace, last->position, error);
    free(chosen);
    free(search.is_known);
    return status;
}

struct heap_lost_range heap_lost_range_of(const struct heap_lost_block *lost)
{
    struct heap_lost_range range = {
        .after = lost->after, .before = lost->before, .first_release = ttd_position_max()};
    if (ttd_position_is_valid(lost->holder_released)) {
        range.released = 1;
        range.first_release = range.last_release = lost->holder_released;
        range.release_stack = lost->release_stack;
    }
    return range;
}
