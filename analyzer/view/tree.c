/* SPDX-License-Identifier: MIT */
#include "view/tree_parts.h"

#include <stdlib.h>
#include <string.h>

/* Sort key of a node: its parent, and its weight. */
struct node_order {
    uint32_t parent;
    uint32_t node;
    /* The heaviest node comes first; of equal ones the one with the larger count. */
    uint64_t weight;
    uint64_t count;
};

/* Sorts by parent, last one first, and below a parent the lightest first: tree_link_nodes()
 * prepends. */
static int tree_compare_nodes(const void *a, const void *b)
{
    const struct node_order *left = a;
    const struct node_order *right = b;
    if (left->parent != right->parent)
        return left->parent < right->parent ? 1 : -1;
    if (left->weight != right->weight)
        return left->weight < right->weight ? -1 : 1;
    if (left->count != right->count)
        return left->count < right->count ? -1 : 1;
    return left->node < right->node ? 1 : -1;
}

static struct node_order tree_order_of(const struct view_tree *tree, uint32_t node)
{
    uint32_t parent = tree->nodes[node].parent;
    const struct heap_amount *total = &tree->nodes[node].total;
    if (!tree->is_of_two)
        return (struct node_order){parent, node, total->weight, total->count};
    return (struct node_order){parent, node, tree->old[node].changed_bytes,
                               tree->old[node].changed_blocks};
}

/* Links the nodes below each node in order, down to `levels`. Nodes without weight are linked only
 * if `has_same`. */
static enum ttd_status tree_link_nodes(struct view_tree *tree, uint64_t levels, bool has_same)
{
    struct node_order *order = malloc(tree->count * sizeof *order);
    if (!order)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 1; i < tree->count; i++) {
        struct node_order next = tree_order_of(tree, (uint32_t)i);
        if (tree->nodes[i].depth < levels && (has_same || next.weight || next.count))
            order[tree->linked++] = next;
        else
            tree->nodes[i].tail.has_more = false;
    }
    if (tree->linked)
        qsort(order, tree->linked, sizeof *order, tree_compare_nodes);
    for (size_t i = 0; i < tree->linked; i++) {
        struct view_node *parent = &tree->nodes[order[i].parent];
        tree->nodes[order[i].node].next = parent->first;
        parent->first = order[i].node;
        parent->count++;
    }
    free(order);
    return TTD_OK;
}

/* Numbers the nodes below each node, and counts branchings. In the order of creation: a node comes
 * after its parent. */
static void tree_rank_nodes(struct view_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct view_node *node = &tree->nodes[i];
        uint32_t rank = 0;
        bool ends_here = node->self.count || (tree->is_of_two && tree->old[i].self.count);
        bool has_branches = node->count > 1 || (i && ends_here);
        for (uint32_t k = node->first; k != VIEW_NO_NODE; k = tree->nodes[k].next) {
            tree->nodes[k].rank = rank++;
            tree->nodes[k].branches = node->branches + has_branches;
        }
    }
}

static uint64_t tree_distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static void tree_weigh_changes(struct view_tree *tree)
{
    for (size_t i = tree->count; i-- > 0;) {
        const struct view_node *node = &tree->nodes[i];
        struct view_sums *sums = &tree->old[i];
        sums->changed_bytes =
            heap_add(sums->changed_bytes, tree_distance(sums->self.bytes, node->self.bytes));
        sums->changed_blocks =
            heap_add(sums->changed_blocks, tree_distance(sums->self.count, node->self.count));
        if (!i)
            return;
        struct view_sums *parent = &tree->old[node->parent];
        parent->changed_bytes = heap_add(parent->changed_bytes, sums->changed_bytes);
        parent->changed_blocks = heap_add(parent->changed_blocks, sums->changed_blocks);
    }
}

/* Ends stacks at the last level: amounts of deeper nodes go to their parents. */
static void tree_cut(struct view_tree *tree, uint64_t levels)
{
    for (size_t i = tree->count; i-- > 1;) {
        const struct view_node *node = &tree->nodes[i];
        if (node->depth < levels)
            continue;
        view_add_amount(&tree->nodes[node->parent].self, node->self);
        view_add_amount(&tree->old[node->parent].self, tree->old[i].self);
    }
}

