/* SPDX-License-Identifier: MIT */
/* Adds records to a tree; inward trees, from main() to the functions that allocate. */
#include <stdlib.h>

#include "base/grow.h"
#include "view/tree_parts.h"

enum ttd_status view_tree_add_node(struct view_tree *tree, uint32_t parent, uint32_t label)
{
    if (tree->count == VIEW_NO_NODE)
        return TTD_ERROR_NO_MEMORY;
    enum ttd_status status =
        grow_array((void **)&tree->nodes, &tree->capacity, tree->count + 1, sizeof *tree->nodes);
    if (status == TTD_OK && tree->is_of_two)
        status = grow_array((void **)&tree->old, &tree->old_capacity, tree->count + 1,
                            sizeof *tree->old);
    if (status != TTD_OK)
        return status;
    if (tree->is_of_two)
        tree->old[tree->count] = (struct view_sums){.total = {0, 0, 0}};
    bool is_deep = parent != VIEW_NO_NODE && parent != 0;
    tree->nodes[tree->count++] =
        (struct view_node){.label = label,
                           .parent = parent,
                           .depth = is_deep ? tree->nodes[parent].depth + 1 : 0,
                           .first = VIEW_NO_NODE,
                           .next = VIEW_NO_NODE};
    return TTD_OK;
}

enum ttd_status view_tree_find_label(struct view_tree *tree, const struct view *view,
                                     uint32_t label, uint32_t *label_id)
{
    *label_id = label;
    if (tree->labels == &view->labels)
        return TTD_OK;
    struct view_label name = view->labels.labels[label];
    if (tree->is_across)
        name = label_across(name);
    return labels_add(tree->labels, &name, label_id);
}

enum ttd_status view_tree_add_below(struct view_tree *tree, uint32_t node, uint32_t label,
                                    uint32_t *child)
{
    *child = (uint32_t)tree->count;
    enum ttd_status status = view_tree_add_node(tree, node, label);
    return status == TTD_OK ? map_set(&tree->index, node, label, *child) : status;
}

enum ttd_status view_tree_descend(const struct view_addition *addition, uint32_t label,
                                  uint32_t *node, bool *is_new)
{
    struct view_tree *tree = addition->tree;
    enum ttd_status status = view_tree_find_label(tree, addition->view, label, &label);
    if (status != TTD_OK)
        return status;
    uint32_t child = map_get(&tree->index, *node, label);
    *is_new = child == MAP_NONE;
    if (*is_new)
        status = view_tree_add_below(tree, *node, label, &child);
    *node = child;
    return status;
}

bool view_tree_is_last(const struct view_tree *tree, uint32_t node)
{
    return node && tree->nodes[node].depth + UINT64_C(1) >= tree->levels;
}

/* Adds the outermost node for a thread, a heap, a class, or a stack without frames; no other record
 * needs one. */
static enum ttd_status add_first(const struct view_addition *addition, struct heap_key key,
                                 bool has_stack, uint32_t *node)
{
    struct view *view = addition->view;
    struct view_label label = view_record_label(view, key);
    uint32_t index;
    bool is_new;
    if (has_stack && !view_is_by_property(&view->options))
        return TTD_OK;
    enum ttd_status status = labels_add(&view->labels, &label, &index);
    return status == TTD_OK ? view_tree_descend(addition, index, node, &is_new) : status;
}

uint64_t view_tree_levels(const struct view_options *options)
{
    bool has_first = view_is_by_property(options);
    return options->depth && options->depth < UINT64_MAX ? options->depth + has_first : UINT64_MAX;
}

/* Descends through the frames of an address, the outermost first. `last` is the label of the frame
 * before. */
static enum ttd_status tree_enter_frames(const struct view_addition *addition,
                                         struct view_site site, uint32_t *last, uint32_t *node)
{
    const struct view *view = addition->view;
    enum ttd_status status = stack_table_spend(&view->definitions->stacks, site.count);
    for (size_t i = site.count; status == TTD_OK && i-- > 0;) {
        uint32_t label = view->frames[site.first + i].label;
        if (view_merges(view) && label == *last)
            continue;
        if (view_tree_is_last(addition->tree, *node))
            break;
        bool is_new;
        status = view_tree_descend(addition, label, node, &is_new);
        *last = label;
    }
    return status;
}

