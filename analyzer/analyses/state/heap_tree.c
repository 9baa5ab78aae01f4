/* SPDX-License-Identifier: MIT */
#include "analyses/state/heap_tree.h"

#include <stdlib.h>

#include "base/grow.h"
#include "heap/heap_live.h"

/* The tree while the trace is read. */
struct search {
    struct heap_tree *tree;
    struct ttd_position position;
    struct hash_map by_heap;
    struct heap_parents parents;
};

static enum ttd_status heap_tree_obtain(struct search *search, ttd_id heap,
                                        struct heap_tree_node **node)
{
    struct heap_tree *tree = search->tree;
    uint32_t index = map_get(&search->by_heap, heap, 0);
    if (index == MAP_NONE) {
        index = (uint32_t)tree->count;
        enum ttd_status status = grow_array((void **)&tree->nodes, &tree->capacity, tree->count + 1,
                                            sizeof *tree->nodes);
        if (status == TTD_OK)
            status = map_set(&search->by_heap, heap, 0, index);
        if (status != TTD_OK)
            return status;
        tree->nodes[tree->count++] = (struct heap_tree_node){.heap = heap,
                                                             .created = heap_call_none(),
                                                             .parent = HEAP_TREE_NONE,
                                                             .first_child = HEAP_TREE_NONE,
                                                             .next_sibling = HEAP_TREE_NONE};
    }
    *node = &tree->nodes[index];
    return TTD_OK;
}

static enum ttd_status heap_tree_see_event(struct search *search, const struct ttd_event *event)
{
    bool creates = event->action == TTD_ACTION_CREATE;
    struct heap_tree_node *node;
    bool has_failed = !event->result && ttd_event_returned(event);
    if ((!creates && event->action != TTD_ACTION_DESTROY) || has_failed ||
        ttd_position_compare(ttd_event_position(event), search->position) > 0)
        return TTD_OK;
    enum ttd_status status = heap_tree_obtain(search, event->heap, &node);
    if (status != TTD_OK)
        return status;
    if (creates)
        node->created = heap_call_of_event(event);
    node->is_destroyed = !creates;
    return TTD_OK;
}

static enum ttd_status read_heaps(struct search *search, const struct heap_trace *trace,
                                  struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind(
        trace->reader, TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_HEAP_PARENTS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        if (status == TTD_OK)
            status = heap_parents_add(&search->parents, &batch);
        for (size_t i = 0; status == TTD_OK && batch.kind == TTD_KIND_EVENTS && i < batch.count;
             i++)
            status = heap_tree_see_event(search, &batch.u.events[i]);
    }
    return heap_is_over(status) ? TTD_OK : status;
}

static enum ttd_status heap_tree_add_blocks(struct search *search,
                                            const struct heap_groups *by_heap)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < by_heap->count && status == TTD_OK; i++) {
        struct heap_tree_node *node;
        status = heap_tree_obtain(search, by_heap->items[i].key.property, &node);
        if (status != TTD_OK)
            break;
        node->blocks = by_heap->items[i].blocks;
        node->bytes = by_heap->items[i].bytes;
    }
    return status;
}

/* Returns the parent of a heap, or TTD_NONE. A parent is defined before its children, so its number
 * is smaller. Records that say otherwise are ignored, so the tree has no cycles. */
static ttd_id heap_tree_parent_of(const struct search *search, ttd_id heap)
{
    ttd_id parent = heap_parents_get(&search->parents, heap);
    return parent < heap ? parent : TTD_NONE;
}

/* Adds the ancestors of the heaps found so far. */
static enum ttd_status heap_tree_add_parents(struct search *search)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < search->tree->count && status == TTD_OK; i++) {
        struct heap_tree_node *parent_node;
        ttd_id parent = heap_tree_parent_of(search, search->tree->nodes[i].heap);
        if (parent != TTD_NONE)
            status = heap_tree_obtain(search, parent, &parent_node);
    }
    return status;
}

/* Drops destroyed heaps that have no live blocks and no heaps below them. */
static void heap_tree_drop_destroyed(struct search *search)
{
    struct heap_tree *tree = search->tree;
    size_t kept = 0;
    for (size_t i = 0; i < tree->count; i++) {
        struct heap_tree_node *node = &tree->nodes[i];
        if (node->is_destroyed && !node->blocks)
            continue;
        /* The walk to the root ends at the first ancestor that is marked already, so the time is
         * proportional to the number of heaps. */
        while (!node->is_needed) {
            node->is_needed = true;
            ttd_id parent = heap_tree_parent_of(search, node->heap);
            if (parent != TTD_NONE)
                node = &tree->nodes[map_get(&search->by_heap, parent, 0)];
        }
    }
    for (size_t i = 0; i < tree->count; i++)
        if (tree->nodes[i].is_needed)
            tree->nodes[kept++] = tree->nodes[i];
    tree->count = kept;
}

