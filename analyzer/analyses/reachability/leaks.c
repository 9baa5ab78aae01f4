/* SPDX-License-Identifier: MIT */
/*
 * Finds leaks in these steps:
 *
 * 1. The replay stops at the position of the snapshot, where the live blocks become the nodes of a
 *    graph, and goes on to the position asked for.
 * 2. leaks_collect() marks the nodes whose blocks are still live there. Those are the leaks to
 *    classify; blocks without a node are younger than the snapshot.
 * 3. leaks_classify() reads the references and classifies the nodes.
 * 4. find_when() looks at earlier snapshots.
 *
 * The table of live blocks is released before the graph gets its edges. So the two large structures
 * are never in memory together.
 */
#include "analyses/reachability/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/reachability/leaks_parts.h"
#include "analyses/reachability/leaks_when.h"

static enum ttd_status choose_snapshot(struct leaks_search *search, const struct heap_trace *trace,
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
static enum ttd_status find_when(struct leaks_search *search, const struct heap_trace *trace,
                                 struct ttd_error *error)
{
    struct heap_leaks *leaks = search->leaks;
    if (!leaks->lost_count)
        return TTD_OK;
    return heap_leaks_date(leaks, trace, &search->snapshots, search->options.covering != NULL,
                           error);
}

static enum ttd_status leaks_sort(struct heap_leaks *leaks)
{
    enum ttd_status status = heap_groups_sort(&leaks->runtime.groups);
    for (int kind = 0; kind < HEAP_LEAK_KINDS && status == TTD_OK; kind++)
        status = heap_groups_sort(&leaks->kinds[kind]);
    return status;
}

static void leaks_init(struct heap_leaks *leaks, const struct heap_leaks_options *options)
{
    memset(leaks, 0, sizeof *leaks);
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++) {
        heap_groups_init(&leaks->kinds[kind]);
        leaks->kinds[kind].split = options->split;
        leaks->kinds[kind].classes = options->classes;
        leaks->kinds[kind].kind = (uint8_t)kind;
    }
}

static void free_search(struct heap_leaks *leaks)
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
    leaks_init(leaks, options);
    leaks->search = search;
    if (!search)
        return TTD_ERROR_NO_MEMORY;
    search->leaks = leaks;
    search->options = *options;
    enum ttd_status status =
        heap_kept_read(&search->kept, trace, options->split, &leaks->runtime, error);
    leaks->runtime.groups.classes = options->classes;
    if (status == TTD_OK)
        status = choose_snapshot(search, trace, error);
    if (status != TTD_OK)
        return status;
    struct heap_watcher at_snapshot = {
        .observer.context = search, .to = leaks->snapshot.position, .finish = leaks_see_snapshot};
    struct heap_watcher at_end = {
        .observer.context = search, .to = options->at, .finish = leaks_collect};
    if (leaks->snapshot.number)
        heap_pass_add(pass, &at_snapshot);
    heap_pass_add(pass, &at_end);
    return TTD_OK;
}

/* Hands the blocks of the snapshot over to who wants them, when the graph is done with. */
static void end_graph(struct leaks_search *search)
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
    end_graph(search);
    if (status == TTD_OK)
        status = find_when(search, trace, error);
    if (status == TTD_OK)
        status = leaks_sort(leaks);
    free_search(leaks);
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
    free_search(leaks);
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        heap_groups_free(&leaks->kinds[kind]);
    heap_groups_free(&leaks->runtime.groups);
    free(leaks->lost_ranges);
    free(leaks->lost);
    free(leaks->below);
    free(leaks->holders);
    free(leaks->regions);
    heap_places_free(&leaks->places);
    leaks->lost_ranges = NULL;
    leaks->lost = NULL;
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