/* Sets addition->path to the stacks without a node, from `id` outward, and `node` to that of the
 * first caller that has one, if any has. */
static enum ttd_status tree_climb(struct view_addition *addition, uint32_t first, ttd_id id,
                                  size_t *count, uint32_t *last, uint32_t *node)
{
    struct ttd_stack stack;
    enum ttd_status status;
    *count = 0;
    while ((status = definitions_stack(addition->view->definitions, id, &stack)) == TTD_OK) {
        uint32_t known_node = map_get(&addition->stacks, first, id);
        if (known_node != MAP_NONE) {
            struct view_site site;
            *node = known_node;
            status = view_find_site(addition->view, &stack, &site);
            if (status == TTD_OK)
                *last = addition->view->frames[site.first].label;
            return status;
        }
        status = grow_array((void **)&addition->path, &addition->path_capacity, *count + 1,
                            sizeof *addition->path);
        if (status != TTD_OK)
            return status;
        addition->path[(*count)++] = stack;
        id = stack.parent;
    }
    return status == TTD_END ? TTD_OK : status;
}

static enum ttd_status add_inward(struct view_addition *addition, const struct ttd_stack *caller,
                                  struct view_site site, uint32_t *node)
{
    uint32_t first = *node;
    uint32_t last = VIEW_NO_NODE;
    size_t count;
    enum ttd_status status = tree_climb(addition, first, caller->parent, &count, &last, node);
    while (status == TTD_OK && count > 0) {
        const struct ttd_stack *next = &addition->path[--count];
        struct view_site whole;
        status = view_find_site(addition->view, next, &whole);
        if (status == TTD_OK)
            status = tree_enter_frames(addition, whole, &last, node);
        if (status == TTD_OK)
            status = map_set(&addition->stacks, first, next->id, *node);
    }
    return status == TTD_OK ? tree_enter_frames(addition, site, &last, node) : status;
}

static enum ttd_status add_record(struct view_addition *addition, struct heap_key key,
                                  struct heap_amount amount)
{
    struct view_tree *tree = addition->tree;
    uint32_t node = 0;
    struct ttd_stack caller;
    struct view_site site;
    enum ttd_status caller_status = view_find_caller(addition->view, key.stack, &caller, &site);
    enum ttd_status status = caller_status == TTD_END ? TTD_OK : caller_status;
    if (status == TTD_OK)
        status = add_first(addition, key, caller_status == TTD_OK, &node);
    if (status == TTD_OK && caller_status == TTD_OK)
        status = addition->view->options.shape == VIEW_TOP_DOWN
                     ? add_inward(addition, &caller, site, &node)
                     : view_tree_add_outward(addition, &caller, site, &node);
    uint32_t child;
    if (status == TTD_OK && caller_status == TTD_END)
        status = view_tail_step(tree, node, &child);
    if (status == TTD_OK)
        view_add_amount(
            addition->side == HEAP_OLD ? &tree->old[node].self : &tree->nodes[node].self, amount);
    return status;
}

enum ttd_status view_tree_add(struct view_tree *tree, struct view *view,
                              const struct heap_site_table *sites, enum heap_side side)
{
    struct view_addition addition = {.tree = tree, .view = view, .side = side};
    enum ttd_status status = TTD_OK;
    tree->views[side] = view;
    map_init(&addition.stacks);
    for (size_t i = 0; i < *sites->count && status == TTD_OK; i++) {
        struct heap_amount amount = sites->amount_of(heap_site_record(sites, i));
        if (amount.weight || amount.count)
            status = add_record(&addition, *heap_site_record(sites, i), amount);
    }
    map_free(&addition.stacks);
    free(addition.path);
    return status;
}
