/* SPDX-License-Identifier: MIT */
/* Rows become nodes of a tree. */
#include <stdlib.h>

#include "base/grow.h"
#include "view/tree_parts.h"

ttd_status view_tree_add_node(view_tree *tree, uint32_t parent, uint32_t label)
{
    if (tree->count == VIEW_NO_NODE)
        return TTD_ERROR_NO_MEMORY;
    ttd_status status =
        grow_array((void **)&tree->nodes, &tree->capacity, tree->count + 1, sizeof *tree->nodes);
    if (status == TTD_OK && tree->is_of_two)
        status = grow_array((void **)&tree->old, &tree->old_capacity, tree->count + 1,
                            sizeof *tree->old);
    if (status != TTD_OK)
        return status;
    if (tree->is_of_two)
        tree->old[tree->count] = (view_sums){.all = {0, 0, 0}};
    bool is_deep = parent != VIEW_NO_NODE && parent != 0;
    tree->nodes[tree->count++] = (view_node){.label = label,
                                             .parent = parent,
                                             .depth = is_deep ? tree->nodes[parent].depth + 1 : 0,
                                             .first = VIEW_NO_NODE,
                                             .next = VIEW_NO_NODE};
    return TTD_OK;
}

/* What is added to a tree: the rows of one view. */
typedef struct addition {
    view_tree *tree;
    view *shown;
    heap_side side;
    /* Inward: (first node, stack) to the node of the stack's last call. Stacks share what they are
     * called by, and so do trees. */
    hash_map stacks;
    ttd_stack *path;
    size_t path_capacity;
} addition;

/* The number in the tree of a label of the view. */
static ttd_status find_label(view_tree *tree, const view *shown, uint32_t label, uint32_t *found)
{
    *found = label;
    if (tree->labels == &shown->labels)
        return TTD_OK;
    view_label name = shown->labels.items[label];
    if (tree->is_across)
        name = label_across(name);
    return labels_add(tree->labels, &name, found);
}

static ttd_status add_below(view_tree *tree, uint32_t node, uint32_t label, uint32_t *below)
{
    *below = (uint32_t)tree->count;
    ttd_status status = view_tree_add_node(tree, node, label);
    return status == TTD_OK ? map_set(&tree->index, node, label, *below) : status;
}

/* Goes from `node` to the node of a label, which is the view's, below it. */
static ttd_status descend(const addition *from, uint32_t label, uint32_t *node, bool *is_new)
{
    view_tree *tree = from->tree;
    ttd_status status = find_label(tree, from->shown, label, &label);
    if (status != TTD_OK)
        return status;
    uint32_t below = map_get(&tree->index, *node, label);
    *is_new = below == MAP_NONE;
    if (*is_new)
        status = add_below(tree, *node, label, &below);
    *node = below;
    return status;
}

/* Whether the tree ends with a node. */
static bool is_last(const view_tree *tree, uint32_t node)
{
    return node && tree->nodes[node].depth + UINT64_C(1) >= tree->levels;
}

/* The label of a thread or a heap, or of a stack without frames; otherwise none is needed. */
static ttd_status add_first(const addition *from, heap_key key, bool has_stack, uint32_t *node)
{
    view *shown = from->shown;
    view_label name = view_row_label(shown, key);
    uint32_t index;
    bool is_new;
    if (has_stack && name.kind != LABEL_THREAD && name.kind != LABEL_HEAP)
        return TTD_OK;
    ttd_status status = labels_add(&shown->labels, &name, &index);
    return status == TTD_OK ? descend(from, index, node, &is_new) : status;
}

uint64_t view_tree_levels(const view_options *options)
{
    bool has_first = options->by == VIEW_BY_THREAD || options->by == VIEW_BY_HEAP;
    return options->depth && options->depth < UINT64_MAX ? options->depth + has_first : UINT64_MAX;
}

/* ---- Inward: from main() on ---- */

/* Goes on through the frames of an address, the outermost first. `last` is the label of the frame
 * before. */
static ttd_status enter(const addition *from, view_site site, uint32_t *last, uint32_t *node)
{
    const view *shown = from->shown;
    ttd_status status = stack_table_spend(&shown->names->stacks, site.count);
    for (size_t i = site.count; status == TTD_OK && i-- > 0;) {
        uint32_t label = shown->frames[site.first + i].label;
        if (view_merges(shown) && label == *last)
            continue;
        if (is_last(from->tree, *node))
            break;
        bool is_new;
        status = descend(from, label, node, &is_new);
        *last = label;
    }
    return status;
}

/* Sets from->path to the stacks from one on that have no node yet, and `node` to that of the first
 * that has one, if any has. */
