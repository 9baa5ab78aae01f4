/* SPDX-License-Identifier: MIT */
#include "graph/spanning_tree.h"

#include "graph/graph.h"

static uint32_t spanning_count_leaders(const struct graph_classes *classes)
{
    uint32_t count = 0;
    for (uint32_t node = 0; classes && classes->leaders && node < classes->node_count; node++)
        count += classes->leaders[node] == node;
    return count;
}

/* Makes the edges of the groups: the targets of the roots, sorted by group. */
static void spanning_upper_add_groups(struct graph_upper *upper, const struct graph *graph,
                                      const uint32_t *groups)
{
    for (uint64_t i = 0; i < graph->root_count; i++)
        upper->first[groups[i]]++;
    for (uint32_t i = 1; i < upper->count; i++)
        upper->first[i] += upper->first[i - 1];
    /* first[i] is where group i ends; it becomes where it begins. */
    for (uint64_t i = graph->root_count; i-- > 0;)
        upper->targets[--upper->first[groups[i]]] = graph->root_targets[i];
}

static void spanning_add_top(struct graph_upper *upper, const struct graph *graph,
                             const struct graph_dominators_query *query)
{
    const struct graph_classes *classes = query->classes;
    uint32_t end = upper->first[upper->count - 1];
    for (uint32_t i = 0; i + 1 < upper->count; i++)
        upper->targets[end++] = graph->node_count + i;
    for (uint64_t i = 0; !query->groups && i < graph->root_count; i++)
        upper->targets[end++] = graph->root_targets[i];
    for (uint32_t node = 0; classes && classes->leaders && node < classes->node_count; node++) {
        if (classes->leaders[node] == node)
            upper->targets[end++] = node;
    }
    upper->first[upper->count] = end;
}

enum ttd_status graph_upper_init(struct graph_upper *upper, const struct graph *graph,
                                 const struct graph_dominators_query *query)
{
    uint32_t group_count = query->groups ? query->group_count : 0;
    *upper = (struct graph_upper){0};
    uint64_t edge_count = graph->root_count + group_count + spanning_count_leaders(query->classes);
    if (group_count > GRAPH_NODES_MAX || edge_count > UINT32_MAX)
        return TTD_ERROR_NO_MEMORY;
    upper->count = group_count + 1;
    upper->edge_count = (uint32_t)edge_count;
    upper->first = graph_array_new((size_t)upper->count + 1, sizeof *upper->first);
    upper->targets = graph_array_new(upper->edge_count, sizeof *upper->targets);
    if (!upper->first || !upper->targets)
        return TTD_ERROR_NO_MEMORY;
    if (query->groups)
        spanning_upper_add_groups(upper, graph, query->groups);
    spanning_add_top(upper, graph, query);
    return TTD_OK;
}

void graph_upper_free(struct graph_upper *upper)
{
    graph_array_free(upper->first, (size_t)upper->count + 1, sizeof *upper->first);
    graph_array_free(upper->targets, upper->edge_count, sizeof *upper->targets);
    *upper = (struct graph_upper){0};
}

/* Edges of a node whose targets are prefetched when it is entered. */
#define AHEAD 8

/* Nodes whose first edge is known. */
#define GROUP 32

struct search {
    struct spanning_tree *tree;
    const struct graph *graph;
    const struct graph_upper *upper;
    /* By node on the way back to the top: the next edge. */
    uint32_t *cursors;
    /* By group of nodes of the graph, and one more: graph->first of its first node. */
    uint32_t *begins;
};

static uint32_t spanning_group_count(const struct graph *graph)
{
    return graph->node_count / GROUP + 1;
}

static void spanning_find_begins(const struct search *search)
{
    const struct graph *graph = search->graph;
    for (uint32_t group = 0; group < spanning_group_count(graph); group++)
        search->begins[group] = (uint32_t)graph->first[group * GROUP];
    search->begins[spanning_group_count(graph)] = (uint32_t)graph->edge_count;
}

/* Prefetches the data that are read when a node is entered. Its edges would have to wait for
 * graph->first, so their place is guessed, as if all nodes of a group had as many. */