/* Adds up the amounts, from the last node to the first, because a node comes after its parent. */
static void tree_sum_up(struct view_tree *tree)
{
    for (size_t i = tree->count; i-- > 0;) {
        struct view_node *node = &tree->nodes[i];
        view_add_amount(&node->total, node->self);
        if (i)
            view_add_amount(&tree->nodes[node->parent].total, node->total);
        if (!tree->is_of_two)
            continue;
        view_add_amount(&tree->old[i].total, tree->old[i].self);
        if (i)
            view_add_amount(&tree->old[node->parent].total, tree->old[i].total);
    }
}

/* Adds the nodes of tails (not made yet) to the number of nodes. */
static enum ttd_status tree_count_tails(struct view_tree *tree)
{
    uint64_t total = tree->linked;
    for (size_t i = 0; i < tree->count; i++) {
        uint64_t size;
        enum ttd_status status = view_tail_size(tree, (uint32_t)i, &size);
        if (status != TTD_OK)
            return status;
        total = heap_add(total, size);
    }
    tree->linked = (size_t)total;
    return TTD_OK;
}

/* Makes the nodes of the tail of a node that is shown. */
static enum ttd_status tree_show_tail(struct view_tree *tree, uint32_t node)
{
    uint32_t inner;
    enum ttd_status status;
    while ((status = view_tail_step(tree, node, &inner)) == TTD_OK && inner != VIEW_NO_NODE) {
        tree->nodes[node].first = inner;
        tree->nodes[node].count = 1;
        tree->nodes[inner].branches = tree->nodes[node].branches;
        node = inner;
    }
    return status;
}

static enum ttd_status tree_show_tails(struct view_tree *tree, size_t limit)
{
    enum ttd_status status = TTD_OK;
    uint32_t i = 0;
    while (status == TTD_OK && (i = view_tree_next(tree, i, limit)) != VIEW_NO_NODE)
        status = tree_show_tail(tree, i);
    return status;
}

static enum ttd_status tree_begin(struct view_tree *tree, struct label_table *labels,
                                  uint64_t levels)
{
    tree->labels = labels;
    tree->levels = levels;
    map_init(&tree->index);
    return view_tree_add_node(tree, VIEW_NO_NODE, 0);
}

enum ttd_status view_tree_begin(struct view_tree *tree, struct label_table *labels, bool is_across)
{
    *tree = (struct view_tree){.is_of_two = true, .is_across = is_across};
    return tree_begin(tree, labels, UINT64_MAX);
}

enum ttd_status view_tree_end(struct view_tree *tree, const struct view_tree_scope *scope)
{
    tree_sum_up(tree);
    tree->levels = scope->levels;
    if (tree->is_of_two) {
        tree_weigh_changes(tree);
        tree_cut(tree, scope->levels);
    }
    enum ttd_status status = tree_link_nodes(tree, scope->levels, scope->has_same);
    if (status == TTD_OK)
        status = tree_count_tails(tree);
    if (status != TTD_OK)
        return status;
    tree_rank_nodes(tree);
    status = tree_show_tails(tree, scope->limit);
    map_free(&tree->index);
    return status;
}

enum ttd_status view_tree_build(struct view *view, const struct heap_site_table *sites,
                                size_t limit, struct view_tree *tree)
{
    struct view_tree_scope scope = {
        .levels = view_tree_levels(&view->options), .limit = limit, .has_same = true};
    *tree = (struct view_tree){.is_of_two = false};
    enum ttd_status status = tree_begin(tree, &view->labels, scope.levels);
    if (status == TTD_OK)
        status = view_tree_add(tree, view, sites, HEAP_NEW);
    if (status == TTD_OK)
        status = view_tree_end(tree, &scope);
    if (status != TTD_OK)
        view_tree_free(tree);
    return status;
}

void view_tree_free(struct view_tree *tree)
{
    free(tree->nodes);
    free(tree->old);
    map_free(&tree->index);
    *tree = (struct view_tree){.is_of_two = false};
}

uint32_t view_tree_next(const struct view_tree *tree, uint32_t node, size_t limit)
{
    const struct view_node *current = &tree->nodes[node];
    if (current->first != VIEW_NO_NODE && limit)
        return current->first;
    while (current->parent != VIEW_NO_NODE) {
        if (current->next != VIEW_NO_NODE && current->rank + 1 < limit)
            return current->next;
        current = &tree->nodes[current->parent];
    }
    return VIEW_NO_NODE;
}
