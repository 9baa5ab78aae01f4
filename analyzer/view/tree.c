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
    if (status == TTD_OK)
        tree->nodes[tree->count++] = (view_node){.label = label,
                                                 .parent = parent,
                                                 .depth = depth,
                                                 .first = VIEW_NO_NODE,
                                                 .next = VIEW_NO_NODE};
    return status;
}

/* Goes from `node` to the node of a label below it. */
static ttd_status descend(view_tree *tree, uint32_t label, heap_amount amount, uint32_t *node)
{
    uint32_t below = map_get(&tree->index, *node, label);
    if (below == MAP_NONE) {
        below = (uint32_t)tree->count;
        uint32_t depth = *node ? tree->nodes[*node].depth + 1 : 0;
        ttd_status status = add_node(tree, *node, label, depth);
        if (status == TTD_OK)
            status = map_set(&tree->index, *node, label, below);
        if (status != TTD_OK)
            return status;
    }
    add_amount(&tree->nodes[below].all, amount);
    *node = below;
    return TTD_OK;
}

/* The label of a thread or a heap, or of a stack without frames; otherwise none is needed. */
static ttd_status add_first(view *shown, heap_key key, heap_amount amount, view_tree *tree,
                            uint32_t *node)
{
    view_label name = view_row_label(shown, key);
    uint32_t index;
    if (shown->path_count && name.kind != LABEL_THREAD && name.kind != LABEL_HEAP)
        return TTD_OK;
    ttd_status status = labels_add(&shown->labels, &name, &index);
    return status == TTD_OK ? descend(tree, index, amount, node) : status;
}

static ttd_status add_frames(const view *shown, heap_amount amount, view_tree *tree, uint32_t *node)
{
    size_t first = view_allocating(shown);
    size_t count = shown->path_count - first;
    bool merges = shown->options.by == VIEW_BY_FILE || shown->options.by == VIEW_BY_MODULE;
    uint64_t levels = 0;
    uint32_t last = VIEW_NO_NODE;
    ttd_status status = TTD_OK;
    for (size_t i = 0; i < count && status == TTD_OK; i++) {
        bool inward = shown->options.shape == VIEW_TOP_DOWN;
        size_t at = inward ? shown->path_count - 1 - i : first + i;
        uint32_t label = shown->frames[shown->path[at]].label;
        if (merges && label == last)
            continue;
        if (shown->options.depth && levels++ == shown->options.depth)
            break;
        status = descend(tree, label, amount, node);
        last = label;
    }
    return status;
}

static ttd_status add_row(view *shown, heap_key key, heap_amount amount, view_tree *tree)
{
    uint32_t node = 0;
    ttd_status status = view_find_path(shown, key.stack);
    if (status == TTD_OK)
        status = add_first(shown, key, amount, tree, &node);
    if (status == TTD_OK)
        status = add_frames(shown, amount, tree, &node);
    if (status != TTD_OK)
        return status;
    add_amount(&tree->nodes[0].all, amount);
    add_amount(&tree->nodes[node].self, amount);
    return TTD_OK;
}

/* Of an order of nodes, where it ends. */
typedef struct node_order {
    uint32_t parent;
    uint32_t node;
    heap_amount all;
} node_order;

/* Those of the last parent first, and of each the lightest first. */
static int compare(const void *a, const void *b)
{
    const node_order *x = a;
    const node_order *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? 1 : -1;
    if (x->all.weight != y->all.weight)
        return x->all.weight < y->all.weight ? -1 : 1;
    if (x->all.count != y->all.count)
        return x->all.count < y->all.count ? -1 : 1;
    return x->node < y->node ? 1 : -1;
}

/* Puts what is below each node in order. */
static ttd_status order_nodes(view_tree *tree)
{
    node_order *order = malloc(tree->count * sizeof *order);
    if (!order)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 1; i < tree->count; i++)
        order[i - 1] = (node_order){tree->nodes[i].parent, (uint32_t)i, tree->nodes[i].all};
    if (tree->count > 1)
        qsort(order, tree->count - 1, sizeof *order, compare);
    for (size_t i = 0; i + 1 < tree->count; i++) {
        view_node *parent = &tree->nodes[order[i].parent];
        tree->nodes[order[i].node].next = parent->first;
        parent->first = order[i].node;
        parent->count++;
    }
    free(order);
    /* A node is made after the one that it is below. */
    for (size_t i = 0; i < tree->count; i++) {
        const view_node *node = &tree->nodes[i];
        uint32_t rank = 0;
        bool has_branches = node->count > 1 || (i && node->self.count);
        for (uint32_t k = node->first; k != VIEW_NO_NODE; k = tree->nodes[k].next) {
            tree->nodes[k].rank = rank++;
            tree->nodes[k].branches = node->branches + has_branches;
        }
    }
    return TTD_OK;
}

ttd_status view_tree_build(view *shown, const heap_rows *rows, view_tree *tree)
{
    memset(tree, 0, sizeof *tree);
    map_init(&tree->index);
    ttd_status status = add_node(tree, VIEW_NO_NODE, 0, 0);
    for (size_t i = 0; i < *rows->count && status == TTD_OK; i++) {
        heap_amount amount = rows->amount(heap_row(rows, i));
        if (amount.weight || amount.count)
            status = add_row(shown, *heap_row(rows, i), amount, tree);
    }
    if (status == TTD_OK)
        status = order_nodes(tree);
    map_free(&tree->index);
    if (status != TTD_OK)
        view_tree_free(tree);
    return status;
}

void view_tree_free(view_tree *tree)
{
    free(tree->nodes);
    map_free(&tree->index);
    memset(tree, 0, sizeof *tree);
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