static ttd_status climb(addition *from, uint32_t first, ttd_id id, size_t *count, uint32_t *last,
                        uint32_t *node)
{
    ttd_stack stack;
    ttd_status status;
    *count = 0;
    while ((status = definitions_stack(from->shown->names, id, &stack)) == TTD_OK) {
        uint32_t known = map_get(&from->stacks, first, id);
        if (known != MAP_NONE) {
            view_site site;
            *node = known;
            status = view_find_site(from->shown, &stack, &site);
            if (status == TTD_OK)
                *last = from->shown->frames[site.first].label;
            return status;
        }
        status =
            grow_array((void **)&from->path, &from->path_capacity, *count + 1, sizeof *from->path);
        if (status != TTD_OK)
            return status;
        from->path[(*count)++] = stack;
        id = stack.parent;
    }
    return status == TTD_END ? TTD_OK : status;
}

static ttd_status add_inward(addition *from, const ttd_stack *caller, view_site site,
                             uint32_t *node)
{
    uint32_t first = *node;
    uint32_t last = VIEW_NO_NODE;
    size_t count;
    ttd_status status = climb(from, first, caller->parent, &count, &last, node);
    while (status == TTD_OK && count > 0) {
        const ttd_stack *next = &from->path[--count];
        view_site whole;
        status = view_find_site(from->shown, next, &whole);
        if (status == TTD_OK)
            status = enter(from, whole, &last, node);
        if (status == TTD_OK)
            status = map_set(&from->stacks, first, next->id, *node);
    }
    return status == TTD_OK ? enter(from, site, &last, node) : status;
}

/* ---- Outward: from those that allocate to their callers ---- */

/* A place in a stack: the next of the frames of an address, and which come after. */
typedef struct place {
    view *shown;
    ttd_stack stack;
    view_site site;
} place;

/* Goes to where frames are left. @return TTD_OK, TTD_END where the stack ends, or an error. */
static ttd_status find_frame(place *at)
{
    ttd_status status = TTD_OK;
    while (!at->site.count && status == TTD_OK) {
        status = definitions_stack(at->shown->names, at->stack.parent, &at->stack);
        if (status == TTD_OK)
            status = view_find_site(at->shown, &at->stack, &at->site);
    }
    return status;
}

/* Goes to the next label, which is not `last` where these are one. @return as find_frame(). */
static ttd_status next_label(place *at, uint32_t last, uint32_t *label)
{
    ttd_status status;
    while ((status = find_frame(at)) == TTD_OK) {
        *label = at->shown->frames[at->site.first].label;
        at->site.first++;
        at->site.count--;
        status = stack_table_spend(&at->shown->names->stacks, 1);
        if (status != TTD_OK || !view_merges(at->shown) || *label != last)
            break;
    }
    return status;
}

static view_tail tail_of(const view_tree *tree, const place *at, uint32_t last)
{
    return (view_tail){.has_more = true,
                       .is_old = at->shown == tree->views[HEAP_OLD],
                       .last = last,
                       .stack = at->stack.id,
                       .left = (uint32_t)at->site.count};
}

/* Whether a node's tail is what is left of a stack at a place. */
static bool is_at(const view_tree *tree, const view_tail *tail, const place *at)
{
    return tail->has_more && tail->stack == at->stack.id && tail->left == at->site.count &&
           tail->is_old == (at->shown == tree->views[HEAP_OLD]);
}

static ttd_status place_of(const view_tree *tree, const view_tail *tail, place *at)
{
    at->shown = tree->views[tail->is_old ? HEAP_OLD : HEAP_NEW];
    ttd_status status = definitions_stack(at->shown->names, tail->stack, &at->stack);
    if (status == TTD_OK)
        status = view_find_site(at->shown, &at->stack, &at->site);
    if (status == TTD_OK) {
        at->site.first += at->site.count - tail->left;
        at->site.count = tail->left;
    }
    return status;
}

/* Gives the sums of a node to the one that is all that is below it. */
static void hand_down(view_tree *tree, uint32_t node, uint32_t below)
{
    view_node *from = &tree->nodes[node];
    tree->nodes[below].all = from->all;
    tree->nodes[below].self = from->self;
    from->self = (heap_amount){0, 0, 0};
    if (!tree->is_of_two)
        return;
    tree->old[below] = tree->old[node];
    tree->old[node].self = (heap_amount){0, 0, 0};
}

