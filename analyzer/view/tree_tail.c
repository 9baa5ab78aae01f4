/* SPDX-License-Identifier: MIT */
/* Outward trees, from the functions that allocate to their callers, and the tails of their nodes.
 */
#include "view/tree_parts.h"

/* A position in a stack: the frames of the innermost address that are left, and the stack that
 * continues after them. */
struct tail_cursor {
    struct view *view;
    struct ttd_stack stack;
    struct view_site site;
};

/* Moves to the next address that has frames. @return TTD_OK, TTD_END (the stack ends), or an error.
 */
static enum ttd_status tail_find_frame(struct tail_cursor *cursor)
{
    enum ttd_status status = TTD_OK;
    while (!cursor->site.count && status == TTD_OK) {
        status = definitions_stack(cursor->view->definitions, cursor->stack.parent, &cursor->stack);
        if (status == TTD_OK)
            status = view_find_site(cursor->view, &cursor->stack, &cursor->site);
    }
    return status;
}

/* Moves to the next label; where the view merges equal labels, to one that is not `last`. @return
 * as tail_find_frame(). */
static enum ttd_status next_label(struct tail_cursor *cursor, uint32_t last, uint32_t *label)
{
    enum ttd_status status;
    while ((status = tail_find_frame(cursor)) == TTD_OK) {
        *label = cursor->view->frames[cursor->site.first].label;
        cursor->site.first++;
        cursor->site.count--;
        status = stack_table_spend(&cursor->view->definitions->stacks, 1);
        if (status != TTD_OK || !view_merges(cursor->view) || *label != last)
            break;
    }
    return status;
}

static struct view_tail tail_of(const struct view_tree *tree, const struct tail_cursor *cursor,
                                uint32_t last)
{
    return (struct view_tail){.has_more = true,
                              .is_old = cursor->view == tree->views[HEAP_OLD],
                              .last = last,
                              .stack = cursor->stack.id,
                              .left = (uint32_t)cursor->site.count};
}

/* Whether a node's tail is the rest of the stack at the cursor. */
static bool is_at(const struct view_tree *tree, const struct view_tail *tail,
                  const struct tail_cursor *cursor)
{
    return tail->has_more && tail->stack == cursor->stack.id && tail->left == cursor->site.count &&
           tail->is_old == (cursor->view == tree->views[HEAP_OLD]);
}

static enum ttd_status open_tail(const struct view_tree *tree, const struct view_tail *tail,
                                 struct tail_cursor *cursor)
{
    cursor->view = tree->views[tail->is_old ? HEAP_OLD : HEAP_NEW];
    enum ttd_status status =
        definitions_stack(cursor->view->definitions, tail->stack, &cursor->stack);
    if (status == TTD_OK)
        status = view_find_site(cursor->view, &cursor->stack, &cursor->site);
    if (status == TTD_OK) {
        cursor->site.first += cursor->site.count - tail->left;
        cursor->site.count = tail->left;
    }
    return status;
}

/* Moves the sums of a node to the only node below it. */
static void hand_down(struct view_tree *tree, uint32_t node, uint32_t child)
{
    struct view_node *upper = &tree->nodes[node];
    tree->nodes[child].total = upper->total;
    tree->nodes[child].self = upper->self;
    upper->self = (struct heap_amount){0, 0, 0};
    if (!tree->is_of_two)
        return;
    tree->old[child] = tree->old[node];
    tree->old[node].self = (struct heap_amount){0, 0, 0};
}

enum ttd_status view_tail_step(struct view_tree *tree, uint32_t node, uint32_t *child)
{
    struct view_tail tail = tree->nodes[node].tail;
    struct tail_cursor cursor;
    uint32_t label = 0;
    uint32_t label_id;
    *child = VIEW_NO_NODE;
    if (!tail.has_more)
        return TTD_OK;
    tree->nodes[node].tail.has_more = false;
    enum ttd_status status =
        view_tree_is_last(tree, node) ? TTD_END : open_tail(tree, &tail, &cursor);
    if (status == TTD_OK)
        status = next_label(&cursor, tail.last, &label);
    if (status != TTD_OK)
        return status == TTD_END ? TTD_OK : status;
    status = view_tree_find_label(tree, cursor.view, label, &label_id);
    if (status == TTD_OK)
        status = view_tree_add_below(tree, node, label_id, child);
    if (status != TTD_OK)
        return status;
    tree->nodes[*child].tail = tail_of(tree, &cursor, label);
    hand_down(tree, node, *child);
    return TTD_OK;
}

/* Counts the nodes of a stack, outward, that follow a frame with the label `last`. */
static enum ttd_status count_outward(struct view *view, ttd_id id, uint32_t last, uint64_t *count)
{
    struct ttd_stack stack;
    struct view_site site;
    uint64_t labels;
    *count = 0;
    enum ttd_status status = definitions_stack(view->definitions, id, &stack);
    if (status == TTD_OK)
        status = view_find_site(view, &stack, &site);
    if (status == TTD_OK)
        status = view_count_labels(view, id, &labels);
    if (status == TTD_OK)
        *count = labels - (view_merges(view) && view->frames[site.first].label == last);
    return status == TTD_END ? TTD_OK : status;
}

enum ttd_status view_tail_size(const struct view_tree *tree, uint32_t node, uint64_t *size)
{
    const struct view_tail *tail = &tree->nodes[node].tail;
    uint64_t max_size = tree->levels - tree->nodes[node].depth - 1;
    uint32_t last = tail->last;
    struct tail_cursor cursor;
    *size = 0;
    if (!tail->has_more || view_tree_is_last(tree, node))
        return TTD_OK;
    enum ttd_status status = open_tail(tree, tail, &cursor);
    for (; status == TTD_OK && cursor.site.count; cursor.site.first++, cursor.site.count--) {
        uint32_t label = cursor.view->frames[cursor.site.first].label;
        *size += !view_merges(cursor.view) || label != last;
        last = label;
    }
    uint64_t outward_count = 0;
    if (status == TTD_OK)
        status = count_outward(cursor.view, cursor.stack.parent, last, &outward_count);
    *size = *size + outward_count < max_size ? *size + outward_count : max_size;
    return status;
}

enum ttd_status view_tree_add_outward(const struct view_addition *addition,
                                      const struct ttd_stack *caller, struct view_site site,
                                      uint32_t *node)
{
    struct view_tree *tree = addition->tree;
    struct tail_cursor cursor = {addition->view, *caller, site};
    uint32_t last = VIEW_NO_NODE;
    bool is_new = false;
    while (!is_new && !is_at(tree, &tree->nodes[*node].tail, &cursor)) {
        uint32_t label;
        uint32_t child;
        enum ttd_status status =
            view_tree_is_last(tree, *node) ? TTD_END : next_label(&cursor, last, &label);
        enum ttd_status step_status =
            status == TTD_OK || status == TTD_END ? view_tail_step(tree, *node, &child) : status;
        if (status == TTD_END || step_status != TTD_OK)
            return step_status;
        status = view_tree_descend(addition, label, node, &is_new);
        if (status != TTD_OK)
            return status;
        last = label;
    }
    if (is_new)
        tree->nodes[*node].tail = tail_of(tree, &cursor, last);
    return TTD_OK;
}
