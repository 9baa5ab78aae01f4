/* SPDX-License-Identifier: MIT */
#include "graph/dominators.h"

#include "base/task.h"
#include "graph/graph.h"

/* The nodes above a graph, where every way begins: groups of roots, and the top. */

/* Nodes are numbered from the last node of the graph on: first the groups, then the top. Edges of
 * the n-th are those from first[n] up to first[n + 1]. */
struct graph_upper {
    /* Groups and the top. */
    uint32_t count;
    uint32_t edge_count;
    uint32_t *first;
    uint32_t *targets;
};

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

/* Makes the upper nodes. The top leads to the groups, or else to the targets of the roots, and to
 * definitely lost nodes if the query has classes. Returns TTD_ERROR_NO_MEMORY also with more edges
 * than UINT32_MAX. spanning_upper_free() may be called in any case. */
static enum ttd_status spanning_upper_init(struct graph_upper *upper, const struct graph *graph,
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

static void spanning_upper_free(struct graph_upper *upper)
{
    graph_array_free(upper->first, (size_t)upper->count + 1, sizeof *upper->first);
    graph_array_free(upper->targets, upper->edge_count, sizeof *upper->targets);
    *upper = (struct graph_upper){0};
}

/* Depth-first search from the top of a graph: the tree of first visits. */

/* A node of the tree. Its members lie together, since every edge reads all of them. */
struct graph_visit {
    /* When it was entered, counted from the top, which is 0; 0 if it was not. */
    uint32_t number;
    /* Edges from nodes that were entered later. */
    uint32_t later_sources;
};

/* Nodes are called by their numbers: when they were entered. */
struct spanning_tree {
    /* Nodes of the graph and above it. */
    uint32_t node_count;
    /* By node of the graph or above it. */
    struct graph_visit *visits;
    /* Numbers in use. */
    uint32_t reached;
    /* By number: the node. */
    uint32_t *nodes;
    /* By number: from where it was entered. */
    uint32_t *parents;
    /* By number: the lowest of the nodes entered before it that have an edge to it. */
    uint32_t *earliest;
};

/* Edges of a node that are still to be followed. */
struct edge_range {
    const uint32_t *targets;
    uint32_t next;
    uint32_t end;
};

/* All edges of a node of the graph or above it. */
static inline struct edge_range spanning_edges_of(const struct graph *graph,
                                                  const struct graph_upper *upper, uint32_t node)
{
    if (node < graph->node_count)
        return (struct edge_range){graph->targets, (uint32_t)graph->first[node],
                                   (uint32_t)graph->first[node + 1]};
    node -= graph->node_count;
    return (struct edge_range){upper->targets, upper->first[node], upper->first[node + 1]};
}

/* Edges of a node whose targets are prefetched when it is entered. */
#define EDGES_AHEAD 8

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
    struct edge_range edges = spanning_edges_of(search->graph, search->upper, node);
    for (uint32_t i = edges.next; i < edges.end && i - edges.next < EDGES_AHEAD; i++)
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
            edges = spanning_edges_of(search->graph, search->upper, tree->nodes[current]);
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

/* Searches a graph of at most UINT32_MAX edges. Returns TTD_OK or TTD_ERROR_NO_MEMORY.
 * spanning_tree_free() may be called in any case. */
static enum ttd_status spanning_tree_init(struct spanning_tree *tree, const struct graph *graph,
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

/* Frees `visits` and `earliest`. */
static void spanning_tree_trim(struct spanning_tree *tree)
{
    graph_array_free(tree->visits, tree->node_count, sizeof *tree->visits);
    graph_array_free(tree->earliest, tree->node_count, sizeof *tree->earliest);
    tree->visits = NULL;
    tree->earliest = NULL;
}

static void spanning_tree_free(struct spanning_tree *tree)
{
    spanning_tree_trim(tree);
    graph_array_free(tree->nodes, tree->node_count, sizeof *tree->nodes);
    graph_array_free(tree->parents, tree->node_count, sizeof *tree->parents);
    *tree = (struct spanning_tree){0};
}

/* Immediate dominators of the nodes of a spanning tree. */

/* Semi-NCA (Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems").
 *
 * The semidominator of a node is the lowest node with a way to it through higher nodes only. It is
 * the lowest of the sources of its edges that are lower than it, and of the semidominators of the
 * nodes on the tree path to a higher source, those that are higher than the node itself. Nodes are
 * finished from the highest to the lowest, so that these are known. The immediate dominator is the
 * first that is not above the semidominator on the chain of the parent's dominators.
 *
 * Lower sources are known from the search. Only edges from higher ones are sorted by target. */

/* Nodes, or edges, between a prefetch and its use. */
#define AHEAD 16

/* A node that is finished, in the forest of these. */
struct link {
    /* A node above it in the tree, lower than all between the two. */
    uint32_t above;
    /* The lowest semidominator of the nodes from it up to `above`, that one excluded. */
    uint32_t lowest;
};

struct finder {
    struct spanning_tree *tree;
    const struct graph *graph;
    const struct graph_upper *upper;
    /* By number. While a node is not finished, `above` is the place of its first source. */
    struct link *links;
    /* Sources of edges from higher nodes, in the order of the targets' numbers. */
    uint32_t *sources;
    uint32_t source_count;
};

/* Allots places to the sources of all nodes. visits[].later_sources becomes the place behind the
 * last one. */
static uint32_t dominators_allot_sources(const struct spanning_tree *tree, struct link *links)
{
    uint32_t sum = 0;
    for (uint32_t number = 0; number < tree->reached; number++) {
        if (tree->reached - number > AHEAD)
            __builtin_prefetch(&tree->visits[tree->nodes[number + AHEAD]], 1);
        struct graph_visit *visit = &tree->visits[tree->nodes[number]];
        links[number].above = sum;
        sum += visit->later_sources;
        visit->later_sources = sum;
    }
    return sum;
}

/* Prefetches a target that follows soon: the edges of all nodes of the graph lie one behind the
 * other. */
static inline __attribute__((always_inline)) void
dominators_prefetch_target(const struct finder *finder, struct edge_range edges)
{
    const struct graph *graph = finder->graph;
    uint64_t edge = (uint64_t)edges.next + AHEAD;
    if (edges.targets == graph->targets && edge < graph->edge_count)
        __builtin_prefetch(&finder->tree->visits[graph->targets[edge]], 1);
}

/* Puts the sources of some targets in their places, from the last one to the first. */
static enum ttd_status dominators_sort_sources(void *context, size_t begin, size_t end)
{
    const struct finder *finder = context;
    struct graph_visit *visits = finder->tree->visits;
    for (uint32_t node = 0; node < finder->tree->node_count; node++) {
        uint32_t number = visits[node].number;
        if (number == 0)
            continue;
        struct edge_range edges = spanning_edges_of(finder->graph, finder->upper, node);
        for (; edges.next < edges.end; edges.next++) {
            uint32_t target = edges.targets[edges.next];
            dominators_prefetch_target(finder, edges);
            if (target >= begin && target < end && visits[target].number < number)
                finder->sources[--visits[target].later_sources] = number;
        }
    }
    return TTD_OK;
}

/* Finds the lowest semidominator on the tree path from a finished node up to the last one that is
 * higher than `number`. Shortens the path by half. */
static uint32_t dominators_lowest_above(struct link *links, uint32_t node, uint32_t number)
{
    uint32_t lowest = UINT32_MAX;
    for (;;) {
        struct link *link = &links[node];
        if (link->above > number) {
            const struct link *upper = &links[link->above];
            if (upper->lowest < link->lowest)
                link->lowest = upper->lowest;
            link->above = upper->above;
        }
        if (link->lowest < lowest)
            lowest = link->lowest;
        if (link->above <= number)
            return lowest;
        node = link->above;
    }
}

/* Prefetches the link of a source that follows soon, and of one that follows sooner the link above.
 * A source that is not finished has a place there, perhaps without a node. */
static inline __attribute__((always_inline)) void
dominators_prefetch_links(const struct finder *finder, uint32_t i)
{
    if (i < 2 * AHEAD)
        return;
    __builtin_prefetch(&finder->links[finder->sources[i - 2 * AHEAD]], 1);
    uint32_t above = finder->links[finder->sources[i - AHEAD]].above;
    if (above < finder->tree->reached)
        __builtin_prefetch(&finder->links[above]);
}

/* Sets `earliest` of each node to its semidominator. */
static void dominators_find_semidominators(const struct finder *finder)
{
    const struct spanning_tree *tree = finder->tree;
    uint32_t end = finder->source_count;
    for (uint32_t number = tree->reached - 1; number > 0; number--) {
        uint32_t lowest = tree->earliest[number];
        uint32_t begin = finder->links[number].above;
        for (uint32_t i = end; i-- > begin;) {
            dominators_prefetch_links(finder, i);
            uint32_t candidate = dominators_lowest_above(finder->links, finder->sources[i], number);
            if (candidate < lowest)
                lowest = candidate;
        }
        end = begin;
        tree->earliest[number] = lowest;
        finder->links[number] = (struct link){tree->parents[number], lowest};
    }
}

static void find_dominators(struct spanning_tree *tree)
{
    for (uint32_t number = 1; number < tree->reached; number++) {
        uint32_t dominator = tree->parents[number];
        while (dominator > tree->earliest[number])
            dominator = tree->parents[dominator];
        tree->parents[number] = dominator;
    }
}

/**
 * Replaces the parents of a spanning tree by immediate dominators. Frees the same as
 * spanning_tree_trim().
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY.
 */
static enum ttd_status graph_find_dominators(struct spanning_tree *tree, const struct graph *graph,
                                             const struct graph_upper *upper)
{
    struct finder finder = {.tree = tree, .graph = graph, .upper = upper};
    finder.links = graph_array_new(tree->reached, sizeof *finder.links);
    if (finder.links) {
        finder.source_count = dominators_allot_sources(tree, finder.links);
        finder.sources = graph_array_new(finder.source_count, sizeof *finder.sources);
    }
    bool has_memory = finder.sources;
    if (has_memory) {
        (void)halves_do(dominators_sort_sources, &finder, &finder, tree->node_count);
        dominators_find_semidominators(&finder);
    }
    graph_array_free(finder.sources, finder.source_count, sizeof *finder.sources);
    graph_array_free(finder.links, tree->reached, sizeof *finder.links);
    if (has_memory)
        find_dominators(tree);
    spanning_tree_trim(tree);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

/* Sums by number instead of by node: a dominator's number is near the numbers of the nodes that it
 * dominates, mostly, so that the cache has both. */
struct sums {
    /* Nodes that a node dominates, itself included; then the next rank for a child of it. */
    uint32_t *extents;
    uint64_t *bytes;
};

/* Sums up from the bottom up: a dominator has a lower number. */
static void dominators_sum_up(const struct graph_dominators *dominators,
                              const struct spanning_tree *tree, const uint64_t *sizes,
                              struct sums *sums)
{
    for (uint32_t number = 0; number < tree->reached; number++) {
        uint32_t node = tree->nodes[number];
        if (tree->reached - number > AHEAD && tree->nodes[number + AHEAD] < dominators->node_count)
            __builtin_prefetch(&sizes[tree->nodes[number + AHEAD]]);
        sums->extents[number] = 1;
        sums->bytes[number] = node < dominators->node_count ? sizes[node] : 0;
    }
    for (uint32_t number = tree->reached - 1; number > 0; number--) {
        uint32_t parent = tree->parents[number];
        sums->extents[parent] += sums->extents[number];
        sums->bytes[parent] = graph_add_saturated(sums->bytes[parent], sums->bytes[number]);
    }
}

/* Prefetches the members of a node that will be written soon. */
static inline __attribute__((always_inline)) void
dominators_prefetch(const struct graph_dominators *dominators, uint32_t node)
{
    __builtin_prefetch(&dominators->extents[node], 1);
    __builtin_prefetch(&dominators->bytes[node], 1);
    __builtin_prefetch(&dominators->parents[node], 1);
    __builtin_prefetch(&dominators->ranks[node], 1);
}

/* Lays the tree out, from the top down. The rank of a node is behind its parent, and behind the
 * nodes that siblings with lower numbers dominate. */
static void dominators_lay_out(const struct graph_dominators *dominators,
                               const struct spanning_tree *tree, struct sums *sums)
{
    for (uint32_t number = 0; number < tree->reached; number++) {
        uint32_t node = tree->nodes[number];
        uint32_t rank = 0;
        if (tree->reached - number > AHEAD)
            dominators_prefetch(dominators, tree->nodes[number + AHEAD]);
        dominators->extents[node] = sums->extents[number];
        dominators->bytes[node] = sums->bytes[number];
        if (number > 0) {
            uint32_t *next = &sums->extents[tree->parents[number]];
            rank = *next;
            *next += sums->extents[number];
            dominators->parents[node] = tree->nodes[tree->parents[number]];
        }
        dominators->ranks[node] = rank;
        dominators->order[rank] = node;
        sums->extents[number] = rank + 1;
    }
}

static enum ttd_status dominators_allocate(struct graph_dominators *dominators)
{
    uint32_t count = dominators->count;
    dominators->parents = graph_array_new(count, sizeof *dominators->parents);
    dominators->order = graph_array_new(count, sizeof *dominators->order);
    dominators->ranks = graph_array_new(count, sizeof *dominators->ranks);
    dominators->extents = graph_array_new(count, sizeof *dominators->extents);
    dominators->bytes = graph_array_new(count, sizeof *dominators->bytes);
    bool has_memory = dominators->parents && dominators->order && dominators->ranks &&
                      dominators->extents && dominators->bytes;
    for (uint32_t node = 0; has_memory && node < count; node++) {
        dominators->parents[node] = GRAPH_NONE;
        dominators->ranks[node] = GRAPH_NONE;
    }
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

static enum ttd_status dominators_make_tree(struct graph_dominators *dominators,
                                            const struct spanning_tree *tree, const uint64_t *sizes)
{
    dominators->count = tree->node_count;
    dominators->reached = tree->reached;
    struct sums sums = {.extents = graph_array_new(tree->reached, sizeof *sums.extents),
                        .bytes = graph_array_new(tree->reached, sizeof *sums.bytes)};
    enum ttd_status status = dominators_allocate(dominators);
    if (status == TTD_OK && !(sums.extents && sums.bytes))
        status = TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        dominators_sum_up(dominators, tree, sizes, &sums);
        dominators_lay_out(dominators, tree, &sums);
    }
    graph_array_free(sums.extents, tree->reached, sizeof *sums.extents);
    graph_array_free(sums.bytes, tree->reached, sizeof *sums.bytes);
    return status;
}

enum ttd_status graph_dominate(const struct graph *graph,
                               const struct graph_dominators_query *query, const uint64_t *sizes,
                               struct graph_dominators *dominators)
{
    *dominators = (struct graph_dominators){.node_count = graph->node_count};
    if (graph->edge_count > UINT32_MAX)
        return TTD_ERROR_NO_MEMORY;
    struct graph_upper upper;
    struct spanning_tree tree = {0};
    enum ttd_status status = spanning_upper_init(&upper, graph, query);
    if (status == TTD_OK && upper.edge_count > UINT32_MAX - graph->edge_count)
        status = TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK)
        status = spanning_tree_init(&tree, graph, &upper);
    if (status == TTD_OK)
        status = graph_find_dominators(&tree, graph, &upper);
    spanning_upper_free(&upper);
    if (status == TTD_OK)
        status = dominators_make_tree(dominators, &tree, sizes);
    spanning_tree_free(&tree);
    return status;
}

void graph_dominators_free(struct graph_dominators *dominators)
{
    uint32_t count = dominators->count;
    graph_array_free(dominators->parents, count, sizeof *dominators->parents);
    graph_array_free(dominators->order, count, sizeof *dominators->order);
    graph_array_free(dominators->ranks, count, sizeof *dominators->ranks);
    graph_array_free(dominators->extents, count, sizeof *dominators->extents);
    graph_array_free(dominators->bytes, count, sizeof *dominators->bytes);
    *dominators = (struct graph_dominators){0};
}

uint32_t graph_retained_blocks(const struct graph_dominators *dominators, uint32_t node)
{
    uint32_t extent = dominators->extents[node];
    if (node < dominators->node_count)
        return extent;
    return node + 1 < dominators->count ? extent - 1
                                        : extent - (dominators->count - dominators->node_count);
}

uint32_t graph_dominators_child(const struct graph_dominators *dominators, uint32_t node,
                                uint32_t *cursor)
{
    if (*cursor + 1 >= dominators->extents[node])
        return GRAPH_NONE;
    uint32_t child = dominators->order[dominators->ranks[node] + 1 + *cursor];
    *cursor += dominators->extents[child];
    return child;
}

enum ttd_status graph_retained_by_group(const struct graph_dominators *dominators,
                                        const uint32_t *groups, uint32_t group_count,
                                        struct graph_retained *retained)
{
    /* By group: the end of the range that its last node dominates, if no node of the range
     * dominates it. */
    uint32_t *ends = graph_array_new(group_count, sizeof *ends);
    if (!ends)
        return TTD_ERROR_NO_MEMORY;
    for (uint32_t i = 0; i < group_count; i++)
        retained[i] = (struct graph_retained){0};
    for (uint32_t number = 0; number < dominators->reached; number++) {
        uint32_t node = dominators->order[number];
        if (node >= dominators->node_count || groups[node] == GRAPH_NONE ||
            number < ends[groups[node]])
            continue;
        struct graph_retained *sum = &retained[groups[node]];
        ends[groups[node]] = number + dominators->extents[node];
        sum->blocks += dominators->extents[node];
        sum->bytes = graph_add_saturated(sum->bytes, dominators->bytes[node]);
    }
    graph_array_free(ends, group_count, sizeof *ends);
    return TTD_OK;
}
