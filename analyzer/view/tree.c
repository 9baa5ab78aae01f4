/* SPDX-License-Identifier: MIT */
#include "view/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static void add_amount(heap_amount *sum, heap_amount amount)
{
    sum->weight = heap_add(sum->weight, amount.weight);
    sum->bytes = heap_add(sum->bytes, amount.bytes);
    sum->count = heap_add(sum->count, amount.count);
}

static ttd_status add_node(view_tree *tree, uint32_t parent, uint32_t label, uint32_t depth)
{
    if (tree->count == VIEW_NODES_MAX)
        return TTD_ERROR_LIMIT;
    ttd_status status =
        grow_array((void **)&tree->nodes, &tree->capacity, tree->count + 1, sizeof *tree->nodes);
    if (status == TTD_OK && tree->is_of_two)
        status = grow_array((void **)&tree->old, &tree->old_capacity, tree->count + 1,
                            sizeof *tree->old);
    if (status != TTD_OK)
        return status;
    if (tree->is_of_two)
        tree->old[tree->count] = (view_sums){.all = {0, 0, 0}};
    tree->nodes[tree->count++] = (view_node){.label = label,
                                             .parent = parent,
                                             .depth = depth,
                                             .first = VIEW_NO_NODE,
                                             .next = VIEW_NO_NODE};
    return TTD_OK;
}

/* What is added to a tree: the rows of one view, each with what it amounts to. */
typedef struct addition {
    view_tree *tree;
    view *shown;
    heap_side side;
    heap_amount amount;
} addition;

static heap_amount *all_of(const addition *from, uint32_t node)
{
    return from->side == HEAP_OLD ? &from->tree->old[node].all : &from->tree->nodes[node].all;
}

static heap_amount *self_of(const addition *from, uint32_t node)
{
    return from->side == HEAP_OLD ? &from->tree->old[node].self : &from->tree->nodes[node].self;
}

/* The number in the tree of a label of the view. */
static ttd_status find_label(const addition *from, uint32_t label, uint32_t *found)
{
    *found = label;
    if (from->tree->labels == &from->shown->labels)
        return TTD_OK;
    view_label name = from->shown->labels.items[label];
    if (from->tree->is_across)
        name = label_across(name);
    return labels_add(from->tree->labels, &name, found);
}

/* Goes from `node` to the node of a label, which is the view's, below it. */
static ttd_status descend(const addition *from, uint32_t label, uint32_t *node)
{
    view_tree *tree = from->tree;
    ttd_status status = find_label(from, label, &label);
    if (status != TTD_OK)
        return status;
    uint32_t below = map_get(&tree->index, *node, label);
    if (below == MAP_NONE) {
        below = (uint32_t)tree->count;
        uint32_t depth = *node ? tree->nodes[*node].depth + 1 : 0;
        status = add_node(tree, *node, label, depth);
        if (status == TTD_OK)
            status = map_set(&tree->index, *node, label, below);
        if (status != TTD_OK)
            return status;
    }
    add_amount(all_of(from, below), from->amount);
    *node = below;
    return TTD_OK;
}

/* The label of a thread or a heap, or of a stack without frames; otherwise none is needed. */
static ttd_status add_first(const addition *from, heap_key key, uint32_t *node)
{
    view *shown = from->shown;
    view_label name = view_row_label(shown, key);
    uint32_t index;
    if (shown->path_count && name.kind != LABEL_THREAD && name.kind != LABEL_HEAP)
        return TTD_OK;
    ttd_status status = labels_add(&shown->labels, &name, &index);
    return status == TTD_OK ? descend(from, index, node) : status;
}

uint64_t view_tree_levels(const view_options *options)
{
    bool has_first = options->by == VIEW_BY_THREAD || options->by == VIEW_BY_HEAP;
    return options->depth && options->depth < UINT64_MAX ? options->depth + has_first : UINT64_MAX;
}

static ttd_status add_frames(const addition *from, uint32_t *node)
{
    const view *shown = from->shown;
    size_t first = view_allocating(shown);
    size_t count = shown->path_count - first;
    bool merges = shown->options.by == VIEW_BY_FILE || shown->options.by == VIEW_BY_MODULE;
    /* Two heaps are compared stack by stack, before the tree is cut. */
    uint64_t most = from->tree->is_of_two ? UINT64_MAX : view_tree_levels(&shown->options);
    uint32_t last = VIEW_NO_NODE;
    ttd_status status = TTD_OK;
    for (size_t i = 0; i < count && status == TTD_OK; i++) {
        bool inward = shown->options.shape == VIEW_TOP_DOWN;
        size_t at = inward ? shown->path_count - 1 - i : first + i;
        uint32_t label = shown->frames[shown->path[at]].label;
        if (merges && label == last)
            continue;
        if (*node && from->tree->nodes[*node].depth + UINT64_C(1) >= most)
            break;
        status = descend(from, label, node);
        last = label;
    }
    return status;
}

static ttd_status add_row(const addition *from, heap_key key)
{
    uint32_t node = 0;
    ttd_status status = view_find_path(from->shown, key.stack);
    if (status == TTD_OK)
        status = add_first(from, key, &node);
    if (status == TTD_OK)
        status = add_frames(from, &node);
    if (status != TTD_OK)
        return status;
    add_amount(all_of(from, 0), from->amount);
    add_amount(self_of(from, node), from->amount);
    return TTD_OK;
}

/* Of an order of nodes, where it ends. */
typedef struct node_order {
    uint32_t parent;
    uint32_t node;
    /* The heaviest comes first; then that of more. */
    uint64_t weight;
    uint64_t count;
} node_order;