static int heap_tree_compare(const void *a, const void *b)
{
    ttd_id first = ((const struct heap_tree_node *)a)->heap;
    ttd_id second = ((const struct heap_tree_node *)b)->heap;
    return (first > second) - (first < second);
}

const struct heap_tree_node *heap_tree_get(const struct heap_tree *tree, ttd_id heap)
{
    struct heap_tree_node key = {.heap = heap};
    return tree->count ? bsearch(&key, tree->nodes, tree->count, sizeof key, heap_tree_compare)
                       : NULL;
}

static uint32_t heap_tree_index(const struct heap_tree *tree, ttd_id heap)
{
    const struct heap_tree_node *node = heap_tree_get(tree, heap);
    return node ? (uint32_t)(node - tree->nodes) : HEAP_TREE_NONE;
}

/* Links the nodes and sets their levels. Nodes are sorted by heap, so a parent, whose number is
 * smaller, has its level before its children need it. */
static void heap_tree_link(const struct search *search)
{
    struct heap_tree *tree = search->tree;
    for (size_t i = 0; i < tree->count; i++) {
        struct heap_tree_node *node = &tree->nodes[i];
        ttd_id parent = heap_tree_parent_of(search, node->heap);
        if (parent == TTD_NONE)
            continue;
        node->parent = heap_tree_index(tree, parent);
        struct heap_tree_node *parent_node = &tree->nodes[node->parent];
        node->level = parent_node->level + 1;
        parent_node->inner_blocks += node->blocks;
        parent_node->inner_bytes = heap_add(parent_node->inner_bytes, node->bytes);
    }
    for (size_t i = tree->count; i-- > 0;) {
        struct heap_tree_node *node = &tree->nodes[i];
        if (node->parent == HEAP_TREE_NONE)
            continue;
        node->next_sibling = tree->nodes[node->parent].first_child;
        tree->nodes[node->parent].first_child = (uint32_t)i;
    }
}

enum ttd_status heap_tree_find(const struct heap_trace *trace, struct ttd_position position,
                               const struct heap_groups *by_heap, struct heap_tree *tree,
                               struct ttd_error *error)
{
    struct search search = {.tree = tree, .position = position};
    *tree = (struct heap_tree){.nodes = NULL};
    map_init(&search.by_heap);
    enum ttd_status status = read_heaps(&search, trace, error);
    if (status == TTD_OK)
        status = heap_tree_add_blocks(&search, by_heap);
    if (status == TTD_OK)
        status = heap_tree_add_parents(&search);
    if (status == TTD_OK && tree->count) {
        heap_tree_drop_destroyed(&search);
        qsort(tree->nodes, tree->count, sizeof *tree->nodes, heap_tree_compare);
        heap_tree_link(&search);
    }
    map_free(&search.by_heap);
    heap_parents_free(&search.parents);
    if (status != TTD_OK)
        heap_tree_free(tree);
    return status;
}

void heap_tree_free(struct heap_tree *tree)
{
    free(tree->nodes);
    *tree = (struct heap_tree){.nodes = NULL};
}

/* Returns the next heap without a parent, from an index on. */
static uint32_t heap_tree_next_root(const struct heap_tree *tree, size_t first)
{
    while (first < tree->count && tree->nodes[first].parent != HEAP_TREE_NONE)
        first++;
    return first < tree->count ? (uint32_t)first : HEAP_TREE_NONE;
}

uint32_t heap_tree_next(const struct heap_tree *tree, uint32_t node)
{
    const struct heap_tree_node *nodes = tree->nodes;
    if (node == HEAP_TREE_NONE)
        return heap_tree_next_root(tree, 0);
    if (nodes[node].first_child != HEAP_TREE_NONE)
        return nodes[node].first_child;
    while (nodes[node].next_sibling == HEAP_TREE_NONE && nodes[node].parent != HEAP_TREE_NONE)
        node = nodes[node].parent;
    return nodes[node].parent == HEAP_TREE_NONE ? heap_tree_next_root(tree, node + 1)
                                                : nodes[node].next_sibling;
}