static inline __attribute__((always_inline)) void
spanning_tree_prefetch(const struct search *search, uint32_t node)
{
    const struct graph *graph = search->graph;
    __builtin_prefetch(&search->tree->visits[node], 1);
    if (node >= graph->node_count || !graph->targets)
        return;
    const uint32_t *begin = &search->begins[node / GROUP];
    uint64_t before = (uint64_t)(begin[1] - begin[0]) * (node % GROUP) / GROUP;
    __builtin_prefetch(&graph->first[node]);
    __builtin_prefetch(&graph->targets[begin[0] + before]);
}

static struct edge_range spanning_tree_enter(const struct search *search, uint32_t node,
                                             uint32_t parent)
{
    struct spanning_tree *tree = search->tree;
    uint32_t number = tree->reached++;
    tree->visits[node].number = number;
    tree->nodes[number] = node;
    tree->parents[number] = parent;
    tree->earliest[number] = parent;
    struct edge_range edges = graph_edges_of(search->graph, search->upper, node);
    for (uint32_t i = edges.next; i < edges.end && i - edges.next < AHEAD; i++)
        spanning_tree_prefetch(search, edges.targets[i]);
    return edges;
}

/* Follows every edge once. The way back to the top follows the parents. A node entered after the
 * current one, and found by an edge of it, is below it. */
static void spanning_follow_edges(const struct search *search)
{
    struct spanning_tree *tree = search->tree;
    uint32_t current = 0;
    struct edge_range edges = spanning_tree_enter(search, tree->node_count - 1, 0);
    for (;;) {
        if (edges.next == edges.end) {
            if (current == 0)
                return;
            current = tree->parents[current];
            edges = graph_edges_of(search->graph, search->upper, tree->nodes[current]);
            edges.next = search->cursors[current];
            continue;
        }
        uint32_t target = edges.targets[edges.next++];
        uint32_t number = tree->visits[target].number;
        if (number == 0) {
            search->cursors[current] = edges.next;
            number = tree->reached;
            edges = spanning_tree_enter(search, target, current);
            current = number;
        } else if (number < current) {
            tree->visits[target].later_sources++;
        } else if (tree->earliest[number] > current) {
            tree->earliest[number] = current;
        }
    }
}

enum ttd_status spanning_tree_init(struct spanning_tree *tree, const struct graph *graph,
                                   const struct graph_upper *upper)
{
    uint32_t count = graph->node_count + upper->count;
    *tree = (struct spanning_tree){
        .node_count = count,
        .visits = graph_array_new(count, sizeof *tree->visits),
        .nodes = graph_array_new(count, sizeof *tree->nodes),
        .parents = graph_array_new(count, sizeof *tree->parents),
        .earliest = graph_array_new(count, sizeof *tree->earliest),
    };
    size_t groups = (size_t)spanning_group_count(graph) + 1;
    struct search search = {tree, graph, upper,
                            .cursors = graph_array_new(count, sizeof *search.cursors),
                            .begins = graph_array_new(groups, sizeof *search.begins)};
    bool has_memory = search.cursors && search.begins && tree->visits && tree->nodes &&
                      tree->parents && tree->earliest;
    if (has_memory) {
        spanning_find_begins(&search);
        spanning_follow_edges(&search);
    }
    graph_array_free(search.cursors, count, sizeof *search.cursors);
    graph_array_free(search.begins, groups, sizeof *search.begins);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void spanning_tree_trim(struct spanning_tree *tree)
{
    graph_array_free(tree->visits, tree->node_count, sizeof *tree->visits);
    graph_array_free(tree->earliest, tree->node_count, sizeof *tree->earliest);
    tree->visits = NULL;
    tree->earliest = NULL;
}

void spanning_tree_free(struct spanning_tree *tree)
{
    spanning_tree_trim(tree);
    graph_array_free(tree->nodes, tree->node_count, sizeof *tree->nodes);
    graph_array_free(tree->parents, tree->node_count, sizeof *tree->parents);
    *tree = (struct spanning_tree){0};
}