/* Those of the last parent first, and of each the lightest first. */
static int compare(const void *a, const void *b)
{
    const node_order *x = a;
    const node_order *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? 1 : -1;
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return x->node < y->node ? 1 : -1;
}

static node_order order_of(const view_tree *tree, uint32_t node)
{
    uint32_t parent = tree->nodes[node].parent;
    const heap_amount *all = &tree->nodes[node].all;
    if (!tree->is_of_two)
        return (node_order){parent, node, all->weight, all->count};
    return (node_order){parent, node, tree->old[node].changed_bytes,
                        tree->old[node].changed_blocks};
}

/* Links what is below each node, in order, so many levels; without weight only if `has_same`. */
static ttd_status link_nodes(view_tree *tree, uint64_t levels, bool has_same)
{
    node_order *order = malloc(tree->count * sizeof *order);
    if (!order)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 1; i < tree->count; i++) {
        node_order next = order_of(tree, (uint32_t)i);
        if (tree->nodes[i].depth < levels && (has_same || next.weight || next.count))
            order[tree->linked++] = next;
    }
    if (tree->linked)
        qsort(order, tree->linked, sizeof *order, compare);
    for (size_t i = 0; i < tree->linked; i++) {
        view_node *parent = &tree->nodes[order[i].parent];
        tree->nodes[order[i].node].next = parent->first;
        parent->first = order[i].node;
        parent->count++;
    }
    free(order);
    return TTD_OK;
}

/* A node is made after the one that it is below. */
static void rank_nodes(view_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        const view_node *node = &tree->nodes[i];
        uint32_t rank = 0;
        bool ends_here = node->self.count || (tree->is_of_two && tree->old[i].self.count);
        bool has_branches = node->count > 1 || (i && ends_here);
        for (uint32_t k = node->first; k != VIEW_NO_NODE; k = tree->nodes[k].next) {
            tree->nodes[k].rank = rank++;
            tree->nodes[k].branches = node->branches + has_branches;
        }
    }
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static void weigh_changes(view_tree *tree)
{
    for (size_t i = tree->count; i-- > 0;) {
        const view_node *node = &tree->nodes[i];
        view_sums *old = &tree->old[i];
        old->changed_bytes =
            heap_add(old->changed_bytes, distance(old->self.bytes, node->self.bytes));
        old->changed_blocks =
            heap_add(old->changed_blocks, distance(old->self.count, node->self.count));
        if (!i)
            return;
        view_sums *parent = &tree->old[node->parent];
        parent->changed_bytes = heap_add(parent->changed_bytes, old->changed_bytes);
        parent->changed_blocks = heap_add(parent->changed_blocks, old->changed_blocks);
    }
}

/* Stacks that go on where the tree is cut end there. */
static void cut(view_tree *tree, uint64_t levels)
{
    for (size_t i = tree->count; i-- > 1;) {
        const view_node *node = &tree->nodes[i];
        if (node->depth < levels)
            continue;
        add_amount(&tree->nodes[node->parent].self, node->self);
        add_amount(&tree->old[node->parent].self, tree->old[i].self);
    }
}

static ttd_status begin(view_tree *tree, label_table *labels)
{
    tree->labels = labels;
    map_init(&tree->index);
    return add_node(tree, VIEW_NO_NODE, 0, 0);
}

ttd_status view_tree_begin(view_tree *tree, label_table *labels, bool is_across)
{
    *tree = (view_tree){.is_of_two = true, .is_across = is_across};
    return begin(tree, labels);
}

ttd_status view_tree_add(view_tree *tree, view *shown, const heap_rows *rows, heap_side side)
{
    ttd_status status = TTD_OK;
    for (size_t i = 0; i < *rows->count && status == TTD_OK; i++) {
        addition from = {tree, shown, side, rows->amount(heap_row(rows, i))};
        if (from.amount.weight || from.amount.count)
            status = add_row(&from, *heap_row(rows, i));
    }
    return status;
}

ttd_status view_tree_end(view_tree *tree, uint64_t levels, bool has_same)
{
    map_free(&tree->index);
    if (tree->is_of_two) {
        weigh_changes(tree);
        cut(tree, levels);
    }
    ttd_status status = link_nodes(tree, levels, has_same);
    if (status == TTD_OK)
        rank_nodes(tree);
    return status;
}

ttd_status view_tree_build(view *shown, const heap_rows *rows, view_tree *tree)
{
    *tree = (view_tree){.is_of_two = false};
    ttd_status status = begin(tree, &shown->labels);
    if (status == TTD_OK)
        status = view_tree_add(tree, shown, rows, HEAP_NEW);
    if (status == TTD_OK)
        status = view_tree_end(tree, UINT64_MAX, true);
    if (status != TTD_OK)
        view_tree_free(tree);
    return status;
}

void view_tree_free(view_tree *tree)
{
    free(tree->nodes);
    free(tree->old);
    map_free(&tree->index);
    *tree = (view_tree){.is_of_two = false};
}

uint32_t view_tree_next(const view_tree *tree, uint32_t node, size_t limit)
{
    const view_node *at = &tree->nodes[node];
    if (at->first != VIEW_NO_NODE && limit)
        return at->first;
    while (at->parent != VIEW_NO_NODE) {
        if (at->next != VIEW_NO_NODE && at->rank + 1 < limit)
            return at->next;
        at = &tree->nodes[at->parent];
    }
    return VIEW_NO_NODE;
}
