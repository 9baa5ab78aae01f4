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

/* Adds a node around the outermost frame of a stack that ends early: no other shows that functions
 * have called it. */
static enum ttd_status add_unknown_callers(const struct view_addition *addition, ttd_id stack,
                                           uint32_t *node)
{
    uint32_t label;
    bool is_cut, is_new;
    enum ttd_status status = view_stack_is_cut(addition->view, stack, &is_cut);
    if (status != TTD_OK || !is_cut || view_tree_is_last(addition->tree, *node))
        return status;
    status = view_label_unknown_callers(addition->view, &label);
    return status == TTD_OK ? view_tree_descend(addition, label, node, &is_new) : status;
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

/* Sets addition->path to the stacks without a node, from `id` outward, and `node` to the node of
 * the first caller that has one, if any has. */
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
    if (status == TTD_OK && caller_status == TTD_OK &&
        addition->view->options.shape == VIEW_TOP_DOWN)
        status = add_unknown_callers(addition, key.stack, &node);
    if (status == TTD_OK && caller_status == TTD_OK)
        status = addition->view->options.shape == VIEW_TOP_DOWN
                     ? add_inward(addition, &caller, site, &node)
                     : view_tree_add_outward(addition, key.stack, &caller, site, &node);
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

/* Outward trees, from the functions that allocate to their callers, and the tails of their nodes.
 */

/* A position in a stack: the frames of the innermost address that are left, and the stack that
 * continues after them. */
struct tail_cursor {
    struct view *view;
    struct ttd_stack stack;
    struct view_site site;
    bool is_cut; /* unknown callers come after the last frame */
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

/* Moves behind the last frame. @return as tail_find_frame(). */
static enum ttd_status tail_pass_end(struct tail_cursor *cursor, uint32_t *label)
{
    if (!cursor->is_cut)
        return TTD_END;
    cursor->is_cut = false;
    return view_label_unknown_callers(cursor->view, label);
}

/* Moves to the next label; where the view merges equal labels, to one that is not `last`. @return
 * as tail_find_frame(). */
static enum ttd_status tree_add_next_label(struct tail_cursor *cursor, uint32_t last,
                                           uint32_t *label)
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
    return status == TTD_END ? tail_pass_end(cursor, label) : status;
}

static struct view_tail tail_of(const struct view_tree *tree, const struct tail_cursor *cursor,
                                uint32_t last)
{
    return (struct view_tail){.has_more = true,
                              .is_old = cursor->view == tree->views[HEAP_OLD],
                              .is_cut = cursor->is_cut,
                              .last = last,
                              .stack = cursor->stack.id,
                              .left = (uint32_t)cursor->site.count};
}

/* Whether a node's tail is the rest of the stack at the cursor. */
static bool tree_add_is_at(const struct view_tree *tree, const struct view_tail *tail,
                           const struct tail_cursor *cursor)
{
    return tail->has_more && tail->stack == cursor->stack.id && tail->left == cursor->site.count &&
           tail->is_cut == cursor->is_cut &&
           tail->is_old == (cursor->view == tree->views[HEAP_OLD]);
}

static enum ttd_status tree_add_open_tail(const struct view_tree *tree,
                                          const struct view_tail *tail, struct tail_cursor *cursor)
{
    cursor->view = tree->views[tail->is_old ? HEAP_OLD : HEAP_NEW];
    cursor->is_cut = tail->is_cut;
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
static void tree_add_hand_down(struct view_tree *tree, uint32_t node, uint32_t child)
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
        view_tree_is_last(tree, node) ? TTD_END : tree_add_open_tail(tree, &tail, &cursor);
    if (status == TTD_OK)
        status = tree_add_next_label(&cursor, tail.last, &label);
    if (status != TTD_OK)
        return status == TTD_END ? TTD_OK : status;
    status = view_tree_find_label(tree, cursor.view, label, &label_id);
    if (status == TTD_OK)
        status = view_tree_add_below(tree, node, label_id, child);
    if (status != TTD_OK)
        return status;
    tree->nodes[*child].tail = tail_of(tree, &cursor, label);
    tree_add_hand_down(tree, node, *child);
    return TTD_OK;
}

/* Counts the nodes of a stack, outward, that follow a frame with the label `last`. */
static enum ttd_status tree_add_count_outward(struct view *view, ttd_id id, uint32_t last,
                                              uint64_t *count)
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
    enum ttd_status status = tree_add_open_tail(tree, tail, &cursor);
    for (; status == TTD_OK && cursor.site.count; cursor.site.first++, cursor.site.count--) {
        uint32_t label = cursor.view->frames[cursor.site.first].label;
        *size += !view_merges(cursor.view) || label != last;
        last = label;
    }
    uint64_t outward_count = 0;
    if (status == TTD_OK)
        status = tree_add_count_outward(cursor.view, cursor.stack.parent, last, &outward_count);
    outward_count += tail->is_cut;
    *size = *size + outward_count < max_size ? *size + outward_count : max_size;
    return status;
}

enum ttd_status view_tree_add_outward(const struct view_addition *addition, ttd_id stack,
                                      const struct ttd_stack *caller, struct view_site site,
                                      uint32_t *node)
{
    struct view_tree *tree = addition->tree;
    struct tail_cursor cursor = {.view = addition->view, .stack = *caller, .site = site};
    enum ttd_status cut_status = view_stack_is_cut(addition->view, stack, &cursor.is_cut);
    if (cut_status != TTD_OK)
        return cut_status;
    uint32_t last = VIEW_NO_NODE;
    bool is_new = false;
    while (!is_new && !tree_add_is_at(tree, &tree->nodes[*node].tail, &cursor)) {
        uint32_t label;
        uint32_t child;
        enum ttd_status status =
            view_tree_is_last(tree, *node) ? TTD_END : tree_add_next_label(&cursor, last, &label);
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
