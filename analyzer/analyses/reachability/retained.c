/* SPDX-License-Identifier: MIT */
#include "analyses/reachability/retained.h"

#include <stdlib.h>

#include "analyses/reachability/retained_parts.h"
#include "base/grow.h"
#include "heap/site_table.h"

enum ttd_status retained_add(struct heap_retained *retained, const struct heap_retainer *retainer)
{
    enum ttd_status status = grow_array((void **)&retained->records, &retained->capacity,
                                        retained->count + 1, sizeof *retained->records);
    if (status == TTD_OK)
        retained->records[retained->count++] = *retainer;
    return status;
}

struct heap_retainer retained_of_node(const struct heap_retained *retained, uint32_t node)
{
    const struct heap_held *held = &retained->held;
    const struct graph_dominators *dominators = &held->dominators;
    struct heap_retainer retainer = {.node = node,
                                     .retained_blocks = graph_retained_blocks(dominators, node),
                                     .retained_bytes = dominators->bytes[node]};
    if (node < held->reach.nodes.count) {
        retainer.blocks = 1;
        retainer.bytes = heap_nodes_size(&held->reach.nodes, node);
        retainer.stack = heap_nodes_stack(&held->reach.nodes, node);
    } else {
        retainer.index = node - held->reach.nodes.count + 1;
    }
    return retainer;
}

int retained_compare(const void *a, const void *b)
{
    const struct heap_retainer *x = a;
    const struct heap_retainer *y = b;
    if (x->retained_bytes != y->retained_bytes)
        return x->retained_bytes > y->retained_bytes ? -1 : 1;
    if (x->retained_blocks != y->retained_blocks)
        return x->retained_blocks > y->retained_blocks ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

void retained_cut(struct heap_retained *retained, size_t limit)
{
    if (retained->count)
        qsort(retained->records, retained->count, sizeof *retained->records, retained_compare);
    if (retained->count > limit)
        retained->count = limit;
}

/* Ranks all blocks. The list is cut whenever it has twice as many records as are asked for: so
 * memory depends on the limit and not on the number of blocks, and one sort serves many additions.
 * Once the list was cut, a block that ranks behind its last record need not be added. */
static enum ttd_status retained_rank_blocks(struct heap_retained *retained, size_t limit)
{
    enum ttd_status status = TTD_OK;
    bool was_cut = false;
    for (uint32_t node = 0; node < retained->held.reach.nodes.count && status == TTD_OK; node++) {
        struct heap_retainer retainer = retained_of_node(retained, node);
        if (!retainer.retained_blocks)
            continue;
        retained->total++;
        if (was_cut && retained_compare(&retainer, &retained->records[limit - 1]) > 0)
            continue;
        status = retained_add(retained, &retainer);
        if (retained->count / 2 >= limit) {
            retained_cut(retained, limit);
            was_cut = true;
        }
    }
    return status;
}

static enum ttd_status retained_find_records(struct heap_retained *retained,
                                             const struct heap_retained_options *options)
{
    size_t group_limit =
        options->limit < HEAP_RETAINED_GROUPS_MAX ? options->limit : HEAP_RETAINED_GROUPS_MAX;
    if (options->depth)
        return retained_tree(retained, options);
    if (options->by == HEAP_RETAINED_BY_ROOT)
        return retained_roots(retained, group_limit);
    if (options->by != HEAP_RETAINED_BY_BLOCK)
        return retained_groups(retained, options, group_limit);
    enum ttd_status status = retained_rank_blocks(retained, options->limit);
    retained_cut(retained, options->limit);
    return status;
}

enum ttd_status heap_retained_find(const struct heap_trace *trace,
                                   const struct heap_retained_options *options,
                                   struct heap_retained *retained, struct ttd_error *error)
{
    *retained = (struct heap_retained){.count = 0};
    enum ttd_status status = heap_held_find(trace, options->at, &retained->held, error);
    if (status != TTD_OK)
        return status;
    status = heap_retained_rank(retained, options);
    if (status != TTD_OK)
        heap_retained_free(retained);
    return status;
}

enum ttd_status heap_retained_rank(struct heap_retained *retained,
                                   const struct heap_retained_options *options)
{
    retained->outcome = retained->held.outcome;
    retained->count = 0;
    retained->total = 0;
    return retained->held.reach.snapshot.number ? retained_find_records(retained, options) : TTD_OK;
}

void heap_retained_free(struct heap_retained *retained)
{
    heap_held_free(&retained->held);
    free(retained->records);
    retained->records = NULL;
}