ttd_status view_tail_step(view_tree *tree, uint32_t node, uint32_t *below)
{
    view_tail tail = tree->nodes[node].tail;
    place at;
    uint32_t label = 0;
    uint32_t found;
    *below = VIEW_NO_NODE;
    if (!tail.has_more)
        return TTD_OK;
    tree->nodes[node].tail.has_more = false;
    ttd_status status = is_last(tree, node) ? TTD_END : place_of(tree, &tail, &at);
    if (status == TTD_OK)
        status = next_label(&at, tail.last, &label);
    if (status != TTD_OK)
        return status == TTD_END ? TTD_OK : status;
    status = find_label(tree, at.shown, label, &found);
    if (status == TTD_OK)
        status = add_below(tree, node, found, below);
    if (status != TTD_OK)
        return status;
    tree->nodes[*below].tail = tail_of(tree, &at, label);
    hand_down(tree, node, *below);
    return TTD_OK;
}

/* How many nodes there are outward from a stack on, whose last call comes after `last`. */
static ttd_status count_outward(view *shown, ttd_id id, uint32_t last, uint64_t *count)
{
    ttd_stack stack;
    view_site site;
    uint64_t labels;
    *count = 0;
    ttd_status status = definitions_stack(shown->names, id, &stack);
    if (status == TTD_OK)
        status = view_find_site(shown, &stack, &site);
    if (status == TTD_OK)
        status = view_count_labels(shown, id, &labels);
    if (status == TTD_OK)
        *count = labels - (view_merges(shown) && shown->frames[site.first].label == last);
    return status == TTD_END ? TTD_OK : status;
}

ttd_status view_tail_size(const view_tree *tree, uint32_t node, uint64_t *size)
{
    const view_tail *tail = &tree->nodes[node].tail;
    uint64_t most = tree->levels - tree->nodes[node].depth - 1;
    uint32_t last = tail->last;
    place at;
    *size = 0;
    if (!tail->has_more || is_last(tree, node))
        return TTD_OK;
    ttd_status status = place_of(tree, tail, &at);
    for (; status == TTD_OK && at.site.count; at.site.first++, at.site.count--) {
        uint32_t label = at.shown->frames[at.site.first].label;
        *size += !view_merges(at.shown) || label != last;
        last = label;
    }
    uint64_t rest = 0;
    if (status == TTD_OK)
        status = count_outward(at.shown, at.stack.parent, last, &rest);
    *size = *size + rest < most ? *size + rest : most;
    return status;
}

/* A node is made where stacks part: what only one of them goes through from a node on, or the same
 * one again and again, is the node's tail. */
static ttd_status add_outward(const addition *from, const ttd_stack *caller, view_site site,
                              uint32_t *node)
{
    view_tree *tree = from->tree;
    place at = {from->shown, *caller, site};
    uint32_t last = VIEW_NO_NODE;
    bool is_new = false;
    while (!is_new && !is_at(tree, &tree->nodes[*node].tail, &at)) {
        uint32_t label;
        uint32_t below;
        ttd_status status = is_last(tree, *node) ? TTD_END : next_label(&at, last, &label);
        ttd_status made =
            status == TTD_OK || status == TTD_END ? view_tail_step(tree, *node, &below) : status;
        if (status == TTD_END || made != TTD_OK)
            return made;
        status = descend(from, label, node, &is_new);
        if (status != TTD_OK)
            return status;
        last = label;
    }
    if (is_new)
        tree->nodes[*node].tail = tail_of(tree, &at, last);
    return TTD_OK;
}

static ttd_status add_row(addition *from, heap_key key, heap_amount amount)
{
    view_tree *tree = from->tree;
    uint32_t node = 0;
    ttd_stack caller;
    view_site site;
    ttd_status found = view_find_caller(from->shown, key.stack, &caller, &site);
    ttd_status status = found == TTD_END ? TTD_OK : found;
    if (status == TTD_OK)
        status = add_first(from, key, found == TTD_OK, &node);
    if (status == TTD_OK && found == TTD_OK)
        status = from->shown->options.shape == VIEW_TOP_DOWN
                     ? add_inward(from, &caller, site, &node)
                     : add_outward(from, &caller, site, &node);
    uint32_t below;
    if (status == TTD_OK && found == TTD_END)
        status = view_tail_step(tree, node, &below);
    if (status == TTD_OK)
        view_add_amount(from->side == HEAP_OLD ? &tree->old[node].self : &tree->nodes[node].self,
                        amount);
    return status;
}

ttd_status view_tree_add(view_tree *tree, view *shown, const heap_rows *rows, heap_side side)
{
    addition from = {.tree = tree, .shown = shown, .side = side};
    ttd_status status = TTD_OK;
    tree->views[side] = shown;
    map_init(&from.stacks);
    for (size_t i = 0; i < *rows->count && status == TTD_OK; i++) {
        heap_amount amount = rows->amount(heap_row(rows, i));
        if (amount.weight || amount.count)
            status = add_row(&from, *heap_row(rows, i), amount);
    }
    map_free(&from.stacks);
    free(from.path);
    return status;
}
