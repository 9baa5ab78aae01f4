/* SPDX-License-Identifier: MIT */
#include "graph/spanning_tree.h"

#include "graph/arrays.h"

static struct edge_range enter(struct spanning_tree *tree, const struct graph *graph,
                               const struct graph_upper *upper, uint32_t node, uint32_t parent)
{
    uint32_t number = tree->reached++;
    tree->visits[node].number = number;
    tree->nodes[number] = node;
    tree->parents[number] = parent;
    tree->earliest[number] = parent;
    return graph_edges_of(graph, upper, node);
}

/* Follows every edge once. The way back to the top is that of the parents, and `cursors` has for
 * each node on it the next edge. A node entered after the current one, and found by an edge of it,
 * is below it. */
static void search(struct spanning_tree *tree, const struct graph *graph,
                   const struct graph_upper *upper, uint32_t *cursors)
{
    uint32_t current = 0;
    struct edge_range edges = enter(tree, graph, upper, tree->node_count - 1, 0);
    for (;;) {
        if (edges.next == edges.end) {
            if (current == 0)
                return;
            current = tree->parents[current];
            edges = graph_edges_of(graph, upper, tree->nodes[current]);
            edges.next = cursors[current];
            continue;
        }
        uint32_t target = edges.targets[edges.next++];
        if (edges.next < edges.end)
            __builtin_prefetch(&tree->visits[edges.targets[edges.next]], 1);
        uint32_t number = tree->visits[target].number;
        if (number == 0) {
            cursors[current] = edges.next;
            number = tree->reached;
            edges = enter(tree, graph, upper, target, current);
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
    uint32_t *cursors = array_new(count, sizeof *cursors);
    *tree = (struct spanning_tree){
        .node_count = count,
        .visits = array_new(count, sizeof *tree->visits),
        .nodes = array_new(count, sizeof *tree->nodes),
        .parents = array_new(count, sizeof *tree->parents),
        .earliest = array_new(count, sizeof *tree->earliest),
    };
    bool has_memory = cursors && tree->visits && tree->nodes && tree->parents && tree->earliest;
    if (has_memory)
        search(tree, graph, upper, cursors);
    array_free(cursors, count, sizeof *cursors);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void spanning_tree_trim(struct spanning_tree *tree)
{
    array_free(tree->visits, tree->node_count, sizeof *tree->visits);
    array_free(tree->earliest, tree->node_count, sizeof *tree->earliest);
    tree->visits = NULL;
    tree->earliest = NULL;
}

void spanning_tree_free(struct spanning_tree *tree)
{
    spanning_tree_trim(tree);
    array_free(tree->nodes, tree->node_count, sizeof *tree->nodes);
    array_free(tree->parents, tree->node_count, sizeof *tree->parents);
    *tree = (struct spanning_tree){0};
}
